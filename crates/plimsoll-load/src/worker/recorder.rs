//! Counts of one worker: an interval at a time, in memory that does not grow.

use std::time::{Duration, Instant};

use plimsoll_client::grpc::GrpcAnswer;
use plimsoll_model::{
    Counts, DecodedBytes, EventFigures, Exchange, Failure, FailureCount, FailureKind, GrpcFigures,
    GrpcStatus, GrpcStatusCount, Histogram, Messages, Phase, RequestFigures, Times, TimesView,
    Trend, WindowBytes,
};

/// Everything that happened in one interval of one worker, or in several merged.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Exchanges by outcome.
    pub counts: Counts,
    /// Responses by status, from [`LOWEST_STATUS`].
    statuses: Box<[u64]>,
    /// Made when the first call of gRPC is recorded.
    grpc: Option<Box<GrpcCounts>>,
    /// Failures by kind and phase.
    pub failures: Vec<FailureCount>,
    /// Unmet conditions by their position.
    pub unmet: Vec<u64>,
    /// Bytes of the exchanges that ended, handed to the transport.
    pub bytes_sent: u64,
    /// The same, taken from the transport.
    pub bytes_received: u64,
    /// Of the exchanges that completed within the measured window.
    pub bytes_in_window: WindowBytes,
    /// Connections opened.
    pub connections_opened: u64,
    /// Only where content is decoded.
    pub decoded: DecodedBytes,
    /// Only over WebSockets.
    pub messages: Messages,
    /// Made when the first stream of events is opened.
    pub events: Option<Box<EventFigures>>,
    /// Durations of exchanges from their actual starts.
    pub from_started: Times,
    /// The sum of the known durations in `from_started`.
    pub latency_nanos: u64,
    /// Of responses with an error status, from the intended start; made when the first one is recorded.
    pub of_errors: Option<Box<Histogram>>,
    /// Of exchanges that timed out, from the intended start; made when the first one is recorded.
    pub of_timeouts: Option<Box<Histogram>>,
    /// From the intended starts; only in an open loop.
    pub from_intended: Option<Times>,
    /// Made when a phase is first recorded: most runs never see some of them.
    phases: [Option<Histogram>; Phase::ALL.len()],
    /// How late timers fired.
    pub lag: Histogram,
    /// Exchanges under way at the end.
    pub in_flight: u64,
    /// Of the worker, or the busiest one: share of one core in percent, in the busiest second.
    pub busiest_worker_percent: f64,
    /// Figures per request by the positions of their names: those of the whole run, in a worker's last interval.
    pub requests: Option<Box<[RequestFigures]>>,
}

const LOWEST_STATUS: u16 = 100;
/// Client and server errors begin here (RFC 9110, section 15.5).
const LOWEST_ERROR: u16 = 400;
const STATUSES: usize = 900;

impl Interval {
    /// An empty interval.
    ///
    /// - `conditions`: how many `--expect` conditions there are.
    /// - `is_open`: whether intended and actual starts differ.
    pub fn new(conditions: usize, is_open: bool) -> Self {
        Self {
            counts: Counts::default(),
            statuses: vec![0; STATUSES].into_boxed_slice(),
            grpc: None,
            failures: Vec::new(),
            unmet: vec![0; conditions],
            bytes_sent: 0,
            bytes_received: 0,
            bytes_in_window: WindowBytes::default(),
            connections_opened: 0,
            decoded: DecodedBytes::default(),
            messages: Messages::default(),
            events: None,
            from_started: Times::new(),
            latency_nanos: 0,
            of_errors: None,
            of_timeouts: None,
            from_intended: is_open.then(Times::new),
            phases: [const { None }; Phase::ALL.len()],
            lag: Histogram::new(),
            in_flight: 0,
            busiest_worker_percent: 0.0,
            requests: None,
        }
    }

    /// Counts what came of one exchange of the measured window.
    #[inline]
    pub(crate) fn record(&mut self, exchange: &Exchange) {
        self.bytes_sent += exchange.bytes_sent;
        self.bytes_received += exchange.bytes_received;
        for (phase, duration) in exchange.phases.iter() {
            self.phases[phase.index()]
                .get_or_insert_default()
                .record(duration);
        }
        match &exchange.outcome {
            Ok(status) => {
                self.counts.ok += 1;
                self.statuses[usize::from(status - LOWEST_STATUS)] += 1;
                self.record_latency(exchange);
                if *status >= LOWEST_ERROR {
                    record_apart(&mut self.of_errors, exchange);
                }
            }
            Err(failure) => {
                self.counts.failed += 1;
                // A timeout has a latency: at least this long. Other failures have none.
                if failure.kind == FailureKind::Timeout {
                    self.record_latency(exchange);
                    record_apart(&mut self.of_timeouts, exchange);
                }
                self.record_failure(failure);
            }
        }
    }

