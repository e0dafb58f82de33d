//! NTP: how far the clock of a server is from the one of this machine, by one exchange.
//!
//! Source: RFC 5905, sections 6 (time formats), 7.3 (packet header), 8 (offset and delay) and 14 (SNTP).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use serde_json::json;

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::udp::{exchange, resolve};
use crate::probe::{Probe, ProbeFuture};

/// Bytes of a packet without extensions.
const LENGTH: usize = 48;

/// Version 4, from a client.
const CLIENT: u8 = 0b00_100_011;

/// Seconds between the beginnings of the two calendars.
const FROM_1900_TO_1970: u64 = 2_208_988_800;

/// The mode of an answer, in the lowest bits.
const SERVER: u8 = 4;

/// Reads the time of a server.
#[derive(Debug)]
pub struct NtpProbe {
    /// Address of the server.
    pub target: TcpTarget,
    /// How far its clock may be from the one of this machine.
    pub most_offset: Duration,
    /// How many servers may lie between it and a clock.
    pub most_stratum: u8,
    /// Connection options.
    pub reach: Reach,
}

/// A duration in units of 2⁻³² seconds, signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fractions(i64);

impl Fractions {
    /// From one timestamp to another one, which is right across eras if they are within 68 years.
    fn between(from: u64, to: u64) -> Self {
        Self(to.wrapping_sub(from).cast_signed())
    }

    fn seconds(self) -> f64 {
        self.0 as f64 / 2_f64.powi(32)
    }
}

/// An answer of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answer {
    /// 0 to 2; with 3 the clock is not set.
    leap: u8,
    /// 0 if the server does not serve.
    stratum: u8,
    reference: [u8; 4],
    root_delay_s: f64,
    root_dispersion_s: f64,
    received: u64,
    sent: u64,
}

/// Reads an answer; `None` if it is none, or one to another request.
pub(super) fn read(packet: &[u8], request: [u8; 8]) -> Option<Answer> {
    let packet: &[u8; LENGTH] = packet.get(..LENGTH)?.try_into().ok()?;
    let eight = |at: usize| packet[at..at + 8].try_into().map(u64::from_be_bytes).ok();
    // Seconds with 16 bits behind the point.
    let short = |at: usize| {
        let four = packet[at..at + 4].try_into().map(u32::from_be_bytes).ok()?;
        Some(f64::from(four) / f64::from(1 << 16))
    };
    let is_answer = packet[0] & 0b111 == SERVER && eight(24)? == u64::from_be_bytes(request);
    is_answer.then_some(Answer {
        leap: packet[0] >> 6,
        stratum: packet[1],
        reference: [packet[12], packet[13], packet[14], packet[15]],
        root_delay_s: short(4)?,
        root_dispersion_s: short(8)?,
        received: eight(32)?,
        sent: eight(40)?,
    })
}

impl Answer {
    /// Offset of the server's clock and delay of the exchange, in seconds (RFC 5905, section 8).
    ///
    /// - `requested`, `answered`: when the request was sent and the answer came, by the clock of this machine.
    fn measured(&self, requested: u64, answered: u64) -> (f64, f64) {
        let there = Fractions::between(requested, self.received).seconds();
        let back = Fractions::between(answered, self.sent).seconds();
        let whole = Fractions::between(requested, answered).seconds();
        let inside = Fractions::between(self.received, self.sent).seconds();
        (f64::midpoint(there, back), (whole - inside).max(0.0))
    }

    /// Whose time it has: a kind of clock or a reason in ASCII, or the address of another server.
    fn reference(&self) -> String {
        if self.stratum > 1 {
            return Ipv4Addr::from(self.reference).to_string();
        }
        let letters = self.reference.iter().filter(|byte| byte.is_ascii_graphic());
        letters.map(|byte| char::from(*byte)).collect()
    }
}

/// A date as NTP has it: seconds since 1900 in the upper half, of the era that is under way.
fn timestamp(date: SystemTime) -> u64 {
    let since = date.duration_since(UNIX_EPOCH).unwrap_or_default();
    let fraction = (u64::from(since.subsec_nanos()) << 32) / 1_000_000_000;
    (since.as_secs().wrapping_add(FROM_1900_TO_1970) << 32) | fraction
}

impl NtpProbe {
    async fn look(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let peer = resolve(&self.target, &self.reach, context, reading).await?;
        reading.peer = Some(peer.ip());
        // Anything, by which the answer is recognised; the date of a client is of no use to a server.
        let request = fastrand::u64(..).to_be_bytes();
        let mut packet = [0; LENGTH];
        packet[0] = CLIENT;
        packet[40..].copy_from_slice(&request);
        let (requested, begun) = (context.clock.wall(), context.clock.now());
        let answer = exchange(peer, Some(&packet)).await;
        let answer = answer.map_err(|error| Failure::from_io(Phase::Wait, &error))?;
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        reading.connected = true;
        let answer = read(&answer, request).ok_or_else(|| {
            let cause = "the answer is not one of NTP to this request";
            Failure::new(Phase::Receive, FailureKind::Protocol).because(cause)
        })?;
        self.judge(answer, requested, waited, reading);
        Ok(())
    }

