//! The better of two servers at random (Mitzenmacher, "The power of two choices", 2001).

use fastrand::Rng;

use super::random::weighted;
use super::{Balancer, Servers};

/// Needs no look at the other servers, and does not send every request to a server that has just become the best.
#[derive(Debug)]
pub(super) struct PowerOfTwo {
    random: Rng,
    by_latency: bool,
}

/// The latency of a server that has not responded yet, in seconds: low, so that it is tried, and above 0, so that its
/// requests in flight count.
const UNKNOWN_LATENCY: f64 = 1e-3;

impl PowerOfTwo {
    pub(super) fn by_active(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            by_latency: false,
        }
    }

    pub(super) fn by_latency(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            by_latency: true,
        }
    }

    fn cost(&self, servers: &dyn Servers, server: usize) -> f64 {
        let active = f64::from(servers.active(server) + 1);
        if !self.by_latency {
            return active;
        }
        let latency = servers.latency(server);
        active
            * if latency > 0.0 {
                latency
            } else {
                UNKNOWN_LATENCY
            }
    }
}

impl Balancer for PowerOfTwo {
    fn choose(&mut self, servers: &dyn Servers, _key: u64) -> Option<usize> {
        // Both are drawn by weight, so the costs need not be divided by it.
        let one = weighted(servers, &mut self.random)?;
        let other = weighted(servers, &mut self.random)?;
        if self.cost(servers, other) < self.cost(servers, one) {
            Some(other)
        } else {
            Some(one)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::{Fixed, counted};
    use super::*;

    #[test]
    fn the_slow_server_gets_less() {
        let mut servers = Fixed::weights(&[1.0, 1.0]);
        servers.latency = vec![0.010, 0.100];
        let counts = counted(&mut PowerOfTwo::by_latency(7), &servers, 4_000);
        // It is chosen only where both draws are the slow one: a quarter.
        assert!((800..1_200).contains(&counts[1]), "{counts:?}");
        servers.active = vec![30, 0];
        let counts = counted(&mut PowerOfTwo::by_latency(7), &servers, 4_000);
        assert!(counts[1] > counts[0], "{counts:?}");
        let counts = counted(&mut PowerOfTwo::by_active(7), &servers, 4_000);
        assert!(counts[1] > counts[0], "{counts:?}");
    }
}
