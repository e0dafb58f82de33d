//! Merges what the workers hand over: one line a second, one total at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{Counts, Phase, Tick, Trend};

use crate::worker::first_second;
use crate::worker::recorder::Interval;

/// Counts of a worker since it last handed over.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) worker: u32,
    /// Time since the start of the run.
    pub(crate) at: Duration,
    /// Nothing more comes from this worker.
    pub(crate) is_last: bool,
    /// Nothing was begun any more since the worker handed over before.
    pub(crate) grace: bool,
    pub(crate) interval: Box<Interval>,
}

/// A second that every worker has handed over.
#[derive(Debug)]
pub(crate) struct Second {
    pub(crate) tick: Tick,
    /// The counts of the interval; to be given back.
    pub(crate) interval: Interval,
}

/// Merges intervals into seconds and seconds into a total.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Of the seconds that are complete: what is merged once a second costs each worker less.
    total: Interval,
    /// Seconds that not all workers have handed over yet, by number.
    pending: BTreeMap<u64, Pending>,
    /// For each worker, the second it has come to; `u64::MAX` once it has ended.
    reached: Vec<u64>,
    warm_up: Duration,
    last_tick: Duration,
    /// Counts of the window that were handed over with the warm-up.
    early: Counts,
    /// Merged seconds, to be filled again.
    spare: Vec<Interval>,
}

#[derive(Debug)]
struct Pending {
    at: Duration,
    /// Whether all of it lies in the grace period.
    grace: bool,
    interval: Interval,
}

impl Collector {
    /// - `empty`: an interval of the run's kind.
    pub(crate) fn new(empty: Interval, workers: usize, warm_up: Duration) -> Self {
        Self {
            spare: vec![empty.clone()],
            total: empty,
            pending: BTreeMap::new(),
            reached: vec![0; workers],
            warm_up,
            last_tick: Duration::ZERO,
            early: Counts::default(),
        }
    }

    /// Takes over what a worker handed over; returns its memory, and the seconds that are complete.
    pub(crate) fn collect_published(
        &mut self,
        published: Published,
    ) -> (Box<Interval>, Vec<Second>) {
        let Published {
            worker,
            at,
            is_last,
            grace,
            mut interval,
        } = published;
        // Workers hand over a moment after a second is full.
        let offset = first_second(self.warm_up);
        let mut second = at.saturating_sub(offset).as_secs() + 1;
        if is_last {
            // Counts after the last full second are a line of their own, one for all workers.
            second = second.max(self.reached[worker as usize] + 1);
        }
        if let Some(pending) = self.pending.get_mut(&second) {
            pending.interval.merge(&interval);
            pending.at = pending.at.max(at);
            pending.grace &= grace;
        } else {
            let mut merged = self.spare.pop().unwrap_or_else(|| {
                let mut empty = self.total.clone();
                empty.clear();
                empty
            });
            merged.merge(&interval);
            self.pending.insert(
                second,
                Pending {
                    at,
                    grace,
                    interval: merged,
                },
            );
        }
        self.reached[worker as usize] = if is_last { u64::MAX } else { second };
        interval.clear();
        (interval, self.complete())
    }

    /// Counts no more on a worker that has not ended; returns the seconds that are complete without it.
    pub(crate) fn give_up(&mut self, worker: usize) -> Vec<Second> {
        self.reached[worker] = u64::MAX;
        self.complete()
    }

    /// Whether nothing more comes from any worker.
    pub(crate) fn is_complete(&self) -> bool {
        self.reached.iter().all(|reached| *reached == u64::MAX)
    }

    /// Takes back the memory of a second.
    pub(crate) fn recycle(&mut self, mut interval: Interval) {
        interval.clear();
        self.spare.push(interval);
    }

    /// The total of the seconds that are complete.
    pub(crate) fn total(&self) -> &Interval {
        &self.total
    }

    /// The total of everything handed over.
    pub(crate) fn finish(mut self) -> Interval {
        for pending in self.pending.values() {
            self.total.merge(&pending.interval);
        }
        self.total
    }

    /// The seconds that every worker has handed over.
    fn complete(&mut self) -> Vec<Second> {
        let reached = self.reached.iter().copied().min().unwrap_or(u64::MAX);
        let mut seconds = Vec::new();
        while let Some(entry) = self.pending.first_entry()
            && *entry.key() <= reached
        {
            let pending = entry.remove();
            self.total.merge(&pending.interval);
            let tick = self.tick(&pending);
            self.last_tick = self.last_tick.max(pending.at);
            seconds.push(Second {
                tick,
                interval: pending.interval,
            });
        }
        seconds
    }

    /// The row of a second. Workers hand over a moment after it is full, so that the last row of the warm-up
    /// would have the first counts of the window: these go into the next row.
    fn tick(&mut self, pending: &Pending) -> Tick {
        let last = self.last_tick;
        let length = pending.at.saturating_sub(last);
        let is_warm_up = last + length / 2 < self.warm_up;
        let mut counts = pending.interval.counts;
        counts.merge(&std::mem::take(&mut self.early));
        if is_warm_up {
            self.early = Counts {
                warm_up: 0,
                ..counts
            };
            counts = Counts {
                ok: counts.warm_up,
                ..Counts::default()
            };
        }
        tick(pending, &counts, length, is_warm_up)
    }
}

