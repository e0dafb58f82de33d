//! The peer's bytes: cutting them into frames, wherever the reads cut them.

use crate::h2::content::Content;
use crate::h2::frame::{self, FrameHeader, HEADER_BYTES};
use crate::h2::message::Block;
use crate::h2::{Connection, ConnectionError, Events};

/// Position in the peer's bytes.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// The beginning of a frame that a read cut in two; content is not kept.
    partial: Vec<u8>,
    pub(crate) content: Option<Content>,
    pub(crate) block: Option<Block>,
    /// The fragments of a header block that came in several frames.
    pub(crate) fragments: Vec<u8>,
}

impl Input {
    /// Whether the bytes so far end inside a frame or a header block.
    pub(crate) fn is_inside(&self) -> bool {
        !self.partial.is_empty() || self.content.is_some() || self.block.is_some()
    }

    /// Whether a first frame that is not complete looks like a status line.
    pub(crate) fn is_http1(&self) -> bool {
        self.partial.starts_with(HTTP1)
    }
}

const HTTP1: &[u8] = b"HTTP/1";

impl Connection {
    /// Takes what came from the peer; where it was cut makes no difference.
    ///
    /// After an error, which was reported to every exchange under way, only the output is of use: it ends
    /// with GOAWAY.
    pub fn receive<E: Events>(
        &mut self,
        bytes: &[u8],
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let result = self.process_bytes(bytes, events);
        if let Err(error) = result {
            self.fail(error, events);
        }
        result
    }

    fn process_bytes<E: Events>(
        &mut self,
        bytes: &[u8],
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        let mut input = bytes;
        loop {
            if let Some(content) = self.input.content {
                input = self.take_content(content, input, events)?;
            }
            if input.is_empty() {
                return Ok(());
            }
            if !self.input.partial.is_empty() {
                input = self.take_partial(input, events)?;
                continue;
            }
            let Some(header) = input.first_chunk() else {
                self.input.partial.extend_from_slice(input);
                return Ok(());
            };
            let header = self.check(*header)?;
            if header.kind == frame::DATA {
                self.begin_content(header, events)?;
                input = &input[HEADER_BYTES..];
                continue;
            }
            let length = HEADER_BYTES + header.length as usize;
            let Some((frame, rest)) = input.split_at_checked(length) else {
                self.input.partial.extend_from_slice(input);
                return Ok(());
            };
            self.frame(header, &frame[HEADER_BYTES..], events)?;
            input = rest;
        }
    }

    /// Goes on with a frame whose beginning is kept; returns what is left of `input`.
    fn take_partial<'a, E: Events>(
        &mut self,
        input: &'a [u8],
        events: &mut E,
    ) -> Result<&'a [u8], ConnectionError> {
        let input = self.fill_partial(HEADER_BYTES, input);
        let Some(header) = self.input.partial.first_chunk() else {
            return Ok(input);
        };
        let header = self.check(*header)?;
        if header.kind == frame::DATA {
            self.input.partial.clear();
            self.begin_content(header, events)?;
            return Ok(input);
        }
        let length = HEADER_BYTES + header.length as usize;
        let input = self.fill_partial(length, input);
        if self.input.partial.len() == length {
            let mut partial = std::mem::take(&mut self.input.partial);
            self.frame(header, &partial[HEADER_BYTES..], events)?;
            partial.clear();
            self.input.partial = partial;
        }
        Ok(input)
    }

    /// Makes the kept bytes up to `length`; returns what is left of `input`.
    fn fill_partial<'a>(&mut self, length: usize, input: &'a [u8]) -> &'a [u8] {
        let missing = length.saturating_sub(self.input.partial.len());
        let (taken, rest) = input.split_at(missing.min(input.len()));
        self.input.partial.extend_from_slice(taken);
        rest
    }

    /// Checks a frame header before its payload is there.
    #[inline]
    fn check(&self, bytes: [u8; HEADER_BYTES]) -> Result<FrameHeader, ConnectionError> {
        let header = FrameHeader::parse(bytes);
        if !self.peer.is_known && (header.kind != frame::SETTINGS || header.is_ack()) {
            return Err(if bytes.starts_with(HTTP1) {
                ConnectionError::SpeaksHttp1
            } else {
                ConnectionError::Preface
            });
        }
        let limit = self.settings.frame_bytes;
        if header.length > limit {
            let length = header.length;
            return Err(ConnectionError::FrameTooLarge { length, limit });
        }
        if self.input.block.is_some() != (header.kind == frame::CONTINUATION) {
            return Err(ConnectionError::Continuation);
        }
        Ok(header)
    }

    fn frame<E: Events>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        match header.kind {
            frame::HEADERS => self.headers(header, payload, events),
            frame::CONTINUATION => self.continuation(header, payload, events),
            frame::PRIORITY => self.priority(header, events),
            frame::RST_STREAM => self.rst_stream(header, payload, events),
            frame::SETTINGS => self.take_settings(header, payload, events),
            frame::PUSH_PROMISE => Err(ConnectionError::Push),
            frame::PING => self.ping(header, payload),
            frame::GOAWAY => self.goaway(header, payload, events),
            frame::WINDOW_UPDATE => self.window_update(header, payload, events),
            _ => Ok(()),
        }
    }
}

pub(crate) fn wrong_size(header: FrameHeader, payload: &[u8]) -> ConnectionError {
    ConnectionError::FrameSize {
        frame: header.name(),
        length: payload.len(),
    }
}

pub(crate) fn misplaced(header: FrameHeader) -> ConnectionError {
    ConnectionError::Stream {
        frame: header.name(),
        stream: header.stream,
    }
}

pub(crate) fn closed(header: FrameHeader) -> ConnectionError {
    ConnectionError::StreamClosed {
        frame: header.name(),
        stream: header.stream,
    }
}
