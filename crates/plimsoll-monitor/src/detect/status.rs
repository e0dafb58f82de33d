//! The status of one check, and the health of a monitor after several.

use serde::{Deserialize, Serialize};

/// The verdict of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The target answered and met every condition.
    Up,
    /// The target answered, with a warning: a certificate that expires soon, or 429 or 503 where another status was expected.
    Degraded,
    /// The target did not answer, or did not meet a condition.
    Down,
    /// The check could not be made for a reason on our side, such as a missing permission. It neither confirms nor
    /// refutes an outage.
    Error,
}

impl Status {
    /// Every status, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Up, Self::Degraded, Self::Down, Self::Error];

    /// The code in stores: 0 to 3.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The status of that code.
    pub fn of_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The name in text, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Degraded => "degraded",
            Self::Down => "down",
            Self::Error => "error",
        }
    }
}

/// The confirmed state of a monitor.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Health {
    /// No check has been confirmed yet.
    #[default]
    Pending,
    /// Up.
    Up,
    /// Up with a warning, or down in fewer regions than the quorum.
    Degraded,
    /// A confirmed outage.
    Down,
    /// Results stopped coming.
    NoData,
    /// An operator has paused the monitor.
    Paused,
}

impl Health {
    /// Every health, in the order of their codes.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Up,
        Self::Degraded,
        Self::Down,
        Self::NoData,
        Self::Paused,
    ];

    /// The code in stores: 0 to 5.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The health of that code.
    pub fn of_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The name in text, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Up => "up",
            Self::Degraded => "degraded",
            Self::Down => "down",
            Self::NoData => "no_data",
            Self::Paused => "paused",
        }
    }

    /// Whether time in it counts as probed: only then does it enter uptime.
    pub const fn is_probed(self) -> bool {
        matches!(self, Self::Up | Self::Degraded | Self::Down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_name_the_same_value_both_ways() {
        for status in Status::ALL {
            assert_eq!(Status::of_code(status.code()), Some(status));
        }
        for health in Health::ALL {
            assert_eq!(Health::of_code(health.code()), Some(health));
        }
        assert_eq!(Status::of_code(4), None);
        assert_eq!(Health::of_code(6), None);
    }
}