fn tick(pending: &Pending, counts: &Counts, length: Duration, is_warm_up: bool) -> Tick {
    let Pending {
        at,
        grace,
        interval,
    } = pending;
    // What was given up at the end belongs to the second in which it was.
    let latency = interval.honest_latency();
    Tick {
        at: *at,
        length,
        warm_up: is_warm_up,
        grace: *grace,
        ok: counts.ok,
        failed: counts.failed,
        other_errors: counts.errors() - counts.failed,
        events: interval.events.as_ref().map_or(0, |events| events.received),
        bytes_received: interval.bytes_received,
        in_flight: interval.in_flight,
        p50: latency.quantile(0.5),
        p90: latency.quantile(0.9),
        p99: latency.quantile(0.99),
        p99_9: latency.quantile(0.999),
        max: latency.max(),
        spread: latency.observed().coarse(),
        phases: Phase::ALL.map(|phase| {
            let times = interval.times(Trend::Phase(phase));
            let sum = times.map_or(0.0, |times| {
                let times = times.observed();
                times.mean().unwrap_or_default().as_secs_f64() * times.len() as f64
            });
            Duration::try_from_secs_f64(sum / counts.ok as f64).unwrap_or_default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(worker: u32, millis: u64, ok: u64, is_last: bool) -> Published {
        let mut interval = Interval::new(0, false);
        interval.counts.ok = ok;
        Published {
            worker,
            at: Duration::from_millis(millis),
            is_last,
            grace: false,
            interval: Box::new(interval),
        }
    }

    #[test]
    fn a_second_is_reported_once_every_worker_has_handed_it_over() {
        let mut collector = Collector::new(Interval::new(0, false), 2, Duration::ZERO);
        let mut oks = |worker, millis, ok, is_last| {
            let (_, seconds) = collector.collect_published(published(worker, millis, ok, is_last));
            seconds
                .iter()
                .map(|second| second.tick.ok)
                .collect::<Vec<_>>()
        };
        assert_eq!(oks(0, 1000, 10, false), [0_u64; 0]);
        assert_eq!(oks(0, 2000, 20, false), [0_u64; 0]);
        assert_eq!(oks(1, 1001, 1, false), [11]);
        assert_eq!(oks(1, 2400, 2, true), [22]);
        assert_eq!(oks(0, 2500, 5, true), [5]);
        assert_eq!(collector.finish().counts.ok, 38);
    }

    #[test]
    fn the_last_part_of_a_second_is_reported_once_for_all_workers() {
        let mut collector = Collector::new(Interval::new(0, false), 2, Duration::ZERO);
        let mut ticks_seen = Vec::new();
        for (worker, millis, is_last) in [
            (0, 1000, false),
            (1, 1000, false),
            (0, 1500, true),
            (1, 1501, true),
        ] {
            let (_, seconds) = collector.collect_published(published(worker, millis, 10, is_last));
            let ticks = seconds.iter().map(|second| &second.tick);
            ticks_seen.extend(ticks.map(|tick| (tick.ok, tick.length.as_millis())));
        }
        assert_eq!(ticks_seen, [(20, 1000), (20, 501)]);
    }

    #[test]
    fn a_second_of_the_warm_up_is_marked_although_it_is_reported_a_moment_later() {
        let mut collector = Collector::new(Interval::new(0, false), 1, Duration::from_secs(1));
        let marks: Vec<_> = [1001, 2001, 2500]
            .into_iter()
            .flat_map(|millis| {
                collector
                    .collect_published(published(0, millis, 1, millis == 2500))
                    .1
            })
            .map(|second| second.tick.warm_up)
            .collect();
        assert_eq!(marks, [true, false, false]);
    }

    #[test]
    fn a_second_in_which_exchanges_are_given_up_has_lower_bounds() {
        let mut collector = Collector::new(Interval::new(0, false), 1, Duration::ZERO);
        let mut last = published(0, 1_000, 1, true);
        let now = plimsoll_model::Clock::now(&plimsoll_wire::SystemClock);
        last.interval.from_started.record(Duration::from_millis(5));
        last.interval
            .record_aborted(now, now, now + Duration::from_secs(1));
        let (_, seconds) = collector.collect_published(last);
        let tick = &seconds[0].tick;
        assert!(tick.p50.unwrap().known().is_some());
        assert!(tick.p99.unwrap().is_censored() && tick.max.unwrap().is_censored());
    }

    #[test]
    fn a_second_ends_with_the_warm_up_and_rows_of_the_window_hold_what_it_counts() {
        let mut collector = Collector::new(Interval::new(0, false), 1, Duration::from_millis(500));
        let mut ticks = Vec::new();
        for (millis, warm_up, ok) in [
            (501, 50, 2),
            (1_502, 1, 97),
            (2_501, 0, 100),
            (3_500, 0, 101),
        ] {
            let mut published = published(0, millis, ok, millis == 3_500);
            published.interval.counts.warm_up = warm_up;
            ticks.extend(
                collector
                    .collect_published(published)
                    .1
                    .into_iter()
                    .map(|second| second.tick),
            );
        }
        let rows: Vec<_> = ticks.iter().map(|tick| (tick.warm_up, tick.ok)).collect();
        assert_eq!(rows, [(true, 50), (false, 99), (false, 100), (false, 101)]);
    }
}
