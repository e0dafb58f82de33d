//! Consistent hashing on a ring (Karger and others, "Consistent hashing and random trees", 1997).

use super::hash::{hash, mixed};
use super::{Balancer, Servers};

/// Points on the ring for each unit of weight: with 160, as libketama has it, shares differ by about 8 %.
const POINTS: u32 = 160;

/// Points at most, whatever the weights.
const MOST_POINTS: u32 = 1 << 20;

/// Every server has points on the ring; a key belongs to the next point of an available server.
#[derive(Debug)]
pub(super) struct Ring {
    /// Sorted by place.
    points: Vec<(u64, usize)>,
}

impl Ring {
    pub(super) fn new(servers: &[(&str, u32)]) -> Self {
        let sum: u64 = servers.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let most = u64::from(MOST_POINTS) / sum.max(1);
        let each = u64::from(POINTS).min(most.max(1));
        let mut points = Vec::new();
        for (number, (name, weight)) in servers.iter().enumerate() {
            let base = hash(name.as_bytes());
            for point in 0..each * u64::from(*weight) {
                points.push((mixed(base ^ mixed(point)), number));
            }
        }
        points.sort_unstable();
        Self { points }
    }
}

impl Balancer for Ring {
    fn choose(&mut self, servers: &dyn Servers, key: u64) -> Option<usize> {
        let start = self.points.partition_point(|(place, _)| *place < key);
        let (before, after) = self.points.split_at(start);
        let mut owners = after.iter().chain(before).map(|(_, server)| *server);
        owners.find(|server| *server < servers.len() && servers.weight(*server) > 0.0)
    }
}
