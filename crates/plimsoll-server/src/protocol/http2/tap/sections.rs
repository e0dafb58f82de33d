//! Header blocks of requests, put together from their frames, so that streams with malformed pseudo-fields are known.

use plimsoll_wire::h2::hpack::PseudoWatch;

use super::frames::{self, FrameHeader};

/// Octets of the payload of a frame, as long as SETTINGS allow no more (RFC 9113, section 4.2).
const MOST_PAYLOAD: usize = 16 * 1024;

/// The blocks of a connection in their order.
#[derive(Default)]
pub(super) struct Sections {
    watch: PseudoWatch,
    /// The frame that came without its end.
    cut: Option<FrameHeader>,
    payload: Vec<u8>,
    /// The block, as long as frames of it are to come.
    block: Vec<u8>,
    /// The stream of the latest request: a block of it, or of one before, has trailer fields.
    latest: u32,
}

impl Sections {
    /// A frame began; `rest` is what has come behind its header. Returns its stream, if its block ends with it and makes
    /// the request malformed (RFC 9113, section 8.1.1).
    #[inline]
    pub(super) fn began(&mut self, frame: FrameHeader, rest: &[u8]) -> Option<u32> {
        if !matches!(frame.kind, frames::HEADERS | frames::CONTINUATION)
            || frame.length > MOST_PAYLOAD
        {
            return None;
        }
        if let Some(payload) = rest.get(..frame.length) {
            return self.whole(frame, payload);
        }
        self.payload.clear();
        self.payload.extend_from_slice(rest);
        self.cut = Some(frame);
        None
    }

    /// Bytes came that go on with what came before.
    #[inline]
    pub(super) fn went_on(&mut self, bytes: &[u8]) -> Option<u32> {
        let frame = self.cut?;
        let missing = frame.length - self.payload.len();
        let taken = bytes.len().min(missing);
        self.payload.extend_from_slice(&bytes[..taken]);
        if taken < missing {
            return None;
        }
        self.cut = None;
        let payload = std::mem::take(&mut self.payload);
        let malformed = self.whole(frame, &payload);
        self.payload = payload;
        malformed
    }

    fn whole(&mut self, frame: FrameHeader, payload: &[u8]) -> Option<u32> {
        let fragment = if frame.kind == frames::HEADERS {
            self.block.clear();
            fragment(frame.flags, payload)?
        } else {
            payload
        };
        let is_end = frame.flags & frames::END_HEADERS != 0;
        if !is_end || !self.block.is_empty() {
            self.block.extend_from_slice(fragment);
        }
        if !is_end {
            return None;
        }
        let block = std::mem::take(&mut self.block);
        let found = self
            .watch
            .look(if block.is_empty() { fragment } else { &block });
        let is_head = frame.stream > self.latest;
        self.latest = self.latest.max(frame.stream);
        let is_malformed = if is_head { found.fragment } else { found.any };
        is_malformed.then_some(frame.stream)
    }
}

/// The part of a block in a HEADERS frame, without padding and priority; `None` if they do not fit.
fn fragment(flags: u8, payload: &[u8]) -> Option<&[u8]> {
    let mut payload = payload;
    if flags & frames::PADDED != 0 {
        let (padding, rest) = payload.split_first()?;
        let end = rest.len().checked_sub(usize::from(*padding))?;
        payload = rest.get(..end)?;
    }
    if flags & frames::HAS_PRIORITY != 0 {
        payload = payload.get(5..)?;
    }
    Some(payload)
}

#[cfg(test)]
mod tests {
    use super::super::frames::Frames;
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    /// Streams that are malformed, with the bytes in pieces of this length.
    fn malformed(bytes: &[u8], piece: usize) -> Vec<u32> {
        let (mut sections, mut frames) = (Sections::default(), Frames::after(0));
        let mut found = Vec::new();
        for piece in bytes.chunks(piece) {
            found.extend(sections.went_on(piece));
            frames.scan(piece, |frame, rest| {
                found.extend(sections.began(frame, rest));
            });
        }
        found
    }

    #[test]
    fn malformed_streams_are_found_however_their_bytes_are_cut() {
        // `:path` as a literal with and without a fragment, and `:status` and `age` by their indexes.
        let (good, fragment) = ([0x04, 2, b'/', b'a'], [0x04, 2, b'/', b'#']);
        let (pseudo, other) = ([0x88], [0x95]);
        let padded = [&[2][..], &[0; 5], &fragment, &[0, 0]].concat();
        let bytes = [
            frame(frames::HEADERS, 0x4, 1, &good),
            frame(frames::DATA, 0, 1, &fragment),
            frame(frames::HEADERS, 0x5, 1, &pseudo),
            frame(frames::HEADERS, 0x5, 3, &fragment),
            frame(frames::HEADERS, 0x2d, 5, &padded),
            frame(frames::HEADERS, 0x1, 7, &good),
            frame(frames::CONTINUATION, 0, 7, &fragment[..2]),
            frame(frames::CONTINUATION, 0x4, 7, &fragment[2..]),
            frame(frames::HEADERS, 0x4, 9, &good),
            frame(frames::HEADERS, 0x5, 9, &other),
        ]
        .concat();
        for piece in [1, 2, 3, 7, 10, 11, 1000] {
            assert_eq!(malformed(&bytes, piece), [1, 3, 5, 7], "{piece}");
        }
    }
}
