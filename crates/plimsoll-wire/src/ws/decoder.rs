//! Frames and messages as they are read, fed piece by piece.

use super::deflate::Inflater;
use super::error::FrameError;
use super::frame::{
    COMPRESSED, FINAL, LENGTH_OF_EIGHT, LENGTH_OF_TWO, MASKED, MOST_CONTROL_BYTES, MessageKind,
    Opcode, RESERVED, apply_mask,
};
use super::utf8::Utf8;

/// Which side of the connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Reads frames of a server, which are not masked.
    Client,
    /// Reads frames of a client, which are.
    Server,
}

/// Bounds on what a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message, all of its frames together; also after decompression.
    pub message_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 1 << 30,
        }
    }
}

/// Events of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A message is complete.
    Message {
        /// Text or binary.
        kind: MessageKind,
        /// Its length in bytes.
        length: u64,
    },
    /// It wants a pong with this payload.
    Ping(&'a [u8]),
    /// It answered a ping.
    Pong(&'a [u8]),
    /// It will send nothing more, and wants the same frame back.
    Close(Option<Close<'a>>),
}

/// Why a peer ends the connection (section 7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close<'a> {
    /// 1000 if all is well.
    pub code: u16,
    /// In words; may be empty.
    pub reason: &'a str,
}

/// Receives what is decoded.
pub trait FrameSink {
    /// A piece of a message that is not complete yet.
    fn piece(&mut self, piece: &[u8]) {
        let _ = piece;
    }

    /// An event of the peer.
    fn event(&mut self, event: Event<'_>);
}

/// Decodes what one side of a connection sends.
///
/// It keeps nothing but the head of a frame and the payload of a control frame that a read cut in
/// two. After a close frame everything is ignored, as section 1.4 has it; after an error it must not
/// be used again.
#[derive(Debug)]
pub struct Decoder {
    role: Role,
    limits: Limits,
    head: [u8; MOST_HEAD_BYTES],
    head_length: usize,
    /// The frame whose payload is being read.
    frame: Option<Frame>,
    /// The message that is under way.
    message: Option<Message>,
    control: [u8; MOST_CONTROL_BYTES],
    control_length: usize,
    is_closed: bool,
    compression: Compression,
}

/// Whether messages may be compressed.
#[derive(Debug)]
enum Compression {
    Forbidden,
    Agreed,
    /// A compressed message has arrived.
    Used(Box<Inflater>),
}

/// Two bytes, eight of length, four of mask.
const MOST_HEAD_BYTES: usize = 14;

/// Masks are taken off in memory of this size.
const UNMASKED_AT_A_TIME: usize = 4096;

#[derive(Debug, Clone, Copy)]
struct Frame {
    opcode: Opcode,
    is_final: bool,
    left: u64,
    mask: Option<[u8; 4]>,
    /// Bytes of the payload that were read, as far as the mask needs to know.
    offset: usize,
}

#[derive(Debug, Clone, Copy)]
struct Message {
    kind: MessageKind,
    /// Bytes in frames.
    encoded: u64,
    /// The same unless it is compressed.
    length: u64,
    is_compressed: bool,
    utf8: Utf8,
}

impl Decoder {
    /// A decoder for a connection whose handshake is done.
    pub fn new(role: Role, limits: Limits) -> Self {
        Self {
            role,
            limits,
            head: [0; MOST_HEAD_BYTES],
            head_length: 0,
            frame: None,
            message: None,
            control: [0; MOST_CONTROL_BYTES],
            control_length: 0,
            is_closed: false,
            compression: Compression::Forbidden,
        }
    }

    /// Accepts compressed messages too, once [`accepts_deflate`](super::accepts_deflate) says that they are agreed on.
    #[must_use]
    pub fn with_deflate(mut self) -> Self {
        self.compression = Compression::Agreed;
        self
    }

    /// Takes what the connection delivered.
    pub fn decode<S: FrameSink>(
        &mut self,
        mut input: &[u8],
        sink: &mut S,
    ) -> Result<(), FrameError> {
        while !input.is_empty() && !self.is_closed {
            match self.frame {
                None => {
                    let taken = self.decode_head(input)?;
                    input = &input[taken..];
                }
                Some(frame) => {
                    let taken = usize::try_from(frame.left)
                        .map_or(input.len(), |left| left.min(input.len()));
                    let (payload, rest) = input.split_at(taken);
                    self.payload(frame, payload, sink)?;
                    input = rest;
                }
            }
            if let Some(frame) = self.frame
                && frame.left == 0
            {
                self.frame = None;
                self.end_of_frame(frame, sink)?;
            }
        }
        Ok(())
    }

    /// Takes bytes of a head; what they say is judged as soon as it is there.
    fn decode_head(&mut self, input: &[u8]) -> Result<usize, FrameError> {
        let before = self.head_length;
        let needed = self.head_bytes();
        let taken = (needed - before).min(input.len());
        self.head[before..before + taken].copy_from_slice(&input[..taken]);
        self.head_length += taken;
        if before < 2 && self.head_length == 2 {
            self.check_start()?;
        }
        if self.head_length >= 2 && self.head_length == self.head_bytes() {
            self.head_length = 0;
            self.begin_frame()?;
        }
        Ok(taken)
    }

    /// The length of the head, as far as it is known.
    fn head_bytes(&self) -> usize {
        if self.head_length < 2 {
            return 2;
        }
        let length = match self.head[1] & !MASKED {
            LENGTH_OF_TWO => 2,
            LENGTH_OF_EIGHT => 8,
            _ => 0,
        };
        let mask = if self.head[1] & MASKED == 0 { 0 } else { 4 };
        2 + length + mask
    }

    /// Judges the first two bytes of a head.
    fn check_start(&self) -> Result<(), FrameError> {
        let [first, second] = [self.head[0], self.head[1]];
        let number = first & 0x0f;
        // Only the first frame of a message has the bit (RFC 7692, section 6.1).
        let may_be_compressed = !matches!(self.compression, Compression::Forbidden)
            && matches!(
                Opcode::from_number(number),
                Some(Opcode::Text | Opcode::Binary)
            );
        let allowed = if may_be_compressed { COMPRESSED } else { 0 };
        if first & RESERVED & !allowed != 0 {
            return Err(FrameError::Reserved);
        }
        let opcode = Opcode::from_number(number).ok_or(FrameError::Opcode(number))?;
        let is_masked = second & MASKED != 0;
        if is_masked != (self.role == Role::Server) {
            return Err(FrameError::Mask { is_masked });
        }
        let is_final = first & FINAL != 0;
        match (opcode, &self.message) {
            (opcode, _) if opcode.is_control() => {
                if !is_final {
                    return Err(FrameError::FragmentedControl);
                }
                if usize::from(second & !MASKED) > MOST_CONTROL_BYTES {
                    return Err(FrameError::LongControl);
                }
            }
            (Opcode::Continuation, None) => return Err(FrameError::NothingToContinue),
            (Opcode::Continuation, Some(_)) | (_, None) => {}
            (_, Some(_)) => return Err(FrameError::Interleaved),
        }
        Ok(())
    }

    /// Takes a whole head, whose start was judged.
    fn begin_frame(&mut self) -> Result<(), FrameError> {
        let head = &self.head;
        let (left, mask_at, least) = match head[1] & !MASKED {
            LENGTH_OF_TWO => (u64::from(u16::from_be_bytes([head[2], head[3]])), 4, 126),
            LENGTH_OF_EIGHT => {
                let bytes = head[2..10].try_into().expect("these are eight bytes");
                (u64::from_be_bytes(bytes), 10, 1 << 16)
            }
            length => (u64::from(length), 2, 0),
        };
        if left < least || left > u64::MAX / 2 {
            return Err(FrameError::Length);
        }
        let mask = &head[mask_at..mask_at + 4];
        let mask = <[u8; 4]>::try_from(mask).expect("these are four bytes");
        let opcode = Opcode::from_number(head[0] & 0x0f).expect("the opcode was judged");
        let started = match opcode {
            Opcode::Text => Some(MessageKind::Text),
            Opcode::Binary => Some(MessageKind::Binary),
            _ => None,
        };
        if let Some(kind) = started {
            self.message = Some(Message {
                kind,
                encoded: 0,
                length: 0,
                is_compressed: head[0] & COMPRESSED != 0,
                utf8: Utf8::default(),
            });
        }
        if !opcode.is_control()
            && let Some(message) = &self.message
            && left > self.limits.message_bytes - message.encoded
        {
            return Err(FrameError::TooLarge {
                limit: self.limits.message_bytes,
            });
        }
        self.control_length = 0;
        self.frame = Some(Frame {
            opcode,
            is_final: head[0] & FINAL != 0,
            left,
            mask: (head[1] & MASKED != 0).then_some(mask),
            offset: 0,
        });
        Ok(())
    }

    /// Takes some of the payload of `frame`.
    fn payload<S: FrameSink>(
        &mut self,
        mut frame: Frame,
        payload: &[u8],
        sink: &mut S,
    ) -> Result<(), FrameError> {
        frame.left -= payload.len() as u64;
        let offset = frame.offset;
        frame.offset = (offset + payload.len()) % 4;
        self.frame = Some(frame);
        let Some(mask) = frame.mask else {
            return self.plain_payload(frame.opcode, payload, sink);
        };
        let mut memory = [0; UNMASKED_AT_A_TIME];
        let mut offset = offset;
        for piece in payload.chunks(UNMASKED_AT_A_TIME) {
            let plain = &mut memory[..piece.len()];
            plain.copy_from_slice(piece);
            apply_mask(plain, mask, offset);
            offset = (offset + piece.len()) % 4;
            self.plain_payload(frame.opcode, plain, sink)?;
        }
        Ok(())
    }

    fn plain_payload<S: FrameSink>(
        &mut self,
        opcode: Opcode,
        payload: &[u8],
        sink: &mut S,
    ) -> Result<(), FrameError> {
        if opcode.is_control() {
            let end = self.control_length + payload.len();
            self.control[self.control_length..end].copy_from_slice(payload);
            self.control_length = end;
            return Ok(());
        }
        let message = self.message.as_mut().expect("its first frame began it");
        message.encoded += payload.len() as u64;
        if !message.is_compressed {
            return message.accept(payload, self.limits, sink);
        }
        let inflater = self.compression.inflater();
        inflater.push(payload, |piece| message.accept(piece, self.limits, sink))
    }

    fn end_of_frame<S: FrameSink>(&mut self, frame: Frame, sink: &mut S) -> Result<(), FrameError> {
        let control = &self.control[..self.control_length];
        match frame.opcode {
            Opcode::Ping => sink.event(Event::Ping(control)),
            Opcode::Pong => sink.event(Event::Pong(control)),
            Opcode::Close => {
                let close = close(control)?;
                self.is_closed = true;
                sink.event(Event::Close(close));
            }
            Opcode::Text | Opcode::Binary | Opcode::Continuation if frame.is_final => {
                let mut message = self.message.take().expect("its first frame began it");
                if message.is_compressed {
                    let inflater = self.compression.inflater();
                    inflater.finish(|piece| message.accept(piece, self.limits, sink))?;
                }
                message.utf8.finish().map_err(|_| FrameError::Utf8)?;
                sink.event(Event::Message {
                    kind: message.kind,
                    length: message.length,
                });
            }
            Opcode::Text | Opcode::Binary | Opcode::Continuation => {}
        }
        Ok(())
    }
}

impl Message {
    /// Takes a piece of the content.
    fn accept<S: FrameSink>(
        &mut self,
        piece: &[u8],
        limits: Limits,
        sink: &mut S,
    ) -> Result<(), FrameError> {
        self.length += piece.len() as u64;
        if self.length > limits.message_bytes {
            return Err(FrameError::TooLarge {
                limit: limits.message_bytes,
            });
        }
        if self.kind == MessageKind::Text {
            let checked = self.utf8.push(piece);
            checked.map_err(|_| FrameError::Utf8)?;
        }
        sink.piece(piece);
        Ok(())
    }
}

impl Compression {
    /// Made for the first compressed message: it takes some 40 kB.
    fn inflater(&mut self) -> &mut Inflater {
        if !matches!(self, Self::Used(_)) {
            *self = Self::Used(Box::new(Inflater::new()));
        }
        match self {
            Self::Used(inflater) => inflater,
            Self::Forbidden | Self::Agreed => unreachable!("it was just replaced"),
        }
    }
}

/// The code and reason of a close frame (sections 5.5.1 and 7.4).
fn close(payload: &[u8]) -> Result<Option<Close<'_>>, FrameError> {
    let (code, reason) = match payload {
        [] => return Ok(None),
        [_] => return Err(FrameError::CloseLength),
        [high, low, reason @ ..] => (u16::from_be_bytes([*high, *low]), reason),
    };
    // 1004 to 1006 and 1015 stand for what was never sent; 1012 to 1014 came after the RFC.
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(FrameError::CloseCode(code));
    }
    let reason = str::from_utf8(reason).map_err(|_| FrameError::Utf8)?;
    Ok(Some(Close { code, reason }))
}