    /// Counts an exchange that ended within the measured window, whenever it began.
    #[inline]
    pub(crate) fn record_in_window(&mut self, exchange: &Exchange) {
        self.bytes_in_window.sent += exchange.bytes_sent;
        self.bytes_in_window.received += exchange.bytes_received;
        self.counts.completed_in_window += u64::from(exchange.outcome.is_ok());
    }

    /// Counts messages of gRPC that arrived within the measured window.
    pub(crate) fn record_grpc_in_window(&mut self, answer: &GrpcAnswer<'_>) {
        self.grpc.get_or_insert_default().messages_in_window += answer.messages;
    }

    /// Counts the outcome of a gRPC call.
    pub(crate) fn record_grpc(&mut self, answer: &GrpcAnswer<'_>) {
        let grpc = self.grpc.get_or_insert_default();
        grpc.messages_received += answer.messages;
        let counted = &mut grpc.statuses[usize::from(answer.status.code())];
        counted.0 += 1;
        if counted.1.is_none() && !answer.status.is_ok() {
            counted.1 = answer.message();
        }
    }

    #[inline]
    fn record_latency(&mut self, exchange: &Exchange) {
        let latency = exchange.latency_from_started();
        self.from_started.record(latency);
        self.latency_nanos += u64::try_from(latency.as_nanos()).unwrap_or(0);
        if let Some(from_intended) = &mut self.from_intended {
            from_intended.record(exchange.latency_from_intended());
        }
    }

    /// Counts an exchange of the measured window that was given up at `now`: how long it would have taken
    /// is known only from below.
    pub(crate) fn record_aborted(&mut self, intended: Instant, started: Instant, now: Instant) {
        self.counts.aborted += 1;
        let waited = |since: Instant| now.saturating_duration_since(since);
        self.from_started.record_at_least(waited(started));
        if let Some(from_intended) = &mut self.from_intended {
            from_intended.record_at_least(waited(intended));
        }
    }

    /// Counts an arrival of the measured window that was never begun.
    ///
    /// - `waited`: from its intended start to the end of the window.
    pub(crate) fn record_missed(&mut self, waited: Duration) {
        self.counts.missed += 1;
        if let Some(from_intended) = &mut self.from_intended {
            from_intended.record_at_least(waited);
        }
    }

    /// Counts an exchange of the measured window of which only the start was counted.
    pub(crate) fn record_lost(&mut self) {
        self.counts.aborted += 1;
        self.from_started.record_at_least(Duration::ZERO);
        if let Some(from_intended) = &mut self.from_intended {
            from_intended.record_at_least(Duration::ZERO);
        }
    }

