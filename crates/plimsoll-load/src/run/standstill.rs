//! The generator's own share of what a run shows: times at which it stood still.
//!
//! Pure: figures of a run in, sentences for its readers out.

use std::time::Duration;

use plimsoll_model::{Bounded, DurationText, RunSummary, Stalls, TimesView, three_figures};

use crate::conditions::STEAL_PERCENT;

/// Standing still for less than this share of the window does not move the throughput.
const SHARE_OF_WINDOW: f64 = 0.02;

/// Less than this share of a percentile does not move it.
const SHARE_OF_PERCENTILE: f64 = 0.1;

/// The percentiles that every summary shows.
const SHOWN: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

/// Connections of a closed loop that are busy for less than this share of the window wait for the generator.
const BUSY_SHARE: f64 = 0.9;

/// Exchanges on each connection from which on the first and the last one no longer matter.
const ENOUGH_EXCHANGES: u64 = 20;

/// What gives cores to the generator of a run against a URL, and to that of a script, which has no such flag.
pub(crate) const CORES_OF_RUN: &str = "--cores";
pub(crate) const CORES_OF_SCRIPT: &str = "taskset";

/// Every way in which the generator moved the figures of `run`.
///
/// - `cores_by`: what gives cores to the generator.
pub(crate) fn warnings(run: &RunSummary, cores_by: &'static str) -> Vec<String> {
    let generator = &run.generator;
    Facts {
        window: run.window,
        stalls: generator.stalls,
        run_delay: generator.run_delay,
        throttled: generator.throttled,
        stolen: stolen(run),
        cores_by,
        places: run.load.connections * run.load.streams,
        is_open: run.latency.from_intended.is_some(),
        latency: JudgedLatency::from_times(run.latency.honest().view()),
    }
    .warnings()
}

/// Processor time that the hypervisor took, where that is too little to be cautioned for any run.
fn stolen(run: &RunSummary) -> Duration {
    let conditions = &run.conditions;
    let percent = conditions.steal_percent.unwrap_or(0.0);
    if percent > STEAL_PERCENT {
        return Duration::ZERO;
    }
    run.window
        .mul_f64(percent / 100.0 * conditions.cores as f64)
}

/// The figures that are judged.
pub(crate) struct Facts {
    pub(crate) window: Duration,
    pub(crate) stalls: Stalls,
    pub(crate) run_delay: Option<Duration>,
    pub(crate) throttled: Option<Duration>,
    pub(crate) stolen: Duration,
    /// What gives cores to the generator.
    pub(crate) cores_by: &'static str,
    /// Exchanges that can be under way.
    pub(crate) places: usize,
    pub(crate) is_open: bool,
    pub(crate) latency: JudgedLatency,
}

/// A latency, as far as it is judged.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JudgedLatency {
    /// How many exchanges have one.
    count: u64,
    /// Those that every summary shows; none without exchanges.
    shown: [Option<Duration>; SHOWN.len()],
}

impl JudgedLatency {
    /// - `count`: how many exchanges have one.
    pub(crate) fn new(count: u64, quantile: impl Fn(f64) -> Option<Duration>) -> Self {
        Self {
            count,
            shown: SHOWN.map(|(_, fraction)| quantile(fraction)),
        }
    }

    /// By lower bounds, where exchanges had no end.
    fn from_times(times: TimesView<'_>) -> Self {
        Self::new(times.len(), |fraction| {
            times.quantile(fraction).map(Bounded::low)
        })
    }
}

