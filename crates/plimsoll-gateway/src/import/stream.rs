//! `stream`: TCP, UDP and TLS by name as listeners of layer 4.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_model::document::toml_string;
use plimsoll_server::Moment;

use super::Notes;
use super::access;
use super::fates;
use super::nginx::Directive;
use super::proxy::tls_to_servers;
use super::real_ip::networks;
use super::reasons;
use super::scope::{LookedUp, Scope};
use super::servers;
use super::toml::Keys;
use super::upstreams::{UpstreamKind, UpstreamText, Upstreams, duration};
use super::variables::{NoCounterpart, with_places};

/// Listeners as text, and the upstreams that they forward to.
#[derive(Default)]
pub(super) struct StreamText {
    pub(super) listeners: String,
    pub(super) upstreams: Vec<UpstreamText>,
}

/// Why a server of `stream` does not listen at an address.
#[derive(Debug, thiserror::Error)]
enum StreamProblem {
    #[error("`{0}` is not an address with a port")]
    Address(String),
    #[error("`proxy_timeout` is not a time")]
    Timeout,
    #[error("rules for addresses have no counterpart for datagrams")]
    Datagrams,
    #[error("it has no certificate")]
    NoCertificate,
    #[error("a certificate and its key are files")]
    Certificate,
    #[error(
        "rules for addresses would count for what any client says in a PROXY header: name the networks of the proxies by `set_real_ip_from`"
    )]
    ProxyProtocol,
    #[error("datagrams and sockets in the file system have no PROXY headers")]
    NoHeaders,
    #[error("servers of datagrams are sent no PROXY headers")]
    AnnouncedDatagrams,
    #[error("no PROXY header is sent before a handshake of TLS")]
    AnnouncedBeforeTls,
    #[error("a text is sent over TCP only, not over UDP")]
    RespondOverUdp,
    #[error(transparent)]
    NoCounterpart(#[from] NoCounterpart),
    #[error("no name leads to a server that is known")]
    NoName,
    #[error("`{name}` is used by {protocol} too")]
    OtherProtocol {
        name: String,
        protocol: &'static str,
    },
    #[error("`{0}` is not a server with a port that is known")]
    Server(String),
}

/// Directives that [`translate`] goes through itself.
const BLOCKS: [&str; 2] = ["server", "upstream"];

/// Translates the block `stream`, if the file has one.
pub(super) fn translate(directives: &[Directive], notes: &mut Notes) -> StreamText {
    let Some(stream) = directives.iter().find(|it| it.name == "stream") else {
        return StreamText::default();
    };
    let mut translation = Translation {
        block: &stream.block,
        upstreams: Upstreams::read(&stream.block, UpstreamKind::Stream, notes),
        looked_up: LookedUp::default(),
        text: String::new(),
        of_scheme: BTreeMap::new(),
    };
    for server in stream.block.iter().filter(|it| it.name == "server") {
        translation.server(server, notes);
    }
    report(&stream.block, &translation.looked_up, notes);
    let Translation {
        upstreams,
        text,
        of_scheme,
        ..
    } = translation;
    // Names of `http` are names of other upstreams.
    let mut written = upstreams.written();
    written.retain(|it| of_scheme.contains_key(&it.name));
    for upstream in &mut written {
        upstream.name = name_of(&upstream.name);
    }
    StreamText {
        listeners: text,
        upstreams: written,
    }
}

/// The name of an upstream of `stream`.
fn name_of(name: &str) -> String {
    format!("stream-{name}")
}

/// Notes directives that no translator has looked up. There is no list of supported names that could claim more than the code reads.
fn report(block: &[Directive], looked_up: &LookedUp, notes: &mut Notes) {
    for directive in block {
        let name = directive.name.as_str();
        let is_known = BLOCKS.contains(&name) || looked_up.has(name);
        if !is_known && !is_harmless(directive) && !is_closing(directive) {
            notes.add(directive, reasons::of_stream(name));
        }
    }
}

/// Whether a directive that no translator looks up changes nothing.
pub(super) fn is_harmless(directive: &Directive) -> bool {
    // Each direction ends by itself, which is not what `off` says.
    let is_off = directive.arguments == ["off"] && directive.name != "proxy_half_close";
    // Without a map of names nothing goes by what is read, and without `proxy_ssl on` nothing by these.
    let is_read_for_nothing = [
        "ssl_preread",
        "proxy_ssl_name",
        "proxy_ssl_verify",
        "proxy_ssl_trusted_certificate",
        "proxy_ssl_certificate",
        "proxy_ssl_certificate_key",
    ]
    .contains(&directive.name.as_str());
    is_off
        || is_read_for_nothing
        || fates::is_harmless(&directive.name)
        || fates::is_as_here(directive)
}

