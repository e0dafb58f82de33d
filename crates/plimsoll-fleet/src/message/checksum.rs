//! A checksum of counts that can be added: that of a sum is the sum of those of its parts.

use plimsoll_load::Interval;
use plimsoll_model::{Histogram, Phase};
use serde::{Deserialize, Serialize};

use super::ScriptFigures;

/// What the ticks of an agent add up to. An agent sends it with its last message; the coordinator adds up that of each tick it
/// has merged. They differ if one was lost or merged twice.
///
/// Exchanges and bytes stand as they are. Every other figure is in `digest`: the sum, modulo 2⁶⁴, of each count times a number
/// that depends on what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checksum {
    /// Exchanges begun, or iterations.
    pub started: u64,
    /// Complete responses, or requests of a script.
    pub ok: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Everything else.
    pub digest: u64,
}

impl Checksum {
    /// That of `interval`.
    pub fn from_interval(interval: &Interval) -> Self {
        let mut digest = Digest::default();
        let counts = &interval.counts;
        let numbers = [
            counts.failed,
            counts.aborted,
            counts.failed_status,
            counts.unmet,
            counts.dropped,
            counts.missed,
            counts.broken,
            counts.reconnects,
            counts.redirects,
            counts.warm_up,
            counts.completed_in_window,
            interval.bytes_sent,
            interval.bytes_in_window.sent,
            interval.bytes_in_window.received,
            interval.connections_opened,
            interval.decoded.encoded,
            interval.decoded.decoded,
            interval.messages.sent,
            interval.messages.received,
            interval.latency_nanos,
        ];
        for number in numbers {
            digest.add(number);
        }
        for (status, count) in interval.statuses() {
            digest.count(1, u64::from(status), count);
        }
        for failure in &interval.failures {
            let kind = failure.kind as u64 * 16 + failure.phase.index() as u64;
            digest.count(2, kind, failure.count);
        }
        for (position, count) in (0..).zip(&interval.unmet) {
            digest.count(3, position, *count);
        }
        if let Some(grpc) = interval.grpc() {
            for counted in &grpc.statuses {
                digest.count(4, u64::from(counted.status.code()), counted.count);
            }
            digest.count(5, 0, grpc.messages_received);
            digest.count(5, 1, grpc.messages_in_window);
        }
        if let Some(events) = &interval.events {
            let numbers = [
                events.opened,
                events.ended,
                events.broken,
                events.left,
                events.received,
            ];
            for (position, number) in (0..).zip(numbers) {
                digest.count(6, position, number);
            }
            digest.histogram(7, &events.gaps);
        }
        digest.histogram(8, interval.from_started.observed());
        if let Some(censored) = interval.from_started.censored() {
            digest.histogram(9, censored);
        }
        if let Some(intended) = &interval.from_intended {
            digest.histogram(10, intended.observed());
            if let Some(censored) = intended.censored() {
                digest.histogram(11, censored);
            }
        }
        if let Some(of_errors) = &interval.of_errors {
            digest.histogram(12, of_errors);
        }
        digest.histogram(13, &interval.lag);
        for (position, phase) in (0..).zip(Phase::ALL) {
            if let Some(times) = interval.phase(phase) {
                digest.histogram(14 + position, times);
            }
        }
        if let Some(of_timeouts) = &interval.of_timeouts {
            digest.histogram(14 + Phase::ALL.len() as u64, of_timeouts);
        }
        Self {
            started: counts.started,
            ok: counts.ok,
            bytes_received: interval.bytes_received,
            digest: digest.sum,
        }
    }

    /// That of the figures of a script: its iterations, the samples of its rates and trends, and the exchanges of each second.
    pub fn of_script(figures: &ScriptFigures) -> Self {
        let mut checksum = Self::default();
        let mut digest = Digest::default();
        for record in figures.records() {
            let (metric, sub_metric) = record.name();
            let sum = record.whole().unwrap_or_default();
            match (metric, sub_metric) {
                ("iterations", None) => checksum.started = sum,
                ("http_reqs", None) => checksum.ok = sum,
                _ => {}
            }
            let name = metric.bytes().chain(sub_metric.unwrap_or_default().bytes());
            let name = name.fold(0, |hash, byte| mixed(hash ^ u64::from(byte)));
            record.counted(|place, count| digest.count(name, place, count));
        }
        if let Some(exchanges) = figures.exchanges_record() {
            exchanges.counted(|place, count| digest.count(EXCHANGES, place, count));
        }
        checksum.digest = digest.sum;
        checksum
    }

    /// Adds that of another part.
    pub fn add(&mut self, other: &Self) {
        self.started = self.started.wrapping_add(other.started);
        self.ok = self.ok.wrapping_add(other.ok);
        self.bytes_received = self.bytes_received.wrapping_add(other.bytes_received);
        self.digest = self.digest.wrapping_add(other.digest);
    }
}

/// The kind of what is counted of exchanges: names of metrics have other ones.
const EXCHANGES: u64 = 1;

#[derive(Debug, Default)]
struct Digest {
    sum: u64,
    position: u64,
}

impl Digest {
    /// Adds the next of the numbers that are always there.
    fn add(&mut self, number: u64) {
        self.position += 1;
        self.count(0, self.position, number);
    }

    /// Adds `count` of what `kind` and `value` name.
    fn count(&mut self, kind: u64, value: u64, count: u64) {
        let weight = mixed(value ^ mixed(kind));
        self.sum = self.sum.wrapping_add(weight.wrapping_mul(count));
    }

    fn histogram(&mut self, kind: u64, histogram: &Histogram) {
        for bucket in histogram.buckets() {
            let nanos = u64::try_from(bucket.up_to.as_nanos()).unwrap_or(u64::MAX);
            self.count(kind, nanos, bucket.count);
        }
    }
}

/// The finalizer of `SplitMix64`.
///
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014), figure 16.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
