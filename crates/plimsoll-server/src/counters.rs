//! Counters of the workers: each has its own, and they are added up when they are read.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use plimsoll_model::MetricsText;
use plimsoll_wire::h1::RequestError;

use crate::version::Version;

/// Figures that another crate counts, shown beside the engine's.
pub trait Figures: fmt::Debug + Send + Sync {
    /// Appends them.
    ///
    /// - `prefix`: what their names begin with, before an underscore; absent for the usual one.
    fn show(&self, prefix: Option<&str>, text: &mut MetricsText);
}

/// Why a connection ended that the client would have kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// No whole head in time.
    HeaderTimeout,
    /// No further content in time.
    BodyTimeout,
    /// The client did not take the response in time.
    WriteTimeout,
    /// Content came too slowly.
    BodyRate,
    /// The client took the response too slowly.
    ReadRate,
    /// No whole TLS handshake in time.
    HandshakeTimeout,
    /// The TLS handshake failed.
    Handshake,
    /// As many connections as may be were open.
    Connections,
    /// As many connections as may be were open from that address.
    ConnectionsOfAddress,
    /// A request had more unread content than is thrown away.
    Discard,
    /// The client broke the rules or a limit of HTTP/2.
    Http2,
    /// Too many PINGs.
    Http2Pings,
    /// Too many SETTINGS.
    Http2Settings,
    /// Too many DATA frames that bring nothing, or next to nothing.
    Http2EmptyData,
    /// Too many enlargements of windows.
    Http2WindowUpdates,
    /// Too many PRIORITY frames.
    Http2Priorities,
    /// A header block in too many CONTINUATION frames.
    Http2Continuations,
    /// Too many streams that the client reset.
    Http2Resets,
    /// Too many streams that the client made the server reset.
    Http2ProvokedResets,
    /// A header block that decodes to far too much.
    Http2HeaderList,
    /// Descriptors or memory ran out.
    Shortage,
    /// A proxy did not say whose connection it passes on.
    ProxyHeader,
    /// The client broke the rules of HTTP/3 or QUIC.
    Http3,
    /// Too many streams of HTTP/3 that the client reset, or made the server reset.
    Http3Resets,
    /// Too many frames of HTTP/3 that bring nothing.
    Http3EmptyFrames,
    /// A frame of HTTP/3 that would have to be laid up as a whole, and is far too long.
    Http3HeaderList,
    /// A connection that is not HTTP began with more bytes than are looked at to decide what serves it.
    FirstBytes,
}

impl Cut {
    /// Each of them, in the order of their numbers (`cut as usize`).
    pub const ALL: [Self; 27] = [
        Self::HeaderTimeout,
        Self::BodyTimeout,
        Self::WriteTimeout,
        Self::BodyRate,
        Self::ReadRate,
        Self::HandshakeTimeout,
        Self::Handshake,
        Self::Connections,
        Self::ConnectionsOfAddress,
        Self::Discard,
        Self::Http2,
        Self::Http2Pings,
        Self::Http2Settings,
        Self::Http2EmptyData,
        Self::Http2WindowUpdates,
        Self::Http2Priorities,
        Self::Http2Continuations,
        Self::Http2Resets,
        Self::Http2ProvokedResets,
        Self::Http2HeaderList,
        Self::Shortage,
        Self::ProxyHeader,
        Self::Http3,
        Self::Http3Resets,
        Self::Http3EmptyFrames,
        Self::Http3HeaderList,
        Self::FirstBytes,
    ];

