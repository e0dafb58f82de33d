//! Limits of a hostile client.

use std::time::Duration;

/// Limits of all clients of an attack together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at a time.
    pub connections: u32,
    /// Requests or frames per second in all, by the unit of the class; opening a connection counts as one.
    pub rate: u32,
    /// Requests or frames in all.
    pub count: u64,
    /// Duration of the attack.
    pub duration: Duration,
}

/// A bound that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoundsError {
    /// None, or too many connections.
    #[error("connections must be from 1 to {}", Bounds::MOST.connections)]
    Connections,
    /// None, or too high a rate.
    #[error("the rate must be from 1 to {} a second", Bounds::MOST.rate)]
    Rate,
    /// None, or too many.
    #[error("the count must be from 1 to {}", Bounds::MOST.count)]
    Count,
    /// None, or too long.
    #[error("the duration must be more than zero and at most {:?}", Bounds::MOST.duration)]
    Duration,
}

impl Bounds {
    /// The largest bounds that can be given.
    pub const MOST: Self = Self {
        connections: 2_000,
        rate: 50_000,
        count: 1_000_000,
        duration: Duration::from_mins(1),
    };

    /// Every bound that is above the largest one.
    pub fn problems(&self) -> Vec<BoundsError> {
        let most = Self::MOST;
        [
            (
                (1..=most.connections).contains(&self.connections),
                BoundsError::Connections,
            ),
            ((1..=most.rate).contains(&self.rate), BoundsError::Rate),
            ((1..=most.count).contains(&self.count), BoundsError::Count),
            (
                !self.duration.is_zero() && self.duration <= most.duration,
                BoundsError::Duration,
            ),
        ]
        .into_iter()
        .filter(|(is_within, _)| !is_within)
        .map(|(_, error)| error)
        .collect()
    }

    /// The same, cut to the largest bounds.
    #[must_use]
    pub(super) fn capped(self) -> Self {
        let most = Self::MOST;
        Self {
            connections: self.connections.clamp(1, most.connections),
            rate: self.rate.clamp(1, most.rate),
            count: self.count.clamp(1, most.count),
            duration: self.duration.min(most.duration),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_reported_and_never_done() {
        let too_much = Bounds {
            connections: 2_001,
            rate: 0,
            count: u64::MAX,
            duration: Duration::from_secs(61),
        };
        assert_eq!(
            too_much.problems(),
            [
                BoundsError::Connections,
                BoundsError::Rate,
                BoundsError::Count,
                BoundsError::Duration
            ]
        );
        assert_eq!(too_much.capped().problems(), []);
        assert_eq!(Bounds::MOST.problems(), []);
        assert_eq!(Bounds::MOST.capped(), Bounds::MOST);
    }
}
