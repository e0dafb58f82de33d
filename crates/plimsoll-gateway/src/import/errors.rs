//! `error_page`: another path or location responds in place of an error.

use plimsoll_model::document::toml_string;

use super::Notes;
use super::locations::named;
use super::nginx::Directive;
use super::redirects::redirect_target;
use super::route::Route;
use super::scope::Scope;
use super::toml::Keys;

/// Key under which what `try_files` ends with waits for the successors of the route; no route has it.
pub(super) const TRIED: &str = "tried last";

/// Why `error_page` leads nowhere here.
#[derive(Debug, thiserror::Error)]
enum SuccessorProblem {
    #[error("it leads nowhere")]
    NoTarget,
    #[error("`{0}` is no status")]
    Status(String),
    #[error("there is no location `{0}`")]
    NoLocation(String),
    #[error("`{0}` is no path that is known before a request comes")]
    Path(String),
}

/// The key `on_status` of a route: what `error_page` leads to, and what `try_files` does where there is no file.
pub(super) fn successors(
    server: &Directive,
    scope: &Scope<'_>,
    route: &mut Keys,
    notes: &mut Notes,
) {
    let mut successors = Keys::default();
    for directive in scope.all("error_page") {
        match successor(server, directive) {
            Ok((statuses, target)) => {
                for status in statuses {
                    successors.set(status, target.clone());
                }
            }
            Err(reason) => notes.add(directive, format!("left out: {reason}")),
        }
    }
    if let Some(target) = route.get(TRIED).map(str::to_owned) {
        route.remove(TRIED);
        // Files are for GET and HEAD alone, and no file has some names.
        let statuses: &[&str] = match target.get(1..2) {
            Some("/") => &["404"],
            Some("=") => &["400", "404"],
            _ => &["400", "404", "405"],
        };
        let to = refusal_of(&target, &successors);
        let to = to.unwrap_or_else(|| format!("{{ to = {target}, status = \"own\" }}"));
        for status in statuses {
            successors.set(status, to.clone());
        }
    }
    // A location that is asked in place of a file that is not there gets every method.
    let named = successors
        .get("404")
        .filter(|it| it.starts_with("{ to = \"@") || it.starts_with("\"@"));
    if let Some(target) = named.map(str::to_owned)
        && route.get("files").is_some()
        && successors.get("405").is_none()
    {
        successors.set("405", target);
    }
    if !successors.is_empty() {
        route.set("on_status", successors.inline());
    }
}

/// What `error_page` leads the status to that `try_files` ends with, if it does.
fn refusal_of(target: &str, successors: &Keys) -> Option<String> {
    let status = target.strip_prefix("\"=")?.split(' ').next()?;
    let page = successors.get(status)?;
    if page.starts_with('{') {
        return Some(page.to_owned());
    }
    Some(format!("{{ to = {page}, status = {status} }}"))
}

/// The error that `try_files` ends with, such as `=503`, if files have another one for what is not there.
pub(super) fn tried_error(last: &str) -> Option<u16> {
    let status = last.strip_prefix('=')?.parse().ok()?;
    ((400..600).contains(&status) && status != 404).then_some(status)
}

/// Whether `error_page` leads anywhere from here.
pub(super) fn has_successors(server: &Directive, scope: &Scope<'_>) -> bool {
    let pages = scope.all("error_page");
    pages.into_iter().any(|it| successor(server, it).is_ok())
}

/// The statuses of an `error_page`, and the value of each in `on_status`.
fn successor<'a>(
    server: &Directive,
    directive: &'a Directive,
) -> Result<(Vec<&'a str>, String), SuccessorProblem> {
    let Some((target, codes)) = directive.arguments.split_last() else {
        return Err(SuccessorProblem::NoTarget);
    };
    let (wanted, statuses): (Vec<&str>, Vec<&str>) = codes
        .iter()
        .map(String::as_str)
        .partition(|it| it.starts_with('='));
    let is_status = |it: &&str| it.parse().is_ok_and(|it: u16| (300..600).contains(&it));
    if let Some(other) = statuses.iter().find(|it| !is_status(it)) {
        return Err(SuccessorProblem::Status((*other).to_owned()));
    }
    let to = if target.starts_with('@') {
        let named = named(server, target);
        let named = named.ok_or_else(|| SuccessorProblem::NoLocation(target.clone()))?;
        name_of(named)
    } else if is_url(target) {
        name_of(directive)
    } else if target.starts_with('/') && !target.contains(['$', '#', ' ']) {
        target.clone()
    } else {
        return Err(SuccessorProblem::Path(target.clone()));
    };
    let to = toml_string(&to);
    let status = match wanted.as_slice() {
        [] => None,
        ["="] => Some("\"own\""),
        [status, ..] => Some(status.trim_start_matches('=')),
    };
    let target = match status {
        None => to,
        // The route redirects by itself.
        Some(_) if is_url(target) => to,
        Some(status) => format!("{{ to = {to}, status = {status} }}"),
    };
    Ok((statuses, target))
}

fn is_url(target: &str) -> bool {
    target.starts_with("http://")
        || target.starts_with("https://")
        || target.starts_with("$scheme://")
}

/// The name of the route that a named location, or an `error_page` with a URL, becomes.
pub(super) fn name_of(directive: &Directive) -> String {
    let target = directive.arguments.last().map_or("", String::as_str);
    format!("{target} ({}:{})", directive.file, directive.line)
}

/// The routes that `error_page` of these directives, and of the blocks within them, redirect by, and those of the errors that
/// `try_files` of files ends with.
pub(super) fn redirects(block: &[Directive], notes: &mut Notes) -> Vec<Route> {
    let mut routes = Vec::new();
    let forwards = block.iter().any(|it| it.name.ends_with("_pass"));
    for directive in block {
        if directive.name == "location" || directive.name == "if" {
            routes.extend(redirects(&directive.block, notes));
        }
        let target = directive.arguments.last().map_or("", String::as_str);
        if let Some(status) = tried_error(target)
            && directive.name == "try_files"
            && !forwards
        {
            let mut keys = Keys::default();
            keys.set("respond", format!("{{ status = {status} }}"));
            routes.push(Route::named(&name_of(directive), &keys, directive));
            continue;
        }
        if directive.name != "error_page" || !is_url(target) {
            continue;
        }
        let codes = directive.arguments.iter();
        let mut codes = codes.filter_map(|it| it.strip_prefix('=')?.parse().ok());
        let status = codes
            .next_back()
            .filter(|it| (300..=308).contains(it))
            .unwrap_or(302);
        let mut keys = Keys::default();
        if let Some(to) = redirect_target(target, None) {
            let to = toml_string(&to);
            keys.set("redirect", format!("{{ to = {to}, status = {status} }}"));
        } else {
            let why = format!("responds with 500: `{target}` has a variable without a counterpart");
            notes.add(directive, why);
            keys.set("respond", "{ status = 500 }");
        }
        routes.push(Route::named(&name_of(directive), &keys, directive));
    }
    routes
}
