//! What the targets share: cutting input in pieces, and reading pieces with each decoder.
//!
//! A decoder must come to the same outcome however its input was cut.

pub mod h2;

pub mod ws;

pub mod sse;

use plimsoll_wire::h1::{
    DecodeError, KnownHead, Limits, ReceivedHead, RequestDecoder, ResponseDecoder, ResponseHead,
    ResponseSink,
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
    /// A head, and where it ended.
    Head(ReceivedHead, usize),
    /// A body was complete at this position.
    End(usize),
    /// Nothing that follows is read.
    Error(DecodeError),
}

/// Reads requests as a server does: from a buffer to which pieces are added.
pub fn read_requests(pieces: &[&[u8]]) -> Vec<Event> {
    let mut decoder = RequestDecoder::new(limits());
    let mut events = Vec::new();
    let mut buffer = Vec::new();
    let mut position = 0;
    let mut in_body = false;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let result = if in_body {
                decoder.skip_body(&buffer).map(|(taken, is_complete)| {
                    assert!(taken <= buffer.len());
                    assert!(is_complete || taken == buffer.len());
                    position += taken;
                    buffer.drain(..taken);
                    in_body = !is_complete;
                    if is_complete {
                        events.push(Event::End(position));
                    }
                    is_complete
                })
            } else {
                decoder.decode_head(&buffer).map(|found| {
                    let Some((head, length)) = found else {
                        return false;
                    };
                    assert!(0 < length && length <= buffer.len());
                    position += length;
                    buffer.drain(..length);
                    in_body = true;
                    events.push(Event::Head(head, position));
                    true
                })
            };
            match result {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    events.push(Event::Error(error));
                    return events;
                }
            }
        }
    }
    events
}
