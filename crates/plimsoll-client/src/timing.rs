//! The instants of an exchange, and the phases between them.

use std::time::Instant;

use plimsoll_model::{Phase, Phases};

/// When an exchange began, and how far it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) begun: Instant,
    /// The last byte of the request was handed over.
    pub(crate) sent_at: Option<Instant>,
    pub(crate) first_byte_at: Option<Instant>,
}

impl Timing {
    pub(crate) fn begin(begun: Instant) -> Self {
        Self {
            begun,
            sent_at: None,
            first_byte_at: None,
        }
    }

    /// The phase that is under way.
    pub(crate) fn phase(&self) -> Phase {
        match (self.sent_at, self.first_byte_at) {
            (_, Some(_)) => Phase::Receive,
            (Some(_), None) => Phase::Wait,
            (None, None) => Phase::Send,
        }
    }

    /// The phases before the one that is under way.
    pub(crate) fn partial(&self) -> Phases {
        let mut phases = Phases::default();
        if let Some(sent_at) = self.sent_at {
            phases.set(Phase::Send, sent_at.saturating_duration_since(self.begun));
            if let Some(first_byte_at) = self.first_byte_at {
                phases.set(
                    Phase::Wait,
                    first_byte_at.saturating_duration_since(sent_at),
                );
            }
        }
        phases
    }

    /// All phases of an exchange that is done.
    pub(crate) fn completed(&self, done: Instant) -> Phases {
        let first_byte_at = self.first_byte_at.unwrap_or(done);
        // A response may overtake the rest of its request.
        let sent_at = self
            .sent_at
            .map_or(first_byte_at, |at| at.min(first_byte_at));
        let mut phases = Phases::default();
        phases.set(Phase::Send, sent_at.saturating_duration_since(self.begun));
        phases.set(
            Phase::Wait,
            first_byte_at.saturating_duration_since(sent_at),
        );
        phases.set(
            Phase::Receive,
            done.saturating_duration_since(first_byte_at),
        );
        phases
    }
}
