//! From an endpoint to a stream on which the request can be sent, each phase timed.

pub(crate) mod endpoint;

pub(crate) mod credentials;

pub(crate) mod resolve_override;

pub(crate) mod resolve;

pub(crate) mod address_filter;

pub(crate) mod confinement;

pub(crate) mod proxy;

pub(crate) mod no_proxy;

pub(crate) mod tunnel;

pub(crate) mod race;

pub(crate) mod stream;

pub(crate) mod tls_session;

pub(crate) mod plan;

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use plimsoll_model::{Clock, Failure, FailureKind, Phase, Phases, Side};
use plimsoll_wire::h1::Limits;
use plimsoll_wire::{ProxiedEnds, SocketOptions, connect_tcp, tls};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_socks::TargetAddr;
use url::Host;

use crate::connect::endpoint::{Endpoint, Pin};
use crate::connect::plan::{ConnectPlan, ProxyHeader};
use crate::connect::proxy::{Proxy, ProxyScheme};
use crate::connect::race::{interleave, race};
use crate::connect::resolve::{Resolved, Resolver, ServiceRecords};
use crate::connect::stream::Stream;
use crate::http3::{
    self, Closing, EarlyData, Http3, Http3Connection, QuicConfig, WithoutEarlyData,
};

/// Opens connections; one per worker.
pub struct Connector {
    plan: Arc<ConnectPlan>,
    resolver: Resolver,
    socket: SocketOptions,
    tls: Option<TlsConnector>,
    proxy_tls: Option<TlsConnector>,
    quic: Option<QuicConfig>,
    /// Connections that are to be opened without early data, because a server rejected some.
    without_early_data: WithoutEarlyData,
    /// Signals the connections of QUIC that they are to be closed.
    closing: Arc<Closing>,
    /// The family that won the last race between both (RFC 8305, section 4, on history).
    ipv6_won: Cell<Option<bool>>,
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    /// Leads to the target, or to the HTTP proxy if requests are in absolute form.
    pub stream: Stream,
    /// The phases that happened, of dns, connect and tls.
    pub phases: Phases,
    /// The other end of the transport: the target or the proxy; a unix socket has none.
    pub peer: Option<SocketAddr>,
    /// The protocol that the target chose by ALPN.
    pub alpn: Option<Vec<u8>>,
    /// Until when the addresses of the target or the proxy are valid, by the TTL of name servers; forever if none was
    /// queried.
    pub valid_until: Option<Instant>,
}

/// A connection that did not come about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failure}")]
pub struct ConnectFailure {
    /// Why.
    pub failure: Failure,
    /// The phases completed before.
    pub phases: Phases,
}

impl Connector {
    /// For the worker whose runtime will run [`connect`](Self::connect).
    ///
    /// TLS sessions are resumed among the connections of one worker, so that workers share nothing.
    pub fn new(plan: Arc<ConnectPlan>) -> Self {
        let options = &plan.options;
        let tls = |config: &ClientConfig| worker_tls(config, options.full_handshakes);
        Self {
            resolver: Resolver::new(options.family, options.overrides.clone())
                .with_name_servers(options.name_servers.clone())
                .with_ttl(options.address_ttl),
            socket: SocketOptions {
                source: options.source,
                keepalive: options.keepalive,
            },
            tls: options.tls.as_deref().map(tls),
            proxy_tls: options.proxy_tls.as_deref().map(tls),
            quic: options
                .quic
                .clone()
                .map(|quic| quic.of_worker(options.full_handshakes)),
            without_early_data: WithoutEarlyData::default(),
            closing: Arc::default(),
            ipv6_won: Cell::new(None),
            plan,
        }
    }

    /// The plan it follows.
    pub fn plan(&self) -> &Arc<ConnectPlan> {
        &self.plan
    }

    /// Opens a connection for requests to `endpoint`.
    pub async fn connect(
        &self,
        endpoint: &Endpoint,
        clock: &impl Clock,
    ) -> Result<Connection, ConnectFailure> {
        self.connect_until(endpoint, clock, None).await
    }

