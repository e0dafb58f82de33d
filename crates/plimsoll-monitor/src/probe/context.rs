//! Resources that all probes of a thread share: connectors, the read buffer, the clock.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_client::fetch::{FetchLimits, Fetcher};
use plimsoll_client::{
    AddressFamily, AddressFilter, ConnectOptions, ConnectPlan, ConnectPlanError, Connection,
    Connector, Endpoint, EndpointError, Overrides, Proxy, ProxyRules, ProxyScheme, ReadBuffer,
    RequestForm, Resolver,
};
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::{ClientConfig, IdentityFiles, TlsError, TlsSettings, Trust};

use crate::probe::reading::Reading;

/// Resources that all probes of a thread share.
#[derive(Debug)]
pub struct ProbeContext {
    /// The time.
    pub clock: SystemClock,
    /// The read buffer of connections.
    pub buffer: ReadBuffer,
    /// By the address of their plans.
    connectors: RefCell<HashMap<usize, Planned>>,
}

/// A connector, and the plan that it follows.
type Planned = (Arc<ConnectPlan>, Rc<Connector>);

impl ProbeContext {
    /// For the thread whose runtime will run the probes.
    pub fn new() -> Self {
        Self {
            clock: SystemClock,
            buffer: ReadBuffer::new(),
            connectors: RefCell::default(),
        }
    }

    fn connector(&self, plan: &Arc<ConnectPlan>) -> Rc<Connector> {
        let key = Arc::as_ptr(plan) as usize;
        let mut connectors = self.connectors.borrow_mut();
        let (_, connector) = connectors
            .entry(key)
            .or_insert_with(|| (Arc::clone(plan), Rc::new(Connector::new(Arc::clone(plan)))));
        Rc::clone(connector)
    }

    /// Forgets the connectors of plans that nothing else uses, after a reload.
    pub fn prune(&self) {
        let mut connectors = self.connectors.borrow_mut();
        // One is here, one in the connector.
        connectors.retain(|_, (plan, _)| Arc::strong_count(plan) > 2);
    }
}

impl Default for ProbeContext {
    fn default() -> Self {
        Self::new()
    }
}

/// Connection options of targets.
#[derive(Debug, Clone, Default)]
pub struct ReachOptions {
    /// For the whole check.
    pub timeout: Duration,
    /// Which certificates are trusted.
    pub trust: Trust,
    /// The certificate that is shown.
    pub identity: Option<IdentityFiles>,
    /// The name by which certificates are requested and verified; absent for that of the target.
    pub server_name: Option<String>,
    /// Which addresses are used.
    pub family: AddressFamily,
    /// The name servers; empty for the system's.
    pub name_servers: Vec<SocketAddr>,
    /// Which addresses may be connected to; absent for all.
    pub filter: Option<AddressFilter>,
    /// Protocols that are offered by ALPN.
    pub alpn: Vec<Vec<u8>>,
    /// What stands between the monitor and its target.
    pub proxy: Option<Proxy>,
}

/// Connection options of targets: compiled, shared by probes with the same options.
#[derive(Clone)]
pub struct Reach {
    plan: Arc<ConnectPlan>,
    /// For the whole check.
    pub timeout: Duration,
    /// For handshakes on connections that are open already.
    pub(super) tls: Arc<ClientConfig>,
    pub(super) server_name: Option<String>,
    filter: Option<AddressFilter>,
    family: AddressFamily,
    name_servers: Vec<SocketAddr>,
}

/// Why a target cannot be reached as configured.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// A file of TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The settings contradict each other.
    #[error(transparent)]
    Plan(#[from] ConnectPlanError),
}

impl Reach {
    /// Compiles `options`; fails if a file of TLS cannot be used, or if the filter does not allow a name server.
    pub fn new(options: ReachOptions) -> Result<Self, ReachError> {
        let is_tls_proxy = |proxy: &Proxy| proxy.scheme() == ProxyScheme::Https;
        let proxy_tls = if options.proxy.as_ref().is_some_and(is_tls_proxy) {
            let settings = TlsSettings {
                trust: options.trust.clone(),
                alpn: vec![b"http/1.1".to_vec()],
                ..TlsSettings::default()
            };
            Some(settings.compile()?)
        } else {
            None
        };
        let settings = TlsSettings {
            trust: options.trust,
            identity: options.identity,
            alpn: options.alpn,
            ..TlsSettings::default()
        };
        let tls = settings.compile()?;
        let plan = ConnectPlan::new(ConnectOptions {
            tls: Some(Arc::clone(&tls)),
            family: options.family,
            name_servers: options.name_servers.clone(),
            address_filter: options.filter.clone(),
            timeout: Some(options.timeout),
            server_name: options.server_name.clone(),
            proxies: options
                .proxy
                .map_or_else(ProxyRules::none, ProxyRules::always),
            proxy_tls,
            // The handshake is part of what is measured.
            full_handshakes: true,
            ..ConnectOptions::default()
        })?;
        Ok(Self {
            plan: Arc::new(plan),
            timeout: options.timeout,
            tls,
            server_name: options.server_name,
            filter: options.filter,
            family: options.family,
            name_servers: options.name_servers,
        })
    }

