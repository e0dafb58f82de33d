//! How the workers of a run are given to agents: as many to each as it has cores.
//!
//! Pure. See [`RunPart`] for what a worker makes.

use plimsoll_load::RunPart;
use serde::{Deserialize, Serialize};

/// The workers of one agent among all of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Number of the first one, from 0.
    pub first: usize,
    /// At least one.
    pub workers: usize,
    /// Workers of all agents.
    pub of: usize,
}

impl Share {
    /// Its part of `total` things, of which the parts of all agents are all.
    pub fn part_of(self, total: usize) -> usize {
        let until = |worker: usize| total * worker / self.of.max(1);
        until(self.first + self.workers) - until(self.first)
    }
}

impl From<Share> for RunPart {
    fn from(share: Share) -> Self {
        Self {
            first: share.first,
            workers: share.workers,
            of: share.of,
        }
    }
}

/// Workers for agents with these cores: one for each core, fewer if there are fewer connections, at least one for each agent.
///
/// - `connections`: of the run; each worker needs one.
///
/// Fails with the number of agents if there are fewer connections.
pub fn shares(cores: &[usize], connections: usize) -> Result<Vec<Share>, usize> {
    if cores.len() > connections {
        return Err(cores.len());
    }
    let most = cores.iter().map(|cores| (*cores).max(1)).sum::<usize>();
    let of = most.min(connections);
    let mut workers = vec![1; cores.len()];
    for _ in cores.len()..of {
        // The next one goes where there are most cores for each worker; the first of equals has it.
        let ratio = |position: usize| cores[position] as f64 / (workers[position] + 1) as f64;
        let next = (0..cores.len())
            .rev()
            .max_by(|one, other| ratio(*one).total_cmp(&ratio(*other)));
        workers[next.unwrap_or_default()] += 1;
    }
    let mut first = 0;
    let shares = workers.into_iter().map(|workers| {
        let share = Share { first, workers, of };
        first += workers;
        share
    });
    Ok(shares.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn workers(cores: &[usize], connections: usize) -> Vec<usize> {
        let shares = shares(cores, connections).unwrap();
        shares.iter().map(|share| share.workers).collect()
    }

    #[test]
    fn agents_have_workers_by_their_cores() {
        assert_eq!(workers(&[2, 2], 50), [2, 2]);
        assert_eq!(workers(&[8, 2, 1], 50), [8, 2, 1]);
        assert_eq!(workers(&[8, 2, 2], 6), [4, 1, 1]);
        assert_eq!(workers(&[4, 4], 2), [1, 1]);
        assert_eq!(workers(&[0, 1], 9), [1, 1]);
        assert_eq!(shares(&[1, 1, 1], 2), Err(3));
    }

    proptest! {
        #[test]
        fn every_worker_has_one_agent(
            cores in proptest::collection::vec(0_usize..40, 1..20), connections in 20_usize..200,
        ) {
            let shares = shares(&cores, connections).unwrap();
            let mut next = 0;
            for share in &shares {
                prop_assert_eq!(share.first, next);
                prop_assert!(share.workers > 0);
                next += share.workers;
            }
            prop_assert!(shares.iter().all(|share| share.of == next));
            prop_assert!(next <= connections);
            let parts = shares.iter().map(|share| share.part_of(connections));
            prop_assert_eq!(parts.clone().sum::<usize>(), connections);
            prop_assert!(parts.min() > Some(0));
        }
    }
}
