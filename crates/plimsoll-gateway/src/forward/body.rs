//! Content on its way: of requests to the server, of responses to the client.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use plimsoll_client::forward::Exchange;
use plimsoll_model::{Clock as _, Failure, FailureKind, Phase, Side};
use plimsoll_server::{BodyError, RequestBody, StreamError};
use plimsoll_wire::SystemClock;
use smallvec::SmallVec;
use tokio::time::Sleep;

use super::grpc;
use super::mirror::CopySender;
use crate::deadline::{Deadline, Deadlines};
use crate::traces::ActiveSpan;
use crate::upstream::{Permit, ServerUse, Timeout, Upstream};

/// The content of a request, for as many attempts as are made before anything of it is read; clones are the same content.
#[derive(Debug, Clone)]
pub(super) enum Upload {
    /// There is none.
    Empty,
    Stream(Rc<Shared>),
    /// All of it was read; each clone begins at its start.
    Whole(Whole),
}

/// Content that is held in memory.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    content: Bytes,
    trailers: Option<Box<HeaderMap>>,
}

/// Why content could not be read whole.
#[derive(Debug)]
pub(super) enum Unread {
    TooLong,
    Broken,
}

#[derive(Debug)]
pub(super) struct Shared {
    body: RefCell<RequestBody>,
    is_touched: Cell<bool>,
    /// Whether the server's side wants content that the client has not sent yet.
    is_awaited: Cell<bool>,
    /// Frames that went on to the server, modulo 2³².
    taken: Cell<u32>,
    /// Bytes that may still come.
    left: Cell<u64>,
    is_too_long: Cell<bool>,
    /// Destination of a copy, until its end.
    copy: RefCell<Option<CopySender>>,
}

impl Upload {
    /// - `limit`: bytes that it may have.
    /// - `copy`: takes all of it too.
    pub(super) fn new(body: RequestBody, limit: Option<u64>, copy: Option<CopySender>) -> Self {
        if body.is_end_stream() {
            return Self::Empty;
        }
        Self::Stream(Rc::new(Shared {
            body: RefCell::new(body),
            is_touched: Cell::new(false),
            is_awaited: Cell::new(false),
            taken: Cell::new(0),
            left: Cell::new(limit.unwrap_or(u64::MAX)),
            is_too_long: Cell::new(false),
            copy: RefCell::new(copy),
        }))
    }

    /// Whether it was longer than its limit.
    pub(super) fn is_too_long(&self) -> bool {
        match self {
            Self::Empty | Self::Whole(_) => false,
            Self::Stream(shared) => shared.is_too_long.get(),
        }
    }

    /// How far it is, for content that the client may still be sending.
    pub(super) fn progress(&self) -> Option<UploadProgress> {
        match self {
            Self::Empty | Self::Whole(_) => None,
            Self::Stream(shared) => Some(UploadProgress {
                content: Rc::clone(shared),
                seen: 0,
            }),
        }
    }

    /// Whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Whether something of it was read, so that it cannot be sent again.
    pub(super) fn is_touched(&self) -> bool {
        match self {
            Self::Empty | Self::Whole(_) => false,
            Self::Stream(shared) => shared.is_touched.get(),
        }
    }
}

/// What has become of content that a client sends.
pub(super) struct UploadProgress {
    content: Rc<Shared>,
    seen: u32,
}

impl UploadProgress {
    /// Whether a piece went on to the server, or the content ended, since this was asked last.
    pub(super) fn has_moved(&mut self) -> bool {
        let taken = self.content.taken.get();
        std::mem::replace(&mut self.seen, taken) != taken
    }

    /// Whether the server waits for the client and not the client for the server.
    pub(super) fn awaits_client(&self) -> bool {
        self.content.is_awaited.get()
    }
}

impl Upload {
    /// Reads all of it into memory.
    ///
    /// - `limit`: bytes that it may have.
    pub(super) async fn read_whole(mut self, limit: u64) -> Result<Self, Unread> {
        let mut content = BytesMut::new();
        let mut trailers = None;
        while let Some(frame) = poll_fn(|context| Pin::new(&mut self).poll_frame(context)).await {
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => {
                    if (content.len() + data.len()) as u64 > limit {
                        return Err(Unread::TooLong);
                    }
                    content.extend_from_slice(&data);
                }
                Ok(Err(frame)) => trailers = frame.into_trailers().ok().map(Box::new),
                Err(_) if self.is_too_long() => return Err(Unread::TooLong),
                Err(_) => return Err(Unread::Broken),
            }
        }
        Ok(Self::Whole(Whole {
            content: content.freeze(),
            trailers,
        }))
    }

    /// Leaves out trailers of what was read whole: its length is announced then.
    pub(super) fn without_trailers(mut self) -> Self {
        if let Self::Whole(whole) = &mut self {
            whole.trailers = None;
        }
        self
    }
}

