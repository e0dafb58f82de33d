//! `server` blocks: listeners, names, and the routes of their locations.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Notes;
use super::locations;
use super::nginx::Directive;
use super::real_ip::RealIp;
use super::responses;
use super::scope::{Scope, is_read};
use super::toml::{Keys, quoted};
use super::upstreams::Upstreams;
use super::variants::{host_of, is_for_plain, is_of_listener};

/// Directives that concern the process or what plimsoll does by itself.
const WITHOUT_EFFECT: [&str; 25] = [
    "user",
    "worker_processes",
    "worker_rlimit_nofile",
    "pid",
    "events",
    "error_log",
    "load_module",
    "include",
    "types",
    "default_type",
    "sendfile",
    "tcp_nopush",
    "tcp_nodelay",
    "server_tokens",
    "types_hash_max_size",
    "types_hash_bucket_size",
    "server_names_hash_bucket_size",
    "server_names_hash_max_size",
    "variables_hash_bucket_size",
    "proxy_headers_hash_bucket_size",
    "proxy_headers_hash_max_size",
    "multi_accept",
    "http2",
    "charset",
    "log_not_found",
];

/// Directives that are read where they matter.
const READ: [&str; 4] = ["http", "server", "upstream", "location"];

/// A listener of plimsoll.
#[derive(Debug, Default)]
struct Listener {
    is_tls: bool,
    has_http3: bool,
    has_proxy_protocol: bool,
    /// Files of certificates with those of their keys.
    certificates: Vec<(String, String)>,
    /// Servers on it that only lead to `https`, and others.
    redirects: usize,
    others: usize,
}

/// One server and where it listens.
struct Server<'a> {
    directive: &'a Directive,
    listeners: Vec<String>,
    names: Vec<String>,
    is_default: bool,
    is_https_redirect: bool,
    /// Hosts for which an `if` returns something else.
    returning: Vec<(&'a str, &'a Directive)>,
}

pub(super) fn translate(directives: &[Directive], out: &mut String, notes: &mut Notes) {
    let http: Vec<_> = directives.iter().filter(|it| it.name == "http").collect();
    let outer: &[Directive] = http.first().map_or(directives, |http| &http.block);
    for directive in directives {
        if directive.name == "stream" {
            notes.add(directive, "left out: TCP and UDP are not translated");
        } else if !is_known(directive) && !http.is_empty() {
            notes.left_out(directive);
        }
    }
    for directive in outer {
        if !is_known(directive) && !is_read(&directive.name) {
            notes.left_out(directive);
        }
    }
    let real_ip = RealIp::of(outer, notes);
    let mut upstreams = Upstreams::read(outer, notes);
    let mut listeners = BTreeMap::new();
    let blocks = outer.iter().filter(|it| it.name == "server");
    let servers = blocks.map(|it| server(it, real_ip.as_ref(), &mut listeners, notes));
    let servers: Vec<_> = servers.collect();
    let mut routes = String::new();
    for server in &servers {
        let is_alone = server
            .listeners
            .iter()
            .all(|it| listeners.get(it).is_some_and(|it| it.others == 0));
        if server.is_https_redirect && is_alone {
            let others = server.directive.all("location");
            for location in others.filter(|it| it.arguments != ["/"]) {
                notes.add(
                    location,
                    "left out: the listener redirects every request; challenges of ACME are answered all the same",
                );
            }
            continue;
        }
        write_routes(server, outer, &mut upstreams, &mut routes, notes);
    }
    warn_of_shared_names(&servers, notes);
    write_listeners(&listeners, real_ip.as_ref(), out);
    out.push_str(&routes);
    upstreams.write(out);
}

fn is_known(directive: &Directive) -> bool {
    let name = directive.name.as_str();
    // By which WebSockets are upgraded to; they are anyway.
    if name == "map" && directive.argument(0) == "$http_upgrade" {
        return true;
    }
    WITHOUT_EFFECT.contains(&name) || READ.contains(&name)
}

