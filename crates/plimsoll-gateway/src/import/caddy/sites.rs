//! Sites: their addresses as listeners with certificates, and their routes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::route::Route;
use super::super::rows::Rows;
use super::super::rows::maps::Maps;
use super::super::toml::Keys;
use super::super::upstreams::UpstreamText;
use super::errors::error_pages;
use super::handlers::{Scope, steps};
use super::matcher::{Named, networks_of};
use super::rewriting::Rewriting;
use super::syntax::SiteBlock;
use super::values::duration;

/// All sites so far.
#[derive(Default)]
pub(super) struct Sites {
    pub(super) routes: Vec<Route>,
    pub(super) upstreams: Vec<UpstreamText>,
    /// By their ports.
    listeners: BTreeMap<u16, Listener>,
    options: Options,
    maps: Maps,
    /// `[log]`.
    log: Option<String>,
    /// The first site whose certificate is ordered.
    first: Option<Directive>,
}

#[derive(Default)]
struct Listener {
    is_tls: bool,
    /// Certificates with their keys.
    files: Vec<String>,
    /// Names whose certificates are ordered.
    ordered: Vec<String>,
    /// Names whose certificates are made here.
    own: Vec<String>,
}

/// Options of the whole file.
struct Options {
    http_port: u16,
    https_port: u16,
    email: Option<String>,
    directory: Option<String>,
    has_local_certificates: bool,
    /// Redirects from HTTP are made by the sites themselves.
    no_redirects: bool,
    /// No certificates either.
    no_https: bool,
    drain: Option<String>,
    trusted: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            http_port: 80,
            https_port: 443,
            email: None,
            directory: None,
            has_local_certificates: false,
            no_redirects: false,
            no_https: false,
            drain: None,
            trusted: Vec::new(),
        }
    }
}

/// An address of a site.
struct Address {
    port: u16,
    is_tls: bool,
    /// `None` stands for all hosts.
    host: Option<String>,
}

impl Sites {
    pub(super) fn new(options: &[Directive], notes: &mut Notes) -> Self {
        let mut sites = Self::default();
        for option in options {
            sites.option(option, notes);
        }
        sites
    }

    fn option(&mut self, option: &Directive, notes: &mut Notes) {
        let options = &mut self.options;
        let value = option.argument(0);
        match option.name.as_str() {
            "email" => options.email = Some(value.to_owned()),
            "http_port" => options.http_port = value.parse().unwrap_or(80),
            "https_port" => options.https_port = value.parse().unwrap_or(443),
            "acme_ca" => options.directory = Some(value.to_owned()),
            "local_certs" => options.has_local_certificates = true,
            "auto_https" => match value {
                "off" => (options.no_https, options.no_redirects) = (true, true),
                "disable_redirects" => options.no_redirects = true,
                _ => notes.add(option, "left out"),
            },
            "grace_period" => options.drain = duration(value),
            "admin" if value == "off" => {}
            "admin" => notes.add(
                option,
                "left out: `[admin]` has pages and figures, no API that loads configurations",
            ),
            // Levels of Caddy's own messages, and the order of plugins.
            "debug" | "order" | "log" | "persist_config" => {}
            "servers" => {
                for within in &option.block {
                    match (within.name.as_str(), within.argument(0)) {
                        ("trusted_proxies", "static") => {
                            let networks = within.arguments.iter().skip(1);
                            options
                                .trusted
                                .extend(networks.flat_map(|it| networks_of(it)));
                        }
                        ("protocols" | "metrics", _) => {}
                        _ => notes.left_out(within),
                    }
                }
            }
            _ => notes.left_out(option),
        }
    }

