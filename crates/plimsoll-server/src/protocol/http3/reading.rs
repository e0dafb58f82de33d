//! The content of one request on its way from the stream to its reader.

use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::server::RequestStream;
use http::HeaderMap;
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::RequestError;

use super::transport::Receiver;
use crate::counters::{Cut, WorkerCounters};
use crate::limits::Limits;
use crate::message::body::BodyError;
use crate::message::interim::Interims;
use crate::message::request::{Content, ContentSource};
use crate::protocol::pace::{Pace, sooner};
use crate::worker::timer::Timer;

/// The receiving half of a request.
pub(super) struct Reading {
    stream: RequestStream<Receiver, Bytes>,
    /// A piece that was taken from the stream to see whether there is one.
    first: Option<Bytes>,
    /// The client has sent its last byte, or nothing more is read.
    is_over: bool,
    /// The bytes still to come by the announced length.
    announced: Option<u64>,
    /// Bytes that may still come.
    left: u64,
    pace: Pace,
    since: Option<Instant>,
    timer: Option<Timer>,
    /// The interim responses for a client that waits for 100 (Continue).
    asks: Option<Rc<Interims>>,
    clock: SystemClock,
}

/// A piece of the body.
enum BodyPart {
    Data(Bytes),
    End(Option<HeaderMap>),
    Broken(BodyError),
}

impl Reading {
    pub(super) fn new(
        stream: RequestStream<Receiver, Bytes>,
        announced: Option<u64>,
        limits: &Limits,
        clock: SystemClock,
    ) -> Self {
        Self {
            stream,
            first: None,
            is_over: false,
            announced,
            left: limits.request.body_bytes,
            pace: Pace::default(),
            since: None,
            timer: None,
            asks: None,
            clock,
        }
    }

    /// Whether there may be content: false only if the request is known to have ended.
    pub(super) fn has_content(&mut self, cx: &mut Context<'_>) -> bool {
        match self.stream.poll_recv_data(cx) {
            Poll::Pending | Poll::Ready(Err(_)) => true,
            Poll::Ready(Ok(Some(mut piece))) => {
                self.first = Some(piece.copy_to_bytes(piece.remaining()));
                true
            }
            // Trailer fields of discarded content are not read.
            Poll::Ready(Ok(None)) => {
                self.is_over = self.announced.is_none_or(|length| length == 0);
                !self.is_over
            }
        }
    }

    /// The stream itself, with what was taken off it already.
    pub(super) fn into_stream(self) -> (RequestStream<Receiver, Bytes>, Bytes) {
        (self.stream, self.first.unwrap_or_default())
    }

    /// Sends 100 (Continue) by `interims`, once content is requested.
    pub(super) fn ask_by(&mut self, interims: Rc<Interims>) {
        self.asks = Some(interims);
    }

    /// Stops reading: what more there is was not needed.
    pub(super) fn stop(&mut self, code: Code) {
        if !self.is_over {
            self.is_over = true;
            self.stream.stop_sending(code);
        }
    }

    /// Hands over what comes to the taker of the content; never ready, since it is the response that is waited
    /// for.
    ///
    /// - `refused`: called for content that must not be taken.
    pub(super) fn hand_over(
        &mut self,
        cx: &mut Context<'_>,
        content: &Content,
        limits: &Limits,
        counters: &WorkerCounters,
    ) {
        let mut source = content.source.borrow_mut();
        let ContentSource::Taken(sender) = &*source else {
            return;
        };
        if sender.is_abandoned() {
            *source = ContentSource::None;
            return;
        }
        loop {
            if sender.poll_room(cx).is_pending() {
                // It is not the client that is waited for.
                self.rest();
                return;
            }
            match self.poll_piece(cx) {
                Poll::Ready(BodyPart::Data(piece)) => sender.push(piece),
                Poll::Ready(BodyPart::End(trailers)) => {
                    sender.finish(trailers, counters);
                    *source = ContentSource::None;
                    return;
                }
                Poll::Ready(BodyPart::Broken(error)) => {
                    if error == BodyError::Refused {
                        counters.refused(RequestError::BodyTooLarge);
                    }
                    sender.end(Err(error));
                    *source = ContentSource::None;
                    return;
                }
                Poll::Pending if sender.poll_wanted(cx).is_pending() => {
                    self.pace.pause(|| self.clock.now());
                    self.since = None;
                    return;
                }
                Poll::Pending => {
                    if let Some(interims) = self.asks.take() {
                        interims.ask_to_continue();
                    }
                    if let Poll::Ready(cut) = self.poll_late(cx, limits) {
                        counters.cut(cut);
                        self.stop(Code::H3_REQUEST_CANCELLED);
                        sender.end(Err(BodyError::Closed));
                        *source = ContentSource::None;
                    }
                    return;
                }
            }
        }
    }

