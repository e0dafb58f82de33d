//! Connection settings: the user's, validated.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Secret;
use plimsoll_wire::{Keepalive, ProxyProtocol};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use url::Host;

use crate::connect::address_filter::AddressFilter;
use crate::connect::confinement;
use crate::connect::endpoint::{Endpoint, Scheme};
use crate::connect::proxy::{Proxy, ProxyRules, ProxyScheme};
use crate::connect::resolve::AddressFamily;
use crate::connect::resolve_override::Overrides;
use crate::http3::QuicConfig;

/// Connection settings as the user configured them.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    /// Addresses in place of name lookups (`--resolve`).
    pub overrides: Overrides,
    /// The name servers to ask; empty means the system's. `address_filter` must allow each of them.
    pub name_servers: Vec<SocketAddr>,
    /// Lifetime of cached name server answers, whatever their TTL; absent keeps them for their TTL.
    pub address_ttl: Option<Duration>,
    /// Which addresses are used (`-4`, `-6`).
    pub family: AddressFamily,
    /// Which addresses may be connected to; absent allows all. It is applied to targets and proxies; a target behind a
    /// proxy that resolves names itself is not seen, nor is a unix socket.
    pub address_filter: Option<AddressFilter>,
    /// The local address to connect from; limits `family` to its own.
    pub source: Option<IpAddr>,
    /// TCP keep-alive probes, off by default.
    pub keepalive: Option<Keepalive>,
    /// A unix socket that stands for every endpoint; no proxy is used then.
    pub unix_socket: Option<PathBuf>,
    /// The proxies.
    pub proxies: ProxyRules,
    /// For `https://` endpoints; may be absent if there are none, since compiling it reads the
    /// system's roots. Without it such an endpoint fails.
    pub tls: Option<Arc<ClientConfig>>,
    /// For `https://` proxies; may be absent if there are none. Should offer `http/1.1` only.
    pub proxy_tls: Option<Arc<ClientConfig>>,
    /// The name that TLS requests from targets (SNI) and verifies their certificates by, if it is not the host of the
    /// endpoint: a DNS name or an address. Proxies keep theirs.
    pub server_name: Option<String>,
    /// For HTTP/3; absent unless it is spoken.
    pub quic: Option<QuicConfig>,
    /// Every TLS handshake is a full one: no session is resumed (`--no-sessionid`).
    pub full_handshakes: bool,
    /// A PROXY header, sent to the target before anything else (`--haproxy-protocol`).
    pub proxy_header: Option<ProxyHeader>,
    /// The time all phases together may take, from the name lookup to the end of the TLS handshake.
    pub timeout: Option<Duration>,
}

/// A PROXY header, which announces the address of a client to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyHeader {
    /// Version of the PROXY header.
    pub version: ProxyProtocol,
    /// The client to name; its port is that of the connection. Absent names the connection's own end.
    pub client: Option<IpAddr>,
}

/// Connection settings: checked, immutable, shared by all workers.
#[derive(Debug)]
pub struct ConnectPlan {
    pub(crate) options: ConnectOptions,
    /// That of the options, parsed.
    server_name: Option<Host>,
}

impl ConnectPlan {
    /// Checks `options` for what contradicts itself.
    pub fn new(options: ConnectOptions) -> Result<Self, ConnectPlanError> {
        let mut options = confinement::within(options)?;
        if let Some(source) = options.source {
            if !options.family.admits(source) {
                return Err(ConnectPlanError::SourceFamily {
                    source_address: source,
                });
            }
            options.family = match source {
                IpAddr::V4(_) => AddressFamily::Ipv4,
                IpAddr::V6(_) => AddressFamily::Ipv6,
            };
        }
        if options.proxy_tls.is_none()
            && let Some(proxy) = options
                .proxies
                .proxies()
                .find(|proxy| proxy.scheme() == ProxyScheme::Https)
        {
            return Err(ConnectPlanError::ProxyTls {
                proxy: proxy.to_string(),
            });
        }
        if let Some(filter) = &options.address_filter
            && let Some(address) = options.name_servers.iter().find(|it| !filter.allows(**it))
        {
            return Err(ConnectPlanError::NameServer { address: *address });
        }
        let server_name = options.server_name.as_deref().map(server_name);
        Ok(Self {
            server_name: server_name.transpose()?,
            options,
        })
    }

    /// The host that the certificate of `endpoint` has to name.
    pub(crate) fn certified_host<'a>(&'a self, endpoint: &'a Endpoint) -> Host<&'a str> {
        match &self.server_name {
            None => endpoint.host(),
            Some(Host::Domain(name)) => Host::Domain(name),
            Some(Host::Ipv4(address)) => Host::Ipv4(*address),
            Some(Host::Ipv6(address)) => Host::Ipv6(*address),
        }
    }

    /// Form of the request target for `endpoint`, which depends on the proxy.
    pub fn request_form(&self, endpoint: &Endpoint) -> RequestForm {
        match self.proxy(endpoint) {
            Some(proxy) if proxy.scheme().is_http() && endpoint.scheme() == Scheme::Http => {
                RequestForm::Absolute {
                    proxy_authorization: proxy.authorization(),
                }
            }
            _ => RequestForm::Origin,
        }
    }

    /// The Unix socket by which `endpoint` is reached, if it is.
    pub(crate) fn unix_socket<'a>(&'a self, endpoint: &'a Endpoint) -> Option<&'a Path> {
        endpoint.socket().or(self.options.unix_socket.as_deref())
    }

    /// The proxy between us and `endpoint`, if there is one.
    pub(crate) fn proxy(&self, endpoint: &Endpoint) -> Option<&Proxy> {
        match self.unix_socket(endpoint) {
            Some(_) => None,
            None => self.options.proxies.select(endpoint),
        }
    }
}

fn server_name(name: &str) -> Result<Host, ConnectPlanError> {
    let host = Host::parse(name).ok();
    let is_usable = |host: &Host| match host {
        Host::Domain(name) => ServerName::try_from(name.as_str()).is_ok(),
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    };
    host.filter(is_usable)
        .ok_or_else(|| ConnectPlanError::ServerName {
            name: name.to_owned(),
        })
}

/// Why connections cannot be opened as configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectPlanError {
    /// The source address is not of the requested family.
    #[error("the source address {source_address} is not of the requested address family")]
    SourceFamily {
        /// The source address.
        source_address: IpAddr,
    },
    /// A server name that no certificate can be for.
    #[error("`{name}` is not a name that a certificate can be for")]
    ServerName {
        /// As it was given.
        name: String,
    },
    /// A name server that the address filter does not allow.
    #[error("the name server {address} is not allowed")]
    NameServer {
        /// Its address.
        address: SocketAddr,
    },
    /// A way that leads around the address filter of a confined process.
    #[error("{way} is not allowed, because the targets of this process are limited")]
    Confined {
        /// The way.
        way: &'static str,
    },
    /// A proxy over TLS without TLS settings for proxies.
    #[error("the proxy {proxy} needs TLS settings for proxies")]
    ProxyTls {
        /// The proxy's URL.
        proxy: String,
    },
}

/// Form of a request target (RFC 9112, section 3.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestForm {
    /// Path and query.
    Origin,
    /// The whole URL, for an HTTP proxy.
    Absolute {
        /// The value of `Proxy-Authorization` to send along.
        proxy_authorization: Option<Secret>,
    },
}

#[cfg(test)]
mod tests;
