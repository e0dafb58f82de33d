//! Balancers: which server of an upstream gets the next request.
//!
//! Balancers are pure. They see the servers through [`Servers`], and randomness comes from a seed, so each is tested for
//! its distribution and for what happens when a server comes or goes.

mod hash;

mod least_connections;

mod least_requests;

mod maglev;

mod p2c;

mod random;

mod ring_hash;

mod round_robin;

use std::fmt;
use std::str::FromStr;

pub use self::hash::hash;

/// The servers of an upstream as a balancer sees them.
pub trait Servers {
    /// How many there are, available or not.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The share of requests relative to the other servers; 0 if the server is not available.
    fn weight(&self, server: usize) -> f64;

    /// Requests in flight.
    fn active(&self, server: usize) -> u32;

    /// Open connections, idle ones included.
    fn connections(&self, server: usize) -> u32;

    /// The peak-sensitive moving average of latency, in seconds; 0 before the first response.
    fn latency(&self, server: usize) -> f64;
}

/// Chooses servers.
pub trait Balancer {
    /// The server for the next request; `None` if none is available.
    ///
    /// - `key`: the hash of what requests have in common that should reach the same server.
    fn choose(&mut self, servers: &dyn Servers, key: u64) -> Option<usize>;
}

/// The balancers by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Balance {
    /// Each in turn, by weight, evenly spread.
    #[default]
    RoundRobin,
    /// At random, by weight.
    Random,
    /// The one with the fewest requests in flight, relative to its weight.
    LeastRequests,
    /// The one with the fewest open connections, relative to its weight.
    LeastConnections,
    /// Of two at random the one with fewer requests in flight.
    P2c,
    /// Of two at random the one with the lower product of latency and requests in flight.
    PeakEwma,
    /// By key on a ring of hashes (Karger and others, 1997).
    RingHash,
    /// By key with a lookup table (Eisenbud and others, "Maglev", NSDI 2016).
    Maglev,
}

impl Balance {
    /// Every balancer.
    pub const ALL: [Self; 8] = [
        Self::RoundRobin,
        Self::Random,
        Self::LeastRequests,
        Self::LeastConnections,
        Self::P2c,
        Self::PeakEwma,
        Self::RingHash,
        Self::Maglev,
    ];

    /// The name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::Random => "random",
            Self::LeastRequests => "least_requests",
            Self::LeastConnections => "least_connections",
            Self::P2c => "p2c",
            Self::PeakEwma => "peak_ewma",
            Self::RingHash => "ring_hash",
            Self::Maglev => "maglev",
        }
    }

    /// Whether it needs a key.
    pub const fn is_keyed(self) -> bool {
        matches!(self, Self::RingHash | Self::Maglev)
    }

    /// A balancer over servers of these names and weights.
    ///
    /// - `seed`: makes random choices repeatable.
    pub fn make(self, servers: &[(&str, u32)], seed: u64) -> Box<dyn Balancer> {
        match self {
            Self::RoundRobin => Box::new(round_robin::RoundRobin::new(servers.len())),
            Self::Random => Box::new(random::Random::new(seed)),
            Self::LeastRequests => Box::new(least_requests::LeastRequests::new()),
            Self::LeastConnections => Box::new(least_connections::LeastConnections::new()),
            Self::P2c => Box::new(p2c::PowerOfTwo::by_active(seed)),
            Self::PeakEwma => Box::new(p2c::PowerOfTwo::by_latency(seed)),
            Self::RingHash => Box::new(ring_hash::Ring::new(servers)),
            Self::Maglev => Box::new(maglev::Maglev::new(servers)),
        }
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a balancer that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a balancer; there are round_robin, random, least_requests, least_connections, p2c, peak_ewma, ring_hash and maglev"
)]
pub struct UnknownBalance(String);

impl FromStr for Balance {
    type Err = UnknownBalance;

    fn from_str(text: &str) -> Result<Self, UnknownBalance> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| UnknownBalance(text.to_owned()))
    }
}

#[cfg(test)]
mod contract;
