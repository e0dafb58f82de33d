//! Judges thresholds while a run goes on: each second, so that a breach can end it.
//!
//! A threshold over the whole run is judged in the end by the summary, and on the way only if its
//! breach ends the run. One over a stretch is judged by each stretch that is full; the worst is reported.
//! What was given up at the end of the run is counted in the stretches in which it began, see [`given_up`].
//! Histograms of past seconds are kept as their occupied buckets.

mod given_up;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{
    Bounded, Bucket, Cost, Counts, JudgedThreshold, Measured, Metric, ResourceSample, RunSummary,
    ServerFigures, Threshold, Tick, Times, TimesView, Trend, Unit, WindowBytes,
};

use crate::worker::recorder::Interval;

/// Past seconds are kept for as long as an exchange that is given up at the end may have been waited for.
const PATIENCE: Duration = Duration::from_mins(5);

/// Every threshold of a run, and what is needed of its past.
#[derive(Debug)]
pub(crate) struct Judge {
    watched: Vec<ThresholdWatch>,
    /// Past seconds, as many as the longest stretch and [`PATIENCE`] need.
    seconds: VecDeque<Second>,
    /// The end of the last second, stragglers included.
    last: Duration,
    longest: Duration,
    /// The durations that thresholds over a stretch look at.
    trends: Vec<Trend>,
    warm_up: Duration,
    /// When nothing more is begun, if that is known.
    end: Option<Duration>,
    /// Exchanges, responses and bytes since the window began.
    sum: Sum,
    /// The names of observed servers.
    names: Arc<[String]>,
    /// The target, then each of these.
    servers: Vec<ServerTrack>,
}

/// The samples of a server since the window began.
#[derive(Debug, Clone, Default)]
struct ServerTrack {
    first: Option<ResourceSample>,
    last: Option<ResourceSample>,
    /// The most memory and descriptors.
    peak: (u64, u64),
}

impl ServerTrack {
    fn figures(&self) -> Option<ServerFigures> {
        server(self.first, self.last, self.peak)
    }
}

/// Figures of the target and of observed servers.
#[derive(Debug, Default)]
struct Servers {
    names: Arc<[String]>,
    /// Of the target, then by name.
    figures: Vec<Option<ServerFigures>>,
}

impl Servers {
    fn figures_of(&self, name: Option<&str>) -> Option<ServerFigures> {
        let position = match name {
            None => 0,
            Some(name) => 1 + self.names.iter().position(|known| known == name)?,
        };
        self.figures.get(position).copied().flatten()
    }
}

#[derive(Debug)]
struct ThresholdWatch {
    threshold: Threshold,
    worst: Option<(Bounded<f64>, Duration)>,
    ended_run: bool,
}

impl Judge {
    /// - `names`: of the servers that are observed by name.
    /// - `end`: when nothing more is begun, since the start of the run.
    pub(crate) fn new(
        thresholds: &[Threshold],
        names: Arc<[String]>,
        warm_up: Duration,
        end: Option<Duration>,
    ) -> Self {
        let stretches = || thresholds.iter().filter_map(|threshold| threshold.over);
        let mut trends = Vec::new();
        for threshold in thresholds
            .iter()
            .filter(|threshold| threshold.over.is_some())
        {
            if let Metric::Time(trend) = threshold.metric()
                && !trends.contains(&trend)
            {
                trends.push(trend);
            }
        }
        Self {
            watched: thresholds
                .iter()
                .map(|threshold| ThresholdWatch {
                    threshold: threshold.clone(),
                    worst: None,
                    ended_run: false,
                })
                .collect(),
            seconds: VecDeque::new(),
            last: Duration::ZERO,
            longest: stretches().max().unwrap_or_default(),
            trends,
            warm_up,
            end,
            sum: Sum::default(),
            servers: vec![ServerTrack::default(); names.len() + 1],
            names,
        }
    }

