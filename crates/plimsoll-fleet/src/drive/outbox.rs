//! Messages for the logs of runs, in order. They wait here while the broker is unreachable, so that no caller blocks.

use std::collections::VecDeque;

use crate::transport::{FleetTransport, TransportError};

/// Bytes that wait at most.
const MOST_BYTES: usize = 64 << 20;

/// A message for a log.
#[derive(Debug)]
pub(super) struct Unsent<T> {
    /// Data of the sender about it, which is not sent.
    pub(super) about: T,
    pub(super) subject: String,
    /// Of several messages with one, the log keeps the first.
    pub(super) id: String,
    pub(super) payload: Vec<u8>,
}

/// A message that the log did not take.
#[derive(Debug)]
pub(super) struct Refused<T> {
    pub(super) message: Unsent<T>,
    pub(super) error: TransportError,
}

/// Messages that wait; the first one is sent first.
#[derive(Debug)]
pub(super) struct Outbox<T> {
    waiting: VecDeque<Unsent<T>>,
    bytes: usize,
}

impl<T> Outbox<T> {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a message waits for which `is_it` holds.
    pub(super) fn holds(&self, is_it: impl Fn(&T) -> bool) -> bool {
        self.waiting.iter().any(|message| is_it(&message.about))
    }

    /// Adds a message; false if there is no room for it.
    #[must_use]
    pub(super) fn push(&mut self, message: Unsent<T>) -> bool {
        let bytes = self.bytes + message.payload.len();
        if bytes > MOST_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.waiting.push_back(message);
        true
    }

    /// Sends the waiting messages while the broker is reachable. Fails with a message that the log refuses, and drops it.
    pub(super) fn send(&mut self, transport: &dyn FleetTransport) -> Result<(), Box<Refused<T>>> {
        while transport.is_connected()
            && let Some(message) = self.waiting.pop_front()
        {
            let payload = message.payload.clone();
            match transport.append(&message.subject, &message.id, payload) {
                Err(error) if error.is_away => {
                    self.waiting.push_front(message);
                    return Ok(());
                }
                sent => {
                    self.bytes -= message.payload.len();
                    sent.map_err(|error| Box::new(Refused { message, error }))?;
                }
            }
        }
        Ok(())
    }

    /// Drops the messages for which `is_dropped` holds.
    pub(super) fn forget(&mut self, is_dropped: impl Fn(&T) -> bool) {
        self.waiting.retain(|message| !is_dropped(&message.about));
        let lengths = self.waiting.iter().map(|message| message.payload.len());
        self.bytes = lengths.sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::memory::MemoryTransport;

    fn message(about: u32, id: &str, length: usize) -> Unsent<u32> {
        Unsent {
            about,
            subject: "log.a".to_owned(),
            id: id.to_owned(),
            payload: vec![b'a'; length],
        }
    }

    #[test]
    fn what_waits_for_the_broker_is_sent_in_its_order_when_it_is_back() {
        let transport = MemoryTransport::default();
        let subjects = ["log.a".to_owned()];
        transport.create_log("log", &subjects, 9).unwrap();
        let mut outbox = Outbox::new();
        transport.cut(true);
        for (about, length) in [(1, 2), (2, 3), (3, 5), (4, 1)] {
            assert!(outbox.push(message(about, &about.to_string(), length)));
        }
        outbox.send(&transport).unwrap();
        transport.cut(false);
        // The third one has no room in the log; the one behind it has.
        let refused = outbox.send(&transport).unwrap_err();
        assert_eq!(refused.message.about, 3);
        assert!(refused.error.reason.contains("is full"), "{refused:?}");
        outbox.send(&transport).unwrap();
        assert!(outbox.is_empty());
        let (sender, lengths) = std::sync::mpsc::channel();
        let deliver =
            Box::new(move |it: crate::transport::Delivered| sender.send(it.payload.len()).is_ok());
        let _reading = transport.follow_log("log", "log.a", deliver).unwrap();
        assert_eq!(lengths.try_iter().collect::<Vec<_>>(), [2, 3, 1]);
    }

    #[test]
    fn no_more_waits_than_there_is_room_for() {
        let mut outbox = Outbox::new();
        assert!(outbox.push(message(1, "a", MOST_BYTES - 1)));
        assert!(outbox.push(message(2, "b", 1)));
        assert!(!outbox.push(message(2, "c", 1)));
        outbox.forget(|about| *about == 2);
        assert!(outbox.push(message(3, "d", 1)));
        assert!(!outbox.push(message(3, "e", 1)));
    }
}
