//! Which agent checked a monitor when, in regions that several agents share.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::store::MonitorId;
use crate::time::Timestamp;

/// Turns of one monitor that are remembered.
const MOST: usize = 16;

/// A time in which one agent checked a monitor: from its first result to its last.
#[derive(Debug)]
struct Turn {
    agent: Arc<str>,
    since: Timestamp,
    until: Timestamp,
}

/// The turns of agents, by monitor and the number of the region.
///
/// An agent that cannot reach the centre goes on checking, while another agent of its region takes over. The results that it
/// sends afterwards are of a time for which there are results already, and are dropped.
#[derive(Debug, Default)]
pub(super) struct Turns(HashMap<(MonitorId, u16), VecDeque<Turn>>);

impl Turns {
    /// Whether a result of an agent is of a time in which no other one checked the monitor.
    ///
    /// - `is_checker`: whether the monitor is assigned to this agent now: only then it takes over from another one.
    pub(super) fn accepts_result(
        &mut self,
        of: (MonitorId, u16),
        agent: &Arc<str>,
        at: Timestamp,
        is_checker: bool,
    ) -> bool {
        let turns = self.0.entry(of).or_default();
        let is_of_another = turns
            .iter()
            .any(|turn| turn.agent != *agent && (turn.since..=turn.until).contains(&at));
        if is_of_another {
            return false;
        }
        let begins = match turns.back_mut() {
            // Results that the agent kept since before another one took over.
            Some(last) if at < last.since => return true,
            Some(last) if last.agent == *agent => {
                last.until = last.until.max(at);
                return true;
            }
            Some(_) => is_checker,
            None => true,
        };
        if begins {
            if turns.len() == MOST {
                turns.pop_front();
            }
            turns.push_back(Turn {
                agent: Arc::clone(agent),
                since: at,
                until: at,
            });
        }
        begins
    }

    /// Forgets a monitor that is removed.
    pub(super) fn forget(&mut self, id: MonitorId) {
        self.0.retain(|(known, _), _| *known != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: (MonitorId, u16) = (MonitorId(1), 2);

    #[test]
    fn an_agent_that_was_cut_off_adds_nothing_to_the_time_in_which_another_one_checked() {
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut turns = Turns::default();
        let mut take = |agent: &Arc<str>, at: i64, is_checker: bool| {
            turns.accepts_result(OF, agent, Timestamp(at), is_checker)
        };
        assert!(take(&a, 10, true) && take(&a, 20, true));
        // It is cut off, and another one takes over.
        assert!(take(&b, 50, true) && take(&b, 60, true));
        // What waited: some of it was before that.
        assert!(take(&a, 30, true) && take(&a, 40, true));
        assert!(!take(&a, 50, true) && !take(&a, 55, true));
        // It takes over again; the other one still checks, and its results are dropped.
        assert!(take(&a, 65, true));
        assert!(!take(&b, 70, false) && !take(&b, 65, false));
        assert!(take(&a, 75, true));
    }

    #[test]
    fn until_the_other_one_begins_the_results_of_the_last_one_count() {
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut turns = Turns::default();
        assert!(turns.accepts_result(OF, &a, Timestamp(10), true));
        assert!(turns.accepts_result(OF, &a, Timestamp(20), false));
        assert!(turns.accepts_result(OF, &b, Timestamp(25), true));
        assert!(!turns.accepts_result(OF, &a, Timestamp(30), false));
        turns.forget(OF.0);
        assert!(turns.0.is_empty());
    }
}
