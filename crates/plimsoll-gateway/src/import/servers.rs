//! `server` blocks: listeners, names, and the routes of their locations.
//!
//! A server responds on its own listeners only, and there to its names and, if it is the default of the listener, to all
//! others. Of servers with the same name the first one counts, as in nginx.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;

use plimsoll_model::document::toml_string;
use plimsoll_server::Address;

use super::Notes;
use super::access;
use super::client_certificates::ClientCertificates;
use super::fates::{self, Level};
use super::limits;
use super::locations;
use super::logs;
use super::maps;
use super::nginx::Directive;
use super::real_ip::RealIp;
use super::responses;
use super::route::Route;
use super::scope::Scope;
use super::stream;
use super::toml::Keys;
use super::upstreams::{UpstreamKind, UpstreamText, Upstreams};
use super::variants::{host_of, hosts_except, is_for_plain, is_guard, is_of_listener};

/// A listener of plimsoll.
#[derive(Debug, Default)]
struct Listener {
    is_tls: bool,
    has_http3: bool,
    has_proxy_protocol: bool,
    /// Files of certificates with those of their keys.
    certificates: Vec<(String, String)>,
    /// Its servers by their numbers, and whether they are its default in so many words.
    servers: Vec<(usize, bool)>,
    /// Servers on it that do more than lead to `https`.
    others: usize,
    /// The certificates that its servers want of clients.
    client_certificates: Vec<Option<ClientCertificates>>,
}

impl Listener {
    /// The server for names that none of them has.
    fn default_server(&self) -> Option<usize> {
        let named = self.servers.iter().find(|(_, is_default)| *is_default);
        named.or(self.servers.first()).map(|(number, _)| *number)
    }

    /// All of its servers turn HTTP/2 off.
    fn is_without_http2(&self, servers: &[Server<'_>]) -> bool {
        let is_off = |(number, _): &(usize, bool)| {
            let server = servers.get(*number);
            server.is_some_and(|it| it.without_http2.is_some())
        };
        self.servers.iter().all(is_off)
    }

    /// It leads every client to `https`.
    fn is_redirect(&self) -> bool {
        !self.is_tls && !self.servers.is_empty() && self.others == 0
    }
}

/// One server and where it listens.
struct Server<'a> {
    number: usize,
    directive: &'a Directive,
    listeners: Vec<String>,
    /// Those of its listeners on which it leads to `https` alone.
    redirecting: Vec<String>,
    names: Vec<String>,
    /// It has names that the key `host` does not take, and keeps somebody out.
    is_closing_others: bool,
    is_https_redirect: bool,
    client_certificates: Option<ClientCertificates>,
    /// The directive that turns HTTP/2 off.
    without_http2: Option<&'a Directive>,
    /// Hosts for which an `if` returns something else.
    returning: Vec<(&'a str, &'a Directive)>,
    /// What an `if` returns for all hosts but these.
    excepting: Option<(Vec<&'a str>, &'a Directive)>,
}

impl Server<'_> {
    /// The listeners on which a request for this host is one for the server; `None` is a host that no server has.
    fn listeners_of(
        &self,
        host: Option<&str>,
        servers: &[Server<'_>],
        listeners: &BTreeMap<String, Listener>,
    ) -> Vec<String> {
        let is_own = |address: &&String| {
            let Some(listener) = listeners.get(*address) else {
                return false;
            };
            let has_name = |number: &usize| {
                let server = servers.get(*number);
                server.is_some_and(|it| {
                    host.is_some_and(|host| it.names.iter().any(|name| name == host))
                })
            };
            let mut numbers = listener.servers.iter().map(|(number, _)| *number);
            let owner = numbers.find(has_name).or(listener.default_server());
            owner == Some(self.number)
        };
        self.listeners.iter().filter(is_own).cloned().collect()
    }
}

/// The parts of the file for `plimsoll up`.
pub(super) struct Translation {
    /// What it comes from, for the first line.
    pub(super) source: &'static str,
    /// Limits and listeners.
    pub(super) head: String,
    pub(super) routes: Vec<Route>,
    pub(super) upstreams: Vec<UpstreamText>,
    /// The file, and where its servers begin.
    pub(super) at: (Rc<str>, usize),
}

