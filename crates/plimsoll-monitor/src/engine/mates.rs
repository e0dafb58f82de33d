//! How the agents of a region divide its monitors.

use ring::digest::{SHA256, digest};

use crate::config::AgentPlan;
use crate::engine::board::Board;
use crate::time::Timestamp;

/// The agents of a region that are there.
///
/// Each of its monitors is checked by one of them. When an agent comes or goes, only its own monitors move.
#[derive(Debug)]
pub(crate) struct Mates(Vec<AgentPlan>);

impl Mates {
    /// Agents of `region` that report, and the one that `asks` for its work.
    pub(crate) fn of_region(
        board: &Board,
        region: &str,
        asks: Option<&str>,
        now: Timestamp,
    ) -> Self {
        let agents = board.agents();
        let mates = agents.iter().filter(|agent| {
            let asks = asks.is_some_and(|name| name == agent.name);
            agent.region == region && (asks || board.reports(&agent.name, now))
        });
        Self(mates.cloned().collect())
    }

    /// The name of the agent that checks a monitor; `None` if none is there.
    ///
    /// Source: D. G. Thaler and C. V. Ravishankar, "Using Name-Based Mappings to Increase Hit Rates" (1998), rendezvous
    /// hashing.
    pub(crate) fn checker_of(&self, key: &str) -> Option<&str> {
        let best = self.0.iter().max_by_key(|agent| weight(&agent.name, key));
        best.map(|agent| agent.name.as_str())
    }
}

/// The weight of an agent for a monitor: as good as random, and the same in each process.
fn weight(agent: &str, key: &str) -> [u8; 8] {
    // A name has no slash.
    let digest = digest(&SHA256, format!("{agent}/{key}").as_bytes());
    let mut weight = [0; 8];
    weight.copy_from_slice(&digest.as_ref()[..8]);
    weight
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mates(names: &[&str]) -> Mates {
        let agents = names.iter().map(|name| AgentPlan {
            name: (*name).to_owned(),
            region: "far".to_owned(),
            hashes: Vec::new(),
        });
        Mates(agents.collect())
    }

    #[test]
    fn monitors_are_divided_and_only_those_of_an_agent_that_goes_move() {
        let keys: Vec<_> = (0..900).map(|number| format!("core_{number}")).collect();
        let (three, two) = (mates(&["a", "b", "c"]), mates(&["a", "c"]));
        for name in ["a", "b", "c"] {
            let own = keys
                .iter()
                .filter(|key| three.checker_of(key) == Some(name));
            assert!((200..400).contains(&own.count()), "{name}");
        }
        for key in &keys {
            let (before, after) = (three.checker_of(key), two.checker_of(key));
            assert!(after == before || before == Some("b"), "{key}");
            assert_ne!(after, Some("b"));
        }
        assert_eq!(mates(&[]).checker_of("core_1"), None);
    }
}
