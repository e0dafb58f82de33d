//! Each server in turn.

use super::{Balancer, Servers};

/// Smooth weighted round robin, as nginx has it: every choice adds each server's weight to its credit, takes the server
/// with the most credit, and subtracts the sum of weights from that one. Servers of weight 3 and 1 are chosen as AABA.
#[derive(Debug)]
pub(super) struct RoundRobin {
    credits: Vec<f64>,
    /// Start of the next search while all weights are equal.
    next: usize,
}

impl RoundRobin {
    pub(super) fn new(servers: usize) -> Self {
        Self {
            credits: vec![0.0; servers],
            next: 0,
        }
    }
}

impl Balancer for RoundRobin {
    fn choose(&mut self, servers: &dyn Servers, _key: u64) -> Option<usize> {
        let count = servers.len();
        self.credits.resize(count, 0.0);
        let mut sum = 0.0;
        let mut best: Option<(f64, usize)> = None;
        // From the server after the last one chosen, so that equal credits do not prefer the first.
        for step in 0..count {
            let server = (self.next + step) % count;
            let weight = servers.weight(server);
            if weight <= 0.0 {
                // One that comes back should not be owed what it missed.
                self.credits[server] = 0.0;
                continue;
            }
            sum += weight;
            self.credits[server] += weight;
            if best.is_none_or(|(credit, _)| self.credits[server] > credit) {
                best = Some((self.credits[server], server));
            }
        }
        let (_, server) = best?;
        self.credits[server] -= sum;
        self.next = (server + 1) % count;
        Some(server)
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::Fixed;
    use super::*;

    #[test]
    fn weights_are_spread_evenly() {
        let servers = Fixed::weights(&[3.0, 1.0]);
        let mut balancer = RoundRobin::new(2);
        let chosen: Vec<_> = (0..8)
            .filter_map(|_| balancer.choose(&servers, 0))
            .collect();
        assert_eq!(chosen.iter().filter(|server| **server == 0).count(), 6);
        assert!(chosen.windows(4).all(|run| run.contains(&1)), "{chosen:?}");
    }
}