    /// The same with a limit of the caller's in place of the plan's, so that one timer ends both, and the failure says which phase it
    /// was in.
    pub async fn connect_until(
        &self,
        endpoint: &Endpoint,
        clock: &impl Clock,
        until: Option<tokio::time::Instant>,
    ) -> Result<Connection, ConnectFailure> {
        let mut progress = Progress::begin(clock);
        let attempt = Box::pin(self.establish(endpoint, &mut progress));
        let outcome = match until {
            None => self.in_time(attempt).await,
            Some(until) => tokio::time::timeout_at(until, attempt).await.ok(),
        };
        match outcome.unwrap_or_else(|| Err(self.too_late(endpoint, &progress))) {
            Ok(established) => Ok(Connection {
                stream: established.stream,
                phases: progress.phases,
                peer: established.peer,
                alpn: established.alpn,
                valid_until: progress.valid_until,
            }),
            Err(failure) => Err(ConnectFailure {
                failure,
                phases: progress.phases,
            }),
        }
    }

    /// Opens a connection for requests to `endpoint` by HTTP/3; no proxy leads there.
    ///
    /// - `limits`: those on its responses.
    pub async fn connect_http3(
        &self,
        endpoint: &Endpoint,
        limits: Limits,
        clock: &impl Clock,
    ) -> Result<Http3Connection, ConnectFailure> {
        let mut progress = Progress::begin(clock);
        let attempt = Box::pin(self.establish_http3(endpoint, limits, &mut progress));
        let outcome = self.in_time(attempt).await;
        match outcome.unwrap_or_else(|| Err(self.too_late(endpoint, &progress))) {
            Ok(http) => Ok(Http3Connection {
                http,
                valid_until: progress.valid_until,
                phases: progress.phases,
            }),
            Err(failure) => Err(ConnectFailure {
                failure,
                phases: progress.phases,
            }),
        }
    }

    /// Closes every HTTP/3 connection, with the exchanges on it, and waits until the servers are told; other connections
    /// are closed when they are dropped. To be called before the runtime ends, which drops the tasks that send this.
    pub async fn close_http3(&self) {
        self.closing.close().await;
    }

    /// The outcome of an attempt, `None` if it took too long.
    async fn in_time<T>(&self, attempt: impl Future<Output = T>) -> Option<T> {
        match self.plan.options.timeout {
            None => Some(attempt.await),
            Some(limit) => tokio::time::timeout(limit, attempt).await.ok(),
        }
    }

    fn too_late(&self, endpoint: &Endpoint, progress: &Progress<'_, impl Clock>) -> Failure {
        let limit = self.plan.options.timeout.unwrap_or_default();
        Failure::new(progress.phase, FailureKind::Timeout).because(format!(
            "not connected to {} within {limit:?}",
            endpoint.authority_with_port()
        ))
    }

    async fn establish_http3(
        &self,
        endpoint: &Endpoint,
        limits: Limits,
        progress: &mut Progress<'_, impl Clock>,
    ) -> Result<Http3, Failure> {
        let config = self.quic.as_ref().ok_or_else(|| {
            Failure::new(Phase::Connect, FailureKind::Protocol)
                .on(Side::Config)
                .because("HTTP/3 needs settings of QUIC")
        })?;
        let mut addresses = self.resolve_endpoint(endpoint, progress).await?;
        progress.enter(Phase::Connect);
        let name = http3::certificate_name(&self.plan.certified_host(endpoint));
        let source = self.plan.options.source;
        interleave(&mut addresses, self.ipv6_won.get());
        let early = config.early_data() && !self.without_early_data.spend_one();
        let open = |peer| http3::open(config, peer, &name, source, early);
        let (_, (quic, accepted)) = race(&addresses, open)
            .await
            .map_err(|(peer, error)| http3::connect_failure(peer, &error))?;
        let early =
            accepted.map(|accepted| EarlyData::follow(accepted, self.without_early_data.clone()));
        let closing = Arc::clone(&self.closing);
        let http = http3::speak(quic, early, limits, closing).await?;
        progress.complete(Phase::Connect);
        Ok(http)
    }

