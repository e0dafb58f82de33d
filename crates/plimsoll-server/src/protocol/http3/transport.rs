//! quinn as the `h3` crate wants it, with a tap on every stream.
//!
//! A stream that is dropped before its response is whole is reset, so that no client takes a part for all of it.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use plimsoll_wire::h3::{Frames, Rewritten, with_protocol};
use quinn::{ReadError, VarInt, WriteError};

use super::tap::Tap;
use crate::counters::Cut;

/// The protocol that stands for `websocket` within the `h3` crate, which has no constant for it; requests that came with it
/// are not upgraded.
const STAND_IN: &[u8] = b"connect-udp";

type Waiting<T> = Pin<Box<dyn Future<Output = T>>>;
type Accepting = Waiting<Result<(quinn::SendStream, quinn::RecvStream), quinn::ConnectionError>>;

/// A connection of QUIC.
pub(super) struct Transport {
    opener: Opener,
    tap: Rc<Tap>,
    requests: Option<Accepting>,
    others: Option<Waiting<Result<quinn::RecvStream, quinn::ConnectionError>>>,
}

impl Transport {
    pub(super) fn new(quic: quinn::Connection, tap: Rc<Tap>) -> Self {
        Self {
            opener: Opener {
                quic,
                opening: None,
                tap: Rc::clone(&tap),
            },
            tap,
            requests: None,
            others: None,
        }
    }
}

impl quic::Connection<Bytes> for Transport {
    type RecvStream = Receiver;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Receiver, ConnectionErrorIncoming>> {
        let quic = &self.opener.quic;
        let others = self.others.get_or_insert_with(|| {
            let quic = quic.clone();
            Box::pin(async move { quic.accept_uni().await })
        });
        let accepted = ready!(others.as_mut().poll(cx));
        self.others = None;
        let stream = accepted.map_err(connection_error)?;
        let most = u64::from(self.tap.limits().header_list_bytes);
        Poll::Ready(Ok(Receiver {
            stream,
            frames: Frames::of_unidirectional(most),
            tap: Rc::clone(&self.tap),
            state: None,
            head: None,
            is_over: false,
        }))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bidirectional, ConnectionErrorIncoming>> {
        loop {
            let quic = &self.opener.quic;
            let requests = self.requests.get_or_insert_with(|| {
                let quic = quic.clone();
                Box::pin(async move { quic.accept_bi().await })
            });
            let accepted = ready!(requests.as_mut().poll(cx));
            self.requests = None;
            let (mut send, mut receive) = accepted.map_err(connection_error)?;
            let state = Rc::new(StreamState {
                stopped: RefCell::new(Box::pin(send.stopped())),
                is_reset: Cell::new(false),
                must_finish: Cell::new(false),
                is_websocket: Cell::new(false),
                is_malformed: Cell::new(false),
            });
            if !self.tap.began(u64::from(send.id()), &state) {
                // The rejection came in time, so the client may send it again elsewhere (RFC 9114, section 5.2).
                let code = code(Code::H3_REQUEST_REJECTED);
                send.reset(code).ok();
                receive.stop(code).ok();
                continue;
            }
            // A head that is compressed is not much longer than one that is not.
            let most = 2 * u64::from(self.tap.limits().header_list_bytes);
            return Poll::Ready(Ok(Bidirectional {
                send: Sender {
                    stream: send,
                    writing: None,
                    tap: Rc::clone(&self.tap),
                    state: Some(Rc::clone(&state)),
                    is_over: false,
                },
                receive: Receiver {
                    stream: receive,
                    frames: Frames::of_request(most),
                    tap: Rc::clone(&self.tap),
                    state: Some(state),
                    head: Some(Vec::new()),
                    is_over: false,
                },
            }));
        }
    }

    fn opener(&self) -> Opener {
        Opener {
            quic: self.opener.quic.clone(),
            opening: None,
            tap: Rc::clone(&self.tap),
        }
    }
}

impl quic::OpenStreams<Bytes> for Transport {
    type BidiStream = Bidirectional;
    type SendStream = Sender;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bidirectional, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Sender, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.opener.close(code, reason);
    }
}

/// Opens streams of the server's own.
pub(super) struct Opener {
    quic: quinn::Connection,
    opening: Option<Waiting<Result<quinn::SendStream, quinn::ConnectionError>>>,
    tap: Rc<Tap>,
}

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = Bidirectional;
    type SendStream = Sender;

    fn poll_open_bidi(
        &mut self,
        _cx: &mut Context<'_>,
    ) -> Poll<Result<Bidirectional, StreamErrorIncoming>> {
        let reason = "servers open no streams for requests";
        Poll::Ready(Err(StreamErrorIncoming::Unknown(reason.into())))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Sender, StreamErrorIncoming>> {
        let quic = &self.quic;
        let opening = self.opening.get_or_insert_with(|| {
            let quic = quic.clone();
            Box::pin(async move { quic.open_uni().await })
        });
        let opened = ready!(opening.as_mut().poll(cx));
        self.opening = None;
        let stream = opened.map_err(|error| StreamErrorIncoming::ConnectionErrorIncoming {
            connection_error: connection_error(error),
        })?;
        Poll::Ready(Ok(Sender {
            stream,
            writing: None,
            tap: Rc::clone(&self.tap),
            state: None,
            is_over: false,
        }))
    }

    fn close(&mut self, reason: Code, text: &[u8]) {
        self.quic.close(code(reason), text);
    }
}