    /// Adds a site with its listeners and routes.
    ///
    /// - `is_alone`: there is no other one.
    pub(super) fn add(&mut self, site: &SiteBlock, is_alone: bool, notes: &mut Notes) {
        let mut hosts: BTreeMap<(u16, bool), Vec<Option<String>>> = BTreeMap::new();
        for text in &site.addresses {
            let Some(address) = self.address(text) else {
                notes.add(
                    &site.head,
                    format!("`{text}` is left out: it is no host with a port"),
                );
                continue;
            };
            let known = hosts.entry((address.port, address.is_tls)).or_default();
            known.push(address.host);
        }
        let tls = site.head.block.iter().rev().find(|it| it.name == "tls");
        for ((port, is_tls), hosts) in &hosts {
            self.listen(*port, *is_tls, hosts, tls, &site.head, notes);
        }
        for log in site.head.block.iter().filter(|it| it.name == "log") {
            self.log(log, notes);
        }
        let mut scope = Scope {
            upstreams: &mut self.upstreams,
            root: None,
            stripped: None,
            notes,
        };
        let block = steps(&site.head, &Named::none(), Rewriting::default(), &mut scope);
        let mut rows = Rows::of_site(&block, &site.head, is_alone, notes);
        rows.in_order();
        let pages = error_pages(&site.head, &mut rows, notes);
        for ((port, _), hosts) in &hosts {
            for host in hosts {
                for action in &rows.0 {
                    for keys in
                        action.routes(host.as_deref(), &listener_name(*port), &mut self.maps)
                    {
                        self.routes.push(match &action.name {
                            None => Route::new(&keys, &action.directive),
                            Some(name) => Route::named(name, &keys, &action.directive),
                        });
                    }
                }
            }
        }
        self.routes.extend(pages);
    }

