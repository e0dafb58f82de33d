//! How many connections take part in a closed loop, over time.
//!
//! Pure: times are offsets from the start of the run.

use std::time::Duration;

use crate::schedule::Stage;

/// A level of connections that changes linearly within each stage and stays at the last one.
///
/// Connection number k (from 0) takes part while the level is above k.
#[derive(Debug, Clone, PartialEq)]
pub struct Ramp {
    /// Corner points: seconds and level, ascending in time.
    corners: Vec<(f64, f64)>,
}

impl Ramp {
    /// From nothing to `connections` over `duration`.
    pub fn up(connections: usize, duration: Duration) -> Self {
        Self::stages(&[Stage {
            duration,
            level: connections as f64,
        }])
    }

    /// From nothing through `stages`.
    pub fn stages(stages: &[Stage]) -> Self {
        let mut corners = vec![(0.0, 0.0)];
        let mut end = 0.0;
        for stage in stages {
            end += stage.duration.as_secs_f64();
            corners.push((end, stage.level));
        }
        Self { corners }
    }

    /// The highest level it reaches, rounded up to whole connections.
    pub fn most(&self) -> usize {
        let most = self
            .corners
            .iter()
            .map(|(_, level)| *level)
            .fold(0.0, f64::max);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let most = most.ceil() as usize;
        most
    }

    /// The first moment at or after `from` at which connection number `index` takes part; `None` if
    /// it never does again.
    pub fn next_active(&self, index: usize, from: Duration) -> Option<Duration> {
        let from_seconds = from.as_secs_f64();
        let threshold = index as f64;
        for pair in self.corners.windows(2) {
            let ((start, low), (end, high)) = (pair[0], pair[1]);
            if end < from_seconds {
                continue;
            }
            let level = |at: f64| {
                if end <= start {
                    high
                } else {
                    low + (high - low) * (at - start) / (end - start)
                }
            };
            let earliest = from_seconds.max(start);
            if level(earliest) > threshold {
                return Some(from.max(seconds(earliest)));
            }
            if high > threshold {
                // It rises above the threshold within this stage; index 0 does so at once.
                let crossing = start + (end - start) * (threshold - low) / (high - low);
                return Some(from.max(seconds(crossing.max(earliest))));
            }
        }
        let (end, level) = *self.corners.last().expect("there is always one corner");
        (level > threshold).then(|| from.max(seconds(end)))
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ramp: &Ramp, index: usize, from: u64) -> Option<u64> {
        ramp.next_active(index, Duration::from_secs(from))
            .map(|at| at.as_secs())
    }

    #[test]
    fn connections_join_one_after_the_other() {
        let ramp = Ramp::up(10, Duration::from_secs(20));
        assert_eq!(ramp.most(), 10);
        assert_eq!(at(&ramp, 0, 0), Some(0));
        assert_eq!(at(&ramp, 5, 0), Some(10));
        assert_eq!(at(&ramp, 9, 0), Some(18));
        assert_eq!(at(&ramp, 9, 100), Some(100));
        assert_eq!(at(&ramp, 10, 0), None);
    }

    #[test]
    fn connections_leave_and_come_back() {
        let stage = |seconds, level| Stage {
            duration: Duration::from_secs(seconds),
            level,
        };
        let ramp = Ramp::stages(&[stage(10, 10.0), stage(10, 0.0), stage(10, 20.0)]);
        assert_eq!(at(&ramp, 4, 8), Some(8));
        assert_eq!(at(&ramp, 4, 15), Some(15));
        assert_eq!(at(&ramp, 4, 17), Some(22));
        assert_eq!(at(&ramp, 19, 0), Some(29));
        assert_eq!(at(&ramp, 20, 0), None);
    }

    #[test]
    fn a_stage_without_length_is_a_step() {
        let ramp = Ramp::stages(&[Stage {
            duration: Duration::ZERO,
            level: 8.0,
        }]);
        assert_eq!(at(&ramp, 7, 0), Some(0));
        assert_eq!(at(&ramp, 7, 3), Some(3));
        assert_eq!(at(&ramp, 8, 3), None);
    }

    #[test]
    fn a_ramp_down_to_nothing_ends() {
        let ramp = Ramp::stages(&[
            Stage {
                duration: Duration::from_secs(1),
                level: 5.0,
            },
            Stage {
                duration: Duration::from_secs(1),
                level: 0.0,
            },
        ]);
        assert_eq!(at(&ramp, 0, 2), None);
    }
}
