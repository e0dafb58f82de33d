//! The body of a request while it is sent.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use plimsoll_model::{Failure, FailureKind, Phase, Side};
use plimsoll_wire::h1::BodyLength;
use tokio::time::{Instant, Sleep};

use super::head::{Head, TrailerRule};

/// Time a body waits for `100 Continue` before it is sent without (RFC 9110, section 10.1.1).
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// A body, and how much of it is still to come.
#[derive(Debug)]
pub(super) struct Upload<B> {
    body: B,
    /// The length that the head announces.
    length: BodyLength,
    /// Bytes of a known length that have not come yet.
    left: u64,
    /// Trailers can follow a body of a known length.
    keeps_trailers: bool,
    /// The trailers that may be sent.
    trailers: TrailerRule,
    is_done: bool,
    is_touched: bool,
    /// The body waits for `100 Continue` until this fires.
    waiting: Option<Pin<Box<Sleep>>>,
}

/// A part of a body.
#[derive(Debug)]
pub(super) enum BodyPart {
    /// Content, never empty.
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin> Upload<B> {
    /// - `head`: that of the request. Some methods announce a length of zero rather than none.
    /// - `keeps_trailers`: they can follow a body of a known length, too, which HTTP/1 does not allow.
    /// - `is_tunnel`: what follows the head is not a body.
    /// - `waits`: the body is sent when [`proceed`](Self::proceed) is called, or after a second; must be called within
    ///   a runtime then.
    pub(super) fn new(
        body: B,
        head: &Head<'_>,
        keeps_trailers: bool,
        is_tunnel: bool,
        waits: Option<Instant>,
    ) -> Self {
        let length = match body.size_hint().exact() {
            _ if is_tunnel => BodyLength::None,
            Some(0) if matches!(head.method, "POST" | "PUT" | "PATCH") => BodyLength::Known(0),
            Some(0) => BodyLength::None,
            Some(length) => BodyLength::Known(length),
            None if body.is_end_stream() => BodyLength::None,
            None => BodyLength::Chunked,
        };
        let left = match length {
            BodyLength::Known(length) => length,
            BodyLength::None | BodyLength::Chunked => 0,
        };
        let is_done = matches!(length, BodyLength::None | BodyLength::Known(0));
        let sleep = |now| Box::pin(tokio::time::sleep_until(now + CONTINUE_TIMEOUT));
        Self {
            body,
            length,
            left,
            keeps_trailers,
            trailers: if !is_done && (keeps_trailers || length == BodyLength::Chunked) {
                head.trailer_rule()
            } else {
                TrailerRule::default()
            },
            is_done,
            is_touched: false,
            waiting: waits.filter(|_| !is_done).map(sleep),
        }
    }

    /// The length that the head announces.
    pub(super) fn length(&self) -> BodyLength {
        self.length
    }

    /// Whether the end was reached.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Sends a body that waits for `100 Continue`.
    pub(super) fn proceed(&mut self) {
        self.waiting = None;
    }

    /// Whether it waits for `100 Continue`.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// The body, if none of it was read.
    pub(super) fn into_untouched(self) -> Option<B> {
        (!self.is_touched).then_some(self.body)
    }

    /// The next part; must not be called behind the end.
    pub(super) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BodyPart, Failure>> {
        if self.is_done {
            return Poll::Ready(Ok(BodyPart::End));
        }
        if let Some(sleep) = &mut self.waiting {
            ready!(sleep.as_mut().poll(context));
            self.waiting = None;
        }
        loop {
            self.is_touched = true;
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
                self.is_done = true;
                return Poll::Ready(if self.left == 0 {
                    Ok(BodyPart::End)
                } else {
                    Err(broken("is shorter than announced"))
                });
            };
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => {
                    self.is_done = true;
                    return Poll::Ready(Err(broken(&format!("failed: {}", error.into()))));
                }
            };
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Poll::Ready(self.counted(data)),
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers()
                        && (self.keeps_trailers || self.length == BodyLength::Chunked)
                    {
                        self.is_done = true;
                        let trailers = self.trailers.sent(trailers);
                        return Poll::Ready(Ok(trailers.map_or(BodyPart::End, BodyPart::Trailers)));
                    }
                }
            }
        }
    }

    fn counted(&mut self, data: Bytes) -> Result<BodyPart, Failure> {
        if let BodyLength::Known(_) = self.length {
            let Some(left) = self.left.checked_sub(data.len() as u64) else {
                self.is_done = true;
                return Err(broken("is longer than announced"));
            };
            self.left = left;
            self.is_done = left == 0 && (!self.keeps_trailers || self.body.is_end_stream());
        }
        Ok(BodyPart::Data(data))
    }
}

/// The request cannot be completed, which is not the server's fault.
fn broken(cause: &str) -> Failure {
    Failure::new(Phase::Send, FailureKind::Aborted)
        .on(Side::Ours)
        .because(format!("the request body {cause}"))
}
