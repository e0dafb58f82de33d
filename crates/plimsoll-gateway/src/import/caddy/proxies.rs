//! `reverse_proxy`, `php_fastcgi` and `forward_auth`.

use std::rc::Rc;

use plimsoll_model::document::toml_string;

use super::super::nginx::Directive;
use super::super::rows::actions::{Fields, Response};
use super::super::toml::Keys;
use super::super::upstreams::UpstreamText;
use super::handlers::Scope;
use super::layers::{fields, without_parts};
use super::untranslated::Untranslated;
use super::values::{duration, size, with_places};

/// Ways to choose a server.
const POLICIES: [(&str, &str); 8] = [
    ("random", "random"),
    ("random_choose", "random_of_two"),
    ("first", "first"),
    ("round_robin", "round_robin"),
    ("weighted_round_robin", "round_robin"),
    ("least_conn", "least_requests"),
    ("ip_hash", "ring_hash"),
    ("client_ip_hash", "ring_hash"),
];

/// An address of a server as a URL, or as the path of its socket.
fn server(text: &str) -> Option<String> {
    if let Some(path) = text.strip_prefix("unix/") {
        return Some(format!("unix:{path}"));
    }
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let scheme = match scheme {
        "http" | "h2c" => "http",
        "https" => "https",
        _ => return None,
    };
    if rest.contains(['{', '*']) {
        return None;
    }
    // A port alone is one of this machine.
    let host = if rest.starts_with(':') {
        "localhost"
    } else {
        ""
    };
    Some(format!("{scheme}://{host}{}", rest.trim_end_matches('/')))
}

/// `reverse_proxy TO…` with its options as `proxy`.
pub(super) fn reverse_proxy(
    directive: &Directive,
    arguments: &[String],
    block: &Directive,
    scope: &mut Scope<'_>,
) -> Result<Response, Untranslated> {
    let within = directive.block.iter().filter(|it| it.name == "to");
    let targets = arguments.iter().chain(within.flat_map(|it| &it.arguments));
    let targets: Vec<&String> = targets.collect();
    let mut servers = Vec::new();
    for target in &targets {
        let server = server(target);
        servers.push(server.ok_or_else(|| Untranslated::Server((*target).clone()))?);
    }
    if servers.is_empty() {
        return Err(Untranslated::NoServer);
    }
    let mut proxy = Keys::default();
    let mut upstream = Keys::default();
    if targets.iter().any(|it| it.starts_with("h2c://")) {
        upstream.text("protocol", "http2");
    }
    // Those who use it rely on it.
    upstream.text("balance", "random");
    let is_wide = |option: &&Directive| {
        option.name == "header_up"
            && option.argument(0).starts_with('-')
            && option.argument(0).contains('*')
    };
    if let Some(option) = directive.block.iter().find(is_wide) {
        return Err(Untranslated::Field(option.argument(0).to_owned()));
    }
    options(directive, &mut proxy, &mut upstream, scope);
    rewrites(block, &mut proxy, scope);
    let is_plain = servers.len() == 1 && upstream == default_upstream();
    let to = if is_plain {
        servers.remove(0)
    } else {
        let name = format!("server-{}", scope.upstreams.len() + 1);
        let list = servers.iter().map(|it| toml_string(it));
        let mut text = format!("servers = [{}]\n", list.collect::<Vec<_>>().join(", "));
        upstream.lines(&mut text);
        scope.upstreams.push(UpstreamText {
            name: name.clone(),
            keys: text,
            file: Rc::clone(&directive.file),
            line: directive.line,
        });
        name
    };
    let mut table = Keys::default();
    table.text("to", &to);
    table.inherit(&proxy);
    Ok(Response::Proxy(table))
}

fn default_upstream() -> Keys {
    let mut keys = Keys::default();
    keys.text("balance", "random");
    keys
}

