//! `server` blocks: listeners, names, and the routes of their locations.
//!
//! A server responds on its own listeners only, and there to its names and, if it is the default of the listener, to all
//! others. Of servers with the same name the first one counts, as in nginx.

mod listeners;

mod routes;

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_server::Address;

use self::listeners::{Listener, write_listeners};
use self::routes::{Written, write_routes};
use super::Notes;
use super::access;
use super::client_certificates::ClientCertificates;
use super::fates::{self, Level};
use super::limits;
use super::logs;
use super::maps;
use super::nginx::Directive;
use super::real_ip::RealIp;
use super::route::Route;
use super::scope::Scope;
use super::stream;
use super::upstreams::{UpstreamKind, UpstreamText, Upstreams};
use super::variants::{host_of, hosts_except, is_for_plain};

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