    fn address(&self, text: &str) -> Option<Address> {
        let (scheme, rest) = match text.split_once("://") {
            None => (None, text),
            Some((scheme @ ("http" | "https"), rest)) => (Some(scheme), rest),
            Some(_) => return None,
        };
        let rest = rest.trim_end_matches('/');
        if rest.contains('/') || rest.contains('{') {
            return None;
        }
        let is_ip = rest.starts_with('[');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !is_ip || host.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (rest, None),
        };
        let labels = host.strip_prefix("*.").unwrap_or(host).split('.');
        let is_host = if is_ip {
            host.trim_matches(['[', ']'])
                .parse::<std::net::Ipv6Addr>()
                .is_ok()
        } else {
            host.is_empty() || host.len() <= 253 && labels.into_iter().all(is_label)
        };
        let host = (!host.is_empty()).then(|| host.to_ascii_lowercase());
        if !is_host || port == Some(0) {
            return None;
        }
        let is_tls = match (scheme, port) {
            (Some(scheme), _) => scheme == "https",
            (None, Some(port)) if port == self.options.http_port => false,
            (None, Some(port)) if port == self.options.https_port => true,
            // A host has a certificate, a port alone has none.
            (None, _) => host.is_some(),
        } && !self.options.no_https;
        let usual = if is_tls {
            self.options.https_port
        } else {
            self.options.http_port
        };
        Some(Address {
            port: port.unwrap_or(usual),
            is_tls,
            host,
        })
    }

    fn listen(
        &mut self,
        port: u16,
        is_tls: bool,
        hosts: &[Option<String>],
        tls: Option<&Directive>,
        site: &Directive,
        notes: &mut Notes,
    ) {
        let listener = self.listeners.entry(port).or_default();
        if !is_tls {
            return;
        }
        listener.is_tls = true;
        let names = || hosts.iter().flatten();
        let mut is_internal = self.options.has_local_certificates;
        if let Some(tls) = tls {
            match tls.arguments.as_slice() {
                [certificate, key] => {
                    let (certificate, key) = (toml_string(certificate), toml_string(key));
                    listener
                        .files
                        .push(format!("{{ cert = {certificate}, key = {key} }}"));
                    return;
                }
                [word] if word == "internal" => is_internal = true,
                [word] if word.contains('@') => self.options.email = Some(word.clone()),
                _ => {}
            }
            for within in &tls.block {
                match within.name.as_str() {
                    "protocols" | "ciphers" | "curves" | "alpn" => {}
                    "issuer" if within.argument(0) == "internal" => is_internal = true,
                    "client_auth" => notes.add(
                        within,
                        "left out: write `client_certificates` into the `[[listen]]`, since clients without one are let in now",
                    ),
                    _ => notes.left_out(within),
                }
            }
        }
        for name in names() {
            let last = name.rsplit('.').next().unwrap_or_default();
            let is_local = !name.contains('.')
                || ["localhost", "local", "internal"].contains(&last)
                || name
                    .trim_matches(['[', ']'])
                    .parse::<std::net::IpAddr>()
                    .is_ok();
            if is_internal || is_local {
                listener.own.push(name.trim_matches(['[', ']']).to_owned());
            } else if name.starts_with("*.") {
                notes.add(site, format!("`{name}`: certificates for all subdomains are not ordered: give a certificate by `tls` of the `[[listen]]`"));
            } else {
                listener.ordered.push(name.clone());
                self.first.get_or_insert_with(|| site.clone());
            }
        }
    }

    /// `log`, of which there is one for all sites.
    fn log(&mut self, log: &Directive, notes: &mut Notes) {
        let output = log.last("output");
        let file = match output.map(|it| (it.argument(0), it.argument(1))) {
            None | Some(("stdout" | "stderr", _)) => "-",
            Some(("file", file)) => file,
            Some(("discard", _)) => return,
            Some(_) => {
                notes.left_out(log);
                return;
            }
        };
        let text = format!("file = {}\n", toml_string(file));
        match &self.log {
            Some(known) if *known != text => {
                notes.add(
                    log,
                    "left out: there is one access log for all sites; its lines have the host",
                );
            }
            _ => self.log = Some(text),
        }
    }

    /// Whether any site listens.
    pub(super) fn has_listener(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Listeners and what else comes before the routes.
    pub(super) fn head(&mut self, notes: &mut Notes) -> String {
        let mut head = String::new();
        if let Some(drain) = &self.options.drain {
            writeln!(head, "drain = {drain}").ok();
        }
        let (http, https) = (self.options.http_port, self.options.https_port);
        let secured = self.listeners.get(&https).is_some_and(|it| it.is_tls);
        let redirects =
            secured && !self.options.no_redirects && !self.listeners.contains_key(&http);
        for (port, listener) in &self.listeners {
            let mut keys = Keys::default();
            keys.text("address", &format!(":{port}"));
            keys.text("name", &listener_name(*port));
            if let Some(tls) = self.tls(listener, notes) {
                keys.set("tls", tls);
            }
            if !self.options.trusted.is_empty() {
                let networks = self.options.trusted.iter().map(|it| toml_string(it));
                let networks = networks.collect::<Vec<_>>().join(", ");
                keys.set("trusted_proxies", format!("[{networks}]"));
            }
            head.push_str("\n[[listen]]\n");
            keys.lines(&mut head);
        }
        if redirects {
            let mut keys = Keys::default();
            keys.text("address", &format!(":{http}"));
            keys.text("name", &listener_name(http));
            keys.set("redirect_https", "true");
            head.push_str("\n[[listen]]\n");
            keys.lines(&mut head);
        }
        if let Some(log) = &self.log {
            write!(head, "\n[log]\n{log}").ok();
        }
        self.maps.write(&mut head);
        head
    }

    fn tls(&self, listener: &Listener, notes: &mut Notes) -> Option<String> {
        if !listener.is_tls {
            return None;
        }
        let mut all = listener.files.clone();
        if !listener.ordered.is_empty() {
            let names = listener.ordered.iter().map(|it| toml_string(it));
            let mut acme = Keys::default();
            acme.set(
                "names",
                format!("[{}]", names.collect::<Vec<_>>().join(", ")),
            );
            if let Some(email) = &self.options.email {
                acme.text("contact", email);
            }
            if let Some(directory) = &self.options.directory {
                acme.text("directory", directory);
            }
            acme.set("accept_terms", "true");
            all.push(format!("{{ acme = {} }}", acme.inline()));
            if let Some(first) = &self.first {
                notes.add(first, "`accept_terms = true` says that you agree to the terms of the authority, as Caddy does for those who run it");
            }
        }
        if !listener.own.is_empty() {
            let names = listener.own.iter().map(|it| toml_string(it));
            let names = names.collect::<Vec<_>>().join(", ");
            all.push(format!("{{ self_signed = [{names}] }}"));
        }
        match all.as_slice() {
            [] => Some("{ self_signed = true }".to_owned()),
            [only] => Some(only.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }
}

/// A part of a host (RFC 1123, section 2.1).
fn is_label(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_plain)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The name of the listener at a port.
fn listener_name(port: u16) -> String {
    format!("port-{port}")
}
