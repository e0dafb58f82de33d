//! Access rules: `allow`, `deny`, `auth_request` and `internal`.
//!
//! A rule that cannot be translated denies access.

use super::Notes;
use super::locations::Scope;
use super::nginx::Directive;
use super::toml::{Keys, quoted};
use super::upstreams::Upstreams;

/// Outcome of the address rules of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Addresses {
    Any,
    /// `deny all`.
    Nobody,
    /// Some, which a route cannot distinguish.
    Some,
}

/// Closes a location that no client, or not every one, may use; false if it is open.
pub(super) fn close(scope: &Scope<'_>, keys: &mut Keys, notes: &mut Notes) -> bool {
    if scope.own("internal").is_some() {
        keys.set("respond", "{ status = 404, body = \"not found\\n\" }");
        return true;
    }
    let is_closed = match addresses(scope) {
        Addresses::Any => {
            for rule in scope.all("deny") {
                notes.add(rule, "left out: a route has no condition on addresses");
            }
            false
        }
        Addresses::Nobody => true,
        Addresses::Some => {
            let Some(rule) = scope.all("deny").last().copied() else {
                return false;
            };
            let any = scope
                .last("satisfy")
                .is_some_and(|it| it.argument(0) == "any");
            let has_password = scope
                .last("auth_basic")
                .is_some_and(|it| it.argument(0) != "off");
            if any && has_password {
                notes.add(
                    rule,
                    "every client needs the password: a route has no condition on addresses",
                );
                false
            } else {
                notes.add(
                    rule,
                    "responds with 403 to every client: a route has no condition on addresses",
                );
                true
            }
        }
    };
    if is_closed {
        forbid(keys);
    }
    is_closed
}

/// Responds with a 403 to every request.
pub(super) fn forbid(keys: &mut Keys) {
    keys.set("respond", "{ status = 403, body = \"forbidden\\n\" }");
}

/// nginx takes the first rule that matches, and allows those that no rule matches.
fn addresses(scope: &Scope<'_>) -> Addresses {
    let mut is_limited = false;
    for rule in scope.all_of(&["allow", "deny"]) {
        match (rule.name.as_str(), rule.argument(0)) {
            ("allow", "all") => break,
            ("deny", "all") if is_limited => return Addresses::Some,
            ("deny", "all") => return Addresses::Nobody,
            ("allow", _) => is_limited = true,
            _ => {}
        }
    }
    Addresses::Any
}

/// The key `auth` of a location with `auth_request`; false if it cannot be translated.
pub(super) fn authorized(
    scope: &Scope<'_>,
    keys: &mut Keys,
    upstreams: &Upstreams,
    notes: &mut Notes,
) -> bool {
    let Some(directive) = requested(scope) else {
        return true;
    };
    let path = directive.argument(0);
    let pass = location(scope, path).and_then(|it| it.last("proxy_pass"));
    let target = pass.and_then(|it| target(it.argument(0), path, upstreams));
    let Some(mut auth) = target else {
        notes.add(
            directive,
            format!("responds with 403: `{path}` does not forward to a server that is known before a request comes"),
        );
        return false;
    };
    let copied: Vec<_> = copied(scope)
        .iter()
        .map(|(_, field)| quoted(field))
        .collect();
    if !copied.is_empty() {
        auth.set("copy", format!("[{}]", copied.join(", ")));
    }
    notes.add(
        directive,
        "the service gets the fields of the request, `x-forwarded-method` and `x-forwarded-uri`; fields that its location sets are left out",
    );
    keys.set("auth", auth.inline());
    true
}

/// `auth_request`, unless it is turned off.
pub(super) fn requested<'a>(scope: &Scope<'a>) -> Option<&'a Directive> {
    scope
        .last("auth_request")
        .filter(|it| it.argument(0) != "off")
}

/// Variables of `auth_request_set` with the fields of the service's response that they stand for.
pub(super) fn copied(scope: &Scope<'_>) -> Vec<(String, String)> {
    let set = scope.all("auth_request_set");
    let copied = set.iter().filter_map(|it| {
        let field = it.argument(1).strip_prefix("$upstream_http_")?;
        Some((it.argument(0).to_owned(), field.replace('_', "-")))
    });
    copied.collect()
}

/// The location of a path that is named as it is.
fn location<'a>(scope: &Scope<'a>, path: &str) -> Option<&'a Directive> {
    let mut locations = scope.server().iter().filter(|it| it.name == "location");
    locations.find(|it| it.arguments.last().is_some_and(|it| it == path))
}

/// Target of subrequests for `path`.
fn target(url: &str, path: &str, upstreams: &Upstreams) -> Option<Keys> {
    if url.contains('$') {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    let (authority, path) = match rest.find('/') {
        Some(at) => (rest.get(..at)?, rest.get(at..)?),
        None => (rest, path),
    };
    let mut keys = Keys::default();
    if upstreams.has(authority) {
        keys.text("to", authority);
        keys.text("path", path);
    } else {
        keys.text("to", &format!("{scheme}://{authority}{path}"));
    }
    Some(keys)
}
