//! `tcp`, `udp` and `quic` in a `[[listen]]`: where connections and datagrams go.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::with_causes;
use plimsoll_server::config::{
    ListenKind, Listened, Table, Value, addresses, as_text, retry_key, template,
};
use plimsoll_server::{DatagramHandler, Moment, QuicPlan, Serves, StreamHandler, WorkerContext};
use plimsoll_wire::tls::{ACME_TLS, TlsError, TlsSettings, Trust};
use plimsoll_wire::{ProxyProtocol, RetryKey};

use super::{Upstreams, servers, upstream};
use crate::layer4::{
    DatagramPlan, FlowLimits, Layer4Figures, QuicHandler, RelayedQuicHandler, RelayedQuicPlan,
    ServerIds, TcpHandler, TcpPlan, TcpRoute, TcpRoutes, UdpHandler,
};
use crate::upstream::{KeySource, ServerPlan, Transport, UpstreamOptions, UpstreamPlan};

/// Kinds of listeners that are not HTTP: `tcp`, `udp` and `quic` in a `[[listen]]`.
pub const LISTENS: [ListenKind; 3] = [
    ListenKind {
        key: "tcp",
        compile: tcp,
    },
    ListenKind {
        key: "udp",
        compile: udp,
    },
    ListenKind {
        key: "quic",
        compile: quic,
    },
];

