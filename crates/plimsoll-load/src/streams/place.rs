//! Room for one exchange at a time on a connection of HTTP/2.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use plimsoll_client::check::Observer;
use plimsoll_client::grpc::GrpcReading;
use plimsoll_client::{Request, Session};
use plimsoll_model::{Exchange, Failure, Phases, Protocol};

use crate::events::{EventStream, Response};
use crate::pace::{Finished, Start};
use crate::plain::Shared;
use crate::plan::RunPlan;
use crate::source::RequestSource;

/// Room for one exchange at a time; its number is the exchange's token.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) start: Start,
    pub(super) source: RequestSource,
    /// What the user remembers, and the request with that.
    pub(super) session: Option<Box<Session>>,
    pub(super) dressed: Option<Request>,
    /// Bytes of answers after which the same request was sent again.
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    /// The phases before the request was begun.
    pub(super) phases: Phases,
    pub(super) attempts: u8,
    /// The turn in which it was taken up.
    pub(super) taken_in: u64,
    pub(super) observer: Option<Observer>,
    /// Only where gRPC is spoken.
    pub(super) grpc: Option<Box<GrpcReading>>,
    /// Only where streams of events are opened.
    pub(super) events: Option<Box<EventStream>>,
}

impl Place {
    /// A place that has made no exchange.
    ///
    /// - `index`: of the virtual user, which begins at a request of its own.
    pub(super) fn new(
        shared: &Shared,
        index: usize,
        events: Option<Box<EventStream>>,
        now: Instant,
    ) -> Self {
        let plan = &shared.plan;
        let expectations = &plan.expectations;
        Self {
            start: Start {
                intended: now,
                started: now,
                in_window: false,
                lag: None,
                request: 0,
            },
            source: RequestSource::new(Rc::clone(&shared.source), plan, index),
            session: Session::new(&plan.session).map(Box::new),
            dressed: None,
            bytes_sent: 0,
            bytes_received: 0,
            phases: Phases::default(),
            attempts: 0,
            taken_in: 0,
            observer: (!expectations.is_empty()).then(|| expectations.observer()),
            grpc: plan.grpc.map(|_| Box::default()),
            events,
        }
    }

    /// Takes up the exchange that begins with `start`; returns its endpoint.
    pub(super) fn take_up(&mut self, start: Start, turn: u64, plan: &RunPlan) -> usize {
        self.start = start;
        self.phases = Phases::default();
        self.attempts = 0;
        self.bytes_sent = 0;
        self.bytes_received = 0;
        self.taken_in = turn;
        let endpoint = self.source.advance(plan);
        self.start.request = self.source.position();
        if let Some(events) = &mut self.events {
            events.begin(&self.start, self.source.position());
        }
        endpoint
    }

    /// Whether a stream of events is open.
    pub(super) fn is_open(&self) -> bool {
        self.events
            .as_ref()
            .is_some_and(|events| events.was_opened())
    }

    /// Counts what came of asking for a stream of events, if that was done.
    pub(super) fn conclude(&mut self, response: Response, exchange: Exchange) -> Option<Finished> {
        let concluded = self.events.as_mut()?.conclude(response, exchange);
        Some(Finished {
            done: concluded.done,
            back_off: concluded.pause,
        })
    }

    pub(super) fn exchange(
        &self,
        done: Instant,
        peer: Option<SocketAddr>,
        outcome: Result<u16, Failure>,
    ) -> Exchange {
        Exchange {
            intended: self.start.intended,
            started: self.start.started,
            done,
            phases: self.phases,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            peer,
            protocol: Protocol::Http2,
            outcome,
        }
    }
}
