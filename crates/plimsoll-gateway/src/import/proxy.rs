//! `proxy_pass` and what goes with it.

use http::{HeaderName, HeaderValue};
use plimsoll_model::document::toml_string;
use plimsoll_server::Moment;
use plimsoll_wire::http::{FieldClass, NormalPath};

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
use super::upstreams::{Upstreams, bytes, duration, is_server, size};
use crate::forward::Upgrades;

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

/// The part of the path that the location matched is replaced by the URI of `proxy_pass`.
fn replace_path(
    directive: &Directive,
    condition: &Condition<'_>,
    uri: &str,
    keys: &mut Keys,
    notes: &mut Notes,
) {
    if !is_text(uri) || NormalPath::parse(uri.split('?').next().unwrap_or_default()).is_err() {
        notes.add(
            directive,
            format!("the path stays as it is: `{uri}` is not one that a server may be sent"),
        );
        return;
    }
    if uri.contains('?') {
        notes.add(
            directive,
            "the query of the URL comes before that of the request",
        );
    }
    let rule = |from: String| {
        format!(
            "{{ from = {}, to = {} }}",
            toml_string(&from),
            toml_string(&uri.replace('$', "$$"))
        )
    };
    match condition {
        Condition::Prefix(prefix) | Condition::Exact(prefix) if uri == *prefix => {}
        Condition::Regex(regex) if *regex == prefix_expression(uri) => {}
        Condition::Prefix(prefix) if prefix.ends_with('/') && uri.ends_with('/') => {
            if *prefix != "/" {
                keys.set("strip", "true");
            }
            if uri != "/" {
                keys.text("path", uri.trim_end_matches('/'));
            }
        }
        Condition::Prefix(prefix) => {
            keys.set("rewrite", rule(format!("^{}", regex::escape(prefix))));
        }
        Condition::Exact(path) => keys.set("rewrite", rule(format!("^{}$", regex::escape(path)))),
        Condition::Regex(regex) => {
            // A prefix or a path that was written as an expression; of others nginx itself accepts no URI.
            let literal = regex.strip_prefix("(?-i:");
            let prefix = literal.and_then(|it| it.strip_suffix(".*)"));
            let whole = || literal.and_then(|it| it.strip_suffix(')'));
            let replaced = match prefix {
                Some(prefix) => Some(format!("^{prefix}")),
                None => whole().map(|path| format!("^{path}$")),
            };
            match replaced {
                Some(from) => keys.set("rewrite", rule(from)),
                None => notes.add(
                    directive,
                    "the path stays as it is: a regular expression has no part to replace",
                ),
            }
        }
    }
}

/// A prefix as an expression for the whole path.
pub(super) fn prefix_expression(prefix: &str) -> String {
    format!("(?-i:{}.*)", regex::escape(prefix))
}

/// `rewrite FROM TO [last|break]` within a location that forwards.
fn rewritten(directive: &Directive, keys: &mut Keys, notes: &mut Notes) {
    let (from, to) = (directive.argument(0), directive.argument(1));
    let outside = slash_outside(from, to);
    let (from, to) = outside.as_ref().map_or((from, to), |(from, to)| (from, to));
    let is_forwarded = matches!(directive.argument(2), "" | "last" | "break");
    let to = to.strip_suffix('?').unwrap_or(to);
    let has_variable = to
        .split('$')
        .skip(1)
        .any(|it| !it.starts_with(|digit: char| digit.is_ascii_digit()));
    let is_target = is_target(to.split('?').next().unwrap_or_default()) && is_text(to);
    if !is_forwarded || has_variable || !is_target || regex::Regex::new(from).is_err() {
        notes.left_out(directive);
        return;
    }
    if directive.argument(2) == "last" {
        notes.add(directive, "the location is not chosen again");
    }
    // nginx replaces the whole path, wherever the expression matches.
    let start = if from.starts_with('^') { "" } else { "^.*?" };
    let end = if from.ends_with('$') { "" } else { ".*$" };
    let from = if from.contains('|') {
        format!("{start}(?:{from}){end}")
    } else {
        format!("{start}{from}{end}")
    };
    let to = braced(to);
    let rule = format!(
        "{{ from = {}, to = {} }}",
        toml_string(&from),
        toml_string(&to)
    );
    let rules = match keys.get("rewrite") {
        None => format!("[{rule}]"),
        Some(known) => format!(
            "[{}, {rule}]",
            known.trim_start_matches('[').trim_end_matches(']')
        ),
    };
    keys.set("rewrite", rules);
}

