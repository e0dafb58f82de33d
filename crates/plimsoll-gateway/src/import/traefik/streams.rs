//! Routers of `tcp` as listeners of layer 4: connections without TLS, and those whose TLS passes on by the name that clients request.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::rc::Rc;

use ipnet::IpNet;
use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::super::upstreams::{UpstreamText, is_server};
use super::model::Model;
use super::values::list;

/// Listeners as text, and the upstreams that they forward to.
#[derive(Default)]
pub(super) struct Streams {
    pub(super) listeners: String,
    pub(super) upstreams: Vec<UpstreamText>,
    /// Entry points that have no router of HTTP, in lower case.
    pub(super) entry_points: BTreeSet<String>,
    /// The first router.
    pub(super) first: Option<Directive>,
}

/// Why a router does not listen; ends notes.
#[derive(Debug, thiserror::Error)]
enum StreamProblem {
    #[error("it names no entry point")]
    NoEntryPoint,
    #[error("entry point `{0}` has routers of HTTP too")]
    Http(String),
    #[error("entry point `{0}` has no address in this file")]
    NoAddress(String),
    #[error("`{0}` is no rule of `HostSNI` alone")]
    Rule(String),
    #[error("names are those of TLS, which it does not pass on")]
    Names,
    #[error("TLS that ends here is `tls` beside `tcp` of a `[[listen]]`")]
    Terminated,
    #[error("the middleware `{0}` may keep clients out")]
    Middleware(String),
    #[error("the service `{0}` is none with servers in this file")]
    Service(String),
    #[error("another router of its entry point has other addresses or another `proxyProtocol`")]
    Other,
}

/// A router with what it forwards to.
struct Stream {
    place: Directive,
    /// Empty for all connections.
    names: Vec<String>,
    /// An upstream or a server.
    to: String,
    /// Keys of the listener's `tcp`, which all routers of an entry point share.
    shared: Keys,
}

/// Translates all routers of `tcp`.
///
/// - `is_http`: whether an entry point has routers of HTTP.
pub(super) fn streams(model: &Model, is_http: impl Fn(&str) -> bool, notes: &mut Notes) -> Streams {
    let mut all = Streams::default();
    let mut listeners: Vec<(String, Vec<Stream>)> = Vec::new();
    for (name, node) in model.dynamic.at("tcp.routers").entries() {
        let place = model.place(node, &format!("tcp.routers.{name}"));
        all.first.get_or_insert_with(|| place.clone());
        let entry_points = list(node.get("entryPoints"));
        let free = entry_points.iter().filter(|it| !is_http(it));
        all.entry_points
            .extend(free.map(|it| it.to_ascii_lowercase()));
        if let Err(reason) = all.add(&entry_points, node, &place, model, &is_http, &mut listeners) {
            notes.add(&place, format!("left out: {reason}"));
        }
    }
    for (entry_point, streams) in &listeners {
        let node = model.fixed.get("entryPoints").get(entry_point);
        all.listen(entry_point, node, streams, notes);
    }
    all
}

impl Streams {
    fn add(
        &mut self,
        entry_points: &[String],
        node: &Node,
        place: &Directive,
        model: &Model,
        is_http: impl Fn(&str) -> bool,
        listeners: &mut Vec<(String, Vec<Stream>)>,
    ) -> Result<(), StreamProblem> {
        if entry_points.is_empty() {
            return Err(StreamProblem::NoEntryPoint);
        }
        let rule = node.text_at("rule").unwrap_or_default();
        let names = names(rule).ok_or_else(|| StreamProblem::Rule(rule.to_owned()))?;
        let tls = node.get("tls");
        let has_tls = tls.is_there() && tls.text() != Some("false");
        if has_tls && !tls.is_true("passthrough") {
            return Err(StreamProblem::Terminated);
        }
        if !has_tls && !names.is_empty() {
            return Err(StreamProblem::Names);
        }
        let mut shared = Keys::default();
        for name in list(node.get("middlewares")) {
            let networks = networks(&name, model).ok_or(StreamProblem::Middleware(name))?;
            if shared.get("addresses").is_some() {
                return Err(StreamProblem::Other);
            }
            let networks: Vec<_> = networks.iter().map(|it| toml_string(it)).collect();
            shared.set(
                "addresses",
                format!("{{ allow = [{}] }}", networks.join(", ")),
            );
        }
        let service = node.text_at("service").unwrap_or_default();
        let to = self
            .service(service, model, &mut shared)
            .ok_or_else(|| StreamProblem::Service(service.to_owned()))?;
        for entry_point in entry_points {
            if is_http(entry_point) {
                return Err(StreamProblem::Http(entry_point.clone()));
            }
            let node = model.fixed.get("entryPoints").get(entry_point);
            let address = node.text_at("address").unwrap_or_default();
            if !address.contains(':') || address.ends_with("/udp") {
                return Err(StreamProblem::NoAddress(entry_point.clone()));
            }
            let known = listeners
                .iter()
                .position(|(it, _)| it.eq_ignore_ascii_case(entry_point));
            let at = known.unwrap_or_else(|| {
                listeners.push((entry_point.clone(), Vec::new()));
                listeners.len() - 1
            });
            let Some((_, streams)) = listeners.get_mut(at) else {
                continue;
            };
            let is_other = |it: &Stream| it.shared.inline() != shared.inline();
            if streams.iter().any(is_other) {
                return Err(StreamProblem::Other);
            }
            streams.push(Stream {
                place: place.clone(),
                names: names.clone(),
                to: to.clone(),
                shared: shared.clone(),
            });
        }
        Ok(())
    }

