//! What comes on a connection of HTTP/2, handed to the places that wait for it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use plimsoll_client::check::{Facts, Observer};
use plimsoll_client::{Completed, Incomplete, Opening, Responses};
use plimsoll_model::{FailureKind, Phases, Retry};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::ResponseSink as _;
use plimsoll_wire::h2::ResponseHead;
use plimsoll_wire::h2::hpack::Fields;

use crate::coalescing::Coalescing;
use crate::events::{NEVER, Response};
use crate::pace::Finished;
use crate::plan::RunPlan;
use crate::streams::place::Place;
use crate::user::Recorder;

/// How often a request is sent on yet another connection because the one before was left by its
/// server without having looked at it. A server that does so every time is not worth more.
const MOST_ATTEMPTS: u8 = 5;

/// Places whose exchanges ended, and those whose requests have to be sent again.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) answered: Vec<(u32, Finished)>,
    /// With when their exchanges ended.
    pub(super) failed: Vec<(u32, Instant)>,
    pub(super) again: Vec<u32>,
    /// Those whose responses are to be given up.
    pub(super) given_up: Vec<u32>,
}

/// Takes what came on one connection.
pub(super) struct Taking<'a> {
    pub(super) plan: &'a RunPlan,
    pub(super) endpoint: usize,
    pub(super) recorder: &'a Recorder,
    pub(super) places: &'a mut [Place],
    pub(super) coalescing: Option<&'a Coalescing>,
    pub(super) news: &'a mut News,
    pub(super) peer: Option<SocketAddr>,
    pub(super) certificate_days: Option<i64>,
    /// An exchange was completed.
    pub(super) has_carried: bool,
}

impl Taking<'_> {
    /// Counts what came of asking for a stream of events.
    fn conclude(&mut self, token: u32, response: Response) {
        let place = &mut self.places[token as usize];
        let exchange = place.exchange(place.start.started, self.peer, Ok(0));
        if let Some(finished) = place.conclude(response, exchange) {
            self.news.answered.push((token, finished));
        }
    }
}

impl Responses for Taking<'_> {
    #[inline]
    fn wants_fields(&self) -> bool {
        let Place {
            observer, session, ..
        } = &self.places[0];
        self.plan.grpc.is_some()
            || self.plan.events.is_some()
            || session.is_some()
            || observer.as_ref().is_some_and(Observer::needs_fields)
    }

    #[inline]
    fn head(&mut self, token: u32, head: &ResponseHead<'_>) {
        let Place {
            observer,
            session,
            grpc,
            events,
            ..
        } = &mut self.places[token as usize];
        if let Some(session) = session {
            let site = &self.plan.endpoints[self.endpoint];
            let fields = head.fields.iter();
            session.learn(site, self.endpoint, head.status, fields, &SystemClock);
        }
        if let Some(observer) = observer {
            observer.http2_head(head);
        }
        if let Some(grpc) = grpc {
            grpc.head(head);
        }
        if let Some(events) = events {
            events.head(head.status, head.fields.field("content-type"));
            if events.refusal().is_some() {
                self.news.given_up.push(token);
            }
        }
    }

    #[inline]
    fn wants_opening(&self) -> bool {
        self.plan.events.is_some()
    }

    fn opened(&mut self, token: u32, opening: &Opening) -> Option<Instant> {
        let place = &mut self.places[token as usize];
        let exchange = place.exchange(opening.done, self.peer, Ok(opening.status));
        let events = place.events.as_mut().filter(|events| events.was_opened())?;
        events.opened(exchange, opening);
        self.has_carried = true;
        Some(opening.done + NEVER)
    }

    #[inline]
    fn content(&mut self, token: u32, piece: &[u8]) {
        let place = &mut self.places[token as usize];
        if let Some(observer) = &mut place.observer {
            observer.content(piece);
        }
        if let Some(grpc) = &mut place.grpc {
            grpc.content(piece);
        }
        if let Some(events) = &mut place.events
            && events.content(piece, None)
        {
            self.news.given_up.push(token);
        }
    }

    #[inline]
    fn trailers(&mut self, token: u32, fields: &Fields) {
        if let Some(grpc) = &mut self.places[token as usize].grpc {
            grpc.trailers(fields);
        }
    }

    #[inline]
    fn completed(&mut self, token: u32, completed: Completed) {
        self.has_carried = true;
        if self.places[token as usize].events.is_some() {
            self.conclude(token, Response::Completed(completed));
            return;
        }
        let place = &mut self.places[token as usize];
        place.phases.add(&completed.phases);
        place.bytes_sent += completed.bytes_sent;
        place.bytes_received += completed.bytes_received;
        // A server that demands credentials gets them in the same exchange.
        let session = place.session.as_mut();
        if session.is_some_and(|session| session.wants_again()) {
            self.news.again.push(token);
            return;
        }
        let mut exchange = place.exchange(completed.done, self.peer, Ok(completed.status));
        let mut answer = None;
        if let (Some(grpc), Some(plan)) = (&place.grpc, self.plan.grpc) {
            match grpc.finish(!plan.is_server_streaming) {
                Ok(answered) => answer = Some(answered),
                Err(fault) => exchange.outcome = Err(fault.failure()),
            }
        }
        let judged = place.observer.as_ref().and_then(|observer| {
            let facts = Facts::of(&exchange, self.certificate_days)?;
            let grpc_status = answer.as_ref().map(|answer| answer.status);
            Some((
                observer,
                Facts {
                    grpc_status,
                    ..facts
                },
            ))
        });
        let start = &place.start;
        let unmet = judged
            .into_iter()
            .flat_map(|(observer, facts)| self.plan.expectations.unmet(observer, facts));
        match &answer {
            Some(answer) => self.recorder.finish_call(start, &exchange, answer, unmet),
            None => self.recorder.finish_judged(start, &exchange, unmet),
        }
        if let Some(coalescing) = self.coalescing {
            coalescing.heard(exchange.done.saturating_duration_since(exchange.started));
        }
        let finished = Finished {
            done: completed.done,
            back_off: Duration::ZERO,
        };
        self.news.answered.push((token, finished));
    }

    fn failed(&mut self, token: u32, incomplete: Incomplete) {
        let place = &mut self.places[token as usize];
        let failure = &incomplete.failure;
        let is_opened = place
            .events
            .as_ref()
            .is_some_and(|events| events.was_opened());
        let is_left =
            failure.kind == FailureKind::Closed && failure.retry == Retry::Safe && !is_opened;
        place.attempts += 1;
        if is_left && place.attempts < MOST_ATTEMPTS {
            place.phases = Phases::default();
            self.news.again.push(token);
            return;
        }
        if place.events.is_some() {
            self.conclude(token, Response::Failed(incomplete));
            return;
        }
        place.phases.add(&incomplete.phases);
        place.bytes_sent += incomplete.bytes_sent;
        place.bytes_received += incomplete.bytes_received;
        let exchange = place.exchange(incomplete.done, self.peer, Err(incomplete.failure));
        self.recorder.finish(&place.start, &exchange);
        self.news.failed.push((token, incomplete.done));
    }
}
