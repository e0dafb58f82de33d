//! The content of one request of HTTP/2, read by its own task.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use plimsoll_model::Clock;
use plimsoll_wire::h1::RequestError;
use tokio::sync::oneshot;

use crate::counters::Cut;
use crate::limits::Limits;
use crate::message::body::{BodyError, BodySender};
use crate::message::interim::Interims;
use crate::protocol::activity::Busy;
use crate::protocol::http2::tap::TapState;
use crate::protocol::pace::{Pace, sooner};
use crate::worker::timer::Timer;

/// The outcome of waiting for content.
enum ContentPart {
    Data(Bytes),
    /// There is no more, or the stream is broken.
    End,
    Broken,
    /// The reader is gone.
    Abandoned,
    Late(Cut),
}

/// Hands content over to the action that has taken it, until either side ends.
///
/// - `asks`: the interim responses for a client that waits for 100 (Continue).
pub(super) async fn hand_over(
    mut stream: RecvStream,
    sender: BodySender,
    asks: Option<Rc<Interims>>,
    tap: Rc<TapState>,
    unread: Unread,
) {
    let (limits, busy) = (&unread.limits, &unread.busy);
    let clock = busy.place.worker.clock;
    let mut timer = Timer::new(clock.now() + limits.body_timeout);
    let mut asks = asks;
    let mut left = limits.request.body_bytes;
    let mut pace = Pace::default();
    let mut since = None;
    let end = loop {
        let piece = poll_fn(|cx| {
            if sender.is_abandoned() {
                return Poll::Ready(ContentPart::Abandoned);
            }
            if sender.poll_room(cx).is_pending() {
                pace.rest();
                since = None;
                return Poll::Pending;
            }
            if let Poll::Ready(piece) = stream.poll_data(cx) {
                return Poll::Ready(match piece {
                    Some(Ok(piece)) => ContentPart::Data(piece),
                    Some(Err(_)) => ContentPart::Broken,
                    None => ContentPart::End,
                });
            }
            if sender.poll_wanted(cx).is_pending() {
                // It is not the client that is waited for.
                pace.pause(|| clock.now());
                since = None;
                return Poll::Pending;
            }
            if let Some(interims) = asks.take() {
                interims.ask_to_continue();
            }
            pace.go_on(|| clock.now());
            let since = *since.get_or_insert_with(|| clock.now());
            let (deadline, cut) = sooner(
                (since + limits.body_timeout, Cut::BodyTimeout),
                pace.deadline(since, limits.body_timeout, limits.body_rate),
                Cut::BodyRate,
            );
            timer
                .poll_passed(cx, deadline, &clock)
                .map(|()| ContentPart::Late(cut))
        });
        match piece.await {
            ContentPart::Data(piece) => {
                // A client that sends content already needs no 100 (Continue).
                asks = None;
                since = None;
                pace.go_on(|| clock.now());
                pace.took(piece.len());
                let Some(rest) = left.checked_sub(piece.len() as u64) else {
                    let counters = &busy.place.worker.counters;
                    counters.refused(RequestError::BodyTooLarge);
                    sender.end(Err(BodyError::Refused));
                    return unread.discard(stream).await;
                };
                left = rest;
                // The window opens again as the content is taken: that bounds what lies here.
                if stream.flow_control().release_capacity(piece.len()).is_err() {
                    break Err(BodyError::Closed);
                }
                sender.push(piece);
            }
            ContentPart::End => {
                let trailers = poll_fn(|cx: &mut Context<'_>| stream.poll_trailers(cx)).await;
                if tap.is_malformed(stream.stream_id().as_u32()) {
                    break Err(BodyError::Closed);
                }
                match trailers {
                    Ok(trailers) => {
                        return sender.finish(trailers, &busy.place.worker.counters);
                    }
                    Err(_) => break Err(BodyError::Closed),
                }
            }
            ContentPart::Broken => break Err(BodyError::Closed),
            ContentPart::Abandoned => return unread.discard(stream).await,
            ContentPart::Late(cut) => {
                busy.place.worker.counters.cut(cut);
                break Err(BodyError::Closed);
            }
        }
    };
    sender.end(end);
}

/// How long a client that still sends has to notice the response, before its stream is reset.
const NOTICE: Duration = Duration::from_secs(2);

/// Content without a reader.
pub(super) struct Unread {
    pub(super) limits: Rc<Limits>,
    pub(super) busy: Busy,
    /// Ends with the response.
    pub(super) responding: oneshot::Receiver<Infallible>,
}

impl Unread {
    /// Discards unread content, so that the client can finish, up to a limit; then holds it back.
    ///
    /// The stream is reset no earlier than a while after the response: clients that get both at once report the reset
    /// alone (RFC 9113, section 8.1). A client that has the response and sends no more is not waited for any longer.
    pub(super) async fn discard(mut self, mut stream: RecvStream) {
        let (limits, worker) = (&self.limits, &self.busy.place.worker);
        let clock = worker.clock;
        let mut last = clock.now();
        let mut timer = Timer::new(last + limits.body_timeout);
        let mut left = limits.discard_bytes;
        let (mut is_too_much, mut is_responded) = (false, false);
        let mut pace = Pace::default();
        loop {
            let piece = poll_fn(|cx| {
                if !is_responded && Pin::new(&mut self.responding).poll(cx).is_ready() {
                    (is_responded, last) = (true, clock.now());
                }
                if let Poll::Ready(piece) = stream.poll_data(cx) {
                    return Poll::Ready(piece);
                }
                if is_responded {
                    let too_slow = pace.deadline(last, limits.body_timeout, limits.body_rate);
                    let noticed = last + NOTICE;
                    let deadline = too_slow.map_or(noticed, |it| it.min(noticed));
                    return timer.poll_passed(cx, deadline, &clock).map(|()| None);
                }
                if is_too_much {
                    // It is the response that is waited for.
                    return Poll::Pending;
                }
                let (deadline, cut) = sooner(
                    (last + limits.body_timeout, Cut::BodyTimeout),
                    pace.deadline(last, limits.body_timeout, limits.body_rate),
                    Cut::BodyRate,
                );
                timer.poll_passed(cx, deadline, &clock).map(|()| {
                    worker.counters.cut(cut);
                    None
                })
            })
            .await;
            let Some(Ok(piece)) = piece else {
                return;
            };
            let Some(rest) = left
                .checked_sub(piece.len() as u64)
                .filter(|_| !is_too_much)
            else {
                // What is in the window already may come; nothing is let go, so no more does.
                is_too_much = true;
                continue;
            };
            left = rest;
            last = clock.now();
            pace.took(piece.len());
            if stream.flow_control().release_capacity(piece.len()).is_err() {
                return;
            }
        }
    }
}