    /// Takes note of a second; whether the run is to end because of it.
    ///
    /// - `total`: everything counted until now.
    /// - `sample`: the target at its end, if it is observed.
    /// - `observed`: the same of each server that is observed by name.
    pub(crate) fn second(
        &mut self,
        tick: &Tick,
        interval: &Interval,
        total: &Interval,
        sample: Option<ResourceSample>,
        observed: &[Option<ResourceSample>],
    ) -> bool {
        let rest = observed.iter().copied().chain(std::iter::repeat(None));
        let after: Vec<_> = std::iter::once(sample)
            .chain(rest)
            .take(self.servers.len())
            .collect();
        let before: Vec<_> = self.servers.iter().map(|server| server.last).collect();
        for (server, sample) in self.servers.iter_mut().zip(&after) {
            server.last = sample.or(server.last);
        }
        self.last = tick.at;
        let began = tick.at.saturating_sub(tick.length);
        // Behind the last start there are only stragglers.
        if self.watched.is_empty() || tick.warm_up || self.end.is_some_and(|end| began >= end) {
            return false;
        }
        let before: Vec<_> = before
            .iter()
            .zip(&after)
            .map(|(before, after)| before.or(*after))
            .collect();
        for ((server, before), after) in self.servers.iter_mut().zip(&before).zip(&after) {
            server.first = server.first.or(*before);
            if let Some(sample) = after {
                let (memory, fds) = server.peak;
                server.peak = (memory.max(sample.memory.total_bytes()), fds.max(sample.fds));
            }
        }
        let sum = Sum::from_interval(interval);
        // The second in which the run ends reaches a little into the grace period.
        let length = match self.end {
            Some(end) => tick.length.min(end.saturating_sub(began)),
            None => tick.length,
        };
        self.sum.add(&sum);
        if !self.longest.is_zero() {
            self.remember(began + length, length, interval, sum, before, after);
        }
        let since_start = (began + length).saturating_sub(self.warm_up);
        let mut is_over = false;
        for position in 0..self.watched.len() {
            let threshold = &self.watched[position].threshold;
            let value = match threshold.over {
                Some(length) => self
                    .stretch(self.seconds.len(), length)
                    .and_then(|stretch| threshold.value(&stretch)),
                None if threshold.abort_after.is_some() => threshold.value(&SoFar {
                    length: since_start,
                    sum: self.sum,
                    total,
                    servers: Servers {
                        names: Arc::clone(&self.names),
                        figures: self.servers.iter().map(ServerTrack::figures).collect(),
                    },
                }),
                None => None,
            };
            let Some(value) = value else { continue };
            let watched = &mut self.watched[position];
            let is_worse = |(worst, _)| watched.threshold.is_worse(value, worst);
            if watched.worst.is_none_or(is_worse) {
                watched.worst = Some((value, tick.at));
            }
            let may_end = watched.threshold.abort_after;
            if may_end.is_some_and(|after| since_start >= after) && !watched.threshold.is_met(value)
            {
                watched.ended_run = true;
                is_over = true;
            }
        }
        is_over
    }

    /// The outcome of every threshold.
    pub(crate) fn verdicts(mut self, run: &RunSummary) -> Vec<JudgedThreshold> {
        self.count_given_up(run);
        self.watched
            .into_iter()
            .map(|watched| {
                let threshold = watched.threshold;
                // A run that was shorter than the stretch is one itself.
                let of_run = threshold.value(run);
                let is_unseen =
                    threshold.metric().needs_server() && run.server(threshold.server()).is_none();
                let (value, at) = match watched.worst.filter(|_| threshold.over.is_some()) {
                    // The part that was not observed may have been worse.
                    Some((worst, _)) if is_unseen && threshold.is_met(worst) => (None, None),
                    Some((worst, at)) => match of_run.filter(|_| hides(&threshold, run)) {
                        Some(value) if threshold.is_worse(value, worst) => (Some(value), None),
                        _ => (Some(worst), Some(at)),
                    },
                    None => (of_run, None),
                };
                JudgedThreshold {
                    threshold,
                    value,
                    at,
                    ended_run: watched.ended_run,
                }
            })
            .collect()
    }

    fn remember(
        &mut self,
        at: Duration,
        length: Duration,
        interval: &Interval,
        sum: Sum,
        before: Vec<Option<ResourceSample>>,
        after: Vec<Option<ResourceSample>>,
    ) {
        let times = self
            .trends
            .iter()
            .map(|trend| {
                let times = interval.times(*trend);
                times.map_or_else(Vec::new, |times| times.observed().buckets().collect())
            })
            .collect();
        self.seconds.push_back(Second {
            at,
            length,
            sum,
            times,
            before,
            after,
        });
        let mut kept: Duration = self.seconds.iter().map(|second| second.length).sum();
        while let Some(first) = self.seconds.front()
            && let Some(rest) = kept.checked_sub(first.length)
            && rest >= self.longest + PATIENCE
        {
            kept = rest;
            self.seconds.pop_front();
        }
    }

    /// The `length` before the second with this position; `None` until there is so much.
    fn stretch(&self, end: usize, length: Duration) -> Option<Stretch> {
        // Ticks come a moment late, and the next one makes up for it.
        const SHORT: Duration = Duration::from_millis(50);

        let trends = self.trends.iter();
        let mut stretch = Stretch {
            times: trends.map(|trend| (*trend, Times::new())).collect(),
            ..Stretch::default()
        };
        let mut tracks = vec![ServerTrack::default(); self.servers.len()];
        for second in self.seconds.range(..end).rev() {
            stretch.length += second.length;
            stretch.sum.add(&second.sum);
            for ((_, times), buckets) in stretch.times.iter_mut().zip(&second.times) {
                for bucket in buckets {
                    times.record_bucket(*bucket);
                }
            }
            let ends = second.before.iter().zip(&second.after);
            for (track, (before, after)) in tracks.iter_mut().zip(ends) {
                if let Some(sample) = after {
                    track.peak.0 = sample.memory.total_bytes().max(track.peak.0);
                    track.peak.1 = sample.fds.max(track.peak.1);
                }
                track.first = *before;
                track.last = track.last.or(*after);
            }
            if stretch.length + SHORT >= length {
                stretch.servers = Servers {
                    names: Arc::clone(&self.names),
                    figures: tracks.iter().map(ServerTrack::figures).collect(),
                };
                return Some(stretch);
            }
        }
        None
    }
}

