//! A load run, ready to start: everything parsed, checked and encoded.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::{Expectations, Extraction};
use plimsoll_client::{ConnectPlan, DecodeLimits, Endpoint, Request, Scheme, SessionPlan};
use plimsoll_model::{ExchangeKind, Protocol, Rate, RequestNames, masked_text};
use plimsoll_wire::h1::Limits;
use plimsoll_wire::{h2, sse, ws};

use crate::Ramp;
use crate::schedule::RateProfile;
use crate::source::{Feeder, FeederOrder, RequestTemplate, ValueSources};

/// A load run, ready to start.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// Where requests go; at least one.
    pub endpoints: Vec<Endpoint>,
    /// The requests; at least one.
    pub requests: Vec<PlannedRequest>,
    /// The names under which they are counted, one for each of `requests`.
    pub names: Arc<RequestNames>,
    /// Which of them is next.
    pub pick: Pick,
    /// Where templates take their values from.
    pub feeders: Vec<Feeder>,
    /// Values of responses that each virtual user keeps, as they are written in templates.
    pub kept: Vec<String>,
    /// State that each virtual user keeps from one exchange to the next.
    pub session: SessionPlan,
    /// How connections are opened.
    pub connect: Arc<ConnectPlan>,
    /// Spacing of starts.
    pub pacing: Pacing,
    /// Connections at most, over all workers; at least one.
    pub connections: usize,
    /// Worker threads; at least one and no more than connections.
    pub workers: usize,
    /// The core of each worker; empty leaves it to the scheduler.
    pub cores: Vec<usize>,
    /// When no more exchanges are begun.
    pub stop: StopRule,
    /// Time at the start that is left out of the figures.
    pub warm_up: Duration,
    /// Grace period of exchanges under way at the end.
    pub grace: Duration,
    /// Timeout of one exchange.
    pub timeout: Duration,
    /// Whether a connection carries more than one exchange.
    pub keep_alive: bool,
    /// Bounds on a response.
    pub limits: Limits,
    /// The workload of virtual users, and the version of HTTP. Requests must be encoded for the same.
    pub workload: WorkloadPlan,
    /// Conditions on every response.
    pub expectations: Arc<Expectations>,
    /// Statuses that count as errors.
    pub fail_statuses: StatusSet,
    /// Seed of random choices.
    pub seed: u64,
    /// Sampling interval of the target's processes.
    pub sample_every: Duration,
}

/// The kinds of workloads.
#[derive(Debug, Clone)]
pub enum WorkloadPlan {
    /// Requests whose responses are read to their end.
    Requests(HttpPlan, ResponsePlan),
    /// Streams of server-sent events, with bounds on the memory that they may take.
    Events(HttpPlan, sse::Limits),
    /// gRPC calls, which need HTTP/2 or HTTP/3.
    Grpc(HttpPlan, GrpcPlan),
    /// Messages over WebSockets. Requests are then handshakes, encoded for HTTP/1.
    WebSocket(WebSocketPlan),
}

impl WorkloadPlan {
    /// Requests whose responses are counted and no more.
    pub fn requests(http: HttpPlan) -> Self {
        Self::Requests(http, ResponsePlan::default())
    }

    /// The version of HTTP, with its settings.
    pub fn http(&self) -> HttpPlan {
        match self {
            Self::Requests(http, _) | Self::Events(http, _) | Self::Grpc(http, _) => *http,
            Self::WebSocket(websocket) => websocket.http,
        }
    }
}

/// The version of HTTP of a run, with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpPlan {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2(Http2Plan),
    /// HTTP/3; [`RunPlan::connect`] must have settings of QUIC.
    Http3(Http3Plan),
}

impl HttpPlan {
    /// Exchanges that one connection carries at a time.
    pub fn streams(&self) -> usize {
        match self {
            Self::Http1 => 1,
            Self::Http2(http2) => http2.streams as usize,
            Self::Http3(http3) => http3.streams as usize,
        }
    }
}

