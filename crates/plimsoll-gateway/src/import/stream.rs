//! `stream`: TCP, UDP and TLS by name as listeners of layer 4.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_model::document::toml_string;

use super::Notes;
use super::access;
use super::nginx::Directive;
use super::scope::Scope;
use super::servers;
use super::toml::Keys;
use super::upstreams::{UpstreamText, Upstreams, duration};

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
    #[error("`proxy_protocol` needs the networks of the proxies: set `proxied_by`")]
    ProxyProtocol,
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

/// What the translation of servers reads; everything else of them is noted.
const READ: [&str; 21] = [
    "allow",
    "deny",
    "listen",
    "proxy_pass",
    "proxy_timeout",
    "proxy_connect_timeout",
    "proxy_protocol",
    "proxy_next_upstream",
    "proxy_next_upstream_tries",
    "ssl_preread",
    "ssl_certificate",
    "ssl_certificate_key",
    "server",
    "upstream",
    "map",
    "log_format",
    "access_log",
    "error_log",
    "tcp_nodelay",
    "proxy_buffer_size",
    "proxy_socket_keepalive",
];

/// Names, or their beginnings, of what changes nothing for clients and servers.
const HARMLESS: [&str; 9] = [
    "preread_",
    "ssl_session_",
    "ssl_prefer_server_ciphers",
    "ssl_handshake_timeout",
    "ssl_buffer_size",
    "resolver",
    "variables_hash_",
    "map_hash_",
    "ssl_ecdh_curve",
];

/// Translates the block `stream`, if the file has one.
pub(super) fn translate(directives: &[Directive], notes: &mut Notes) -> StreamText {
    let Some(stream) = directives.iter().find(|it| it.name == "stream") else {
        return StreamText::default();
    };
    report(&stream.block, notes);
    let mut translation = Translation {
        upstreams: Upstreams::read(&stream.block, notes),
        scope: Scope::new(&stream.block),
        text: String::new(),
        of_scheme: BTreeMap::new(),
    };
    for server in stream.block.iter().filter(|it| it.name == "server") {
        report(&server.block, notes);
        translation.server(server, notes);
    }
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
        upstream.keys = of_layer4(&upstream.keys);
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

/// Without the keys that are for requests.
fn of_layer4(keys: &str) -> String {
    let is_kept = |line: &&str| {
        let key = line.split(' ').next().unwrap_or_default();
        !matches!(
            key,
            "keep" | "keep_for" | "max_requests" | "lifetime" | "connections" | "by"
        )
    };
    keys.lines()
        .filter(is_kept)
        .fold(String::new(), |text, line| text + line + "\n")
}

fn report(block: &[Directive], notes: &mut Notes) {
    for directive in block {
        let name = directive.name.as_str();
        let is_harmless = HARMLESS.iter().any(|it| name.starts_with(it));
        if !READ.contains(&name) && !is_harmless && !is_closing(directive) {
            notes.left_out(directive);
        }
    }
}

/// Whether a directive keeps clients out, which has no counterpart here.
fn is_closing(directive: &Directive) -> bool {
    match directive.name.as_str() {
        "js_access" | "ssl_crl" => true,
        "ssl_verify_client" => directive.argument(0) != "off",
        _ => false,
    }
}

struct Translation<'a> {
    scope: Scope<'a>,
    upstreams: Upstreams,
    text: String,
    /// The schemes of upstreams that are used.
    of_scheme: BTreeMap<String, &'static str>,
}

