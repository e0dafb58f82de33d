//! `proxy_pass` and what goes with it.

mod connection;

mod paths;

use http::{HeaderName, HeaderValue};
use plimsoll_model::document::toml_string;
use plimsoll_server::Moment;
use plimsoll_wire::http::FieldClass;

use self::connection::{buffered_response, connection, timeouts};
use self::paths::{replace_path, rewritten};
use super::Notes;
use super::access;
use super::cache::cache;
use super::chosen::chosen;
use super::cookies::proxy_cookies;
use super::errors::has_successors;
use super::nginx::Directive;
use super::patterns::exact_expression;
use super::real_ip::{is_of_place, networks};
use super::redirects::{is_redirecting, proxy_redirects};
use super::route::Condition;
use super::scope::Scope;
use super::shares::mirrored;
use super::toml::Keys;
use super::upstreams::{Upstreams, is_server, size};
use crate::forward::Upgrades;

pub(super) use self::connection::tls_to_servers;
pub(super) use self::paths::prefix_expression;

/// The action `proxy` of a route, and what belongs to its upstream.
pub(super) fn proxy(
    directive: &Directive,
    server: &Directive,
    condition: &Condition<'_>,
    scope: &Scope<'_>,
    route: &mut Keys,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) {
    let url = directive.argument(0);
    // The path as it was requested is what is forwarded anyway.
    let url = ["$request_uri", "$uri$is_args$args"]
        .iter()
        .find_map(|uri| url.strip_suffix(uri))
        .unwrap_or(url);
    let (scheme, rest) = match url.split_once("://") {
        Some(("https" | "grpcs", rest)) => (Some("https"), rest),
        Some((_, rest)) => (Some("http"), rest),
        None => (None, url),
    };
    let (authority, uri) = authority_and_uri(rest);
    let is_socket = authority.starts_with("unix:");
    let chosen = chosen(authority, scheme, scope, upstreams);
    let scheme = scheme.unwrap_or("http");
    let first = chosen.as_ref().and_then(|it| it.servers.first());
    let authority = first.map_or(authority, String::as_str);
    let is_known = chosen.is_some() || !url.contains('$');
    let is_server = upstreams.has(authority) || is_server(authority);
    if !is_known || authority.is_empty() || !is_server || (is_socket && scheme == "https") {
        notes.add(
            directive,
            format!(
                "responds with 502: `{url}` is not a server that is known before a request comes"
            ),
        );
        route.set("respond", "{ status = 502, body = \"not translated\\n\" }");
        return;
    }
    let withheld = scope.last("proxy_pass_request_headers");
    if let Some(withheld) = withheld.filter(|it| it.argument(0) == "off") {
        notes.add(
            withheld,
            "responds with 501: what the server is not to see cannot be withheld from it; `headers` with `false` removes fields by their names",
        );
        route.set("respond", "{ status = 501, body = \"not translated\\n\" }");
        return;
    }
    let mut connection = connection(scope, notes);
    let timeouts = timeouts(scope, notes);
    let version = scope.last("proxy_http_version");
    match version.map_or("", |it| it.argument(0)) {
        _ if directive.name == "grpc_pass" => connection.text("protocol", "http2"),
        "2" | "2.0" => connection.text("protocol", "http2"),
        "1.0" => {
            if let Some(version) = version {
                notes.add(version, "servers get HTTP/1.1");
            }
        }
        // By ALPN a server with TLS could choose HTTP/2.
        _ if scheme == "https" => connection.text("protocol", "http1"),
        _ => {}
    }
    let mut keys = Keys::default();
    if let Some(chosen) = &chosen {
        keys.text("to", &chosen.to);
        for name in &chosen.servers {
            upstreams.used(name, scheme, &connection, directive, notes);
        }
    } else if upstreams.has(authority) {
        keys.text("to", authority);
        keys.inherit(&timeouts);
        upstreams.used(authority, scheme, &connection, directive, notes);
    } else if is_socket {
        keys.text("to", authority);
    } else {
        keys.text("to", &format!("{scheme}://{authority}"));
    }
    if let Some(mirror) = scope.last("mirror").filter(|it| it.argument(0) != "off") {
        mirrored(mirror, scope, upstreams, &mut keys, notes);
    }
    // The host that nginx itself names for a socket.
    let authority = if is_socket { "localhost" } else { authority };
    if let Some(uri) = uri {
        replace_path(directive, condition, uri, &mut keys, notes);
    }
    for rewrite in scope.all("rewrite") {
        // Those that redirect are routes of their own.
        if !is_redirecting(std::slice::from_ref(rewrite)) {
            rewritten(rewrite, &mut keys, notes);
        }
    }
    // Of several servers each gets its own.
    let are_urls = chosen.as_ref().is_some_and(|it| it.are_urls);
    let host = if are_urls { "server" } else { authority };
    headers(scope, host, &mut keys, route, notes);
    // A server knows its own address, and the name of an upstream only from the field `host`. nginx does nothing by itself where
    // the URL has variables.
    let is_named =
        !upstreams.has(authority) || keys.get("host") == Some(toml_string(authority).as_str());
    let is_known = is_named && !directive.argument(0).contains('$');
    proxy_redirects(url, is_known, condition, scope, route, notes);
    proxy_cookies(scope, route, notes);
    if scope.is("proxy_intercept_errors", "on") && has_successors(server, scope) {
        keys.set("intercept_errors", "true");
    }
    if has_internal(server, &server.block) {
        keys.set("accel_redirect", "true");
    }
    let limit = scope.last("client_max_body_size");
    let limit = limit.map_or(Some("1MiB".to_owned()), |it| size(it.argument(0)));
    let is_for_subrequests = is_subrequested(server, &|named| match condition {
        Condition::Exact(path) | Condition::Prefix(path) => *path == named,
        Condition::Regex(regex) => {
            *regex == exact_expression(named) || *regex == prefix_expression(named)
        }
    });
    let withheld = scope.last("proxy_pass_request_body");
    let withheld = withheld.filter(|it| it.argument(0) == "off");
    // Subrequests have no content.
    if let Some(withheld) = withheld.filter(|_| !is_for_subrequests) {
        notes.add(withheld, NO_CONTENT);
    }
    let limit = withheld.map(|_| "0B".to_owned()).or(limit);
    if let Some(limit) = limit {
        keys.text("max_request", &limit);
    }
    cache(scope, &mut keys, notes);
    // What nginx does by default is not what somebody asked for.
    if let Some(most) = buffered_response(scope) {
        keys.text("buffer_response", &format!("{most}B"));
    }
    let buffering = scope.last("proxy_request_buffering");
    if let Some(directive) = buffering.filter(|it| it.argument(0) == "on") {
        notes.add(
            directive,
            "left out: content is forwarded as it comes; `buffer_request = \"1MiB\"` reads up to that much first",
        );
    }
    if chosen.is_none() && !upstreams.has(authority) {
        keys.inherit(&connection);
        keys.inherit(&timeouts);
    }
    route.set("proxy", keys.inline());
}

