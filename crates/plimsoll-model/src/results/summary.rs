//! The result of a load run.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{
    AgentFigures, Conditions, Cost, Failure, FailureKind, Generator, GrpcFigures, Histogram,
    JudgedThreshold, LatencyByStatus, Memory, ObservedServer, Phase, Protocol, Rate,
    RequestFigures, ResourceSample, ServerFigures, Tick, Times, TimesView,
};

/// Everything that one load run found, as plain values; encoders turn it into text and files.
#[derive(Debug, Clone)]
pub struct RunSummary {
    /// The configured load.
    pub load: LoadShape,
    /// Length of the measured window: from the end of the warm-up to the last start.
    pub window: Duration,
    /// Counts of exchanges by outcome.
    pub counts: Counts,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// gRPC figures, if the run was of gRPC.
    pub grpc: Option<GrpcFigures>,
    /// Failures by kind and phase, most frequent first.
    pub failures: Vec<FailureCount>,
    /// Unmet `--expect` conditions by their text.
    pub unmet: BTreeMap<String, u64>,
    /// Figures by request, the worst first; empty if there is only one.
    pub requests: Vec<RequestFigures>,
    /// Outcomes of the thresholds, in the order in which they were given.
    pub thresholds: Vec<JudgedThreshold>,
    /// Bytes of the exchanges that ended, those of the grace period included, handed to the transport: aborted ones
    /// have none. See [`LoadShape::bytes_exclude_tls`].
    pub bytes_sent: u64,
    /// The same, taken from the transport.
    pub bytes_received: u64,
    /// Bytes of the exchanges that completed within the window, from which rates are computed.
    pub bytes_in_window: WindowBytes,
    /// Connections opened, those of the warm-up included.
    pub connections_opened: u64,
    /// Messages of WebSockets in the measured window; absent where requests were made.
    pub messages: Option<Messages>,
    /// Content that was decoded in the measured window; absent unless decoding was requested.
    pub decoded: Option<DecodedBytes>,
    /// Figures of event streams; absent without them.
    pub events: Option<EventFigures>,
    /// Durations of exchanges.
    pub latency: Latency,
    /// The completed phases, by [`Phase::index`].
    pub phases: [Histogram; Phase::ALL.len()],
    /// One entry a second.
    pub ticks: Vec<Tick>,
    /// The state of the run at each sample of the target, warm-up included.
    pub moments: Vec<Moment>,
    /// Cost of the target, if it could be observed: of its processes on this machine, or of the first of
    /// [`observed`](Self::observed).
    pub target: Option<ServerCost>,
    /// Servers that were observed by name, in the order in which they were given.
    pub observed: Vec<ObservedServer>,
    /// The agents that made the run, by their names; empty where this process made it.
    pub agents: Vec<AgentFigures>,
    /// The generator's own state.
    pub generator: Generator,
    /// Under which conditions this was measured.
    pub conditions: Conditions,
    /// Whether the user ended the run early.
    pub interrupted: bool,
}

/// Messages of WebSockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Messages {
    /// Handed to the transport as a whole.
    pub sent: u64,
    /// Complete; unrequested ones are among them.
    pub received: u64,
}

impl Messages {
    /// Adds those of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

/// Content of complete responses, before and after its content codings were undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodedBytes {
    /// Bytes of content as it was sent.
    pub encoded: u64,
    /// Bytes of content after decoding; the same where it was not encoded.
    pub decoded: u64,
}

impl DecodedBytes {
    /// Adds those of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.encoded += other.encoded;
        self.decoded += other.decoded;
    }
}

/// Why a run shows nothing of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// Every exchange failed.
    NoResponse,
    /// Every exchange was still under way when the grace period ended.
    NoneInTime,
    /// Every response had a status of 400 or above, although neither `--fail-status none` nor a
    /// condition allows that.
    OnlyErrorStatuses,
}

/// Bytes sent and received by the exchanges that completed within the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowBytes {
    /// Bytes handed to the transport.
    pub sent: u64,
    /// Bytes taken from the transport.
    pub received: u64,
}