/// An expression and a target that begins with its first group, which begins with a slash: with the slash before the group in
/// both, so that the target is a path whatever the group has.
fn slash_outside(from: &str, to: &str) -> Option<(String, String)> {
    let rest = to.strip_prefix("$1").or_else(|| to.strip_prefix("${1}"))?;
    let (before, group) = from.split_once('(')?;
    let group = group.strip_prefix('/')?;
    let (inner, after) = group.split_once(')')?;
    let is_simple = !inner.contains(['(', '|', '[', '\\']);
    let is_once = !after.starts_with(['?', '*', '+', '{']) && !rest.contains("$1");
    let is_plain = !group.starts_with(['?', '*', '+', '{']) && !before.ends_with('\\');
    (is_once && is_plain && is_simple && !rest.contains("${1}"))
        .then(|| (format!("{before}/({group}"), format!("/$1{rest}")))
}

/// Whether a path is one that a server may be sent, with groups in it or not.
fn is_target(path: &str) -> bool {
    path.starts_with('/') && (path.contains('$') || NormalPath::parse(path).is_ok())
}

fn is_text(target: &str) -> bool {
    target.bytes().all(|it| it.is_ascii_graphic() && it != b'#')
}

/// Groups in braces, so that `$1x` is not the group `1x`.
fn braced(text: &str) -> String {
    let mut braced = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        braced.push_str(before);
        // nginx has the groups 1 to 9.
        let digit = after.chars().next().unwrap_or('0');
        braced.push_str("${");
        braced.push(digit);
        braced.push('}');
        rest = after.get(1..).unwrap_or_default();
    }
    braced.push_str(rest);
    braced
}

/// The timeouts of a location, which a route may have of its own.
fn timeouts(scope: &Scope<'_>, notes: &mut Notes) -> Keys {
    let mut keys = Keys::default();
    let time_of = |name: &str| scope.last(name).and_then(|it| duration(it.argument(0)));
    let send = scope.last("proxy_send_timeout");
    if let Some(send) =
        send.filter(|_| time_of("proxy_send_timeout") != time_of("proxy_read_timeout"))
    {
        notes.add(
            send,
            "left out: `response_timeout` is the time for both directions",
        );
    }
    for name in ["proxy_read_timeout", "grpc_read_timeout"] {
        if let Some(time) = scope.last(name).and_then(|it| duration(it.argument(0))) {
            keys.text("response_timeout", &time);
            keys.text("idle_timeout", &time);
        }
    }
    keys
}

/// Bytes of a response that are read ahead, where the file says so.
fn buffered_response(scope: &Scope<'_>) -> Option<u64> {
    /// Eight buffers of 8 KiB, as nginx has them.
    const USUAL: u64 = 64 * 1024;
    let buffering = scope.last("proxy_buffering");
    let buffers = scope.last("proxy_buffers");
    if buffering.is_some_and(|it| it.argument(0) != "on") {
        return None;
    }
    let buffers = buffers.and_then(|it| {
        let count = it.argument(0).parse::<u64>().ok()?;
        count.checked_mul(bytes(it.argument(1))?)
    });
    buffers
        .filter(|it| *it > 0)
        .or_else(|| buffering.map(|_| USUAL))
}

/// The time to connect, retries and TLS, which belong to the upstream.
fn connection(scope: &Scope<'_>, notes: &mut Notes) -> Keys {
    let mut keys = Keys::default();
    let connect = scope.last("proxy_connect_timeout");
    if let Some(time) = connect.and_then(|it| duration(it.argument(0))) {
        keys.text("connect_timeout", &time);
    }
    if let Some(retry) = retry(scope, notes) {
        keys.set("retry", retry);
    }
    let tls = tls_to_servers(scope, is_https(scope), notes);
    if !tls.is_empty() {
        keys.set("tls", tls.inline());
    }
    keys
}

