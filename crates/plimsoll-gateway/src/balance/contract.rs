//! The contract of every balancer.

use super::*;

/// Servers that do not change by themselves.
#[derive(Debug, Clone)]
pub(super) struct Fixed {
    pub(super) weights: Vec<f64>,
    pub(super) active: Vec<u32>,
    pub(super) connections: Vec<u32>,
    pub(super) latency: Vec<f64>,
}

impl Fixed {
    pub(super) fn weights(weights: &[f64]) -> Self {
        Self {
            weights: weights.to_vec(),
            active: vec![0; weights.len()],
            connections: vec![0; weights.len()],
            latency: vec![0.0; weights.len()],
        }
    }
}

impl Servers for Fixed {
    fn len(&self) -> usize {
        self.weights.len()
    }

    fn weight(&self, server: usize) -> f64 {
        self.weights[server]
    }

    fn active(&self, server: usize) -> u32 {
        self.active[server]
    }

    fn connections(&self, server: usize) -> u32 {
        self.connections[server]
    }

    fn latency(&self, server: usize) -> f64 {
        self.latency[server]
    }
}

/// How often each server is chosen for requests of different keys.
pub(super) fn counted(
    balancer: &mut dyn Balancer,
    servers: &dyn Servers,
    requests: u64,
) -> Vec<u64> {
    let mut counts = vec![0; servers.len()];
    for number in 0..requests {
        if let Some(server) = balancer.choose(servers, hash(&number.to_le_bytes())) {
            counts[server] += 1;
        }
    }
    counts
}

const NAMES: [(&str, u32); 4] = [
    ("http://10.0.0.1:80", 1),
    ("http://10.0.0.2:80", 1),
    ("http://10.0.0.3:80", 2),
    ("http://10.0.0.4:80", 1),
];

fn servers() -> Fixed {
    Fixed::weights(&[1.0, 1.0, 2.0, 1.0])
}

/// Whether the least loaded server always gets the request.
fn is_by_load(kind: Balance) -> bool {
    matches!(kind, Balance::LeastRequests | Balance::LeastConnections)
}

#[test]
fn requests_are_distributed_by_weight() {
    for kind in Balance::ALL {
        // Without load the least busy one is by weight alone, which these take at its word.
        if is_by_load(kind) {
            continue;
        }
        let mut balancer = kind.make(&NAMES, 1);
        let counts = counted(&mut *balancer, &servers(), 50_000);
        for (server, share) in [(0, 0.2), (1, 0.2), (2, 0.4), (3, 0.2)] {
            let found = counts[server] as f64 / 50_000.0;
            let most = if kind == Balance::RingHash {
                0.25
            } else {
                0.05
            };
            assert!((found / share - 1.0).abs() < most, "{kind}: {counts:?}");
        }
    }
}

#[test]
fn unavailable_servers_get_nothing_and_none_is_none() {
    for kind in Balance::ALL {
        let mut balancer = kind.make(&NAMES, 1);
        let mut fewer = servers();
        fewer.weights[2] = 0.0;
        let counts = counted(&mut *balancer, &fewer, 2_000);
        assert_eq!(counts[2], 0, "{kind}");
        assert_eq!(counts.iter().sum::<u64>(), 2_000, "{kind}");
        let none_left = Fixed::weights(&[0.0; 4]);
        assert_eq!(balancer.choose(&none_left, 7), None, "{kind}");
        assert_eq!(kind.make(&[], 1).choose(&Fixed::weights(&[]), 7), None);
    }
}

#[test]
fn a_server_that_comes_back_gets_its_share_and_no_more() {
    for kind in Balance::ALL {
        if is_by_load(kind) {
            continue;
        }
        let mut balancer = kind.make(&NAMES, 1);
        let mut fewer = servers();
        fewer.weights[0] = 0.0;
        counted(&mut *balancer, &fewer, 10_000);
        let counts = counted(&mut *balancer, &servers(), 1_000);
        assert!((120..280).contains(&counts[0]), "{kind}: {counts:?}");
    }
}

#[test]
fn keyed_balancers_move_only_the_keys_of_a_server_that_leaves() {
    for kind in Balance::ALL.into_iter().filter(|kind| kind.is_keyed()) {
        let mut balancer = kind.make(&NAMES, 1);
        let mut fewer = servers();
        fewer.weights[1] = 0.0;
        for number in 0..5_000_u64 {
            let key = hash(&number.to_le_bytes());
            let before = balancer.choose(&servers(), key);
            assert_eq!(before, balancer.choose(&servers(), key), "{kind}");
            let after = balancer.choose(&fewer, key);
            if before != Some(1) {
                assert_eq!(after, before, "{kind}");
            }
        }
        // Configured without it, most other keys stay too.
        let rest: Vec<_> = NAMES.into_iter().filter(|it| it.0 != NAMES[1].0).collect();
        let mut without = kind.make(&rest, 1);
        let three = Fixed::weights(&[1.0, 2.0, 1.0]);
        let names = [0, 2, 3];
        let moved = (0..5_000_u64)
            .filter(|number| {
                let key = hash(&number.to_le_bytes());
                let before = balancer.choose(&servers(), key);
                let after = without.choose(&three, key).map(|it| names[it]);
                before != Some(1) && before != after
            })
            .count();
        assert!(moved < 800, "{kind}: {moved} of about 4,000 moved");
    }
}

#[test]
fn the_same_seed_makes_the_same_choices() {
    for kind in Balance::ALL {
        let (mut one, mut other) = (kind.make(&NAMES, 9), kind.make(&NAMES, 9));
        for key in 0..200 {
            assert_eq!(one.choose(&servers(), key), other.choose(&servers(), key));
        }
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!("fastest".parse::<Balance>().is_err());
}
