//! The chunked transfer coding (RFC 9112, section 7.1), as a state machine over byte slices.

use crate::h1::{DecodeError, RequestError};

/// Decodes one chunked body, whatever the pieces it arrives in.
///
/// Line ends are CR LF and nothing else: a lone LF is how one intermediary reads a body that
/// another does not. Extensions and trailers are bounded by one limit for both.
///
/// A client skips extensions, and trailers unless it forwards them. A server, whose request may yet be forwarded,
/// holds extensions to their grammar, sizes to 16 digits, and keeps the trailers.
#[derive(Debug, Clone)]
pub struct ChunkedDecoder {
    state: State,
    /// Extension and trailer bytes that may still come.
    overhead_left: usize,
    overhead_limit: usize,
    is_strict: bool,
    keeps_trailers: bool,
    /// Digits of the current size.
    digits: u8,
    /// Lines of trailers, if they are kept.
    trailers: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The first digit of a size must come.
    SizeStart,
    /// Further digits, an extension or the line end.
    Size {
        size: u64,
    },
    Extension {
        size: u64,
    },
    /// Behind the semicolon of an extension, strictly read.
    NameStart {
        size: u64,
    },
    Name {
        size: u64,
    },
    ValueStart {
        size: u64,
    },
    Token {
        size: u64,
    },
    Quoted {
        size: u64,
    },
    QuotedPair {
        size: u64,
    },
    QuotedEnd {
        size: u64,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// At the start of a trailer line, or of the final empty line.
    TrailerStart,
    /// In a field name: a colon must come before the line ends.
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
}

/// The next piece of the input of [`ChunkedDecoder::decode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkedPart {
    /// So many bytes of framing to skip; the input is used up.
    Framing,
    /// Content at this range of the input; call again with what follows.
    Content { start: usize, end: usize },
    /// The body ended after so many bytes.
    End { consumed: usize },
}

impl ChunkedDecoder {
    /// A decoder at the start of a body; `overhead_limit` bounds all extensions and trailers.
    pub fn new(overhead_limit: usize) -> Self {
        Self {
            state: State::SizeStart,
            overhead_left: overhead_limit,
            overhead_limit,
            is_strict: false,
            keeps_trailers: false,
            digits: 0,
            trailers: Vec::new(),
        }
    }

    /// The same as a server reads: extensions by their grammar, trailers kept.
    pub(crate) fn strict(overhead_limit: usize) -> Self {
        Self {
            is_strict: true,
            keeps_trailers: true,
            ..Self::new(overhead_limit)
        }
    }

    /// The same with the trailers kept or not.
    pub(crate) fn with_trailers(mut self, keeps_trailers: bool) -> Self {
        self.keeps_trailers = keeps_trailers;
        self
    }

