//! Whether a series stays within bounds.
//!
//! A process that is watched for hours allocates, caches and pools: memory that rises to a level and stays there is no
//! leak, and neither is a sawtooth between collections. What must be found is growth that does not end. So the growth of the
//! whole series is held against that of its last third, and that of its troughs.

use plimsoll_report::page::Judgement;
use serde::{Deserialize, Serialize};

use super::series::{Kind, Series};
use crate::statistics::{Slope, median, theil_sen};
use crate::trend::{ChangeOptions, changes};

/// The verdict on a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// It stays within bounds.
    Bounded,
    /// The soak was too short, or it grew in a way that has not come to rest.
    Inconclusive,
    /// It grows without end, as far as can be seen.
    Drift,
}

impl Verdict {
    /// What it means.
    pub const fn judgement(self) -> Judgement {
        match self {
            Self::Bounded => Judgement::Good,
            Self::Inconclusive => Judgement::Open,
            Self::Drift => Judgement::Bad,
        }
    }

    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bounded => "BOUNDED",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Drift => "DRIFT",
        }
    }
}

/// The shape that a series was recognised to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// It varies about one level.
    Flat,
    /// It rose, and has stayed at its level since.
    RampToCap,
    /// It rises and falls again, and its troughs do not rise.
    Sawtooth,
    /// It rose at one moment, and was level before and since.
    Step,
    /// It keeps growing.
    Climb,
    /// It was level for long, and then began to grow.
    LateClimb,
    /// It grew, ever more slowly, without having come to rest.
    Slowing,
    /// Values are missing, or there are too few.
    Unknown,
}

impl Shape {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::RampToCap => "ramp to cap",
            Self::Sawtooth => "sawtooth",
            Self::Step => "step",
            Self::Climb => "climb",
            Self::LateClimb => "late climb",
            Self::Slowing => "slowing",
            Self::Unknown => "unknown",
        }
    }
}

/// How strictly series are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgeOptions {
    /// Part of the time at the start that is not looked at.
    pub warm_up: f64,
    /// Growth over the whole time that is allowed, as a part of the level.
    pub growth: f64,
    /// Samples behind the warm-up without which nothing is judged.
    pub least_samples: usize,
}

impl Default for JudgeOptions {
    fn default() -> Self {
        Self {
            warm_up: 0.1,
            growth: 0.05,
            least_samples: 12,
        }
    }
}

/// The assessment of a series, with every number it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// The verdict.
    pub verdict: Verdict,
    /// Its shape.
    pub shape: Shape,
    /// Samples behind the warm-up that could be read.
    pub samples: usize,
    /// The first value behind the warm-up; for a counter all values are per second.
    pub first: f64,
    /// The last value.
    pub last: f64,
    /// The least value.
    pub least: f64,
    /// The largest value.
    pub most: f64,
    /// Growth of the line through all values, from its beginning to its end.
    pub growth: f64,
    /// Growth of the line through the last third, by the same measure: over the time of the whole.
    pub tail_growth: f64,
    /// Growth that is allowed.
    pub allowed: f64,
    /// Growth per hour of the line through all values, with its interval.
    pub per_hour: [f64; 3],
    /// Seconds since the start of the soak at which its level changed.
    pub changes: Vec<f64>,
    /// The finding in one sentence.
    pub note: String,
}

/// The slopes between all pairs of so many points are computed in a moment; more points are taken together.
const MOST_POINTS: usize = 400;

/// Troughs that a sawtooth is judged by: with fewer, one late collection of garbage decides the slope.
const TROUGHS: usize = 12;

/// Steps upward, the last of them not long ago, that make a climb.
const STEPS: usize = 3;

/// Part of the growth of the whole up to which the last third has come to rest.
const RESTING: f64 = 0.2;

/// Part of the growth of the whole from which the last third grows on.
const GROWING: f64 = 0.5;

