//! From the events of the codec to exchanges with phases.

use std::io;
use std::time::Instant;

use plimsoll_wire::h2::hpack::Fields;
use plimsoll_wire::h2::{ConnectionError, Events, ResponseHead, StreamError, Traffic};

use super::{Responses, UnderWay, transport_failure};
use crate::{Completed, Opening};

/// Passes on what one read, or the end of the transport, means.
pub(super) struct Dispatch<'a, K> {
    pub(super) exchanges: &'a mut [UnderWay],
    pub(super) sink: &'a mut K,
    /// When the bytes were read.
    pub(super) now: Instant,
    /// The error of the transport, if it is broken.
    pub(super) error: Option<&'a io::Error>,
    /// Exchanges that ended.
    pub(super) ended: usize,
    pub(super) traffic: Traffic,
}

impl<K: Responses> Events for Dispatch<'_, K> {
    #[inline]
    fn wants_fields(&self) -> bool {
        self.sink.wants_fields()
    }

    #[inline]
    fn head(&mut self, token: u32, head: &ResponseHead<'_>) {
        let exchange = &mut self.exchanges[token as usize];
        exchange.timing.first_byte_at = Some(self.now);
        exchange.status = head.status;
        self.sink.head(token, head);
        if self.sink.wants_opening() {
            let exchange = &mut self.exchanges[token as usize];
            let opening = Opening {
                status: head.status,
                phases: exchange.timing.completed(self.now),
                done: self.now,
            };
            if let Some(deadline) = self.sink.opened(token, &opening) {
                exchange.deadline = Some(deadline);
            }
        }
    }

    fn interim(&mut self, token: u32, status: u16, fields: &Fields) {
        self.sink.interim(token, status, fields);
    }

    fn window_opened(&mut self, token: Option<u32>) {
        self.sink.window_opened(token);
    }

    #[inline]
    fn content(&mut self, token: u32, piece: &[u8]) {
        self.sink.content(token, piece);
    }

    #[inline]
    fn trailers(&mut self, token: u32, fields: &Fields) {
        self.sink.trailers(token, fields);
    }

    #[inline]
    fn traffic(&mut self, _token: u32, traffic: Traffic) {
        self.traffic = traffic;
    }

    #[inline]
    fn complete(&mut self, token: u32) {
        self.ended += 1;
        let exchange = &mut self.exchanges[token as usize];
        // A streamed request may go on behind its response.
        if exchange.deadline.is_some() {
            exchange.stream = None;
        }
        let completed = Completed {
            status: exchange.status,
            phases: exchange.timing.completed(self.now),
            bytes_sent: self.traffic.sent,
            bytes_received: self.traffic.received,
            done: self.now,
            surplus: false,
            reusable: true,
        };
        self.sink.completed(token, completed);
    }

    fn failed(&mut self, token: u32, error: &StreamError) {
        self.ended += 1;
        let exchange = &mut self.exchanges[token as usize];
        exchange.stream = None;
        let phase = exchange.timing.phase();
        let failure = match (error, self.error) {
            (
                StreamError::Connection(ConnectionError::Lost | ConnectionError::Closed(_)),
                Some(error),
            ) => transport_failure(phase, error),
            _ => error.failure(phase),
        };
        let incomplete = exchange.incomplete(failure, self.traffic, self.now);
        self.sink.failed(token, incomplete);
    }
}
