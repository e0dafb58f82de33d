//! Content that is sent no faster than at a rate.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use tokio::time::Sleep;

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::{Response, ResponseBody, StreamError};

/// How fast the content of each response is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bandwidth {
    /// Bytes per second.
    pub rate: u64,
    /// Bytes that are sent as fast as the client takes them, before the rate holds.
    pub after: u64,
}

/// What a second at the rate has is sent in so many pieces.
const PIECES: u64 = 8;

/// Lets another action answer, and sends its content in time.
pub(super) struct Throttled {
    bandwidth: Bandwidth,
    inner: Rc<dyn Action>,
}

impl Throttled {
    pub(super) fn new(bandwidth: Bandwidth, inner: Rc<dyn Action>) -> Self {
        Self { bandwidth, inner }
    }
}

impl Action for Throttled {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let bandwidth = self.bandwidth;
        let answer = self.inner.handle(request);
        answer.map(move |response| throttled(response, bandwidth))
    }

    fn methods(&self) -> Option<&'static str> {
        self.inner.methods()
    }
}

fn throttled(mut response: Response, bandwidth: Bandwidth) -> Response {
    // A second's bytes leave at once.
    let at_once = bandwidth.after.saturating_add(bandwidth.rate / PIECES);
    if response.length().is_some_and(|length| length <= at_once) {
        return response;
    }
    let body: Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>> = match response.take_body() {
        ResponseBody::Bytes(content) => Box::pin(Whole(content)),
        ResponseBody::File(part) => Box::pin(part),
        ResponseBody::Stream(body) => body,
        other @ (ResponseBody::Empty | ResponseBody::Announced(_)) => {
            return response.with_body(other);
        }
    };
    let paced = Paced {
        schedule: Schedule {
            bandwidth,
            begun: SystemClock.now(),
            sent: 0,
        },
        body,
        rest: Bytes::new(),
        wait: None,
    };
    response.with_body(ResponseBody::Stream(Box::pin(paced)))
}

/// Content that is there as a whole.
struct Whole(Bytes);

impl Body for Whole {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let whole = std::mem::take(&mut self.0);
        Poll::Ready((!whole.is_empty()).then(|| Ok(Frame::data(whole))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// When how much may be sent.
#[derive(Debug)]
struct Schedule {
    bandwidth: Bandwidth,
    begun: Instant,
    sent: u64,
}

impl Schedule {
    /// The most bytes of the next piece.
    fn piece(&self) -> usize {
        let free = self.bandwidth.after.saturating_sub(self.sent);
        let piece = (self.bandwidth.rate / PIECES).max(1).max(free);
        usize::try_from(piece).unwrap_or(usize::MAX)
    }

    /// When the next piece may be sent.
    fn due(&self) -> Instant {
        let beyond = self.sent.saturating_sub(self.bandwidth.after);
        let nanos = u128::from(beyond) * 1_000_000_000 / u128::from(self.bandwidth.rate.max(1));
        let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.begun.checked_add(time).unwrap_or(self.begun)
    }
}

/// Another body in time.
struct Paced {
    schedule: Schedule,
    body: Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>,
    /// What is there but not due.
    rest: Bytes,
    wait: Option<Pin<Box<Sleep>>>,
}

impl Body for Paced {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = &mut *self;
        if let Some(wait) = &mut this.wait {
            std::task::ready!(wait.as_mut().poll(context));
            this.wait = None;
        }
        if this.rest.is_empty() {
            match std::task::ready!(this.body.as_mut().poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return Poll::Ready(other),
            }
        }
        let length = this.rest.len().min(this.schedule.piece());
        let piece = this.rest.split_to(length);
        this.schedule.sent += length as u64;
        let due = this.schedule.due();
        let is_last = this.rest.is_empty() && this.body.is_end_stream();
        if !is_last && due > SystemClock.now() {
            this.wait = Some(Box::pin(tokio::time::sleep_until(due.into())));
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.body.size_hint();
        inner
            .exact()
            .map_or_else(SizeHint::new, |inner| SizeHint::with_exact(inner + rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_is_free_and_the_rest_takes_its_time() {
        let begun = SystemClock.now();
        let mut schedule = Schedule {
            bandwidth: Bandwidth {
                rate: 800,
                after: 1000,
            },
            begun,
            sent: 0,
        };
        assert_eq!((schedule.piece(), schedule.due()), (1000, begun));
        schedule.sent = 1000;
        assert_eq!((schedule.piece(), schedule.due()), (100, begun));
        schedule.sent = 1800;
        assert_eq!(schedule.due(), begun + Duration::from_secs(1));
        schedule.bandwidth.rate = 0;
        assert_eq!(schedule.piece(), 1);
    }
}
