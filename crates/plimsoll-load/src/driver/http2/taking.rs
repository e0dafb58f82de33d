//! Hands the responses of one HTTP/2 connection to the places that wait for them.

use std::net::SocketAddr;
use std::time::Instant;

use plimsoll_client::{Completed, Incomplete, Opening, Responses};
use plimsoll_model::{FailureKind, Phases, Retry};
use plimsoll_wire::h2::ResponseHead;
use plimsoll_wire::h2::hpack::Fields;

use super::place::StreamSlot;
use crate::driver::{MOST_ATTEMPTS, NEVER};
use crate::worker::coalescing::Coalescing;
use crate::worker::pace::Finished;
use crate::workload::{Head, HttpWorkload, Response, ResponseReader};

/// Places whose exchanges ended, and those whose requests have to be sent again.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) answered: Vec<(u32, Finished)>,
    pub(super) failed: Vec<(u32, Finished)>,
    /// With the position of the endpoint to send the next request to.
    pub(super) again: Vec<(u32, usize)>,
    /// Those whose responses are to be given up.
    pub(super) given_up: Vec<u32>,
}

/// Takes the responses of one connection.
pub(super) struct ResponseReading<'a, W> {
    pub(super) endpoint: usize,
    pub(super) places: &'a mut [StreamSlot<W>],
    pub(super) coalescing: Option<&'a Coalescing>,
    pub(super) news: &'a mut News,
    pub(super) peer: Option<SocketAddr>,
    pub(super) certificate_days: Option<i64>,
    /// An exchange was completed.
    pub(super) has_carried: bool,
}

impl<W: HttpWorkload> ResponseReading<'_, W> {
    #[inline]
    fn reader(&mut self, token: u32) -> &mut W::Reader {
        self.places[token as usize].workload.reader_mut()
    }

    /// Hands the end of a response to its workload.
    #[inline]
    fn conclude(&mut self, token: u32, response: Response) {
        let place = &mut self.places[token as usize];
        let (finished, concluded) = place.conclude(response, self.peer, self.certificate_days);
        self.has_carried |= concluded.has_carried;
        if let Some(endpoint) = concluded.again {
            self.news.again.push((token, endpoint));
        } else if concluded.has_carried {
            if let Some(coalescing) = self.coalescing {
                coalescing.heard(finished.done.saturating_duration_since(place.start.started));
            }
            self.news.answered.push((token, finished));
        } else {
            self.news.failed.push((token, finished));
        }
    }
}

impl<W: HttpWorkload> Responses for ResponseReading<'_, W> {
    #[inline]
    fn wants_fields(&self) -> bool {
        // All places have the same workload.
        self.places[0].workload.reader().wants_fields()
    }

    #[inline]
    fn head(&mut self, token: u32, head: &ResponseHead<'_>) {
        let reader = self.reader(token);
        reader.head(Head::Http2(head));
        if reader.is_refused() {
            self.news.given_up.push(token);
        }
    }

    #[inline]
    fn wants_opening(&self) -> bool {
        W::Reader::OUTLASTS
    }

    fn opened(&mut self, token: u32, opening: &Opening) -> Option<Instant> {
        let place = &mut self.places[token as usize];
        if !place.workload.reader().was_opened() {
            return None;
        }
        let exchange = place.exchange(self.peer);
        place.workload.reader_mut().opened(exchange, opening);
        self.has_carried = true;
        Some(opening.done + NEVER)
    }

    #[inline]
    fn content(&mut self, token: u32, piece: &[u8]) {
        if self.reader(token).content(piece, None) {
            self.news.given_up.push(token);
        }
    }

    #[inline]
    fn trailers(&mut self, token: u32, fields: &Fields) {
        self.reader(token).trailers(fields);
    }

    #[inline]
    fn completed(&mut self, token: u32, completed: Completed) {
        self.has_carried = true;
        self.conclude(token, Response::Completed(completed));
    }

    fn failed(&mut self, token: u32, incomplete: Incomplete) {
        let place = &mut self.places[token as usize];
        let failure = &incomplete.failure;
        let is_left = failure.kind == FailureKind::Closed
            && failure.retry == Retry::Safe
            && !place.workload.reader().was_opened();
        place.attempts += 1;
        if is_left && place.attempts < MOST_ATTEMPTS {
            place.phases = Phases::default();
            self.news.again.push((token, self.endpoint));
            return;
        }
        self.conclude(token, Response::Failed(incomplete));
    }
}
