//! Maglev hashing (Eisenbud and others, "Maglev: a fast and reliable software network load balancer", NSDI 2016).

use super::hash::{hash, mixed};
use super::{Balancer, Servers};

/// Size of the table: a prime, as the paper has it for some hundred servers.
const SIZE: usize = 65_537;

/// A table in which each server has its share of places, filled from its permutations. A key takes one lookup.
#[derive(Debug)]
pub(super) struct Maglev {
    table: Vec<u32>,
}

/// The order in which a server claims places.
struct Claim {
    server: u32,
    offset: usize,
    skip: usize,
    taken: usize,
    /// Claims per round, relative to the heaviest server.
    share: f64,
    credit: f64,
}

impl Claim {
    fn next(&mut self) -> usize {
        let place = (self.offset + self.taken * self.skip) % SIZE;
        self.taken += 1;
        place
    }
}

impl Maglev {
    pub(super) fn new(servers: &[(&str, u32)]) -> Self {
        let heaviest = servers.iter().map(|(_, weight)| *weight).max();
        let heaviest = f64::from(heaviest.unwrap_or(1).max(1));
        let claims = servers.iter().zip(0_u32..);
        let mut claims: Vec<Claim> = claims
            .filter(|((_, weight), _)| *weight > 0)
            .map(|((name, weight), server)| {
                let first = hash(name.as_bytes());
                let place = |hash: u64, below: usize| {
                    usize::try_from(hash % below as u64).unwrap_or_default()
                };
                Claim {
                    server,
                    offset: place(first, SIZE),
                    skip: place(mixed(first ^ 0x6d61_676c_6576), SIZE - 1) + 1,
                    taken: 0,
                    share: f64::from(*weight) / heaviest,
                    credit: 0.0,
                }
            })
            .collect();
        let mut table = vec![u32::MAX; SIZE];
        let mut filled = 0;
        while filled < SIZE && !claims.is_empty() {
            for claim in &mut claims {
                claim.credit += claim.share;
                if claim.credit < 1.0 {
                    continue;
                }
                claim.credit -= 1.0;
                let mut place = claim.next();
                while table[place] != u32::MAX {
                    place = claim.next();
                }
                table[place] = claim.server;
                filled += 1;
                if filled == SIZE {
                    break;
                }
            }
        }
        Self { table }
    }
}

impl Balancer for Maglev {
    fn choose(&mut self, servers: &dyn Servers, key: u64) -> Option<usize> {
        let start = usize::try_from(key % SIZE as u64).unwrap_or_default();
        // Keys of a server that is away are spread over the others by the places that follow.
        let (before, after) = self.table.split_at(start);
        let mut owners = after.iter().chain(before).map(|server| *server as usize);
        owners.find(|server| *server < servers.len() && servers.weight(*server) > 0.0)
    }
}
