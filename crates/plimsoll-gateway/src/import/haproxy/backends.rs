//! The servers of a `backend` or a `listen`.

use std::rc::Rc;

use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::super::upstreams::UpstreamText;
use super::values::{after, has, time};
use super::{Section, left_out};

/// Options of a server that are read, with the arguments that follow each.
const READ: [(&str, usize); 23] = [
    ("port", 1),
    ("weight", 1),
    ("backup", 0),
    ("check", 0),
    ("inter", 1),
    ("fastinter", 1),
    ("downinter", 1),
    ("fall", 1),
    ("rise", 1),
    ("ssl", 0),
    ("verify", 1),
    ("ca-file", 1),
    ("sni", 1),
    ("check-sni", 1),
    ("check-ssl", 0),
    ("cookie", 1),
    ("send-proxy", 0),
    ("send-proxy-v2", 0),
    ("disabled", 0),
    ("alpn", 1),
    ("on-marked-down", 1),
    ("resolvers", 1),
    ("init-addr", 1),
];

/// The upstream of a section with servers; `None` if no server can be reached.
pub(super) fn upstream(section: &Section<'_>, notes: &mut Notes) -> Option<UpstreamText> {
    let mut servers = Vec::new();
    let mut urls = Vec::new();
    let mut tls = Keys::default();
    let mut checked = None;
    let default = section.last("default-server");
    for server in section.all("server") {
        let with_default = merged(server, default);
        report(&with_default, server, notes);
        let Some(url) = url(&with_default, section.is_tcp) else {
            let address = server.argument(1);
            notes.add(
                server,
                format!("left out: `{address}` is no address with a port; HAProxy would have sent requests to it"),
            );
            continue;
        };
        if urls.contains(&url) {
            left_out(
                server,
                "sent requests to the same address under two names: give the first one the sum of their weights",
                notes,
            );
            continue;
        }
        urls.push(url.clone());
        if has(&with_default, "ssl") || has(&with_default, "check-ssl") {
            secure(&with_default, &mut tls, notes);
        }
        if has(&with_default, "check") {
            if let Some(other) = &checked
                && after(other, "port") != after(&with_default, "port")
            {
                left_out(
                    server,
                    "checked servers at ports of their own; checks here use the port of the last server",
                    notes,
                );
            }
            checked = Some(with_default.clone());
        }
        let mut keys = Keys::default();
        keys.text("url", &url);
        let weight = after(&with_default, "weight").filter(|it| *it != "1");
        let weight = weight.and_then(|it| it.parse::<u32>().ok());
        if has(&with_default, "disabled") {
            keys.set("weight", "0");
        } else if let Some(weight) = weight {
            keys.set("weight", weight.to_string());
        }
        if has(&with_default, "backup") {
            keys.set("backup", "true");
        }
        let is_plain = keys.pairs().count() == 1;
        servers.push(if is_plain {
            toml_string(&url)
        } else {
            keys.inline()
        });
    }
    if servers.is_empty() {
        return None;
    }
    let mut keys = Keys::default();
    keys.set("servers", format!("[{}]", servers.join(", ")));
    balance(section, &mut keys, notes);
    if !tls.is_empty() {
        keys.set("tls", tls.inline());
    }
    if let Some(value) = section.timeout("connect") {
        keys.text("connect_timeout", &value);
    }
    if let Some(server) = &checked {
        health(section, server, &mut keys, notes);
    }
    if !section.is_tcp {
        requests(section, &mut keys, notes);
    }
    let mut text = String::new();
    keys.lines(&mut text);
    Some(UpstreamText {
        name: section.name().to_owned(),
        keys: text,
        file: Rc::clone(&section.head.file),
        line: section.head.line,
    })
}

