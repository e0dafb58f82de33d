//! Upstreams as configured.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::forward::{PoolOptions, Speaks};
use plimsoll_client::{
    ConnectOptions, ConnectPlan, ConnectPlanError, Endpoint, Pin, QuicError, QuicOptions,
};
use plimsoll_server::Notices;
use plimsoll_wire::tls::{IdentityFiles, TlsError, TlsSettings, Trust};

use super::discovery::{Discovery, ServerScheme};
use super::{BreakerPlan, ConcurrencyPlan, Ejection, HealthCheck, KeySource, RetryPolicy};
use crate::balance::Balance;

/// An upstream, immutable.
#[derive(Debug)]
pub(crate) struct UpstreamPlan {
    pub(crate) name: String,
    pub(crate) servers: Vec<ServerPlan>,
    pub(crate) options: UpstreamOptions,
    connect: Arc<ConnectPlan>,
    identity: String,
}

/// The kind of traffic to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Requests.
    #[default]
    Http,
    /// The bytes of connections.
    Tcp,
    /// Datagrams, those of QUIC too.
    Udp,
}

impl Transport {
    /// The scheme in the URL of a server; `None` for HTTP, which has two.
    pub(crate) const fn scheme(self) -> Option<&'static str> {
        match self {
            Self::Http => None,
            Self::Tcp => Some("tcp"),
            Self::Udp => Some("udp"),
        }
    }
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerPlan {
    pub(crate) endpoint: Endpoint,
    pub(crate) transport: Transport,
    /// 0 drains it.
    pub(crate) weight: u32,
    pub(crate) zone: Option<String>,
    /// It gets requests only while no other is available.
    pub(crate) is_backup: bool,
}

impl ServerPlan {
    /// The largest share.
    pub(crate) const MOST_WEIGHT: u32 = 1000;

    /// One with a share like others'.
    pub(crate) const fn new(transport: Transport, endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            transport,
            weight: 1,
            zone: None,
            is_backup: false,
        }
    }

    fn is_at_socket(&self) -> bool {
        matches!(self.endpoint.pinned(), Some(Pin::UnixSocket(_)))
    }

    /// Scheme, host and port, with the address if it is one of several; or its socket.
    pub(crate) fn name(&self) -> String {
        let endpoint = &self.endpoint;
        let name = match self.transport.scheme() {
            None => format!("{}://{}", endpoint.scheme(), endpoint.authority()),
            Some(_) if endpoint.is_tls() => format!("tls://{}", endpoint.authority_with_port()),
            Some(scheme) => format!("{scheme}://{}", endpoint.authority_with_port()),
        };
        match endpoint.pinned() {
            None => name,
            Some(Pin::Address(address)) => format!("{name} ({address})"),
            Some(socket @ Pin::UnixSocket(_)) => socket.to_string(),
        }
    }
}

impl UpstreamOptions {
    /// Whether anything of `tls` is given.
    fn has_tls_settings(&self) -> bool {
        self.trust != Trust::default() || self.identity.is_some() || self.server_name.is_some()
    }
}

/// How long a server may take.
#[derive(Debug, Clone)]
pub(crate) struct Timeouts {
    /// To accept a connection and finish the handshake of TLS. 5 s: a lost SYN is sent again after 1 and 3 s.
    pub(crate) connect: Duration,
    /// To send the head of the response, counted from the last piece of the request that was taken. 60 s, as nginx has it.
    pub(crate) response: Duration,
    /// Between two pieces of the response. 60 s, as nginx has it.
    pub(crate) idle: Duration,
    /// From the arrival of a request to the last byte of its response, over all attempts. A tunnel that has been opened has no end.
    pub(crate) total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            response: Duration::from_mins(1),
            idle: Duration::from_mins(1),
            total: None,
        }
    }
}