    /// A short name, for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HeaderTimeout => "header_timeout",
            Self::BodyTimeout => "body_timeout",
            Self::WriteTimeout => "write_timeout",
            Self::BodyRate => "body_rate",
            Self::ReadRate => "read_rate",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::Handshake => "handshake",
            Self::Connections => "connections",
            Self::ConnectionsOfAddress => "connections_of_address",
            Self::Discard => "discard",
            Self::Http2 => "http2",
            Self::Http2Pings => "http2_pings",
            Self::Http2Settings => "http2_settings",
            Self::Http2EmptyData => "http2_empty_data",
            Self::Http2WindowUpdates => "http2_window_updates",
            Self::Http2Priorities => "http2_priorities",
            Self::Http2Continuations => "http2_continuations",
            Self::Http2Resets => "http2_resets",
            Self::Http2ProvokedResets => "http2_provoked_resets",
            Self::Http2HeaderList => "http2_header_list",
            Self::Shortage => "shortage",
            Self::ProxyHeader => "proxy_header",
            Self::Http3 => "http3",
            Self::Http3Resets => "http3_resets",
            Self::Http3EmptyFrames => "http3_empty_frames",
            Self::Http3HeaderList => "http3_header_list",
            Self::FirstBytes => "first_bytes",
        }
    }
}

/// The side that reset a stream of HTTP/2 or HTTP/3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResetSide {
    /// The client.
    Received,
    /// The server, for a mistake of the client.
    Provoked,
}

/// The counters of one worker, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerCounters {
    accepted: AtomicU64,
    closed: AtomicU64,
    /// By version (HTTP/1.0, 1.1, 2, 3) and class of status (1xx to 5xx and others).
    requests: [[AtomicU64; 6]; 4],
    refused: [AtomicU64; RequestError::ALL.len()],
    cut: [AtomicU64; Cut::ALL.len()],
    /// Streams of HTTP/2 that were reset: by clients, and for their mistakes.
    resets: [AtomicU64; 2],
    /// The same of HTTP/3.
    http3_resets: [AtomicU64; 2],
    panics: AtomicU64,
    dropped_fields: AtomicU64,
}

/// One writer each, so reading and writing back is enough, and cheaper than adding.
#[inline]
fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl WorkerCounters {
    pub(crate) fn accepted(&self) {
        add_one(&self.accepted);
    }

    pub(crate) fn closed(&self) {
        add_one(&self.closed);
    }

    #[inline]
    pub(crate) fn answered(&self, version: Version, status: StatusCode) {
        add_one(&self.requests[version as usize][class(status)]);
    }

    pub(crate) fn refused(&self, error: RequestError) {
        add_one(&self.refused[error as usize]);
    }

    pub(crate) fn cut(&self, cut: Cut) {
        add_one(&self.cut[cut as usize]);
    }

    pub(crate) fn reset(&self, side: ResetSide) {
        add_one(&self.resets[side as usize]);
    }

    pub(crate) fn http3_reset(&self, side: ResetSide) {
        add_one(&self.http3_resets[side as usize]);
    }

    pub(crate) fn panicked(&self) {
        add_one(&self.panics);
    }

    pub(crate) fn field_dropped(&self) {
        add_one(&self.dropped_fields);
    }
}

fn class(status: StatusCode) -> usize {
    usize::from(status.as_u16() / 100).clamp(1, 6) - 1
}

/// The counters of one route on one worker.
#[derive(Debug, Default)]
pub(crate) struct RouteCounters([AtomicU64; 6]);

impl RouteCounters {
    #[inline]
    pub(crate) fn answered(&self, status: StatusCode) {
        add_one(&self.0[class(status)]);
    }
}

/// By what a request is counted and logged as that of a route.
#[derive(Debug)]
pub struct RouteTag {
    name: Arc<str>,
    counters: Arc<RouteCounters>,
    /// The logs that it chose.
    logs: Option<Arc<[String]>>,
}

impl RouteTag {
    /// The name of the route.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The same, logged to these logs; to the default ones without a choice.
    pub(crate) fn logged_to(self, logs: Option<Arc<[String]>>) -> Self {
        Self { logs, ..self }
    }

    /// The names of the logs that it chose; `None` if it did not.
    pub(crate) fn logs(&self) -> Option<&[String]> {
        self.logs.as_deref()
    }

    #[inline]
    pub(crate) fn answered(&self, status: StatusCode) {
        self.counters.answered(status);
    }
}

