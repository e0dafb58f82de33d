//! `proxy_cache` and what goes with it.

use plimsoll_model::document::toml_string;
use plimsoll_server::Moment;

use super::Notes;
use super::access;
use super::nginx::Directive;
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::{duration, size};
use super::variables::with_places;

/// How long nginx keeps a response that nobody asks for, unless the zone says it.
const INACTIVE: &str = "10m";

/// Content that is kept of a response: nginx has no limit, and here it is in memory while it is stored.
const MOST_CONTENT: &str = "16MiB";

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
    if let Some(asked) = access::requested(scope) {
        notes.add(
            asked,
            "responses to authorized clients are cached only where they are `public` or have `s-maxage`",
        );
    }
    let Some(skipped) = skipped(scope, zone, notes) else {
        return;
    };
    let Some(own_key) = own_key(scope, zone, notes) else {
        return;
    };
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
    if !own_key.is_empty() {
        cache.text("key", &own_key);
    }
    if !skipped.is_empty() {
        cache.set("skip", format!("[{}]", skipped.join(", ")));
    }
    let path = scope.zone("proxy_cache_path", "keys_zone=", zone.argument(0));
    match path {
        Some(path) => {
            cache.text("max_object", MOST_CONTENT);
            cache.set("disk", disk(path).inline());
        }
        None => notes.add(
            zone,
            "responses are kept in memory: there is no `proxy_cache_path` for the zone",
        ),
    }
    keys.set("cache", cache.inline());
}

/// The folder of a zone. nginx has one for all that use the zone; here each route has one of its own below it.
fn disk(path: &Directive) -> Keys {
    let mut disk = Keys::default();
    disk.text("dir", path.argument(0));
    if let Some(limit) = path.parameter("max_size=").and_then(size) {
        disk.text("size", &limit);
    }
    disk
}

/// `proxy_cache_bypass` and `proxy_no_cache` as texts that keep requests from the cache; `None` if one has no counterpart.
fn skipped(scope: &Scope<'_>, zone: &Directive, notes: &mut Notes) -> Option<Vec<String>> {
    let mut skipped = Vec::new();
    for directive in ["proxy_cache_bypass", "proxy_no_cache"]
        .iter()
        .filter_map(|name| scope.last(name))
    {
        for value in &directive.arguments {
            if KNOWN_CONDITIONS.contains(&value.as_str()) {
                continue;
            }
            let filled = with_places(value, scope, Moment::Request, None);
            let Some(filled) = filled.filter(|it| it.contains('{')) else {
                notes.add(
                    zone,
                    format!(
                        "left out: `{} {value}` excepts requests from it, which `cache` cannot",
                        directive.name
                    ),
                );
                return None;
            };
            let filled = toml_string(&filled);
            if !skipped.contains(&filled) {
                skipped.push(filled);
            }
        }
    }
    Some(skipped)
}

/// What `proxy_cache_key` has beside the URL; `None` if it has no counterpart.
fn own_key(scope: &Scope<'_>, zone: &Directive, notes: &mut Notes) -> Option<String> {
    let Some(key) = scope.last("proxy_cache_key") else {
        return Some(String::new());
    };
    let variables = key.argument(0).split('$').skip(1).map(variable);
    let others = variables.filter(|it| !URL_VARIABLES.contains(it));
    let mut own = String::new();
    for other in others {
        let filled = with_places(&format!("${other}"), scope, Moment::Request, None);
        let Some(filled) = filled else {
            notes.add(
                zone,
                format!("left out: responses differ by `${other}`, which has no counterpart"),
            );
            return None;
        };
        if !own.is_empty() {
            own.push(' ');
        }
        own.push_str(&filled);
    }
    Some(own)
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
        return toml_string("0s");
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