/// Why requests with content do not reach what is not to see it.
pub(super) const NO_CONTENT: &str = "requests with content get a 413: it cannot be withheld from the server, and others are forwarded";

/// Whether there is a location that servers alone lead to, by `X-Accel-Redirect`.
///
/// - `within`: the server, or a location of it.
fn has_internal(server: &Directive, within: &[Directive]) -> bool {
    let mut locations = within.iter().filter(|it| it.name == "location");
    locations.any(|it| {
        let is_internal = it.last("internal").is_some() && !is_for_subrequests(server, it);
        is_internal || has_internal(server, &it.block)
    })
}

/// Whether a location is that of `auth_request` or `mirror`, whose requests routes send by themselves.
pub(super) fn is_for_subrequests(server: &Directive, location: &Directive) -> bool {
    let path = location.arguments.last().map_or("", String::as_str);
    is_subrequested(server, &|named| named == path)
}

/// Whether `auth_request` or `mirror` of the server name a location.
///
/// - `is_its`: whether a path is that of the location.
fn is_subrequested(server: &Directive, is_its: &dyn Fn(&str) -> bool) -> bool {
    fn names(block: &[Directive], is_its: &dyn Fn(&str) -> bool) -> bool {
        block.iter().any(|it| {
            let names_it = ["auth_request", "mirror"].contains(&it.name.as_str());
            (names_it && is_its(it.argument(0))) || names(&it.block, is_its)
        })
    }
    names(&server.block, is_its)
}

/// The server of a URL, or the socket (`unix:/run/app.sock:/uri`), and what the location is replaced by.
fn authority_and_uri(rest: &str) -> (&str, Option<&str>) {
    let end = match rest.strip_prefix("unix:") {
        Some(path) => path.find(':').map(|at| at + "unix:".len()),
        None => rest.find('/'),
    };
    match end.and_then(|at| rest.split_at_checked(at)) {
        Some((authority, uri)) => (authority, Some(uri.strip_prefix(':').unwrap_or(uri))),
        None => (rest, None),
    }
}