/// Treatment of responses besides being counted; by default none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponsePlan {
    /// Redirects that are followed in one exchange, which then includes all their requests; one more
    /// fails it. Absent, a redirect is a response like any other.
    pub redirects: Option<u32>,
    /// Has content decoded by its `content-encoding`. Content that cannot be decoded within these limits
    /// fails its exchange.
    pub decode: Option<DecodeLimits>,
}

/// Settings of HTTP/2: by ALPN for `https`, by prior knowledge for `http`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Plan {
    /// Exchanges at a time on each connection; at least one.
    pub streams: u32,
    /// Our window for each response, in bytes.
    pub stream_window: u32,
    /// Our window for all responses of a connection, in bytes.
    pub connection_window: u32,
}

/// Settings of HTTP/3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http3Plan {
    /// Exchanges at a time on each connection; at least one.
    pub streams: u32,
    /// The UDP payload of packets in bytes, if it was set.
    pub udp_payload: Option<u16>,
}

/// The message that each connection sends, again and again, once its handshake is done.
#[derive(Debug, Clone)]
pub struct WebSocketPlan {
    /// The version of HTTP: over HTTP/1.1 a WebSocket is a connection, over HTTP/2 and HTTP/3 a stream of one (RFC 8441,
    /// RFC 9220).
    pub http: HttpPlan,
    /// Text or binary.
    pub kind: ws::MessageKind,
    /// The message; UTF-8 if it is text.
    pub message: Arc<[u8]>,
    /// Bounds on the messages that come back.
    pub limits: ws::Limits,
}

/// The called gRPC method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrpcPlan {
    /// Whether the method answers with a stream of messages, not with exactly one.
    pub is_server_streaming: bool,
}

impl Http2Plan {
    /// The settings of the codec.
    pub(crate) fn settings(&self, limits: &Limits) -> h2::Settings {
        let mut settings = h2::Settings {
            streams: self.streams,
            stream_window: self.stream_window,
            connection_window: self.connection_window,
            ..h2::Settings::default()
        };
        settings.limits.body_bytes = limits.body_bytes;
        settings
    }
}

/// A request and where it goes.
#[derive(Debug, Clone)]
pub struct PlannedRequest {
    /// Position in [`RunPlan::endpoints`].
    pub endpoint: usize,
    /// The request; with a template, one that it could make.
    pub request: Request,
    /// Makes a request of its own for each exchange.
    pub template: Option<Arc<RequestTemplate>>,
    /// Weight compared with the others; at least one.
    pub weight: u32,
    /// Values of its response that later requests of the same virtual user need.
    pub kept: Vec<KeptValue>,
}

/// A value of a response that a virtual user keeps.
#[derive(Debug, Clone)]
pub struct KeptValue {
    /// Its position among those of [`RunPlan::kept`].
    pub position: usize,
    /// What it is.
    pub extraction: Extraction,
}

impl PlannedRequest {
    /// The same request each time.
    pub fn fixed(endpoint: usize, request: Request) -> Self {
        Self {
            endpoint,
            request,
            template: None,
            weight: 1,
            kept: Vec::new(),
        }
    }

    /// Whether it has a place for a row of one of `feeders` whose rows are used once.
    pub fn uses_rows_once(&self, feeders: &[Feeder]) -> bool {
        let Some(template) = &self.template else {
            return false;
        };
        let mut feeders = feeders.iter().enumerate();
        feeders.any(|(position, feeder)| {
            feeder.order == FeederOrder::Sequential && template.uses(position)
        })
    }
}

/// Which request a virtual user sends next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// The one behind the last one, and the first behind the last of all.
    Turn,
    /// As by turn, from the first one on for each virtual user. A response that lacks a value that is to be kept has
    /// its user begin again.
    Sequence,
    /// The next entry of a log, over all virtual users together, and the first behind the last: positions of requests.
    /// On a schedule an arrival has the entry of its number, also if it is late or others are dropped.
    Recorded(Arc<[u32]>),
    /// Any, at random.
    Random,
    /// Any, at random, as often as their weights say.
    Weighted,
}