    async fn establish(
        &self,
        endpoint: &Endpoint,
        progress: &mut Progress<'_, impl Clock>,
    ) -> Result<Established, Failure> {
        let transport = match self.plan.unix_socket(endpoint) {
            Some(path) => {
                progress.enter(Phase::Connect);
                let stream = UnixStream::connect(path).await.map_err(|error| {
                    Failure::from_io(Phase::Connect, &error)
                        .because(format!("{}: {error}", path.display()))
                })?;
                Transport {
                    stream: Stream::Unix(stream),
                    peer: None,
                }
            }
            None => match self.plan.proxy(endpoint) {
                None => self.direct(endpoint, progress).await?,
                Some(proxy) => self.through(proxy, endpoint, progress).await?,
            },
        };
        let Transport { mut stream, peer } = transport;
        if let Some(header) = &self.plan.options.proxy_header {
            let ends = stream.local_addr().zip(peer);
            announce(*header, ends, &mut stream)
                .await
                .map_err(|error| Failure::from_io(Phase::Connect, &error))?;
        }
        progress.complete(Phase::Connect);
        if !endpoint.is_tls() {
            return Ok(Established {
                stream,
                peer,
                alpn: None,
            });
        }
        progress.enter(Phase::Tls);
        let connector = self.tls.as_ref().ok_or_else(|| {
            Failure::new(Phase::Tls, FailureKind::Protocol)
                .on(Side::Config)
                .because("an https:// target needs TLS settings")
        })?;
        let host = self.plan.certified_host(endpoint);
        let stream = handshake(connector, &host, stream, Phase::Tls).await?;
        progress.complete(Phase::Tls);
        let alpn = match &stream {
            Stream::Tls(stream) => stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        };
        Ok(Established { stream, peer, alpn })
    }

    async fn direct(
        &self,
        endpoint: &Endpoint,
        progress: &mut Progress<'_, impl Clock>,
    ) -> Result<Transport, Failure> {
        let addresses = self.resolve_endpoint(endpoint, progress).await?;
        progress.enter(Phase::Connect);
        self.dial(addresses).await
    }

    async fn through(
        &self,
        proxy: &Proxy,
        endpoint: &Endpoint,
        progress: &mut Progress<'_, impl Clock>,
    ) -> Result<Transport, Failure> {
        let addresses = self
            .resolve(&proxy.host(), proxy.port(), progress)
            .await
            .map_err(|failure| tunnel::blame(proxy, failure))?;
        let target = match proxy.scheme() {
            ProxyScheme::Socks4 | ProxyScheme::Socks5 => {
                let addresses = self.resolve_endpoint(endpoint, progress).await?;
                TargetAddr::Ip(target_for(proxy.scheme(), &addresses)?)
            }
            ProxyScheme::Http
            | ProxyScheme::Https
            | ProxyScheme::Socks4a
            | ProxyScheme::Socks5h => match endpoint.host() {
                Host::Domain(name) => TargetAddr::Domain(name.into(), endpoint.port()),
                Host::Ipv4(address) => TargetAddr::Ip((address, endpoint.port()).into()),
                Host::Ipv6(address) => TargetAddr::Ip((address, endpoint.port()).into()),
            },
        };
        progress.enter(Phase::Connect);
        let mut transport = self
            .dial(addresses)
            .await
            .map_err(|failure| tunnel::blame(proxy, failure))?;
        if proxy.scheme() == ProxyScheme::Https {
            let connector = self
                .proxy_tls
                .as_ref()
                .expect("the plan has TLS settings for its proxies");
            transport.stream =
                handshake(connector, &proxy.host(), transport.stream, Phase::Connect)
                    .await
                    .map_err(|failure| tunnel::blame(proxy, failure))?;
        }
        transport.stream = match proxy.scheme() {
            ProxyScheme::Http | ProxyScheme::Https if endpoint.is_tls() => {
                tunnel::http(transport.stream, proxy, endpoint).await?
            }
            ProxyScheme::Http | ProxyScheme::Https => transport.stream,
            ProxyScheme::Socks4 | ProxyScheme::Socks4a => {
                tunnel::socks4(transport.stream, proxy, target).await?
            }
            ProxyScheme::Socks5 | ProxyScheme::Socks5h => {
                tunnel::socks5(transport.stream, proxy, target).await?
            }
        };
        Ok(transport)
    }