    /// The server of a service, or the upstream that is made of several.
    fn service(&mut self, name: &str, model: &Model, shared: &mut Keys) -> Option<String> {
        let own = match name.split_once('@') {
            None => name,
            Some((own, provider)) if model.providers.contains(&provider) => own,
            Some(_) => return None,
        };
        let balancer = model
            .dynamic
            .at("tcp.services")
            .get(own)
            .get("loadBalancer");
        let mut servers = Vec::new();
        for server in balancer.get("servers").items() {
            let address = server.text_at("address")?;
            if !is_server(address) || address.starts_with("unix:") || server.is_true("tls") {
                return None;
            }
            servers.push(format!("tcp://{address}"));
        }
        let protocol = balancer.get("proxyProtocol");
        if protocol.is_there() {
            let version = match protocol.text_at("version") {
                Some("1") => "v1",
                _ => "v2",
            };
            shared.text("proxy_protocol", version);
        }
        match servers.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            servers => {
                let upstream = format!("{own}-tcp");
                if !self.upstreams.iter().any(|it| it.name == upstream) {
                    let place = model.place(balancer, &format!("tcp.services.{own}"));
                    let servers: Vec<_> = servers.iter().map(|it| toml_string(it)).collect();
                    self.upstreams.push(UpstreamText {
                        name: upstream.clone(),
                        keys: format!("servers = [{}]\n", servers.join(", ")),
                        file: Rc::clone(&place.file),
                        line: place.line,
                    });
                }
                Some(upstream)
            }
        }
    }

    /// `[[listen]]` of an entry point.
    fn listen(&mut self, entry_point: &str, node: &Node, streams: &[Stream], notes: &mut Notes) {
        let Some(first) = streams.first() else {
            return;
        };
        let mut tcp = Keys::default();
        let mut routes = Vec::new();
        for stream in streams {
            if !stream.names.is_empty() {
                let names: Vec<_> = stream.names.iter().map(|it| toml_string(it)).collect();
                let to = toml_string(&stream.to);
                routes.push(format!("{{ sni = [{}], to = {to} }}", names.join(", ")));
            } else if tcp.get("to").is_none() {
                tcp.text("to", &stream.to);
            } else {
                notes.add(
                    &stream.place,
                    "left out: another router of its entry point is for all connections",
                );
            }
        }
        if !routes.is_empty() {
            tcp.set("routes", format!("[{}]", routes.join(", ")));
        }
        tcp.inherit(&first.shared);
        let mut keys = Keys::default();
        let address = node.text_at("address").unwrap_or_default();
        let address = address.split('/').next().unwrap_or_default();
        keys.text("address", address);
        keys.text("name", entry_point);
        let proxies = list(node.at("proxyProtocol.trustedIPs"));
        if !proxies.is_empty() {
            let proxies: Vec<_> = proxies.iter().map(|it| toml_string(it)).collect();
            keys.set("proxied_by", format!("[{}]", proxies.join(", ")));
        }
        keys.set("tcp", tcp.inline());
        write!(self.listeners, "\n[[listen]]\n").ok();
        keys.lines(&mut self.listeners);
    }
}

/// The names of a rule, none for all; `None` if it has other conditions.
fn names(rule: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for part in rule.split("||") {
        let inner = part.trim().strip_prefix("HostSNI(")?.strip_suffix(')')?;
        for name in inner.split(',') {
            let name = name.trim().trim_matches(['`', '"']);
            let is_name = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '.';
            if name == "*" {
                return Some(Vec::new());
            }
            if name.is_empty() || !name.chars().all(is_name) {
                return None;
            }
            names.push(name.to_owned());
        }
    }
    Some(names)
}

/// The networks of an allow list, if a middleware is one.
fn networks(name: &str, model: &Model) -> Option<Vec<String>> {
    let own = name.split('@').next().unwrap_or_default();
    let node = model.dynamic.at("tcp.middlewares").get(own);
    let kinds = ["ipAllowList", "ipWhiteList"];
    let kind = kinds
        .iter()
        .map(|it| node.get(it))
        .find(|it| it.is_there())?;
    let networks = list(kind.get("sourceRange"));
    let is_network =
        |it: &String| it.parse::<IpNet>().is_ok() || it.parse::<std::net::IpAddr>().is_ok();
    (node.entries().len() == 1 && !networks.is_empty() && networks.iter().all(is_network))
        .then_some(networks)
}