impl WindowBytes {
    /// Adds those of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

/// Server-sent events of the measured window, after their streams had been opened.
///
/// `opened` is always `ended + broken + left`.
#[derive(Debug, Clone, Default)]
pub struct EventFigures {
    /// Streams opened.
    pub opened: u64,
    /// Those that their servers ended in an orderly way.
    pub ended: u64,
    /// Those that broke.
    pub broken: u64,
    /// Those that were left because the run was over.
    pub left: u64,
    /// Why they broke, by kind and phase, most frequent first.
    pub failures: Vec<FailureCount>,
    /// Complete events.
    pub received: u64,
    /// From one event of a stream to the next, and from its opening to the first.
    pub gaps: Histogram,
}

impl EventFigures {
    /// Adds those of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.opened += other.opened;
        self.ended += other.ended;
        self.broken += other.broken;
        self.left += other.left;
        self.received += other.received;
        self.gaps.merge(&other.gaps);
        FailureCount::merge(&mut self.failures, &other.failures);
    }
}

impl RunSummary {
    /// Exchanges that were meant to be made and not completed although nothing permits that, if they are
    /// more than [`RunSummary::SHORTFALL_SHARE`] of all: they were missed or aborted. Arrivals that
    /// `--on-full drop` gives up are permitted, and are errors.
    pub fn shortfall(&self) -> Option<u64> {
        let short = self.counts.missed + self.counts.aborted;
        let most = Self::SHORTFALL_SHARE * self.counts.intended() as f64;
        (short as f64 > most).then_some(short)
    }

    /// Requests that the server read and dropped with their connection, so that they were sent again, if they are
    /// more than [`RunSummary::SHORTFALL_SHARE`] of all: a server that closes idle connections is rarely crossed by
    /// a request.
    pub fn dropped_by_server(&self) -> Option<u64> {
        let most = Self::SHORTFALL_SHARE * self.counts.started as f64;
        let reconnects = self.counts.reconnects;
        (reconnects as f64 > most).then_some(reconnects)
    }

    /// The share of intended exchanges that may be missed or aborted without a word in the verdict.
    pub const SHORTFALL_SHARE: f64 = 0.01;

    /// Responses with a status of 400 or above, whether or not they count as errors.
    pub fn error_statuses(&self) -> u64 {
        self.statuses.range(400..).map(|(_, count)| count).sum()
    }

    /// Why the run shows nothing of the target, if it does not.
    pub fn shows_nothing(&self) -> Option<Nothing> {
        let counts = &self.counts;
        if counts.started == 0 {
            return None;
        }
        if counts.ok == 0 {
            return Some(if counts.failed > 0 {
                Nothing::NoResponse
            } else {
                Nothing::NoneInTime
            });
        }
        let is_intended = self.load.fail_status.as_deref().map(str::trim) == Some("none")
            || !self.load.expectations.is_empty();
        (!is_intended && self.error_statuses() == counts.ok).then_some(Nothing::OnlyErrorStatuses)
    }

    /// Durations of a phase. How long an aborted exchange would have waited and received is not known.
    pub fn phase(&self, phase: Phase) -> TimesView<'_> {
        let given_up = phase.given_up(self.counts.aborted);
        TimesView::from(&self.phases[phase.index()]).with_unknown(given_up)
    }

    /// How far the processor time per request of the target may be off, see [`ServerCost::cpu_error_us`].
    pub fn cpu_error_us(&self) -> Option<f64> {
        self.server_cpu_error_us(self.target.as_ref()?)
    }

    /// The same of any server of this run, such as the [cost](ObservedServer::cost) of one that was observed by name.
    pub fn server_cpu_error_us(&self, server: &ServerCost) -> Option<f64> {
        let from = self.load.warm_up;
        server.cpu_error_us(from, from + self.window)
    }

    /// Events of streams received per second of the window.
    pub fn events_per_second(&self) -> Option<f64> {
        let events = self.events.as_ref()?;
        Some(per_second(events.received, self.window))
    }

    /// Responses completed within the window, per second of it.
    pub fn requests_per_second(&self) -> f64 {
        per_second(self.counts.completed_in_window, self.window)
    }

    /// Bytes of the exchanges that completed within the window, received per second of it.
    pub fn bytes_received_per_second(&self) -> f64 {
        per_second(self.bytes_in_window.received, self.window)
    }

    /// Messages of gRPC received within the window, per second of it.
    pub fn grpc_messages_per_second(&self) -> Option<f64> {
        let grpc = self.grpc.as_ref()?;
        Some(per_second(grpc.messages_in_window, self.window))
    }
}