impl Facts {
    /// Every way in which the generator moved them.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let all = [
            self.stood_still(),
            self.not_run(),
            self.throttled(),
            self.stolen(),
        ];
        all.into_iter().flatten().collect()
    }

    fn stood_still(&self) -> Option<String> {
        let stalls = self.stalls;
        let moves_throughput = self.is_much(stalls.total);
        let moved = self.moved_percentile(stalls);
        let what = match (moves_throughput, moved) {
            (false, None) => return None,
            (true, None) => "throughput describes it".to_owned(),
            (false, Some(percentile)) => format!("latency from {percentile} on describes it"),
            (true, Some(percentile)) => {
                format!("throughput, and latency from {percentile} on, describe it")
            }
        };
        Some(format!(
            "the generator stood still for {} in all ({}), for {} at the longest: {what} and not the \
             target. Was it stopped, or short of a core?",
            DurationText(stalls.total),
            self.share_text(stalls.total),
            DurationText(stalls.longest),
        ))
    }

    fn not_run(&self) -> Option<String> {
        let delay = self.run_delay?;
        let moved = self.moved_by(delay)?;
        Some(format!(
            "a worker of the generator was ready and not run for {} ({}){moved}: others used its core. Give \
             it cores of its own ({}), or stop what else runs",
            DurationText(delay),
            self.share_text(delay),
            self.cores_by,
        ))
    }

    fn throttled(&self) -> Option<String> {
        let stopped = self.throttled?;
        let moved = self.moved_by(stopped)?;
        Some(format!(
            "the control group of the generator was throttled for {} ({}){moved}: raise its limit on \
             processor time, or lower the load",
            DurationText(stopped),
            self.share_text(stopped),
        ))
    }

    /// What a time without a core may have moved, in words that follow it: nothing more than it says by itself where it is
    /// much of the window; `None` if it moved nothing.
    fn moved_by(&self, time: Duration) -> Option<String> {
        if self.is_much(time) {
            return Some(String::new());
        }
        let percentile = self.moved_at_worst(time)?;
        Some(format!(
            ", and {percentile} is of so few requests that this may have moved it"
        ))
    }

    /// A share that is nothing to a long run may be the 99th percentile of a short one.
    fn stolen(&self) -> Option<String> {
        let moved = self.moved_at_worst(self.stolen)?;
        Some(format!(
            "the hypervisor took {} of the processor time, and {moved} is of so few requests that this may \
             have moved it: repeat the run, or make it longer",
            DurationText(self.stolen),
        ))
    }

    /// The lowest percentile that a time may have moved of which it is not known when it was: at worst all at once.
    fn moved_at_worst(&self, time: Duration) -> Option<&'static str> {
        let mut stalls = Stalls::default();
        stalls.record(time);
        self.moved_percentile(stalls)
    }

    /// The lowest percentile shown of which a stall may be more than a tenth.
    fn moved_percentile(&self, stalls: Stalls) -> Option<&'static str> {
        let count = u32::try_from(stalls.count).unwrap_or(u32::MAX);
        let mean = stalls.total.checked_div(count)?;
        let affected = if self.is_open {
            // What falls due in a stall is late.
            self.share(stalls.total)
        } else {
            // What is under way in a stall is read late.
            let under_way = self.places as f64 * stalls.count as f64;
            under_way / self.latency.count.max(1) as f64
        };
        let mut shown = SHOWN.into_iter().zip(self.latency.shown);
        shown.find_map(|((name, fraction), value)| {
            let value = value?;
            // The longest are at the end of the distribution.
            let stall = if fraction < 0.99 {
                mean
            } else {
                stalls.longest
            };
            let is_moved = affected >= 1.0 - fraction && stall > value.mul_f64(SHARE_OF_PERCENTILE);
            is_moved.then_some(name)
        })
    }

    fn share(&self, time: Duration) -> f64 {
        if self.window.is_zero() {
            return 0.0;
        }
        time.as_secs_f64() / self.window.as_secs_f64()
    }

    fn is_much(&self, time: Duration) -> bool {
        self.share(time) > SHARE_OF_WINDOW
    }

    fn share_text(&self, time: Duration) -> String {
        format!(
            "{} % of the window",
            three_figures(self.share(time) * 100.0)
        )
    }
}

/// Little's law as a check of a closed loop without pauses: rate × latency is the number of connections, unless
/// they were idle between exchanges, and then the generator was the limit.
///
/// - `has_fewer_streams`: a server allows fewer streams than configured.
///
/// Source: J. D. C. Little, "A Proof for the Queuing Formula L = λW" (1961).
pub(crate) fn idle_connections(run: &RunSummary, has_fewer_streams: bool) -> Option<String> {
    let counts = &run.counts;
    if counts.failed > 0 || counts.aborted > 0 || has_fewer_streams {
        return None;
    }
    let mean = run.latency.from_started.mean()?.known()?;
    let places = (run.load.connections * run.load.streams) as u64;
    idle(
        places,
        counts.completed_in_window,
        run.requests_per_second(),
        mean,
    )
}

