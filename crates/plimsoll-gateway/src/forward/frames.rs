//! The frames of a WebSocket as they pass: where each begins, how long messages are, how many PINGs there are.
//!
//! Pure, and without the content: only the heads of frames are read (RFC 6455, section 5.2).

use std::time::{Duration, Instant};

/// PINGs are counted within this time.
const WINDOW: Duration = Duration::from_secs(10);

/// The longest head of a frame: two bytes, eight of the length and four of the mask.
const MOST_HEAD: usize = 14;

/// Limits of one direction of a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FrameLimits {
    /// Bytes of a message, over all of its frames.
    pub(crate) message: Option<u64>,
    /// PINGs within ten seconds.
    pub(crate) pings: Option<u32>,
}

/// The limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    Message,
    Pings,
}

impl Excess {
    /// The code of the Close frame (RFC 6455, section 7.4.1).
    pub(super) const fn code(self) -> u16 {
        match self {
            Self::Message => 1009,
            Self::Pings => 1008,
        }
    }
}

/// Reads the heads of the frames of one direction.
#[derive(Debug, Clone)]
pub(crate) struct FrameMeter {
    limits: FrameLimits,
    head: [u8; MOST_HEAD],
    /// Bytes of the head so far; 0 between two frames and within the content of one.
    begun: usize,
    /// Bytes of content that the frame still has.
    content: u64,
    /// Bytes of the message so far.
    message: u64,
    pings: u32,
    window: Option<Instant>,
}

impl FrameMeter {
    pub(crate) const fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            head: [0; MOST_HEAD],
            begun: 0,
            content: 0,
            message: 0,
            pings: 0,
            window: None,
        }
    }

    /// Whether the bytes so far end with a whole frame, so that another one may follow.
    pub(crate) const fn is_between_frames(&self) -> bool {
        self.begun == 0 && self.content == 0
    }

    /// Reads bytes that pass.
    ///
    /// Fails at the first frame beyond a limit.
    pub(crate) fn pass(&mut self, bytes: &[u8], now: Instant) -> Result<(), Excess> {
        let mut at = 0;
        while at < bytes.len() {
            if self.content > 0 {
                let rest = bytes.len() - at;
                let skipped = usize::try_from(self.content).unwrap_or(rest).min(rest);
                self.content -= skipped as u64;
                at += skipped;
                continue;
            }
            self.head[self.begun] = bytes[at];
            self.begun += 1;
            at += 1;
            if self.begun >= 2 && self.begun == head_length(self.head[1]) {
                self.begun = 0;
                self.begin(now)?;
            }
        }
        Ok(())
    }

    /// A whole head has been read.
    fn begin(&mut self, now: Instant) -> Result<(), Excess> {
        let (first, second) = (self.head[0], self.head[1]);
        let long = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        self.content = match second & 0x7f {
            126 => long(&self.head[2..4]),
            127 => long(&self.head[2..10]),
            short => short.into(),
        };
        let (is_final, opcode) = (first & 0x80 != 0, first & 0x0f);
        if opcode & 0x8 == 0 {
            self.message = self.message.saturating_add(self.content);
            if self.limits.message.is_some_and(|most| self.message > most) {
                return Err(Excess::Message);
            }
            if is_final {
                self.message = 0;
            }
        } else if opcode == 0x9 {
            let is_new = self.window.is_none_or(|it| now.duration_since(it) > WINDOW);
            if is_new {
                (self.window, self.pings) = (Some(now), 0);
            }
            self.pings = self.pings.saturating_add(1);
            if self.limits.pings.is_some_and(|most| self.pings > most) {
                return Err(Excess::Pings);
            }
        }
        Ok(())
    }
}

/// Bytes of a head, by its second one.
const fn head_length(second: u8) -> usize {
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    2 + length + mask
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock as _;
    use plimsoll_testkit::VirtualClock;
    use plimsoll_wire::ws::{Opcode, encode_frame};

    use super::*;

    fn frame(opcode: Opcode, is_final: bool, length: usize, is_masked: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mask = is_masked.then_some([1, 2, 3, 4]);
        encode_frame(&mut out, opcode, is_final, &vec![7; length], mask);
        out
    }

    #[test]
    fn frames_of_every_length_are_followed_wherever_they_are_cut() {
        let now = VirtualClock::new().now();
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            for is_masked in [false, true] {
                let mut bytes = frame(Opcode::Binary, true, length, is_masked);
                bytes.extend(frame(Opcode::Ping, true, 3, is_masked));
                for piece in [1, 7, 4096] {
                    let mut meter = FrameMeter::new(FrameLimits::default());
                    for part in bytes.chunks(piece) {
                        meter.pass(part, now).unwrap();
                    }
                    assert!(meter.is_between_frames(), "{length} {piece}");
                    meter.pass(&bytes[..1], now).unwrap();
                    assert!(!meter.is_between_frames());
                }
            }
        }
    }

    #[test]
    fn a_message_counts_over_its_frames_and_control_frames_do_not() {
        let now = VirtualClock::new().now();
        let limits = FrameLimits {
            message: Some(10),
            pings: None,
        };
        let mut meter = FrameMeter::new(limits);
        meter
            .pass(&frame(Opcode::Text, false, 6, true), now)
            .unwrap();
        meter
            .pass(&frame(Opcode::Ping, true, 100, true), now)
            .unwrap();
        let mut last = frame(Opcode::Continuation, true, 4, true);
        last.extend(frame(Opcode::Text, true, 10, true));
        meter.pass(&last, now).unwrap();
        let long = frame(Opcode::Text, true, 11, true);
        assert_eq!(meter.pass(&long, now), Err(Excess::Message));
    }

    #[test]
    fn pings_are_counted_within_ten_seconds() {
        let clock = VirtualClock::new();
        let limits = FrameLimits {
            message: None,
            pings: Some(2),
        };
        let mut meter = FrameMeter::new(limits);
        let ping = frame(Opcode::Ping, true, 0, false);
        let later = clock.now() + Duration::from_secs(11);
        for now in [clock.now(), clock.now(), later, later] {
            meter.pass(&ping, now).unwrap();
        }
        assert_eq!(meter.pass(&ping, later), Err(Excess::Pings));
    }
}