/// Spacing of starts.
#[derive(Debug, Clone)]
pub enum Pacing {
    /// Each connection starts its next exchange when the last one is done.
    Closed {
        /// Number of active connections over time; all of them at once if absent.
        ramp: Option<Ramp>,
        /// Pause between two exchanges of a connection.
        think: Option<ThinkTime>,
    },
    /// Starts follow a schedule, whatever the answers do.
    Open {
        /// Rate of arrivals over time.
        profile: RateProfile,
        /// Spacing of arrivals.
        spacing: Spacing,
        /// Number of arrivals at once.
        burst: NonZeroU32,
        /// By how much arrivals are late at most, by chance.
        jitter: Duration,
        /// Treatment of an arrival when no connection is free.
        on_full: OnFull,
    },
}

/// Spacing of arrivals along their profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spacing {
    /// As evenly as possible.
    Even,
    /// At random, as users who do not know of one another.
    Poisson,
    /// At the times of a log, offsets from the start in ascending order; the profile is their mean rate.
    Recorded(Arc<[Duration]>),
}

/// Treatment of an arrival when no connection is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFull {
    /// It is made late, and its intended start is kept.
    Queue,
    /// It is given up and counted.
    Drop,
}

/// A pause between exchanges, drawn evenly between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThinkTime {
    /// The shortest pause.
    pub least: Duration,
    /// The longest pause.
    pub most: Duration,
}

/// When no more exchanges are begun: whichever comes first, and one of the two is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopRule {
    /// After so many exchanges, warm-up not counted.
    pub requests: Option<u64>,
    /// After this time, warm-up not counted.
    pub duration: Option<Duration>,
}

/// A set of statuses: single ones and whole classes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusSet {
    statuses: BTreeSet<u16>,
    /// As it was written, unless it is the default.
    given: Option<String>,
}

impl StatusSet {
    /// The statuses with which servers refuse or fail under load, `429,5xx`: the default where the
    /// user names none.
    pub fn overload() -> Self {
        let statuses = std::iter::once(429).chain(500..600);
        Self {
            statuses: statuses.collect(),
            given: None,
        }
    }

    /// The set as the user wrote it; `None` if it is a default.
    pub fn given(&self) -> Option<&str> {
        self.given.as_deref()
    }

    /// Parses a list such as `500,503`, `5xx` or `400-499,5xx`; `none` is the empty set.
    pub fn parse(text: &str) -> Result<Self, StatusSetError> {
        let given = Some(text.to_owned());
        let mut statuses = BTreeSet::new();
        if text.trim() == "none" {
            return Ok(Self { statuses, given });
        }
        for part in text.split(',').map(str::trim) {
            let wrong = || StatusSetError(part.to_owned());
            let status = |text: &str| match text.as_bytes() {
                // Three digits and nothing else: no sign, no leading zero.
                [b'1'..=b'9', rest @ ..]
                    if rest.len() == 2 && rest.iter().all(u8::is_ascii_digit) =>
                {
                    text.parse::<u16>().map_err(|_| wrong())
                }
                _ => Err(wrong()),
            };
            if let Some(class) = part.strip_suffix("xx") {
                let first = status(&format!("{class}00"))?;
                statuses.extend(first..first + 100);
            } else if let Some((first, last)) = part.split_once('-') {
                let (first, last) = (status(first)?, status(last)?);
                if first > last {
                    return Err(wrong());
                }
                statuses.extend(first..=last);
            } else {
                statuses.insert(status(part)?);
            }
        }
        Ok(Self { statuses, given })
    }

    /// Whether the set names `status`.
    pub fn contains(&self, status: u16) -> bool {
        !self.statuses.is_empty() && self.statuses.contains(&status)
    }
}