    /// Lines of trailers with their CR LF, once the body has ended; empty unless they are kept.
    pub(crate) fn take_trailers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.trailers)
    }

    /// Which part of the framing [`DecodeError::Chunk`] is about.
    pub(crate) fn refusal(&self) -> RequestError {
        match self.state {
            State::SizeStart | State::Size { .. } => RequestError::ChunkSize,
            State::Extension { .. }
            | State::NameStart { .. }
            | State::Name { .. }
            | State::ValueStart { .. }
            | State::Token { .. }
            | State::Quoted { .. }
            | State::QuotedPair { .. }
            | State::QuotedEnd { .. } => RequestError::ChunkExtension,
            State::SizeLf { .. }
            | State::Data { .. }
            | State::DataCr
            | State::DataLf
            | State::EndLf
            | State::Done => RequestError::ChunkEnd,
            State::TrailerStart | State::TrailerName | State::TrailerValue | State::TrailerLf => {
                RequestError::Trailer
            }
        }
    }

    /// Whether the final line was seen.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes framing up to the next content, or all of `input`.
    pub(crate) fn decode(&mut self, input: &[u8]) -> Result<ChunkedPart, DecodeError> {
        let mut at = 0;
        while at < input.len() {
            if let State::Data { left } = self.state {
                let available = (input.len() - at) as u64;
                let taken = available.min(left);
                self.state = match left - taken {
                    0 => State::DataCr,
                    left => State::Data { left },
                };
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "no more than the length of the input"
                )]
                let end = at + taken as usize;
                return Ok(ChunkedPart::Content { start: at, end });
            }
            let byte = input[at];
            let was = self.state;
            self.state = self.step(byte)?;
            at += 1;
            if self.keeps_trailers && was.is_in_trailer(byte) {
                self.trailers.push(byte);
            }
            if self.state == State::Done {
                return Ok(ChunkedPart::End { consumed: at });
            }
        }
        Ok(ChunkedPart::Framing)
    }

    #[expect(
        clippy::match_same_arms,
        reason = "one arm per line of the grammar, in its order"
    )]
    fn step(&mut self, byte: u8) -> Result<State, DecodeError> {
        let next = match (self.state, byte) {
            (State::SizeStart, _) => {
                self.digits = 1;
                State::Size {
                    size: u64::from(hex_digit(byte).ok_or(DecodeError::Chunk)?),
                }
            }
            (State::Size { size }, b'\r') => State::SizeLf { size },
            (State::Size { size }, b';') if self.is_strict => {
                self.count_overhead()?;
                State::NameStart { size }
            }
            (State::Size { .. }, b' ' | b'\t') if self.is_strict => return Err(DecodeError::Chunk),
            // Blanks before an extension are "bad whitespace" that recipients must accept.
            (State::Size { size }, b';' | b' ' | b'\t') => State::Extension { size },
            (State::Size { size }, _) => {
                let digit = hex_digit(byte).ok_or(DecodeError::Chunk)?;
                self.digits = self.digits.saturating_add(1);
                if self.is_strict && self.digits > 16 {
                    return Err(DecodeError::Chunk);
                }
                let size = size.checked_mul(16).ok_or(DecodeError::Chunk)? + u64::from(digit);
                State::Size { size }
            }
            (State::Extension { size }, b'\r') => State::SizeLf { size },
            (State::Extension { size }, _) if is_text(byte) => {
                self.count_overhead()?;
                State::Extension { size }
            }
            (State::Name { size } | State::Token { size } | State::QuotedEnd { size }, b'\r') => {
                State::SizeLf { size }
            }
            (State::Name { size } | State::Token { size } | State::QuotedEnd { size }, b';') => {
                self.count_overhead()?;
                State::NameStart { size }
            }
            (State::Name { size }, b'=') => State::ValueStart { size },
            (State::NameStart { size } | State::Name { size }, _) if is_token(byte) => {
                self.count_overhead()?;
                State::Name { size }
            }
            (State::ValueStart { size }, b'"') => State::Quoted { size },
            (State::ValueStart { size } | State::Token { size }, _) if is_token(byte) => {
                self.count_overhead()?;
                State::Token { size }
            }
            (State::Quoted { size }, b'"') => State::QuotedEnd { size },
            (State::Quoted { size }, b'\\') => State::QuotedPair { size },
            (State::Quoted { size } | State::QuotedPair { size }, _) if is_text(byte) => {
                self.count_overhead()?;
                State::Quoted { size }
            }
            (State::SizeLf { size: 0 }, b'\n') => State::TrailerStart,
            (State::SizeLf { size }, b'\n') => State::Data { left: size },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::SizeStart,
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::TrailerStart | State::TrailerName, _) if is_token(byte) => {
                self.count_overhead()?;
                State::TrailerName
            }
            (State::TrailerName, b':') => State::TrailerValue,
            (State::TrailerValue, b'\r') => State::TrailerLf,
            (State::TrailerValue, _) if is_text(byte) => {
                self.count_overhead()?;
                State::TrailerValue
            }
            (State::TrailerLf, b'\n') => State::TrailerStart,
            (State::EndLf, b'\n') => State::Done,
            _ => return Err(DecodeError::Chunk),
        };
        Ok(next)
    }

    fn count_overhead(&mut self) -> Result<(), DecodeError> {
        self.overhead_left =
            self.overhead_left
                .checked_sub(1)
                .ok_or(DecodeError::ChunkOverhead {
                    limit: self.overhead_limit,
                })?;
        Ok(())
    }
}

