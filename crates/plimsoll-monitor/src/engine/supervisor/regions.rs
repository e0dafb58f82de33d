//! Regions: their numbers in the store, and what their agents report.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::config::MonitorPlan;
use crate::detect::Input;
use crate::engine::command::{CommandError, RemoteResult};
use crate::engine::mates::Mates;
use crate::engine::supervisor::{OWN, Supervisor};
use crate::store::{
    DefinitionChanges, DefinitionKind, MonitorId, PutDefinition, ResultRow, StoreError,
};
use crate::time::Timestamp;

impl Supervisor {
    /// Whether this process checks a monitor.
    pub(super) fn checks_itself(&self, plan: &MonitorPlan) -> bool {
        plan.is_checked_from(&self.base.region, &self.base.region)
    }

    /// Gives each region of the configuration a number, which it keeps for as long as the store has results of it.
    pub(super) async fn number_regions(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let kind = DefinitionKind::Region;
        let stored = self.store.definitions(self.org, kind).await?;
        let mut numbers: HashMap<Arc<str>, u16> = HashMap::new();
        for (definition, _) in stored {
            if let Ok(number) = definition.text.parse() {
                numbers.insert(definition.key.into(), number);
            }
        }
        let mut next = numbers.values().max().map_or(OWN + 1, |last| last + 1);
        let mut puts = Vec::new();
        for agent in &self.base.agents {
            if !numbers.contains_key(agent.region.as_str()) {
                puts.push(PutDefinition {
                    id: None,
                    key: agent.region.clone(),
                    was: None,
                    version: None,
                    text: next.to_string(),
                    monitor: None,
                });
                numbers.insert(agent.region.as_str().into(), next);
                next = next.saturating_add(1);
            }
        }
        if !puts.is_empty() {
            let changes = DefinitionChanges {
                puts,
                ..DefinitionChanges::default()
            };
            self.store
                .change_definitions(self.org, kind, changes, now)
                .await?;
        }
        let named = numbers
            .iter()
            .map(|(name, number)| (*number, Arc::clone(name)));
        let mut named: BTreeMap<_, _> = named.collect();
        named.insert(OWN, self.own_region());
        self.board.set_regions(named);
        self.agents.set_numbers(numbers);
        Ok(())
    }

    /// Has the agents of a monitor check it at once, with their next reports; since when. Fails if none of them reports.
    pub(super) fn request_from_agents(
        &mut self,
        key: &str,
        id: MonitorId,
    ) -> Result<Timestamp, CommandError> {
        let now = self.moment().wall;
        let from = self.live.get(&id).map(|live| live.plan.from.clone());
        let from = from.unwrap_or_default();
        let mut is_any = false;
        for region in &from {
            let mates = Mates::of_region(&self.board, region, None, now);
            if let Some(agent) = mates.checker_of(key) {
                is_any = true;
                self.agents.request_check(agent.into(), key, now);
            }
        }
        if is_any {
            Ok(now)
        } else {
            Err(CommandError::Elsewhere(from.join(", ")))
        }
    }

    /// Takes results of an agent in their order. Left out are repeated ones, and those of a time in which another agent of the
    /// region checked the monitor; results that are too old for the present state are only stored.
    pub(super) fn report(
        &mut self,
        agent: &str,
        run: u64,
        results: Vec<RemoteResult>,
    ) -> Result<(usize, Vec<String>), CommandError> {
        if self.refuses(0) {
            // The agent keeps them and sends them again.
            return Err(CommandError::Busy(
                "the store has not taken what came before",
            ));
        }
        let plan = self.base.agents.iter().find(|plan| plan.name == agent);
        let known = plan.and_then(|plan| self.agents.numbered(&plan.region));
        let (region, number) = known.ok_or(CommandError::NotFound)?;
        let now = self.moment();
        let of_region = self.base.agents.iter();
        let is_shared = of_region.filter(|plan| *plan.region == *region).count() > 1;
        let mates =
            is_shared.then(|| Mates::of_region(&self.board, &region, Some(agent), now.wall));
        let agent: Arc<str> = agent.into();
        let mut last = self.agents.last_of(&agent, run);
        let mut taken = 0;
        for RemoteResult {
            number: order,
            key,
            result,
        } in results
        {
            if last.is_some_and(|last| order <= last) {
                continue;
            }
            last = Some(order);
            let Some(id) = self.keys.get(&key).copied() else {
                continue;
            };
            let Some(live) = self.live.get(&id) else {
                continue;
            };
            let is_mine = live.plan.from.iter().any(|from| *from == *region);
            // An agent cannot rewrite what was rolled up long ago.
            let is_old = now.wall.since(result.at) > self.retention.raw;
            if !is_mine || live.is_paused || is_old {
                continue;
            }
            let at = result.at.min(now.wall);
            if let Some(mates) = &mates {
                let is_checker = mates.checker_of(&key) == Some(&*agent);
                let turns = &mut self.agents.turns;
                if !turns.accepts_result((id, number), &agent, at, is_checker) {
                    continue;
                }
            }
            taken += 1;
            let mut result = result.without(&live.plan.secrets);
            result.at = at;
            let row = ResultRow::from_result(id, number, &result);
            self.batch.add(row, self.origin + now.elapsed);
            if now.wall.since(result.at) >= live.plan.policy.silent_after {
                continue;
            }
            let input = Input::Observed {
                region: Arc::clone(&region),
                status: result.status,
                reason: result.reason.clone(),
                at: result.at,
            };
            self.agents.reply(id, &result);
            self.board.change(&key, |view| view.count(result));
            self.feed(id, input);
        }
        if let Some(last) = last {
            self.agents.note_last(Arc::clone(&agent), run, last);
        }
        Ok((taken, self.agents.fetch_requested(&agent, now.wall)))
    }
}
