//! Counters of listeners that are not HTTP.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use plimsoll_model::MetricsText;
use plimsoll_server::Figures;

use crate::metric_names::METRICS;

/// Every listener of an engine that is not HTTP; outlives reloads.
#[derive(Debug, Default)]
pub(crate) struct Layer4Figures(Mutex<BTreeMap<(&'static str, String), Weak<ListenerFigures>>>);

/// Counters of one listener.
#[derive(Debug, Default)]
pub(crate) struct ListenerFigures(Mutex<Vec<Arc<WorkerFigures>>>);

/// Counters of a listener on one worker, which alone writes them, so that workers share no cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerFigures {
    opened: AtomicU64,
    ended: [AtomicU64; End::ALL.len()],
    received: AtomicU64,
    sent: AtomicU64,
    dropped: [AtomicU64; Dropped::ALL.len()],
}

/// Why a connection or a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The client ended first, both in order.
    ClientClosed,
    /// The server ended first, both in order.
    ServerClosed,
    /// The client's connection broke.
    ClientReset,
    /// The server's connection broke.
    ServerReset,
    /// Nothing passed for the idle timeout.
    IdleTimeout,
    /// The client's address is not let in.
    Denied,
    /// A TLS client for which there is no route.
    NoRoute,
    /// The start of a connection that is not a `ClientHello` where routes need one.
    Malformed,
    /// No server is available.
    NoServer,
    /// No server could be connected to.
    ConnectFailed,
    /// Too many streams of a connection of QUIC were reset.
    ResetFlood,
    /// It was still open when the time of a drain was over.
    Cut,
}

impl End {
    pub(crate) const ALL: [Self; 12] = [
        Self::ClientClosed,
        Self::ServerClosed,
        Self::ClientReset,
        Self::ServerReset,
        Self::IdleTimeout,
        Self::Denied,
        Self::NoRoute,
        Self::Malformed,
        Self::NoServer,
        Self::ConnectFailed,
        Self::ResetFlood,
        Self::Cut,
    ];

    /// The word in metrics and log lines.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ClientClosed => "client_closed",
            Self::ServerClosed => "server_closed",
            Self::ClientReset => "client_reset",
            Self::ServerReset => "server_reset",
            Self::IdleTimeout => "idle_timeout",
            Self::Denied => "denied",
            Self::NoRoute => "no_route",
            Self::Malformed => "malformed",
            Self::NoServer => "no_server",
            Self::ConnectFailed => "connect_failed",
            Self::ResetFlood => "reset_flood",
            Self::Cut => "cut",
        }
    }
}

/// Why a datagram was not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// The table of flows is full.
    Flows,
    /// Its source has as many flows as one source may have.
    FlowsOfSource,
    /// No server is available.
    NoServer,
    /// No socket to the server could be opened.
    NoSocket,
    /// The client has sent too little for a reply of this length.
    Amplification,
    /// No packet of QUIC, or one that clients do not send.
    Malformed,
    /// It begins a connection of QUIC but is too short for that.
    ShortInitial,
    /// A packet of a QUIC connection that is not known: a forged connection ID, or one of a flow that has ended.
    UnknownConnection,
    /// The client was sent back by a Retry packet to prove its address.
    Retry,
    /// Its token is not of its address, or too old.
    RetryToken,
    /// The connection ID is used from more addresses than a client has.
    ForgedPaths,
    /// The other side takes datagrams of QUIC more slowly than they come.
    DatagramQueue,
    /// The other side takes no datagrams of QUIC, or none that long.
    DatagramSize,
}

impl Dropped {
    pub(crate) const ALL: [Self; 13] = [
        Self::Flows,
        Self::FlowsOfSource,
        Self::NoServer,
        Self::NoSocket,
        Self::Amplification,
        Self::Malformed,
        Self::ShortInitial,
        Self::UnknownConnection,
        Self::Retry,
        Self::RetryToken,
        Self::ForgedPaths,
        Self::DatagramQueue,
        Self::DatagramSize,
    ];

    /// The word in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::FlowsOfSource => "flows_of_source",
            Self::NoServer => "no_server",
            Self::NoSocket => "no_socket",
            Self::Amplification => "amplification",
            Self::Malformed => "malformed",
            Self::ShortInitial => "short_initial",
            Self::UnknownConnection => "unknown_connection",
            Self::Retry => "retry",
            Self::RetryToken => "retry_token",
            Self::ForgedPaths => "forged_paths",
            Self::DatagramQueue => "datagram_queue",
            Self::DatagramSize => "datagram_size",
        }
    }
}