/// Part of a slope below which another one is the slower.
const SLOWER: f64 = 0.9;

/// Points that a stretch needs for a slope that says something.
const FEWEST_OF_STRETCH: usize = 6;

/// Judges a series.
pub fn judge(series: &Series, options: &JudgeOptions) -> Assessment {
    let known = series.known();
    match series.kind {
        Kind::Zero => zero(&known),
        Kind::Counter => level(&per_second(&known), Kind::Counter, options),
        kind => level(&known, kind, options),
    }
}

/// A sum that must not grow.
fn zero(points: &[(f64, f64)]) -> Assessment {
    let mut assessment = Assessment::unknown(points, 0.0);
    let Some((_, before)) = points.first() else {
        return assessment;
    };
    // A first value above zero may be older than the soak; a sum that falls belongs to another process.
    let grown = points
        .array_windows()
        .find(|[before, after]| after.1 > before.1);
    assessment.growth = points.last().map_or(0.0, |(_, last)| last - before);
    let (verdict, shape, note) = if let Some([(_, before), (at, after)]) = grown {
        assessment.changes = vec![*at];
        let note = format!("must not grow, and went from {before} to {after}");
        (Verdict::Drift, Shape::Climb, note)
    } else {
        (Verdict::Bounded, Shape::Flat, "has not grown".to_owned())
    };
    assessment.verdict = verdict;
    assessment.shape = shape;
    assessment.note = note;
    assessment
}

/// The rate between each two values of a sum; one that falls began anew.
fn per_second(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    points
        .windows(2)
        .filter(|pair| pair[1].0 > pair[0].0 && pair[1].1 >= pair[0].1)
        .map(|pair| (pair[1].0, (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0)))
        .collect()
}

fn level(points: &[(f64, f64)], kind: Kind, options: &JudgeOptions) -> Assessment {
    let (Some((from, _)), Some((to, _))) = (points.first(), points.last()) else {
        return Assessment::unknown(points, 0.0);
    };
    let judged_from = from + options.warm_up * (to - from);
    let points: Vec<_> = points
        .iter()
        .copied()
        .filter(|(at, _)| *at >= judged_from)
        .collect();
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    let middle = median(&values).unwrap_or_default();
    let allowed = kind.floor().max(options.growth * middle.abs());
    let mut assessment = Assessment::unknown(&points, allowed);
    if points.len() < options.least_samples.max(6) {
        assessment.note = format!(
            "only {} samples behind the warm-up, {} are needed",
            points.len(),
            options.least_samples.max(6)
        );
        return assessment;
    }
    let thinned = thinned(&points, MOST_POINTS);
    let span = to - judged_from;
    let third = &thinned[thinned.len() - thinned.len() / 3..];
    let (Some(whole), Some(tail)) = (theil_sen(&thinned), theil_sen(third)) else {
        return assessment;
    };
    assessment.growth = whole.slope * span;
    assessment.tail_growth = tail.slope * span;
    assessment.per_hour =
        [whole.slope, whole.interval.low, whole.interval.high].map(|it| it * 3600.0);
    let seen = Trimmed {
        thinned: &thinned,
        span,
        allowed,
        whole,
        tail,
    };
    let steps = seen.steps();
    assessment.changes = steps.iter().map(|(at, ..)| *at).collect();
    let (verdict, shape) = seen.shape(&steps, assessment.most - assessment.least);
    assessment.verdict = verdict;
    assessment.shape = shape;
    seen.note(shape, &steps).clone_into(&mut assessment.note);
    assessment
}

impl Assessment {
    fn unknown(points: &[(f64, f64)], allowed: f64) -> Self {
        let values = || points.iter().map(|(_, value)| *value);
        Self {
            verdict: Verdict::Inconclusive,
            shape: Shape::Unknown,
            samples: points.len(),
            first: values().next().unwrap_or_default(),
            last: values().next_back().unwrap_or_default(),
            least: values().reduce(f64::min).unwrap_or_default(),
            most: values().reduce(f64::max).unwrap_or_default(),
            growth: 0.0,
            tail_growth: 0.0,
            allowed,
            per_hour: [0.0; 3],
            changes: Vec::new(),
            note: "could not be read".to_owned(),
        }
    }
}

