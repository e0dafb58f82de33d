//! Configurations of other servers, translated to that of `plimsoll up`, with a report of everything that is left out.

mod caddy;

mod expressgateway;

mod nginx;

mod locations;

mod patterns;

mod route;

mod variants;

mod access;

mod cache;

mod chosen;

mod client_certificates;

mod cookies;

mod errors;

mod application;

mod fastcgi;

mod uwsgi;

mod fates;

mod files;

mod haproxy;

mod kubernetes;

mod limits;

mod loads;

mod logs;

mod maps;

mod proxy;

mod rate_limit;

mod real_ip;

mod reasons;

mod redirects;

mod responses;

mod rows;

mod scope;

mod selection;

mod servers;

mod shares;

mod stream;

mod traefik;

mod upstreams;

mod variables;

mod weights;

mod toml;

use std::error::Error;
use std::fmt;
use std::path::Path;

use plimsoll_formats::yaml::YamlError;

pub use self::caddy::{import_caddy, is_caddyfile};
pub use self::expressgateway::{import_expressgateway, is_expressgateway};
pub use self::haproxy::{import_haproxy, is_haproxy};
pub use self::kubernetes::{import_kubernetes, is_kubernetes};
pub use self::traefik::{import_traefik, is_traefik};

use self::nginx::Directive;
use self::servers::Translation;

/// A translated configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The file for `plimsoll up`.
    pub toml: String,
    /// Parts that were left out or behave differently, in the order of the source.
    pub notes: Vec<ImportNote>,
}

impl Imported {
    /// The file of a translation, with what does not load replaced.
    fn from_parts(file: &str, parts: Translation, mut notes: Notes) -> Self {
        let directory = Path::new(file).parent().unwrap_or(Path::new(""));
        let toml = loads::loading(parts, directory, &mut notes);
        Self::new(toml, notes)
    }

    /// - `notes`: in any order; equal ones are reported once.
    fn new(toml: String, notes: Notes) -> Self {
        let Notes(mut notes) = notes;
        notes.sort();
        notes.dedup();
        Self { toml, notes }
    }
}

/// Something that was not carried over as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImportNote {
    /// The file of the directive.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// The directive and what became of it.
    pub message: String,
}

impl fmt::Display for ImportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// Why a file is not a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// The error.
    pub reason: String,
}

impl ImportError {
    fn of_yaml(file: &str, error: &YamlError) -> Self {
        Self {
            file: file.to_owned(),
            line: error.line,
            reason: error.to_string(),
        }
    }
}

/// Files that `include` names: their names and texts, in order; or why they cannot be read.
pub type Include<'a> = dyn FnMut(&str) -> Result<Vec<(String, String)>, IncludeError> + 'a;

/// Why files cannot be included: that of the system, or that they lie where they may not.
pub type IncludeError = Box<dyn Error + Send + Sync>;

/// Translates a configuration of nginx: servers, locations in nginx's order of precedence, upstreams, headers, limits and
/// timeouts. Whatever has no counterpart is reported.
///
/// - `file`: the name of the file, for the report.
/// - `include`: reads the files of `include` directives.
pub fn import_nginx(
    file: &str,
    text: &str,
    include: &mut Include<'_>,
) -> Result<Imported, ImportError> {
    let directives = nginx::parse(file, text, include)?;
    let mut notes = Notes::default();
    let parts = servers::translate(&directives, &mut notes);
    Ok(Imported::from_parts(file, parts, notes))
}

/// The notes so far.
#[derive(Debug, Default)]
struct Notes(Vec<ImportNote>);

impl Notes {
    /// Notes what became of a directive.
    fn add(&mut self, directive: &Directive, message: impl fmt::Display) {
        self.0.push(ImportNote {
            file: directive.file.to_string(),
            line: directive.line,
            message: format!("{}: {message}", directive.name),
        });
    }

    /// The directive has no counterpart.
    fn left_out(&mut self, directive: &Directive) {
        self.add(directive, "left out: there is no counterpart");
    }

    /// The directive of nginx has no counterpart; the note says what nginx would have done, where that is known.
    fn left_out_of_nginx(&mut self, directive: &Directive) {
        self.add(directive, reasons::of_http(&directive.name));
    }
}

#[cfg(test)]
mod tests;
