//! `proxy_cache` and what goes with it.

use super::Notes;
use super::scope::Scope;
use super::toml::{Keys, quoted};
use super::upstreams::duration;

/// How long nginx keeps a response that nobody asks for, unless the zone says it.
const INACTIVE: &str = "10m";

/// Statuses of a `proxy_cache_valid` that names none.
const USUAL: [&str; 3] = ["200", "301", "302"];

/// Variables of a key for which the URL stands.
const URL_VARIABLES: [&str; 10] = [
    "request_uri",
    "request_method",
    "proxy_host",
    "http_host",
    "is_args",
    "scheme",
    "host",
    "uri",
    "args",
    "query_string",
];

/// Conditions of `proxy_cache_bypass` and `proxy_no_cache` that the cache here knows by itself.
const KNOWN_CONDITIONS: [&str; 3] = ["$http_upgrade", "$http_pragma", "$http_cache_control"];

/// The key `cache` of `proxy`.
///
/// Whatever decides by other means than URL and `Vary` who gets a response leads to no cache at all: one client could get what
/// another one was sent.
pub(super) fn cache(scope: &Scope<'_>, keys: &mut Keys, notes: &mut Notes) {
    let Some(zone) = scope.last("proxy_cache") else {
        return;
    };
    if zone.argument(0) == "off" {
        return;
    }
    if keys.get("auth").is_some() {
        notes.add(
            zone,
            "left out: responses would be sent from the cache without authorization",
        );
        return;
    }
    for name in ["proxy_cache_bypass", "proxy_no_cache"] {
        let others = |value: &String| !KNOWN_CONDITIONS.contains(&value.as_str());
        let directive = scope.last(name);
        if let Some(directive) = directive.filter(|it| it.arguments.iter().any(others)) {
            notes.add(
                zone,
                format!(
                    "left out: `{name} {}` excepts requests from it, which `cache` cannot",
                    directive.arguments.join(" ")
                ),
            );
            return;
        }
    }
    if let Some(key) = scope.last("proxy_cache_key") {
        let mut variables = key.argument(0).split('$').skip(1).map(variable);
        if let Some(other) = variables.find(|it| !URL_VARIABLES.contains(it)) {
            notes.add(
                zone,
                format!(
                    "left out: responses differ by `${other}`, and here only by URL and what `Vary` names"
                ),
            );
            return;
        }
    }
    let mut cache = Keys::default();
    let inactive = inactive(scope, zone.argument(0));
    if let Some(stale) = scope.last("proxy_cache_use_stale") {
        let has = |wanted: &[&str]| {
            let mut conditions = stale.arguments.iter();
            conditions.any(|it| wanted.contains(&it.as_str()))
        };
        let background = scope.last("proxy_cache_background_update");
        let is_background = background.is_some_and(|it| it.argument(0) == "on");
        if has(&["updating"]) && is_background {
            cache.text("stale_while_revalidate", &inactive);
        }
        let errors = [
            "error", "timeout", "http_500", "http_502", "http_503", "http_504",
        ];
        if has(&errors) {
            cache.text("stale_if_error", &inactive);
        }
    }
    cache.set("default_lifetime", lifetimes(scope, notes));
    keys.set("cache", cache.inline());
    notes.add(
        zone,
        "responses are kept in memory: `size` and `max_object` bound it",
    );
}

/// The name that text behind a `$` begins with, in braces or without: all of it, as `$host_group` is not `$host`.
fn variable(text: &str) -> &str {
    let text = text.strip_prefix('{').unwrap_or(text);
    let end = text.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The time after which a zone forgets a response.
fn inactive(scope: &Scope<'_>, zone: &str) -> String {
    let zone = scope.zone("proxy_cache_path", "keys_zone=", zone);
    let given = zone.and_then(|it| duration(it.parameter("inactive=")?));
    given.unwrap_or_else(|| INACTIVE.to_owned())
}

/// `proxy_cache_valid` as lifetimes by status. Without it nginx keeps only what says how long, and guesses nothing.
fn lifetimes(scope: &Scope<'_>, notes: &mut Notes) -> String {
    let mut lifetimes = Keys::default();
    let given = scope.all("proxy_cache_valid");
    if given.is_empty() {
        return quoted("0s");
    }
    for directive in given {
        let Some((time, statuses)) = directive.arguments.split_last() else {
            continue;
        };
        let Some(time) = duration(time) else {
            notes.add(directive, format!("left out: `{time}` is not a time"));
            continue;
        };
        let statuses: Vec<&str> = match statuses {
            [] => USUAL.to_vec(),
            statuses => statuses.iter().map(String::as_str).collect(),
        };
        let is_any = statuses.contains(&"any");
        let statuses = if is_any {
            vec!["2xx", "3xx", "4xx", "5xx"]
        } else {
            statuses
        };
        for status in statuses {
            // The first one that fits counts.
            if lifetimes.get(status).is_none() {
                lifetimes.text(status, &time);
            }
        }
        if is_any {
            break;
        }
    }
    lifetimes.inline()
}
