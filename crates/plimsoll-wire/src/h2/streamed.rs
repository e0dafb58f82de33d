//! Requests whose bodies the caller writes, and whose responses the caller reads, piece by piece.
//!
//! Both directions are bounded by the windows: [`Connection::send_data`] takes what the peer allows, and the peer may
//! send no more than a window beyond what the caller has [consumed](Connection::consume). The connection's own receive
//! window is not held back, so one caller that does not read cannot stop the others; memory is bounded by streams times
//! [`Settings::stream_window`](crate::h2::Settings::stream_window).

use crate::h2::flow::{ReceiveWindow, SendWindow};
use crate::h2::hpack::Encoder;
use crate::h2::{Connection, OpenError, StreamId, frame};

/// A streamed request without its fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamedRequest {
    /// The method is HEAD.
    pub is_head: bool,
    /// The method is CONNECT: after a 2xx response the stream carries bytes, and either side ends its own direction.
    pub is_tunnel: bool,
    /// There is no body.
    pub is_whole: bool,
}

/// Writes the fields of one header block.
#[derive(Debug)]
pub struct FieldWriter<'a>(&'a mut Encoder);

impl FieldWriter<'_> {
    /// Adds one field, pseudo-header fields before all others. Its name is sent in lowercase.
    ///
    /// The caller has checked name and value (RFC 9113, section 8.2.1).
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        self.0.put_text(name, value);
    }
}

impl Connection {
    /// Whether the peer lets CONNECT name a protocol (RFC 8441); known once its SETTINGS have come.
    pub fn allows_connect_protocol(&self) -> bool {
        self.peer.connect_protocol
    }

    /// Starts a streamed exchange on a new stream.
    ///
    /// - `token`: as for [`open`](Self::open). It is in use until the stream is complete in both directions or
    ///   [reset](Self::reset).
    /// - `write`: writes the fields.
    pub fn open_streamed(
        &mut self,
        request: StreamedRequest,
        token: u32,
        write: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<StreamId, OpenError> {
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
        stream.is_streamed = true;
        stream.is_tunnel = request.is_tunnel;
        stream.is_empty = request.is_head;
        self.put_block(id, request.is_whole, write);
        Ok(id)
    }

    /// Bytes of content that [`send_data`](Self::send_data) takes now.
    pub fn send_room(&mut self, id: StreamId) -> usize {
        let output = self.settings.limits.output_bytes;
        let room = output.saturating_sub(self.output.unwritten().len());
        let connection = self.send_window.available();
        let stream = self.streams.find_open(id.value());
        stream.map_or(0, |stream| {
            stream.send.available().min(connection).min(room)
        })
    }

    /// Adds content of a streamed request to the output; returns how many bytes of it were taken.
    ///
    /// - `ends_stream`: `content` is the last of it. The end counts only if all of `content` was taken.
    pub fn send_data(&mut self, id: StreamId, content: &[u8], ends_stream: bool) -> usize {
        let taken = content.len().min(self.send_room(id));
        let most = self.peer.frame_bytes as usize;
        let is_whole = taken == content.len();
        let Some(stream) = self.streams.find_open(id.value()) else {
            return 0;
        };
        if stream.is_sent || (taken == 0 && !(is_whole && ends_stream)) {
            return 0;
        }
        let mut rest = &content[..taken];
        let before = self.output.bytes.len();
        loop {
            let (piece, after) = rest.split_at(rest.len().min(most));
            let is_last = after.is_empty() && is_whole && ends_stream;
            frame::put_data(&mut self.output.bytes, id.value(), piece, is_last);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        stream.traffic.sent += (self.output.bytes.len() - before) as u64;
        stream.send.spend(taken);
        self.send_window.spend(taken);
        if is_whole && ends_stream {
            self.end_request(id);
        }
        taken
    }

    /// Ends a streamed request with trailers.
    pub fn send_trailers(&mut self, id: StreamId, write: impl FnOnce(&mut FieldWriter<'_>)) {
        let is_open = |connection: &mut Self| {
            let stream = connection.streams.find_open(id.value());
            stream.is_some_and(|stream| stream.is_streamed && !stream.is_sent)
        };
        if is_open(self) {
            self.put_block(id, true, write);
        }
    }

    /// Returns credit for content of a streamed response that the caller has consumed.
    pub fn consume(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.streams.find_open(id.value()) else {
            return;
        };
        // More than the window cannot be outstanding.
        stream
            .receive
            .consume(u32::try_from(bytes).unwrap_or(u32::MAX));
        if !stream.is_received
            && let Some(increment) = stream.receive.credit()
        {
            frame::put_window_update(&mut self.output.bytes, id.value(), increment);
        }
    }

    /// Padding of a streamed response is nothing that a caller could consume.
    pub(crate) fn consume_padding(&mut self, id: u32, bytes: u32) {
        if let Some(stream) = self.streams.find_open(id)
            && stream.is_streamed
        {
            stream.receive.consume(bytes);
        }
    }

    fn put_block(
        &mut self,
        id: StreamId,
        ends_stream: bool,
        write: impl FnOnce(&mut FieldWriter<'_>),
    ) {
        self.encoder.begin_block();
        write(&mut FieldWriter(&mut self.encoder));
        let most = self.peer.frame_bytes as usize;
        let before = self.output.bytes.len();
        let block = self.encoder.block();
        frame::put_headers(&mut self.output.bytes, id.value(), block, ends_stream, most);
        if let Some(stream) = self.streams.find_open(id.value()) {
            stream.traffic.sent += (self.output.bytes.len() - before) as u64;
        }
        if ends_stream {
            self.end_request(id);
        }
    }

    /// The end of a request is in the output.
    fn end_request(&mut self, id: StreamId) {
        let Some(stream) = self.streams.find_open(id.value()) else {
            return;
        };
        stream.is_sent = true;
        if stream.is_received {
            self.streams.end(id.value());
        }
    }
}

#[cfg(test)]
mod tests;
