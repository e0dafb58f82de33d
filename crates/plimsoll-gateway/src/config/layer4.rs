//! `tcp`, `udp` and `quic` in a `[[listen]]`: where connections and datagrams go.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_server::config::{ListenKind, Listened, Table, Value, as_text};
use plimsoll_server::{DatagramHandler, Serves, StreamHandler, WorkerContext};
use plimsoll_wire::ProxyProtocol;

use super::{Upstreams, upstream};
use crate::figures::GatewayFigures;
use crate::layer4::{
    DatagramPlan, FlowLimits, QuicHandler, ServerIds, TcpHandler, TcpPlan, TcpRoute, TcpRoutes,
    UdpHandler,
};
use crate::upstream::{KeySource, ServerPlan, Transport, UpstreamOptions, UpstreamPlan};

/// What listeners forward that is not HTTP: `tcp`, `udp` and `quic` in a `[[listen]]`.
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

/// Ten minutes, as nginx has it.
const IDLE_OF_TCP: Duration = Duration::from_mins(10);

/// Upstream or URL, or a table with routes.
fn tcp(value: Value<'_>, listened: &Listened<'_>) -> Option<Serves> {
    let mut proxy_protocol = Some(None);
    let mut idle_timeout = IDLE_OF_TCP;
    let routes = if value.is_table() {
        let mut table = value.table()?;
        let fallback = table
            .take("to")
            .map(|to| target(&to, listened, Transport::Tcp));
        let has_routes = table.has("routes");
        let tables = table.tables("routes");
        if fallback.is_none() && !has_routes && !table.was_given("to") {
            table.missing(
                "to",
                "the name of an upstream or a URL such as tcp://10.0.0.1:5432",
            );
        }
        let routes: Vec<_> = tables.into_iter().map(|it| route(it, listened)).collect();
        if let Some(value) = table.take("proxy_protocol") {
            proxy_protocol = match as_text(&value) {
                Some("v1") => Some(Some(ProxyProtocol::V1)),
                Some("v2") => Some(Some(ProxyProtocol::V2)),
                Some(_) => value.wrong("is \"v1\" or \"v2\""),
                None => None,
            };
        }
        if let Some(given) = table.duration("idle_timeout") {
            idle_timeout = given.max(Duration::from_millis(1));
        }
        let is_whole = fallback.is_some() || !routes.is_empty();
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
    let figures = listened.counters.figures::<GatewayFigures>();
    let plan = Arc::new(TcpPlan {
        routes,
        proxy_protocol: proxy_protocol?,
        idle_timeout,
        figures: figures.layer4().listener("tcp", listened.identity),
        log: listened.log.cloned(),
    });
    Some(Serves::Stream(Arc::new(move |context: &WorkerContext| {
        Rc::new(TcpHandler::new(&plan, context)) as Rc<dyn StreamHandler>
    })))
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
    let to = table.take("to");
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
    let plan = datagram_plan("udp", upstream, limits, amplification, listened);
    Some(Serves::Datagram(Arc::new(
        move |context: &WorkerContext| {
            Box::new(UdpHandler::new(&plan, context)) as Box<dyn DatagramHandler>
        },
    )))
}

fn quic(value: Value<'_>, listened: &Listened<'_>) -> Option<Serves> {
    let hint = "the name of an upstream or a URL such as udp://10.0.0.1:443";
    let (upstream, limits) = datagram_target(value, listened, hint, |_| {})?;
    let plan = datagram_plan("quic", upstream, limits, None, listened);
    let ids = listened.states.state(&plan.identity, ServerIds::default);
    Some(Serves::Datagram(Arc::new(
        move |context: &WorkerContext| {
            Box::new(QuicHandler::new(&plan, &ids, context)) as Box<dyn DatagramHandler>
        },
    )))
}

fn datagram_plan(
    protocol: &'static str,
    upstream: Arc<UpstreamPlan>,
    limits: FlowLimits,
    amplification: Option<u32>,
    listened: &Listened<'_>,
) -> Arc<DatagramPlan> {
    let figures = listened.counters.figures::<GatewayFigures>();
    let identity = format!(
        "{protocol} {} {limits:?} {amplification:?} {}",
        listened.identity,
        upstream.identity()
    );
    Arc::new(DatagramPlan {
        protocol,
        upstream,
        limits,
        amplification,
        figures: figures.layer4().listener(protocol, listened.identity),
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

/// One of `routes`.
fn route(mut table: Table<'_>, listened: &Listened<'_>) -> Option<TcpRoute<Arc<UpstreamPlan>>> {
    let names = table.take("sni").map(|value| {
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
    let protocols = table.take("alpn").map(|value| {
        value.texts_with(|name| {
            let fits = (1..=255).contains(&name.len());
            (!fits).then(|| "a protocol has 1 to 255 bytes, such as \"h2\"".to_owned())
        })
    });
    if names.is_none() && protocols.is_none() {
        table.missing("sni", "such as sni = \"www.example.org\", or alpn = \"h2\"");
    }
    let is_conditional = names.is_some() || protocols.is_some();
    let to = table.take("to");
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
        let Some(raw) = upstream::raw_endpoint(text) else {
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
        let server = ServerPlan {
            endpoint,
            transport,
            weight: 1,
            zone: None,
        };
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