    fn judge(
        &self,
        answer: Answer,
        requested: SystemTime,
        waited: Duration,
        reading: &mut Reading,
    ) {
        let (offset, delay) = answer.measured(timestamp(requested), timestamp(requested + waited));
        let millis = |seconds: f64| (seconds * 1e6).round() / 1e3;
        let body = json!({
            "offset_ms": millis(offset),
            "delay_ms": millis(delay),
            "stratum": answer.stratum,
            "leap": answer.leap,
            "root_delay_ms": millis(answer.root_delay_s),
            "root_dispersion_ms": millis(answer.root_dispersion_s),
            "reference": answer.reference(),
        });
        reading.body = body.to_string().into_bytes();
        reading.size = reading.body.len() as u64;
        let most = self.most_offset;
        reading.unmet = if answer.stratum == 0 {
            Some(match &*answer.reference() {
                "" => "the server has no time to serve".to_owned(),
                code => format!("the server refuses to serve: {code}"),
            })
        } else if answer.leap == 3 {
            Some("the clock of the server is not synchronised".to_owned())
        } else if answer.stratum > self.most_stratum {
            let (found, most) = (answer.stratum, self.most_stratum);
            Some(format!(
                "the stratum of the server is {found}, more than {most}"
            ))
        } else if offset.abs() > most.as_secs_f64() {
            let side = if offset > 0.0 { "ahead of" } else { "behind" };
            let far = Duration::try_from_secs_f64(offset.abs()).unwrap_or(Duration::MAX);
            let far = Duration::from_millis(u64::try_from(far.as_millis()).unwrap_or(u64::MAX));
            Some(format!(
                "the clock of the server is {far:?} {side} the one of this machine, more than {most:?}"
            ))
        } else {
            None
        };
    }
}

impl Probe for NtpProbe {
    fn kind(&self) -> &'static str {
        "ntp"
    }

    fn target(&self) -> String {
        self.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.look(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1 << 32;

    fn answer(received: u64, sent: u64) -> Answer {
        Answer {
            leap: 0,
            stratum: 2,
            reference: [127, 0, 0, 1],
            root_delay_s: 0.0,
            root_dispersion_s: 0.0,
            received,
            sent,
        }
    }

    #[test]
    fn timestamps_begin_in_1900_and_again_in_2036() {
        assert_eq!(timestamp(UNIX_EPOCH) >> 32, FROM_1900_TO_1970);
        let half = UNIX_EPOCH + Duration::from_millis(500);
        assert_eq!(timestamp(half) & (SECOND - 1), SECOND / 2);
        // 7 February 2036, 06:28:16 UTC.
        let era = UNIX_EPOCH + Duration::from_secs(2_085_978_496);
        assert_eq!(timestamp(era), 0);
        assert_eq!(
            timestamp(era - Duration::from_secs(1)) >> 32,
            u64::from(u32::MAX)
        );
    }

    #[test]
    fn answers_of_others_and_short_ones_are_none() {
        let mut packet = [0; LENGTH];
        packet[0] = 0b00_100_100;
        packet[24..32].copy_from_slice(&7_u64.to_be_bytes());
        let request = 7_u64.to_be_bytes();
        assert!(read(&packet, request).is_some());
        assert_eq!(read(&packet, 8_u64.to_be_bytes()), None);
        assert_eq!(read(&packet[..47], request), None);
        packet[0] = CLIENT;
        assert_eq!(read(&packet, request), None);
    }

    proptest! {
        /// Whatever the dates are, across eras too, with ways of the same length.
        #[test]
        fn the_offset_is_that_of_the_clocks(
            requested in any::<u64>(), way in 0..10 * SECOND, inside in 0..10 * SECOND, offset in -1_000_000_i64..1_000_000,
        ) {
            let there = requested.wrapping_add((offset << 32).cast_unsigned());
            let received = there.wrapping_add(way);
            let sent = received.wrapping_add(inside);
            let answered = requested.wrapping_add(2 * way + inside);
            let (found, delay) = answer(received, sent).measured(requested, answered);
            prop_assert!((found - offset as f64).abs() < 1e-6, "{found}");
            prop_assert!((delay - 2.0 * way as f64 / SECOND as f64).abs() < 1e-6, "{delay}");
        }
    }
}
