//! `ramping-vus`: a number of virtual users that changes over time.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::segment::Segment;

/// A stretch of time at whose end a level is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// Its length; a stage of length 0 is a jump.
    pub duration: Duration,
    /// Virtual users, or arrivals per time unit, at its end.
    pub target: u32,
}

/// A number of virtual users that follows stages, linearly within each.
///
/// Within a stage of length d from a to b virtual users, the number changes by one at each multiple of d / |b − a|, so
/// that b is reached at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RampingVus {
    /// Ascending moments, each with the number of virtual users from then on. The first is 0.
    pub(super) steps: Vec<(Duration, u32)>,
    end: Duration,
    graceful_ramp_down: Duration,
}

impl RampingVus {
    /// - `graceful_ramp_down`: that the iteration of a virtual user gets when it becomes one too many.
    pub fn new(start: u32, stages: &[Stage], graceful_ramp_down: Duration) -> Self {
        let mut steps = vec![(Duration::ZERO, start)];
        let mut level = start;
        let mut at = Duration::ZERO;
        for stage in stages {
            let count = level.abs_diff(stage.target);
            for number in 1..=count {
                let nanos = stage.duration.as_nanos() * u128::from(number) / u128::from(count);
                let moment = at + nanos_to_duration(nanos);
                let level = if stage.target > level {
                    level + number
                } else {
                    level - number
                };
                match steps.last_mut() {
                    Some((last, of_last)) if *last == moment => *of_last = level,
                    _ => steps.push((moment, level)),
                }
            }
            level = stage.target;
            at += stage.duration;
        }
        Self {
            steps,
            end: at,
            graceful_ramp_down,
        }
    }

    /// Its part in a segment of the run: each step has the segment's share of it.
    pub(super) fn in_segment(mut self, segment: &Segment) -> Self {
        for (_, level) in &mut self.steps {
            *level = segment.share_of_vus(*level);
        }
        self.steps.dedup_by_key(|(_, level)| *level);
        self
    }

    /// The end of the last stage.
    pub fn end(&self) -> Duration {
        self.end
    }

    /// The highest number of virtual users.
    pub fn most_vus(&self) -> u32 {
        let levels = self.steps.iter().map(|(_, level)| *level);
        levels.max().unwrap_or_default()
    }

    /// Virtual users at a moment.
    pub fn vus_at(&self, now: Duration) -> u32 {
        let behind = self.steps.partition_point(|(at, _)| *at <= now);
        self.steps[..behind].last().map_or(0, |(_, level)| *level)
    }

    /// How many virtual users are kept over time: each step has a moment and the number from then on, the last one 0.
    ///
    /// - `graceful_stop`: that iterations get behind the end.
    pub(super) fn reserved(&self, graceful_stop: Duration) -> Vec<(Duration, u32)> {
        let last = self.end + graceful_stop;
        let ends = self
            .steps
            .iter()
            .skip(1)
            .map(|(at, _)| *at + self.graceful_ramp_down);
        let ends = ends.map(|at| at.min(last)).chain([last]);
        // When levels are released, and the levels: those that may become the highest, the highest first.
        let mut kept: VecDeque<(Duration, u32)> = VecDeque::new();
        let mut reserved: Vec<(Duration, u32)> = Vec::new();
        let mut note = |at: Duration, kept: &VecDeque<(Duration, u32)>| {
            let level = kept.front().map_or(0, |(_, level)| *level);
            match reserved.last_mut() {
                Some((_, before)) if *before == level => {}
                Some((moment, before)) if *moment == at => *before = level,
                _ => reserved.push((at, level)),
            }
        };
        for ((at, level), end) in self.steps.iter().zip(ends) {
            while let Some((released, _)) = kept.pop_front_if(|(released, _)| *released <= *at) {
                note(released, &kept);
            }
            while kept.pop_back_if(|(_, lower)| *lower <= *level).is_some() {}
            kept.push_back((end, *level));
            note(*at, &kept);
        }
        while let Some((released, _)) = kept.pop_front() {
            note(released, &kept);
        }
        reserved
    }

    /// The first moment from `now` on at which virtual user `vu` takes part; `None` if it does no more.
    pub fn active_from(&self, vu: u32, now: Duration) -> Option<Duration> {
        if now >= self.end {
            return None;
        }
        if self.vus_at(now) > vu {
            return Some(now);
        }
        let behind = self.steps.partition_point(|(at, _)| *at <= now);
        let mut later = self.steps[behind..].iter();
        let (at, _) = later.find(|(_, level)| *level > vu)?;
        (*at < self.end).then_some(*at)
    }

    /// When the iteration that `vu` runs at `now` is interrupted because there are too many virtual users; `None` if it
    /// stays to the end. A virtual user that is needed again within its grace goes on.
    pub(super) fn deadline(&self, vu: u32, now: Duration) -> Option<Duration> {
        let behind = self.steps.partition_point(|(at, _)| *at <= now);
        let mut surplus_since = (self.vus_at(now) <= vu).then_some(now);
        for (at, level) in &self.steps[behind..] {
            let limit = surplus_since.map(|since| since + self.graceful_ramp_down);
            if limit.is_some_and(|limit| limit < *at) {
                return limit;
            }
            surplus_since = match (*level > vu, surplus_since) {
                (true, _) => None,
                (false, None) => Some(*at),
                (false, since) => since,
            };
        }
        let since = surplus_since.filter(|since| *since < self.end)?;
        Some(since + self.graceful_ramp_down)
    }
}

pub(super) fn nanos_to_duration(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
