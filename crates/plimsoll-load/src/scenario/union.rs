//! The exchanges of a run that several processes make, as the record that one process would have made of them all.

use std::fmt;
use std::time::{Duration, SystemTime};

use plimsoll_model::Clock as _;
use plimsoll_observe::AttachError;
use plimsoll_wire::SystemClock;

use super::exchanges::{RecordEnd, RecordedRun, Recorder, RecordingPlan};
use super::part::PartExchanges;
use crate::part::PartReport;
use crate::union::worst_share;

/// The exchanges of all parts, merged as they arrive: counters are added and histograms merged. Memory does not grow with the
/// length of the run, but for one row a second.
pub struct ExchangeUnion<'a> {
    recorder: Recorder<'a>,
    /// Arrivals that each part has dropped.
    dropped: Vec<u64>,
}

/// How the parts of a run ended.
#[derive(Debug)]
pub struct ExchangeUnionEnd<'a> {
    /// Reports of the parts that came to their end.
    pub reports: &'a [&'a PartReport],
    /// The length of the run.
    pub window: Duration,
    /// Whether it was ended before its time.
    pub is_interrupted: bool,
    /// Cautions about what the metrics leave out.
    pub left_out: Vec<String>,
}

impl fmt::Debug for ExchangeUnion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangeUnion").finish_non_exhaustive()
    }
}

impl<'a> ExchangeUnion<'a> {
    /// Opens the samples of the observed servers.
    ///
    /// - `plan`: of the whole run; no process of this machine is its target.
    /// - `is_open`: whether a scenario has a schedule.
    pub fn open(plan: RecordingPlan<'a>, is_open: bool) -> Result<Self, AttachError> {
        Ok(Self {
            recorder: Recorder::of_parts(plan, is_open)?,
            dropped: Vec::new(),
        })
    }

    /// The run starts.
    ///
    /// - `workers`: of all parts.
    /// - `started`: which may lie ahead.
    pub fn start(
        &mut self,
        parts: usize,
        workers: usize,
        started: SystemTime,
    ) -> Result<(), AttachError> {
        self.dropped = vec![0; parts];
        self.recorder.begin_parts(parts, workers, started)
    }

    /// Takes a sample of the servers at the start of the run; called often.
    pub fn look(&mut self) {
        self.recorder.look(SystemClock.now());
    }

    /// Adds what a part has handed over; each hands over its seconds in their order.
    ///
    /// - `part`: its position.
    pub fn merge_part(&mut self, part: usize, exchanges: &PartExchanges) {
        self.dropped[part] = exchanges.dropped;
        let dropped = self.dropped.iter().sum();
        self.recorder.merge_part(part, exchanges, dropped);
    }

    /// Waits for a part no longer. What it has handed over stays.
    pub fn give_up(&mut self, part: usize) {
        self.recorder.give_up(part);
    }

    /// The record; `None` if the run has not started.
    pub fn finish(mut self, end: ExchangeUnionEnd<'_>) -> Option<RecordedRun> {
        // A part whose virtual users never began has no last second.
        for part in 0..self.dropped.len() {
            self.recorder.give_up(part);
        }
        let record = RecordEnd {
            window: end.window,
            worst_worker: worst_share(end.reports),
            is_interrupted: end.is_interrupted,
            dropped: self.dropped.iter().sum(),
            left_out: end.left_out,
        };
        self.recorder.finish(record, Some(end.reports))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{Histogram, LoadModel, LoadShape, Protocol, RequestFigures, Stalls};

    use super::*;
    use crate::conditions::RunFacts;
    use crate::scenario::{ExchangeSecond, FirstRequest};
    use crate::worker::recorder::Interval;

    fn plan() -> RecordingPlan<'static> {
        RecordingPlan {
            load: LoadShape {
                url: String::new(),
                urls: 0,
                method: String::new(),
                expectations: Vec::new(),
                fail_status: None,
                model: LoadModel::Closed,
                protocol: Protocol::Http1,
                connections: 4,
                exchanges: plimsoll_model::ExchangeKind::Request,
                streams: 1,
                udp_payload: None,
                workers: 1,
                duration: None,
                requests: None,
                warm_up: Duration::ZERO,
            },
            target: None,
            observed: &[],
            facts: RunFacts::default(),
            sample_every: Duration::from_millis(100),
            hands_over: false,
        }
    }