/// The state of a request's stream, besides its bytes.
pub(super) struct StreamState {
    stopped: RefCell<Waiting<Result<Option<VarInt>, quinn::StoppedError>>>,
    is_reset: Cell<bool>,
    must_finish: Cell<bool>,
    /// Its head has `:protocol` of this value.
    is_websocket: Cell<bool>,
    /// Its pseudo-fields break the rules.
    is_malformed: Cell<bool>,
}

impl StreamState {
    /// From now on the stream is whole only once it is finished.
    pub(super) fn begin(&self) {
        self.must_finish.set(true);
    }

    /// Whether the client took it back.
    pub(super) fn is_reset(&self) -> bool {
        self.is_reset.get()
    }

    /// Whether its pseudo-fields break the rules.
    pub(super) fn is_malformed(&self) -> bool {
        self.is_malformed.get()
    }

    /// Whether the request is to open a WebSocket (RFC 9220).
    pub(super) fn is_websocket(&self) -> bool {
        self.is_websocket.get()
    }

    /// Ready once the client has all of a finished response, or wants no more of it.
    ///
    /// Must not be called again then.
    pub(super) fn poll_over(&self, cx: &mut Context<'_>, tap: &Tap) -> Poll<()> {
        let stopped = ready!(self.stopped.borrow_mut().as_mut().poll(cx));
        if let Ok(Some(_)) = stopped {
            self.was_reset(tap);
        }
        Poll::Ready(())
    }

    /// Counts the stream as one that the client took back; once.
    fn was_reset(&self, tap: &Tap) {
        if !self.is_reset.replace(true) {
            tap.was_reset();
        }
    }
}

/// The stream of a request.
pub(super) struct Bidirectional {
    send: Sender,
    receive: Receiver,
}

impl quic::BidiStream<Bytes> for Bidirectional {
    type SendStream = Sender;
    type RecvStream = Receiver;

    fn split(self) -> (Sender, Receiver) {
        (self.send, self.receive)
    }
}

impl quic::RecvStream for Bidirectional {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.receive.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl quic::SendStream<Bytes> for Bidirectional {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

/// The receiving half of a stream.
pub(super) struct Receiver {
    stream: quinn::RecvStream,
    frames: Frames,
    tap: Rc<Tap>,
    /// Absent for streams in one direction.
    state: Option<Rc<StreamState>>,
    /// The head of a request, until it is complete.
    head: Option<Vec<u8>>,
    is_over: bool,
}

impl Receiver {
    /// The bytes that the `h3` crate may see: those of the head once it is whole, with a protocol that the crate knows.
    fn passed(&mut self, bytes: Bytes) -> Result<Option<Bytes>, StreamErrorIncoming> {
        let Some(mut head) = self.head.take() else {
            return Ok(Some(bytes));
        };
        // Usually the head comes in one piece.
        let whole = if head.is_empty() {
            bytes
        } else {
            head.extend_from_slice(&bytes);
            head.into()
        };
        Ok(match with_protocol(&whole, b"websocket", STAND_IN) {
            Rewritten::Malformed => return Err(self.malformed()),
            Rewritten::Same => Some(whole),
            Rewritten::Partial => {
                // The crate collects it too, within the same limit.
                self.head = Some(whole.into());
                None
            }
            Rewritten::Changed(rewritten) => {
                if let Some(state) = &self.state {
                    state.is_websocket.set(true);
                }
                Some(rewritten.into())
            }
        })
    }

    /// A message that is malformed is an error of its stream (RFC 9114, section 4.1.2).
    fn malformed(&mut self) -> StreamErrorIncoming {
        self.is_over = true;
        self.stream.stop(code(Code::H3_MESSAGE_ERROR)).ok();
        if let Some(state) = &self.state {
            state.is_malformed.set(true);
        }
        terminated(Code::H3_MESSAGE_ERROR)
    }