    /// Discards unread content, within bounds; ready when there is no more.
    pub(super) fn poll_discarded(
        &mut self,
        cx: &mut Context<'_>,
        limits: &Limits,
        counters: &WorkerCounters,
        left: &mut u64,
    ) -> Poll<()> {
        while !self.is_over {
            match self.poll_piece(cx) {
                Poll::Ready(BodyPart::Data(piece)) => match left.checked_sub(piece.len() as u64) {
                    Some(rest) => *left = rest,
                    None => self.stop(Code::H3_NO_ERROR),
                },
                Poll::Ready(_) => self.is_over = true,
                Poll::Pending => {
                    let cut = ready!(self.poll_late(cx, limits));
                    counters.cut(cut);
                    self.stop(Code::H3_NO_ERROR);
                }
            }
        }
        Poll::Ready(())
    }

    fn rest(&mut self) {
        self.pace.rest();
        self.since = None;
    }

    /// Ready once the client has let wait for too long.
    fn poll_late(&mut self, cx: &mut Context<'_>, limits: &Limits) -> Poll<Cut> {
        self.pace.go_on(|| self.clock.now());
        let since = *self.since.get_or_insert_with(|| self.clock.now());
        let (deadline, cut) = sooner(
            (since + limits.body_timeout, Cut::BodyTimeout),
            self.pace
                .deadline(since, limits.body_timeout, limits.body_rate),
            Cut::BodyRate,
        );
        let timer = self.timer.get_or_insert_with(|| Timer::new(deadline));
        timer.poll_passed(cx, deadline, &self.clock).map(|()| cut)
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<BodyPart> {
        let read = match self.first.take() {
            Some(piece) => Ok(Some(piece)),
            None => ready!(self.stream.poll_recv_data(cx))
                .map(|piece| piece.map(|mut piece| piece.copy_to_bytes(piece.remaining()))),
        };
        self.since = None;
        // A client that sends content already needs no 100 (Continue).
        self.asks = None;
        self.pace.go_on(|| self.clock.now());
        Poll::Ready(match read {
            Ok(Some(piece)) => {
                let length = piece.len() as u64;
                self.pace.took(piece.len());
                let announced = self.announced.map(|left| left.checked_sub(length));
                match (self.left.checked_sub(length), announced) {
                    (Some(left), None) => {
                        self.left = left;
                        BodyPart::Data(piece)
                    }
                    (Some(left), Some(Some(rest))) => {
                        (self.left, self.announced) = (left, Some(rest));
                        BodyPart::Data(piece)
                    }
                    (Some(_), Some(None)) => self.malformed(),
                    (None, _) => {
                        self.stop(Code::H3_NO_ERROR);
                        BodyPart::Broken(BodyError::Refused)
                    }
                }
            }
            Ok(None) if self.announced.is_some_and(|left| left > 0) => self.malformed(),
            Ok(None) => match ready!(self.stream.poll_recv_trailers(cx)) {
                Ok(trailers) => {
                    self.is_over = true;
                    BodyPart::End(trailers)
                }
                Err(_) => self.broken(),
            },
            Err(_) => self.broken(),
        })
    }

    fn broken(&mut self) -> BodyPart {
        self.is_over = true;
        BodyPart::Broken(BodyError::Closed)
    }

    /// Content of another length than was announced (RFC 9114, section 4.1.2).
    fn malformed(&mut self) -> BodyPart {
        self.stop(Code::H3_MESSAGE_ERROR);
        BodyPart::Broken(BodyError::Closed)
    }
}