pub(super) fn translate(directives: &[Directive], notes: &mut Notes) -> Translation {
    let http = directives.iter().find(|it| it.name == "http");
    let outer: &[Directive] = http.map_or(directives, |http| &http.block);
    let level = if http.is_some() {
        Level::Main
    } else {
        Level::Http
    };
    fates::report(directives, level, notes);
    let real_ip = RealIp::from_directives(outer, notes);
    let mut upstreams = Upstreams::read(outer, UpstreamKind::Http, notes);
    let mut listeners = BTreeMap::new();
    let blocks = outer.iter().filter(|it| it.name == "server").enumerate();
    let servers = blocks
        .map(|(number, it)| server(number, it, outer, real_ip.as_ref(), &mut listeners, notes));
    let servers: Vec<_> = servers.collect();
    for server in &servers {
        let mut own = server.listeners.iter().filter_map(|it| listeners.get(it));
        let is_spoken = own.any(|it| !it.is_without_http2(&servers));
        if let Some(off) = server.without_http2.filter(|_| is_spoken) {
            notes.add(
                off,
                "left out: another server of the listener speaks HTTP/2, so all of them do; nginx would refuse it for this one",
            );
        }
    }
    let mut written = Written {
        listeners: &listeners,
        servers: &servers,
        named: Vec::new(),
        routes: Vec::new(),
    };
    for server in &servers {
        let is_alone = server
            .listeners
            .iter()
            .all(|it| listeners.get(it).is_some_and(Listener::is_redirect));
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
        write_routes(server, outer, &mut upstreams, &mut written, notes);
    }
    let Written { named, routes, .. } = written;
    let allows_underscores: Vec<_> = servers
        .iter()
        .map(|it| {
            let scope = Scope::new(outer).within(&it.directive.block);
            // Such a field is one with a wrong name otherwise.
            scope.is("underscores_in_headers", "on") || scope.is("ignore_invalid_headers", "off")
        })
        .collect();
    let mut limits = String::new();
    limits::write_drain(directives, &mut limits, notes);
    limits::write(outer, &mut limits, notes);
    logs::write(outer, &mut limits, notes);
    maps::write(outer, &mut limits, notes);
    write_listeners(
        (&listeners, &servers),
        &named,
        real_ip.as_ref(),
        &allows_underscores,
        &mut limits,
    );
    let stream = stream::translate(directives, notes);
    limits.push_str(&stream.listeners);
    let mut upstreams = upstreams.written();
    upstreams.extend(stream.upstreams);
    if listeners.is_empty() && stream.listeners.is_empty() {
        // A file without listeners does not load.
        limits.push_str("\n[[listen]]\naddress = \"127.0.0.1:8080\"\n");
        if let Some(first) = directives.first() {
            notes.add(
                first,
                "no server listens anywhere: a listener of this machine stands in",
            );
        }
    }
    Translation {
        source: "nginx",
        head: limits,
        routes,
        upstreams,
        at: directives
            .first()
            .map_or((Rc::from(""), 1), |it| (Rc::clone(&it.file), it.line)),
    }
}

