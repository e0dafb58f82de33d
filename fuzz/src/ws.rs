//! Reading pieces with the decoders of WebSocket.

use plimsoll_wire::ws::{
    Decoder, Event, FrameError, FrameSink, Handshake, HandshakeError, Key, Limits, Role,
};

/// What was decoded: events as text, each message with its content.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    content: Vec<u8>,
    events: Vec<(String, Vec<u8>)>,
}

impl FrameSink for Seen {
    fn piece(&mut self, piece: &[u8]) {
        self.content.extend_from_slice(piece);
    }

    fn event(&mut self, event: Event<'_>) {
        let content = match event {
            Event::Message { length, .. } => {
                assert_eq!(length, self.content.len() as u64);
                std::mem::take(&mut self.content)
            }
            _ => Vec::new(),
        };
        self.events.push((format!("{event:?}"), content));
    }
}

/// Reads frames; of a message that an error breaks off only that it did counts.
pub fn read_frames(pieces: &[&[u8]], role: Role) -> (Vec<(String, Vec<u8>)>, Option<FrameError>) {
    read(Decoder::new(role, LIMITS), pieces)
}

/// Reads frames whose messages may be compressed. Which error ends them depends on how they are cut: a decompressor reports broken
/// data before the text that precedes it.
pub fn read_compressed(pieces: &[&[u8]], role: Role) -> (Vec<(String, Vec<u8>)>, bool) {
    let (events, error) = read(Decoder::new(role, LIMITS).with_deflate(), pieces);
    (events, error.is_some())
}

const LIMITS: Limits = Limits { message_bytes: 200 };

fn read(mut decoder: Decoder, pieces: &[&[u8]]) -> (Vec<(String, Vec<u8>)>, Option<FrameError>) {
    let mut seen = Seen::default();
    for piece in pieces {
        if let Err(error) = decoder.decode(piece, &mut seen) {
            return (seen.events, Some(error));
        }
    }
    assert!(seen.content.len() <= 200);
    (seen.events, None)
}

/// Reads the answer to a handshake; gives its length.
pub fn read_handshake(pieces: &[&[u8]]) -> Result<Option<usize>, HandshakeError> {
    let key = Key::new(*b"the sample nonce");
    let mut handshake = Handshake::new(&key, crate::limits());
    let mut before = 0;
    for piece in pieces {
        if let Some(taken) = handshake.decode(piece)? {
            return Ok(Some(before + taken));
        }
        before += piece.len();
    }
    Ok(None)
}
