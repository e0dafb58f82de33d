//! `bind`, and frontends of TCP.

use std::fmt::Write as _;

use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::conditions::Acls;
use super::values::{after, has};
use super::{Model, Section, left_out};

/// Options of `bind` that are read, or that change nothing.
const READ: [&str; 13] = [
    "ssl",
    "crt",
    "alpn",
    "accept-proxy",
    "ca-file",
    "verify",
    "name",
    "mode",
    "v4v6",
    "process",
    "thread",
    "user",
    "group",
];

/// Writes the listeners of a frontend of HTTP; their names.
pub(super) fn http(section: &Section<'_>, head: &mut String, notes: &mut Notes) -> Vec<String> {
    let mut names = Vec::new();
    for bind in section.all("bind") {
        for address in addresses(bind) {
            let Some(mut keys) = listener(&address, bind, notes) else {
                continue;
            };
            let name = format!("{}-{}", section.name(), names.len() + 1);
            keys.text("name", &name);
            let alpn = after(bind, "alpn");
            if alpn.is_some_and(|it| !it.split(',').any(|it| it == "h2")) {
                keys.set("http2", "false");
            }
            head.push_str("\n[[listen]]\n");
            keys.lines(head);
            names.push(name);
        }
    }
    names
}

/// Writes the listeners of a frontend of TCP.
pub(super) fn tcp(section: &Section<'_>, model: &Model<'_>, head: &mut String, notes: &mut Notes) {
    let acls = Acls::of(&section.lines);
    let mut routes = Vec::new();
    let mut proxied = None;
    let mut target = |name: &str, notes: &mut Notes| {
        let backend = model.backend(name)?;
        if !backend.is_reachable() {
            return None;
        }
        let sends = |word: &str| backend.all("server").any(|it| has(it, word));
        if let Some(server) = backend.all("server").find(|it| has(it, "ssl"))
            && (sends("send-proxy") || sends("send-proxy-v2"))
        {
            left_out(
                server,
                "sent a PROXY header before the handshake of TLS",
                notes,
            );
        } else if sends("send-proxy-v2") {
            proxied = Some("v2");
        } else if sends("send-proxy") {
            proxied = Some("v1");
        }
        Some(toml_string(backend.name()))
    };
    for line in section.all("use_backend") {
        let (words, condition) = acls.split(&line.arguments);
        let to = words.first().and_then(|name| target(name, notes));
        let names = condition.ok().and_then(|it| it.names());
        match (to, names) {
            (Some(to), Some(names)) => {
                let names: Vec<_> = names.iter().map(|it| toml_string(it)).collect();
                routes.push(format!("{{ sni = [{}], to = {to} }}", names.join(", ")));
            }
            _ => left_out(
                line,
                "sent these connections to that backend: those of TCP are routed by the name that clients of TLS request",
                notes,
            ),
        }
    }
    let default = match section.last("default_backend") {
        Some(line) => target(line.argument(0), notes),
        None if section.is_listen() => target(section.name(), notes),
        None => None,
    };
    if default.is_none() && routes.is_empty() {
        notes.add(section.head, "left out: no server of it is known");
        return;
    }
    let mut table = Keys::default();
    if let Some(to) = default {
        table.set("to", to);
    }
    if !routes.is_empty() {
        table.set("routes", format!("[{}]", routes.join(", ")));
    }
    if let Some(version) = proxied {
        table.text("proxy_protocol", version);
    }
    if let Some(time) = section.timeout("client") {
        table.text("idle_timeout", &time);
    }
    for bind in section.all("bind") {
        for address in addresses(bind) {
            let Some(keys) = listener(&address, bind, notes) else {
                continue;
            };
            head.push_str("\n[[listen]]\n");
            keys.lines(head);
            writeln!(head, "tcp = {}", table.inline()).ok();
        }
    }
}

/// The addresses of a `bind`, of which each may have a range of ports.
fn addresses(bind: &Directive) -> Vec<String> {
    let mut addresses = Vec::new();
    for address in bind.argument(0).split(',') {
        match ports(address) {
            Some((host, first, last)) => {
                addresses.extend((first..=last).map(|port| format!("{host}:{port}")));
            }
            None => addresses.push(address.to_owned()),
        }
    }
    addresses
}