    fn record_failure(&mut self, failure: &Failure) {
        FailureCount::add(&mut self.failures, failure);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        for (count, more) in self.statuses.iter_mut().zip(&other.statuses) {
            *count += more;
        }
        if let Some(theirs) = &other.grpc {
            self.grpc.get_or_insert_default().merge(theirs);
        }
        FailureCount::merge(&mut self.failures, &other.failures);
        for (count, more) in self.unmet.iter_mut().zip(&other.unmet) {
            *count += more;
        }
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.bytes_in_window.merge(&other.bytes_in_window);
        self.connections_opened += other.connections_opened;
        self.decoded.merge(&other.decoded);
        self.messages.merge(&other.messages);
        if let Some(theirs) = &other.events {
            self.events.get_or_insert_default().merge(theirs);
        }
        self.from_started.merge(&other.from_started);
        self.latency_nanos += other.latency_nanos;
        if let Some(theirs) = &other.of_errors {
            self.of_errors.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.of_timeouts {
            self.of_timeouts.get_or_insert_default().merge(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.from_intended, &other.from_intended) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.phases.iter_mut().zip(&other.phases) {
            if let Some(theirs) = theirs.as_ref().filter(|theirs| !theirs.is_empty()) {
                mine.get_or_insert_default().merge(theirs);
            }
        }
        self.lag.merge(&other.lag);
        self.in_flight += other.in_flight;
        self.busiest_worker_percent = self
            .busiest_worker_percent
            .max(other.busiest_worker_percent);
        match (&mut self.requests, &other.requests) {
            (Some(mine), Some(theirs)) => {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    mine.merge(theirs);
                }
            }
            (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.counts = Counts::default();
        self.statuses.fill(0);
        if let Some(grpc) = &mut self.grpc {
            **grpc = GrpcCounts::default();
        }
        self.failures.clear();
        self.unmet.fill(0);
        self.bytes_sent = 0;
        self.bytes_received = 0;
        self.bytes_in_window = WindowBytes::default();
        self.connections_opened = 0;
        self.decoded = DecodedBytes::default();
        self.messages = Messages::default();
        if let Some(events) = &mut self.events {
            let gaps = std::mem::take(&mut events.gaps);
            **events = EventFigures {
                gaps,
                ..EventFigures::default()
            };
            events.gaps.clear();
        }
        self.from_started.clear();
        self.latency_nanos = 0;
        self.of_errors = None;
        self.of_timeouts = None;
        if let Some(from_intended) = &mut self.from_intended {
            from_intended.clear();
        }
        for phase in self.phases.iter_mut().flatten() {
            phase.clear();
        }
        self.lag.clear();
        self.in_flight = 0;
        self.busiest_worker_percent = 0.0;
        self.requests = None;
    }

    /// Responses by status.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        (LOWEST_STATUS..)
            .zip(self.statuses.iter().copied())
            .filter(|(_, count)| *count > 0)
    }

    /// Outcomes of gRPC calls, if there were any.
    pub fn grpc(&self) -> Option<GrpcFigures> {
        self.grpc.as_deref().map(GrpcCounts::figures)
    }

    /// The durations of a phase, if it was recorded.
    pub fn phase(&self, phase: Phase) -> Option<&Histogram> {
        self.phases[phase.index()].as_ref()
    }

    /// Adds durations of a phase.
    pub fn add_phase(&mut self, phase: Phase, times: Histogram) {
        self.phases[phase.index()]
            .get_or_insert_default()
            .absorb(times);
    }

    /// Counts responses of one status; one that HTTP does not have is ignored.
    pub fn add_status(&mut self, status: u16, count: u64) {
        let position = status.checked_sub(LOWEST_STATUS).map(usize::from);
        if let Some(counted) = position.and_then(|position| self.statuses.get_mut(position)) {
            *counted += count;
        }
    }

    /// Adds outcomes of gRPC calls.
    pub fn add_grpc(&mut self, figures: &GrpcFigures) {
        let mut counts = GrpcCounts {
            messages_received: figures.messages_received,
            messages_in_window: figures.messages_in_window,
            ..GrpcCounts::default()
        };
        for counted in &figures.statuses {
            let of_status = &mut counts.statuses[usize::from(counted.status.code())];
            *of_status = (counted.count, counted.example.clone());
        }
        self.grpc.get_or_insert_default().merge(&counts);
    }

    /// The phases, empty where none was recorded.
    pub(crate) fn into_phases(self) -> [Histogram; Phase::ALL.len()] {
        self.phases.map(Option::unwrap_or_default)
    }

    /// The latency that does not hide waiting.
    pub fn honest_latency(&self) -> &Times {
        self.from_intended.as_ref().unwrap_or(&self.from_started)
    }

    /// How long something took, if that was recorded.
    pub(crate) fn times(&self, trend: Trend) -> Option<TimesView<'_>> {
        match trend {
            Trend::FromStarted => Some(self.from_started.view()),
            Trend::Honest => Some(self.honest_latency().view()),
            Trend::Phase(phase) => {
                let times = self.phases[phase.index()].as_ref().map(TimesView::from);
                let given_up = phase.given_up(self.counts.aborted);
                times.map(|times| times.with_unknown(given_up))
            }
        }
    }

    /// Counts how late a timer fired.
    pub(crate) fn record_lag(&mut self, lag: Duration) {
        self.lag.record(lag);
    }
}

/// Records the latency of an exchange that is also among all latencies.
#[cold]
fn record_apart(part: &mut Option<Box<Histogram>>, exchange: &Exchange) {
    // In a closed loop both starts are the same.
    let latency = exchange.latency_from_intended();
    part.get_or_insert_default().record(latency);
}

/// Calls by the code of their status, each with the server's first message.
#[derive(Debug, Clone, Default)]
struct GrpcCounts {
    statuses: [(u64, Option<String>); GrpcStatus::COUNT],
    messages_received: u64,
    messages_in_window: u64,
}

impl GrpcCounts {
    fn merge(&mut self, other: &Self) {
        self.messages_received += other.messages_received;
        self.messages_in_window += other.messages_in_window;
        for (mine, theirs) in self.statuses.iter_mut().zip(&other.statuses) {
            mine.0 += theirs.0;
            if mine.1.is_none() {
                mine.1.clone_from(&theirs.1);
            }
        }
    }