    /// Looks up the addresses of an endpoint, for callers that connect to each of them.
    pub async fn look_up(&self, endpoint: &Endpoint) -> Result<Resolved, Failure> {
        let (host, port) = (endpoint.host(), endpoint.port());
        self.admit_host(&host, port)?;
        self.resolver.resolve(&host, port).await
    }

    /// Looks up the servers of a service (RFC 2782).
    pub async fn services(&self, name: &str) -> Result<ServiceRecords, Failure> {
        self.resolver.services(name).await
    }

    async fn resolve_endpoint(
        &self,
        endpoint: &Endpoint,
        progress: &mut Progress<'_, impl Clock>,
    ) -> Result<Vec<SocketAddr>, Failure> {
        let (host, port) = (endpoint.host(), endpoint.port());
        let Some(pinned) = endpoint.pinned().and_then(Pin::address) else {
            return self.resolve(&host, port, progress).await;
        };
        self.admit_host(&host, port)?;
        self.admit(&host, vec![SocketAddr::new(pinned, port)])
    }

    /// The addresses of an endpoint that may be connected to, for callers that open connections themselves.
    pub async fn addresses(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
        let (host, port) = (endpoint.host(), endpoint.port());
        self.admit_host(&host, port)?;
        let resolved = self.resolver.resolve(&host, port).await?;
        let addresses = resolved.addresses.into_iter();
        self.admit(
            &host,
            addresses.map(|it| SocketAddr::new(it, port)).collect(),
        )
    }

    /// Names that may not be reached are not looked up either.
    fn admit_host(&self, host: &Host<&str>, port: u16) -> Result<(), Failure> {
        match &self.plan.options.address_filter {
            None => Ok(()),
            Some(filter) => filter.admit_host(&plain(host), port),
        }
    }