/// Whether a directive keeps clients out, which has no counterpart here.
fn is_closing(directive: &Directive) -> bool {
    match directive.name.as_str() {
        "js_access" | "ssl_crl" => true,
        "ssl_verify_client" | "ssl_reject_handshake" => directive.argument(0) != "off",
        _ => false,
    }
}

struct Translation<'a> {
    /// The directives of `stream`.
    block: &'a [Directive],
    upstreams: Upstreams,
    /// The names that were looked up in its servers.
    looked_up: LookedUp,
    text: String,
    /// The schemes of upstreams that are used.
    of_scheme: BTreeMap<String, &'static str>,
}

/// What a server does with connections.
struct Service<'a> {
    scope: &'a Scope<'a>,
    /// The clients that are accepted, if not all are.
    addresses: Option<Keys>,
    action: &'a Directive,
    /// Settings of TLS to the servers, if they are reached over it.
    tls: Option<Keys>,
    /// The time to connect and the servers that are tried, if they are others than usual.
    connect_timeout: Option<String>,
    tries: Tries,
}

/// How many servers are tried for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tries {
    All,
    UpTo(usize),
}

impl Translation<'_> {
    fn server(&mut self, server: &Directive, notes: &mut Notes) {
        let scope = Scope::new(self.block);
        let scope = scope.within(&server.block);
        if self.listeners(server, &scope, notes) {
            report(&server.block, scope.looked_up(), notes);
        }
        self.looked_up.extend(scope.looked_up());
    }

    /// Writes the listeners of a server; false if it has none, which is noted.
    fn listeners(&mut self, server: &Directive, scope: &Scope<'_>, notes: &mut Notes) -> bool {
        if let Some(closing) = scope.find(is_closing) {
            notes.add(
                closing,
                "the server does not listen: this keeps clients out, and has no counterpart for TCP and UDP",
            );
            return false;
        }
        let addresses = match access::of_connections(scope) {
            Ok(addresses) => addresses,
            Err(reason) => {
                notes.add(server, format!("the server does not listen: {reason}"));
                return false;
            }
        };
        let (pass, returned) = (scope.own("proxy_pass"), scope.own("return"));
        let Some(action) = pass.or(returned) else {
            notes.add(server, "left out: it neither forwards nor returns a text");
            return false;
        };
        let is_tls = scope.is("proxy_ssl", "on");
        let tls = tls_to_servers(scope, is_tls && pass.is_some(), notes);
        let service = Service {
            scope,
            addresses,
            action,
            tls: is_tls.then_some(tls),
            connect_timeout: connect_timeout(scope, notes),
            tries: tries(scope, notes),
        };
        for listen in scope.all("listen") {
            if let Err(reason) = self.listener(listen, &service, notes) {
                notes.add(listen, format!("left out: {reason}"));
            }
        }
        true
    }

    fn listener(
        &mut self,
        listen: &Directive,
        service: &Service<'_>,
        notes: &mut Notes,
    ) -> Result<(), StreamProblem> {
        let scope = service.scope;
        let has = |flag: &str| listen.arguments.iter().any(|it| it == flag);
        let address = servers::address(listen.argument(0))
            .ok_or_else(|| StreamProblem::Address(listen.argument(0).to_owned()))?;
        let protocol = if has("udp") { "udp" } else { "tcp" };
        // Looked up for every kind of server: those that return a text ignore them, as in nginx.
        let idle_timeout = scope.last("proxy_timeout");
        let is_announced = scope.is("proxy_protocol", "on");
        let mut keys = Keys::default();
        if service.action.name == "return" {
            if protocol == "udp" {
                return Err(StreamProblem::RespondOverUdp);
            }
            let text = service.action.argument(0);
            let filled = with_places(text, scope, Moment::Connection, None);
            let filled = filled.ok_or_else(|| NoCounterpart(text.to_owned()))?;
            keys.text("respond", &filled);
        } else {
            let variable = service.action.argument(0);
            if let Some(map) = map_of_names(variable, scope) {
                self.by_name(map, service, &mut keys, notes)?;
            } else {
                let to = self.target(variable, protocol, service, notes)?;
                keys.text("to", &to);
            }
            if let Some(time) = idle_timeout {
                let time = duration(time.argument(0)).ok_or(StreamProblem::Timeout)?;
                keys.text("idle_timeout", &time);
            }
            if is_announced && protocol == "udp" {
                return Err(StreamProblem::AnnouncedDatagrams);
            }
            if is_announced && service.tls.is_some() {
                return Err(StreamProblem::AnnouncedBeforeTls);
            }
            if is_announced {
                keys.text("proxy_protocol", "v1");
            }
        }
        match &service.addresses {
            Some(_) if protocol == "udp" => return Err(StreamProblem::Datagrams),
            Some(addresses) => keys.set("addresses", addresses.inline()),
            None => {}
        }
        let mut text = format!("\n[[listen]]\naddress = {}\n", toml_string(&address));
        if has("proxy_protocol") {
            if protocol == "udp" || address.starts_with("unix:") {
                return Err(StreamProblem::NoHeaders);
            }
            let proxies = proxies(listen, service, notes)?;
            writeln!(text, "proxied_by = [{}]", proxies.join(", ")).ok();
        }
        if has("ssl") {
            let file = scope.last("ssl_certificate");
            let key = scope.last("ssl_certificate_key");
            let (file, key) = file.zip(key).ok_or(StreamProblem::NoCertificate)?;
            if file.argument(0).contains('$') || key.argument(0).contains('$') {
                return Err(StreamProblem::Certificate);
            }
            let (file, key) = (toml_string(file.argument(0)), toml_string(key.argument(0)));
            writeln!(text, "tls = {{ cert = {file}, key = {key} }}").ok();
        }
        writeln!(text, "{protocol} = {}", keys.inline()).ok();
        self.text.push_str(&text);
        Ok(())
    }

    /// Routes by the names that clients of TLS request.
    fn by_name(
        &mut self,
        map: &Directive,
        service: &Service<'_>,
        keys: &mut Keys,
        notes: &mut Notes,
    ) -> Result<(), StreamProblem> {
        let is_read = service.scope.is("ssl_preread", "on");
        if !is_read {
            notes.add(
                service.action,
                "names are not read without `ssl_preread on`: all connections go where `default` of the map says",
            );
        }
        let condition = match map.argument(0) {
            "$ssl_preread_server_name" => "sni",
            _ => "alpn",
        };
        let mut routes = Vec::new();
        for entry in &map.block {
            let (name, given) = (entry.name.as_str(), entry.argument(0));
            if entry.arguments.is_empty() || (!is_read && name != "default") {
                continue;
            }
            let to = match self.target(given, "tcp", service, notes) {
                Ok(to) => to,
                Err(reason) => {
                    notes.add(entry, format!("left out: {reason}"));
                    continue;
                }
            };
            let names: Vec<String> = match name {
                "default" => {
                    keys.text("to", &to);
                    continue;
                }
                name if name.starts_with('~') || name.is_empty() || name.ends_with(".*") => {
                    notes.add(
                        entry,
                        format!("left out: `{name}` is neither a name nor `*.` and a name"),
                    );
                    continue;
                }
                name => match name.strip_prefix('.') {
                    Some(name) => vec![name.to_owned(), format!("*.{name}")],
                    None => vec![name.to_owned()],
                },
            };
            let names: Vec<_> = names.iter().map(|it| toml_string(it)).collect();
            let (names, to) = (names.join(", "), toml_string(&to));
            routes.push(format!("{{ {condition} = [{names}], to = {to} }}"));
        }
        if routes.is_empty() && keys.get("to").is_none() {
            return Err(StreamProblem::NoName);
        }
        if !routes.is_empty() {
            keys.set("routes", format!("[{}]", routes.join(", ")));
        }
        Ok(())
    }

    /// The upstream of that name, or the server as a URL.
    fn target(
        &mut self,
        name: &str,
        protocol: &'static str,
        service: &Service<'_>,
        notes: &mut Notes,
    ) -> Result<String, StreamProblem> {
        let scheme = match &service.tls {
            Some(_) if protocol == "tcp" => "tls",
            _ => protocol,
        };
        let has_settings =
            protocol == "tcp" && (service.connect_timeout.is_some() || service.tls.is_some());
        if !self.upstreams.has(name) {
            let has_port = name.rsplit_once(':').is_some_and(|(host, port)| {
                !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
            });
            if name.contains('$') || !has_port || name.starts_with("unix:") {
                return Err(StreamProblem::Server(name.to_owned()));
            }
            if !has_settings {
                return Ok(format!("{scheme}://{name}"));
            }
            let single = format!("{scheme}-{name}");
            self.upstreams.single(&single, name, service.action);
            return self.upstream(&single, scheme, service, notes);
        }
        self.upstream(name, scheme, service, notes)
    }

    /// An upstream for this scheme, with the server's settings for connections to it.
    fn upstream(
        &mut self,
        name: &str,
        scheme: &'static str,
        service: &Service<'_>,
        notes: &mut Notes,
    ) -> Result<String, StreamProblem> {
        let known = *self.of_scheme.entry(name.to_owned()).or_insert(scheme);
        if known != scheme {
            return Err(StreamProblem::OtherProtocol {
                name: name.to_owned(),
                protocol: known,
            });
        }
        let mut keys = Keys::default();
        // A socket for datagrams is connected at once, to any server.
        if scheme != "udp" {
            if let Some(tls) = service.tls.as_ref().filter(|it| !it.is_empty()) {
                keys.set("tls", tls.inline());
            }
            if let Some(time) = &service.connect_timeout {
                keys.text("connect_timeout", time);
            }
            let others = self.upstreams.servers(name).saturating_sub(1);
            let retries = match service.tries {
                Tries::All => others,
                Tries::UpTo(tries) => others.min(tries.saturating_sub(1)),
            };
            match retries {
                // As it is anyway.
                1 => {}
                0 if others == 0 => {}
                0 => keys.set("retry", "false"),
                more => keys.set(
                    "retry",
                    format!("{{ retries = {} }}", more.min(MOST_RETRIES)),
                ),
            }
        }
        self.upstreams
            .used(name, scheme, &keys, service.action, notes);
        Ok(name_of(name))
    }
}

