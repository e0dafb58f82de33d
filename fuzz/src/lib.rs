//! What the targets share: cutting input in pieces, and reading pieces with each decoder.
//!
//! A decoder must come to the same outcome however its input was cut.

pub mod h2;

pub mod ws;

pub mod sse;

use plimsoll_wire::h1::{
    BodyStep, DecodeError, HeadStorage, KnownHead, Limits, RequestDecoder, RequestError,
    RequestLimits, ResponseDecoder, ResponseHead, ResponseSink,
};

/// Small enough that a fuzzer reaches them.
pub fn limits() -> Limits {
    Limits {
        head_bytes: 512,
        headers: 8,
        body_bytes: 4096,
        interim: 2,
        chunk_overhead_bytes: 16 * 1024,
    }
}

/// Takes the cuts off the front of `data`: their number, then a byte for the length of each piece.
pub fn cut(data: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let Some((number, rest)) = data.split_first() else {
        return (Vec::new(), data);
    };
    let (lengths, input) = rest.split_at(usize::from(*number).min(rest.len()));
    let mut pieces = Vec::new();
    let mut left = input;
    for length in lengths {
        let (piece, after) = left.split_at(usize::from(*length).min(left.len()));
        pieces.push(piece);
        left = after;
    }
    pieces.push(left);
    pieces.retain(|piece| !piece.is_empty());
    (pieces, input)
}

/// What came of one response.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    /// The status, 0 without a head.
    pub status: u16,
    /// The content, empty after an error.
    pub content: Vec<u8>,
    /// Bytes that belong to it.
    pub consumed: usize,
    /// Whether another may follow.
    pub is_persistent: bool,
}

#[derive(Default)]
struct Keep {
    heads: usize,
    content: Vec<u8>,
}

impl ResponseSink for Keep {
    fn head(&mut self, head: &ResponseHead<'_>) {
        assert!((200..=999).contains(&head.status));
        assert!(self.content.is_empty(), "the head comes first");
        self.heads += 1;
    }

    fn content(&mut self, piece: &[u8]) {
        assert_eq!(self.heads, 1, "one head comes before the content");
        assert!(!piece.is_empty());
        self.content.extend_from_slice(piece);
    }
}

/// Reads one response and, if it is not complete by then, the end of the connection.
pub fn read_response(pieces: &[&[u8]], head_request: bool) -> Result<Response, DecodeError> {
    let mut decoder = ResponseDecoder::new(limits());
    decoder.begin(head_request);
    let mut keep = Keep::default();
    let mut consumed = 0;
    let mut is_complete = false;
    for piece in pieces {
        let decoded = decoder.decode(piece, &mut keep, &mut KnownHead::new())?;
        assert!(decoded.consumed <= piece.len());
        assert!(decoded.complete || decoded.consumed == piece.len());
        consumed += decoded.consumed;
        is_complete = decoded.complete;
        if is_complete {
            break;
        }
    }
    if !is_complete {
        decoder.end_of_stream()?;
    }
    assert_eq!(decoder.content_bytes(), keep.content.len() as u64);
    assert!(decoder.content_bytes() <= limits().body_bytes);
    assert_eq!(keep.heads, 1);
    Ok(Response {
        status: decoder.status(),
        content: keep.content,
        consumed,
        is_persistent: decoder.is_persistent(),
    })
}

/// What a server found in what a connection sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A head in words, and where it ended.
    Head(String, usize),
    /// Content.
    Content(Vec<u8>),
    /// A body was complete at this position, with these trailer fields.
    End(usize, Vec<u8>),
    /// Nothing that follows is read.
    Error(RequestError),
}

/// Reads requests as a server does: from a buffer to which pieces are added.
pub fn read_requests(pieces: &[&[u8]]) -> Vec<Event> {
    let mut reading = Reading {
        decoder: RequestDecoder::new(RequestLimits {
            head_bytes: 512,
            target_bytes: 128,
            headers: 8,
            body_bytes: 4096,
            chunk_overhead_bytes: 16 * 1024,
        }),
        buffer: Vec::new(),
        position: 0,
        events: Vec::new(),
    };
    for piece in pieces {
        reading.buffer.extend_from_slice(piece);
        loop {
            match reading.step() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    reading.events.push(Event::Error(error));
                    return reading.events;
                }
            }
        }
    }
    reading.events
}

struct Reading {
    decoder: RequestDecoder,
    buffer: Vec<u8>,
    position: usize,
    events: Vec<Event>,
}

impl Reading {
    /// Whether there may be more to find in the buffer.
    fn step(&mut self) -> Result<bool, RequestError> {
        if !self.decoder.is_in_body() {
            let mut storage = HeadStorage::new();
            let found = self.decoder.decode_head(&self.buffer, &mut storage)?;
            let Some((head, length)) = found else {
                return Ok(false);
            };
            assert!(0 < length && length <= self.buffer.len());
            let head = format!("{head:?}");
            self.take(length);
            self.events.push(Event::Head(head, self.position));
            return Ok(true);
        }
        match self.decoder.decode_body(&self.buffer)? {
            BodyStep::NeedMore => {
                self.take(self.buffer.len());
                Ok(false)
            }
            BodyStep::Content(range) => {
                assert!(range.start < range.end && range.end <= self.buffer.len());
                let content = &self.buffer[range.clone()];
                match self.events.last_mut() {
                    Some(Event::Content(earlier)) => earlier.extend_from_slice(content),
                    _ => self.events.push(Event::Content(content.to_vec())),
                }
                self.take(range.end);
                Ok(true)
            }
            BodyStep::End(consumed) => {
                self.take(consumed);
                let trailers = self.decoder.finish_body()?;
                self.events.push(Event::End(self.position, trailers));
                Ok(true)
            }
        }
    }

    fn take(&mut self, length: usize) {
        self.buffer.drain(..length);
        self.position += length;
    }
}
