//! Entry points as listeners, with their certificates.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::model::Model;
use super::values::list;

/// Names that one order of certificates may have.
const MOST_NAMES: usize = 100;

/// An entry point.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) name: String,
    /// The address and the port to listen at.
    address: String,
    port: u16,
    pub(super) is_tls: bool,
    /// Middlewares of all of its routers.
    pub(super) middlewares: Vec<String>,
    /// Its TLS options may keep clients out.
    pub(super) is_closed: bool,
    /// `redirect_https` of the listener.
    redirect: Option<String>,
    /// Further keys.
    keys: Keys,
    /// Names whose certificates are ordered, with their resolvers.
    ordered: Vec<(String, String)>,
    /// Names whose certificates are made here.
    own: BTreeSet<String>,
}

/// What routers say about entry points.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) name: String,
    /// A router has TLS there.
    pub(super) has_tls: bool,
    /// A router has none there.
    pub(super) has_clear: bool,
}

/// The listeners for the entry points of the static configuration, or those that routers name.
///
/// - `named`: in the order in which routers name them.
/// - `others`: those of routers of TCP alone, in lower case.
pub(super) fn listeners(
    model: &Model,
    named: &[Named],
    others: &BTreeSet<String>,
    first: &Directive,
    notes: &mut Notes,
) -> Vec<Listener> {
    let fixed = model.fixed.get("entryPoints").entries();
    let configured = fixed.iter().map(|(name, _)| name.clone());
    let mut wanted: Vec<String> = configured
        .filter(|it| !others.contains(&it.to_ascii_lowercase()))
        .collect();
    for name in named {
        if !wanted.iter().any(|it| it.eq_ignore_ascii_case(&name.name)) {
            wanted.push(name.name.clone());
        }
    }
    if wanted.is_empty() {
        wanted.push("web".to_owned());
    }
    let mut all: Vec<Listener> = Vec::new();
    for name in wanted {
        let node = model.fixed.get("entryPoints").get(&name);
        let used = named.iter().find(|it| it.name.eq_ignore_ascii_case(&name));
        // Pages of Traefik itself, metrics and the like.
        if used.is_none()
            && fixed.len() > 1
            && matches!(name.as_str(), "traefik" | "metrics" | "ping")
        {
            continue;
        }
        let place = model.place(node, &format!("entryPoints.{name}"));
        let place = if node.is_there() { &place } else { first };
        let mut listener = Listener::new(&name, node, used, place, all.len(), notes);
        if all.iter().any(|it| it.port == listener.port) {
            listener.port = free_port(&all);
            listener.address = format!(":{}", listener.port);
            notes.add(
                place,
                format!(
                    "entry point `{name}`: port {} stands for one that another entry point has",
                    listener.port
                ),
            );
        }
        if listener.is_tls
            && let Some(option) = closing_options(node.at("http.tls"), model)
        {
            let message = format!(
                "its routers respond with 501: TLS options `{option}` may keep clients out"
            );
            notes.add(place, message);
            listener.is_closed = true;
        }
        for (key, _) in node.get("http").entries() {
            let known = ["redirections", "tls", "middlewares"];
            if !known.contains(&key.to_ascii_lowercase().as_str()) {
                notes.add(place, format!("`http.{key}` is left out"));
            }
        }
        all.push(listener);
    }
    // Redirects name other entry points.
    let ports: Vec<(String, u16)> = all.iter().map(|it| (it.name.clone(), it.port)).collect();
    for listener in &mut all {
        let node = model.fixed.get("entryPoints").get(&listener.name);
        let redirection = node.at("http.redirections.entryPoint");
        let Some(to) = redirection.text_at("to").filter(|_| !listener.is_tls) else {
            continue;
        };
        let known = ports.iter().find(|(name, _)| name.eq_ignore_ascii_case(to));
        let port = known.map_or_else(
            || to.trim_start_matches(':').parse().unwrap_or(443),
            |(_, port)| *port,
        );
        let mut keys = Keys::default();
        if port != 443 {
            keys.set("port", port.to_string());
        }
        if redirection.text_at("permanent") == Some("false") {
            keys.set("status", "307");
        }
        listener.redirect = Some(if keys.is_empty() {
            "true".to_owned()
        } else {
            keys.inline()
        });
    }
    all
}

fn free_port(all: &[Listener]) -> u16 {
    let taken = |port: &u16| all.iter().any(|it| it.port == *port);
    (8081..u16::MAX).find(|it| !taken(it)).unwrap_or(8081)
}

