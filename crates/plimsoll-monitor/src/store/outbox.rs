//! Notices that wait to be sent, and what became of others.

use crate::store::types::IncidentId;
use crate::time::Timestamp;

/// The number of a notice, unique in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoticeId(pub i64);

/// A notice to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNotice {
    /// The channel, by its name in the configuration.
    pub channel: String,
    /// What it is about.
    pub about: About,
    /// The key by which notices of a channel are deduplicated; a second one is not written. That of an incident comes before
    /// it where it is about one.
    pub dedup: String,
    /// The message, as JSON.
    pub message: String,
    /// When it is to be sent.
    pub due: Timestamp,
}

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The open incident of the monitor of its change. It is not written if there is none.
    OpenIncident,
    /// An incident.
    Incident(IncidentId),
    /// Something else, which its message names.
    Other,
}

/// The incident that a notice is about, as it is when the notice is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeIncident {
    /// Its number.
    pub id: IncidentId,
    /// The name under which receivers know it, for ever.
    pub key: String,
    /// When its outage began.
    pub opened: Timestamp,
    /// Whether an operator has seen it.
    pub is_acknowledged: bool,
    /// Whether it is over.
    pub is_resolved: bool,
}

/// The states of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoticeState {
    /// It waits to be sent.
    Waiting,
    /// It was sent.
    Sent,
    /// Every attempt failed, or the receiver refused it.
    GivenUp,
    /// It is no longer true, and was not sent.
    Dropped,
}

impl NoticeState {
    /// Every state, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Sent, Self::GivenUp, Self::Dropped];

    /// The code in stores: 0 to 3.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sent => "sent",
            Self::GivenUp => "given_up",
            Self::Dropped => "dropped",
        }
    }
}

/// A notice as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNotice {
    /// Its number.
    pub id: NoticeId,
    /// The channel.
    pub channel: String,
    /// The incident that it is about.
    pub incident: Option<NoticeIncident>,
    /// The key of deduplication.
    pub dedup: String,
    /// The message, as JSON.
    pub message: String,
    /// The state.
    pub state: NoticeState,
    /// When it was written.
    pub created: Timestamp,
    /// When it is sent next.
    pub due: Timestamp,
    /// Attempts so far.
    pub attempts: u32,
    /// Why the last attempt failed.
    pub error: Option<String>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeOutcome {
    /// Of which notice.
    pub id: NoticeId,
    /// The new state; `Waiting` if it is tried again.
    pub state: NoticeState,
    /// When it is tried again.
    pub due: Timestamp,
    /// Why it failed.
    pub error: Option<String>,
}
