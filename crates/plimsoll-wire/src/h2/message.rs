//! Heads and trailers of responses, and the end of streams (RFC 9113, sections 6.2, 6.10 and 8.1).

use crate::h2::frame::{self, FrameHeader};
use crate::h2::hpack::Summary;
use crate::h2::receive::{closed, misplaced, wrong_size};
use crate::h2::stream::{Stream, StreamLookup};
use crate::h2::{
    Connection, ConnectionError, ErrorCode, Events, Limits, MessageError, ResponseHead, StreamError,
};

/// A header block that CONTINUATION frames go on with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    stream: u32,
    ends_stream: bool,
    continuations: usize,
}

/// The kinds of header blocks.
enum Head {
    Interim(u16),
    Final(u16),
    Trailers,
}

impl Connection {
    pub(crate) fn headers<E: Events>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        let stream = header.stream;
        match self.streams.find(stream) {
            StreamLookup::Open(stream) if stream.is_received => return Err(closed(header)),
            StreamLookup::Open(stream) => stream.traffic.received += header.bytes(),
            StreamLookup::Gone => {}
            StreamLookup::Ended => return Err(closed(header)),
            StreamLookup::Idle => return Err(misplaced(header)),
        }
        let fragment = fragment(header, payload)?;
        if header.ends_headers() {
            return self.block(stream, header.ends_stream(), fragment, events);
        }
        self.input.block = Some(Block {
            stream,
            ends_stream: header.ends_stream(),
            continuations: 0,
        });
        self.input.fragments.clear();
        self.add_fragment(fragment)
    }

    pub(crate) fn continuation<E: Events>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        let Some(block) = &mut self.input.block else {
            return Err(ConnectionError::Continuation);
        };
        if block.stream != header.stream {
            return Err(ConnectionError::Continuation);
        }
        block.continuations += 1;
        let limit = self.settings.limits.continuations;
        if block.continuations > limit {
            return Err(ConnectionError::TooManyContinuations { limit });
        }
        let block = *block;
        if let Some(stream) = self.streams.find_open(block.stream) {
            stream.traffic.received += header.bytes();
        }
        self.add_fragment(payload)?;
        if !header.ends_headers() {
            return Ok(());
        }
        self.input.block = None;
        let mut fragments = std::mem::take(&mut self.input.fragments);
        let result = self.block(block.stream, block.ends_stream, &fragments, events);
        fragments.clear();
        self.input.fragments = fragments;
        result
    }

    fn add_fragment(&mut self, fragment: &[u8]) -> Result<(), ConnectionError> {
        self.check_block(self.input.fragments.len() + fragment.len())?;
        self.input.fragments.extend_from_slice(fragment);
        Ok(())
    }

    fn check_block(&self, length: usize) -> Result<(), ConnectionError> {
        let limit = self.settings.limits.header_block_bytes;
        if length > limit {
            return Err(ConnectionError::BlockTooLarge { limit });
        }
        Ok(())
    }

    /// A whole header block; one of a stream that is gone still changes the dynamic table.
    fn block<E: Events>(
        &mut self,
        id: u32,
        ends_stream: bool,
        block: &[u8],
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        self.check_block(block.len())?;
        self.fields.clear();
        let keep = events.wants_fields().then_some(&mut self.fields);
        let summary = self
            .decoder
            .decode(block, keep)
            .map_err(ConnectionError::Compression)?;
        let Some(stream) = self.streams.find_open(id) else {
            return Ok(());
        };
        let token = stream.token;
        match judge(stream, &summary, ends_stream, &self.settings.limits) {
            Err(error) => {
                self.fail_stream(id, error, events);
                return Ok(());
            }
            Ok(Head::Interim(status)) => {
                events.interim(token, status, &self.fields);
                return Ok(());
            }
            Ok(Head::Trailers) => events.trailers(token, &self.fields),
            Ok(Head::Final(status)) => {
                let head = ResponseHead {
                    status,
                    content_length: summary.content_length,
                    fields: &self.fields,
                };
                events.head(token, &head);
            }
        }
        if ends_stream {
            self.end_stream(id, events);
        }
        Ok(())
    }

    /// The peer has sent all of a response.
    #[inline]
    pub(crate) fn end_stream<E: Events>(&mut self, id: u32, events: &mut E) {
        let Some(stream) = self.streams.find_open(id) else {
            return;
        };
        let (token, traffic) = (stream.token, stream.traffic);
        let is_short = stream
            .announced
            .is_some_and(|announced| announced != stream.received);
        if is_short && !stream.is_empty {
            self.fail_stream(id, MessageError::LengthMismatch, events);
            return;
        }
        if stream.is_streamed && !stream.is_sent {
            // The caller decides whether the rest of the request is still of use.
            stream.is_received = true;
            events.traffic(token, traffic);
            events.complete(token);
            return;
        }
        if stream.unsent.is_some() {
            // The peer answered without waiting for the rest of the request (section 8.1).
            frame::put_rst_stream(&mut self.output.bytes, id, ErrorCode::CANCEL);
        }
        self.streams.end(id);
        events.traffic(token, traffic);
        events.complete(token);
    }

    /// Resets a stream whose peer broke the rules of messages.
    pub(crate) fn fail_stream<E: Events>(&mut self, id: u32, error: MessageError, events: &mut E) {
        if let Some(stream) = self.streams.find_open(id) {
            let (token, traffic) = (stream.token, stream.traffic);
            self.streams.reset(id);
            frame::put_rst_stream(&mut self.output.bytes, id, error.code());
            events.traffic(token, traffic);
            events.failed(token, &StreamError::Message(error));
        }
    }
}