/// Why connections to the servers of a relay cannot be set up.
#[derive(Debug, thiserror::Error)]
enum RelayProblem {
    /// Problems of a configuration are one text, with its causes.
    #[error("{}", with_causes(.0))]
    Tls(#[from] TlsError),
    #[error(transparent)]
    NoCipher(#[from] quinn::crypto::rustls::NoInitialCipherSuite),
}

/// Ten minutes, as nginx has it.
const IDLE_OF_TCP: Duration = Duration::from_mins(10);

/// Keys of `tcp` that say how connections are forwarded.
const OF_FORWARDING: [&str; 4] = ["to", "routes", "proxy_protocol", "idle_timeout"];

/// Upstream or URL, or a table with routes, or with the text that clients are sent.
fn tcp(value: Value<'_>, listened: &Listened<'_>) -> Option<Serves> {
    let mut proxy_protocol = Some(None);
    let mut announced = None;
    let mut idle_timeout = IDLE_OF_TCP;
    let mut admitted = Some(None);
    let mut respond = None;
    let routes = if value.is_table() {
        let mut table = value.table()?;
        if let Some(value) = table.take_value("respond") {
            let text = template(&value, listened.maps, Moment::Connection);
            for key in OF_FORWARDING {
                if table.was_given(key) || table.has(key) {
                    let message =
                        format!("`{key}` has no effect: `respond` closes each connection");
                    value.wrong::<()>(message);
                }
            }
            respond = Some(text);
        }
        let fallback = table
            .take_value("to")
            .map(|to| target(&to, listened, Transport::Tcp));
        let has_routes = table.has("routes");
        let tables = table.tables("routes");
        if fallback.is_none() && !has_routes && !table.was_given("to") && respond.is_none() {
            table.missing(
                "to",
                "the name of an upstream or a URL such as tcp://10.0.0.1:5432",
            );
        }
        let routes: Vec<_> = tables.into_iter().map(|it| route(it, listened)).collect();
        if let Some(value) = table.take_value("proxy_protocol") {
            proxy_protocol = match as_text(&value) {
                Some("v1") => Some(Some(ProxyProtocol::V1)),
                Some("v2") => Some(Some(ProxyProtocol::V2)),
                Some(_) => value.wrong("is \"v1\" or \"v2\""),
                None => None,
            };
            announced = Some(value);
        }
        if let Some(value) = table.take_value("addresses") {
            admitted = addresses(value).map(Some);
        }
        if let Some(given) = table.duration("idle_timeout") {
            idle_timeout = given.max(Duration::from_millis(1));
        }
        let is_whole = fallback.is_some() || !routes.is_empty() || respond.is_some();
        table.finish();
        let fallback = match fallback {
            None => None,
            Some(fallback) => Some(fallback?),
        };
        is_whole.then_some(TcpRoutes {
            routes: routes.into_iter().collect::<Option<_>>()?,
            fallback,
        })?
    } else {
        TcpRoutes {
            routes: Vec::new(),
            fallback: Some(target(&value, listened, Transport::Tcp)?),
        }
    };
    if let Some(value) = announced
        && let Some(upstream) = routes.targets().find(|it| it.has_servers_over_tls())
    {
        return value.wrong(format!(
            "comes before the first byte of a connection, and the servers of `{}` begin with TLS",
            upstream.name
        ));
    }
    let respond = match respond {
        None => None,
        Some(text) => Some(text?),
    };
    let figures = listened.counters.figures::<Layer4Figures>();
    let plan = Arc::new(TcpPlan {
        routes,
        respond,
        addresses: admitted?,
        proxy_protocol: proxy_protocol?,
        idle_timeout,
        figures: figures.listener("tcp", listened.identity),
        log: listened.log.cloned(),
    });
    let protocols = plan.routes.protocols();
    Some(Serves::Stream {
        handler: Arc::new(move |context: &WorkerContext| {
            Rc::new(TcpHandler::new(&plan, context)) as Rc<dyn StreamHandler>
        }),
        tls: listened
            .tls
            .as_deref()
            .map(|tls| for_any_protocol(tls, protocols)),
    })
}

/// The same TLS for connections of any protocol: clients may offer none by ALPN, or one of `protocols` that routes ask for.
fn for_any_protocol(
    tls: &rustls::ServerConfig,
    mut protocols: Vec<Vec<u8>>,
) -> Arc<rustls::ServerConfig> {
    let mut tls = tls.clone();
    let is_challenged = tls.alpn_protocols.iter().any(|name| name == ACME_TLS);
    if is_challenged {
        protocols.push(ACME_TLS.to_vec());
    }
    tls.alpn_protocols = protocols;
    Arc::new(tls)
}

/// A minute: a client that still waits for a reply has sent again by then.
const IDLE_OF_FLOWS: Duration = Duration::from_mins(1);

/// Flows of one worker, and of one source.
const FLOWS: usize = 65_536;
const FLOWS_PER_SOURCE: usize = 1024;

/// The servers of datagrams and the limits of their flows: an upstream or URL, or a table with limits.
///
/// - `hint`: an example, for a table without `to`.
/// - `more`: takes the keys that only one of the two protocols has.
fn datagram_target(
    value: Value<'_>,
    listened: &Listened<'_>,
    hint: &str,
    more: impl FnOnce(&mut Table<'_>),
) -> Option<(Arc<UpstreamPlan>, FlowLimits)> {
    let mut limits = default_limits();
    if !value.is_table() {
        return Some((target(&value, listened, Transport::Udp)?, limits));
    }
    let mut table = value.table()?;
    let to = table.take_value("to");
    if to.is_none() && !table.was_given("to") {
        table.missing("to", hint);
    }
    let to = to.and_then(|to| target(&to, listened, Transport::Udp));
    flow_limits(&mut table, &mut limits);
    more(&mut table);
    table.finish();
    Some((to?, limits))
}

fn udp(value: Value<'_>, listened: &Listened<'_>) -> Option<Serves> {
    let mut amplification = None;
    let hint = "the name of an upstream or a URL such as udp://10.0.0.1:53, or udp = { echo = {} }";
    let (upstream, limits) = datagram_target(value, listened, hint, |table| {
        amplification = table.count("amplification", 1..=1_000_000);
    })?;
    let amplification = amplification.and_then(|it| u32::try_from(it).ok());
    let plan = datagram_plan("udp", upstream, limits, (amplification, None), listened);
    Some(Serves::Datagram(Arc::new(
        move |context: &WorkerContext| {
            Box::new(UdpHandler::new(&plan, context)) as Box<dyn DatagramHandler>
        },
    )))
}

fn quic(value: Value<'_>, listened: &Listened<'_>) -> Option<Serves> {
    if let Some(tls) = &listened.tls {
        return relayed_quic(value, listened, tls);
    }
    let hint = "the name of an upstream or a URL such as udp://10.0.0.1:443";
    let mut key = None;
    let (upstream, limits) = datagram_target(value, listened, hint, |table| {
        key = retry_key(table, listened.paths);
    })?;
    let plan = datagram_plan("quic", upstream, limits, (None, key), listened);
    let ids = listened.states.state(&plan.identity, ServerIds::default);
    Some(Serves::Datagram(Arc::new(
        move |context: &WorkerContext| {
            Box::new(QuicHandler::new(&plan, &ids, context)) as Box<dyn DatagramHandler>
        },
    )))
}

/// Settings of `quic` on a listener that has `tls`.
struct Relayed {
    alpn: Vec<Vec<u8>>,
    streams: u32,
    datagram_bytes: usize,
    idle_timeout: Duration,
    server_name: Option<String>,
    trust: Trust,
    resets: usize,
    retry_key: Option<RetryKey>,
}

/// Half a minute, as QUIC libraries have it.
const IDLE_OF_QUIC: Duration = Duration::from_secs(30);

/// Streams of each direction that a side may have open.
const STREAMS: u32 = 256;

/// Bytes of datagrams that wait to be read, and of a stream.
const DATAGRAM_BYTES: usize = 1 << 20;
const STREAM_WINDOW: u32 = 256 * 1024;
const RELAYED_WINDOW: u32 = 1 << 20;

/// Resets of a connection within ten seconds.
const RESETS: usize = 1000;

impl Default for Relayed {
    fn default() -> Self {
        Self {
            alpn: vec![b"h3".to_vec()],
            streams: STREAMS,
            datagram_bytes: DATAGRAM_BYTES,
            idle_timeout: IDLE_OF_QUIC,
            server_name: None,
            trust: Trust::PublicRoots,
            resets: RESETS,
            retry_key: None,
        }
    }
}

/// An upstream or URL, or a table, for QUIC that ends here and begins anew.
fn relayed_quic(
    value: Value<'_>,
    listened: &Listened<'_>,
    tls: &Arc<rustls::ServerConfig>,
) -> Option<Serves> {
    let mut relayed = Relayed::default();
    let (upstream, clients) = if value.is_table() {
        let mut table = value.table()?;
        let to = table.take_value("to");
        if to.is_none() && !table.was_given("to") {
            let hint = "the name of an upstream or a URL such as udp://10.0.0.1:443";
            table.missing("to", hint);
        }
        let to = to.and_then(|to| target(&to, listened, Transport::Udp));
        let is_right = relayed.take_keys(&mut table, listened);
        let clients = relayed.clients();
        let clients = clients
            .map_err(|error| table.wrong(error.to_string(), None))
            .ok();
        table.finish();
        (to.filter(|_| is_right)?, clients?)
    } else {
        let to = target(&value, listened, Transport::Udp)?;
        (to, value.check(relayed.clients())?)
    };
    let figures = listened.counters.figures::<Layer4Figures>();
    let plan = Arc::new(RelayedQuicPlan {
        clients,
        server_name: relayed.server_name,
        resets: relayed.resets,
        connect_timeout: upstream.options.timeouts.connect,
        upstream,
        figures: figures.listener("quic", listened.identity),
        log: listened.log.cloned(),
    });
    Some(Serves::Quic(QuicPlan {
        handler: Arc::new(move |context: &WorkerContext| {
            Rc::new(RelayedQuicHandler::new(&plan, context)) as Rc<dyn plimsoll_server::QuicHandler>
        }),
        tls: Arc::clone(tls),
        alpn: relayed.alpn,
        streams: relayed.streams,
        datagram_bytes: relayed.datagram_bytes,
        stream_window: STREAM_WINDOW,
        idle_timeout: relayed.idle_timeout,
        retry_key: relayed.retry_key,
    }))
}

impl Relayed {
    /// Whether what they say is right.
    fn take_keys(&mut self, table: &mut Table<'_>, listened: &Listened<'_>) -> bool {
        let mut is_right = true;
        if let Some(value) = table.take_value("alpn") {
            match value.texts_with(wrong_protocol) {
                Some(names) if !names.is_empty() => {
                    self.alpn = names.into_iter().map(String::into_bytes).collect();
                }
                Some(_) => {
                    table.wrong("`alpn` names no protocol", None);
                    is_right = false;
                }
                None => is_right = false,
            }
        }
        if let Some(streams) = table.count("streams", 1..=100_000) {
            self.streams = u32::try_from(streams).unwrap_or(STREAMS);
        }
        if let Some(bytes) = table.bytes("datagram_buffer") {
            // The smallest that holds a datagram of QUIC.
            self.datagram_bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(1500);
        }
        if let Some(timeout) = table.duration("idle_timeout") {
            self.idle_timeout = timeout.max(Duration::from_millis(100));
        }
        if let Some(resets) = table.count("resets", 1..=10_000_000) {
            self.resets = resets;
        }
        self.server_name = table.text("server_name");
        if let Some(name) = &self.server_name
            && rustls::pki_types::ServerName::try_from(name.as_str()).is_err()
        {
            let message = format!("`{name}` is neither a host nor an address");
            table.wrong(message, None);
            is_right = false;
        }
        if let Some(file) = table.take_value("ca") {
            match listened.paths.read(&file) {
                Some(file) => self.trust = Trust::Only(file),
                None => is_right = false,
            }
        }
        self.retry_key = retry_key(table, listened.paths);
        is_right
    }

    /// Connection settings for servers, for each protocol that a client may have chosen.
    fn clients(&self) -> Result<Vec<(Vec<u8>, quinn::ClientConfig)>, RelayProblem> {
        let settings = TlsSettings {
            trust: self.trust.clone(),
            alpn: self.alpn.clone(),
            ..TlsSettings::default()
        };
        let tls = settings.compile()?;
        let mut transport = quinn::TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(self.streams.into())
            .max_concurrent_uni_streams(self.streams.into())
            .stream_receive_window(STREAM_WINDOW.into())
            .receive_window(RELAYED_WINDOW.into())
            .send_window(u64::from(RELAYED_WINDOW))
            .max_idle_timeout(quinn::IdleTimeout::try_from(self.idle_timeout).ok())
            .datagram_receive_buffer_size(Some(self.datagram_bytes))
            .datagram_send_buffer_size(self.datagram_bytes);
        let transport = Arc::new(transport);
        let clients = self.alpn.iter().map(|protocol| {
            let mut tls = (*tls).clone();
            tls.alpn_protocols = vec![protocol.clone()];
            let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls);
            let crypto = crypto?;
            let mut client = quinn::ClientConfig::new(Arc::new(crypto));
            client.transport_config(Arc::clone(&transport));
            Ok((protocol.clone(), client))
        });
        clients.collect()
    }
}

fn datagram_plan(
    protocol: &'static str,
    upstream: Arc<UpstreamPlan>,
    limits: FlowLimits,
    (amplification, retry_key): (Option<u32>, Option<RetryKey>),
    listened: &Listened<'_>,
) -> Arc<DatagramPlan> {
    let figures = listened.counters.figures::<Layer4Figures>();
    let identity = format!(
        "{protocol} {} {limits:?} {amplification:?} {retry_key:?} {}",
        listened.identity,
        upstream.identity()
    );
    Arc::new(DatagramPlan {
        protocol,
        upstream,
        limits,
        amplification,
        retry_key,
        figures: figures.listener(protocol, listened.identity),
        log: listened.log.cloned(),
        identity,
    })
}

fn default_limits() -> FlowLimits {
    FlowLimits {
        flows: FLOWS,
        flows_per_source: u32::try_from(FLOWS_PER_SOURCE).unwrap_or(u32::MAX),
        idle: IDLE_OF_FLOWS,
    }
}

/// Bounds on flows.
fn flow_limits(table: &mut Table<'_>, limits: &mut FlowLimits) {
    if let Some(flows) = table.count("flows", 1..=10_000_000) {
        limits.flows = flows;
    }
    if let Some(flows) = table.count("flows_per_source", 1..=10_000_000) {
        limits.flows_per_source = u32::try_from(flows).unwrap_or(u32::MAX);
    }
    if let Some(idle) = table.duration("idle_timeout") {
        limits.idle = idle.max(Duration::from_millis(100));
    }
}

/// The error in the name of a protocol in ALPN, if there is one.
fn wrong_protocol(name: &str) -> Option<String> {
    let fits = (1..=255).contains(&name.len());
    (!fits).then(|| "a protocol has 1 to 255 bytes, such as \"h2\"".to_owned())
}

/// One of `routes`.
fn route(mut table: Table<'_>, listened: &Listened<'_>) -> Option<TcpRoute<Arc<UpstreamPlan>>> {
    let names = table.take_value("sni").map(|value| {
        value.texts_with(|name| {
            let host = name.strip_prefix("*.").unwrap_or(name);
            let is_host = !host.is_empty()
                && !host.starts_with('.')
                && host
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it));
            (!is_host).then(|| {
                format!("`{name}` is not a host such as \"www.example.org\" or \"*.example.org\"")
            })
        })
    });
    let protocols = table
        .take_value("alpn")
        .map(|value| value.texts_with(wrong_protocol));
    if names.is_none() && protocols.is_none() {
        table.missing("sni", "such as sni = \"www.example.org\", or alpn = \"h2\"");
    }
    let is_conditional = names.is_some() || protocols.is_some();
    let to = table.take_value("to");
    if to.is_none() && !table.was_given("to") {
        table.missing(
            "to",
            "the name of an upstream or a URL such as tcp://10.0.0.1:443",
        );
    }
    let to = to.and_then(|to| target(&to, listened, Transport::Tcp));
    table.finish();
    let names = names.unwrap_or(Some(Vec::new()))?;
    let protocols = protocols.unwrap_or(Some(Vec::new()))?;
    is_conditional.then_some(TcpRoute {
        names: names.iter().map(|it| it.to_ascii_lowercase()).collect(),
        protocols: protocols.into_iter().map(String::into_bytes).collect(),
        to: to?,
    })
}