    fn admit(
        &self,
        host: &Host<&str>,
        addresses: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Failure> {
        match &self.plan.options.address_filter {
            None => Ok(addresses),
            Some(filter) => filter.admit(&plain(host), addresses),
        }
    }

    async fn resolve(
        &self,
        host: &Host<&str>,
        port: u16,
        progress: &mut Progress<'_, impl Clock>,
    ) -> Result<Vec<SocketAddr>, Failure> {
        progress.enter(Phase::Dns);
        self.admit_host(host, port)?;
        let resolved = self.resolver.resolve(host, port).await?;
        progress.valid_until = resolved.valid_until;
        if resolved.looked_up {
            progress.complete(Phase::Dns);
        }
        let addresses = resolved
            .addresses
            .into_iter()
            .map(|address| SocketAddr::new(address, port))
            .collect();
        self.admit(host, addresses)
    }

    async fn dial(&self, mut addresses: Vec<SocketAddr>) -> Result<Transport, Failure> {
        interleave(&mut addresses, self.ipv6_won.get());
        let (peer, stream) = race(&addresses, |peer| connect_tcp(peer, &self.socket))
            .await
            .map_err(|(peer, error)| {
                Failure::from_io(Phase::Connect, &error).because(format!("{peer}: {error}"))
            })?;
        if addresses
            .iter()
            .any(|address| address.is_ipv6() != peer.is_ipv6())
        {
            self.ipv6_won.set(Some(peer.is_ipv6()));
        }
        Ok(Transport {
            peer: Some(peer),
            stream: Stream::Tcp(stream),
        })
    }
}

/// A host without the brackets of IPv6 in URLs.
fn plain(host: &Host<&str>) -> String {
    match host {
        Host::Ipv6(address) => address.to_string(),
        host => host.to_string(),
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

struct Transport {
    stream: Stream,
    peer: Option<SocketAddr>,
}

struct Established {
    stream: Stream,
    peer: Option<SocketAddr>,
    alpn: Option<Vec<u8>>,
}

/// Which phase is under way and what the earlier ones took; outlives an attempt that is cut short.
struct Progress<'a, C> {
    clock: &'a C,
    phase: Phase,
    entered: Instant,
    phases: Phases,
    valid_until: Option<Instant>,
}

impl<'a, C: Clock> Progress<'a, C> {
    fn begin(clock: &'a C) -> Self {
        Self {
            clock,
            phase: Phase::Dns,
            entered: clock.now(),
            phases: Phases::default(),
            valid_until: None,
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.entered = self.clock.now();
    }

    /// A phase that happens twice, such as two name lookups, adds up.
    fn complete(&mut self, phase: Phase) {
        let took = self.clock.now().saturating_duration_since(self.entered);
        let earlier = self.phases.get(phase).unwrap_or_default();
        self.phases.set(phase, earlier + took);
    }
}

/// Sends the PROXY header.
///
/// - `ends`: ours and the target's, or those of the proxy that leads there.
async fn announce(
    header: ProxyHeader,
    ends: Option<(SocketAddr, SocketAddr)>,
    stream: &mut Stream,
) -> io::Result<()> {
    let ends = ends.map(|(local, peer)| ProxiedEnds {
        source: SocketAddr::new(header.client.unwrap_or(local.ip()), local.port()),
        destination: peer,
    });
    stream.write_all(&header.version.header(ends)).await?;
    stream.flush().await
}

fn worker_tls(config: &ClientConfig, full_handshakes: bool) -> TlsConnector {
    // The default of rustls; one server name takes one of them.
    const SESSIONS: usize = 256;
    let mut config = config.clone();
    config.resumption = if full_handshakes {
        Resumption::disabled()
    } else {
        Resumption::in_memory_sessions(SESSIONS)
    };
    TlsConnector::from(Arc::new(config))
}

async fn handshake(
    connector: &TlsConnector,
    host: &Host<&str>,
    stream: Stream,
    phase: Phase,
) -> Result<Stream, Failure> {
    let name = match host {
        Host::Domain(name) => ServerName::try_from((*name).to_owned()).map_err(|_| {
            Failure::new(phase, FailureKind::CertificateHostname)
                .on(Side::Config)
                .because(format!("no certificate can be for the name `{name}`"))
        })?,
        Host::Ipv4(address) => ServerName::from(IpAddr::from(*address)),
        Host::Ipv6(address) => ServerName::from(IpAddr::from(*address)),
    };
    connector
        .connect(name, stream)
        .await
        .map(|stream| Stream::Tls(Box::new(stream)))
        .map_err(|error| tls::failure(phase, &error))
}

/// SOCKS 4 knows IPv4 only; for SOCKS 5 the resolver's first address is as good as any.
fn target_for(scheme: ProxyScheme, addresses: &[SocketAddr]) -> Result<SocketAddr, Failure> {
    addresses
        .iter()
        .find(|address| scheme != ProxyScheme::Socks4 || address.is_ipv4())
        .copied()
        .ok_or_else(|| {
            Failure::new(Phase::Dns, FailureKind::NameNotFound)
                .on(Side::Config)
                .because(
                    "the target has no IPv4 address, and SOCKS 4 knows no other; use socks5://",
                )
        })
}

#[cfg(test)]
mod tests;