    /// Fetches documents; believes and reaches what the probe does.
    pub(super) fn fetcher(&self, limits: FetchLimits) -> Fetcher {
        Fetcher::over(Connector::new(Arc::clone(&self.plan)), limits)
    }

    /// The form of requests for `endpoint` over HTTP/1.
    pub(super) fn request_form(&self, endpoint: &Endpoint) -> RequestForm {
        self.plan.request_form(endpoint)
    }

    /// Finds addresses for probes that open no connection.
    pub(super) fn resolver(&self) -> Resolver {
        Resolver::new(self.family, Overrides::default())
            .with_name_servers(self.name_servers.clone())
    }

    /// Whether the address may be sent to.
    pub(super) fn allows(&self, address: SocketAddr) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| filter.allows(address))
    }

    /// Opens a connection; on an error the phases and the failure are in the reading.
    pub(crate) async fn connect(
        &self,
        endpoint: &Endpoint,
        context: &ProbeContext,
        reading: &mut Reading,
    ) -> Option<Connection> {
        let connector = context.connector(&self.plan);
        // That ends first, or at once with the check: what it waited for is known here alone.
        let connecting = connector.connect_until(endpoint, &context.clock, reading.until);
        match connecting.await {
            Ok(connection) => {
                reading.phases.add(&connection.phases);
                reading.connected = true;
                reading.peer = connection.peer.map(|peer| peer.ip());
                Some(connection)
            }
            Err(error) => {
                reading.phases.add(&error.phases);
                // The target was there, whatever the handshake made of it.
                reading.connected = error.failure.phase == Phase::Tls;
                reading.failure = Some(error.failure);
                None
            }
        }
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// A host and a port, written `host:port`, with brackets around IPv6.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpTarget {
    endpoint: Endpoint,
}

impl TcpTarget {
    /// Parses `host:port`.
    ///
    /// - `is_tls`: whether connections to it begin with a handshake.
    /// - `default_port`: the port if none is written.
    pub fn parse(text: &str, is_tls: bool, default_port: u16) -> Result<Self, EndpointError> {
        let scheme = if is_tls { "https" } else { "http" };
        let has_port = match text.rsplit_once(':') {
            Some((host, port)) => {
                let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
                is_number && (!host.contains(':') || host.ends_with(']'))
            }
            None => false,
        };
        let bare_ipv6 = text.parse::<std::net::Ipv6Addr>().is_ok();
        let authority = match (has_port, bare_ipv6) {
            (_, true) => format!("[{text}]:{default_port}"),
            (true, false) => text.to_owned(),
            (false, false) => format!("{text}:{default_port}"),
        };
        let endpoint = Endpoint::parse(&format!("{scheme}://{authority}"))?;
        Ok(Self { endpoint })
    }

    /// As an endpoint of a connection.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Host and port.
    pub fn text(&self) -> String {
        self.endpoint.authority_with_port()
    }
}

/// Runs a check within its timeout and notes how long it took.
pub(super) async fn timed(
    timeout: Duration,
    context: &ProbeContext,
    check: impl AsyncFnOnce(&mut Reading, Instant),
) -> Reading {
    let begun = context.clock.now();
    let until = tokio::time::sleep(timeout).deadline();
    let mut reading = Reading {
        until: Some(until),
        ..Reading::default()
    };
    let checking = check(&mut reading, begun + timeout);
    let ended = tokio::time::timeout_at(until, checking).await;
    if ended.is_err() && reading.failure.is_none() {
        let phase = if reading.connected {
            Phase::Wait
        } else {
            Phase::Connect
        };
        let cause = format!("no answer within {timeout:?}");
        reading.failure = Some(Failure::new(phase, FailureKind::Timeout).because(cause));
    }
    reading.took = context.clock.now().saturating_duration_since(begun);
    reading
}
