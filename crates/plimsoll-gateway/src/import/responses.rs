//! What a route responds with by itself, and its layers.

use super::Notes;
use super::access;
use super::locations::Condition;
use super::nginx::Directive;
use super::rate_limit::rate_limit;
use super::redirects::redirect_target;
use super::scope::Scope;
use super::toml::{Keys, quoted};
use super::upstreams::duration;

/// Key under which the rules of `proxy_redirect` wait for those of other fields; no route has it.
pub(super) const REWRITES: &str = "rewrites of fields";

/// The files of `root` or `alias`.
pub(super) fn files(
    condition: &Condition<'_>,
    scope: &Scope<'_>,
    keys: &mut Keys,
    notes: &mut Notes,
) {
    if let Some(directive) = access::requested(scope) {
        notes.add(
            directive,
            "responds with 403: a service authorizes requests that are forwarded, not files",
        );
        access::forbid(keys);
        return;
    }
    if let Some(directive) = scope.own("alias") {
        if directive.argument(0).contains('$') {
            notes.add(
                directive,
                "responds with 404: a folder cannot depend on the request",
            );
            keys.set("respond", "{ status = 404, body = \"not found\\n\" }");
            return;
        }
        keys.set(
            "files",
            format!("{{ root = {} }}", quoted(directive.argument(0))),
        );
        return;
    }
    let Some(root) = scope.last("root") else {
        keys.set("respond", "{ status = 404, body = \"not found\\n\" }");
        return;
    };
    let folder = root.argument(0).trim_end_matches('/');
    if folder.contains('$') {
        notes.add(
            root,
            "responds with 404: a folder cannot depend on the request",
        );
        keys.set("respond", "{ status = 404, body = \"not found\\n\" }");
        return;
    }
    // The path below the prefix is what files are looked up by.
    let below = match condition {
        Condition::Prefix(prefix) => prefix.trim_end_matches('/'),
        Condition::Exact(_) | Condition::Regex(_) => "",
    };
    keys.set(
        "files",
        format!("{{ root = {} }}", quoted(&format!("{folder}{below}"))),
    );
}

/// `return CODE [TEXT]`, `return CODE URL` or `return URL`.
///
/// - `groups`: the expression of the location, whose groups the URL may contain.
pub(super) fn returned(
    directive: &Directive,
    groups: Option<&str>,
    keys: &mut Keys,
    notes: &mut Notes,
) {
    let (status, text) = match directive.arguments.as_slice() {
        [only] if only.parse::<u16>().is_err() => (302, only.as_str()),
        [status] => (status.parse().unwrap_or(200), ""),
        [status, text, ..] => (status.parse().unwrap_or(200), text.as_str()),
        [] => (200, ""),
    };
    if [301, 302, 303, 307, 308].contains(&status) {
        if let Some(target) = redirect_target(text, groups) {
            let target = quoted(&target);
            keys.set(
                "redirect",
                format!("{{ to = {target}, status = {status} }}"),
            );
        } else {
            notes.add(
                directive,
                format!("responds with 500: `{text}` has a variable without a counterpart"),
            );
            keys.set("respond", "{ status = 500 }");
        }
        return;
    }
    // 444 closes the connection; a client learns as little from a 400.
    let status = if (200..=599).contains(&status) && status != 444 {
        status
    } else {
        400
    };
    if text.contains('$') {
        notes.add(
            directive,
            "the text is sent as it stands, with its variables",
        );
    }
    keys.set(
        "respond",
        format!("{{ status = {status}, body = {} }}", quoted(text)),
    );
}

fn lifetime_of(scope: &Scope<'_>) -> Option<String> {
    lifetime(scope.last("expires")?.argument(0))
}

/// `expires` as a directive of `Cache-Control`.
fn lifetime(text: &str) -> Option<String> {
    match text {
        "off" => None,
        "epoch" => Some("no-cache".to_owned()),
        "max" => Some("max-age=315360000".to_owned()),
        text if text.starts_with('-') => Some("no-cache".to_owned()),
        text => {
            let time = duration(text)?;
            let seconds = plimsoll_model::parse_duration(&time).ok()?.as_secs();
            Some(format!("max-age={seconds}"))
        }
    }
}

/// Layers of the route.
pub(super) fn middleware(scope: &Scope<'_>, keys: &mut Keys, notes: &mut Notes) {
    let mut added = Keys::default();
    for directive in scope.all("add_header") {
        let (name, value) = (directive.argument(0), directive.argument(1));
        if value.contains('$') {
            notes.add(
                directive,
                format!("`{name}` is left out: `{value}` has a variable"),
            );
        } else {
            added.text(name, value);
        }
    }
    if let Some(value) = lifetime_of(scope) {
        // nginx sends both fields, which means the same as one.
        let value = match added.get("Cache-Control") {
            None => value,
            Some(known) => format!("{value}, {}", known.trim_matches('"')),
        };
        added.text("Cache-Control", &value);
    }
    let hidden = scope.all("proxy_hide_header");
    let hidden: Vec<_> = hidden.iter().map(|it| quoted(it.argument(0))).collect();
    // `proxy_redirect` has come before.
    let mut rules = Keys::default();
    if let Some(rewrite) = keys.get(REWRITES).map(str::to_owned) {
        keys.remove(REWRITES);
        rules.set("rewrite", rewrite);
    }
    if !hidden.is_empty() {
        rules.set("remove", format!("[{}]", hidden.join(", ")));
    }
    if !added.is_empty() {
        rules.set("set", added.inline());
    }
    // nginx adds fields to errors by `always` alone, and never by `expires`.
    let is_always = scope
        .all("add_header")
        .iter()
        .all(|it| it.argument(2) == "always");
    let stays_off_errors = !is_always || lifetime_of(scope).is_some();
    if !added.is_empty() && stays_off_errors {
        rules.set("errors", "false");
    }
    if !rules.is_empty() {
        keys.set("response_headers", rules.inline());
    }
    rate_limit(scope, keys, notes);
    let realm = scope
        .last("auth_basic")
        .filter(|it| it.argument(0) != "off");
    if let (Some(realm), Some(file)) = (realm, scope.last("auth_basic_user_file")) {
        let mut auth = Keys::default();
        auth.text("realm", realm.argument(0));
        auth.text("file", file.argument(0));
        keys.set("basic_auth", auth.inline());
        notes.add(
            file,
            "passwords have to be hashed with bcrypt: `htpasswd -B`",
        );
    }
    if scope.last("gzip").is_some_and(|it| it.argument(0) == "on") {
        keys.set("compress", "true");
    }
}
