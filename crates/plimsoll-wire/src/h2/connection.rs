//! The client's side of one connection: starting exchanges, sending, and ending.

use std::collections::VecDeque;

use crate::h2::flow::{self, ReceiveWindow, SendWindow};
use crate::h2::hpack::{Decoder, Encoder, Fields};
use crate::h2::output::Output;
use crate::h2::receive::Input;
use crate::h2::settings::PeerSettings;
use crate::h2::stream::{Streams, Unsent};
use crate::h2::{
    ConnectionError, EncodedRequest, ErrorCode, Events, OpenError, Settings, StreamError, Traffic,
    frame,
};

/// The number of an exchange on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u32);

impl StreamId {
    pub(crate) fn new(id: u32) -> Self {
        Self(id)
    }

    /// The number in frames.
    pub fn value(self) -> u32 {
        self.0
    }
}

/// One connection, from the preface to its end.
///
/// Write what [`output`] holds whenever it is not empty and say so by [`written`]; give what comes to
/// [`receive`], and the end of it to [`end_of_stream`] or [`lost`].
///
/// [`output`]: Self::output
/// [`written`]: Self::written
/// [`receive`]: Self::receive
/// [`end_of_stream`]: Self::end_of_stream
/// [`lost`]: Self::lost
#[derive(Debug)]
pub struct Connection {
    pub(crate) settings: Settings,
    pub(crate) peer: PeerSettings,
    pub(crate) streams: Streams,
    pub(crate) output: Output,
    pub(crate) input: Input,
    pub(crate) encoder: Encoder,
    pub(crate) decoder: Decoder,
    /// The fields of the latest block, where they are wanted.
    pub(crate) fields: Fields,
    pub(crate) receive_window: ReceiveWindow,
    pub(crate) send_window: SendWindow,
    /// Streams with content that their own window allows.
    pub(crate) sending: VecDeque<u32>,
    /// PING and SETTINGS frames answered since the output was last empty.
    pub(crate) answers: usize,
    /// A PING of ours is not answered yet.
    pub(crate) is_probing: bool,
    pub(crate) goaway: Option<GoAway>,
    pub(crate) is_closing: bool,
    pub(crate) error: Option<ConnectionError>,
}

/// The peer's last word on which streams it looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GoAway {
    pub(crate) last_stream: u32,
    pub(crate) code: ErrorCode,
}

impl Connection {
    /// A new connection, whose output holds the preface and SETTINGS.
    pub fn new(settings: Settings) -> Self {
        let settings = settings.in_range();
        let mut output = Output::default();
        output.bytes.extend_from_slice(frame::PREFACE);
        frame::put_settings(&mut output.bytes, &settings.entries());
        let more = settings.connection_window - flow::INITIAL;
        if more > 0 {
            frame::put_window_update(&mut output.bytes, 0, more);
        }
        Self {
            peer: PeerSettings::default(),
            streams: Streams::new(settings.streams as usize),
            output,
            input: Input::default(),
            encoder: Encoder::new(),
            decoder: Decoder::new(settings.header_table_bytes, settings.limits.fields()),
            fields: Fields::default(),
            receive_window: ReceiveWindow::new(settings.connection_window),
            send_window: SendWindow::new(flow::INITIAL),
            sending: VecDeque::new(),
            answers: 0,
            is_probing: false,
            goaway: None,
            is_closing: false,
            error: None,
            settings,
        }
    }

    /// Exchanges that can be started now.
    #[inline]
    pub fn capacity(&self) -> usize {
        if self.is_retired() {
            return 0;
        }
        let most = self.settings.streams.min(self.peer.streams) as usize;
        most.saturating_sub(self.streams.open_count())
    }

    /// Exchanges under way.
    pub fn in_flight(&self) -> usize {
        self.streams.open_count()
    }

    /// Whether no exchange can be started any more, now or later; those under way go on unless
    /// [`error`](Self::error) says otherwise.
    pub fn is_retired(&self) -> bool {
        self.goaway.is_some() || self.is_closing || self.error.is_some()
    }

    /// The error that ended the connection.
    pub fn error(&self) -> Option<ConnectionError> {
        self.error
    }

    /// Whether the peer's SETTINGS came; before that, one exchange can be started, not more.
    pub fn is_established(&self) -> bool {
        self.peer.is_known
    }

    /// Starts an exchange on a new stream.
    ///
    /// - `token`: names the exchange in [`Events`]; the caller keeps it apart from others under way.
    #[inline]
    pub fn open(&mut self, request: &EncodedRequest, token: u32) -> Result<StreamId, OpenError> {
        if self.is_retired() {
            return Err(OpenError::Retired);
        }
        if self.capacity() == 0 {
            return Err(OpenError::Full);
        }
        let receive = ReceiveWindow::new(self.settings.stream_window);
        let send = SendWindow::new(self.peer.stream_window);
        let Some(stream) = self.streams.open(token, receive, send) else {
            self.is_closing = true;
            return Err(OpenError::Retired);
        };
        let id = stream.stream_id();
        stream.is_empty = request.is_head();
        let is_whole = request.body().is_empty();
        if !is_whole {
            stream.unsent = Some(Unsent {
                request: request.clone(),
                offset: 0,
            });
        }
        let block = self.encoder.encode(request);
        let most = self.peer.frame_bytes as usize;
        let before = self.output.bytes.len();
        frame::put_headers(&mut self.output.bytes, id.0, block, is_whole, most);
        stream.traffic.sent = (self.output.bytes.len() - before) as u64;
        if !is_whole {
            self.queue(id.0);
            self.send_content();
        }
        Ok(id)
    }

