//! Room for one exchange at a time on a connection of HTTP/2.

use std::net::SocketAddr;
use std::time::Instant;

use plimsoll_model::{Exchange, Phases, Protocol};

use crate::worker::pace::{Finished, Start};
use crate::workload::{Concluded, HttpWorkload, Response};

/// Room for one exchange at a time; its number is the exchange's token.
#[derive(Debug)]
pub(super) struct StreamSlot<W> {
    pub(super) start: Start,
    pub(super) workload: W,
    /// Bytes of the exchange's requests and responses before the one under way.
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    /// The phases before the request was begun.
    pub(super) phases: Phases,
    pub(super) attempts: u8,
    /// It was taken up and has not ended.
    pub(super) is_under_way: bool,
    /// The turn in which it was taken up.
    pub(super) taken_in: u64,
}

impl<W: HttpWorkload> StreamSlot<W> {
    /// A place that has made no exchange.
    pub(super) fn new(workload: W, now: Instant) -> Self {
        Self {
            start: Start {
                intended: now,
                started: now,
                in_window: false,
                lag: None,
                request: 0,
                arrival: None,
            },
            workload,
            bytes_sent: 0,
            bytes_received: 0,
            phases: Phases::default(),
            attempts: 0,
            is_under_way: false,
            taken_in: 0,
        }
    }

    /// Takes up the exchange that begins with `start`; returns its endpoint.
    pub(super) fn take_up(&mut self, start: Start, turn: u64) -> usize {
        self.start = start;
        self.is_under_way = true;
        self.phases = Phases::default();
        self.attempts = 0;
        self.bytes_sent = 0;
        self.bytes_received = 0;
        self.taken_in = turn;
        self.workload.take_up(&mut self.start)
    }

    /// Hands the end of a response to the workload.
    pub(super) fn conclude(
        &mut self,
        response: Response,
        peer: Option<SocketAddr>,
        certificate_days: Option<i64>,
    ) -> (Finished, Concluded) {
        let mut exchange = self.exchange(peer);
        let concluded =
            self.workload
                .conclude(&self.start, response, &mut exchange, certificate_days);
        self.phases = exchange.phases;
        self.bytes_sent = exchange.bytes_sent;
        self.bytes_received = exchange.bytes_received;
        let finished = Finished {
            done: exchange.done,
            back_off: concluded.pause,
        };
        (finished, concluded)
    }

    /// The exchange as it stands before the request under way.
    pub(super) fn exchange(&self, peer: Option<SocketAddr>) -> Exchange {
        Exchange {
            intended: self.start.intended,
            started: self.start.started,
            done: self.start.started,
            phases: self.phases,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            peer,
            protocol: Protocol::Http2,
            outcome: Ok(0),
        }
    }
}
