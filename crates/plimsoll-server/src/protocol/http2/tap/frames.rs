//! The headers of frames in a stream of bytes, however these are cut (RFC 9113, section 4.1).

pub(crate) const DATA: u8 = 0x0;
pub(crate) const HEADERS: u8 = 0x1;
pub(crate) const PRIORITY: u8 = 0x2;
pub(crate) const RST_STREAM: u8 = 0x3;
pub(crate) const SETTINGS: u8 = 0x4;
pub(crate) const PING: u8 = 0x6;
pub(crate) const GOAWAY: u8 = 0x7;
pub(crate) const WINDOW_UPDATE: u8 = 0x8;
pub(crate) const CONTINUATION: u8 = 0x9;
/// The first of the types that RFC 9113 does not define.
pub(crate) const UNKNOWN: u8 = 0xa;

pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const HAS_PRIORITY: u8 = 0x20;

/// Octets of a frame header.
const HEADER_BYTES: usize = 9;

/// The parts of a frame header that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Octets of the payload.
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

/// Position in the stream of frames.
#[derive(Debug)]
pub(crate) struct Frames {
    /// The part of a header that came without its end.
    header: [u8; HEADER_BYTES],
    have: usize,
    /// Bytes until the next header.
    skip: usize,
}

impl Frames {
    /// The first frame comes after `skip` bytes.
    pub(crate) fn after(skip: usize) -> Self {
        Self {
            header: [0; HEADER_BYTES],
            have: 0,
            skip,
        }
    }

    /// Calls `frame` for every header whose last byte is in `bytes`, with what of `bytes` follows it.
    #[inline]
    pub(crate) fn scan(&mut self, mut bytes: &[u8], mut frame: impl FnMut(FrameHeader, &[u8])) {
        loop {
            if self.skip >= bytes.len() {
                self.skip -= bytes.len();
                return;
            }
            bytes = &bytes[self.skip..];
            self.skip = 0;
            let header = match bytes.first_chunk::<HEADER_BYTES>() {
                Some(header) if self.have == 0 => {
                    bytes = &bytes[HEADER_BYTES..];
                    parse(*header)
                }
                _ => {
                    let taken = bytes.len().min(HEADER_BYTES - self.have);
                    self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
                    self.have += taken;
                    bytes = &bytes[taken..];
                    if self.have < HEADER_BYTES {
                        return;
                    }
                    self.have = 0;
                    parse(self.header)
                }
            };
            self.skip = header.length;
            frame(header, bytes);
        }
    }
}

#[inline]
fn parse(header: [u8; HEADER_BYTES]) -> FrameHeader {
    let [a, b, c, kind, flags, stream @ ..] = header;
    FrameHeader {
        length: u32::from_be_bytes([0, a, b, c]) as usize,
        kind,
        flags,
        // The highest bit is reserved.
        stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
    }
}

/// The frames in `pieces`, as far as they are needed.
#[cfg(any(test, feature = "contract"))]
pub(crate) fn found_in(pieces: &[&[u8]]) -> Vec<(u8, u8, usize)> {
    let mut frames = Frames::after(0);
    let mut found = Vec::new();
    for piece in pieces {
        frames.scan(piece, |header, _| {
            found.push((header.kind, header.flags, header.length));
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Vec<(u8, u8, Vec<u8>)>> {
        let payload = proptest::collection::vec(any::<u8>(), 0..40);
        proptest::collection::vec((any::<u8>(), any::<u8>(), payload), 0..20)
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_frames(
            frames in frames(),
            skip in 0_usize..30,
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut bytes = vec![0xff; skip];
            for (kind, flags, payload) in &frames {
                let length = u32::try_from(payload.len()).unwrap();
                bytes.extend_from_slice(&length.to_be_bytes()[1..]);
                bytes.extend_from_slice(&[*kind, *flags, 0x80, 0, 0, 1]);
                bytes.extend_from_slice(payload);
            }
            let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.push(0);
            places.push(bytes.len());
            places.sort_unstable();
            let mut scanner = Frames::after(skip);
            let mut found = Vec::new();
            for pair in places.windows(2) {
                scanner.scan(&bytes[pair[0]..pair[1]], |header, _| {
                    found.push((header.kind, header.flags, header.length));
                });
            }
            let expected: Vec<_> = frames
                .iter()
                .map(|(kind, flags, payload)| (*kind, *flags, payload.len()))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
