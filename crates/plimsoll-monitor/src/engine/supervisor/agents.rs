//! What is known of agents: their numbers, their last reports, and what they are to check at once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::engine::board::REPORTS_WITHIN;
use crate::engine::supervisor::Waiting;
use crate::engine::supervisor::turns::Turns;
use crate::ids::MonitorMap;
use crate::probe::reading::CheckResult;
use crate::store::MonitorId;
use crate::time::Timestamp;

/// The agents, which are in other regions.
#[derive(Default)]
pub(super) struct Agents {
    /// The numbers of regions in the store.
    numbers: HashMap<Arc<str>, u16>,
    /// The run of each agent, and the number of the last result that it sent.
    reported: HashMap<Arc<str>, (u64, u64)>,
    /// The keys of monitors that agents are to check at once, and since when.
    requested: HashMap<Arc<str>, Vec<(String, Timestamp)>>,
    /// Who checked what in regions of several agents.
    pub(super) turns: Turns,
    /// Callers that wait for the result of an agent, and since when.
    waiting: MonitorMap<Vec<(Timestamp, Waiting)>>,
}

impl Agents {
    pub(super) fn set_numbers(&mut self, numbers: HashMap<Arc<str>, u16>) {
        self.numbers = numbers;
    }

    /// The name and the number of a region.
    pub(super) fn numbered(&self, region: &str) -> Option<(Arc<str>, u16)> {
        let (name, number) = self.numbers.get_key_value(region)?;
        Some((Arc::clone(name), *number))
    }

    /// The number of the last result that an agent sent in a run.
    pub(super) fn last_of(&self, agent: &str, run: u64) -> Option<u64> {
        let reported = self.reported.get(agent).filter(|(known, _)| *known == run);
        reported.map(|(_, last)| *last)
    }

    pub(super) fn note_last(&mut self, agent: Arc<str>, run: u64, last: u64) {
        self.reported.insert(agent, (run, last));
    }

    /// Has an agent check a monitor at once, with its next report.
    pub(super) fn request_check(&mut self, agent: Arc<str>, key: &str, now: Timestamp) {
        /// Monitors that one agent is to check at once.
        const MOST: usize = 1_000;

        let waiting = self.requested.entry(agent).or_default();
        if waiting.len() < MOST && !waiting.iter().any(|(known, _)| known == key) {
            waiting.push((key.to_owned(), now));
        }
    }

    /// The monitors that an agent is to check at once; what it did not fetch in time is forgotten.
    pub(super) fn fetch_requested(&mut self, agent: &str, now: Timestamp) -> Vec<String> {
        let waiting = self.requested.remove(agent).unwrap_or_default().into_iter();
        waiting
            .filter(|(_, since)| now.since(*since) < REPORTS_WITHIN)
            .map(|(key, _)| key)
            .collect()
    }

    /// Notes a caller that waits for the result of a check that begins after `since`.
    pub(super) fn wait(&mut self, id: MonitorId, since: Timestamp, caller: Waiting) {
        let waiting = self.waiting.entry(id).or_default();
        waiting.retain(|(_, caller)| !caller.is_closed());
        waiting.push((since, caller));
    }

    /// Sends the result of an agent to the callers that wait for one, if the check ended after they began to.
    pub(super) fn reply(&mut self, id: MonitorId, result: &CheckResult) {
        let Some(waiting) = self.waiting.remove(&id) else {
            return;
        };
        let ended = result.at.plus(result.took);
        for (since, caller) in waiting {
            if since <= ended {
                caller.send(Ok(result.clone())).ok();
            } else if !caller.is_closed() {
                let waiting = self.waiting.entry(id).or_default();
                waiting.push((since, caller));
            }
        }
    }

    /// Forgets a monitor that is removed.
    pub(super) fn forget(&mut self, id: MonitorId) {
        self.waiting.remove(&id);
        self.turns.forget(id);
    }
}