/// The options of a block.
fn options(directive: &Directive, proxy: &mut Keys, upstream: &mut Keys, scope: &mut Scope<'_>) {
    let mut headers = Keys::default();
    let mut health = Keys::default();
    for option in &directive.block {
        let value = option.argument(0);
        match option.name.as_str() {
            // Streams are passed on as they come; fields of responses are those of the route.
            "to" | "flush_interval" | "trusted_proxies" | "lb_try_interval" | "header_down" => {}
            "lb_policy" => {
                let known = POLICIES.iter().find(|(name, _)| *name == value);
                match (value, known) {
                    ("cookie", _) => upstream.text("sticky", match option.argument(1) {
                        "" => "lb",
                        name => name,
                    }),
                    ("header", _) => {
                        upstream.text("balance", "ring_hash");
                        upstream.text("by", &format!("header:{}", option.argument(1)));
                    }
                    ("uri_hash", _) => {
                        upstream.text("balance", "ring_hash");
                        upstream.text("by", "path");
                    }
                    (_, Some((_, "first")) | None) => scope.notes.add(option, format!("`{value}` is left out: servers are chosen by chance")),
                    (_, Some((name, ours))) => {
                        upstream.text("balance", ours);
                        if name.ends_with("ip_hash") {
                            upstream.text("by", "source");
                        }
                    }
                }
            }
            "lb_retries" => upstream.set("retry", format!("{{ retries = {} }}", value.parse::<u8>().unwrap_or(1).min(10))),
            "lb_try_duration" => scope.notes.add(option, "left out: a server that does not answer is retried at once, and then the request fails"),
            "health_uri" => health.text("path", value),
            "health_interval" => {
                if let Some(time) = duration(value) {
                    health.set("interval", time);
                }
            }
            "health_timeout" => {
                if let Some(time) = duration(value) {
                    health.set("timeout", time);
                }
            }
            "health_status" if value.parse::<u16>().is_ok_and(|it| (100..600).contains(&it)) => {
                health.set("status", value);
            }
            "health_status" if value == "2xx" => {
                scope.notes.add(option, "a redirect is healthy too");
            }
            "health_method" => health.text("method", value),
            // An expression that is a text.
            "health_body" if !value.is_empty() && regex::escape(value) == value => {
                health.text("content", value);
            }
            "health_headers" => {
                let mut fields = Keys::default();
                for field in &option.block {
                    match field.name.to_ascii_lowercase().as_str() {
                        "host" => health.text("host", field.argument(0)),
                        _ => fields.text(&field.name, field.argument(0)),
                    }
                }
                if !fields.is_empty() {
                    health.set("headers", fields.inline());
                }
            }
            "max_fails" | "fail_duration" | "unhealthy_status" => upstream.set("eject", "true"),
            "header_up" => field_up(option, proxy, &mut headers, scope),
            "transport" => transport(option, proxy, upstream, scope),
            "request_buffers" => {
                if let Some(most) = size(value) {
                    proxy.set("buffer_request", most);
                }
            }
            _ => scope.notes.left_out(option),
        }
    }
    if !headers.is_empty() {
        proxy.set("headers", headers.inline());
    }
    if !health.is_empty() {
        upstream.set("health", health.inline());
    }
}

/// `header_up [+-]FIELD [VALUE]`.
fn field_up(option: &Directive, proxy: &mut Keys, headers: &mut Keys, scope: &mut Scope<'_>) {
    let (name, value) = (option.argument(0), option.argument(1));
    if let Some(name) = name.strip_prefix('-') {
        headers.set(name, "false");
        return;
    }
    let name = name.trim_start_matches('+');
    if name.eq_ignore_ascii_case("host") {
        match value {
            "{upstream_hostport}" | "{http.reverse_proxy.upstream.hostport}" => {
                proxy.text("host", "server");
            }
            "{host}" | "{hostport}" | "{http.request.host}" => {}
            value if !value.contains('{') => proxy.text("host", value),
            _ => scope.notes.left_out(option),
        }
        return;
    }
    let own = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"];
    if own.contains(&name.to_ascii_lowercase().as_str()) && value.starts_with('{') {
        // They have these values anyway.
        return;
    }
    match with_places(value, false) {
        Ok(value) if option.arguments.len() == 2 => headers.text(name, &value),
        _ => scope
            .notes
            .add(option, format!("servers get no `{name}` by it")),
    }
}

/// The changes of `header_down`.
pub(super) fn fields_down(directive: &Directive, scope: &mut Scope<'_>) -> Fields {
    let mut down = Fields::default();
    for option in directive.block.iter().filter(|it| it.name == "header_down") {
        let mut changes = fields(option, &option.arguments, scope);
        without_parts(&mut changes, option, scope);
        down.join(&changes);
    }
    down
}

fn transport(option: &Directive, proxy: &mut Keys, upstream: &mut Keys, scope: &mut Scope<'_>) {
    let mut tls = Keys::default();
    for within in &option.block {
        let value = within.argument(0);
        let time = |key: &str, keys: &mut Keys| {
            if let Some(time) = duration(value) {
                keys.set(key, time);
            }
        };
        match within.name.as_str() {
            "tls" | "compression" | "keepalive_interval" => {}
            "tls_insecure_skip_verify" => tls.set("insecure", "true"),
            "tls_server_name" => tls.text("server_name", value),
            "tls_trusted_ca_certs" => tls.text("ca", value),
            "dial_timeout" => time("connect_timeout", upstream),
            "response_header_timeout" => time("response_timeout", proxy),
            "read_timeout" => time("idle_timeout", proxy),
            "keepalive" => time("keep_for", upstream),
            "versions" => {
                let is_second = |it: &String| it == "h2c" || it == "2";
                if within.arguments.iter().any(is_second) {
                    upstream.text("protocol", "http2");
                }
            }
            _ => scope.notes.left_out(within),
        }
    }
    if !tls.is_empty() {
        upstream.set("tls", tls.inline());
    }
}