fn idle(places: u64, completed: u64, per_second: f64, mean: Duration) -> Option<String> {
    if completed < places * ENOUGH_EXCHANGES {
        return None;
    }
    let busy = per_second * mean.as_secs_f64() / places as f64;
    (busy < BUSY_SHARE).then(|| {
        format!(
            "connections were busy for {} % of the window only (rate × mean latency ÷ connections, \
             Little's law): between exchanges they waited for the generator, and the target may carry \
             more",
            three_figures(busy * 100.0)
        )
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Histogram;

    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn latency(values: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        for (time, count) in values {
            (0..*count).for_each(|_| histogram.record(millis(*time)));
        }
        histogram
    }

    fn facts(latency: &Histogram, stalls: &[u64]) -> Facts {
        let mut recorded = Stalls::default();
        for stall in stalls {
            recorded.record(millis(*stall));
        }
        Facts {
            window: Duration::from_secs(5),
            stalls: recorded,
            run_delay: Some(millis(1)),
            throttled: None,
            stolen: Duration::ZERO,
            cores_by: CORES_OF_RUN,
            places: 96,
            is_open: false,
            latency: JudgedLatency::from_times(latency.into()),
        }
    }

    #[test]
    fn a_generator_that_was_stopped_is_cautioned_in_a_closed_loop() {
        // 96 connections, 100 ms each, stopped for 0.7 s of 5: the 99th percentile is 750 ms.
        let latency = latency(&[(100, 4_030), (750, 96)]);
        let warnings = facts(&latency, &[700]).warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let warning = &warnings[0];
        assert!(
            warning.contains("stood still for 700 ms in all (14.0 % of the window)"),
            "{warning}"
        );
        assert!(
            warning.contains("throughput, and latency from p99 on"),
            "{warning}"
        );
    }

    #[test]
    fn hiccups_that_move_nothing_are_not_cautioned() {
        let latency = latency(&[(100, 4_800)]);
        assert_eq!(facts(&latency, &[3, 2, 4, 0]).warnings(), [""; 0]);
        assert_eq!(facts(&Histogram::new(), &[]).warnings(), [""; 0]);
    }

    #[test]
    fn short_stalls_move_short_latencies_only() {
        let latency = latency(&[(2, 20_000)]);
        let warnings = facts(&latency, &[5, 5, 5]).warnings();
        assert!(
            warnings[0].contains(": latency from p99 on describes it"),
            "{warnings:?}"
        );
        let mut open = facts(&latency, &[5, 5, 5]);
        open.is_open = true;
        assert_eq!(open.warnings(), [""; 0], "15 ms of 5 s are due in them");
    }

    #[test]
    fn a_core_that_others_use_and_a_limit_of_the_group_are_cautioned() {
        let latency = latency(&[(100, 4_800)]);
        let mut facts = facts(&latency, &[]);
        facts.run_delay = Some(millis(101));
        facts.throttled = Some(millis(500));
        let warnings = facts.warnings();
        assert!(
            warnings[0].contains("ready and not run for 101 ms (2.02 %"),
            "{warnings:?}"
        );
        assert!(warnings[0].contains("(--cores)"), "{warnings:?}");
        assert!(
            warnings[1].contains("throttled for 500 ms (10.0 %"),
            "{warnings:?}"
        );
        facts.run_delay = Some(millis(99));
        facts.throttled = Some(millis(90));
        let warnings = facts.warnings();
        assert!(
            warnings[0].contains("99.0 ms (1.98 % of the window), and p99 is of so few requests"),
            "{warnings:?}"
        );
        assert!(
            warnings[1].contains("throttled for 90.0 ms (1.80 % of the window), and p99 is"),
            "{warnings:?}"
        );
        facts.run_delay = Some(millis(9));
        facts.throttled = None;
        assert_eq!(facts.warnings(), [""; 0], "less than a tenth of p99");
    }

    #[test]
    fn a_little_that_the_hypervisor_took_matters_to_a_short_run_alone() {
        let short = latency(&[(40, 4_900)]);
        let mut facts = facts(&short, &[]);
        facts.stolen = millis(10);
        let warnings = facts.warnings();
        assert!(
            warnings[0].contains("took 10.0 ms of the processor time, and p99 is"),
            "{warnings:?}"
        );
        let long = latency(&[(40, 49_000)]);
        facts.latency = JudgedLatency::from_times((&long).into());
        assert_eq!(facts.warnings(), [""; 0]);
    }

    #[test]
    fn connections_that_idle_between_exchanges_are_seen_by_littles_law() {
        assert_eq!(idle(10, 5_000, 1_000.0, millis(10)), None);
        let warning = idle(10, 5_000, 500.0, millis(10));
        assert!(warning.is_some_and(|warning| warning.contains("busy for 50.0 %")));
        assert_eq!(idle(10, 150, 50.0, millis(10)), None, "too few to say");
    }
}
