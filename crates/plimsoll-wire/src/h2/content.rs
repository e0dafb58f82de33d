//! Content of responses: DATA frames, handed on as they come (RFC 9113, section 6.1).

use crate::h2::frame::{self, FrameHeader};
use crate::h2::receive::{closed, misplaced};
use crate::h2::stream::StreamLookup;
use crate::h2::{Connection, ConnectionError, Events, MessageError};

/// A DATA frame whose payload is coming.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content {
    stream: u32,
    /// The length of the padding comes first.
    is_padding_due: bool,
    left: u32,
    padding_left: u32,
    ends_stream: bool,
}

impl Connection {
    /// The header of a DATA frame; the whole payload counts for the windows (section 6.9.1).
    #[inline]
    pub(crate) fn begin_content<E: Events>(
        &mut self,
        header: FrameHeader,
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        let FrameHeader { stream, length, .. } = header;
        if header.is_padded() && length == 0 {
            return Err(ConnectionError::Padding);
        }
        let error = match self.streams.find(stream) {
            StreamLookup::Open(stream) if !stream.has_head => Some(MessageError::ContentBeforeHead),
            StreamLookup::Open(stream) if stream.is_received => return Err(closed(header)),
            StreamLookup::Open(stream) => {
                stream.traffic.received += header.bytes();
                let is_allowed = if stream.is_streamed {
                    stream.receive.reserve(length)
                } else {
                    stream.receive.count_received(length)
                };
                (!is_allowed).then_some(MessageError::WindowExceeded)
            }
            StreamLookup::Gone => None,
            StreamLookup::Ended => return Err(closed(header)),
            StreamLookup::Idle => return Err(misplaced(header)),
        };
        if !self.receive_window.count_received(length) {
            return Err(ConnectionError::WindowExceeded);
        }
        if let Some(increment) = self.receive_window.credit() {
            frame::put_window_update(&mut self.output.bytes, 0, increment);
        }
        if let Some(error) = error {
            self.fail_stream(stream, error, events);
        }
        self.input.content = Some(Content {
            stream,
            is_padding_due: header.is_padded(),
            left: length - u32::from(header.is_padded()),
            padding_left: 0,
            ends_stream: header.ends_stream(),
        });
        Ok(())
    }

    /// Takes as much of a DATA frame's payload as there is; returns what is left of `input`.
    pub(crate) fn take_content<'a, E: Events>(
        &mut self,
        mut content: Content,
        mut input: &'a [u8],
        events: &mut E,
    ) -> Result<&'a [u8], ConnectionError> {
        if content.is_padding_due {
            let Some((padding, rest)) = input.split_first() else {
                return Ok(input);
            };
            input = rest;
            content.is_padding_due = false;
            content.padding_left = u32::from(*padding);
            content.left = content
                .left
                .checked_sub(content.padding_left)
                .ok_or(ConnectionError::Padding)?;
            self.consume_padding(content.stream, 1 + content.padding_left);
        }
        let piece = take_up_to(&mut input, &mut content.left);
        if !piece.is_empty() {
            self.content(content.stream, piece, events);
        }
        take_up_to(&mut input, &mut content.padding_left);
        if content.left > 0 || content.padding_left > 0 {
            self.input.content = Some(content);
            return Ok(input);
        }
        self.input.content = None;
        if content.ends_stream {
            self.end_stream(content.stream, events);
        } else if let Some(stream) = self.streams.find_open(content.stream)
            && let Some(increment) = stream.receive.credit()
        {
            frame::put_window_update(&mut self.output.bytes, content.stream, increment);
        }
        Ok(input)
    }

    /// Hands on a piece of content, up to where it exceeds what may come.
    fn content<E: Events>(&mut self, id: u32, piece: &[u8], events: &mut E) {
        let limit = self.settings.limits.body_bytes;
        let Some(stream) = self.streams.find_open(id) else {
            return;
        };
        let (most, error) = match stream.announced {
            _ if stream.is_empty => (0, MessageError::UnexpectedContent),
            Some(announced) => (announced, MessageError::LengthMismatch),
            None => (limit, MessageError::BodyTooLarge { limit }),
        };
        let room = usize::try_from(most - stream.received).unwrap_or(usize::MAX);
        let taken = &piece[..piece.len().min(room)];
        if !taken.is_empty() {
            stream.received += taken.len() as u64;
            events.content(stream.token, taken);
        }
        if taken.len() < piece.len() {
            self.fail_stream(id, error, events);
        }
    }
}

/// Takes at most `left` bytes off the front of `input`.
fn take_up_to<'a>(input: &mut &'a [u8], left: &mut u32) -> &'a [u8] {
    let length = input.len().min(*left as usize);
    let (taken, rest) = input.split_at(length);
    *input = rest;
    *left -= u32::try_from(length).expect("no more than what is left");
    taken
}
