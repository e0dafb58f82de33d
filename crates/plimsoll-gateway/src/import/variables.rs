//! Variables of nginx as places of `plimsoll up`.

use plimsoll_server::{Maps, Moment, Template};
use regex::Regex;

use super::maps;
use super::redirects::variable;
use super::scope::Scope;

/// A text that names a variable which nothing of `plimsoll up` stands for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has a variable without a counterpart")]
pub(super) struct NoCounterpart(pub(super) String);

/// Variables with their places, and when these are known.
const PLACES: &[(&str, &str, Moment)] = &[
    ("remote_addr", "{client}", Moment::Connection),
    ("binary_remote_addr", "{client}", Moment::Request),
    ("proxy_protocol_addr", "{client}", Moment::Connection),
    ("remote_port", "{client.port}", Moment::Connection),
    ("host", "{host}", Moment::Request),
    ("http_host", "{authority}", Moment::Request),
    ("scheme", "{scheme}", Moment::Request),
    ("server_addr", "{server.address}", Moment::Connection),
    ("server_port", "{port}", Moment::Connection),
    ("request_method", "{method}", Moment::Request),
    ("request_uri", "{target}", Moment::Request),
    ("uri", "{path}", Moment::Request),
    ("document_uri", "{path}", Moment::Request),
    ("args", "{query.string}", Moment::Request),
    ("query_string", "{query.string}", Moment::Request),
    ("request", "{request.line}", Moment::Request),
    ("server_protocol", "{protocol}", Moment::Request),
    ("content_length", "{header:content-length}", Moment::Request),
    ("content_type", "{header:content-type}", Moment::Request),
    ("request_body", "{content}", Moment::Request),
    ("connection", "{connection}", Moment::Connection),
    ("remote_user", "{user}", Moment::Request),
    ("request_id", "{request.id}", Moment::Request),
    ("time_iso8601", "{time}", Moment::Connection),
    ("time_local", "{time.clf}", Moment::Connection),
    ("msec", "{time.unix}", Moment::Connection),
    ("ssl_server_name", "{tls.sni}", Moment::Connection),
    ("ssl_protocol", "{tls.version}", Moment::Connection),
    (
        "ssl_client_s_dn",
        "{tls.client.subject}",
        Moment::Connection,
    ),
    ("ssl_client_i_dn", "{tls.client.issuer}", Moment::Connection),
    (
        "ssl_client_serial",
        "{tls.client.serial}",
        Moment::Connection,
    ),
    (
        "ssl_client_fingerprint",
        "{tls.client.fingerprint}",
        Moment::Connection,
    ),
    (
        "ssl_client_escaped_cert",
        "{tls.client.pem}",
        Moment::Connection,
    ),
    (
        "ssl_client_verify",
        "{tls.client.verified}",
        Moment::Connection,
    ),
    ("upstream_addr", "{upstream.address}", Moment::Response),
    (
        "upstream_response_time",
        "{upstream.time}",
        Moment::Response,
    ),
    ("upstream_header_time", "{upstream.time}", Moment::Response),
    (
        "upstream_connect_time",
        "{upstream.connect}",
        Moment::Response,
    ),
    ("upstream_cache_status", "{cache.status}", Moment::Response),
    ("status", "{status}", Moment::Response),
    ("body_bytes_sent", "{bytes}", Moment::End),
    ("bytes_sent", "{bytes}", Moment::End),
    ("request_time", "{duration}", Moment::End),
];

/// Variables whose places have a slightly different value, and what nginx would write.
const NEARLY: [(&str, &str); 3] = [
    (
        "bytes_sent",
        "is the content alone; nginx would count the head of the response too",
    ),
    (
        "upstream_response_time",
        "is the time to the head of the response; nginx would count its content too",
    ),
    (
        "upstream_addr",
        "is the server that was tried last; nginx would name all that were tried",
    ),
];

/// Notes about the variables of a text whose places differ slightly.
pub(super) fn differences(text: &str) -> impl Iterator<Item = String> {
    let mut names: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('$') {
        let Some((name, behind)) = variable(after) else {
            rest = after;
            continue;
        };
        names.push(name);
        rest = behind;
    }
    let nearly = NEARLY.iter().filter(move |(name, _)| names.contains(name));
    nearly.map(|(name, what)| format!("`${name}` {what}"))
}

/// Variables whose names have a name of the user's behind them, and the kind of place that they are.
const NAMED: [(&str, &str, Moment); 6] = [
    ("http_", "header", Moment::Request),
    ("cookie_", "cookie", Moment::Request),
    ("arg_", "query", Moment::Request),
    ("sent_http_", "response", Moment::Response),
    ("upstream_http_", "response", Moment::Response),
    ("upstream_cookie_", "response.cookie", Moment::Response),
];