/// Decides what a block is to its stream (section 8.1).
fn judge(
    stream: &mut Stream,
    summary: &Summary,
    ends_stream: bool,
    limits: &Limits,
) -> Result<Head, MessageError> {
    if let Some(error) = summary.malformed {
        return Err(error);
    }
    if stream.has_head {
        return if ends_stream && !summary.has_status() {
            Ok(Head::Trailers)
        } else {
            Err(MessageError::Trailers)
        };
    }
    match summary.status.ok_or(MessageError::Status)? {
        101 => Err(MessageError::Upgrade),
        100..200 if ends_stream => Err(MessageError::InterimEnds),
        status @ 100..200 => {
            stream.interim_seen += 1;
            let limit = limits.interim;
            if stream.interim_seen > limit {
                return Err(MessageError::TooManyInterim { limit });
            }
            Ok(Head::Interim(status))
        }
        status => {
            stream.has_head = true;
            stream.is_empty |= matches!(status, 204 | 304);
            stream.announced = summary.content_length;
            if stream.is_tunnel && matches!(status, 200..300) {
                stream.is_empty = false;
                stream.announced = None;
            }
            let limit = limits.body_bytes;
            if !stream.is_empty && stream.announced.is_some_and(|announced| announced > limit) {
                return Err(MessageError::BodyTooLarge { limit });
            }
            Ok(Head::Final(status))
        }
    }
}

/// The header block fragment of HEADERS, without padding and priority (section 6.2).
fn fragment(header: FrameHeader, payload: &[u8]) -> Result<&[u8], ConnectionError> {
    let mut fragment = payload;
    let mut padding = 0;
    if header.is_padded() {
        let (length, rest) = payload
            .split_first()
            .ok_or_else(|| wrong_size(header, payload))?;
        padding = usize::from(*length);
        fragment = rest;
    }
    if header.has_priority() {
        let (_, rest) = fragment
            .split_at_checked(5)
            .ok_or_else(|| wrong_size(header, payload))?;
        fragment = rest;
    }
    let length = fragment
        .len()
        .checked_sub(padding)
        .ok_or(ConnectionError::Padding)?;
    Ok(&fragment[..length])
}
