//! How many at a time, how fast, and until when.

use std::num::NonZeroU32;
use std::time::Duration;

use plimsoll_load::schedule::{RateProfile, Stage};
use plimsoll_load::{OnFull, Pacing, Ramp, Spacing, StopRule, ThinkTime};
use plimsoll_model::{Rate, parse_duration, parse_rate};

use super::Compiler;
use crate::commands::load::args::{self, Pace};
use crate::commands::load::requests::{Described, Log};
use crate::flags::number;
use crate::problem::Problem;

/// The default of hey and oha.
const DEFAULT_CONNECTIONS: usize = 50;

/// The default of wrk.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// No generator on one machine starts more than this, and a schedule of it would be meaningless.
const HIGHEST_RATE: f64 = 10_000_000.0;

/// Starts that are held back by chance are held in memory, by each worker.
const MOST_JITTERED: f64 = 1_000_000.0;

/// How starts follow from one another, and when they end.
pub(super) struct Shape {
    pub(super) pacing: Pacing,
    pub(super) connections: usize,
    pub(super) stop: StopRule,
}

/// Stages as written: levels of connections or of rates.
#[derive(Debug, PartialEq)]
struct Stages {
    list: Vec<Stage>,
    rates: bool,
}

impl Compiler<'_> {
    /// - `described`: the requests, if they could be read.
    pub(super) fn shape(&mut self, described: Option<&Described>) -> Option<Shape> {
        let shape = &self.args.shape;
        self.check_rows();
        let log = described.map(|described| described.log.as_ref());
        match (shape.pace, log) {
            (None, _) | (_, None) => {}
            (Some(_), Some(None)) => {
                self.problem("--pace", "is for access logs, and --from names none");
            }
            (Some(pace), Some(Some(log))) => {
                self.most_exchanges = Some(log.entries.len() as u64);
                if let Pace::Times(times) = pace {
                    return self.paced_shape(log, times);
                }
            }
        }
        let stages = match &shape.stages {
            None => None,
            Some(text) => Some(self.value("--stages", parse_stages(text, shape.rate.is_some()))?),
        };
        let is_open = self.rate().is_some() || stages.as_ref().is_some_and(|stages| stages.rates);
        if is_open {
            self.open_shape(stages.as_ref())
        } else {
            self.closed_shape(stages.as_ref())
        }
    }

    /// The rate that was given, in one way or another.
    fn rate(&self) -> Option<Rate> {
        let shape = &self.args.shape;
        let of_bursts = shape.burst.zip(shape.burst_delay);
        let of_bursts = of_bursts
            .and_then(|(burst, delay)| Rate::new(f64::from(burst.get()) / delay.as_secs_f64()));
        shape.rate.or(of_bursts)
    }

    fn open_shape(&mut self, stages: Option<&Stages>) -> Option<Shape> {
        let shape = &self.args.shape;
        let initial = self
            .rate()
            .unwrap_or(Rate::new(0.0).expect("zero is a rate"));
        let highest = stages
            .iter()
            .flat_map(|stages| stages.list.iter().map(|stage| stage.level))
            .fold(initial.per_second(), f64::max);
        if highest > HIGHEST_RATE {
            let flag = if shape.rate.is_some() {
                "-q"
            } else {
                "--stages"
            };
            self.problem(
                flag,
                format!("{highest} requests a second is more than one machine can start (at most {HIGHEST_RATE})"),
            );
            return None;
        }
        let jitter = shape.jitter.unwrap_or_default();
        if highest * jitter.as_secs_f64() > MOST_JITTERED {
            self.problem(
                "--jitter",
                format!(
                    "holds back more than {MOST_JITTERED} starts at this rate; lower one of them"
                ),
            );
        }
        if shape.think.is_some() {
            self.problem("--think", "has no meaning on a schedule");
        }
        let connections = self.connections_in_flight()?;
        let stop = self.stop(stages);
        Some(Shape {
            pacing: Pacing::Open {
                profile: match stages {
                    None => RateProfile::constant(initial),
                    Some(stages) => RateProfile::stages(initial, &stages.list),
                },
                spacing: match shape.arrivals {
                    args::Arrivals::Fixed => Spacing::Even,
                    args::Arrivals::Poisson => Spacing::Poisson,
                },
                burst: shape.burst.unwrap_or(NonZeroU32::MIN),
                jitter,
                on_full: on_full(shape.on_full),
            },
            connections: self.fit(connections, shape.connections.is_some())?,
            stop,
        })
    }

    /// - `pace`: how many times as fast as the log was written.
    fn paced_shape(&mut self, log: &Log, pace: f64) -> Option<Shape> {
        let shape = &self.args.shape;
        let times = log.times(pace);
        let length = times.last().map_or(Duration::ZERO, |last| *last);
        let rate = times.len() as f64 / length.as_secs_f64().max(1.0);
        if rate > HIGHEST_RATE {
            self.problem(
                "--pace",
                format!("{rate:.0} requests a second are more than one machine can start (at most {HIGHEST_RATE})"),
            );
            return None;
        }
        let connections = self.connections_in_flight()?;
        Some(Shape {
            pacing: Pacing::Open {
                profile: RateProfile::constant(Rate::new(rate)?),
                spacing: Spacing::Recorded(times),
                burst: NonZeroU32::MIN,
                jitter: Duration::ZERO,
                on_full: on_full(shape.on_full),
            },
            connections: self.fit(connections, shape.connections.is_some())?,
            stop: self.stop(None),
        })
    }

    /// Connections of an open loop.
    fn connections_in_flight(&mut self) -> Option<usize> {
        let shape = &self.args.shape;
        match (shape.connections, shape.max_in_flight) {
            (Some(connections), Some(most)) if most > connections => {
                self.problems.push(
                    Problem::with(
                        "--max-in-flight",
                        format!("{most} requests cannot be under way on {connections} connections"),
                    )
                    .hint("over HTTP/1 a connection carries one request at a time: raise -c"),
                );
                None
            }
            (_, Some(most)) => Some(most),
            (Some(connections), None) => Some(connections),
            (None, None) => Some(DEFAULT_CONNECTIONS),
        }
    }

    fn closed_shape(&mut self, stages: Option<&Stages>) -> Option<Shape> {
        let shape = &self.args.shape;
        for (flag, given) in [
            ("--max-in-flight", shape.max_in_flight.is_some()),
            ("--on-full", shape.on_full != args::OnFull::Queue),
            ("--arrivals", shape.arrivals != args::Arrivals::Fixed),
            ("--burst", shape.burst.is_some()),
            ("--jitter", shape.jitter.is_some()),
        ] {
            if given {
                self.problems.push(
                    Problem::with(flag, "needs a schedule")
                        .hint("give a rate with -q, or stages such as `10s:100/s`"),
                );
            }
        }
        let think = match &shape.think {
            None => None,
            Some(text) => Some(self.value("--think", parse_think(text))?),
        };
        let stop = self.stop(stages);
        let (ramp, connections) = match (stages, shape.ramp_up) {
            (Some(stages), _) => {
                let ramp = Ramp::stages(&stages.list);
                let most = ramp.most();
                if most == 0 {
                    self.problem("--stages", "never reaches a connection");
                    return None;
                }
                if most as u64 > number::MOST_CONNECTIONS {
                    self.problem(
                        "--stages",
                        format!("reaches more than {} connections", number::MOST_CONNECTIONS),
                    );
                    return None;
                }
                if shape.connections.is_some() {
                    self.problem("-c", "the stages say how many connections there are");
                }
                (Some(ramp), most)
            }
            (None, ramp_up) => {
                let wanted = shape.connections.unwrap_or(DEFAULT_CONNECTIONS);
                let connections = self.fit(wanted, shape.connections.is_some())?;
                (ramp_up.map(|time| Ramp::up(connections, time)), connections)
            }
        };
        Some(Shape {
            pacing: Pacing::Closed { ramp, think },
            connections,
            stop,
        })
    }

    /// Fewer requests than connections: the default gives way, a number that was given does not.
    fn fit(&mut self, connections: usize, is_given: bool) -> Option<usize> {
        let requests = self.requests().unwrap_or(u64::MAX);
        if connections as u64 <= requests {
            return Some(connections);
        }
        if is_given {
            let flag = if self.args.shape.requests == Some(requests) {
                "-n"
            } else if self.args.shape.pace.is_some() {
                "--from"
            } else {
                "--feeder"
            };
            self.problems.push(
                Problem::with(
                    flag,
                    format!("{requests} requests do not need {connections} connections"),
                )
                .hint("lower -c or raise -n"),
            );
            return None;
        }
        usize::try_from(requests).ok()
    }

    /// Exchanges after which the run ends.
    fn requests(&self) -> Option<u64> {
        let wanted = self.args.shape.requests;
        wanted.into_iter().chain(self.most_exchanges).min()
    }

    /// Rows that are used once must suffice for the requests.
    fn check_rows(&mut self) {
        if self.rows_used_once.is_none() {
            return;
        }
        let shape = &self.args.shape;
        if let Some(rows) = self.most_exchanges
            && let Some(requests) = shape.requests.filter(|requests| *requests > rows)
        {
            self.problems.push(
                Problem::with(
                    "-n",
                    format!("{requests} requests need as many rows, but there are {rows}"),
                )
                .hint("use rows again with `--feeder-order cyclic`"),
            );
        }
        if !shape.warm_up.is_zero() {
            self.problems.push(
                Problem::with("--warm-up", "would use up rows that are used once")
                    .hint("use rows again with `--feeder-order cyclic`"),
            );
        }
    }

    fn stop(&self, stages: Option<&Stages>) -> StopRule {
        let shape = &self.args.shape;
        let stage_time = stages.map(|stages| stages.list.iter().map(|stage| stage.duration).sum());
        let duration = stage_time.or(shape.duration);
        StopRule {
            requests: self.requests(),
            duration: match (duration, self.requests().or(self.rows_used_once)) {
                (None, None) => Some(DEFAULT_DURATION),
                (duration, _) => duration,
            },
        }
    }
}

