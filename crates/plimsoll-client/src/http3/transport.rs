//! QUIC as the `h3` crate wants it, with bounds on the frames of a server.
//!
//! The `h3` crate keeps every frame but DATA as a whole, whatever its length, so frames are looked at before it sees them.
//! It shows no settings of the server and writes no `websocket` in `:protocol`, so both are done here.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{
    self, ConnectionErrorIncoming, SendStreamUnframed as _, StreamErrorIncoming, StreamId, WriteBuf,
};
use h3_quinn::{BidiStream, Connection, OpenStreams, RecvStream, SendStream};
use plimsoll_wire::h3::{Frames, Rewritten, SettingsReader, TooLong, with_protocol};

use super::peer::Peer;

/// Frames without content that every stream may have.
const EMPTY_FRAMES: u64 = 1000;

/// More of them are permitted with so many bytes each.
const BYTES_PER_EMPTY_FRAME: u64 = 64;

/// The protocol that stands for `websocket` within the `h3` crate.
const STAND_IN: &[u8] = b"connect-udp";

/// A connection of a client.
pub(super) struct Transport {
    inner: Connection,
    opener: Opener,
}

/// Opens streams for requests.
#[derive(Clone)]
pub(crate) struct Opener {
    inner: OpenStreams,
    /// Octets that a frame other than DATA may have.
    most: u64,
    peer: Arc<Peer>,
}

/// The stream of a request.
pub(crate) struct Bidirectional {
    inner: BidiStream<Bytes>,
    bounds: Bounds,
    peer: Arc<Peer>,
    /// A head with another protocol than the `h3` crate wrote, until it is sent.
    head: Bytes,
}

/// The half of a stream that the server writes.
pub(crate) struct Receiver {
    inner: RecvStream,
    bounds: Bounds,
    /// Only of streams in one direction, of which one has the settings.
    settings: Option<(SettingsReader, Arc<Peer>)>,
}

/// Bytes and frames that a stream has received.
struct Bounds {
    frames: Frames,
    bytes: u64,
    empty: u64,
}

impl Transport {
    /// - `head`: bytes that the head of a response may have.
    pub(super) fn new(quic: quinn::Connection, head: u64, peer: Arc<Peer>) -> Self {
        let inner = Connection::new(quic);
        Self {
            opener: Opener {
                inner: quic::Connection::<Bytes>::opener(&inner),
                // A head that is compressed is not much longer than one that is not.
                most: 2 * head,
                peer,
            },
            inner,
        }
    }
}

impl Bounds {
    fn new(frames: Frames) -> Self {
        Self {
            frames,
            bytes: 0,
            empty: 0,
        }
    }

    /// A piece, if it is within the bounds.
    fn checked(&mut self, piece: Option<Bytes>) -> Result<Option<Bytes>, StreamErrorIncoming> {
        if let Some(piece) = &piece {
            self.scan(piece)
                .map_err(|error| StreamErrorIncoming::Unknown(error.into()))?;
        }
        Ok(piece)
    }

    fn scan(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        self.bytes += piece.len() as u64;
        self.empty += u64::from(self.frames.scan(piece)?);
        if self.empty > EMPTY_FRAMES + self.bytes / BYTES_PER_EMPTY_FRAME {
            return Err(TooLong);
        }
        Ok(())
    }
}

impl quic::Connection<Bytes> for Transport {
    type RecvStream = Receiver;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Receiver, ConnectionErrorIncoming>> {
        let inner = ready!(quic::Connection::<Bytes>::poll_accept_recv(
            &mut self.inner,
            cx
        ))?;
        Poll::Ready(Ok(Receiver {
            inner,
            bounds: Bounds::new(Frames::of_unidirectional(self.opener.most)),
            settings: Some((SettingsReader::default(), Arc::clone(&self.opener.peer))),
        }))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bidirectional, ConnectionErrorIncoming>> {
        let inner = ready!(self.inner.poll_accept_bidi(cx))?;
        Poll::Ready(Ok(self.opener.bounded(inner)))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl quic::OpenStreams<Bytes> for Transport {
    type BidiStream = Bidirectional;
    type SendStream = SendStream<Bytes>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bidirectional, StreamErrorIncoming>> {
        let inner = ready!(self.inner.poll_open_bidi(cx))?;
        Poll::Ready(Ok(self.opener.bounded(inner)))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<Bytes>, StreamErrorIncoming>> {
        self.inner.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<Bytes>::close(&mut self.inner, code, reason);
    }
}

impl Opener {
    fn bounded(&self, inner: BidiStream<Bytes>) -> Bidirectional {
        Bidirectional {
            inner,
            bounds: Bounds::new(Frames::of_request(self.most)),
            peer: Arc::clone(&self.peer),
            head: Bytes::new(),
        }
    }
}

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = Bidirectional;
    type SendStream = SendStream<Bytes>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bidirectional, StreamErrorIncoming>> {
        let Poll::Ready(opened) = self.inner.poll_open_bidi(cx) else {
            self.peer.limits_streams();
            return Poll::Pending;
        };
        Poll::Ready(Ok(self.bounded(opened?)))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<Bytes>, StreamErrorIncoming>> {
        self.inner.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<Bytes>::close(&mut self.inner, code, reason);
    }
}

impl quic::RecvStream for Receiver {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let piece = ready!(self.inner.poll_data(cx))?;
        let piece = self.bounds.checked(piece)?;
        if let Some((settings, peer)) = &mut self.settings
            && let Some(piece) = &piece
            && let Some(found) = settings.read_bytes(piece)
        {
            peer.announced(found);
        }
        Poll::Ready(Ok(piece))
    }

    fn stop_sending(&mut self, code: u64) {
        self.inner.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.inner.recv_id()
    }
}

impl quic::RecvStream for Bidirectional {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let piece = ready!(self.inner.poll_data(cx))?;
        Poll::Ready(self.bounds.checked(piece))
    }

    fn stop_sending(&mut self, code: u64) {
        self.inner.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.inner.recv_id()
    }
}

impl quic::SendStream<Bytes> for Bidirectional {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while self.head.has_remaining() {
            ready!(self.inner.poll_send(cx, &mut self.head))?;
        }
        self.inner.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if !self.peer.is_opening_websocket() {
            return self.inner.send_data(data);
        }
        let mut data: WriteBuf<Bytes> = data.into();
        let data = data.copy_to_bytes(data.remaining());
        self.head = match with_protocol(&data, STAND_IN, b"websocket") {
            Rewritten::Changed(head) => head.into(),
            // Of a head that the caller made wrong the server decides.
            Rewritten::Same | Rewritten::Partial | Rewritten::Malformed => data,
        };
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.inner.poll_finish(cx)
    }

    fn reset(&mut self, code: u64) {
        self.inner.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.inner.send_id()
    }
}

impl quic::SendStreamUnframed<Bytes> for Bidirectional {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        self.inner.poll_send(cx, buf)
    }
}

impl quic::BidiStream<Bytes> for Bidirectional {
    type SendStream = SendStream<Bytes>;
    type RecvStream = Receiver;

    fn split(self) -> (SendStream<Bytes>, Receiver) {
        let (send, inner) = self.inner.split();
        let bounds = self.bounds;
        let settings = None;
        (
            send,
            Receiver {
                inner,
                bounds,
                settings,
            },
        )
    }
}