fn per_second(count: u64, window: Duration) -> f64 {
    if window.is_zero() {
        0.0
    } else {
        count as f64 / window.as_secs_f64()
    }
}

/// The generator's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadShape {
    /// The target's URL, credentials masked; the first one where there are several.
    pub url: String,
    /// Number of distinct URLs requested.
    pub urls: usize,
    /// The request method.
    pub method: String,
    /// The conditions on every response, as written.
    pub expectations: Vec<String>,
    /// The statuses that `--fail-status` names, as it was written; absent if it was not given.
    pub fail_status: Option<String>,
    /// Spacing of starts.
    pub model: LoadModel,
    /// The protocol that requests were sent over.
    pub protocol: Protocol,
    /// Connections at most.
    pub connections: usize,
    /// The kind of exchange.
    pub exchanges: ExchangeKind,
    /// Exchanges at a time on each connection.
    pub streams: usize,
    /// The UDP payload of QUIC packets in bytes, if it was set.
    pub udp_payload: Option<u16>,
    /// Worker threads.
    pub workers: usize,
    /// Configured length, if the run was bounded by time.
    pub duration: Option<Duration>,
    /// Configured requests, if the run was bounded by number.
    pub requests: Option<u64>,
    /// Time at the start that is left out of the figures.
    pub warm_up: Duration,
}

impl LoadShape {
    /// Whether bytes are those before encryption: over HTTP/3 those of datagrams are counted, and over TLS what is
    /// handed to it.
    pub fn bytes_exclude_tls(&self) -> bool {
        let is_encrypted = self.url.starts_with("https:") || self.url.starts_with("wss:");
        is_encrypted && self.protocol != Protocol::Http3
    }
}

/// The kinds of exchanges, with their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExchangeKind {
    /// A request and its response.
    #[default]
    Request,
    /// A message over a WebSocket, and the next one back.
    RoundTrip,
    /// The opening of a stream of events.
    Stream,
}

impl ExchangeKind {
    /// The plural: `requests`.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Request => "requests",
            Self::RoundTrip => "round trips",
            Self::Stream => "streams",
        }
    }

    /// The unit of a rate: `requests/s`.
    pub const fn rate(self) -> &'static str {
        match self {
            Self::Request => "requests/s",
            Self::RoundTrip => "round trips/s",
            Self::Stream => "streams/s",
        }
    }

    /// The same within six columns: `req/s`.
    pub const fn short_rate(self) -> &'static str {
        match self {
            Self::Request => "req/s",
            Self::RoundTrip => "rt/s",
            Self::Stream => "open/s",
        }
    }
}

/// Spacing of starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoadModel {
    /// Each connection starts its next exchange when the last one is done.
    Closed,
    /// Starts follow a schedule, whatever the answers do.
    Open {
        /// Arrivals per second over the window, on average.
        rate: Rate,
    },
}

