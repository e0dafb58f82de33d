//! Content on its way: of requests to the server, of responses to the client.

use std::cell::{Cell, RefCell};
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use plimsoll_client::forward::Exchange;
use plimsoll_model::Failure;
use plimsoll_server::{BodyError, RequestBody, StreamError};
use tokio::time::Sleep;

use crate::upstream::ServerUse;

/// The content of a request, for as many attempts as are made before anything of it is read; clones are the same content.
#[derive(Debug, Clone)]
pub(super) enum Upload {
    /// There is none.
    Empty,
    Stream(Rc<Shared>),
}

#[derive(Debug)]
pub(super) struct Shared {
    body: RefCell<RequestBody>,
    is_touched: Cell<bool>,
}

impl Upload {
    pub(super) fn new(body: RequestBody) -> Self {
        if body.is_end_stream() {
            return Self::Empty;
        }
        Self::Stream(Rc::new(Shared {
            body: RefCell::new(body),
            is_touched: Cell::new(false),
        }))
    }

    /// Whether something of it was read, so that it cannot be sent again.
    pub(super) fn is_touched(&self) -> bool {
        match self {
            Self::Empty => false,
            Self::Stream(shared) => shared.is_touched.get(),
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Self::Stream(shared) = self.get_mut() else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(&mut *shared.body.borrow_mut()).poll_frame(context);
        if polled.is_ready() {
            shared.is_touched.set(true);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Stream(shared) => shared.body.borrow().is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Stream(shared) => shared.body.borrow().size_hint(),
        }
    }
}

/// Content that is taken at once, if it is there, to leave with its head.
const READY_BYTES: usize = 64 * 1024;

/// The content of a response. Dropping it cancels the exchange.
pub(super) struct Download {
    exchange: Exchange<Upload>,
    /// Frames that were there with the head.
    first: Vec<Frame<Bytes>>,
    /// Nothing follows those.
    is_done: bool,
    /// Counts as in flight until the end.
    _server: ServerUse,
    idle: Duration,
    /// Set only while the server is silent.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Download {
    pub(super) fn new(exchange: Exchange<Upload>, server: ServerUse, idle: Duration) -> Self {
        Self {
            exchange,
            first: Vec::new(),
            is_done: false,
            _server: server,
            idle,
            timer: None,
        }
    }

    /// The content, if all of it is there; otherwise it is to be streamed.
    pub(super) async fn take_ready(&mut self) -> Result<Option<Bytes>, Failure> {
        poll_fn(|context| Poll::Ready(self.poll_ready(context))).await
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Result<Option<Bytes>, Failure> {
        let mut bytes = 0;
        while bytes < READY_BYTES {
            match self.exchange.poll_frame(context) {
                Poll::Pending => return Ok(None),
                Poll::Ready(Some(Ok(frame))) => {
                    bytes += frame.data_ref().map_or(0, Bytes::len);
                    self.first.push(frame);
                }
                Poll::Ready(Some(Err(incomplete))) => return Err(incomplete.failure),
                Poll::Ready(None) => {
                    self.is_done = true;
                    return Ok(self.whole());
                }
            }
        }
        Ok(None)
    }

    /// All frames as one piece; `None` if there are trailers.
    fn whole(&mut self) -> Option<Bytes> {
        if !self.first.iter().all(Frame::is_data) {
            return None;
        }
        let mut pieces = std::mem::take(&mut self.first)
            .into_iter()
            .filter_map(|frame| frame.into_data().ok());
        let first = pieces.next().unwrap_or_default();
        let Some(second) = pieces.next() else {
            return Some(first);
        };
        let mut whole = BytesMut::from(first);
        whole.extend_from_slice(&second);
        for piece in pieces {
            whole.extend_from_slice(&piece);
        }
        Some(whole.freeze())
    }

    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(self.idle)));
        timer.as_mut().poll(context)
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let download = self.get_mut();
        if !download.first.is_empty() {
            return Poll::Ready(Some(Ok(download.first.remove(0))));
        }
        if download.is_done {
            return Poll::Ready(None);
        }
        match download.exchange.poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                download.timer = None;
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(incomplete))) => {
                Poll::Ready(Some(Err(Box::new(incomplete.failure))))
            }
            Poll::Ready(None) => {
                download.is_done = true;
                Poll::Ready(None)
            }
            Poll::Pending => match download.poll_silence(context) {
                Poll::Ready(()) => {
                    Poll::Ready(Some(Err("the server was silent for too long".into())))
                }
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_done && self.first.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        // An exact length would have HTTP/1 announce it, and then there is no room for trailers.
        if self.first.iter().any(Frame::is_trailers) {
            return SizeHint::default();
        }
        let ready: usize = self
            .first
            .iter()
            .filter_map(Frame::data_ref)
            .map(Bytes::len)
            .sum();
        let left = if self.is_done {
            Some(0)
        } else {
            self.exchange.content_left()
        };
        left.map_or_else(SizeHint::default, |left| {
            SizeHint::with_exact(left + ready as u64)
        })
    }
}