    /// Whether all of an exchange's request was put into the output, or the exchange is over.
    #[inline]
    pub fn is_sent(&mut self, id: StreamId) -> bool {
        let stream = self.streams.find_open(id.0);
        stream.is_none_or(|stream| {
            if stream.is_streamed {
                stream.is_sent
            } else {
                stream.unsent.is_none()
            }
        })
    }

    /// Bytes of the frames of an exchange in flight so far.
    pub fn traffic(&mut self, id: StreamId) -> Option<Traffic> {
        self.streams.find_open(id.0).map(|stream| stream.traffic)
    }

    /// Gives an exchange up: the stream is reset, and no event names its token again.
    ///
    /// False if it was over already.
    pub fn cancel(&mut self, id: StreamId) -> bool {
        self.reset(id, ErrorCode::CANCEL)
    }

    /// The same for a reason of the caller's.
    pub fn reset(&mut self, id: StreamId, code: ErrorCode) -> bool {
        if self.streams.find_open(id.0).is_none() {
            return false;
        }
        self.streams.reset(id.0);
        frame::put_rst_stream(&mut self.output.bytes, id.0, code);
        true
    }

    /// Starts no more exchanges and says so to the peer; those under way go on.
    pub fn close(&mut self) {
        if !self.is_closing && self.error.is_none() {
            self.is_closing = true;
            frame::put_goaway(&mut self.output.bytes, ErrorCode::NO_ERROR);
        }
    }

    /// Whether there is anything to write now.
    #[inline]
    pub fn wants_write(&mut self) -> bool {
        !self.output().is_empty()
    }

    /// Bytes to write to the peer.
    #[inline]
    pub fn output(&mut self) -> &[u8] {
        self.send_content();
        self.output.unwritten()
    }

    /// Takes off what was written of the output.
    #[inline]
    pub fn written(&mut self, count: usize) {
        self.output.advance(count);
        if self.output.unwritten().is_empty() {
            self.answers = 0;
        }
    }

    /// The peer closed its side: every exchange under way fails.
    ///
    /// Fine if there is none and the last frame was whole.
    pub fn end_of_stream<E: Events>(&mut self, events: &mut E) -> Result<(), ConnectionError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let error = if !self.peer.is_known && self.input.is_http1() {
            ConnectionError::SpeaksHttp1
        } else if self.input.is_inside() {
            ConnectionError::ClosedInFrame
        } else {
            ConnectionError::Closed(self.goaway.map(|goaway| goaway.code))
        };
        let is_fine = matches!(error, ConnectionError::Closed(_)) && self.in_flight() == 0;
        self.fail(error, events);
        if is_fine { Ok(()) } else { Err(error) }
    }

    /// The transport failed: every exchange under way fails with [`ConnectionError::Lost`].
    pub fn lost<E: Events>(&mut self, events: &mut E) {
        if self.error.is_none() {
            self.fail(ConnectionError::Lost, events);
        }
    }

    /// Ends the connection and every exchange on it.
    pub(crate) fn fail<E: Events>(&mut self, error: ConnectionError, events: &mut E) {
        self.error = Some(error);
        self.sending.clear();
        if let Some(code) = error.code() {
            frame::put_goaway(&mut self.output.bytes, code);
        }
        self.fail_streams(|_| true, StreamError::Connection(error), events);
    }

    /// Fails the open streams whose number is `concerned`.
    pub(crate) fn fail_streams<E: Events>(
        &mut self,
        concerned: impl Fn(u32) -> bool,
        error: StreamError,
        events: &mut E,
    ) {
        let concerned: Vec<_> = self
            .streams
            .iter_mut()
            .filter(|stream| concerned(stream.id))
            .map(|stream| (stream.id, stream.token, stream.traffic))
            .collect();
        for (id, token, traffic) in concerned {
            self.streams.reset(id);
            events.traffic(token, traffic);
            events.failed(token, &error);
        }
    }

    /// Has the content of a stream sent, if it has any and its window allows some.
    pub(crate) fn queue(&mut self, id: u32) {
        let Some(stream) = self.streams.find_open(id) else {
            return;
        };
        if stream.unsent.is_some() && !stream.is_queued && stream.send.available() > 0 {
            stream.is_queued = true;
            self.sending.push_back(id);
        }
    }

    /// Adds content to the output, a frame of each stream in turn, as windows and room allow.
    #[inline]
    fn send_content(&mut self) {
        while !self.sending.is_empty()
            && self.send_window.available() > 0
            && self.output.unwritten().len() < self.settings.limits.output_bytes
        {
            self.send_frame();
        }
    }

    fn send_frame(&mut self) {
        let Some(id) = self.sending.pop_front() else {
            return;
        };
        // It may have been cancelled since.
        let Some(stream) = self.streams.find_open(id) else {
            return;
        };
        stream.is_queued = false;
        let Some(mut unsent) = stream.unsent.take() else {
            return;
        };
        let rest = &unsent.request.body()[unsent.offset..];
        let length = rest
            .len()
            .min(stream.send.available())
            .min(self.send_window.available())
            .min(self.peer.frame_bytes as usize)
            .min(self.settings.limits.output_bytes);
        if length > 0 {
            let is_last = length == rest.len();
            frame::put_data(&mut self.output.bytes, id, &rest[..length], is_last);
            stream.traffic.sent += (frame::HEADER_BYTES + length) as u64;
            stream.send.spend(length);
            self.send_window.spend(length);
            if is_last {
                return;
            }
            unsent.offset += length;
        }
        stream.unsent = Some(unsent);
        self.queue(id);
    }
}