/// The upstream of that name, or a separate one for a URL.
fn target(
    value: &Value<'_>,
    listened: &Listened<'_>,
    transport: Transport,
) -> Option<Arc<UpstreamPlan>> {
    let text = as_text(value)?;
    let scheme = transport.scheme().unwrap_or_default();
    if text.contains("://") {
        let Some(raw) = servers::raw_endpoint(text) else {
            return value.wrong(format!("`{text}` is not a URL of {scheme}://"));
        };
        let (given, endpoint) = value.check(raw)?;
        if given != transport {
            return value.wrong(format!("`{text}` is not a URL of {scheme}://"));
        }
        let options = UpstreamOptions {
            balance: upstream::default_balance(transport),
            key: KeySource::Source,
            notices: listened.notices.clone(),
            ..UpstreamOptions::default()
        };
        let server = ServerPlan::new(transport, endpoint);
        let plan = value.check(UpstreamPlan::new(text, vec![server], options))?;
        return Some(Arc::new(plan));
    }
    let upstreams = listened
        .section::<Upstreams>("upstream")
        .unwrap_or_default();
    let Some(found) = upstreams.0.get(text) else {
        let known: Vec<_> = upstreams.0.keys().map(String::as_str).collect();
        let hint = if known.is_empty() {
            format!("define it by [upstream.{text}], or give a URL with {scheme}://")
        } else {
            format!("there are {}", known.join(", "))
        };
        return value.wrong_with(format!("there is no upstream `{text}`"), Some(hint));
    };
    let found = found.clone()?;
    if found.transport() != transport {
        return value.wrong_with(
            format!("the servers of `{text}` are not {scheme}://"),
            Some(format!("give servers = [\"{scheme}://HOST:PORT\"]")),
        );
    }
    Some(found)
}