    fn figures(&self) -> GrpcFigures {
        let counted = GrpcStatus::all().zip(&self.statuses);
        GrpcFigures {
            statuses: counted
                .filter(|(_, (count, _))| *count > 0)
                .map(|(status, (count, example))| GrpcStatusCount {
                    status,
                    count: *count,
                    example: example.clone(),
                })
                .collect(),
            messages_received: self.messages_received,
            messages_in_window: self.messages_in_window,
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{Clock, Phases, Protocol};
    use plimsoll_wire::SystemClock;

    use super::*;

    fn exchange(outcome: Result<u16, Failure>, waited: u64, took: u64) -> Exchange {
        let intended = SystemClock.now();
        let started = intended + Duration::from_millis(waited);
        let mut phases = Phases::default();
        phases.set(Phase::Wait, Duration::from_millis(took));
        Exchange {
            intended,
            started,
            done: started + Duration::from_millis(took),
            phases,
            bytes_sent: 10,
            bytes_received: 20,
            peer: None,
            protocol: Protocol::Http1,
            outcome,
        }
    }

    fn refused() -> Failure {
        Failure::new(Phase::Connect, FailureKind::Refused)
    }

    #[test]
    fn timeouts_have_a_latency_and_refusals_have_none() {
        let mut interval = Interval::new(0, true);
        interval.record(&exchange(Ok(200), 5, 10));
        interval.record(&exchange(
            Err(Failure::new(Phase::Wait, FailureKind::Timeout)),
            0,
            1000,
        ));
        interval.record(&exchange(Err(refused()), 0, 1));
        assert_eq!(interval.from_started.view().len(), 2);
        assert_eq!(interval.counts.ok, 1);
        assert_eq!(interval.counts.failed, 2);
        let longest = interval.honest_latency().max().unwrap();
        assert!(longest.known().unwrap() >= Duration::from_secs(1));
    }

    #[test]
    fn latency_of_errors_and_of_timeouts_is_apart_from_the_intended_start_on() {
        let mut total = Interval::new(0, true);
        for outcome in [
            Ok(200),
            Ok(429),
            Err(Failure::new(Phase::Wait, FailureKind::Timeout)),
            Err(refused()),
        ] {
            let mut interval = Interval::new(0, true);
            interval.record(&exchange(outcome, 5, 10));
            total.merge(&interval);
        }
        for part in [&total.of_errors, &total.of_timeouts] {
            let part = part.as_deref().unwrap();
            assert_eq!(part.len(), 1);
            // 15 ms in a histogram of three figures, not the 10 ms from the actual start.
            assert!(part.min().unwrap() > Duration::from_millis(14));
        }
        assert_eq!(total.honest_latency().view().len(), 3);
        total.clear();
        assert!(total.of_errors.is_none() && total.of_timeouts.is_none());
    }

    #[test]
    fn phases_of_exchanges_that_were_given_up_are_unknown() {
        let mut interval = Interval::new(0, false);
        for _ in 0..9 {
            interval.record(&exchange(Ok(200), 0, 10));
        }
        let now = SystemClock.now();
        interval.record_aborted(now, now, now);
        let wait = interval.times(Trend::Phase(Phase::Wait)).unwrap();
        assert!(wait.quantile(0.99).unwrap().is_censored());
        assert!(wait.quantile(0.5).unwrap().known().is_some());
    }

    #[test]
    fn merging_adds_everything_and_clearing_forgets_it() {
        let mut total = Interval::new(1, false);
        for status in [200, 200, 503] {
            let mut interval = Interval::new(1, false);
            interval.record(&exchange(Ok(status), 0, 1));
            interval.record(&exchange(Err(refused()), 0, 1));
            interval.unmet[0] += 1;
            total.merge(&interval);
        }
        assert_eq!(total.statuses().collect::<Vec<_>>(), [(200, 2), (503, 1)]);
        assert_eq!(total.failures.len(), 1);
        assert_eq!(total.failures[0].count, 3);
        assert_eq!(total.unmet, [3]);
        assert_eq!(total.bytes_received, 120);
        total.clear();
        assert_eq!(total.counts, Counts::default());
        assert_eq!(total.statuses().count(), 0);
        assert!(total.clone().into_phases().iter().all(Histogram::is_empty));
    }
}
