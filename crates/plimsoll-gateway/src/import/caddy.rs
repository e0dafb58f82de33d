//! Caddyfiles, translated: sites, their certificates, and the directives that people use, in Caddy's order.
//!
//! Source: Caddy's documentation, "Caddyfile" (concepts, directives, matchers, options).

mod errors;

mod handlers;

mod layers;

mod matcher;

mod proxies;

mod responses;

mod rewriting;

mod sites;

mod syntax;

mod untranslated;

mod values;

use std::path::Path;
use std::rc::Rc;

use self::sites::Sites;
use super::servers::Translation;
use super::{ImportError, Imported, Include, Notes};

/// Whether a file is a Caddyfile, by its name or its lines: those of nginx end with semicolons.
pub fn is_caddyfile(file: &str, text: &str) -> bool {
    let name = Path::new(file).file_name().unwrap_or_default();
    let name = name.to_string_lossy().to_ascii_lowercase();
    let extension = Path::new(&name).extension().unwrap_or_default();
    let is_named =
        name.starts_with("caddyfile") || extension == "caddyfile" || extension == "caddy";
    let lines = || text.lines().map(str::trim);
    is_named || lines().any(|line| line.ends_with('{')) && !lines().any(|line| line.ends_with(';'))
}

/// Translates a Caddyfile. What has no counterpart is reported.
///
/// - `file`: its name, for the report.
/// - `include`: reads the files that `import` names.
pub fn import_caddy(
    file: &str,
    text: &str,
    include: &mut Include<'_>,
) -> Result<Imported, ImportError> {
    let mut notes = Notes::default();
    let parsed = syntax::parse(file, text, include, &mut notes)?;
    if parsed.sites.is_empty() {
        return Err(ImportError {
            file: file.to_owned(),
            line: 1,
            reason: "there is no site".to_owned(),
        });
    }
    let mut sites = Sites::new(&parsed.options, &mut notes);
    for site in &parsed.sites {
        sites.add(site, parsed.sites.len() == 1, &mut notes);
    }
    if !sites.has_listener() {
        let first = parsed.sites.first();
        return Err(ImportError {
            file: file.to_owned(),
            line: first.map_or(1, |site| site.head.line),
            reason: "no site has an address that can be listened on".to_owned(),
        });
    }
    let parts = Translation {
        source: "a Caddyfile",
        head: sites.head(&mut notes),
        at: (Rc::from(file), 1),
        routes: sites.routes,
        upstreams: sites.upstreams,
    };
    Ok(Imported::from_parts(file, parts, notes))
}

#[cfg(test)]
mod tests;