    fn look(&mut self, bytes: &[u8]) -> Result<(), StreamErrorIncoming> {
        let Ok(empty) = self.frames.scan(bytes) else {
            let code = Code::H3_EXCESSIVE_LOAD;
            self.tap.trip(Cut::Http3HeaderList, code);
            return Err(terminated(code));
        };
        self.tap.empty(empty);
        if self.frames.has_pseudo_trailers() {
            return Err(self.malformed());
        }
        Ok(())
    }
}

impl quic::RecvStream for Receiver {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let end = loop {
            // It keeps nothing between two polls but the waker, which lies with the connection.
            let read = ready!(pin!(self.stream.read_chunk(usize::MAX, true)).poll(cx));
            match read {
                Ok(Some(chunk)) => {
                    self.look(&chunk.bytes)?;
                    if let Some(bytes) = self.passed(chunk.bytes)? {
                        return Poll::Ready(Ok(Some(bytes)));
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        Poll::Ready(match end {
            Ok(()) => {
                self.is_over = true;
                if self.frames.is_between() {
                    Ok(None)
                } else {
                    // A stream that ends within a frame is incomplete (RFC 9114, section 7.1).
                    let code = Code::H3_FRAME_ERROR;
                    self.tap.trip(Cut::Http3, code);
                    Err(terminated(code))
                }
            }
            Err(error) => {
                self.is_over = true;
                Err(match error {
                    ReadError::Reset(code) => {
                        if let Some(state) = &self.state {
                            state.was_reset(&self.tap);
                        }
                        StreamErrorIncoming::StreamTerminated {
                            error_code: code.into_inner(),
                        }
                    }
                    ReadError::ConnectionLost(error) => lost(error),
                    error => StreamErrorIncoming::Unknown(Box::new(error)),
                })
            }
        })
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.is_over = true;
        let code = VarInt::from_u64(error_code).unwrap_or(VarInt::MAX);
        // It fails where nothing can come any more.
        self.stream.stop(code).ok();
    }

    fn recv_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if !self.is_over {
            // The rest was not needed (RFC 9114, section 4.1).
            self.stream.stop(code(Code::H3_NO_ERROR)).ok();
        }
    }
}

/// The sending half of a stream.
pub(super) struct Sender {
    stream: quinn::SendStream,
    writing: Option<WriteBuf<Bytes>>,
    tap: Rc<Tap>,
    /// Absent for streams in one direction.
    state: Option<Rc<StreamState>>,
    is_over: bool,
}

impl quic::SendStream<Bytes> for Sender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if self.is_malformed() {
            self.reset(Code::H3_MESSAGE_ERROR.value());
            return Poll::Ready(Err(terminated(Code::H3_MESSAGE_ERROR)));
        }
        if let Some(data) = &mut self.writing {
            while data.has_remaining() {
                let written = ready!(Pin::new(&mut self.stream).poll_write(cx, data.chunk()));
                match written {
                    Ok(written) => data.advance(written),
                    Err(error) => {
                        return Poll::Ready(Err(match error {
                            WriteError::Stopped(code) => {
                                if let Some(state) = &self.state {
                                    state.was_reset(&self.tap);
                                }
                                StreamErrorIncoming::StreamTerminated {
                                    error_code: code.into_inner(),
                                }
                            }
                            WriteError::ConnectionLost(error) => lost(error),
                            error => StreamErrorIncoming::Unknown(Box::new(error)),
                        }));
                    }
                }
            }
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            let reason = "the last write was given up";
            return Err(StreamErrorIncoming::Unknown(reason.into()));
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if self.is_malformed() {
            self.reset(Code::H3_MESSAGE_ERROR.value());
            return Poll::Ready(Err(terminated(Code::H3_MESSAGE_ERROR)));
        }
        self.is_over = true;
        let finished = self.stream.finish();
        Poll::Ready(finished.map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))))
    }

    fn reset(&mut self, reset_code: u64) {
        self.is_over = true;
        if [Code::H3_MESSAGE_ERROR, Code::H3_REQUEST_INCOMPLETE].contains(&Code::from(reset_code)) {
            self.tap.provoked();
        }
        let code = VarInt::from_u64(reset_code).unwrap_or(VarInt::MAX);
        self.stream.reset(code).ok();
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl Sender {
    /// The request is malformed, and the client does not know it yet.
    fn is_malformed(&self) -> bool {
        !self.is_over && self.state.as_ref().is_some_and(|it| it.is_malformed())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.is_malformed() {
            quic::SendStream::<Bytes>::reset(self, Code::H3_MESSAGE_ERROR.value());
        }
        let must_finish = |state: &Rc<StreamState>| state.must_finish.get();
        if !self.is_over && self.state.as_ref().is_some_and(must_finish) {
            self.stream.reset(code(Code::H3_INTERNAL_ERROR)).ok();
        }
    }
}

/// A code of HTTP/3 as QUIC sends it.
pub(super) fn code(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}

fn id(id: quinn::StreamId) -> StreamId {
    u64::from(id)
        .try_into()
        .expect("an identifier of QUIC is one of HTTP/3")
}

fn terminated(code: Code) -> StreamErrorIncoming {
    StreamErrorIncoming::StreamTerminated {
        error_code: code.value(),
    }
}

fn lost(error: quinn::ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: connection_error(error),
    }
}

fn connection_error(error: quinn::ConnectionError) -> ConnectionErrorIncoming {
    match error {
        quinn::ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose {
                error_code: close.error_code.into_inner(),
            }
        }
        quinn::ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}
