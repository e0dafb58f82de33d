//! The content of a request on its way to a service that may read it on any thread.
//!
//! [`RequestBody`] stays on its worker and has no lock; services of tower want content that is `Send`. A [`Pump`] on the
//! worker hands it over, frame by frame, as the service asks for them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::message::body::{BodyError, RequestBody};

/// The content of a request, as a service gets it.
#[derive(Debug)]
pub struct SendBody {
    /// Absent if there is no content.
    bridge: Option<Arc<Bridge>>,
    hint: SizeHint,
}

/// State that the worker and the reader share: one frame.
#[derive(Debug, Default)]
struct Bridge(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    frame: Option<Result<Frame<Bytes>, BodyError>>,
    /// No further frame comes.
    is_over: bool,
    /// The reader has requested a frame.
    is_wanted: bool,
    /// The reader is gone.
    is_abandoned: bool,
    reader: Option<Waker>,
    pump: Option<Waker>,
}

impl Bridge {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands the content of one request over; it has to be polled for as long as the service may read.
#[derive(Debug)]
pub(super) struct Pump {
    /// Until its end.
    body: Option<RequestBody>,
    bridge: Arc<Bridge>,
}

impl SendBody {
    /// The body that a service reads, and the pump that fills it.
    pub(super) fn from_request_body(body: RequestBody) -> (Self, Option<Pump>) {
        if body.is_end_stream() {
            let hint = SizeHint::with_exact(0);
            return (Self { bridge: None, hint }, None);
        }
        let bridge = Arc::<Bridge>::default();
        let reader = Self {
            bridge: Some(Arc::clone(&bridge)),
            hint: body.size_hint(),
        };
        let body = Some(body);
        (reader, Some(Pump { body, bridge }))
    }
}

impl Body for SendBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(bridge) = &self.bridge else {
            return Poll::Ready(None);
        };
        let mut state = bridge.state();
        let frame = state.frame.take();
        if frame.is_none() && !state.is_over {
            state.is_wanted = true;
            state.reader = Some(cx.waker().clone());
            if let Some(pump) = state.pump.take() {
                pump.wake();
            }
            return Poll::Pending;
        }
        drop(state);
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
            && let Some(left) = self.hint.exact()
        {
            self.hint.set_exact(left.saturating_sub(data.len() as u64));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.bridge.as_ref().is_none_or(|bridge| {
            let state = bridge.state();
            state.is_over && state.frame.is_none()
        })
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

impl Drop for SendBody {
    fn drop(&mut self) {
        if let Some(bridge) = &self.bridge {
            let mut state = bridge.state();
            state.is_abandoned = true;
            if let Some(pump) = state.pump.take() {
                pump.wake();
            }
        }
    }
}

impl Pump {
    /// Hands over requested frames that are ready; the task is woken when there is more to be done.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        while let Some(body) = &mut self.body {
            let mut state = self.bridge.state();
            if state.is_abandoned {
                drop(state);
                self.body = None;
                return;
            }
            state.pump = Some(cx.waker().clone());
            if !state.is_wanted {
                return;
            }
            drop(state);
            let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) else {
                return;
            };
            if !matches!(frame, Some(Ok(_))) {
                self.body = None;
            }
            let mut state = self.bridge.state();
            state.is_over = self.body.is_none();
            state.frame = frame;
            state.is_wanted = false;
            if let Some(reader) = state.reader.take() {
                reader.wake();
            }
        }
    }
}

/// Content that is not handed over any more never looks whole.
impl Drop for Pump {
    fn drop(&mut self) {
        if self.body.is_none() {
            return;
        }
        let mut state = self.bridge.state();
        state.is_over = true;
        state.frame.get_or_insert(Err(BodyError::Closed));
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(body: &mut SendBody) -> Poll<Option<Result<Bytes, BodyError>>> {
        let mut cx = Context::from_waker(Waker::noop());
        let frame = Pin::new(body).poll_frame(&mut cx);
        frame.map(|frame| frame.map(|frame| frame.map(|it| it.into_data().unwrap_or_default())))
    }

    fn is_send<T: Send>(_: &T) {}

    #[test]
    fn frames_come_one_by_one_as_they_are_requested() {
        let (sender, body) = RequestBody::channel(Some(5));
        let (mut reader, pump) = SendBody::from_request_body(body);
        is_send(&reader);
        let mut pump = pump.unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(reader.size_hint().exact(), Some(5));
        pump.poll(&mut cx);
        assert!(
            sender.poll_wanted(&mut cx).is_pending(),
            "nothing was requested yet"
        );
        assert!(poll(&mut reader).is_pending());
        pump.poll(&mut cx);
        assert!(sender.poll_wanted(&mut cx).is_ready());
        sender.push_slice(b"hello");
        pump.poll(&mut cx);
        let hello = Bytes::from_static(b"hello");
        assert_eq!(poll(&mut reader), Poll::Ready(Some(Ok(hello))));
        assert_eq!(reader.size_hint().exact(), Some(0));
        sender.end(Ok(None));
        assert!(poll(&mut reader).is_pending());
        pump.poll(&mut cx);
        assert_eq!(poll(&mut reader), Poll::Ready(None));
        assert!(reader.is_end_stream());
    }

    #[test]
    fn either_side_may_go() {
        let (sender, body) = RequestBody::channel(None);
        let (mut reader, pump) = SendBody::from_request_body(body);
        drop(pump);
        let closed = Some(Err(BodyError::Closed));
        assert_eq!(poll(&mut reader), Poll::Ready(closed));
        assert!(sender.is_abandoned());

        let (sender, body) = RequestBody::channel(None);
        let (reader, pump) = SendBody::from_request_body(body);
        drop(reader);
        pump.unwrap().poll(&mut Context::from_waker(Waker::noop()));
        assert!(sender.is_abandoned());

        let (reader, pump) = SendBody::from_request_body(RequestBody::empty());
        assert!(reader.is_end_stream() && pump.is_none());
    }
}
