//! A checksum of counts that can be added: that of a sum is the sum of those of its parts.

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

/// The digest of a [`Checksum`] while it is added up.
#[derive(Debug, Default)]
pub(super) struct Digest {
    sum: u64,
    position: u64,
}

impl Digest {
    /// Adds the next of the numbers that are always there.
    pub(super) fn add(&mut self, number: u64) {
        self.position += 1;
        self.count(0, self.position, number);
    }

    /// Adds `count` of what `kind` and `value` name.
    // Inlined, the weight of a kind is computed once for a histogram.
    #[inline]
    pub(super) fn count(&mut self, kind: u64, value: u64, count: u64) {
        let weight = mixed(value ^ mixed(kind));
        self.sum = self.sum.wrapping_add(weight.wrapping_mul(count));
    }

    pub(super) fn sum(&self) -> u64 {
        self.sum
    }
}

/// The finalizer of `SplitMix64`.
///
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014), figure 16.
#[inline]
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