/// `uri` and `rewrite` beside a proxy, and the prefix that `handle_path` takes off.
fn rewrites(block: &Directive, proxy: &mut Keys, scope: &mut Scope<'_>) {
    if let Some(stripped) = &scope.stripped {
        proxy.text("strip", stripped);
    }
    for directive in &block.block {
        let arguments: Vec<&str> = directive.arguments.iter().map(String::as_str).collect();
        match (directive.name.as_str(), arguments.as_slice()) {
            ("uri", ["strip_prefix", prefix]) => {
                let from = toml_string(&format!("^{}", regex::escape(prefix)));
                proxy.set("rewrite", format!("{{ from = {from}, to = \"\" }}"));
            }
            ("rewrite", ["*", to] | [to]) if to.ends_with("{uri}") || to.ends_with("{path}") => {
                let before = to.trim_end_matches("{uri}").trim_end_matches("{path}");
                proxy.text("path", before);
            }
            ("uri" | "rewrite", _) => scope
                .notes
                .add(directive, "left out: paths are forwarded as they come"),
            _ => {}
        }
    }
}

/// The routes of scripts, and of the front controller.
pub(super) fn php(
    directive: &Directive,
    arguments: &[String],
    scope: &mut Scope<'_>,
) -> Result<(Response, Response), Untranslated> {
    let target = arguments.first().ok_or(Untranslated::NoServer)?;
    let server = server(target).ok_or_else(|| Untranslated::Server(target.clone()))?;
    let own = directive.last("root").map(|it| it.argument(0).to_owned());
    let root = own.or_else(|| scope.root.clone());
    let root = root.ok_or(Untranslated::NoRoot)?;
    let mut parameters = Keys::default();
    for option in &directive.block {
        match option.name.as_str() {
            "root" | "split" | "index" | "resolve_root_symlink" => {}
            "env" => match with_places(option.argument(1), false) {
                Ok(value) => parameters.text(option.argument(0), &value),
                Err(_) => scope.notes.left_out(option),
            },
            _ => scope.notes.left_out(option),
        }
    }
    let mut fastcgi = Keys::default();
    fastcgi.text("root", &root);
    if !parameters.is_empty() {
        fastcgi.set("parameters", parameters.inline());
    }
    let keys = |fastcgi: &Keys| {
        let mut proxy = Keys::default();
        proxy.text("to", &server);
        proxy.text("protocol", "fastcgi");
        proxy.set("fastcgi", fastcgi.inline());
        Response::Proxy(proxy)
    };
    let scripts = keys(&fastcgi);
    fastcgi.text("script", "/index.php");
    fastcgi.set("folders", "true");
    Ok((scripts, keys(&fastcgi)))
}

/// `forward_auth TO { uri, copy_headers }` as `auth` of a proxy, and fields that servers would get under other names, which
/// clients must not send.
pub(super) fn forward_auth(
    directive: &Directive,
    arguments: &[String],
    scope: &mut Scope<'_>,
) -> (String, Vec<String>) {
    let target = arguments
        .first()
        .and_then(|it| server(it))
        .unwrap_or_default();
    let uri = directive.last("uri").map_or("/", |it| it.argument(0));
    let mut auth = Keys::default();
    auth.text("to", &format!("{target}{uri}"));
    let mut copied = Vec::new();
    let mut renamed = Vec::new();
    for option in &directive.block {
        match option.name.as_str() {
            "uri" => {}
            "copy_headers" => {
                let names = option
                    .arguments
                    .iter()
                    .chain(option.block.iter().map(|it| &it.name));
                for name in names {
                    if let Some((_, to)) = name.split_once('>') {
                        renamed.push(to.to_owned());
                        scope.notes.add(
                            option,
                            format!("`{name}` is left out: fields keep their names, and servers get no `{to}`"),
                        );
                    } else {
                        copied.push(toml_string(name));
                    }
                }
            }
            _ => scope.notes.left_out(option),
        }
    }
    if !copied.is_empty() {
        auth.set("copy", format!("[{}]", copied.join(", ")));
    }
    (auth.inline(), renamed)
}