/// Host, first and last port of an address with a range of ports that is not too long for a listener each.
fn ports(address: &str) -> Option<(&str, u16, u16)> {
    let (host, ports) = address.rsplit_once(':')?;
    let (first, last) = ports.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last - first < MOST_PORTS).then_some((host, first, last))
}

/// Ports of a range that become listeners.
const MOST_PORTS: u16 = 64;

/// Address, certificates and proxies in front.
fn listener(address: &str, bind: &Directive, notes: &mut Notes) -> Option<Keys> {
    let mut keys = Keys::default();
    let address = address.strip_prefix("ipv4@").unwrap_or(address);
    let socket = address
        .strip_prefix("unix@")
        .or_else(|| address.starts_with('/').then_some(address));
    let address = if let Some(path) = socket {
        format!("unix:{path}")
    } else if let Some(address) = with_port(address) {
        address
    } else {
        let reason = if address.contains('$') {
            "whose variable of the environment has to be replaced by its value"
        } else {
            "which is no IP address with a port"
        };
        let message = format!("listened at `{address}`, {reason}");
        left_out(bind, &message, notes);
        return None;
    };
    keys.text("address", &address);
    if has(bind, "ssl") {
        let files: Vec<_> = crt(bind).collect();
        if files.iter().any(|file| file.ends_with('/')) {
            left_out(
                bind,
                "listened with all certificates of a folder: name each of its files",
                notes,
            );
            return None;
        }
        let pairs = files.iter().map(|file| {
            let file = toml_string(file);
            format!("{{ cert = {file}, key = {file} }}")
        });
        let pairs: Vec<_> = pairs.collect();
        match pairs.as_slice() {
            [] => {
                left_out(
                    bind,
                    "listened with certificates that are in no file here",
                    notes,
                );
                return None;
            }
            [only] => keys.set("tls", only),
            several => keys.set("tls", format!("[{}]", several.join(", "))),
        }
        let verify = after(bind, "verify").unwrap_or("none");
        match (after(bind, "ca-file"), verify) {
            (_, "none") => {}
            (Some(ca), verify) => {
                let ca = toml_string(ca);
                let required = verify == "required";
                keys.set(
                    "client_certificates",
                    format!("{{ ca = {ca}, required = {required} }}"),
                );
            }
            (None, _) => {
                left_out(bind, "accepted clients with a certificate only", notes);
                return None;
            }
        }
    }
    if has(bind, "accept-proxy") {
        keys.set("proxied_by", "[\"0.0.0.0/0\", \"::/0\"]");
        notes.add(bind, "`accept-proxy`: any client may name another address, as with HAProxy; `proxied_by` takes the networks of the proxies");
    }
    let mut words = bind.arguments.iter().skip(1);
    while let Some(word) = words.next() {
        if !READ.contains(&word.as_str()) {
            left_out(bind, &format!("listened with `{word}`"), notes);
        }
        if !["ssl", "accept-proxy", "v4v6"].contains(&word.as_str()) {
            words.next();
        }
    }
    Some(keys)
}

/// An IP address, or nothing, with a port.
fn with_port(address: &str) -> Option<String> {
    let (host, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let host = host.replace('*', "");
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let host = match ip {
        Ok(std::net::IpAddr::V6(ip)) => format!("[{ip}]"),
        Ok(std::net::IpAddr::V4(ip)) => ip.to_string(),
        Err(_) if host.is_empty() => host,
        Err(_) => return None,
    };
    Some(format!("{host}:{port}"))
}

/// The files of `crt`, of which there may be several.
fn crt(bind: &Directive) -> impl Iterator<Item = &str> {
    let words = bind.arguments.iter();
    let pairs = words.clone().zip(words.skip(1));
    pairs
        .filter(|(word, _)| *word == "crt")
        .map(|(_, file)| file.as_str())
}