/// The metrics of an engine: what its workers count, figures that other crates register, and whether it drains.
///
/// Its locks are taken when something is registered or shown, never for a connection or a request.
#[derive(Debug, Default)]
pub struct Counters {
    workers: Mutex<Vec<Arc<WorkerCounters>>>,
    routes: Mutex<Routes>,
    is_draining: AtomicBool,
    log_dropped: AtomicU64,
    others: Mutex<Vec<Other>>,
}

/// Figures of another crate, twice: to be shown, and to be found by their type.
#[derive(Debug)]
struct Other {
    kind: TypeId,
    shown: Arc<dyn Figures>,
    found: Arc<dyn Any + Send + Sync>,
}

/// Names of routes that are no more, which are still counted by themselves.
const MOST_RETIRED: usize = 1000;

#[derive(Debug, Default)]
struct Routes {
    live: Vec<(Arc<str>, Arc<RouteCounters>)>,
    /// Of workers' routes that a reload replaced.
    retired: BTreeMap<Arc<str>, [u64; 6]>,
}

/// The counters at one moment, added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections open now.
    pub open: u64,
    /// Answered requests by version (HTTP/1.0, 1.1, 2, 3) and class of status (1xx to 5xx, others).
    pub requests: [[u64; 6]; 4],
    /// Refused requests, in the order of [`RequestError::ALL`].
    pub refused: Vec<u64>,
    /// Connections cut, in the order of [`Cut::ALL`].
    pub cut: Vec<u64>,
    /// Streams of HTTP/2 that clients reset, and that were reset for mistakes of clients.
    pub resets: [u64; 2],
    /// The same of HTTP/3.
    pub http3_resets: [u64; 2],
    /// Connections that ended in a panic: mistakes of plimsoll.
    pub panics: u64,
    /// Header fields of requests, and trailers, that were dropped for underscores in their names; trailers that belong to a
    /// head.
    pub dropped_fields: u64,
    /// Lines of the access log that were not written.
    pub log_dropped: u64,
    /// Answered requests by route and class of status.
    pub routes: Vec<(String, [u64; 6])>,
}

impl Snapshot {
    /// Answered requests in all.
    pub fn answered(&self) -> u64 {
        self.requests.iter().flatten().sum()
    }

    /// Requests refused for `error`.
    pub fn refused(&self, error: RequestError) -> u64 {
        self.refused.get(error as usize).copied().unwrap_or(0)
    }