/// A series behind its warm-up, and the lines through it.
struct Trimmed<'a> {
    thinned: &'a [(f64, f64)],
    span: f64,
    allowed: f64,
    whole: Slope,
    tail: Slope,
}

impl Trimmed<'_> {
    /// Times at which the level rose by more than is allowed, with the levels about them.
    fn steps(&self) -> Vec<(f64, f64, f64)> {
        let values: Vec<f64> = self.thinned.iter().map(|(_, value)| *value).collect();
        let options = ChangeOptions {
            // A quicker answer than for a few trials: hundreds of values need fewer shuffles to be sure.
            shuffles: 199,
            least: (values.len() / 20).max(3),
            ..ChangeOptions::default()
        };
        changes(&values, &options)
            .iter()
            .filter(|change| (change.after - change.before).abs() >= self.allowed)
            .map(|change| (self.thinned[change.at].0, change.before, change.after))
            .collect()
    }

    fn shape(&self, steps: &[(f64, f64, f64)], range: f64) -> (Verdict, Shape) {
        let growth = self.whole.slope * self.span;
        let tail_growth = self.tail.slope * self.span;
        // The tail lasts a third of the time: what it grew itself is a third of that.
        let tail_grew = tail_growth / 3.0 >= self.allowed && self.tail.interval.low > 0.0;
        if growth < self.allowed || self.whole.interval.low <= 0.0 {
            if tail_grew && !self.troughs_rest() {
                return (Verdict::Inconclusive, Shape::LateClimb);
            }
            let shape = if self.rose() >= self.allowed {
                // So early that the line through all hardly shows it.
                Shape::RampToCap
            } else if range >= 4.0 * self.allowed && steps.is_empty() {
                Shape::Sawtooth
            } else {
                Shape::Flat
            };
            return (Verdict::Bounded, shape);
        }
        if self.was_level_until_last_third() {
            return (Verdict::Inconclusive, Shape::LateClimb);
        }
        let upward = steps.iter().filter(|(_, before, after)| after > before);
        let is_recent = self.is_recent(steps);
        if upward.count() >= STEPS && is_recent && !self.troughs_rest() && !self.is_slower() {
            return (Verdict::Drift, Shape::Climb);
        }
        let rests = tail_growth <= RESTING * growth
            || tail_growth < self.allowed
            || self.tail.interval.low <= 0.0;
        if rests && self.troughs_rest() {
            let shape = match steps {
                [_] if self.is_level_about(steps[0].0) => Shape::Step,
                _ => Shape::RampToCap,
            };
            // A step within the last third has not been watched for long enough.
            let is_open = shape == Shape::Step && self.is_recent(steps);
            let verdict = if is_open {
                Verdict::Inconclusive
            } else {
                Verdict::Bounded
            };
            return (verdict, shape);
        }
        if self.troughs_rest() {
            return (Verdict::Bounded, Shape::Sawtooth);
        }
        if tail_growth >= GROWING * growth && self.tail.interval.low > 0.0 && !self.slows() {
            return (Verdict::Drift, Shape::Climb);
        }
        (Verdict::Inconclusive, Shape::Slowing)
    }

    /// How far the last third is above the first values.
    fn rose(&self) -> f64 {
        let level = |points: &[(f64, f64)]| {
            let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
            median(&values).unwrap_or_default()
        };
        level(self.last_third()) - level(&self.thinned[..(self.thinned.len() / 20).max(1)])
    }

    fn last_third(&self) -> &[(f64, f64)] {
        &self.thinned[self.thinned.len() - self.thinned.len() / 3..]
    }

    /// Whether the growth slows down for certain, as that of a cache does which is nearly full: the last third rises
    /// more slowly than the one before, or the last sixth has nearly come to rest. A leak does neither.
    fn slows(&self) -> bool {
        let sixth = &self.thinned[self.thinned.len() - self.thinned.len() / 6..];
        let last = theil_sen(sixth).filter(|_| sixth.len() >= FEWEST_OF_STRETCH);
        let rests = last.is_some_and(|line| line.interval.high < GROWING * self.whole.slope);
        rests || self.is_slower()
    }

    /// Whether the last third rises more slowly than the one before.
    fn is_slower(&self) -> bool {
        let (number, third) = (self.thinned.len(), self.thinned.len() / 3);
        let before = theil_sen(&self.thinned[number - 2 * third..number - third]);
        before.is_some_and(|line| self.tail.interval.high < SLOWER * line.interval.low)
    }

    /// Whether there was no growth before the last third.
    fn was_level_until_last_third(&self) -> bool {
        let before = &self.thinned[..self.thinned.len() - self.thinned.len() / 3];
        let grew = |line: Slope| line.slope * self.span * 2.0 / 3.0;
        let is_level = theil_sen(before).is_some_and(|line| grew(line).abs() < self.allowed);
        is_level && self.tail.interval.low > 0.0
    }

    /// Whether the least values of the blocks of the second half do not rise by more than is allowed.
    fn troughs_rest(&self) -> bool {
        let half = &self.thinned[self.thinned.len() / 2..];
        let size = half.len().div_ceil(TROUGHS / 2).max(2);
        let troughs: Vec<(f64, f64)> = half
            .chunks(size)
            .filter_map(|block| {
                block
                    .iter()
                    .copied()
                    .min_by(|(_, a), (_, b)| a.total_cmp(b))
            })
            .collect();
        theil_sen(&troughs).is_none_or(|line| line.slope * self.span / 2.0 < self.allowed / 2.0)
    }

    /// Whether the values before `at` are level, and those from it on.
    fn is_level_about(&self, at: f64) -> bool {
        let place = self.thinned.partition_point(|(time, _)| *time < at);
        let (before, after) = self.thinned.split_at(place);
        [before, after].iter().all(|part| {
            theil_sen(part).is_none_or(|line| {
                let time = part.last().map_or(0.0, |it| it.0) - part.first().map_or(0.0, |it| it.0);
                (line.slope * time).abs() < self.allowed
            })
        })
    }

    fn note(&self, shape: Shape, steps: &[(f64, f64, f64)]) -> &'static str {
        match shape {
            Shape::Flat => "varies about one level",
            Shape::RampToCap => "rose, and has been level in the last third",
            Shape::Sawtooth => "rises and falls; its troughs do not rise",
            Shape::Step if self.is_recent(steps) => {
                "rose at once in the last third; a longer soak shows whether it does so again"
            }
            Shape::Step => "rose at once, and was level before and since",
            Shape::Climb => "grows to the end",
            Shape::LateClimb => {
                "was level, and began to grow; a longer soak shows whether it stops"
            }
            Shape::Slowing => {
                "grows more slowly, and has not come to rest; a longer soak is needed"
            }
            Shape::Unknown => "could not be read",
        }
    }

    fn is_recent(&self, steps: &[(f64, f64, f64)]) -> bool {
        let since = self.last_third().first().map_or(0.0, |(at, _)| *at);
        steps.last().is_some_and(|(at, ..)| *at >= since)
    }
}

/// At most `most` points, each the medians of a block of times and values.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(most).max(1);
    points
        .chunks(size)
        .filter_map(|block| {
            let times: Vec<f64> = block.iter().map(|(at, _)| *at).collect();
            let values: Vec<f64> = block.iter().map(|(_, value)| *value).collect();
            Some((median(&times)?, median(&values)?))
        })
        .collect()
}

#[cfg(test)]
mod tests;