impl Whole {
    fn next(&mut self) -> Option<Frame<Bytes>> {
        if !self.content.is_empty() {
            return Some(Frame::data(std::mem::take(&mut self.content)));
        }
        self.trailers.take().map(|it| Frame::trailers(*it))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let shared = match self.get_mut() {
            Self::Empty => return Poll::Ready(None),
            Self::Whole(whole) => return Poll::Ready(whole.next().map(Ok)),
            Self::Stream(shared) => shared,
        };
        let polled = Pin::new(&mut *shared.body.borrow_mut()).poll_frame(context);
        match &polled {
            Poll::Pending => {
                shared.is_awaited.set(true);
                return Poll::Pending;
            }
            Poll::Ready(Some(Ok(frame))) => {
                if !shared.copy_frame(frame) {
                    return Poll::Ready(Some(Err(BodyError::Refused)));
                }
            }
            Poll::Ready(None) => shared.end_copy(),
            Poll::Ready(Some(Err(_))) => drop(shared.copy.take()),
        }
        shared.is_touched.set(true);
        shared.is_awaited.set(false);
        shared.taken.set(shared.taken.get().wrapping_add(1));
        polled
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole(whole) => whole.content.is_empty() && whole.trailers.is_none(),
            Self::Stream(shared) => shared.body.borrow().is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            // An exact length would leave no room for trailers over HTTP/1.
            Self::Whole(whole) if whole.trailers.is_some() => SizeHint::default(),
            Self::Whole(whole) => SizeHint::with_exact(whole.content.len() as u64),
            Self::Stream(shared) => shared.body.borrow().size_hint(),
        }
    }
}

impl Shared {
    /// Counts and copies a frame; whether it is within the limit.
    fn copy_frame(&self, frame: &Frame<Bytes>) -> bool {
        let Some(data) = frame.data_ref() else {
            return true;
        };
        let Some(left) = self.left.get().checked_sub(data.len() as u64) else {
            self.is_touched.set(true);
            self.is_too_long.set(true);
            self.copy.take();
            return false;
        };
        self.left.set(left);
        if let Some(copy) = &*self.copy.borrow() {
            copy.push(data);
        }
        // A body of known length may not be polled once more.
        if self.body.borrow().is_end_stream() {
            self.end_copy();
        }
        true
    }

    fn end_copy(&self) {
        if let Some(copy) = self.copy.take() {
            copy.end();
        }
    }
}

/// Content that is taken at once, if it is there, to leave with its head.
const READY_BYTES: usize = 64 * 1024;

/// A request counts as in flight as long as these exist.
pub(super) type InFlight = (ServerUse, Option<Permit>, Option<ActiveSpan>);

/// What the content of a response is held to.
pub(super) struct DownloadLimits {
    /// When the whole exchange has to be over.
    pub(super) total: Option<Rc<Deadline>>,
    /// Between two pieces.
    pub(super) idle: Rc<Deadlines>,
    pub(super) bytes: Option<u64>,
}

/// The content of a response. Dropping it cancels the exchange.
pub(super) struct Download {
    exchange: Exchange<Upload>,
    /// Frames that were there with the head.
    first: SmallVec<[Frame<Bytes>; 1]>,
    /// Nothing follows those.
    is_done: bool,
    /// Counts as in flight until the end.
    in_flight: InFlight,
    upstream: Rc<Upstream>,
    limits: DownloadLimits,
    /// Bytes that may still come.
    left: u64,
    /// It is the response to a call of gRPC, which ends with a status.
    is_call: bool,
    /// The deadline of the call.
    call_ends: Option<Pin<Box<Sleep>>>,
    /// Begun only while the server is silent.
    silence: Option<Deadline>,
}

impl Download {
    pub(super) fn new(
        exchange: Exchange<Upload>,
        in_flight: InFlight,
        upstream: &Rc<Upstream>,
        limits: DownloadLimits,
    ) -> Self {
        Self {
            exchange,
            first: SmallVec::new(),
            is_done: false,
            in_flight,
            upstream: Rc::clone(upstream),
            left: limits.bytes.unwrap_or(u64::MAX),
            limits,
            is_call: false,
            call_ends: None,
            silence: None,
        }
    }

