//! Why a probe that speaks with a server went no further.

use plimsoll_model::Failure;

use crate::probe::reading::Reading;

/// Why a step of an exchange did not succeed.
pub(super) enum Stopped {
    /// The exchange failed.
    Failed(Failure),
    /// The server refuses it, or it lacks what is demanded.
    Refused(String),
}

impl Stopped {
    /// Puts it into the reading, where it belongs.
    pub(super) fn record(self, reading: &mut Reading) {
        match self {
            Self::Failed(failure) => reading.failure = Some(failure),
            Self::Refused(why) => reading.unmet = Some(why),
        }
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