fn server<'a>(
    number: usize,
    directive: &'a Directive,
    outer: &'a [Directive],
    real_ip: Option<&RealIp>,
    listeners: &mut BTreeMap<String, Listener>,
    notes: &mut Notes,
) -> Server<'a> {
    let mut server = Server {
        number,
        directive,
        listeners: Vec::new(),
        redirecting: Vec::new(),
        names: Vec::new(),
        is_closing_others: false,
        is_https_redirect: is_https_redirect(directive),
        client_certificates: None,
        without_http2: None,
        returning: Vec::new(),
        excepting: None,
    };
    let has_plain_redirect = directive.all("if").any(is_plain_redirect);
    let scope = Scope::new(outer).within(&directive.block);
    let certificates = certificates(&scope, notes);
    server.client_certificates = ClientCertificates::of_server(&scope, notes);
    let mut listens: Vec<_> = directive.all("listen").collect();
    let is_on = |it: &&Directive| it.arguments.iter().any(|flag| flag == "http2");
    let without_http2 = scope.last("http2").filter(|it| it.argument(0) == "off");
    server.without_http2 = without_http2.filter(|_| !listens.iter().any(is_on));
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
        let has = |flag: &str| listen.arguments.iter().any(|it| it == flag);
        let is_tls = has("ssl") || has("quic") || scope.is("ssl", "on");
        let is_socket = address.starts_with("unix:");
        if is_socket && (is_tls || has("proxy_protocol")) {
            notes.add(
                listen,
                "left out: a socket in the file system has neither TLS nor PROXY headers",
            );
            continue;
        }
        let listener = listeners.entry(address.clone()).or_default();
        listener.is_tls |= is_tls;
        listener.has_http3 |= has("quic");
        if has("proxy_protocol") {
            listener.has_proxy_protocol = true;
            if real_ip.is_none_or(|it| it.proxied_by().is_none()) {
                notes.add(
                    listen,
                    "`proxy_protocol` needs the networks of the proxies: set `proxied_by`",
                );
            }
        }
        if is_tls {
            for certificate in &certificates {
                if !listener.certificates.contains(certificate) {
                    listener.certificates.push(certificate.clone());
                }
            }
            listener
                .client_certificates
                .push(server.client_certificates.clone());
        }
        let is_default = has("default_server") || has("default");
        // One `listen` is for TCP and one for QUIC, or one for each family of addresses.
        if server.listeners.contains(&address) {
            if let Some((_, known)) = listener.servers.iter_mut().find(|(it, _)| *it == number) {
                *known |= is_default;
            }
            continue;
        }
        listener.servers.push((number, is_default));
        if server.is_https_redirect || (has_plain_redirect && !is_tls) {
            server.redirecting.push(address.clone());
        } else {
            listener.others += 1;
        }
        server.listeners.push(address);
    }
    server.returning = directive
        .all("if")
        .filter_map(|it| Some((host_of(it)?, it.last("return")?)))
        .filter(|(host, _)| is_host(host))
        .collect();
    server.excepting = directive
        .all("if")
        .find_map(|it| Some((hosts_except(it)?, it.last("return")?)));
    for names in directive.all("server_name") {
        for name in &names.arguments {
            match name.as_str() {
                "" | "_" | "default" => {}
                it if it.starts_with('.') && is_host(it.trim_start_matches('.')) => {
                    let name = it.trim_start_matches('.');
                    server.names.extend([name.to_owned(), format!("*.{name}")]);
                }
                it if is_host(it) => server.names.push(it.to_ascii_lowercase()),
                it => {
                    let scope = Scope::new(outer).within(&directive.block);
                    server.is_closing_others |=
                        scope.find(access::closes).is_some() || closes_within(directive);
                    notes.add(
                        names,
                        format!("`{it}` is left out: a host is a name, or `*.` and a name"),
                    );
                }
            }
        }
    }
    server
}

/// Whether a location, or one within it, keeps somebody out.
fn closes_within(block: &Directive) -> bool {
    block
        .block
        .iter()
        .any(|it| access::closes(it) || closes_within(it))
}

