//! The frames of a stream of HTTP/3, however its bytes are cut (RFC 9114, section 7.1).
//!
//! The `h3` crate lays up every frame but DATA as a whole, whatever its length, and takes content that ends within a
//! frame for whole; so both are looked at before it sees them. [`with_protocol`] adds the protocol that it does not know,
//! WebSockets.

mod connect;

mod settings;

pub use self::connect::{Rewritten, with_protocol};
pub use self::settings::{PeerSettings, SettingsReader};

const DATA: u64 = 0x0;
const HEADERS: u64 = 0x1;

/// The type of a control stream (RFC 9114, section 6.2.1).
const CONTROL: u64 = 0x0;

/// Two integers of at most eight octets (RFC 9000, section 16).
const HEADER_BYTES: usize = 16;

/// Position in the stream.
#[derive(Debug)]
pub struct Frames {
    /// The part of a header that came without its end.
    header: [u8; HEADER_BYTES],
    have: usize,
    /// Bytes until the next header.
    skip: u64,
    begins_with: Begins,
    /// Octets that a frame other than DATA may have.
    most: u64,
    /// Frames of fields so far: the second one has the trailer fields.
    sections: u32,
    /// The trailer fields, as far as they have come.
    trailers: Vec<u8>,
    has_pseudo_trailers: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    Frames,
    /// The type of the stream comes first.
    Type,
    /// There are no frames that matter.
    Nothing,
}

/// A frame other than DATA is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame is too long")]
pub struct TooLong;

impl Frames {
    /// Those of a request, or of the response on its stream.
    ///
    /// - `most`: octets that a frame other than DATA may have.
    pub fn of_request(most: u64) -> Self {
        Self {
            header: [0; HEADER_BYTES],
            have: 0,
            skip: 0,
            begins_with: Begins::Frames,
            most,
            sections: 0,
            trailers: Vec::new(),
            has_pseudo_trailers: false,
        }
    }

    /// Those of a stream in one direction, if it is the control stream.
    pub fn of_unidirectional(most: u64) -> Self {
        Self {
            begins_with: Begins::Type,
            ..Self::of_request(most)
        }
    }

    /// Whether the stream may end here.
    pub fn is_between(&self) -> bool {
        self.have == 0 && self.skip == 0
    }

    /// Whether the trailer fields have a pseudo-field, which makes the message malformed (RFC 9114, section 4.3).
    pub fn has_pseudo_trailers(&self) -> bool {
        self.has_pseudo_trailers
    }

    /// Looks at what came; says how many frames began that bring nothing.
    pub fn scan(&mut self, mut bytes: &[u8]) -> Result<u32, TooLong> {
        let mut empty = 0;
        while self.begins_with != Begins::Nothing {
            let skipped = usize::try_from(self.skip)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            if self.sections > 1 && skipped > 0 {
                self.look_at_trailers(&bytes[..skipped]);
            }
            bytes = &bytes[skipped..];
            self.skip -= skipped as u64;
            let Some((first, rest)) = bytes.split_first() else {
                break;
            };
            bytes = rest;
            self.header[self.have] = *first;
            self.have += 1;
            let Some((kind, length)) = self.parsed() else {
                continue;
            };
            self.have = 0;
            match (kind, length) {
                (DATA, 1..) => self.skip = length,
                (DATA, 0) => empty += 1,
                (_, length) if length > self.most => return Err(TooLong),
                (HEADERS, length) => {
                    self.skip = length;
                    self.sections += 1;
                }
                (_, length) => {
                    empty += 1;
                    self.skip = length;
                }
            }
        }
        Ok(empty)
    }

    /// - `bytes`: the next ones of the frame that is under way.
    fn look_at_trailers(&mut self, bytes: &[u8]) {
        self.trailers.extend_from_slice(bytes);
        if self.skip == bytes.len() as u64 {
            self.has_pseudo_trailers |= connect::has_pseudo_fields(&self.trailers);
            self.trailers = Vec::new();
        }
    }

    /// Type and length of a frame, once both are there.
    fn parsed(&mut self) -> Option<(u64, u64)> {
        let have = &self.header[..self.have];
        let (kind, rest) = integer(have)?;
        if self.begins_with == Begins::Type {
            self.begins_with = if kind == CONTROL {
                Begins::Frames
            } else {
                Begins::Nothing
            };
            self.have = 0;
            return None;
        }
        let (length, _) = integer(rest)?;
        Some((kind, length))
    }
}

/// The integer that `bytes` begin with, and what follows it.
fn integer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let (integer, rest) = bytes.split_at_checked(length)?;
    let value = integer[1..]
        .iter()
        .fold(u64::from(first & 0x3f), |value, byte| {
            value << 8 | u64::from(*byte)
        });
    Some((value, rest))
}

/// Parses `pieces` of a request, or of a stream in one direction: counts the frames that carry nothing, and finds whether the
/// stream may end there.
pub fn found_in(pieces: &[&[u8]], is_request: bool) -> Result<(u32, bool), TooLong> {
    let mut frames = if is_request {
        Frames::of_request(1000)
    } else {
        Frames::of_unidirectional(1000)
    };
    let mut empty = 0;
    for piece in pieces {
        empty += frames.scan(piece)?;
    }
    Ok((empty, frames.is_between()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_have_one_two_four_or_eight_octets() {
        // The examples of RFC 9000, appendix A.1.
        for (bytes, value) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(integer(bytes), Some((value, &[][..])));
            assert_eq!(integer(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn what_is_too_long_and_what_is_empty_is_reported() {
        let mut frames = Frames::of_request(100);
        // HEADERS of 2, DATA of 3, DATA of none, an unknown frame of 1.
        let bytes = [1, 2, 0, 0, 0, 3, 9, 9, 9, 0, 0, 0x21, 1, 7];
        assert_eq!(frames.scan(&bytes), Ok(2));
        assert!(frames.is_between());
        assert_eq!(frames.scan(&[0, 5, 1]), Ok(0));
        assert!(!frames.is_between());
        let mut frames = Frames::of_request(100);
        assert_eq!(frames.scan(&[1, 0x40, 101]), Err(TooLong));
        // Content may be of any length.
        let mut frames = Frames::of_request(100);
        assert_eq!(frames.scan(&[0, 0x7f, 0xff, 1]), Ok(0));
        let mut control = Frames::of_unidirectional(100);
        assert_eq!(control.scan(&[0, 4, 0, 0x21, 0]), Ok(2));
        assert_eq!(control.scan(&[0xc0, 0, 0, 0, 0, 0, 0, 9, 0x65]), Ok(0));
        assert_eq!(control.scan(&[0]), Err(TooLong));
        let mut encoder = Frames::of_unidirectional(100);
        assert_eq!(encoder.scan(&[2, 1, 0x7f, 0xff, 0xff]), Ok(0));
    }

    proptest! {
        #[test]
        fn cuts_make_no_difference(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
            let (one, other) = bytes.split_at(cut.min(bytes.len()));
            for is_request in [true, false] {
                let whole = found_in(&[&bytes], is_request);
                prop_assert_eq!(found_in(&[one, other], is_request), whole);
            }
        }
    }
}
