//! Frames as they are written (RFC 6455, section 5.2).

/// Payload of a control frame at most (section 5.5).
pub const MOST_CONTROL_BYTES: usize = 125;

/// The types of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// More of a message.
    Continuation,
    /// The beginning of a message of text.
    Text,
    /// The beginning of a message of bytes.
    Binary,
    /// The end of the connection.
    Close,
    /// Asks for a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

/// The types of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

impl MessageKind {
    /// The opcode that a message of this kind begins with.
    pub const fn opcode(self) -> Opcode {
        match self {
            Self::Text => Opcode::Text,
            Self::Binary => Opcode::Binary,
        }
    }
}

impl Opcode {
    pub(super) const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    const fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    /// Whether it may stand between the parts of a message.
    pub const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

pub(super) const FINAL: u8 = 0x80;
pub(super) const RESERVED: u8 = 0x70;

/// RSV1: the message is compressed (RFC 7692, section 6).
pub(super) const COMPRESSED: u8 = 0x40;

pub(super) const MASKED: u8 = 0x80;

/// Stands for a length in the next two bytes.
pub(super) const LENGTH_OF_TWO: u8 = 126;

/// Stands for a length in the next eight bytes.
pub(super) const LENGTH_OF_EIGHT: u8 = 127;

/// Puts a frame at the end of `out`.
///
/// - `is_final`: whether its message ends with it.
/// - `mask`: an unpredictable one for each frame of a client; a server has none.
pub fn encode_frame(
    out: &mut Vec<u8>,
    opcode: Opcode,
    is_final: bool,
    payload: &[u8],
    mask: Option<[u8; 4]>,
) {
    debug_assert!(!opcode.is_control() || (is_final && payload.len() <= MOST_CONTROL_BYTES));
    let first = opcode.number() | if is_final { FINAL } else { 0 };
    encode(out, first, payload, mask);
}

/// Puts a compressed message at the end of `out`, as one frame.
///
/// - `payload`: compressed by a [`Deflater`](super::Deflater).
/// - `mask`: as for [`encode_frame`].
pub fn encode_compressed(
    out: &mut Vec<u8>,
    kind: MessageKind,
    payload: &[u8],
    mask: Option<[u8; 4]>,
) {
    let first = kind.opcode().number() | FINAL | COMPRESSED;
    encode(out, first, payload, mask);
}

/// - `first`: the first byte of the head.
fn encode(out: &mut Vec<u8>, first: u8, payload: &[u8], mask: Option<[u8; 4]>) {
    out.push(first);
    let masked = if mask.is_some() { MASKED } else { 0 };
    let length = payload.len();
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < LENGTH_OF_TWO => out.push(masked | short),
        (_, Ok(length)) => {
            out.push(masked | LENGTH_OF_TWO);
            out.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            out.push(masked | LENGTH_OF_EIGHT);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(mask.as_ref().map_or(&[], |mask| &mask[..]));
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(mask) = mask {
        apply_mask(&mut out[start..], mask, 0);
    }
}

/// Puts a close frame at the end of `out`.
///
/// - `code`: why (section 7.4); absent says nothing.
pub fn encode_close(out: &mut Vec<u8>, code: Option<u16>, mask: Option<[u8; 4]>) {
    let code = code.map(u16::to_be_bytes);
    let payload = code.as_ref().map_or(&[][..], |code| &code[..]);
    encode_frame(out, Opcode::Close, true, payload, mask);
}

/// Masks a payload, or takes the mask off again (section 5.3).
///
/// - `offset`: how many bytes of the payload came before.
pub fn apply_mask(payload: &mut [u8], mask: [u8; 4], offset: usize) {
    let at = |index: usize| mask[(offset + index) % 4];
    let four = [at(0), at(1), at(2), at(3)];
    let [a, b, c, d] = four;
    let eight = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (chunks, rest) = payload.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ eight).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(four.iter().cycle()) {
        *byte ^= mask;
    }
}
