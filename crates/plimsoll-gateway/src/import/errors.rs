//! `error_page` of locations that forward.

use std::path::Path;

use super::Notes;
use super::nginx::Directive;
use super::scope::Scope;
use super::selection;
use super::toml::{Keys, quoted};

/// The keys `error_pages` and `intercept_errors`: pages that are files below a folder of the configuration.
pub(super) fn error_pages(scope: &Scope<'_>, keys: &mut Keys, notes: &mut Notes) {
    let mut pages = Keys::default();
    for directive in scope.all("error_page") {
        let path = directive.arguments.last().map_or("", String::as_str);
        if path.starts_with('/') && !selection::is_as_closed_as(scope, path) {
            let why = format!("left out: a location keeps clients out of `{path}`");
            notes.add(directive, why);
            continue;
        }
        let file = page(directive, scope);
        if let Some((_, file)) = &file
            && is_missing(Path::new(file))
        {
            let why = format!(
                "left out: there is no {file}, without which nginx sends a page of its own; `up` reads the pages of \
                 `error_pages` when it starts"
            );
            notes.add(directive, why);
            continue;
        }
        for (status, file) in file
            .iter()
            .flat_map(|(codes, file)| codes.iter().map(move |it| (*it, file)))
        {
            pages.set(status, format!("{{ file = {} }}", quoted(file)));
        }
        if file.is_none() {
            notes.add(
                directive,
                "left out: `error_pages` sends files of a folder that is known, with the status of the error",
            );
        }
    }
    if pages.is_empty() {
        return;
    }
    keys.set("error_pages", pages.inline());
    if scope.is("proxy_intercept_errors", "on") {
        keys.set("intercept_errors", "true");
    }
}

/// Whether a file is not in its folder. A folder that is not there may be on another machine.
fn is_missing(file: &Path) -> bool {
    file.parent().is_some_and(Path::is_dir) && !file.is_file()
}

/// The statuses of a page and its file.
fn page<'a>(directive: &'a Directive, scope: &Scope<'a>) -> Option<(Vec<&'a str>, String)> {
    let (path, codes) = directive.arguments.split_last()?;
    let is_status = |it: &str| it.parse().is_ok_and(|it: u16| (400..=599).contains(&it));
    if !path.starts_with('/') || path.contains(['$', '?']) || !codes.iter().all(|it| is_status(it))
    {
        return None;
    }
    let mut locations = scope.server().iter().filter(|it| it.name == "location");
    let own = locations.find(|it| it.arguments.last() == Some(path));
    let own = own.and_then(|it| it.last("root"));
    let root = own.or_else(|| scope.last("root"))?.argument(0);
    let is_known = !root.contains('$') && !codes.is_empty();
    let file = format!("{}{path}", root.trim_end_matches('/'));
    is_known.then(|| (codes.iter().map(String::as_str).collect(), file))
}