impl State {
    /// Whether `byte`, coming here, belongs to a trailer line rather than to the final empty one.
    fn is_in_trailer(self, byte: u8) -> bool {
        match self {
            Self::TrailerStart => byte != b'\r',
            Self::TrailerName | Self::TrailerValue | Self::TrailerLf => true,
            _ => false,
        }
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Whether a byte may stand in an extension or a field value: no control character but the tab.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Whether a byte may stand in a field name (RFC 9110, section 5.6.2).
#[inline]
pub(crate) fn is_token(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// Whether it may be the name of a field (RFC 9110, section 5.1).
///
/// Looks at every byte, without a branch for each: names are short, and almost all are valid.
#[inline]
pub(crate) fn is_name(name: &[u8]) -> bool {
    let is_valid = name
        .iter()
        .fold(true, |is_valid, byte| is_valid & TOKEN[*byte as usize]);
    is_valid && !name.is_empty()
}

/// Bytes of a long value that are looked at together.
const BLOCK: usize = 64;

/// Whether the value of a field has a control character that it may not have (RFC 9110, section 5.5).
#[inline]
pub fn has_control(value: &[u8]) -> bool {
    let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    // Of tokens and cookies: a loop without branches, which the compiler makes of vectors.
    let (blocks, value) = value.as_chunks::<BLOCK>();
    let has_block_control = |block: &[u8; BLOCK]| {
        let bytes = block.iter();
        bytes.fold(false, |any, byte| any | is_control(byte))
    };
    if blocks.iter().any(has_block_control) {
        return true;
    }
    let (words, rest) = value.as_chunks();
    words
        .iter()
        .any(|word| may_have_control(*word) && word.iter().any(is_control))
        || rest.iter().any(is_control)
}

/// Whether one of eight bytes is a control character or a tab, eight at a time: values are a few words long, for which
/// a loop over vectors is mostly its remainder.
#[inline]
fn may_have_control(word: [u8; 8]) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let word = u64::from_ne_bytes(word);
    // What borrows from the byte above it is below the limit itself, so no word is overlooked.
    let below = |word: u64, limit: u64| word.wrapping_sub(limit * EACH) & !word & HIGH;
    (below(word, 0x20) | below(word ^ (0x7f * EACH), 1)) != 0
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte as usize] = matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')
            || matches!(
                byte,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Blocks, words of eight bytes and the rest behind them are looked at as byte by byte.
        #[test]
        fn control_characters_are_found_wherever_they_stand(
            mut value in prop::collection::vec(prop_oneof![Just(b'\t'), Just(b'~'), any::<u8>()], 0..200),
            text in prop::collection::vec(prop_oneof![b' '..0x7f, 0x80..=0xff_u8, Just(b'\t')], 0..200),
        ) {
            let one_by_one = |value: &[u8]| value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t');
            prop_assert!(!has_control(&text));
            prop_assert_eq!(has_control(&value), one_by_one(&value));
            value.splice(value.len() / 2..value.len() / 2, text.iter().copied());
            prop_assert_eq!(has_control(&value), one_by_one(&value));
        }
    }

    fn decode(mut input: &[u8]) -> Result<(Vec<u8>, bool, usize), DecodeError> {
        let mut decoder = ChunkedDecoder::new(64);
        let mut content = Vec::new();
        loop {
            match decoder.decode(input)? {
                ChunkedPart::Framing => return Ok((content, false, 0)),
                ChunkedPart::Content { start, end } => {
                    content.extend_from_slice(&input[start..end]);
                    input = &input[end..];
                }
                ChunkedPart::End { consumed } => {
                    return Ok((content, true, input.len() - consumed));
                }
            }
        }
    }

    #[test]
    fn bodies_with_extensions_and_trailers() {
        let whole = |text: &str| {
            let (content, done, left) = decode(text.as_bytes()).unwrap();
            (String::from_utf8(content).unwrap(), done, left)
        };
        assert_eq!(whole("5\r\nhello\r\n0\r\n\r\n"), ("hello".into(), true, 0));
        assert_eq!(
            whole("5;a=b;c=\"d\"\r\nhello\r\n0 \r\n\r\n"),
            ("hello".into(), true, 0)
        );
        assert_eq!(
            whole("0\r\nx-sum: 1\r\ny:\r\n\r\nHTTP"),
            (String::new(), true, 4)
        );
        assert_eq!(
            whole("A\r\n0123456789\r\n0"),
            ("0123456789".into(), false, 0)
        );
    }

    #[test]
    fn what_intermediaries_disagree_on_is_refused() {
        for bad in [
            "\r\n",
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhelloX0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "-5\r\n",
            "0x5\r\n",
            "+5\r\n",
            "5;a\nb\r\n",
            "11111111111111111\r\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\n: empty name\r\n\r\n",
            "0\r\n\n",
        ] {
            assert_eq!(decode(bad.as_bytes()), Err(DecodeError::Chunk), "{bad:?}");
        }
    }

    #[test]
    fn extensions_and_trailers_are_bounded() {
        let long = format!("5;{}\r\n", "x".repeat(65));
        assert_eq!(
            decode(long.as_bytes()),
            Err(DecodeError::ChunkOverhead { limit: 64 })
        );
        let long = format!("0\r\na: {}\r\n", "x".repeat(65));
        assert_eq!(
            decode(long.as_bytes()),
            Err(DecodeError::ChunkOverhead { limit: 64 })
        );
    }

    #[test]
    fn the_largest_size_does_not_overflow() {
        assert!(decode(b"ffffffffffffffff\r\nx").is_ok());
        assert_eq!(decode(b"fffffffffffffffff\r\n"), Err(DecodeError::Chunk));
    }
}
