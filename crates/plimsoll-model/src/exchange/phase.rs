//! The phases of an exchange, and how long each took.

use std::fmt;
use std::time::Duration;

/// One stretch of an exchange, in the order in which they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Waiting for a free connection: from the intended to the actual start.
    Blocked,
    /// Turning the host name into addresses.
    Dns,
    /// Opening the transport, proxy handshakes included.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Handing the request to the kernel.
    Send,
    /// From the last byte of the request to the first byte of the response.
    Wait,
    /// From the first to the last byte of the response.
    Receive,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Self; 7] = [
        Self::Blocked,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Send,
        Self::Wait,
        Self::Receive,
    ];

    /// Of exchanges that were given up, those that would have had this phase: each waits for its response and receives
    /// it, and not every one opens a connection.
    pub const fn given_up(self, aborted: u64) -> u64 {
        match self {
            Self::Wait | Self::Receive => aborted,
            Self::Blocked | Self::Dns | Self::Connect | Self::Tls | Self::Send => 0,
        }
    }

    /// The phase's position in [`Phase::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name used in text, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Send => "send",
            Self::Wait => "wait",
            Self::Receive => "receive",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Duration of each completed phase; a phase that did not happen is absent, not zero.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    nanos: [u64; 7],
    completed: u8,
}

impl Phases {
    /// Notes that `phase` was completed and took `duration`; a second note replaces the first.
    pub fn set(&mut self, phase: Phase, duration: Duration) {
        self.nanos[phase.index()] = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.completed |= 1 << phase.index();
    }

    /// The duration of `phase`, if it was completed.
    pub fn get(&self, phase: Phase) -> Option<Duration> {
        (self.completed & (1 << phase.index()) != 0)
            .then(|| Duration::from_nanos(self.nanos[phase.index()]))
    }

    /// Adds what the phases of another exchange took, as for one that goes on.
    pub fn add(&mut self, more: &Self) {
        for (phase, duration) in more.iter() {
            self.set(phase, self.get(phase).unwrap_or_default() + duration);
        }
    }

    /// The completed phases in order.
    pub fn iter(&self) -> impl Iterator<Item = (Phase, Duration)> + '_ {
        Phase::ALL
            .into_iter()
            .filter_map(|phase| self.get(phase).map(|duration| (phase, duration)))
    }

    /// The sum of all completed phases.
    pub fn total(&self) -> Duration {
        self.iter().map(|(_, duration)| duration).sum()
    }
}

impl fmt::Debug for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(
                self.iter()
                    .map(|(phase, duration)| (phase.name(), duration)),
            )
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_that_did_not_happen_is_absent() {
        let mut phases = Phases::default();
        phases.set(Phase::Send, Duration::from_micros(3));
        phases.set(Phase::Wait, Duration::ZERO);
        assert_eq!(phases.get(Phase::Tls), None);
        assert_eq!(phases.get(Phase::Wait), Some(Duration::ZERO));
        assert_eq!(phases.total(), Duration::from_micros(3));
        assert_eq!(
            phases.iter().map(|(phase, _)| phase).collect::<Vec<_>>(),
            [Phase::Send, Phase::Wait]
        );
    }

    #[test]
    fn all_is_in_order_of_index() {
        for (index, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase.index(), index);
        }
    }
}