/// One writer, so reading and writing back is enough, and cheaper than adding.
fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
}

impl WorkerFigures {
    pub(crate) fn count_opened(&self) {
        add(&self.opened, 1);
    }

    pub(crate) fn count_end(&self, end: End) {
        add(&self.ended[end as usize], 1);
    }

    /// - `received`: bytes from clients.
    /// - `sent`: bytes from servers.
    pub(crate) fn count_bytes(&self, received: u64, sent: u64) {
        add(&self.received, received);
        add(&self.sent, sent);
    }

    pub(crate) fn count_dropped(&self, dropped: Dropped) {
        add(&self.dropped[dropped as usize], 1);
    }
}

impl ListenerFigures {
    /// Counters for one worker.
    pub(crate) fn worker(&self) -> Arc<WorkerFigures> {
        let figures = Arc::<WorkerFigures>::default();
        lock(&self.0).push(Arc::clone(&figures));
        figures
    }

    fn sum(&self, read: impl Fn(&WorkerFigures) -> &AtomicU64) -> u64 {
        let workers = lock(&self.0);
        let loaded = workers.iter().map(|it| read(it).load(Ordering::Relaxed));
        loaded.sum()
    }
}

impl Layer4Figures {
    /// Those of a listener, the same after a reload.
    ///
    /// - `protocol`: `tcp`, `udp`, `quic` or `connect`.
    /// - `listener`: its address as configured; the name of the route for `connect`.
    pub(crate) fn listener(&self, protocol: &'static str, listener: &str) -> Arc<ListenerFigures> {
        let mut listeners = lock(&self.0);
        let key = (protocol, listener.to_owned());
        if let Some(known) = listeners.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        listeners.retain(|_, figures| figures.strong_count() > 0);
        let figures = Arc::<ListenerFigures>::default();
        listeners.insert(key, Arc::downgrade(&figures));
        figures
    }
}

impl Figures for Layer4Figures {
    fn show(&self, _prefix: Option<&str>, text: &mut MetricsText) {
        let listeners: Vec<_> = lock(&self.0)
            .iter()
            .filter_map(|(key, figures)| Some((key.clone(), figures.upgrade()?)))
            .collect();
        if listeners.is_empty() {
            return;
        }
        let mut family = |name: &str,
                          kind: &str,
                          help: &str,
                          samples: &dyn Fn(&ListenerFigures) -> Vec<(&'static str, u64)>,
                          label: &str| {
            let name = format!("{METRICS}_{name}");
            text.family(&name, kind, help);
            for ((protocol, listener), figures) in &listeners {
                for (value, count) in samples(figures) {
                    let mut labels = vec![("listener", listener.as_str()), ("protocol", protocol)];
                    if !label.is_empty() {
                        labels.push((label, value));
                    }
                    text.sample(&name, &labels, count);
                }
            }
        };
        let ended = |figures: &ListenerFigures| -> u64 {
            let ends = End::ALL.iter();
            ends.map(|end| figures.sum(|it| &it.ended[*end as usize]))
                .sum()
        };
        family(
            "flows_total",
            "counter",
            "Connections and flows that are not HTTP",
            &|it| vec![("", it.sum(|it| &it.opened))],
            "",
        );
        family(
            "flows_active",
            "gauge",
            "Connections and flows that are open",
            &|it| vec![("", it.sum(|it| &it.opened).saturating_sub(ended(it)))],
            "",
        );
        family(
            "flows_ended_total",
            "counter",
            "Connections and flows that ended, by reason",
            &|it| {
                let ends = End::ALL.iter();
                ends.map(|end| (end.name(), it.sum(|it| &it.ended[*end as usize])))
                    .collect()
            },
            "reason",
        );
        family(
            "flow_bytes_total",
            "counter",
            "Bytes from clients (received) and to them (sent)",
            &|it| {
                vec![
                    ("received", it.sum(|it| &it.received)),
                    ("sent", it.sum(|it| &it.sent)),
                ]
            },
            "direction",
        );
        family(
            "datagrams_dropped_total",
            "counter",
            "Datagrams that were not forwarded, by reason",
            &|it| {
                let reasons = Dropped::ALL.iter();
                reasons
                    .map(|why| (why.name(), it.sum(|it| &it.dropped[*why as usize])))
                    .collect()
            },
            "reason",
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