const fn on_full(given: args::OnFull) -> OnFull {
    match given {
        args::OnFull::Queue => OnFull::Queue,
        args::OnFull::Drop => OnFull::Drop,
    }
}

/// Parses `TIME:LEVEL,…`; all levels are of one kind.
fn parse_stages(text: &str, are_rates: bool) -> Result<Stages, String> {
    let mut list = Vec::new();
    let mut kinds = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (time, level) = part
            .split_once(':')
            .ok_or_else(|| format!("`{part}` is not of the form `10s:100`"))?;
        let duration = parse_duration(time).map_err(|error| format!("`{part}`: {error}"))?;
        let rate = parse_rate(level).map_err(|error| format!("`{part}`: {error}"))?;
        kinds.push(are_rates || level.contains('/'));
        list.push(Stage {
            duration,
            level: rate.per_second(),
        });
    }
    let rates = kinds[0];
    if kinds.iter().any(|kind| *kind != rates) {
        return Err("write `/s` behind all levels (rates) or none (connections)".to_owned());
    }
    if list.iter().all(|stage| stage.duration.is_zero()) {
        return Err("the stages take no time".to_owned());
    }
    Ok(Stages { list, rates })
}

/// Parses `TIME` or `TIME..TIME`.
fn parse_think(text: &str) -> Result<ThinkTime, String> {
    let bound = |text: &str| parse_duration(text).map_err(|error| error.to_string());
    let (least, most) = match text.split_once("..") {
        None => (bound(text)?, bound(text)?),
        Some((least, most)) => (bound(least)?, bound(most)?),
    };
    if least > most {
        return Err(format!("`{text}` ends before it starts"));
    }
    Ok(ThinkTime { least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_connections_or_rates() {
        let stages = parse_stages("10s:100,1m:1000", false).unwrap();
        assert!(!stages.rates);
        assert_eq!(stages.list.len(), 2);
        assert!(parse_stages("10s:100", true).unwrap().rates);
        assert!(parse_stages("10s:100/s,1m:1k/s", false).unwrap().rates);
        for wrong in ["", "10s", "10s:x", "x:10", "10s:1/s,10s:2", "0s:5"] {
            assert!(parse_stages(wrong, false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn think_time_is_a_time_or_a_range() {
        let think = parse_think("50ms..200ms").unwrap();
        assert_eq!(think.most, Duration::from_millis(200));
        assert_eq!(parse_think("1s").unwrap().least, Duration::from_secs(1));
        assert!(parse_think("2s..1s").is_err());
        assert!(parse_think("soon").is_err());
    }
}
