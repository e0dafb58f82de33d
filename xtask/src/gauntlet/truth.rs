//! What the figures of a run should be, from the server's log and from what is known beforehand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::figures::Summary;
use super::server::Served;
use super::server::behaviour::Behaviour;
use super::server::log::{Ending, Entry, Log};
use super::setup::{Begins, Bytes, Cut, Load, Setup, Timed, Unanswered};

/// What a duration may have beside the tolerance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    /// What the way between server and generator adds: loopback, two system calls and two wake-ups on either side. The log of a
    /// server begins when a request came and ends when it has written the response.
    transport: Duration,
    /// What the cryptography of a TLS handshake adds.
    cryptography: Duration,
}

impl Allowed {
    /// For a program that is optimised.
    pub(super) const OPTIMISED: Self = Self {
        transport: Duration::from_micros(500),
        cryptography: Duration::from_millis(5),
    };

    /// For one of tests.
    pub(super) const DEV: Self = Self {
        transport: Duration::from_millis(2),
        cryptography: Duration::from_millis(20),
    };
}

/// Responses written this close to the end of the window may count for it or not.
const EDGE: Duration = Duration::from_millis(8);

/// The figures that a run should have.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// Counts and bytes, which have to be equal.
    pub(super) counts: Vec<(&'static str, f64)>,
    pub(super) statuses: Option<BTreeMap<u16, u64>>,
    /// Bytes within the tolerance, whatever disturbs the machine.
    pub(super) sizes: Vec<(&'static str, f64)>,
    /// Rows that should be used once; how many requests had one, and how many rows were different.
    pub(super) rows: Option<[u64; 3]>,
    /// From the fewest to the most.
    pub(super) ranges: Vec<(&'static str, f64, f64)>,
    /// Durations in microseconds with what is allowed beside the tolerance; infinite where a response never came.
    pub(super) times: Vec<(&'static str, f64, Duration)>,
}

/// The percentiles that are compared: from the intended and from the actual start.
const PERCENTILES: [(&str, &str, f64); 8] = [
    ("min", "started min", 0.0),
    ("p50", "started p50", 0.5),
    ("p75", "started p75", 0.75),
    ("p90", "started p90", 0.9),
    ("p95", "started p95", 0.95),
    ("p99", "started p99", 0.99),
    ("p99.9", "started p99.9", 0.999),
    ("max", "started max", 1.0),
];

/// A request as its client should see it.
struct Seen<'a> {
    entry: &'a Entry,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Ok,
    /// A response that is followed by another request of the same exchange.
    Redirect,
    Failed,
    TimedOut(Duration),
    Repeated,
    Aborted,
}

impl Truth {
    /// - `start`: when the run began, as far as that is known.
    /// - `wire`: bytes sent and received under TLS.
    pub(super) fn new(
        setup: &Setup,
        log: &Log,
        summary: &Summary,
        start: Instant,
        wire: Option<(u64, u64)>,
        allowed: Allowed,
    ) -> Self {
        let seen = seen(setup, log, start + summary.window + setup.known.grace);
        let mut truth = Self::default();
        truth.count(setup, log, summary, &seen);
        truth.bytes(setup, log, wire, summary, &seen);
        truth.rows = setup.known.rows.map(|rows| {
            let targets = log.entries.iter().map(|entry| entry.target.as_str());
            let used: Vec<&str> = targets.filter(|target| target.contains("row=")).collect();
            let different: BTreeSet<&&str> = used.iter().collect();
            [rows, used.len() as u64, different.len() as u64]
        });
        truth.throughput(setup, &seen, summary, start);
        truth.durations(setup, &seen, summary, start, allowed);
        truth
    }

    fn count(&mut self, setup: &Setup, log: &Log, summary: &Summary, seen: &[Seen<'_>]) {
        let number = |wanted: fn(&Fate) -> bool| {
            let fates = seen.iter().map(|seen| &seen.fate);
            fates.filter(|fate| wanted(fate)).count() as f64
        };
        let redirects = number(|fate| matches!(fate, Fate::Redirect));
        let reconnects = number(|fate| matches!(fate, Fate::Repeated));
        // What began in the warm-up is in no other count.
        let warm_up = summary.value("warm-up");
        let started = seen.len() as f64 - redirects - reconnects - warm_up;
        self.counts.extend([
            ("started", started),
            ("ok", number(|fate| matches!(fate, Fate::Ok)) - warm_up),
            (
                "failed",
                number(|fate| matches!(fate, Fate::Failed | Fate::TimedOut(_))),
            ),
            ("aborted", number(|fate| matches!(fate, Fate::Aborted))),
            ("redirects", redirects),
        ]);
        match setup.served {
            // The server does not read requests that reach a connection after its end.
            Served::Http1(Behaviour {
                close_after: Some(_),
                ..
            }) => self
                .ranges
                .push(("reconnects", 0.0, log.accepted.len() as f64)),
            _ => self.counts.push(("reconnects", reconnects)),
        }
        if let Some(intended) = setup.known.intended {
            let missed = intended as f64 - started - summary.value("dropped");
            self.counts.push(("missed", missed));
        }
        if let Served::Http1(_) | Served::Http2(_) = setup.served
            && let Load::Flags(_) = setup.load
        {
            // Before the run, one connection shows that there is a server.
            let opened = log.accepted.len() as f64 - 1.0;
            self.counts.push(("connections", opened));
        }
        if warm_up == 0.0 && matches!(setup.served, Served::Http1(_)) {
            let mut statuses = BTreeMap::new();
            for seen in seen.iter().filter(|seen| seen.fate == Fate::Ok) {
                *statuses.entry(seen.entry.status).or_insert(0) += 1;
            }
            self.statuses = Some(statuses);
        }
    }

    fn bytes(
        &mut self,
        setup: &Setup,
        log: &Log,
        wire: Option<(u64, u64)>,
        summary: &Summary,
        seen: &[Seen<'_>],
    ) {
        match (setup.known.bytes, wire) {
            (Bytes::Exact, None) => {
                // All exchanges of a set-up with a warm-up have the same length.
                let (started, warm_up) = (summary.value("started"), summary.value("warm-up"));
                let share = started / (started + warm_up).max(1.0);
                // Exchanges that were aborted have no bytes.
                let aborted = seen.iter().filter(|seen| seen.fate == Fate::Aborted);
                let sent = log.bytes_read - aborted.map(|seen| seen.entry.length).sum::<u64>();
                for (name, bytes) in [("sent", sent), ("received", log.bytes_written)] {
                    self.counts.push((name, bytes as f64 * share));
                }
            }
            (Bytes::Wire, Some((sent, received))) => {
                // The connection before the run is on the wire too.
                let opened = summary.value("connections");
                let share = opened / (opened + 1.0);
                for (name, bytes) in [("sent", sent), ("received", received)] {
                    let bytes = bytes as f64 * share;
                    self.sizes.push((name, bytes));
                }
            }
            (Bytes::Exact | Bytes::Wire | Bytes::Unknown, _) => {}
        }
    }

    fn throughput(&mut self, setup: &Setup, seen: &[Seen<'_>], summary: &Summary, start: Instant) {
        let until = |end: Instant| {
            let seen = seen.iter().filter(|seen| seen.fate == Fate::Ok);
            seen.filter(|seen| seen.entry.ended <= end).count() as f64
        };
        let end = start + summary.window;
        if summary.value("warm-up") == 0.0 {
            let edge = match setup.known.begins {
                Begins::WithFirstRequest => EDGE,
                Begins::Before => 4 * EDGE,
            };
            let (few, most) = (
                until(end.checked_sub(edge).unwrap_or(end)),
                until(end + edge),
            );
            self.ranges.push(("in window", few, most));
        }
        if let Some(rate) = setup.known.rate {
            self.ranges.push(("requests/s", rate * 0.9, rate * 1.02));
        }
    }

    fn durations(
        &mut self,
        setup: &Setup,
        seen: &[Seen<'_>],
        summary: &Summary,
        start: Instant,
        allowed: Allowed,
    ) {
        if let Served::Tls(_, hold) = setup.served {
            let micros = hold.as_secs_f64() * 1e6;
            self.times.push(("tls p50", micros, allowed.cryptography));
        }
        if setup.known.timed == Timed::Unknown || summary.value("warm-up") > 0.0 {
            return;
        }
        let first = |entry: &Entry| match setup.known.timed {
            Timed::FromAccept if entry.is_first => start,
            _ => entry.read,
        };
        let mut started: Vec<f64> = seen
            .iter()
            .filter_map(|seen| duration(seen, first(seen.entry)))
            .collect();
        let mut intended = Vec::new();
        if let Timed::FromArrival(rate) = setup.known.timed {
            let exchanges = seen.iter().filter(|seen| seen.fate != Fate::Repeated);
            let exchanges: Vec<&Seen<'_>> = exchanges.collect();
            let due = |number: usize| Duration::from_secs_f64(number as f64 / rate);
            // The arrival that was served soonest shows when the schedule began.
            let origin = exchanges
                .iter()
                .enumerate()
                .filter_map(|(number, seen)| seen.entry.read.checked_sub(due(number)))
                .min()
                .unwrap_or(start);
            let all = exchanges.iter().enumerate();
            intended.extend(all.filter_map(|(number, seen)| duration(seen, origin + due(number))));
            let begun = exchanges.len() as u64;
            let missed = setup
                .known
                .intended
                .map_or(0, |all| all.saturating_sub(begun));
            intended.extend((0..missed).map(|_| f64::INFINITY));
        }
        for times in [&mut started, &mut intended] {
            times.sort_by(f64::total_cmp);
        }
        for (of_intended, of_started, fraction) in PERCENTILES {
            for (name, times) in [(of_started, &started), (of_intended, &intended)] {
                let time = nearest_rank(times, fraction);
                self.times
                    .extend(time.map(|time| (name, time, allowed.transport)));
            }
        }
        for (name, times) in [("started mean", &started), ("mean", &intended)] {
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            if !times.is_empty() {
                self.times.push((name, mean, allowed.transport));
            }
        }
    }
}

/// How long the exchange of a request took from `from` on; `None` if it has no latency.
fn duration(seen: &Seen<'_>, from: Instant) -> Option<f64> {
    match seen.fate {
        Fate::Ok => Some((seen.entry.ended.saturating_duration_since(from)).as_secs_f64() * 1e6),
        Fate::TimedOut(timeout) => {
            let waited = seen.entry.read.saturating_duration_since(from);
            Some((waited + timeout).as_secs_f64() * 1e6)
        }
        Fate::Aborted => Some(f64::INFINITY),
        Fate::Failed | Fate::Redirect | Fate::Repeated => None,
    }
}

fn seen<'a>(setup: &Setup, log: &'a Log, end: Instant) -> Vec<Seen<'a>> {
    let follows = matches!(setup.load, Load::Flags(flags) if flags.contains("-L"));
    let fate = |entry: &Entry| match entry.ending {
        Ending::Answered if entry.ended > end => Fate::Aborted,
        Ending::Answered => match setup.known.unanswered {
            Unanswered::TimedOut(timeout) if entry.took() > timeout => Fate::TimedOut(timeout),
            _ if follows && (300..400).contains(&entry.status) => Fate::Redirect,
            _ => Fate::Ok,
        },
        Ending::Cut => match setup.known.cut {
            Cut::Failed => Fate::Failed,
            Cut::Repeated => Fate::Repeated,
        },
        Ending::Unanswered => match setup.known.unanswered {
            Unanswered::Aborted => Fate::Aborted,
            Unanswered::TimedOut(timeout) => Fate::TimedOut(timeout),
        },
    };
    let entries = log.entries.iter();
    entries
        .map(|entry| Seen {
            entry,
            fate: fate(entry),
        })
        .collect()
}

/// The value at `fraction` of sorted ones; `None` if there are none.
fn nearest_rank(sorted: &[f64], fraction: f64) -> Option<f64> {
    let rank = (fraction * sorted.len() as f64).ceil().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is between 1 and the length"
    )]
    sorted.get(rank as usize - 1).copied()
}

/// When a run began: with the first request, or, where that may come later, when the run itself says.
///
/// - `wall`: seconds since midnight (UTC) at an instant.
pub(super) fn start(
    setup: &Setup,
    log: &Log,
    summary: &Summary,
    wall: (f64, Instant),
) -> Option<Instant> {
    match setup.known.begins {
        Begins::WithFirstRequest => log.first,
        Begins::Before => {
            let (seconds, at) = wall;
            let ago = (seconds - summary.started?).rem_euclid(24.0 * 3600.0);
            at.checked_sub(Duration::from_secs_f64(ago))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(nearest_rank(&values, 0.5), Some(50.0));
        assert_eq!(nearest_rank(&values, 0.99), Some(99.0));
        assert_eq!(nearest_rank(&values[..3], 0.99), Some(3.0));
        assert_eq!(nearest_rank(&[], 0.5), None);
    }
}