/// Whether a name is one that the key `host` takes.
fn is_host(name: &str) -> bool {
    let bare = name.strip_prefix("*.").unwrap_or(name);
    !bare.is_empty()
        && bare
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// The certificates of a server, each with its key.
fn certificates(scope: &Scope<'_>, notes: &mut Notes) -> Vec<(String, String)> {
    let keys = scope.all("ssl_certificate_key");
    let pairs = scope.all("ssl_certificate").into_iter().zip(keys);
    let mut certificates = Vec::new();
    for (file, key) in pairs {
        let is_file =
            |it: &str| !it.contains('$') && !it.starts_with("data:") && !it.starts_with("engine:");
        if is_file(file.argument(0)) && is_file(key.argument(0)) {
            certificates.push((file.argument(0).to_owned(), key.argument(0).to_owned()));
        } else {
            notes.add(file, "left out: a certificate and its key are files");
        }
    }
    certificates
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

/// Whether an `if` leads requests without TLS to the same URL by `https`.
fn is_plain_redirect(condition: &Directive) -> bool {
    is_for_plain(condition) && condition.last("return").is_some_and(leads_to_https)
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
pub(super) fn address(text: &str) -> Option<String> {
    let address = if text.starts_with("unix:") || text.contains('/') {
        text.to_owned()
    } else if text.parse::<u16>().is_ok() {
        format!(":{text}")
    } else if let Ok(ip) = text.parse::<std::net::IpAddr>() {
        format!("{ip}:80")
    } else {
        match text.rsplit_once(':') {
            Some(("*" | "0.0.0.0" | "[::]", port)) => format!(":{port}"),
            Some(("localhost", port)) => format!("127.0.0.1:{port}"),
            Some((host, "")) => format!("{host}:80"),
            Some(_) => text.to_owned(),
            None if text == "*" || text == "[::]" => ":80".to_owned(),
            None => format!("{text}:80"),
        }
    };
    address.parse::<Address>().is_ok().then_some(address)
}

/// - `allows_underscores`: whether each server lets fields with `_` pass. That of the default server counts.
fn write_listeners(
    (listeners, servers): (&BTreeMap<String, Listener>, &[Server<'_>]),
    named: &[String],
    real_ip: Option<&RealIp>,
    allows_underscores: &[bool],
    out: &mut String,
) {
    for (address, listener) in listeners {
        writeln!(out, "\n[[listen]]\naddress = {}", toml_string(address)).ok();
        if named.contains(address) {
            writeln!(out, "name = {}", toml_string(address)).ok();
        }
        if listener.is_without_http2(servers) {
            out.push_str("http2 = false\n");
        }
        let is_socket = address.starts_with("unix:");
        let proxied_by = real_ip.and_then(RealIp::proxied_by);
        if let Some(networks) = proxied_by.filter(|_| listener.has_proxy_protocol) {
            writeln!(out, "proxied_by = {networks}").ok();
        }
        let proxies = real_ip.and_then(RealIp::trusted_proxies);
        if let Some(proxies) = proxies.filter(|_| !is_socket) {
            writeln!(out, "trusted_proxies = {proxies}").ok();
        }
        if listener.is_tls {
            let pairs = listener.certificates.iter().map(|(file, key)| {
                format!(
                    "{{ cert = {}, key = {} }}",
                    toml_string(file),
                    toml_string(key)
                )
            });
            let pairs: Vec<_> = pairs.collect();
            match pairs.as_slice() {
                [] => out.push_str("tls = { self_signed = true }\n"),
                [one] => _ = writeln!(out, "tls = {one}"),
                several => _ = writeln!(out, "tls = [{}]", several.join(", ")),
            }
            if listener.has_http3 {
                out.push_str("http3 = true\n");
            }
            if let Some(wanted) = ClientCertificates::of_listener(&listener.client_certificates) {
                let ca = toml_string(wanted.ca.as_deref().unwrap_or_default());
                let required = wanted.required;
                writeln!(
                    out,
                    "client_certificates = {{ ca = {ca}, required = {required} }}"
                )
                .ok();
            }
        } else if listener.is_redirect() {
            out.push_str("redirect_https = { status = 301 }\n");
            continue;
        }
        let default_server = listener.default_server();
        let is_allowed = default_server.and_then(|it| allows_underscores.get(it));
        out.push_str(match is_allowed {
            Some(true) => "underscores = \"allow\"\n",
            _ => "underscores = \"drop\"\n",
        });
    }
}

/// The routes so far, and what they are written by.
struct Written<'a> {
    listeners: &'a BTreeMap<String, Listener>,
    servers: &'a [Server<'a>],
    /// Listeners that routes name.
    named: Vec<String>,
    routes: Vec<Route>,
}

impl Written<'_> {
    /// Writes routes for a host on these listeners alone, unless they are all that there are.
    fn push(&mut self, host: Option<&str>, on: &[String], routes: &[Route]) {
        let mut serving = self.listeners.iter().filter(|(_, it)| !it.is_redirect());
        let is_everywhere = serving.all(|(address, _)| on.contains(address));
        if on.is_empty() {
            return;
        }
        let mut conditions = String::new();
        if !is_everywhere {
            self.named.extend(on.iter().cloned());
            let on: Vec<_> = on.iter().map(|it| toml_string(it)).collect();
            writeln!(conditions, "listen = [{}]", on.join(", ")).ok();
        }
        if let Some(host) = host {
            writeln!(conditions, "host = {}", toml_string(host)).ok();
        }
        for route in routes {
            let mut route = route.clone();
            if route.name.is_none() {
                route.text.insert_str(0, &conditions);
            } else if self.routes.iter().any(|it| it.name == route.name) {
                // There is one for all hosts and listeners.
                continue;
            }
            self.routes.push(route);
        }
    }
}

fn write_routes(
    server: &Server<'_>,
    outer: &[Directive],
    upstreams: &mut Upstreams,
    written: &mut Written<'_>,
    notes: &mut Notes,
) {
    for directive in server.directive.all("if").filter(|it| is_of_listener(it)) {
        if !is_translated(directive) && !is_guard(directive) {
            notes.left_out_of_nginx(directive);
        }
        for other in directive.block.iter().filter(|it| it.name != "return") {
            notes.left_out_of_nginx(other);
        }
    }
    let scope = Scope::new(outer).within(&server.directive.block);
    let mut routes = if is_closed(server, written.listeners, notes) {
        let mut keys = Keys::default();
        keys.text("prefix", "/");
        access::forbid(&mut keys);
        vec![Route::new(&keys, server.directive)]
    } else {
        locations::routes(server.directive, &scope, upstreams, notes)
    };
    let certified = if server.requires_by_routes(written.listeners) {
        "client_certificate = { status = 400 }\n"
    } else {
        ""
    };
    let returns = |returned: &Directive, notes: &mut Notes| {
        let mut keys = Keys::default();
        keys.text("prefix", "/");
        responses::returned(returned, None, &scope, &mut keys, notes);
        let mut route = Route::new(&keys, returned);
        route.text.push_str(certified);
        route
    };
    for route in &mut routes {
        route.text.push_str(certified);
    }
    let mut hosts: Vec<(Option<&str>, Option<&Directive>)> = Vec::new();
    for (host, returned) in &server.returning {
        hosts.push((Some(host), Some(returned)));
    }
    let is_returning = |name: &str| server.returning.iter().any(|(host, _)| *host == name);
    let names = server.names.iter().map(String::as_str);
    let names = names.filter(|it| !is_returning(it));
    let others = match &server.excepting {
        None => {
            hosts.extend(names.map(|it| (Some(it), None)));
            None
        }
        Some((admitted, returned)) => {
            hosts.extend(admitted.iter().map(|it| (Some(*it), None)));
            let rest = names.filter(|it| !admitted.contains(it));
            hosts.extend(rest.map(|it| (Some(it), Some(*returned))));
            Some(*returned)
        }
    };
    hosts.push((None, others));
    let mut redirect = Keys::default();
    redirect.text("prefix", "/");
    redirect.set(
        "redirect",
        "{ to = \"https://{host}{path}{query}\", status = 301 }",
    );
    let redirect = [Route::new(&redirect, server.directive)];
    let mut is_reached = false;
    for (host, returned) in hosts {
        let on = server.listeners_of(host, written.servers, written.listeners);
        if on.is_empty() {
            if let Some(host) = host {
                notes.add(
                    server.directive,
                    format!("`{host}` is left out: an earlier server has the name"),
                );
            }
            continue;
        }
        is_reached = true;
        let on = match host {
            None => close_others(server, on, written, notes),
            Some(_) => on,
        };
        let of_host = match returned {
            Some(returned) => &[returns(returned, notes)],
            None => routes.as_slice(),
        };
        let (redirecting, serving): (Vec<_>, Vec<_>) = on
            .into_iter()
            .partition(|it| server.redirecting.contains(it));
        written.push(host, &serving, of_host);
        // Where another server shares the listener, which so has no redirect of its own.
        let is_shared = |it: &String| {
            written
                .listeners
                .get(it)
                .is_some_and(|it| !it.is_redirect())
        };
        let shared: Vec<_> = redirecting.into_iter().filter(is_shared).collect();
        let on_plain = if server.is_https_redirect {
            of_host
        } else {
            &redirect
        };
        written.push(host, &shared, on_plain);
    }
    if !is_reached {
        notes.add(
            server.directive,
            "left out: no request is for it, since another server is the default of its listeners",
        );
    }
}

/// Closes the default of those listeners that have a server for names without a counterpart, which keeps somebody out: its
/// hosts would get what the default has. Returns the other listeners.
fn close_others(
    server: &Server<'_>,
    on: Vec<String>,
    written: &mut Written<'_>,
    notes: &mut Notes,
) -> Vec<String> {
    let servers = written.servers;
    let closing = |address: &String| {
        let listener = written.listeners.get(address)?;
        let mut others = listener
            .servers
            .iter()
            .filter_map(|(it, _)| servers.get(*it));
        others.find(|it| it.number != server.number && it.is_closing_others)
    };
    let (closed, open): (Vec<_>, Vec<_>) = on
        .into_iter()
        .partition(|it| !server.redirecting.contains(it) && closing(it).is_some());
    if let Some(other) = closed.first().and_then(closing) {
        let names = other
            .directive
            .last("server_name")
            .unwrap_or(other.directive);
        notes.add(
            names,
            "hosts that no server names get a 403, also those of the default server: this one keeps clients out, and some of its names cannot be translated",
        );
        let route = Route::closing("prefix = \"/\"", server.directive);
        written.push(None, &closed, &[route]);
    }
    open
}

/// Whether something keeps clients out of the whole server that cannot be translated.
fn is_closed(
    server: &Server<'_>,
    listeners: &BTreeMap<String, Listener>,
    notes: &mut Notes,
) -> bool {
    let mut conditions = server.directive.all("if").filter(|it| is_of_listener(it));
    let guard = conditions.find(|it| !is_translated(it) && is_guard(it));
    if let Some(guard) = guard {
        notes.add(
            guard,
            "the server responds with 403: its condition keeps clients out and cannot be translated",
        );
        return true;
    }
    let Some(wanted) = server.client_certificates.as_ref() else {
        return false;
    };
    let has_plain = server.serving_plain(listeners);
    let is_kept = server.listeners.iter().all(|address| {
        let listener = listeners.get(address).filter(|it| it.is_tls);
        listener.is_none_or(|it| {
            let asked = ClientCertificates::of_listener(&it.client_certificates);
            asked.is_some_and(|asked| {
                let is_required = asked.required || !wanted.required || !has_plain;
                asked.ca == wanted.ca && is_required
            })
        })
    });
    if is_kept {
        return false;
    }
    let reason = "servers of one listener want different certificates of clients, and it asks all of them for the same";
    let verify = server.directive.last("ssl_verify_client");
    let at = verify.unwrap_or(server.directive);
    if wanted.required {
        notes.add(at, format!("the server responds with 403: {reason}"));
    } else {
        notes.add(at, format!("left out: {reason}"));
    }
    wanted.required
}

impl Server<'_> {
    /// Whether it serves more than redirects without TLS too.
    fn serving_plain(&self, listeners: &BTreeMap<String, Listener>) -> bool {
        let mut serving = self.listeners.iter();
        serving.any(|it| {
            let is_plain = listeners.get(it).is_some_and(|it| !it.is_tls);
            is_plain && !self.redirecting.contains(it)
        })
    }

    /// Whether its routes require certificates, since its listeners ask for them and let clients without any in.
    fn requires_by_routes(&self, listeners: &BTreeMap<String, Listener>) -> bool {
        let is_required = self.client_certificates.as_ref();
        is_required.is_some_and(|it| it.required)
            && self.listeners.iter().any(|address| {
                let listener = listeners.get(address).filter(|it| it.is_tls);
                let asked = listener
                    .and_then(|it| ClientCertificates::of_listener(&it.client_certificates));
                asked.is_some_and(|it| !it.required)
            })
    }
}

/// Whether an `if` of the server chooses a host or leads to `https`, which has a counterpart.
fn is_translated(condition: &Directive) -> bool {
    let is_of_host = host_of(condition).is_some_and(is_host) || hosts_except(condition).is_some();
    condition.last("return").is_some() && (is_of_host || is_plain_redirect(condition))
}