/// The settings of an upstream.
#[derive(Debug, Clone, Default)]
pub(crate) struct UpstreamOptions {
    pub(crate) balance: Balance,
    pub(crate) key: KeySource,
    /// The cookie that keeps a client at its server.
    pub(crate) sticky: Option<String>,
    pub(crate) pool: PoolOptions,
    pub(crate) timeouts: Timeouts,
    pub(crate) trust: Trust,
    pub(crate) identity: Option<IdentityFiles>,
    /// The name that certificates are verified by and that TLS requests, in place of the host of the URL.
    pub(crate) server_name: Option<String>,
    pub(crate) discovery: Discovery,
    /// Receives what is wrong with a file of servers.
    pub(crate) notices: Notices,
    /// Name servers in place of the system's.
    pub(crate) resolvers: Vec<SocketAddr>,
    /// The gateway's own: servers in it are preferred.
    pub(crate) zone: Option<String>,
    pub(crate) retry: RetryPolicy,
    /// How long a response is waited for before another server gets the request too.
    pub(crate) hedge: Option<Duration>,
    pub(crate) concurrency: Option<ConcurrencyPlan>,
    pub(crate) breaker: Option<BreakerPlan>,
    pub(crate) health: Option<HealthCheck>,
    pub(crate) ejection: Option<Ejection>,
    /// How long a server that becomes available takes to get its whole share; zero gives it at once.
    pub(crate) slow_start: Duration,
    /// Below this share of healthy servers all are used, since the few would be overrun; 0 never does.
    pub(crate) panic_threshold: f64,
}

