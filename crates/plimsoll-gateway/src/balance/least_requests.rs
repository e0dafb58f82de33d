//! The server with the fewest requests in flight.

use super::{Balancer, Servers};

/// Looks at every server; ties are broken in turn.
#[derive(Debug)]
pub(super) struct LeastRequests {
    next: usize,
}

impl LeastRequests {
    pub(super) const fn new() -> Self {
        Self { next: 0 }
    }
}

impl Balancer for LeastRequests {
    fn choose(&mut self, servers: &dyn Servers, _key: u64) -> Option<usize> {
        let count = servers.len();
        let mut best: Option<(f64, usize)> = None;
        for step in 0..count {
            let server = (self.next + step) % count;
            let weight = servers.weight(server);
            if weight <= 0.0 {
                continue;
            }
            let load = f64::from(servers.active(server) + 1) / weight;
            if best.is_none_or(|(least, _)| load < least) {
                best = Some((load, server));
            }
        }
        let (_, server) = best?;
        self.next = (server + 1) % count;
        Some(server)
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::Fixed;
    use super::*;

    #[test]
    fn the_least_busy_server_relative_to_its_weight_is_chosen() {
        let mut servers = Fixed::weights(&[1.0, 1.0, 4.0]);
        servers.active = vec![3, 2, 8];
        assert_eq!(LeastRequests::new().choose(&servers, 0), Some(2));
        servers.active = vec![3, 2, 12];
        assert_eq!(LeastRequests::new().choose(&servers, 0), Some(1));
    }
}