/// Counts of exchanges by outcome; `started` is always `ok + failed + aborted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Exchanges begun in the window.
    pub started: u64,
    /// Those with a complete response, whatever its status.
    pub ok: u64,
    /// Those without one.
    pub failed: u64,
    /// Those still under way when the grace period ended.
    pub aborted: u64,
    /// Of `ok`: a status that `--fail-status` names, or one of gRPC that is not `OK`.
    pub failed_status: u64,
    /// Of `ok`: a response that did not meet `--expect`, and whose status is not in `failed_status`.
    pub unmet: u64,
    /// Arrivals that were given up because nothing was free (`--on-full drop`).
    pub dropped: u64,
    /// Arrivals that were due but not begun when the run ended.
    pub missed: u64,
    /// Streams of events that broke after they had been opened; their openings are among `ok`.
    pub broken: u64,
    /// Safe requests that were sent again on a fresh connection, because the server had closed the
    /// reused one without announcing it. Each is counted once in `started` and its outcome.
    pub reconnects: u64,
    /// Redirects that were followed. An exchange includes all requests of its redirects and is counted
    /// once.
    pub redirects: u64,
    /// Exchanges begun during the warm-up. Those that completed within the window are also in
    /// `completed_in_window`; otherwise they are in none of the other counts.
    pub warm_up: u64,
    /// Complete responses that arrived within the window, whenever their exchanges began. Rates and
    /// the cost per request are computed from this number; responses that arrive in the grace period
    /// are in `ok` but not in here.
    pub completed_in_window: u64,
}

impl Counts {
    /// Everything that an objective on errors counts.
    pub fn errors(&self) -> u64 {
        self.failed + self.aborted + self.failed_status + self.unmet + self.dropped + self.broken
    }

    /// Exchanges that were meant to be made: in an open loop every arrival of the window.
    pub fn intended(&self) -> u64 {
        self.started + self.dropped + self.missed
    }

    /// Counts requests that never finished as aborted, such as those of a lost agent.
    pub fn abort_rest(&mut self) {
        let ended = self.ok + self.failed + self.aborted;
        self.aborted += self.started.saturating_sub(ended);
    }

    /// Adds `other`, field by field.
    pub fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.ok += other.ok;
        self.failed += other.failed;
        self.aborted += other.aborted;
        self.failed_status += other.failed_status;
        self.unmet += other.unmet;
        self.dropped += other.dropped;
        self.missed += other.missed;
        self.broken += other.broken;
        self.reconnects += other.reconnects;
        self.redirects += other.redirects;
        self.warm_up += other.warm_up;
        self.completed_in_window += other.completed_in_window;
    }
}

/// Failures of one kind in one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureCount {
    /// The phase that was under way.
    pub phase: Phase,
    /// The kind of failure.
    pub kind: FailureKind,
    /// Number of exchanges.
    pub count: u64,
    /// The first such failure.
    pub example: Failure,
}

impl FailureCount {
    /// Counts `failure` among those of its kind and phase.
    pub fn add(counts: &mut Vec<Self>, failure: &Failure) {
        let same = |count: &&mut Self| count.kind == failure.kind && count.phase == failure.phase;
        match counts.iter_mut().find(same) {
            Some(count) => count.count += 1,
            None => counts.push(Self {
                phase: failure.phase,
                kind: failure.kind,
                count: 1,
                example: failure.clone(),
            }),
        }
    }

    /// Adds all of `others` to `counts`.
    pub fn merge(counts: &mut Vec<Self>, others: &[Self]) {
        for other in others {
            let same = |count: &&mut Self| count.kind == other.kind && count.phase == other.phase;
            match counts.iter_mut().find(same) {
                Some(count) => count.count += other.count,
                None => counts.push(other.clone()),
            }
        }
    }
}

/// Durations of the exchanges of the window, connection set-up included.
///
/// Complete responses and timeouts are in here, and what was given up when the run ended as censored;
/// a refused connection has no latency.
#[derive(Debug, Clone)]
pub struct Latency {
    /// From the actual start. Aborted exchanges are censored.
    pub from_started: Times,
    /// From the intended start; the same as `from_started` in a closed loop, and then absent. Missed
    /// arrivals are censored too.
    pub from_intended: Option<Times>,
    /// Of responses with a status of 400 or above: the part of [`honest`](Self::honest) that is theirs.
    pub of_errors: Option<Histogram>,
    /// Of exchanges that timed out: the part of [`honest`](Self::honest) that is of no response.
    pub of_timeouts: Option<Histogram>,
}