/// The table `tls` of an upstream.
///
/// - `is_used`: servers are reached over TLS.
pub(super) fn tls_to_servers(scope: &Scope<'_>, is_used: bool, notes: &mut Notes) -> Keys {
    let is_verified = scope.is("proxy_ssl_verify", "on");
    let file = scope.last("proxy_ssl_trusted_certificate");
    let name = scope.last("proxy_ssl_name");
    let name = name.or_else(|| scope.last("grpc_ssl_name"));
    let identity = scope.last("proxy_ssl_certificate");
    let identity = identity.zip(scope.last("proxy_ssl_certificate_key"));
    // An empty one takes back that of a block around it.
    let identity = identity.filter(|(file, _)| !file.argument(0).is_empty());
    let mut tls = Keys::default();
    if !is_used {
        return tls;
    }
    // nginx does not verify servers unless it is to.
    match file {
        Some(file) if is_verified => tls.text("ca", file.argument(0)),
        _ if !is_verified => tls.set("insecure", "true"),
        _ => {}
    }
    if let Some(directive) = name {
        match directive.argument(0) {
            name if name.contains('$') => notes.add(
                directive,
                "left out: the name of the server depends on the request",
            ),
            name => tls.text("server_name", name),
        }
    }
    if let Some((file, key)) = identity {
        if file.argument(0).contains('$') || key.argument(0).contains('$') {
            notes.add(file, "left out: the certificate depends on the request");
        } else {
            tls.text("cert", file.argument(0));
            tls.text("key", key.argument(0));
        }
    }
    tls
}

/// The key `retry` of an upstream, if a directive limits the retries on other servers.
fn retry(scope: &Scope<'_>, notes: &mut Notes) -> Option<String> {
    let directive = scope.last("proxy_next_upstream");
    let limit = scope.last("proxy_next_upstream_tries");
    let given = directive.map(|it| it.arguments.as_slice());
    // As nginx has it.
    let usual = ["error".to_owned(), "timeout".to_owned()];
    let given = match (given, limit) {
        (None, None) => return None,
        (given, _) => given.unwrap_or(&usual),
    };
    let conditions = given.iter().filter_map(|it| match it.as_str() {
        "error" => Some("\"connect\", \"reset\"".to_owned()),
        "timeout" => Some("\"timeout\"".to_owned()),
        it => it
            .strip_prefix("http_")
            .filter(|it| is_error(it))
            .map(toml_string),
    });
    let conditions: Vec<_> = conditions.collect();
    if let Some(directive) = directive {
        for other in given {
            let is_condition = ["error", "timeout", "off"].contains(&other.as_str());
            if other == "non_idempotent" {
                notes.add(
                    directive,
                    "`non_idempotent` is left out: such requests are sent once; nginx would repeat them",
                );
            } else if !is_condition && !other.strip_prefix("http_").is_some_and(is_error) {
                notes.add(
                    directive,
                    format!("`{other}` is left out: nginx would try another server for this too"),
                );
            }
        }
    }
    let tries = limit.and_then(|it| it.argument(0).parse::<u32>().ok());
    let tries = tries.unwrap_or(2);
    if given.first().is_some_and(|it| it == "off") || tries == 1 {
        return Some("false".to_owned());
    }
    let retries = tries.saturating_sub(1).clamp(1, 10);
    let on = conditions.join(", ");
    (!conditions.is_empty()).then(|| format!("{{ retries = {retries}, on = [{on}] }}"))
}

/// Whether a status is one for which requests are repeated.
fn is_error(status: &str) -> bool {
    status.len() == 3
        && status
            .parse()
            .is_ok_and(|it: u16| (400..=599).contains(&it))
}

fn is_https(scope: &Scope<'_>) -> bool {
    let pass = scope.own("proxy_pass").or_else(|| scope.own("grpc_pass"));
    pass.is_some_and(|it| {
        it.argument(0).starts_with("https://") || it.argument(0).starts_with("grpcs://")
    })
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