/// Whether the whole of `run` shows what its stretches do not: exchanges that were given up at its end. A
/// mean, a percentile or a share of the whole is never worse than that of its worst stretch, so
/// a breach by the whole is one by a stretch.
fn hides(threshold: &Threshold, run: &RunSummary) -> bool {
    let is_of_exchanges = match threshold.metric() {
        Metric::Time(Trend::FromStarted | Trend::Honest) => threshold.unit() == Unit::Microseconds,
        Metric::Time(Trend::Phase(phase)) => {
            threshold.unit() == Unit::Microseconds && phase.given_up(run.counts.aborted) > 0
        }
        Metric::Errors | Metric::Failed => threshold.unit() == Unit::Ratio,
        _ => false,
    };
    is_of_exchanges && run.counts.aborted + run.counts.missed > 0
}

/// Figures of one second.
#[derive(Debug)]
struct Second {
    /// Its end, since the start of the run.
    at: Duration,
    length: Duration,
    sum: Sum,
    /// The occupied buckets of each of [`Judge::trends`].
    times: Vec<Vec<Bucket>>,
    /// The target and the other servers at its start and at its end.
    before: Vec<Option<ResourceSample>>,
    after: Vec<Option<ResourceSample>>,
}

/// Figures that can be added up.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    counts: Counts,
    unexpected: u64,
    bytes_sent: u64,
    bytes_received: u64,
    bytes_in_window: WindowBytes,
}

impl Sum {
    fn from_interval(interval: &Interval) -> Self {
        let unexpected = match interval.grpc() {
            Some(grpc) => grpc.errors(),
            None => interval
                .statuses()
                .filter(|(status, _)| !(200..400).contains(status))
                .map(|(_, count)| count)
                .sum::<u64>(),
        };
        Self {
            counts: interval.counts,
            unexpected: unexpected + interval.counts.failed,
            bytes_sent: interval.bytes_sent,
            bytes_received: interval.bytes_received,
            bytes_in_window: interval.bytes_in_window,
        }
    }

    fn add(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.unexpected += other.unexpected;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.bytes_in_window.merge(&other.bytes_in_window);
    }
}

/// The run until now.
struct SoFar<'a> {
    length: Duration,
    sum: Sum,
    total: &'a Interval,
    servers: Servers,
}

/// The last seconds of a run.
#[derive(Debug, Default)]
struct Stretch {
    length: Duration,
    sum: Sum,
    times: Vec<(Trend, Times)>,
    servers: Servers,
}

impl Measured for SoFar<'_> {
    fn length(&self) -> Duration {
        self.length
    }

    fn counts(&self) -> Counts {
        self.sum.counts
    }

    fn unexpected(&self) -> u64 {
        self.sum.unexpected
    }

    fn bytes_sent(&self) -> u64 {
        self.sum.bytes_sent
    }

    fn bytes_received(&self) -> u64 {
        self.sum.bytes_received
    }

    fn bytes_in_window(&self) -> WindowBytes {
        self.sum.bytes_in_window
    }

    fn times(&self, trend: Trend) -> Option<TimesView<'_>> {
        self.total.times(trend)
    }

    fn server(&self, name: Option<&str>) -> Option<ServerFigures> {
        self.servers.figures_of(name)
    }
}

impl Measured for Stretch {
    fn length(&self) -> Duration {
        self.length
    }

    fn counts(&self) -> Counts {
        self.sum.counts
    }

    fn unexpected(&self) -> u64 {
        self.sum.unexpected
    }

    fn bytes_sent(&self) -> u64 {
        self.sum.bytes_sent
    }

    fn bytes_received(&self) -> u64 {
        self.sum.bytes_received
    }

    fn bytes_in_window(&self) -> WindowBytes {
        self.sum.bytes_in_window
    }

    fn times(&self, trend: Trend) -> Option<TimesView<'_>> {
        let found = self.times.iter().find(|(known, _)| *known == trend);
        found.map(|(_, times)| times.view())
    }

    fn server(&self, name: Option<&str>) -> Option<ServerFigures> {
        self.servers.figures_of(name)
    }
}

fn server(
    first: Option<ResourceSample>,
    last: Option<ResourceSample>,
    (peak_memory_bytes, peak_fds): (u64, u64),
) -> Option<ServerFigures> {
    let (first, last) = first.zip(last)?;
    Some(ServerFigures {
        cost: Cost::between(&first, &last),
        memory_bytes: last.memory.total_bytes(),
        peak_memory_bytes,
        fds: last.fds,
        peak_fds,
    })
}

#[cfg(test)]
mod tests;
