//! `handle_errors`: what takes the place of the errors of proxies and files.

use super::super::Notes;
use super::super::files::media_type;
use super::super::nginx::Directive;
use super::super::route::Route;
use super::super::rows::Rows;
use super::super::rows::actions::Response;
use super::super::toml::Keys;

/// Directives of a block that says nothing else than these.
const KNOWN: [&str; 4] = ["root", "rewrite", "file_server", "respond"];

/// A text or a file that is sent for errors.
struct ErrorPage<'s> {
    /// Of the route that has it.
    name: String,
    /// Keys of `on_status`.
    statuses: Vec<String>,
    respond: Keys,
    directive: &'s Directive,
}

/// Leads the errors of a site to its pages, and returns the routes that have these.
pub(super) fn error_pages(site: &Directive, rows: &mut Rows, notes: &mut Notes) -> Vec<Route> {
    let mut pages = Vec::new();
    for directive in site.block.iter().filter(|it| it.name == "handle_errors") {
        match page(directive, site) {
            Some(page) => pages.push(page),
            None => notes.add(
                directive,
                "left out: only a file by `rewrite`, or a text by `respond`, takes the place of errors",
            ),
        }
    }
    let (mut all, mut of_servers) = (Keys::default(), Keys::default());
    for page in &pages {
        let statuses = page.statuses.iter();
        for status in statuses
            .filter(|it| all.get(it).is_none())
            .collect::<Vec<_>>()
        {
            all.text(status, &page.name);
            if status.starts_with('5') {
                of_servers.text(status, &page.name);
            }
        }
    }
    // What `respond` sends is no error to Caddy, whatever its status.
    let fallible = rows.0.iter_mut().filter(|it| {
        let is_other = matches!(it.response, Response::Other(_));
        !is_other || it.directive.name == "error"
    });
    for action in fallible {
        // The refusal of a service that authorizes is no error to Caddy either.
        let table = if action.passed.auth.is_some() {
            &of_servers
        } else {
            &all
        };
        if !table.is_empty() {
            action.passed.keys.set("on_status", table.inline());
        }
    }
    let routes = pages.iter().map(|page| {
        let mut keys = Keys::default();
        keys.set("respond", page.respond.inline());
        Route::named(&page.name, &keys, page.directive)
    });
    routes.collect()
}

/// The page of one block; `None` if it does something else.
fn page<'s>(directive: &'s Directive, site: &Directive) -> Option<ErrorPage<'s>> {
    let is_known = |it: &Directive| KNOWN.contains(&it.name.as_str());
    if !directive.block.iter().all(is_known) {
        return None;
    }
    let mut respond = Keys::default();
    match (directive.last("respond"), directive.last("rewrite")) {
        (Some(text), None) => {
            // A status of its own is left to the error.
            let [body] = text.arguments.as_slice() else {
                return None;
            };
            if body.contains('{') || body.parse::<u16>().is_ok() || !text.block.is_empty() {
                return None;
            }
            respond.text("body", body);
        }
        (None, Some(rewrite)) if directive.last("file_server").is_some() => {
            let root = directive.last("root").or_else(|| site.last("root"))?;
            let file = format!("{}{}", argument(root)?, argument(rewrite)?);
            if file.contains(['{', '?']) {
                return None;
            }
            respond.text("file", &file);
            respond.text("type", media_type(&file));
        }
        _ => return None,
    }
    let mut statuses = directive.arguments.clone();
    if statuses.is_empty() {
        statuses = vec!["4xx".to_owned(), "5xx".to_owned()];
    }
    let is_error = |text: &String| {
        let is_one = text.parse::<u16>().is_ok_and(|it| (400..600).contains(&it));
        is_one || matches!(text.as_str(), "4xx" | "5xx")
    };
    statuses.iter().all(is_error).then(|| ErrorPage {
        name: format!("errors ({}:{})", directive.file, directive.line),
        statuses,
        respond,
        directive,
    })
}

/// The argument of a directive for all requests.
fn argument(directive: &Directive) -> Option<&str> {
    match directive.arguments.as_slice() {
        [only] => Some(only),
        [all, only] if all == "*" => Some(only),
        _ => None,
    }
}