/// Keys that are for requests alone.
fn requests(section: &Section<'_>, keys: &mut Keys, notes: &mut Notes) {
    if let Some(value) = section.timeout("server") {
        keys.text("response_timeout", &value);
        keys.text("idle_timeout", &value);
    }
    let retries = section.last("retries").map(|it| it.argument(0));
    if let Some(retries) = retries.filter(|it| it.parse::<u32>().is_ok()) {
        keys.set("retry", format!("{{ retries = {retries} }}"));
    }
    let Some(cookie) = section.last("cookie") else {
        return;
    };
    if has(cookie, "insert") {
        keys.text("sticky", cookie.argument(0));
        return;
    }
    left_out(
        cookie,
        "sent clients to the server that a cookie of the application names",
        notes,
    );
}

/// A server with the options of `default-server` behind its own.
fn merged(server: &Directive, default: Option<&Directive>) -> Directive {
    let mut merged = server.clone();
    let options = default.map_or(&[][..], |it| &it.arguments);
    merged.arguments.extend(options.iter().cloned());
    merged
}

/// Notes the options that nothing is made of.
fn report(merged: &Directive, server: &Directive, notes: &mut Notes) {
    let mut at = 2;
    while let Some(option) = merged.arguments.get(at) {
        at += 1;
        match READ.iter().find(|(name, _)| name == option) {
            Some((_, count)) => at += count,
            None if option == "maxconn" => {
                notes.add(
                    server,
                    "`maxconn` is left out: HAProxy would have queued more requests than that; `connections` of the upstream is for each worker, `concurrency` finds a limit by itself",
                );
                at += 1;
            }
            None => {
                notes.add(
                    server,
                    format!(
                        "`{option}` is left out: there is no counterpart for this option of HAProxy"
                    ),
                );
                // Its value, if it has one.
                let known = |it: &String| READ.iter().any(|(name, _)| name == it);
                if merged.arguments.get(at).is_some_and(|it| !known(it)) {
                    at += 1;
                }
            }
        }
    }
}

fn url(server: &Directive, is_tcp: bool) -> Option<String> {
    let address = server.argument(1);
    let address = address.strip_prefix("ipv4@").unwrap_or(address);
    if let Some(path) = address
        .strip_prefix("unix@")
        .or_else(|| address.starts_with('/').then_some(address))
    {
        return Some(format!("unix:{path}"));
    }
    let is_secure = has(server, "ssl");
    let scheme = match (is_tcp, is_secure) {
        (true, false) => "tcp",
        (true, true) => "tls",
        (false, true) => "https",
        (false, false) => "http",
    };
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let port = match port {
        "" if is_secure => "443",
        "" if !is_tcp => "80",
        port => port,
    };
    port.parse::<u16>().ok().filter(|it| *it > 0)?;
    let is_host = |it: u8| it.is_ascii_alphanumeric() || b"-._:[]".contains(&it);
    (!host.is_empty() && host.bytes().all(is_host)).then(|| format!("{scheme}://{host}:{port}"))
}

/// `tls` of the upstream, which its servers have together.
fn secure(server: &Directive, tls: &mut Keys, notes: &mut Notes) {
    // Servers are verified unless it says otherwise.
    if after(server, "verify") == Some("none") {
        tls.set("insecure", "true");
        notes.add(
            server,
            "`verify none`: no certificate of this upstream's servers is verified; HAProxy would not have verified this one",
        );
    } else if let Some(file) = after(server, "ca-file").filter(|it| !it.starts_with('@')) {
        tls.text("ca", file);
    }
    let Some(sni) = after(server, "sni") else {
        return;
    };
    match sni.strip_prefix("str(").and_then(|it| it.strip_suffix(')')) {
        Some(name) => tls.text("server_name", name),
        None => notes.add(
            server,
            format!("`sni {sni}` is left out: servers are asked for the name of their URL"),
        ),
    }
}

