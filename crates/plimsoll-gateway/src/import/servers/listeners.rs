//! Listeners of plimsoll, each for the servers that listen there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_model::document::toml_string;

use super::Server;
use crate::import::client_certificates::ClientCertificates;
use crate::import::real_ip::RealIp;

/// A listener of plimsoll.
#[derive(Debug, Default)]
pub(super) struct Listener {
    pub(super) is_tls: bool,
    pub(super) has_http3: bool,
    pub(super) has_proxy_protocol: bool,
    /// Files of certificates with those of their keys.
    pub(super) certificates: Vec<(String, String)>,
    /// Its servers by number, and whether the file marks them as its default.
    pub(super) servers: Vec<(usize, bool)>,
    /// Servers on it that do more than lead to `https`.
    pub(super) others: usize,
    /// The certificates that its servers want of clients.
    pub(super) client_certificates: Vec<Option<ClientCertificates>>,
}

impl Listener {
    /// The server for names that none of them has.
    pub(super) fn default_server(&self) -> Option<usize> {
        let named = self.servers.iter().find(|(_, is_default)| *is_default);
        named.or(self.servers.first()).map(|(number, _)| *number)
    }

    /// All of its servers turn HTTP/2 off.
    pub(super) fn is_without_http2(&self, servers: &[Server<'_>]) -> bool {
        let is_off = |(number, _): &(usize, bool)| {
            let server = servers.get(*number);
            server.is_some_and(|it| it.without_http2.is_some())
        };
        self.servers.iter().all(is_off)
    }

    /// It leads every client to `https`.
    pub(super) fn is_redirect(&self) -> bool {
        !self.is_tls && !self.servers.is_empty() && self.others == 0
    }
}

/// - `allows_underscores`: whether each server lets fields with `_` pass. That of the default server counts.
pub(super) fn write_listeners(
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
