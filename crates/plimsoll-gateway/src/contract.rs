//! Contracts of parsers that are private to the crate, for fuzz targets; panics where one is broken.

use std::time::Instant;

use crate::forward::FrameLimits;
use crate::forward::frames::FrameMeter;

/// The frames of a WebSocket are limited alike however their bytes are cut.
///
/// - `message`: bytes that a message may have.
/// - `pings`: PINGs within ten seconds.
pub fn websocket_frames(pieces: &[&[u8]], message: u64, pings: u32, now: Instant) {
    let limits = FrameLimits {
        message: Some(message),
        pings: Some(pings),
    };
    let found = |pieces: &[&[u8]]| {
        let mut meter = FrameMeter::new(limits);
        for piece in pieces {
            meter.pass(piece, now)?;
        }
        Ok(meter.is_between_frames())
    };
    let whole = pieces.concat();
    let in_one: Result<bool, crate::forward::frames::Excess> = found(&[&whole]);
    assert_eq!(found(pieces), in_one, "the same whole and in pieces");
    let unlimited = FrameLimits::default();
    let passed = FrameMeter::new(unlimited).pass(&whole, now);
    assert!(passed.is_ok(), "without limits every frame passes");
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock as _;
    use plimsoll_testkit::VirtualClock;

    use super::*;

    #[test]
    fn seeds_of_the_fuzz_target_hold() {
        let now = VirtualClock::new().now();
        // A short text, a PING, and the start of a long message, masked.
        let bytes = [
            0x81, 2, b'h', b'i', 0x89, 0, 0x82, 0xfe, 0, 200, 1, 2, 3, 4, 9,
        ];
        for cut in 0..bytes.len() {
            let (one, other) = bytes.split_at(cut);
            websocket_frames(&[one, other], 100, 1, now);
            websocket_frames(&[one, other], 1000, 0, now);
        }
    }
}