impl Latency {
    /// Latencies of responses below 400 and of the others, if there are both.
    pub fn by_status(&self) -> Option<LatencyByStatus<'_>> {
        let errors = self.of_errors.as_ref()?;
        let all = self.honest().observed();
        LatencyByStatus::from_errors(all, errors, self.of_timeouts.as_ref())
    }

    /// The view that does not hide waiting: from the intended start where there is one.
    pub fn honest(&self) -> &Times {
        self.from_intended.as_ref().unwrap_or(&self.from_started)
    }
}

/// The state of a run at one moment; counts are those of the measured window until then, as far as
/// the workers have reported them: they do so fifty times a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moment {
    /// Time since the start of the run.
    pub at: Duration,
    /// Exchanges under way.
    pub in_flight: u64,
    /// Complete responses.
    pub ok: u64,
    /// Failures, failed statuses, unmet expectations and drops.
    pub errors: u64,
    /// Exchanges that have a latency.
    pub latencies: u64,
    /// The sum of their latencies from the actual start.
    pub latency_sum: Duration,
    /// The target, if its processes are observed.
    pub target: Option<ResourceSample>,
}

/// Cost of the run to the target.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCost {
    /// Origin of the target's processes: `pid 4711`, `spawned nginx`, `embedded origin`.
    pub name: String,
    /// Processor time over the measured window.
    pub cost: Cost,
    /// Resident memory at the end of the window.
    pub memory: Memory,
    /// Largest resident memory seen, in bytes.
    pub peak_memory_bytes: u64,
    /// Open descriptors at the end of the window; zero if they could not be counted.
    pub fds: u64,
    /// Most open descriptors seen.
    pub peak_fds: u64,
    /// Threads at the end of the window.
    pub threads: u64,
    /// Processes at the end of the window.
    pub processes: u64,
    /// Every sample taken, warm-up included.
    pub samples: Vec<ResourceSample>,
}

impl ServerCost {
    /// The figures that thresholds are put on.
    pub fn figures(&self) -> ServerFigures {
        ServerFigures {
            cost: self.cost,
            memory_bytes: self.memory.total_bytes(),
            peak_memory_bytes: self.peak_memory_bytes,
            fds: self.fds,
            peak_fds: self.peak_fds,
        }
    }

    /// How far the processor time per request may be off, in microseconds: two standard errors of the ratio, from the
    /// samples of the window. They show both how the cost varied and how finely it was counted. `None` if there are
    /// fewer than [`ServerCost::FEWEST_SAMPLES`] stretches with requests.
    ///
    /// - `from`, `to`: the window, since the start of the run.
    ///
    /// Source: Cochran, "Sampling Techniques" (1977), section 6.4 (ratio estimates).
    pub fn cpu_error_us(&self, from: Duration, to: Duration) -> Option<f64> {
        let within: Vec<&ResourceSample> = self
            .samples
            .iter()
            .filter(|sample| sample.at >= from && sample.at <= to)
            .collect();
        let stretches: Vec<(f64, f64)> = within
            .windows(2)
            .map(|pair| {
                let cost = Cost::between(pair[0], pair[1]);
                (cost.cpu.total().as_secs_f64() * 1e6, cost.exchanges as f64)
            })
            .collect();
        let number = stretches.len() as f64;
        let (cpu, requests) = stretches.iter().fold((0.0, 0.0), |sum, stretch| {
            (sum.0 + stretch.0, sum.1 + stretch.1)
        });
        if stretches.len() < Self::FEWEST_SAMPLES || requests == 0.0 {
            return None;
        }
        let ratio = cpu / requests;
        let squares = stretches
            .iter()
            .map(|(cpu, requests)| (cpu - ratio * requests).powi(2));
        let variance = squares.sum::<f64>() / (number - 1.0) / number;
        let error = 2.0 * variance.sqrt() / (requests / number);
        // Less is the rounding of this sum.
        (error > ratio * 1e-6).then_some(error)
    }

    /// With fewer, the error of a cost is not estimated.
    pub const FEWEST_SAMPLES: usize = 8;
}
