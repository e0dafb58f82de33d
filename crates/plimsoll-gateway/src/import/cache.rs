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
const URL_VARIABLES: [&str; 11] = [
    "request_uri",
    "document_uri",
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

/// A condition of `proxy_cache_bypass` and `proxy_no_cache` that the cache here knows by itself.
const UPGRADE: &str = "$http_upgrade";

/// Conditions of `proxy_cache_use_stale` for which nothing old is sent here.
const NOT_STALE: [&str; 4] = ["invalid_header", "http_403", "http_404", "http_429"];

/// Variables of a key that have the path, and those that have the query.
const OF_PATH: [&str; 4] = ["request_uri", "uri", "document_uri", "request"];
const OF_QUERY: [&str; 4] = ["request_uri", "args", "query_string", "request"];

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
    let Some(bypassing) = exceptions("proxy_cache_bypass", scope, zone, notes) else {
        return;
    };
    let Some(unstored) = exceptions("proxy_no_cache", scope, zone, notes) else {
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
        } else if has(&["updating"]) {
            notes.add(
                stale,
                "`updating` is left out: requests wait for the one that fetches; nginx would send them what is old: `proxy_cache_background_update on` goes with `stale_while_revalidate`",
            );
        }
        for other in stale
            .arguments
            .iter()
            .filter(|it| NOT_STALE.contains(&it.as_str()))
        {
            notes.add(
                stale,
                format!("`{other}` is left out: such a response is sent; nginx would send what is old in its place"),
            );
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
    let is_both = |it: &&String| bypassing.contains(it) && unstored.contains(it);
    let only = |texts: &[String]| -> Vec<String> {
        texts.iter().filter(|it| !is_both(it)).cloned().collect()
    };
    for (key, texts) in [
        ("skip", bypassing.iter().filter(is_both).cloned().collect()),
        ("bypass", only(&bypassing)),
        ("no_store", only(&unstored)),
    ] {
        if !texts.is_empty() {
            cache.set(key, format!("[{}]", texts.join(", ")));
        }
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

/// What a directive excepts from the cache, as texts of TOML; `None` if one has no counterpart.
fn exceptions(
    name: &str,
    scope: &Scope<'_>,
    zone: &Directive,
    notes: &mut Notes,
) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    let values = scope.last(name).map(|it| it.arguments.as_slice());
    let values = values.unwrap_or_default();
    for value in values.iter().filter(|it| *it != UPGRADE) {
        let filled = with_places(value, scope, Moment::Request, None);
        let Some(filled) = filled.filter(|it| it.contains('{')) else {
            notes.add(
                zone,
                format!(
                    "left out: `{name} {value}` excepts requests from it, which `cache` cannot"
                ),
            );
            return None;
        };
        let filled = toml_string(&filled);
        if !texts.contains(&filled) {
            texts.push(filled);
        }
    }
    Some(texts)
}

/// What `proxy_cache_key` has beside the URL; `None` if it has no counterpart.
fn own_key(scope: &Scope<'_>, zone: &Directive, notes: &mut Notes) -> Option<String> {
    let Some(key) = scope.last("proxy_cache_key") else {
        return Some(String::new());
    };
    let variables = key.argument(0).split('$').skip(1).map(variable);
    let has = |wanted: &[&str]| variables.clone().any(|it| wanted.contains(&it));
    let shared = match (has(&OF_PATH), has(&OF_QUERY)) {
        (true, true) => None,
        (true, false) => Some("for all queries of a path"),
        (false, true) => Some("for all paths with a query"),
        (false, false) => Some("for all URLs"),
    };
    if let Some(shared) = shared {
        notes.add(
            key,
            format!("each URL has a response of its own; nginx would send the same one {shared}"),
        );
    }
    let others = variables.clone().filter(|it| !URL_VARIABLES.contains(it));
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
