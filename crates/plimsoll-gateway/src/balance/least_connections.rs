//! The server with the fewest open connections.

use super::{Balancer, Servers};

/// Looks at every server; ties are broken by requests in flight, and then in turn.
#[derive(Debug)]
pub(super) struct LeastConnections {
    next: usize,
}

impl LeastConnections {
    pub(super) const fn new() -> Self {
        Self { next: 0 }
    }
}

impl Balancer for LeastConnections {
    fn choose(&mut self, servers: &dyn Servers, _key: u64) -> Option<usize> {
        let count = servers.len();
        let mut best: Option<((f64, f64), usize)> = None;
        for step in 0..count {
            let server = (self.next + step) % count;
            let weight = servers.weight(server);
            if weight <= 0.0 {
                continue;
            }
            let load = |number: u32| f64::from(number + 1) / weight;
            let load = (
                load(servers.connections(server)),
                load(servers.active(server)),
            );
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
    fn the_server_with_the_fewest_connections_relative_to_its_weight_is_chosen() {
        let mut servers = Fixed::weights(&[1.0, 1.0, 4.0]);
        servers.connections = vec![3, 2, 8];
        servers.active = vec![0, 2, 8];
        assert_eq!(LeastConnections::new().choose(&servers, 0), Some(2));
        servers.connections = vec![3, 2, 12];
        assert_eq!(LeastConnections::new().choose(&servers, 0), Some(1));
    }

    #[test]
    fn of_servers_with_equal_connections_the_least_busy_one_is_chosen() {
        let mut servers = Fixed::weights(&[1.0, 1.0]);
        servers.connections = vec![4, 4];
        servers.active = vec![3, 1];
        assert_eq!(LeastConnections::new().choose(&servers, 0), Some(1));
    }
}