fn balance(section: &Section<'_>, keys: &mut Keys, notes: &mut Notes) {
    let Some(balance) = section.last("balance") else {
        return;
    };
    let (name, by) = match balance.argument(0) {
        "roundrobin" | "static-rr" => return,
        "leastconn" => ("least_connections", None),
        "random" => ("random", None),
        "source" => ("ring_hash", Some("source".to_owned())),
        "uri" => ("ring_hash", Some("path".to_owned())),
        "url_param" => (
            "ring_hash",
            Some(format!("{{query:{}}}", balance.argument(1))),
        ),
        other => {
            let field = other.strip_prefix("hdr(");
            let Some(field) = field.and_then(|it| it.strip_suffix(')')) else {
                left_out(balance, "chosen servers in this way", notes);
                return;
            };
            let field = field.to_ascii_lowercase();
            ("ring_hash", Some(format!("header:{field}")))
        }
    };
    keys.text("balance", name);
    if let Some(by) = by {
        keys.text("by", &by);
    }
}

/// A field of checks: `hdr` is the argument `at`, its name and its value follow.
fn field(check: &Directive, at: usize, health: &mut Keys, fields: &mut Keys, notes: &mut Notes) {
    let (name, value) = (check.argument(at + 1), check.argument(at + 2));
    if value.contains("%[") {
        left_out(
            check,
            "sent a field with checks whose value it computed",
            notes,
        );
    } else if name.eq_ignore_ascii_case("host") {
        health.text("host", value);
    } else if !["connection", "content-length"].contains(&name.to_ascii_lowercase().as_str()) {
        fields.text(name, value);
    }
}

/// `health` by the checks of a server.
fn health(section: &Section<'_>, server: &Directive, keys: &mut Keys, notes: &mut Notes) {
    let mut health = Keys::default();
    match section.option("httpchk") {
        None => health.text("kind", "tcp"),
        Some(option) => {
            if section.is_tcp {
                health.text("kind", "http");
            }
            let words = option.arguments.get(1..).unwrap_or_default();
            let (method, path) = match words {
                [] => ("OPTIONS", "/"),
                [path] => ("OPTIONS", path.as_str()),
                [method, path, rest @ ..] => {
                    // As it was written before `http-check send`: HTTP/1.1\r\nHost:\ name
                    if rest.iter().any(|word| word.contains(':')) {
                        left_out(option, "sent these fields with checks", notes);
                    }
                    (method.as_str(), path.as_str())
                }
            };
            let mut fields = Keys::default();
            let mut method = method.to_owned();
            let mut path = path.to_owned();
            for check in section.all("http-check") {
                match check.argument(0) {
                    "send" => {
                        if let Some(given) = after(check, "meth") {
                            given.clone_into(&mut method);
                        }
                        if let Some(given) = after(check, "uri") {
                            given.clone_into(&mut path);
                        }
                        for at in 0..check.arguments.len() {
                            if check.argument(at) == "hdr" {
                                field(check, at, &mut health, &mut fields, notes);
                            }
                        }
                    }
                    "expect" => match (check.argument(1), check.argument(2).parse::<u16>()) {
                        ("status", Ok(status)) => health.set("status", status.to_string()),
                        _ => left_out(check, "expected this of checks", notes),
                    },
                    _ => left_out(check, "made checks in this way", notes),
                }
            }
            if method != "GET" {
                health.text("method", &method);
            }
            health.text("path", &path);
            if !fields.is_empty() {
                health.set("headers", fields.inline());
            }
        }
    }
    let port = after(server, "port").filter(|it| it.parse::<u16>().is_ok_and(|it| it > 0));
    if let Some(port) = port {
        health.set("port", port);
    }
    // At a port of their own, checks are in the clear unless it says otherwise.
    match (has(server, "ssl"), has(server, "check-ssl")) {
        (false, true) => health.set("tls", "true"),
        (true, false) if port.is_some() => health.set("tls", "false"),
        _ => {}
    }
    for (key, option) in [("interval", "inter")] {
        if let Some(value) = after(server, option).and_then(time) {
            health.text(key, &value);
        }
    }
    for (key, option, usual) in [("unhealthy", "fall", "3"), ("healthy", "rise", "2")] {
        let count = after(server, option).filter(|it| *it != usual);
        if let Some(count) = count.filter(|it| it.parse::<u32>().is_ok()) {
            health.set(key, count);
        }
    }
    keys.set("health", health.inline());
}