/// Why an upstream cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error("there is no server")]
    Empty,
    #[error("`balance = \"{0}\"` chooses by a key: give `by`, such as by = \"source\"")]
    NoKey(Balance),
    #[error("every weight is 0, so no server gets a request")]
    NoWeight,
    #[error(
        "servers of http://, tcp:// (or tls://) and udp:// are mixed; define an upstream for each kind"
    )]
    Mixed,
    #[error("`by` is \"source\" for servers of tcp:// and udp://, which see no requests")]
    NoRequests,
    #[error("cannot prepare TLS: {}", plimsoll_model::with_causes(.0))]
    Tls(#[from] TlsError),
    #[error("`protocol = \"http3\"` needs servers with https://")]
    QuicWithoutTls,
    #[error("`protocol = \"{0}\"` goes without TLS: write http:// or a Unix socket")]
    ApplicationOverTls(&'static str),
    #[error("applications behind {0} are checked by `health = {{ kind = \"tcp\" }}`")]
    ApplicationHealth(&'static str),
    #[error("`{0}` is at a Unix socket, which has no `port` to check")]
    SocketWithPort(String),
    #[error(
        "`tls` is for servers of tls://, and for checks with `tls = true`: nothing here uses it"
    )]
    UnusedTls,
    #[error(transparent)]
    Quic(#[from] QuicError),
    #[error(transparent)]
    Connect(#[from] ConnectPlanError),
}

impl UpstreamPlan {
    /// What its servers speak.
    pub(crate) fn speaks(&self) -> Speaks {
        self.options.pool.speaks
    }

    /// Checks the settings and reads the certificates they name.
    pub(crate) fn new(
        name: &str,
        servers: Vec<ServerPlan>,
        mut options: UpstreamOptions,
    ) -> Result<Self, UpstreamError> {
        let is_given = !options.discovery.gives_all();
        if servers.is_empty() && is_given {
            return Err(UpstreamError::Empty);
        }
        if servers.iter().all(|server| server.weight == 0) && is_given {
            return Err(UpstreamError::NoWeight);
        }
        let transport = transport_of(&servers, &options.discovery);
        if servers.iter().any(|server| server.transport != transport) {
            return Err(UpstreamError::Mixed);
        }
        if transport != Transport::Http {
            match options.key {
                KeySource::None => options.key = KeySource::Source,
                KeySource::Source => {}
                KeySource::Path
                | KeySource::Header(_)
                | KeySource::Cookie(_)
                | KeySource::Template(_) => {
                    return Err(UpstreamError::NoRequests);
                }
            }
        }
        // Datagrams lead to an address, so names are looked up before there are any.
        let has_names = servers.iter().any(|it| it.endpoint.address().is_none());
        if transport == Transport::Udp && has_names && options.discovery == Discovery::Fixed {
            options.discovery = Discovery::Dns;
        }
        if options.balance.is_keyed() && options.key == KeySource::None {
            return Err(UpstreamError::NoKey(options.balance));
        }
        // The name of a protocol of applications, and its key.
        let application = match options.pool.speaks {
            Speaks::FastCgi => Some(("FastCGI", "fastcgi")),
            Speaks::Uwsgi => Some(("uwsgi", "uwsgi")),
            _ => None,
        };
        if let (Some((name, _)), Some(check)) = (application, &options.health)
            && check.kind != super::HealthKind::Tcp
        {
            return Err(UpstreamError::ApplicationHealth(name));
        }
        if options.health.as_ref().is_some_and(|it| it.port.is_some())
            && let Some(server) = servers.iter().find(|it| it.is_at_socket())
        {
            return Err(UpstreamError::SocketWithPort(server.name()));
        }
        // The pool stops a handshake by the time limit of its connector.
        let scheme = options.discovery.scheme();
        let is_tls = scheme.is_some_and(ServerScheme::is_tls)
            || servers.iter().any(|server| server.endpoint.is_tls());
        if let Some((_, key)) = application
            && is_tls
        {
            return Err(UpstreamError::ApplicationOverTls(key));
        }
        let is_checked_over_tls = options
            .health
            .as_ref()
            .is_some_and(|it| it.tls == Some(true));
        let uses_tls = is_tls || is_checked_over_tls;
        if !uses_tls && transport != Transport::Http && options.has_tls_settings() {
            return Err(UpstreamError::UnusedTls);
        }
        // What the bytes of connections are is not known.
        let alpn = match transport {
            Transport::Http => options.pool.speaks.alpn(),
            Transport::Tcp | Transport::Udp => &[],
        };
        let settings = TlsSettings {
            trust: options.trust.clone(),
            identity: options.identity.clone(),
            alpn: alpn.iter().map(|name| name.to_vec()).collect(),
            ..TlsSettings::default()
        };
        // The system's roots are read only where they are needed.
        let tls = uses_tls.then(|| settings.compile()).transpose()?;
        let quic = if options.pool.speaks == Speaks::Http3 {
            let (Some(tls), true) = (&tls, servers.iter().all(|it| it.endpoint.is_tls())) else {
                return Err(UpstreamError::QuicWithoutTls);
            };
            let quic = QuicOptions {
                stream_window: Some(options.pool.stream_window),
                ..QuicOptions::default()
            };
            Some(quic.compile(tls, false)?)
        } else {
            None
        };
        let connect = ConnectPlan::new(ConnectOptions {
            tls,
            quic,
            timeout: Some(options.timeouts.connect),
            server_name: options.server_name.clone(),
            name_servers: options.resolvers.clone(),
            ..ConnectOptions::default()
        })?;
        // Connections to a server that closes them sooner would fail; it is checked before use, but later is cheaper.
        options.pool.idle = options.pool.idle.min(options.pool.connections);
        // The servers are state: those of a file change without another configuration, and with another list those that stay
        // keep their connections and their health. What is looked up is another thing.
        let identity = match &options.discovery {
            Discovery::Dns => format!("{name} {servers:?} {options:?}"),
            _ => format!("{name} {transport:?} {is_tls} {options:?}"),
        };
        Ok(Self {
            name: name.to_owned(),
            servers,
            options,
            connect: Arc::new(connect),
            identity,
        })
    }

    /// Whether connections to any of its servers begin with a handshake of TLS.
    pub(crate) fn has_servers_over_tls(&self) -> bool {
        let scheme = self.options.discovery.scheme();
        scheme.is_some_and(ServerScheme::is_tls)
            || self.servers.iter().any(|it| it.endpoint.is_tls())
    }

    /// The kind of traffic to its servers.
    pub(crate) fn transport(&self) -> Transport {
        transport_of(&self.servers, &self.options.discovery)
    }

    /// Connection settings.
    pub(crate) fn connect(&self) -> Arc<ConnectPlan> {
        Arc::clone(&self.connect)
    }

    /// Everything in the configuration that its state depends on.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }
}

/// The kind of traffic to the servers, which all have in common.
fn transport_of(servers: &[ServerPlan], discovery: &Discovery) -> Transport {
    let first = servers.first().map(|server| server.transport);
    let scheme = discovery.scheme().map(ServerScheme::transport);
    first.or(scheme).unwrap_or_default()
}