fn server<'a>(
    directive: &'a Directive,
    real_ip: Option<&RealIp>,
    listeners: &mut BTreeMap<String, Listener>,
    notes: &mut Notes,
) -> Server<'a> {
    let mut server = Server {
        directive,
        listeners: Vec::new(),
        names: Vec::new(),
        is_default: false,
        is_https_redirect: is_https_redirect(directive),
        returning: Vec::new(),
    };
    let has_plain_redirect = directive
        .all("if")
        .any(|it| is_for_plain(it) && it.last("return").is_some_and(leads_to_https));
    let certificate = directive
        .last("ssl_certificate")
        .zip(directive.last("ssl_certificate_key"));
    let certificate =
        certificate.map(|(file, key)| (file.argument(0).to_owned(), key.argument(0).to_owned()));
    let mut listens: Vec<_> = directive.all("listen").collect();
    let default = Directive {
        name: "listen".to_owned(),
        arguments: vec!["80".to_owned()],
        block: Vec::new(),
        ..directive.clone()
    };
    if listens.is_empty() {
        listens.push(&default);
    }
    for listen in listens {
        let Some(address) = address(listen.argument(0)) else {
            notes.add(
                listen,
                format!(
                    "left out: `{}` is not an address with a port",
                    listen.argument(0)
                ),
            );
            continue;
        };
        let is_new = !listeners.contains_key(&address);
        let listener = listeners.entry(address.clone()).or_default();
        let mut is_default = is_new;
        for flag in listen.arguments.iter().skip(1) {
            match flag.split('=').next().unwrap_or_default() {
                "ssl" => listener.is_tls = true,
                "quic" => {
                    listener.is_tls = true;
                    listener.has_http3 = true;
                }
                "default_server" | "default" => is_default = true,
                "proxy_protocol" => {
                    listener.has_proxy_protocol = true;
                    if real_ip.is_none_or(|it| it.proxied_by().is_none()) {
                        notes.add(
                            listen,
                            "`proxy_protocol` needs the networks of the proxies: set `proxied_by`",
                        );
                    }
                }
                // Both versions of HTTP are always served, on a socket for each worker.
                _ => {}
            }
        }
        if listener.is_tls
            && let Some(certificate) = &certificate
            && !listener.certificates.contains(certificate)
        {
            listener.certificates.push(certificate.clone());
        }
        let is_plain = !listen
            .arguments
            .iter()
            .any(|it| it == "ssl" || it == "quic");
        if server.is_https_redirect || (has_plain_redirect && is_plain) {
            listener.redirects += 1;
        } else {
            listener.others += 1;
        }
        server.is_default |= is_default;
        server.listeners.push(address);
    }
    server.returning = directive
        .all("if")
        .filter_map(|it| Some((host_of(it)?, it.last("return")?)))
        .collect();
    for names in directive.all("server_name") {
        for name in &names.arguments {
            match name.as_str() {
                "" | "_" | "default" => {}
                it if it.starts_with('~') => notes.add(
                    names,
                    format!("`{it}` is left out: a host is a name, or `*.` and a name"),
                ),
                it if it.starts_with('.') => {
                    let name = it.trim_start_matches('.');
                    server.names.extend([name.to_owned(), format!("*.{name}")]);
                }
                it if it.ends_with(".*") => notes.add(
                    names,
                    format!("`{it}` is left out: a host is a name, or `*.` and a name"),
                ),
                it => server.names.push(it.to_owned()),
            }
        }
    }
    server
}

/// Whether a server leads to the same URL by `https`, but for other locations.
fn is_https_redirect(server: &Directive) -> bool {
    let mut roots = server.all("location").filter(|it| it.arguments == ["/"]);
    let of_root = roots.next().and_then(|it| it.last("return"));
    let returned = server.last("return").or(of_root);
    if returned.is_some_and(leads_to_https) {
        return true;
    }
    // For each of its names, as certbot writes it; others get a 404.
    let mut of_hosts = server.all("if").filter(|it| host_of(it).is_some());
    server.all("location").next().is_none()
        && returned.is_none_or(|it| it.argument(0) == "404")
        && of_hosts.any(|it| it.last("return").is_some_and(leads_to_https))
}

/// Whether `return` leads to the same URL by `https`.
fn leads_to_https(returned: &Directive) -> bool {
    let target = returned.arguments.last().map_or("", String::as_str);
    let hosts = ["$host", "$server_name", "$http_host"];
    hosts
        .iter()
        .any(|host| target == format!("https://{host}$request_uri"))
}