    /// Connections cut for `cut`.
    pub fn cut(&self, cut: Cut) -> u64 {
        self.cut.get(cut as usize).copied().unwrap_or(0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counters {
    pub(crate) fn worker(&self) -> Arc<WorkerCounters> {
        let worker = Arc::<WorkerCounters>::default();
        lock(&self.workers).push(Arc::clone(&worker));
        worker
    }

    /// A tag for one route of one worker; what those of one name count is added up.
    pub fn route(&self, name: &str) -> RouteTag {
        let name = Arc::from(name);
        let counters = Arc::<RouteCounters>::default();
        let mut routes = lock(&self.routes);
        routes.retire();
        routes.live.push((Arc::clone(&name), Arc::clone(&counters)));
        RouteTag {
            name,
            counters,
            logs: None,
        }
    }

    /// The figures of that type, which are made on first use, outlive reloads, and are shown beside
    /// the engine's.
    pub fn figures<T: Figures + Default + 'static>(&self) -> Arc<T> {
        let mut others = lock(&self.others);
        let known = others.iter().find(|other| other.kind == TypeId::of::<T>());
        if let Some(known) = known.and_then(|it| Arc::clone(&it.found).downcast().ok()) {
            return known;
        }
        let made = Arc::<T>::default();
        others.push(Other {
            kind: TypeId::of::<T>(),
            shown: Arc::<T>::clone(&made),
            found: Arc::<T>::clone(&made),
        });
        made
    }

    /// Those of other crates.
    pub(crate) fn other_figures(&self) -> Vec<Arc<dyn Figures>> {
        let others = lock(&self.others);
        others.iter().map(|it| Arc::clone(&it.shown)).collect()
    }

    /// Connections open now.
    pub fn open(&self) -> usize {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let open = lock(&self.workers).iter().fold(0, |open, worker| {
            // In this order: what closes in between is not missed.
            let closed = read(&worker.closed);
            open + read(&worker.accepted).saturating_sub(closed)
        });
        usize::try_from(open).unwrap_or(usize::MAX)
    }

    /// Lines of the access log that could not be kept or written.
    pub(crate) fn log_dropped(&self, lines: u64) {
        self.log_dropped.fetch_add(lines, Ordering::Relaxed);
    }

    /// From now on no new work should be sent here.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Whether the engine drains.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Everything, added up.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            refused: vec![0; RequestError::ALL.len()],
            cut: vec![0; Cut::ALL.len()],
            ..Snapshot::default()
        };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for worker in lock(&self.workers).iter() {
            snapshot.accepted += read(&worker.accepted);
            snapshot.open += read(&worker.accepted).saturating_sub(read(&worker.closed));
            for (sums, counters) in snapshot.requests.iter_mut().zip(&worker.requests) {
                add(sums, counters);
            }
            add(&mut snapshot.refused, &worker.refused);
            add(&mut snapshot.cut, &worker.cut);
            add(&mut snapshot.resets, &worker.resets);
            add(&mut snapshot.http3_resets, &worker.http3_resets);
            snapshot.panics += read(&worker.panics);
            snapshot.dropped_fields += read(&worker.dropped_fields);
        }
        snapshot.log_dropped = read(&self.log_dropped);
        let mut routes = lock(&self.routes);
        routes.retire();
        let mut sums = routes.retired.clone();
        for (name, counters) in &routes.live {
            add(sums.entry(Arc::clone(name)).or_default(), &counters.0);
        }
        snapshot.routes = sums
            .into_iter()
            .map(|(name, sums)| (name.to_string(), sums))
            .collect();
        snapshot
    }
}

impl Routes {
    /// Keeps the sums of what no worker counts in any more.
    fn retire(&mut self) {
        let retired = &mut self.retired;
        self.live.retain(|(name, counters)| {
            let is_live = Arc::strong_count(counters) > 1;
            if !is_live {
                let is_known = retired.len() < MOST_RETIRED || retired.contains_key(name);
                let name = if is_known {
                    Arc::clone(name)
                } else {
                    Arc::from("other")
                };
                add(retired.entry(name).or_default(), &counters.0);
            }
            is_live
        });
    }
}

fn add(sums: &mut [u64], counters: &[AtomicU64]) {
    for (sum, counter) in sums.iter_mut().zip(counters) {
        *sum += counter.load(Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_and_routes_are_added_up_and_survive_a_reload() {
        let counters = Counters::default();
        let (one, other) = (counters.worker(), counters.worker());
        one.answered(Version::Http11, StatusCode::OK);
        other.answered(Version::Http2, StatusCode::NOT_FOUND);
        other.refused(RequestError::HostMissing);
        other.cut(Cut::Discard);
        let old = counters.route("home");
        old.answered(StatusCode::OK);
        drop(old);
        let new = counters.route("home");
        new.answered(StatusCode::OK);
        let snapshot = counters.snapshot();
        assert_eq!(snapshot.requests[1][1], 1);
        assert_eq!(snapshot.requests[2][3], 1);
        assert_eq!(snapshot.answered(), 2);
        assert_eq!(snapshot.refused(RequestError::HostMissing), 1);
        assert_eq!(snapshot.cut(Cut::Discard), 1);
        assert_eq!(snapshot.routes, [("home".to_owned(), [0, 2, 0, 0, 0, 0])]);
    }

    #[test]
    fn numbers_of_cuts_are_their_places() {
        for (number, cut) in Cut::ALL.into_iter().enumerate() {
            assert_eq!(cut as usize, number);
        }
        assert_eq!(Cut::ALL.last(), Some(&Cut::FirstBytes));
    }
}