/// Other servers that are tried at most.
const MOST_RETRIES: usize = 10;

/// The time to connect, if it is said.
fn connect_timeout(scope: &Scope<'_>, notes: &mut Notes) -> Option<String> {
    let directive = scope.last("proxy_connect_timeout")?;
    let time = duration(directive.argument(0));
    if time.is_none() {
        notes.add(directive, "left out: it is not a time");
    }
    time
}

/// nginx tries all servers by default.
fn tries(scope: &Scope<'_>, notes: &mut Notes) -> Tries {
    let is_off = scope.is("proxy_next_upstream", "off");
    let limit = scope.last("proxy_next_upstream_tries");
    let most = match limit.map(|it| (it, it.argument(0).parse::<usize>())) {
        None | Some((_, Ok(0))) => Tries::All,
        Some((_, Ok(most))) => Tries::UpTo(most),
        Some((limit, Err(_))) => {
            notes.add(limit, "left out: it is not a number");
            Tries::All
        }
    };
    if is_off { Tries::UpTo(1) } else { most }
}

/// The networks whose connections begin with a PROXY header. nginx wants it of every client, and believes those that
/// `set_real_ip_from` names.
fn proxies(
    listen: &Directive,
    service: &Service<'_>,
    notes: &mut Notes,
) -> Result<Vec<String>, StreamProblem> {
    let networks = networks(&service.scope.all("set_real_ip_from"));
    if !networks.is_empty() {
        return Ok(networks);
    }
    if service.addresses.is_some() {
        return Err(StreamProblem::ProxyProtocol);
    }
    notes.add(
        listen,
        "the address in the PROXY header of every client counts for servers and the log; nginx would know it as `$proxy_protocol_addr` alone: name the networks of the proxies by `proxied_by`",
    );
    Ok(vec![toml_string("0.0.0.0/0"), toml_string("::/0")])
}

/// The map by which clients of TLS are sent on.
fn map_of_names<'s>(variable: &str, scope: &Scope<'s>) -> Option<&'s Directive> {
    if !variable.starts_with('$') {
        return None;
    }
    let outer = scope.outermost();
    let mut maps = outer.all("map").into_iter().rev();
    let by_name = ["$ssl_preread_server_name", "$ssl_preread_alpn_protocols"];
    maps.find(|it| it.argument(1) == variable && by_name.contains(&it.argument(0)))
}