/// A text with places for its variables; `None` if one of them has no counterpart by then, or if braces of the text would
/// be read as places.
///
/// - `moment`: when it is filled.
/// - `groups`: the expression whose groups may stand in it.
pub(super) fn with_places(
    text: &str,
    scope: &Scope<'_>,
    moment: Moment,
    groups: Option<&Regex>,
) -> Option<String> {
    with_places_below(text, scope, moment, groups, 0)
}

/// - `depth`: maps around it, whose values it is one of.
pub(super) fn with_places_below(
    text: &str,
    scope: &Scope<'_>,
    moment: Moment,
    groups: Option<&Regex>,
    depth: usize,
) -> Option<String> {
    let mut filled = String::new();
    // The mark and the query together are one place.
    let text = text.replace("$is_args$args", "$is_args");
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(literal(before)?);
        let (name, behind) = variable(after)?;
        rest = behind;
        if let Some(group) = groups.and_then(|it| group(it, name)) {
            filled.push_str(&group);
            continue;
        }
        filled.push_str(&place(name, scope, moment, depth)?);
    }
    filled.push_str(literal(rest)?);
    Some(filled)
}

/// A part without variables, unless its braces would be read as places.
fn literal(text: &str) -> Option<&str> {
    let parsed = Template::parse(text, &Maps::default(), Moment::End);
    matches!(parsed, Ok(None)).then_some(text)
}

/// A group of an expression in braces; nginx leaves out one that is not there.
fn group(groups: &Regex, name: &str) -> Option<String> {
    if let Ok(number) = name.parse::<usize>() {
        let is_there = (1..groups.captures_len()).contains(&number);
        return Some(if is_there {
            format!("{{{number}}}")
        } else {
            String::new()
        });
    }
    let mut names = groups.capture_names().flatten();
    names.any(|it| it == name).then(|| format!("{{{name}}}"))
}

/// The place of a variable of `stream`; its maps are those of listeners alone.
fn place_of_connection(name: &str, scope: &Scope<'_>) -> Option<String> {
    if maps::defining(&format!("${name}"), scope).is_some() {
        return None;
    }
    let known = PLACES.iter().find(|(known, ..)| *known == name);
    match known {
        // Text goes over TCP alone.
        None if name == "protocol" => Some("TCP".to_owned()),
        None => None,
        Some((_, place, first)) => (*first == Moment::Connection).then(|| (*place).to_owned()),
    }
}

/// The place of a variable, or its value if that is the same for all requests of the scope.
fn place(name: &str, scope: &Scope<'_>, moment: Moment, depth: usize) -> Option<String> {
    if moment == Moment::Connection {
        return place_of_connection(name, scope);
    }
    let variable = format!("${name}");
    if let Some(map) = maps::defining(&variable, scope) {
        // As it is written: around all servers.
        maps::translated(map, &scope.outermost(), moment, depth + 1).ok()?;
        return Some(format!("{{map:{name}}}"));
    }
    match name {
        "is_args" => return Some("{query}".to_owned()),
        "server_name" => {
            // A map is around all servers.
            if scope.server().is_empty() {
                return None;
            }
            let names = scope.server().iter().find(|it| it.name == "server_name");
            let first = names.map_or("", |it| it.argument(0));
            return (!first.contains(['~', '*', '{'])).then(|| first.to_owned());
        }
        "proxy_host" | "proxy_port" => {
            let (scheme, rest) = scope.last("proxy_pass")?.argument(0).split_once("://")?;
            let authority = rest.split('/').next().filter(|it| !it.contains('$'))?;
            if name == "proxy_host" {
                return Some(authority.to_owned());
            }
            let port = authority.rsplit_once(':').map(|(_, port)| port.to_owned());
            let usual = if scheme == "https" { "443" } else { "80" };
            return Some(port.unwrap_or_else(|| usual.to_owned()));
        }
        "document_root" => {
            let root = scope.last("root")?.argument(0);
            return (!root.contains(['$', '{'])).then(|| root.to_owned());
        }
        _ => {}
    }
    let known = PLACES.iter().find(|(known, ..)| *known == name);
    if let Some((_, place, first)) = known {
        return (*first <= moment).then(|| (*place).to_owned());
    }
    let (prefix, kind, first) = NAMED
        .iter()
        .filter(|(prefix, ..)| name.starts_with(prefix))
        .max_by_key(|(prefix, ..)| prefix.len())?;
    let rest = name.strip_prefix(prefix).filter(|it| !it.is_empty())?;
    let rest = match *kind {
        "header" | "response" => rest.replace('_', "-"),
        _ => rest.to_owned(),
    };
    (*first <= moment).then(|| format!("{{{kind}:{rest}}}"))
}
