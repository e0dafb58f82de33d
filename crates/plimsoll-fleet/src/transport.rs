//! The seam between agents, coordinator and what carries their messages.
//!
//! A transport delivers messages to those that listen, keeps the log of a run so that late readers see all of it, and keeps the
//! files of a run. Implementations: [`NatsTransport`](nats::NatsTransport) and, for tests, [`MemoryTransport`](memory::MemoryTransport).
//! `transport_contract` holds both to one suite.

pub mod memory;

pub mod nats;

use std::fmt;

/// A message as it was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Words separated by dots.
    pub subject: String,
    /// The content.
    pub payload: Vec<u8>,
}

/// Receives messages, on a thread of the transport; it must not block for long. Delivery ends when it returns false.
pub type Deliver = Box<dyn FnMut(Delivered) -> bool + Send>;

/// Ends a delivery when it is dropped.
pub struct Subscription {
    _guard: Box<dyn Send>,
}

impl Subscription {
    /// - `guard`: whose drop ends the delivery.
    pub(crate) fn new(guard: impl Send + 'static) -> Self {
        Self {
            _guard: Box::new(guard),
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

/// Why something could not be carried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {action}: {reason}")]
pub struct TransportError {
    /// What was attempted, such as `append to the log`.
    pub action: &'static str,
    /// The message of the transport.
    pub reason: String,
    /// Whether the broker is unreachable: another attempt may succeed later.
    pub is_away: bool,
}

/// Why a log takes no more; the text is for the person who started the run.
pub(crate) const LOG_IS_FULL: &str =
    "the log of the run is full: allow more with `load --fleet-log SIZE`";

impl TransportError {
    /// The error of an attempt.
    pub fn new(action: &'static str, reason: impl fmt::Display) -> Self {
        Self {
            action,
            reason: reason.to_string(),
            is_away: false,
        }
    }

    /// An error of an unreachable broker.
    pub(crate) fn away(action: &'static str, reason: impl fmt::Display) -> Self {
        Self {
            is_away: true,
            ..Self::new(action, reason)
        }
    }
}

/// Carries messages. Calls block until they are done.
pub trait FleetTransport: Send + Sync + fmt::Debug {
    /// Hands a message to all that listen to `subject` now; without listeners it is gone.
    fn publish(&self, subject: &str, payload: Vec<u8>) -> Result<(), TransportError>;

    /// Delivers the messages of `subject` from now on, in the order of each sender. The subscription is active when this returns.
    fn subscribe(&self, subject: &str, deliver: Deliver) -> Result<Subscription, TransportError>;

    /// Makes the log of a run. It fails if there is one of that name.
    ///
    /// - `subjects`: that it holds.
    /// - `most_bytes`: of its messages with what the transport adds to each; it takes no more than that.
    fn create_log(
        &self,
        log: &str,
        subjects: &[String],
        most_bytes: u64,
    ) -> Result<(), TransportError>;

    /// Adds a message to the log that holds `subject`, and returns once it is kept. Of several with one `id` the first is kept.
    /// It fails if the log is full. A broker that comes back at once is waited for.
    fn append(&self, subject: &str, id: &str, payload: Vec<u8>) -> Result<(), TransportError>;

    /// Delivers the messages of one subject of a log, from the first one on, and then those that are added. It fails without
    /// such a log.
    fn follow_log(
        &self,
        log: &str,
        subject: &str,
        deliver: Deliver,
    ) -> Result<Subscription, TransportError>;

    /// Keeps a file of a run.
    fn put_blob(&self, bucket: &str, name: &str, content: Vec<u8>) -> Result<(), TransportError>;

    /// A file of a run; it fails if there is none, or if it is larger than `most` bytes.
    fn blob(&self, bucket: &str, name: &str, most: usize) -> Result<Vec<u8>, TransportError>;

    /// Deletes the log and the files of a run, as far as they exist.
    fn delete(&self, log: &str, bucket: &str) -> Result<(), TransportError>;

    /// Whether messages can be carried now.
    fn is_connected(&self) -> bool;
}