impl Listener {
    fn new(
        name: &str,
        node: &Node,
        used: Option<&Named>,
        place: &Directive,
        number: usize,
        notes: &mut Notes,
    ) -> Self {
        let lower = name.to_ascii_lowercase();
        let is_secure_name =
            lower.contains("secure") || lower.contains("https") || lower.contains("443");
        let given = node
            .text_at("address")
            .map(|it| it.split('/').next().unwrap_or_default());
        let port = given.and_then(|it| it.rsplit(':').next()?.parse::<u16>().ok());
        let assumed = match lower.as_str() {
            _ if is_secure_name => 443,
            "web" | "http" | "insecure" => 80,
            "traefik" => 8080,
            _ if used.is_some_and(|it| it.has_tls && !it.has_clear) => 443,
            _ => 8081 + u16::try_from(number).unwrap_or(0).min(1000),
        };
        let is_tls = node.at("http.tls").is_there()
            || port == Some(443)
            || is_secure_name
            || used.is_some_and(|it| it.has_tls && !it.has_clear);
        if port.is_none() {
            let tls = if is_tls { "with TLS" } else { "without TLS" };
            notes.add(place, format!("entry point `{name}`: port {assumed} {tls} is assumed, as its address is not in the file"));
        }
        let port = port.filter(|it| *it > 0).unwrap_or(assumed);
        let address = given.filter(|it| it.parse::<std::net::SocketAddr>().is_ok());
        let address = address.map_or_else(|| format!(":{port}"), str::to_owned);
        let mut keys = Keys::default();
        for (key, ours) in [
            ("forwardedHeaders.trustedIPs", "trusted_proxies"),
            ("proxyProtocol.trustedIPs", "proxied_by"),
        ] {
            let networks = list(node.at(key));
            if !networks.is_empty() {
                let networks: Vec<_> = networks.iter().map(|it| toml_string(it)).collect();
                keys.set(ours, format!("[{}]", networks.join(", ")));
            }
        }
        for key in ["forwardedHeaders.insecure", "proxyProtocol.insecure"] {
            if node.is_true(key) {
                notes.add(
                    place,
                    format!("`{key}` is left out: give the networks of the proxies in front"),
                );
            }
        }
        let http3 = node.get("http3");
        if is_tls && http3.is_there() && http3.text() != Some("false") {
            keys.set("http3", "true");
        }
        for (key, _) in node.entries() {
            let known = [
                "address",
                "http",
                "forwardedheaders",
                "proxyprotocol",
                "http3",
                "asdefault",
            ];
            if !known.contains(&key.to_ascii_lowercase().as_str()) {
                notes.add(place, format!("`{key}` is left out"));
            }
        }
        Self {
            name: name.to_owned(),
            address,
            port,
            is_tls,
            middlewares: list(node.at("http.middlewares")),
            is_closed: false,
            redirect: None,
            keys,
            ordered: Vec::new(),
            own: BTreeSet::new(),
        }
    }

    /// Whether no router gets requests of it.
    pub(super) const fn is_redirect(&self) -> bool {
        self.redirect.is_some()
    }

    /// Wants a certificate for a name.
    ///
    /// - `resolver`: that orders it.
    pub(super) fn order(
        &mut self,
        name: &str,
        resolver: &str,
        place: &Directive,
        notes: &mut Notes,
    ) {
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_local = !name.contains('.')
            || ["localhost", "local", "internal"].contains(&last)
            || name.parse::<std::net::IpAddr>().is_ok();
        if name.starts_with("*.") {
            let message = format!(
                "`{name}`: certificates for all subdomains are not ordered: give one by `tls` of the `[[listen]]`"
            );
            notes.add(place, message);
        } else if !is_name(name) {
            notes.add(
                place,
                format!("`{name}` is left out of certificates: it is no name"),
            );
        } else if is_local {
            self.own.insert(name.to_owned());
        } else if !self.ordered.iter().any(|(known, _)| known == name) {
            self.ordered.push((name.to_owned(), resolver.to_owned()));
        }
    }

    /// `[[listen]]`.
    ///
    /// - `files`: certificates of the file.
    pub(super) fn write(&self, model: &Model, files: &[String], out: &mut String) {
        let mut keys = Keys::default();
        keys.text("address", &self.address);
        keys.text("name", &self.name);
        if self.is_tls {
            keys.set("tls", self.tls(model, files));
        }
        if let Some(redirect) = &self.redirect {
            keys.set("redirect_https", redirect.clone());
        }
        keys.inherit(&self.keys);
        write!(out, "\n[[listen]]\n").ok();
        keys.lines(out);
    }

    fn tls(&self, model: &Model, files: &[String]) -> String {
        let mut all = files.to_vec();
        let resolvers: BTreeSet<&str> = self.ordered.iter().map(|(_, it)| it.as_str()).collect();
        for resolver in resolvers {
            let names = self.ordered.iter().filter(|(_, it)| it == resolver);
            let names: Vec<_> = names.map(|(name, _)| toml_string(name)).collect();
            let node = model
                .fixed
                .get("certificatesResolvers")
                .get(resolver)
                .get("acme");
            for names in names.chunks(MOST_NAMES) {
                let mut acme = Keys::default();
                acme.set("names", format!("[{}]", names.join(", ")));
                if let Some(mail) = node.text_at("email").filter(|it| it.contains('@')) {
                    acme.text("contact", mail);
                }
                if let Some(directory) = node
                    .text_at("caServer")
                    .filter(|it| it.starts_with("https://"))
                {
                    acme.text("directory", directory);
                }
                acme.set("accept_terms", "true");
                all.push(format!("{{ acme = {} }}", acme.inline()));
            }
        }
        if !self.own.is_empty() {
            let names: Vec<_> = self.own.iter().map(|it| toml_string(it)).collect();
            all.push(format!("{{ self_signed = [{}] }}", names.join(", ")));
        }
        match all.as_slice() {
            [] => "{ self_signed = true }".to_owned(),
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        }
    }
}

/// Whether a host can have this name (RFC 1123, section 2.1).
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(is_plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.parse::<std::net::IpAddr>().is_ok() || text.len() <= 253 && text.split('.').all(is_label)
}

/// The name of the TLS options, if these want certificates of clients, or are not there.
pub(super) fn closing_options<'n>(tls: &'n Node, model: &Model) -> Option<&'n str> {
    let name = tls.text_at("options").unwrap_or("default");
    let own = match name.split_once('@') {
        None => name,
        Some((own, provider)) if model.providers.contains(&provider) => own,
        Some(_) => return Some(name),
    };
    let node = model.dynamic.at("tls.options").get(own);
    let closes = node.get("clientAuth").is_there() || !node.is_there() && own != "default";
    closes.then_some(name)
}
