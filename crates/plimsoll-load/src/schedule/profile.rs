//! How fast arrivals come over time.

use std::time::Duration;

use plimsoll_model::Rate;

/// A rate that changes linearly within each stage.
#[derive(Debug, Clone, PartialEq)]
pub struct RateProfile {
    segments: Vec<Segment>,
}

/// A stretch of time at whose end a level is reached, linearly from the level before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// How long it takes.
    pub duration: Duration,
    /// The level at its end: arrivals per second, or connections.
    pub level: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Segment {
    /// Seconds from the start of the run.
    start: f64,
    /// Infinite for a constant rate.
    length: f64,
    /// Arrivals per second at its two ends.
    from: f64,
    to: f64,
    /// Arrivals before it.
    before: f64,
}

impl Segment {
    fn arrivals(&self) -> f64 {
        if self.length.is_infinite() {
            f64::INFINITY
        } else {
            f64::midpoint(self.from, self.to) * self.length
        }
    }

    /// Seconds from its start until `count` arrivals have come.
    ///
    /// Solves `from·t + (to − from)/(2·length)·t² = count`, in the form that does not cancel.
    fn time_of(&self, count: f64) -> f64 {
        let curvature = (self.to - self.from) / (2.0 * self.length);
        let discriminant = (self.from * self.from + 4.0 * curvature * count).max(0.0);
        let denominator = self.from + discriminant.sqrt();
        if denominator == 0.0 {
            0.0
        } else {
            2.0 * count / denominator
        }
    }
}

impl RateProfile {
    /// The same rate for ever.
    pub fn constant(rate: Rate) -> Self {
        let rate = rate.per_second();
        Self {
            segments: vec![Segment {
                start: 0.0,
                length: f64::INFINITY,
                from: rate,
                to: rate,
                before: 0.0,
            }],
        }
    }

    /// From `initial` through `stages`, then nothing.
    pub fn stages(initial: Rate, stages: &[Stage]) -> Self {
        let mut segments = Vec::with_capacity(stages.len());
        let mut start = 0.0;
        let mut from = initial.per_second();
        let mut before = 0.0;
        for stage in stages {
            let segment = Segment {
                start,
                length: stage.duration.as_secs_f64(),
                from,
                to: stage.level,
                before,
            };
            start += segment.length;
            from = segment.to;
            before += segment.arrivals();
            segments.push(segment);
        }
        Self { segments }
    }

    /// When the arrival at position `count` comes (0 is the first, fractions are allowed); `None`
    /// if the profile ends before.
    pub fn time_of(&self, count: f64) -> Option<Duration> {
        let segment = self.segments.iter().find(|segment| {
            segment.from.max(segment.to) > 0.0 && count < segment.before + segment.arrivals()
        })?;
        let seconds = segment.start + segment.time_of(count - segment.before);
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// The average rate over the first `length` of the run.
    pub fn average(&self, length: Duration) -> Rate {
        let end = length.as_secs_f64();
        let arrivals: f64 = self
            .segments
            .iter()
            .filter(|segment| segment.start < end)
            .map(|segment| {
                let covered = segment.length.min(end - segment.start);
                let slope = if segment.length.is_infinite() {
                    0.0
                } else {
                    (segment.to - segment.from) / segment.length
                };
                covered * (segment.from + slope * covered / 2.0)
            })
            .sum();
        Rate::new(arrivals / end).unwrap_or(Rate::new(0.0).expect("zero is a rate"))
    }
}