/// Not a set of statuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a status; write for example `500`, `5xx`, `400-499` or `none`")]
pub struct StatusSetError(String);

impl RunPlan {
    /// Whether the rows of a feeder are used once, so that the run ends after the last one.
    pub fn uses_rows_once(&self) -> bool {
        let mut requests = self.requests.iter();
        requests.any(|request| request.uses_rows_once(&self.feeders))
    }

    /// The URL of the first request, without credentials, with the places of its template.
    pub fn url(&self) -> String {
        let first = &self.requests[0];
        let endpoint = &self.endpoints[first.endpoint];
        let target = match &first.template {
            Some(template) => template.shown_target(ValueSources {
                feeders: &self.feeders,
                kept: &self.kept,
            }),
            None => endpoint.path_and_query().to_owned(),
        };
        // Through a proxy the target is a whole URL.
        let url = if target.starts_with('/') {
            format!("{}{target}", self.site(endpoint))
        } else {
            target
        };
        masked_text(&url).into_owned()
    }

    /// Scheme, host and port of `endpoint`.
    pub(crate) fn site(&self, endpoint: &Endpoint) -> String {
        let scheme = match (endpoint.scheme(), &self.workload) {
            (Scheme::Http, WorkloadPlan::WebSocket(_)) => "ws",
            (Scheme::Https, WorkloadPlan::WebSocket(_)) => "wss",
            (scheme, _) => scheme.name(),
        };
        format!("{scheme}://{}", endpoint.authority())
    }

    /// The protocol of the exchanges.
    pub fn protocol(&self) -> Protocol {
        match &self.workload {
            WorkloadPlan::WebSocket(websocket) if websocket.http == HttpPlan::Http1 => {
                Protocol::WebSocket
            }
            workload => match workload.http() {
                HttpPlan::Http1 => Protocol::Http1,
                HttpPlan::Http2(_) => Protocol::Http2,
                HttpPlan::Http3(_) => Protocol::Http3,
            },
        }
    }

    /// The kind of exchange.
    pub fn exchanges(&self) -> ExchangeKind {
        match &self.workload {
            WorkloadPlan::Requests(..) | WorkloadPlan::Grpc(..) => ExchangeKind::Request,
            WorkloadPlan::Events(..) => ExchangeKind::Stream,
            WorkloadPlan::WebSocket(_) => ExchangeKind::RoundTrip,
        }
    }

    /// Exchanges that one connection carries at a time.
    pub fn streams(&self) -> usize {
        self.workload.http().streams()
    }

    /// Arrivals per second on average over the measured window, in an open loop.
    pub fn average_rate(&self) -> Option<Rate> {
        match &self.pacing {
            Pacing::Closed { .. } => None,
            Pacing::Open { profile, .. } => {
                let length = self.warm_up + self.stop.duration.unwrap_or(Duration::from_secs(1));
                Some(profile.average(length))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_by_number_class_and_range() {
        let set = StatusSet::parse("404, 5xx,410-412").unwrap();
        for status in [404, 500, 599, 411] {
            assert!(set.contains(status), "{status}");
        }
        for status in [200, 403, 600, 413] {
            assert!(!set.contains(status), "{status}");
        }
        assert_eq!(set.given(), Some("404, 5xx,410-412"));
        let none = StatusSet::parse("none").unwrap();
        assert!((100..1000).all(|status| !none.contains(status)));
        let overload = StatusSet::overload();
        assert_eq!(overload.given(), None);
        for (status, is_in) in [
            (404, false),
            (429, true),
            (500, true),
            (599, true),
            (200, false),
        ] {
            assert_eq!(overload.contains(status), is_in, "{status}");
        }
        for wrong in [
            "", "abc", "+4xx", "0412", "5x", "99", "0xx", "10xx", "500-", "1000", "499-400",
        ] {
            assert!(StatusSet::parse(wrong).is_err(), "{wrong}");
        }
    }
}