impl Translation<'_> {
    fn server(&mut self, server: &Directive, notes: &mut Notes) {
        let scope = self.scope.clone();
        let scope = scope.within(&server.block);
        if let Some(closing) = scope.find(is_closing) {
            notes.add(
                closing,
                "the server does not listen: this keeps clients out, and has no counterpart for TCP and UDP",
            );
            return;
        }
        let addresses = match access::of_connections(&scope) {
            Ok(addresses) => addresses,
            Err(reason) => {
                notes.add(server, format!("the server does not listen: {reason}"));
                return;
            }
        };
        let Some(pass) = server.last("proxy_pass") else {
            notes.add(server, "left out: it does not forward");
            return;
        };
        if scope.is("proxy_ssl", "on") {
            notes.add(pass, "left out: servers are reached without TLS");
            return;
        }
        for listen in server.all("listen") {
            let addresses = addresses.as_ref();
            if let Err(reason) = self.listener(listen, pass, (&scope, addresses), notes) {
                notes.add(listen, format!("left out: {reason}"));
            }
        }
    }

    fn listener(
        &mut self,
        listen: &Directive,
        pass: &Directive,
        (scope, addresses): (&Scope<'_>, Option<&Keys>),
        notes: &mut Notes,
    ) -> Result<(), StreamProblem> {
        let has = |flag: &str| listen.arguments.iter().any(|it| it == flag);
        let address = servers::address(listen.argument(0))
            .ok_or_else(|| StreamProblem::Address(listen.argument(0).to_owned()))?;
        let protocol = if has("udp") { "udp" } else { "tcp" };
        let mut keys = Keys::default();
        let variable = pass.argument(0);
        if let Some(map) = map_of_names(variable, scope) {
            self.by_name(map, &mut keys, notes)?;
        } else {
            let to = self.target(variable, protocol)?;
            keys.text("to", &to);
        }
        if let Some(time) = scope.last("proxy_timeout") {
            let time = duration(time.argument(0)).ok_or(StreamProblem::Timeout)?;
            keys.text("idle_timeout", &time);
        }
        if scope.is("proxy_protocol", "on") {
            keys.text("proxy_protocol", "v1");
        }
        match addresses {
            Some(_) if protocol == "udp" => return Err(StreamProblem::Datagrams),
            Some(addresses) => keys.set("addresses", addresses.inline()),
            None => {}
        }
        let mut text = format!("\n[[listen]]\naddress = {}\n", toml_string(&address));
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
        if has("proxy_protocol") {
            return Err(StreamProblem::ProxyProtocol);
        }
        writeln!(text, "{protocol} = {}", keys.inline()).ok();
        self.text.push_str(&text);
        Ok(())
    }

    /// Routes by the names that clients of TLS request.
    fn by_name(
        &mut self,
        map: &Directive,
        keys: &mut Keys,
        notes: &mut Notes,
    ) -> Result<(), StreamProblem> {
        let condition = match map.argument(0) {
            "$ssl_preread_server_name" => "sni",
            _ => "alpn",
        };
        let mut routes = Vec::new();
        for entry in &map.block {
            let (name, given) = (entry.name.as_str(), entry.argument(0));
            if entry.arguments.is_empty() {
                continue;
            }
            let to = match self.target(given, "tcp") {
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
    fn target(&mut self, name: &str, protocol: &'static str) -> Result<String, StreamProblem> {
        if self.upstreams.has(name) {
            let known = *self.of_scheme.entry(name.to_owned()).or_insert(protocol);
            if known != protocol {
                return Err(StreamProblem::OtherProtocol {
                    name: name.to_owned(),
                    protocol: known,
                });
            }
            self.upstreams.scheme(name, protocol);
            return Ok(name_of(name));
        }
        let has_port = name.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if name.contains('$') || !has_port || name.starts_with("unix:") {
            return Err(StreamProblem::Server(name.to_owned()));
        }
        Ok(format!("{protocol}://{name}"))
    }
}

/// The map by which clients of TLS are sent on.
fn map_of_names<'s>(variable: &str, scope: &Scope<'s>) -> Option<&'s Directive> {
    let outer = scope.outermost();
    let mut maps = outer.all("map").into_iter().rev();
    let by_name = ["$ssl_preread_server_name", "$ssl_preread_alpn_protocols"];
    maps.find(|it| it.argument(1) == variable && by_name.contains(&it.argument(0)))
}