    /// Has the response end with a status of gRPC once its time is over.
    ///
    /// - `call_ends`: the deadline of the call itself.
    pub(super) fn is_call(&mut self, call_ends: Option<Instant>) {
        self.is_call = true;
        self.call_ends = call_ends.map(|end| Box::pin(tokio::time::sleep_until(end.into())));
    }

    /// The content, if all of it is there; otherwise it is to be streamed.
    pub(super) fn take_ready(
        &mut self,
    ) -> impl Future<Output = Result<Option<Bytes>, Failure>> + use<'_> {
        poll_fn(|context| Poll::Ready(self.poll_ready(context)))
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Result<Option<Bytes>, Failure> {
        let mut bytes = 0;
        while bytes < READY_BYTES {
            match self.exchange.poll_frame(context) {
                Poll::Pending => return Ok(None),
                Poll::Ready(Some(Ok(frame))) => {
                    bytes += frame.data_ref().map_or(0, Bytes::len);
                    if !self.count(&frame) {
                        return Err(too_long());
                    }
                    self.first.push(frame);
                }
                Poll::Ready(Some(Err(incomplete))) => {
                    return Err(self.broken_off(incomplete.failure));
                }
                Poll::Ready(None) => {
                    self.is_done = true;
                    return Ok(self.whole());
                }
            }
        }
        Ok(None)
    }

    /// The failure that ended the response, which is noted of the server unless it was the client's.
    fn broken_off(&self, failure: Failure) -> Failure {
        if failure.side != Side::Ours {
            self.upstream
                .broke_off(&self.in_flight.0, SystemClock.now());
        }
        failure
    }

    /// Whether the frame is within the limit.
    fn count(&mut self, frame: &Frame<Bytes>) -> bool {
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        let left = self.left.checked_sub(length);
        self.left = left.unwrap_or_default();
        left.is_some()
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

    /// The end of a call whose time is over.
    fn end_call(&mut self) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        self.is_done = true;
        Poll::Ready(Some(Ok(Frame::trailers(grpc::late_trailers()))))
    }

    /// Whether the time of the call is over. Checked before every piece, as `is_over` is.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let call_ends = self.call_ends.as_mut();
        call_ends.is_some_and(|end| end.as_mut().poll(context).is_ready())
    }

    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let silence = self
            .silence
            .get_or_insert_with(|| self.limits.idle.begin(SystemClock.now()));
        silence.poll_over(context)
    }

    /// Whether the exchange has taken too long as a whole. Checked before every piece: a server that always has one ready
    /// would never be late otherwise.
    fn is_over(&self, context: &mut Context<'_>) -> bool {
        let total = self.limits.total.as_ref();
        total.is_some_and(|total| total.poll_over(context).is_ready())
    }

    /// The failure that cuts the response, once a time limit has passed: the client must not take it for complete.
    fn cut(&self, timeout: Timeout, reason: &'static str) -> Result<Frame<Bytes>, StreamError> {
        self.upstream.count_timeout(timeout);
        Err(reason.into())
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
        if download.is_over(context) {
            if download.is_call {
                download.upstream.count_timeout(Timeout::Total);
                return download.end_call();
            }
            return Poll::Ready(Some(
                download.cut(Timeout::Total, "the exchange took too long"),
            ));
        }
        if download.is_late(context) {
            return download.end_call();
        }
        match download.exchange.poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                download.silence = None;
                if !download.count(&frame) {
                    return Poll::Ready(Some(Err(Box::new(too_long()))));
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(incomplete))) => {
                let failure = download.broken_off(incomplete.failure);
                Poll::Ready(Some(Err(Box::new(failure))))
            }
            Poll::Ready(None) => {
                download.is_done = true;
                Poll::Ready(None)
            }
            Poll::Pending => match download.poll_silence(context) {
                Poll::Ready(()) => {
                    // Not noted of the server: an event stream may have nothing to say.
                    let reason = "the server was silent for too long";
                    Poll::Ready(Some(download.cut(Timeout::Idle, reason)))
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

fn too_long() -> Failure {
    Failure::new(Phase::Receive, FailureKind::TooLarge)
        .on(Side::Theirs)
        .because("the response is longer than its limit".to_owned())
}