    /// - `oks`: complete requests of each second.
    fn exchanges(oks: &[u64], name: &str, dropped: u64) -> PartExchanges {
        let seconds = (1..).zip(oks).map(|(second, ok)| {
            let mut interval = Interval::new(0, false);
            interval.counts.started = *ok;
            interval.counts.ok = *ok;
            for _ in 0..*ok {
                interval.from_started.record(Duration::from_millis(second));
            }
            ExchangeSecond {
                at: Duration::from_millis(1_000 * second + 1),
                is_last: second == oks.len() as u64,
                interval: Box::new(interval),
            }
        });
        let seconds: Vec<_> = seconds.collect();
        PartExchanges {
            requests: vec![RequestFigures {
                name: name.to_owned(),
                ok: oks.iter().sum(),
                ..RequestFigures::default()
            }],
            first: Some(FirstRequest {
                method: "GET".to_owned(),
                url: "http://shop/".to_owned(),
                protocol: Protocol::Http2,
            }),
            seconds,
            iterations: Histogram::new(),
            dropped,
        }
    }

    fn report(stalls: u64) -> PartReport {
        let mut all = Stalls::default();
        all.record(Duration::from_millis(stalls));
        PartReport {
            total: Interval::new(0, false),
            stopped: Duration::from_secs(3),
            late: Duration::ZERO,
            cpu: None,
            peak_memory_bytes: Some(100),
            busiest_worker_percent: 10.0,
            stalls: all,
            run_delay: None,
            throttled: None,
            stream_limit: None,
            surplus: 0,
            saturated: None,
            warnings: Vec::new(),
        }
    }

    fn recorded(union: ExchangeUnion<'_>, reports: &[&PartReport]) -> RecordedRun {
        let end = ExchangeUnionEnd {
            reports,
            window: Duration::from_secs(3),
            is_interrupted: false,
            left_out: vec!["left out".to_owned()],
        };
        union.finish(end).expect("it was started")
    }

    #[test]
    fn parts_are_one_record_with_a_row_for_each_second() {
        let mut union = ExchangeUnion::open(plan(), false).unwrap();
        union.start(2, 7, SystemClock.wall()).unwrap();
        union.merge_part(0, &exchanges(&[10, 20, 30], "GET a", 3));
        union.merge_part(1, &exchanges(&[1, 2, 3], "GET b", 4));
        let (one, other) = (report(900), report(10));
        let run = recorded(union, &[&one, &other]).summary;
        let rows: Vec<_> = run.ticks.iter().map(|tick| tick.ok).collect();
        assert_eq!(rows, [11, 22, 33]);
        assert_eq!((run.counts.ok, run.counts.dropped), (66, 7));
        let mut names: Vec<_> = run.requests.iter().map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["GET a", "GET b"]);
        assert_eq!((run.load.workers, run.load.urls), (7, 2));
        assert_eq!(run.load.protocol, Protocol::Http2);
        assert_eq!(run.generator.peak_memory_bytes, Some(200));
        let warnings = run.conditions.warnings.join("\n");
        assert!(warnings.contains("left out"), "{warnings}");
        assert!(warnings.contains("the generator stood still"), "{warnings}");
    }

    #[test]
    fn a_part_without_a_last_second_holds_up_none_of_the_others() {
        let mut union = ExchangeUnion::open(plan(), false).unwrap();
        union.start(2, 2, SystemClock.wall()).unwrap();
        let mut lost = exchanges(&[5], "GET a", 0);
        lost.seconds[0].is_last = false;
        union.merge_part(1, &lost);
        union.merge_part(0, &exchanges(&[10, 20], "GET a", 0));
        let one = report(0);
        let run = recorded(union, &[&one]).summary;
        let rows: Vec<_> = run.ticks.iter().map(|tick| tick.ok).collect();
        assert_eq!(rows, [15, 20]);
        // There is nothing to compare where all have one name.
        assert!(run.requests.is_empty());
    }
}