/// `proxy_set_header` as the host, the forwarded fields and others.
fn headers(
    scope: &Scope<'_>,
    authority: &str,
    keys: &mut Keys,
    route: &mut Keys,
    notes: &mut Notes,
) {
    let copied = access::copied(scope);
    let is_copied = |name: &str, value: &str| {
        let mut copied = copied.iter();
        copied.any(|(variable, field)| variable == value && field.eq_ignore_ascii_case(name))
    };
    let mut host = authority.to_owned();
    let mut forwarded = "none";
    let mut set = Keys::default();
    let mut directives = scope.all("proxy_set_header");
    directives.extend(scope.all("grpc_set_header"));
    for directive in directives {
        let (name, value) = (directive.argument(0), directive.argument(1));
        match (name.to_ascii_lowercase().as_str(), value) {
            ("host", "$http_host" | "$host:$server_port") => "client".clone_into(&mut host),
            ("host", "$host") => "{host}".clone_into(&mut host),
            ("host", "$proxy_host") => authority.clone_into(&mut host),
            ("host", value)
                if !value.contains(['$', ' ']) && is_field("x", value) && !value.is_empty() =>
            {
                value.clone_into(&mut host);
            }
            ("x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host", _) => {
                forwarded = "x";
                if is_other_than_usual(name, value) {
                    set_field(directive, scope, &mut set, notes);
                } else if name.eq_ignore_ascii_case("x-forwarded-host") && value != "$http_host" {
                    notes.add(
                        directive,
                        format!("servers get the host of the request; nginx would send `{value}`"),
                    );
                }
            }
            // nginx then forwards any protocol that a client names.
            ("upgrade", "$http_upgrade") => keys.text("upgrades", "any"),
            ("upgrade", name) if is_upgrade(name) => {
                keys.set("upgrades", format!("[{}]", toml_string(name)));
            }
            // WebSockets are upgraded to without these, and connections are kept.
            ("connection" | "upgrade" | "accept-encoding", _)
                if value.is_empty()
                    || value.contains('$')
                    || value.eq_ignore_ascii_case("upgrade")
                    || value == "close" =>
            {
                if name.eq_ignore_ascii_case("accept-encoding") {
                    set.set(name, "false");
                }
            }
            (_, value) if is_copied(name, value) => {}
            // With `proxy_pass_request_body off` the request has no content.
            ("content-length", "") if scope.is("proxy_pass_request_body", "off") => {}
            (_, "$request_id") if is_field(name, "") => {
                route.set(
                    "request_id",
                    format!("{{ field = {} }}", toml_string(&name.to_ascii_lowercase())),
                );
            }
            _ => set_field(directive, scope, &mut set, notes),
        }
    }
    keys.text("host", &host);
    keys.text("forwarded", forwarded);
    trust(scope, forwarded == "x", keys, notes);
    if !set.is_empty() {
        keys.set("headers", set.inline());
    }
}

/// Whether a route may let connections be upgraded to a protocol.
fn is_upgrade(name: &str) -> bool {
    Upgrades::is_name(name) && !Upgrades::carries_requests(name) && !name.contains('$')
}

/// One `proxy_set_header`: servers never receive the field as the client sent it, so a value that cannot be kept removes it.
///
/// Servers take fields such as `X-Remote-User` and `X-Client-Verify` for what the proxy found out.
pub(super) fn set_field(
    directive: &Directive,
    scope: &Scope<'_>,
    set: &mut Keys,
    notes: &mut Notes,
) {
    let (name, value) = (directive.argument(0), directive.argument(1));
    if !is_field(name, "") {
        notes.add(
            directive,
            format!("`{name}` is left out: the gateway sets it by itself, or it is no field"),
        );
        return;
    }
    let filled = access::filled(value, scope, Moment::Request);
    match filled.filter(|_| is_field(name, value)) {
        Some(text) if text.is_empty() => set.set(name, "false"),
        Some(text) => set.text(name, &text),
        None => {
            set.set(name, "false");
            notes.add(
                directive,
                format!("servers get no `{name}`: `{value}` has no counterpart"),
            );
        }
    }
}

/// Whether one of X-Forwarded-Proto and -Host has another value than the gateway sends: a constant, or the host without its
/// port. What clients say themselves is not passed on.
fn is_other_than_usual(name: &str, value: &str) -> bool {
    let is_constant = !value.is_empty() && !value.contains('$');
    match name.to_ascii_lowercase().as_str() {
        "x-forwarded-proto" => is_constant,
        "x-forwarded-host" => {
            let known = ["$host", "$server_name", "$host:$server_port"];
            is_constant || known.contains(&value)
        }
        _ => false,
    }
}

/// Whether a field of requests may be set by a route.
pub(super) fn is_field(name: &str, value: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok()
        && HeaderValue::from_str(value).is_ok()
        && !FieldClass::from_name(name.to_ascii_lowercase().as_bytes()).is_framing()
        && !["connection", "host"]
            .iter()
            .any(|it| it.eq_ignore_ascii_case(name))
}

/// `set_real_ip_from` as the networks whose `X-Forwarded-For` is believed.
fn trust(scope: &Scope<'_>, is_forwarded: bool, keys: &mut Keys, notes: &mut Notes) {
    let given = scope.all("set_real_ip_from");
    let Some(first) = given.first() else {
        return;
    };
    let header = scope.last("real_ip_header");
    let is_read = header.is_some_and(|it| it.argument(0).eq_ignore_ascii_case("x-forwarded-for"));
    if !is_read || !is_forwarded {
        if is_of_place(scope) {
            notes.add(
                first,
                "left out: `trust` goes with `X-Forwarded-For`, which servers get",
            );
        }
        return;
    }
    let networks = networks(&given);
    if !networks.is_empty() {
        keys.set("trust", format!("[{}]", networks.join(", ")));
    }
}
