//! What a server did, and when: the truth that figures are compared with.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a request ended, as its server knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gauntlet) enum Ending {
    /// The whole response was written.
    Answered,
    /// The server ended the connection, or the stream, before the response was whole.
    Cut,
    /// The server never answered; the client left at `left`.
    Unanswered,
}

/// One request.
#[derive(Debug, Clone)]
pub(in crate::gauntlet) struct Entry {
    /// When the last of it came, whenever its thread had a core to read it.
    pub(in crate::gauntlet) read: Instant,
    /// When the response was whole, was cut, or the client left.
    pub(in crate::gauntlet) ended: Instant,
    pub(in crate::gauntlet) ending: Ending,
    pub(in crate::gauntlet) status: u16,
    /// Bytes of the request.
    pub(in crate::gauntlet) length: u64,
    /// Its path and query.
    pub(in crate::gauntlet) target: String,
    /// Whether it is the first one of its connection.
    pub(in crate::gauntlet) is_first: bool,
}

impl Entry {
    /// The time that the server took.
    pub(in crate::gauntlet) fn took(&self) -> Duration {
        self.ended.saturating_duration_since(self.read)
    }
}

/// Everything that one server did.
#[derive(Debug, Clone, Default)]
pub(in crate::gauntlet) struct Log {
    /// The requests in the order in which they were read.
    pub(in crate::gauntlet) entries: Vec<Entry>,
    /// When each connection was accepted.
    pub(in crate::gauntlet) accepted: Vec<Instant>,
    /// Bytes read from clients.
    pub(in crate::gauntlet) bytes_read: u64,
    /// Bytes written to them.
    pub(in crate::gauntlet) bytes_written: u64,
    /// Requests read, those under way included.
    pub(in crate::gauntlet) begun: u64,
    /// When the first request was read.
    pub(in crate::gauntlet) first: Option<Instant>,
}

/// A log that several threads write.
#[derive(Debug, Clone, Default)]
pub(in crate::gauntlet) struct SharedLog(Arc<Mutex<Log>>);

impl SharedLog {
    /// The log; a thread that panicked does not hide what the others wrote.
    pub(in crate::gauntlet) fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that was read at `now`; its number, and the time since the first one.
    pub(in crate::gauntlet) fn begin(&self, now: Instant) -> (u64, Duration) {
        let mut log = self.lock();
        let number = log.begun;
        log.begun += 1;
        let first = *log.first.get_or_insert(now);
        (number, now.saturating_duration_since(first))
    }
}
