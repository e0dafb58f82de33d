//! Servers at random.

use fastrand::Rng;

use super::{Balancer, Servers};

/// Random choice by weight.
#[derive(Debug)]
pub(super) struct Random(Rng);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }
}

impl Balancer for Random {
    fn choose(&mut self, servers: &dyn Servers, _key: u64) -> Option<usize> {
        weighted(servers, &mut self.0)
    }
}

/// An available server at random, by weight.
pub(super) fn weighted(servers: &dyn Servers, random: &mut Rng) -> Option<usize> {
    let sum: f64 = (0..servers.len()).map(|it| servers.weight(it)).sum();
    if sum <= 0.0 {
        return None;
    }
    let mut rest = random.f64() * sum;
    let mut last = None;
    for server in 0..servers.len() {
        let weight = servers.weight(server);
        if weight <= 0.0 {
            continue;
        }
        if rest < weight {
            return Some(server);
        }
        rest -= weight;
        last = Some(server);
    }
    // Rounding may leave a little beyond the last one.
    last
}
