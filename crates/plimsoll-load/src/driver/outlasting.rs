//! Responses that outlast their exchange, such as streams of events: what a driver that awaits one has
//! to watch meanwhile.

use std::cell::Cell;
use std::time::Instant;

use http::HeaderMap;
use plimsoll_client::{Http3, Http3Parts, Opening};
use plimsoll_model::Exchange;
use plimsoll_wire::h1::{ResponseHead, ResponseSink};
use tokio::sync::Notify;

use crate::worker::pace::Gate;
use crate::workload::{Head, ResponseReader};

/// Hands the parts of a response to its reader, over HTTP/1 or HTTP/3.
pub(super) struct PartSink<'a, R>(pub(super) &'a mut R);

impl<R: ResponseReader> ResponseSink for PartSink<'_, R> {
    #[inline]
    fn wants_head(&self) -> bool {
        self.0.wants_head()
    }

    #[inline]
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.0.head(Head::Http1(head));
    }

    #[inline]
    fn content(&mut self, piece: &[u8]) {
        self.0.content(piece, None);
    }
}

impl<R: ResponseReader> Http3Parts for PartSink<'_, R> {
    #[inline]
    fn head(&mut self, status: u16, fields: &HeaderMap) {
        self.0.head(Head::Http3(status, fields));
    }

    #[inline]
    fn content(&mut self, piece: &[u8]) {
        self.0.content(piece, None);
    }

    #[inline]
    fn wants_trailers(&self) -> bool {
        R::READS_TRAILERS
    }

    fn trailers(&mut self, fields: &HeaderMap) {
        self.0.trailers_of_http3(fields);
    }
}

/// The same for a response that may outlast its exchange.
pub(super) struct OutlastingParts<'a, R> {
    pub(super) reader: &'a mut R,
    /// As it stood before the request was begun.
    pub(super) exchange: Exchange,
    pub(super) turn: &'a Turn,
    /// The connection, over HTTP/3: its datagrams are counted, not their content.
    pub(super) http3: Option<&'a Http3>,
}

impl<R: ResponseReader> OutlastingParts<'_, R> {
    fn take_head(&mut self, head: Head<'_>) {
        self.reader.head(head);
        if self.reader.is_refused() {
            self.turn.set_flag(&self.turn.is_given_up);
        }
    }

    pub(super) fn report_opening(&mut self, opening: &Opening) {
        if self.reader.was_opened() {
            self.reader.opened(self.exchange.clone(), opening);
            self.turn.set_flag(&self.turn.is_open);
        }
    }

    fn take_content(&mut self, piece: &[u8]) {
        if self.reader.content(piece, self.http3) {
            self.turn.set_flag(&self.turn.is_given_up);
        }
    }
}

impl<R: ResponseReader> ResponseSink for OutlastingParts<'_, R> {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.take_head(Head::Http1(head));
    }

    fn content(&mut self, piece: &[u8]) {
        self.take_content(piece);
    }
}

impl<R: ResponseReader> Http3Parts for OutlastingParts<'_, R> {
    fn head(&mut self, status: u16, fields: &HeaderMap) {
        self.take_head(Head::Http3(status, fields));
    }

    fn opened(&mut self, opening: &Opening) {
        self.report_opening(opening);
    }

    fn content(&mut self, piece: &[u8]) {
        self.take_content(piece);
    }
}

/// How far the response is, for the task that awaits it.
#[derive(Debug, Default)]
pub(super) struct Turn {
    is_open: Cell<bool>,
    is_given_up: Cell<bool>,
    taken: Notify,
}

impl Turn {
    fn set_flag(&self, flag: &Cell<bool>) {
        flag.set(true);
        self.taken.notify_waiters();
    }

    /// Waits until the response turns out to be a stream.
    async fn open(&self) {
        while !self.is_open.get() {
            self.taken.notified().await;
        }
    }

    /// Waits until the response has to be given up.
    pub(super) async fn given_up(&self) {
        while !self.is_given_up.get() {
            self.taken.notified().await;
        }
    }

    /// Waits until `deadline`; forever once there is a stream.
    pub(super) async fn overdue(&self, deadline: Instant) {
        tokio::select! {
            biased;
            () = self.open() => std::future::pending().await,
            () = tokio::time::sleep_until(deadline.into()) => {}
        }
    }

    /// Waits until there is a stream and the run is over.
    pub(super) async fn left(&self, gate: &Gate) {
        gate.wait_for_stop().await;
        self.open().await;
    }
}
