//! The counts of an interval as JSON: numbers as they are, histograms in HdrHistogram's V2 encoding, which loses nothing.

mod buckets;

mod checksum;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use plimsoll_load::Interval;
use plimsoll_model::{
    Counts, DecodedBytes, EventFigures, Failure, FailureCount, FailureKind, GrpcFigures,
    GrpcStatus, GrpcStatusCount, Histogram, Messages, Phase, RequestFigures, Retry, Side, Times,
    WindowBytes,
};
use serde::{Deserialize, Serialize};

/// Bytes of an encoded histogram: more than one that has every bucket.
const MOST_BYTES: usize = 1 << 20;

/// Counts that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the figures have no valid {0}")]
pub struct FiguresError(pub(super) &'static str);

/// Counts of an agent since its last tick; what is absent is zero or empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Figures {
    #[serde(skip_serializing_if = "is_default")]
    counts: CountsRecord,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    statuses: Vec<(u16, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grpc: Option<GrpcRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FailureRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unmet: Vec<u64>,
    #[serde(skip_serializing_if = "is_default")]
    bytes_sent: u64,
    #[serde(skip_serializing_if = "is_default")]
    bytes_received: u64,
    /// Sent and received within the window.
    #[serde(skip_serializing_if = "is_default")]
    bytes_in_window: (u64, u64),
    #[serde(skip_serializing_if = "is_default")]
    connections_opened: u64,
    /// Encoded and decoded.
    #[serde(skip_serializing_if = "is_default")]
    decoded_bytes: (u64, u64),
    /// Sent and received.
    #[serde(skip_serializing_if = "is_default")]
    messages: (u64, u64),
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Box<EventsRecord>>,
    #[serde(skip_serializing_if = "is_default")]
    from_started: TimesRecord,
    #[serde(skip_serializing_if = "is_default")]
    latency_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_errors: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_timeouts: Option<String>,
    /// Absent in a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_intended: Option<TimesRecord>,
    /// By the names of the phases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phases: Vec<(String, String)>,
    #[serde(skip_serializing_if = "is_default")]
    lag: String,
    #[serde(skip_serializing_if = "is_default")]
    in_flight: u64,
    #[serde(skip_serializing_if = "is_default")]
    busiest_worker_percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Vec<RequestRecord>>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CountsRecord {
    started: u64,
    ok: u64,
    failed: u64,
    aborted: u64,
    failed_status: u64,
    unmet: u64,
    dropped: u64,
    missed: u64,
    broken: u64,
    reconnects: u64,
    redirects: u64,
    warm_up: u64,
    completed_in_window: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TimesRecord {
    #[serde(skip_serializing_if = "is_default")]
    known: String,
    /// Durations of which only a lower bound is known.
    #[serde(skip_serializing_if = "is_default")]
    censored: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureRecord {
    phase: String,
    kind: String,
    count: u64,
    side: String,
    retry: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GrpcRecord {
    /// Code, count and the first message of the server.
    statuses: Vec<(u8, u64, Option<String>)>,
    messages_received: u64,
    messages_in_window: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct EventsRecord {
    opened: u64,
    ended: u64,
    broken: u64,
    left: u64,
    failures: Vec<FailureRecord>,
    received: u64,
    gaps: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RequestRecord {
    ok: u64,
    failed: u64,
    aborted: u64,
    error_statuses: u64,
    unmet: u64,
    latency: TimesRecord,
}

impl Figures {
    /// The counts of `interval`.
    pub fn from_interval(interval: &Interval) -> Self {
        let Counts {
            started,
            ok,
            failed,
            aborted,
            failed_status,
            unmet,
            dropped,
            missed,
            broken,
            reconnects,
            redirects,
            warm_up,
            completed_in_window,
        } = interval.counts;
        let phases = Phase::ALL.iter().filter_map(|phase| {
            let times = interval.phase(*phase).filter(|times| !times.is_empty())?;
            Some((phase.name().to_owned(), write(times)))
        });
        let WindowBytes { sent, received } = interval.bytes_in_window;
        let has_unmet = interval.unmet.iter().any(|count| *count > 0);
        Self {
            counts: CountsRecord {
                started,
                ok,
                failed,
                aborted,
                failed_status,
                unmet,
                dropped,
                missed,
                broken,
                reconnects,
                redirects,
                warm_up,
                completed_in_window,
            },
            statuses: interval.statuses().collect(),
            grpc: interval.grpc().map(|grpc| GrpcRecord::from_figures(&grpc)),
            failures: failures(&interval.failures),
            unmet: if has_unmet {
                interval.unmet.clone()
            } else {
                Vec::new()
            },
            bytes_sent: interval.bytes_sent,
            bytes_received: interval.bytes_received,
            bytes_in_window: (sent, received),
            connections_opened: interval.connections_opened,
            decoded_bytes: (interval.decoded.encoded, interval.decoded.decoded),
            messages: (interval.messages.sent, interval.messages.received),
            events: interval.events.as_ref().map(|events| {
                Box::new(EventsRecord {
                    opened: events.opened,
                    ended: events.ended,
                    broken: events.broken,
                    left: events.left,
                    failures: failures(&events.failures),
                    received: events.received,
                    gaps: write(&events.gaps),
                })
            }),
            from_started: TimesRecord::from_times(&interval.from_started),
            latency_ns: interval.latency_nanos,
            of_errors: interval.of_errors.as_ref().map(|times| write(times)),
            of_timeouts: interval.of_timeouts.as_ref().map(|times| write(times)),
            from_intended: interval.from_intended.as_ref().map(TimesRecord::from_times),
            phases: phases.collect(),
            lag: write(&interval.lag),
            in_flight: interval.in_flight,
            busiest_worker_percent: interval.busiest_worker_percent.round(),
            requests: interval.requests.as_ref().map(|requests| {
                let requests = requests.iter();
                requests.map(RequestRecord::from_figures).collect()
            }),
        }
    }

    /// Exchanges begun and complete.
    pub(super) fn begun(&self) -> (u64, u64) {
        (self.counts.started, self.counts.ok)
    }

    /// An interval of the kind that they are of, with them.
    pub(super) fn read(&self) -> Result<Interval, FiguresError> {
        let mut interval = Interval::new(0, self.from_intended.is_some());
        self.add_to(&mut interval)?;
        Ok(interval)
    }

    /// Adds them to `interval`.
    pub fn add_to(&self, interval: &mut Interval) -> Result<(), FiguresError> {
        let c = &self.counts;
        interval.counts.merge(&Counts {
            started: c.started,
            ok: c.ok,
            failed: c.failed,
            aborted: c.aborted,
            failed_status: c.failed_status,
            unmet: c.unmet,
            dropped: c.dropped,
            missed: c.missed,
            broken: c.broken,
            reconnects: c.reconnects,
            redirects: c.redirects,
            warm_up: c.warm_up,
            completed_in_window: c.completed_in_window,
        });
        for (status, count) in &self.statuses {
            interval.add_status(*status, *count);
        }
        if let Some(grpc) = &self.grpc {
            interval.add_grpc(&grpc.read());
        }
        let read = self.failures.iter().map(FailureRecord::read);
        FailureCount::merge(
            &mut interval.failures,
            &read.collect::<Result<Vec<_>, _>>()?,
        );
        if self.unmet.len() > interval.unmet.len() {
            return Err(FiguresError("conditions"));
        }
        for (count, more) in interval.unmet.iter_mut().zip(&self.unmet) {
            *count += more;
        }
        interval.bytes_sent += self.bytes_sent;
        interval.bytes_received += self.bytes_received;
        let (sent, received) = self.bytes_in_window;
        interval
            .bytes_in_window
            .merge(&WindowBytes { sent, received });
        interval.connections_opened += self.connections_opened;
        let (encoded, decoded) = self.decoded_bytes;
        interval.decoded.merge(&DecodedBytes { encoded, decoded });
        let (sent, received) = self.messages;
        interval.messages.merge(&Messages { sent, received });
        if let Some(events) = &self.events {
            let read = events.failures.iter().map(FailureRecord::read);
            interval
                .events
                .get_or_insert_default()
                .merge(&EventFigures {
                    opened: events.opened,
                    ended: events.ended,
                    broken: events.broken,
                    left: events.left,
                    failures: read.collect::<Result<_, _>>()?,
                    received: events.received,
                    gaps: read_histogram(&events.gaps)?,
                });
        }
        interval.from_started.absorb(self.from_started.read()?);
        interval.latency_nanos += self.latency_ns;
        if let Some(times) = &self.of_errors {
            let times = read_histogram(times)?;
            interval.of_errors.get_or_insert_default().absorb(times);
        }
        if let Some(times) = &self.of_timeouts {
            let times = read_histogram(times)?;
            interval.of_timeouts.get_or_insert_default().absorb(times);
        }
        match (&mut interval.from_intended, &self.from_intended) {
            (Some(mine), Some(theirs)) => mine.absorb(theirs.read()?),
            (None, None) => {}
            _ => return Err(FiguresError("kind of loop")),
        }
        for (name, times) in &self.phases {
            let phase = Phase::ALL.into_iter().find(|phase| phase.name() == name);
            let phase = phase.ok_or(FiguresError("phase"))?;
            interval.add_phase(phase, read_histogram(times)?);
        }
        interval.lag.absorb(read_histogram(&self.lag)?);
        interval.in_flight += self.in_flight;
        interval.busiest_worker_percent = interval
            .busiest_worker_percent
            .max(self.busiest_worker_percent);
        if let Some(records) = &self.requests {
            let read = records.iter().map(RequestRecord::read);
            let read = read.collect::<Result<Box<[_]>, _>>()?;
            match &mut interval.requests {
                Some(mine) if mine.len() == read.len() => {
                    for (mine, theirs) in mine.iter_mut().zip(&read) {
                        mine.merge(theirs);
                    }
                }
                Some(_) => return Err(FiguresError("requests")),
                none => *none = Some(read),
            }
        }
        Ok(())
    }
}

impl TimesRecord {
    fn from_times(times: &Times) -> Self {
        Self {
            known: write(times.observed()),
            censored: times.censored().map(write).unwrap_or_default(),
        }
    }

    fn read(&self) -> Result<Times, FiguresError> {
        let known = read_histogram(&self.known)?;
        Ok(Times::from_parts(known, read_histogram(&self.censored)?))
    }
}

impl GrpcRecord {
    fn from_figures(grpc: &GrpcFigures) -> Self {
        let statuses = grpc.statuses.iter();
        Self {
            statuses: statuses
                .map(|it| (it.status.code(), it.count, it.example.clone()))
                .collect(),
            messages_received: grpc.messages_received,
            messages_in_window: grpc.messages_in_window,
        }
    }

    fn read(&self) -> GrpcFigures {
        let statuses = self.statuses.iter();
        GrpcFigures {
            statuses: statuses
                .map(|(code, count, example)| GrpcStatusCount {
                    status: GrpcStatus::from_code(u64::from(*code)),
                    count: *count,
                    example: example.clone(),
                })
                .collect(),
            messages_received: self.messages_received,
            messages_in_window: self.messages_in_window,
        }
    }
}

const SIDES: [Side; 4] = [Side::Ours, Side::Theirs, Side::Network, Side::Config];

const RETRIES: [Retry; 3] = [Retry::Never, Retry::Safe, Retry::IfReused];

fn failures(failures: &[FailureCount]) -> Vec<FailureRecord> {
    let failures = failures.iter().map(|failure| {
        let example = &failure.example;
        FailureRecord {
            phase: failure.phase.name().to_owned(),
            kind: failure.kind.name().to_owned(),
            count: failure.count,
            side: example.side.name().to_owned(),
            retry: example.retry.name().to_owned(),
            cause: example.cause.clone(),
        }
    });
    failures.collect()
}

impl FailureRecord {
    fn read(&self) -> Result<FailureCount, FiguresError> {
        let mut phases = Phase::ALL.into_iter();
        let phase = phases.find(|phase| phase.name() == self.phase);
        let phase = phase.ok_or(FiguresError("phase of a failure"))?;
        let mut kinds = FailureKind::ALL.into_iter();
        let kind = kinds.find(|kind| kind.name() == self.kind);
        let kind = kind.ok_or(FiguresError("kind of a failure"))?;
        let side = SIDES.into_iter().find(|side| side.name() == self.side);
        let retry = RETRIES.into_iter().find(|it| it.name() == self.retry);
        Ok(FailureCount {
            phase,
            kind,
            count: self.count,
            example: Failure {
                phase,
                kind,
                side: side.ok_or(FiguresError("side of a failure"))?,
                retry: retry.ok_or(FiguresError("retry of a failure"))?,
                cause: self.cause.clone(),
            },
        })
    }
}

impl RequestRecord {
    /// Without the name.
    pub(super) fn from_figures(request: &RequestFigures) -> Self {
        Self {
            ok: request.ok,
            failed: request.failed,
            aborted: request.aborted,
            error_statuses: request.error_statuses,
            unmet: request.unmet,
            latency: TimesRecord::from_times(&request.latency),
        }
    }

    pub(super) fn read(&self) -> Result<RequestFigures, FiguresError> {
        Ok(RequestFigures {
            name: String::new(),
            ok: self.ok,
            failed: self.failed,
            aborted: self.aborted,
            error_statuses: self.error_statuses,
            unmet: self.unmet,
            latency: self.latency.read()?,
        })
    }
}

/// Base64 of HdrHistogram's V2 encoding; empty without values.
pub(crate) fn write(histogram: &Histogram) -> String {
    if histogram.is_empty() {
        return String::new();
    }
    let mut bytes = Vec::new();
    let mut serializer = V2Serializer::new();
    let written = serializer.serialize(histogram.as_hdr(), &mut bytes);
    written.expect("a vector takes every byte");
    STANDARD.encode(bytes)
}

pub(crate) fn read_histogram(text: &str) -> Result<Histogram, FiguresError> {
    if text.is_empty() {
        return Ok(Histogram::new());
    }
    let bytes = decoded(text)?;
    let mut deserializer = Deserializer::new();
    let read = deserializer.deserialize::<u64, _>(&mut bytes.as_slice());
    Ok(Histogram::from_hdr(read.map_err(|_| WRONG)?))
}

const WRONG: FiguresError = FiguresError("histogram");

/// The bytes of an encoded histogram.
fn decoded(text: &str) -> Result<Vec<u8>, FiguresError> {
    if text.len() > MOST_BYTES {
        return Err(WRONG);
    }
    STANDARD.decode(text).map_err(|_| WRONG)
}