/// The address of a listener; of `80`, `*:80`, `0.0.0.0:80` and `[::]:80` the same, which is all addresses.
fn address(text: &str) -> Option<String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Some(format!("unix:{path}"));
    }
    if text.parse::<u16>().is_ok() {
        return Some(format!(":{text}"));
    }
    let Some((host, port)) = text
        .rsplit_once(':')
        .filter(|(_, port)| port.parse::<u16>().is_ok())
    else {
        // An address without a port.
        return text
            .parse::<std::net::IpAddr>()
            .ok()
            .map(|it| format!("{it}:80"));
    };
    match host {
        "*" | "0.0.0.0" | "[::]" => Some(format!(":{port}")),
        host => Some(format!("{host}:{port}")),
    }
}

fn write_listeners(
    listeners: &BTreeMap<String, Listener>,
    real_ip: Option<&RealIp>,
    out: &mut String,
) {
    for (address, listener) in listeners {
        writeln!(out, "\n[[listen]]\naddress = {}", quoted(address)).ok();
        let proxied_by = real_ip.and_then(RealIp::proxied_by);
        if let Some(networks) = proxied_by.filter(|_| listener.has_proxy_protocol) {
            writeln!(out, "proxied_by = {networks}").ok();
        }
        if let Some(proxies) = real_ip.and_then(RealIp::trusted_proxies) {
            writeln!(out, "trusted_proxies = {proxies}").ok();
        }
        if listener.is_tls {
            let pairs = listener
                .certificates
                .iter()
                .map(|(file, key)| format!("{{ cert = {}, key = {} }}", quoted(file), quoted(key)));
            let pairs: Vec<_> = pairs.collect();
            match pairs.as_slice() {
                [] => out.push_str("tls = { self_signed = true }\n"),
                [one] => _ = writeln!(out, "tls = {one}"),
                several => _ = writeln!(out, "tls = [{}]", several.join(", ")),
            }
            if listener.has_http3 {
                out.push_str("http3 = true\n");
            }
        } else if listener.redirects > 0 && listener.others == 0 {
            out.push_str("redirect_https = { status = 301 }\n");
        }
    }
}

fn write_routes(
    server: &Server<'_>,
    outer: &[Directive],
    upstreams: &mut Upstreams,
    out: &mut String,
    notes: &mut Notes,
) {
    for directive in &server.directive.block {
        let name = directive.name.as_str();
        let is_of_listener = [
            "listen",
            "server_name",
            "ssl_certificate",
            "ssl_certificate_key",
        ]
        .contains(&name);
        if !is_of_listener && !is_known(directive) && !is_read(name) {
            notes.left_out(directive);
        }
    }
    for directive in server.directive.all("if").filter(|it| is_of_listener(it)) {
        let returned = directive.last("return");
        let is_read = returned.is_some_and(|it| {
            host_of(directive).is_some() || (is_for_plain(directive) && leads_to_https(it))
        });
        if !is_read {
            notes.left_out(directive);
        }
    }
    for (host, returned) in &server.returning {
        let mut keys = Keys::default();
        keys.text("host", host);
        keys.text("prefix", "/");
        responses::returned(returned, None, &mut keys, notes);
        out.push_str("\n[[route]]\n");
        keys.lines(out);
    }
    let scope = Scope::new(outer).within(&server.directive.block);
    let routes = locations::routes(server.directive, &scope, upstreams, notes);
    let mut hosts: Vec<Option<&str>> = server
        .names
        .iter()
        .map(|name| Some(name.as_str()))
        .filter(|name| {
            !server
                .returning
                .iter()
                .any(|(host, _)| *name == Some(*host))
        })
        .collect();
    if server.is_default || hosts.is_empty() {
        hosts.push(None);
    }
    for host in hosts {
        for route in &routes {
            out.push_str("\n[[route]]\n");
            if let Some(host) = host {
                writeln!(out, "host = {}", quoted(host)).ok();
            }
            out.push_str(route);
        }
    }
}

/// Routes are the same on every listener: servers of one name on several ports become one.
fn warn_of_shared_names(servers: &[Server<'_>], notes: &mut Notes) {
    for (at, server) in servers.iter().enumerate() {
        let before = servers.iter().take(at);
        let mut before = before.filter(|it| !it.is_https_redirect && !server.is_https_redirect);
        let shares = |other: &Server<'_>| {
            server.names.iter().any(|name| other.names.contains(name))
                || (server.is_default && other.is_default)
        };
        if before.any(shares) {
            notes.add(
                server.directive,
                "another server has the same name, or is a default too: routes are the same on every listener, and the first one that matches counts",
            );
        }
    }
}
