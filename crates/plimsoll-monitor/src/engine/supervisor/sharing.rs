//! Checks that other processes of the store make for this one, which has the lease and judges all results.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::config::MonitorPlan;
use crate::detect::Input;
use crate::detect::status::Health;
use crate::engine::leadership::LASTS;
use crate::engine::report::SharedFinding;
use crate::engine::supervisor::{OWN, Supervisor};
use crate::probe::reading::CheckResult;
use crate::store::shards::{Division, HandedOver, Shards};
use crate::store::{Change, MonitorId, OrgId, ResultRow, Store};
use crate::time::{Moment, Timestamp};

/// Between two looks for results of other processes.
const FETCH: Duration = Duration::from_millis(250);

/// Fetched lists that wait for the loop; further ones stay in the store meanwhile.
const MOST_FETCHED: usize = 4;

/// A process that was killed is replaced within this time, a look at the division on each side included.
const REPLACED_WITHIN: Duration = LASTS.saturating_add(Duration::from_secs(5));

/// Less than this without checks is no gap.
const SHORTEST_GAP: Duration = Duration::from_secs(1);

/// First checks of monitors that this process gets are spread over so much time for each.
const SPREAD: Duration = Duration::from_millis(2);

/// How long the end of the program waits for results that are being fetched.
const LAST_FETCHED: Duration = Duration::from_secs(1);

/// Which monitors this process checks itself, and what others found of the rest.
pub(super) struct Sharing {
    /// The name of this process, and how the checks are divided; absent for a store that it has for itself.
    division: Option<(String, Division)>,
    /// Shards whose process is gone, until another one has them.
    orphaned: Shards,
    /// When this process began to judge results.
    since: Timestamp,
    /// The number of the last result of each process.
    last: HashMap<String, i64>,
    /// Whether no other process is there, which ends the fetching for the time being.
    is_alone: watch::Sender<bool>,
    fetching: JoinSet<()>,
    fetched: Option<mpsc::Receiver<Vec<HandedOver>>>,
}

impl Sharing {
    pub(super) fn new(division: Option<(String, Division)>, since: Timestamp) -> Self {
        let is_alone = division
            .as_ref()
            .is_none_or(|(_, division)| division.shares.len() < 2);
        Self {
            division,
            orphaned: Shards::NONE,
            since,
            last: HashMap::new(),
            is_alone: watch::Sender::new(is_alone),
            fetching: JoinSet::new(),
            fetched: None,
        }
    }

    /// Fetches what others find from now on, if there may be any; once even if none is there, since one may have left results.
    pub(super) fn start(&mut self, org: OrgId, store: &Arc<dyn Store>) {
        if self.division.is_none() {
            return;
        }
        let (send, fetched) = mpsc::channel(MOST_FETCHED);
        self.fetched = Some(fetched);
        let fetching = fetch_all(org, Arc::clone(store), self.is_alone.subscribe(), send);
        self.fetching.spawn_local(fetching);
    }

    /// The date is another one from now on.
    pub(super) fn set_date(&mut self, to: Timestamp) {
        self.since = self.since.min(to);
    }

    /// Whether the shard of a monitor is this process's own.
    fn has(&self, id: MonitorId) -> bool {
        let Some((own, division)) = &self.division else {
            return true;
        };
        division.share_of(own).has_monitor(id)
    }

    /// The next results of other processes; never without any.
    pub(super) async fn next(&mut self) -> Vec<HandedOver> {
        if let Some(fetched) = &mut self.fetched
            && let Some(found) = fetched.recv().await
        {
            return found;
        }
        std::future::pending().await
    }

    /// The results that were fetched and not taken yet. None are fetched any more.
    pub(super) async fn finish(&mut self) -> Vec<HandedOver> {
        self.is_alone = watch::Sender::new(true);
        let mut rest = Vec::new();
        if let Some(mut fetched) = self.fetched.take() {
            let last = async {
                while let Some(found) = fetched.recv().await {
                    rest.extend(found);
                }
            };
            tokio::time::timeout(LAST_FETCHED, last).await.ok();
        }
        rest
    }
}

/// Fetches results until the other end of `is_alone` is gone.
async fn fetch_all(
    org: OrgId,
    store: Arc<dyn Store>,
    mut is_alone: watch::Receiver<bool>,
    send: mpsc::Sender<Vec<HandedOver>>,
) {
    loop {
        // Errors are those of the lease too, which reports them.
        if let Ok(found) = store.fetch_handed_over(org).await
            && !found.is_empty()
            && send.send(found).await.is_err()
        {
            return;
        }
        let waits = *is_alone.borrow_and_update();
        let changed = is_alone.changed();
        let is_over = if waits {
            changed.await.is_err()
        } else {
            matches!(tokio::time::timeout(FETCH, changed).await, Ok(Err(_)))
        };
        if is_over {
            return;
        }
    }
}

impl Supervisor {
    /// Whether this process checks a monitor by its schedule.
    pub(super) fn schedules(&self, id: MonitorId, plan: &MonitorPlan) -> bool {
        self.checks_itself(plan) && (self.sharing.has(id) || !plan.is_shareable(&self.base.region))
    }

    /// Divides the checks anew.
    pub(super) fn divide(&mut self, process: String, division: Division) {
        let now = self.moment();
        let before = self.sharing.division.take().unwrap_or_default().1;
        let gone = before.shares.iter();
        let gone = gone.filter(|(name, _)| !division.shares.contains_key(*name));
        let orphaned = gone.fold(self.sharing.orphaned, |all, (_, share)| all.union(*share));
        self.sharing.orphaned = orphaned.without(division.taken());
        let replaced = orphaned.without(self.sharing.orphaned);
        let is_alone = division.shares.len() < 2;
        self.sharing
            .is_alone
            .send_if_modified(|known| std::mem::replace(known, is_alone) != is_alone);
        self.sharing
            .last
            .retain(|name, _| division.shares.contains_key(name));
        self.board.set_division(&process, &division);
        self.sharing.division = Some((process, division));
        let ids = self.ids();
        let spread = SPREAD * u32::try_from(ids.len()).unwrap_or(u32::MAX);
        for id in ids {
            if replaced.has_monitor(id) {
                self.end_gap(id, now);
            }
            self.schedule(id, spread, now);
        }
        self.flush_group();
    }

    /// Puts a monitor on the schedule, or takes it off.
    pub(super) fn schedule(&mut self, id: MonitorId, spread: Duration, now: Moment) {
        let Some(live) = self.live.get(&id) else {
            return;
        };
        let plan = Arc::clone(&live.plan);
        let checks = !live.is_paused && self.schedules(id, &plan);
        match plan.timing.filter(|_| checks) {
            Some(timing) => {
                let start = self.origin + now.elapsed;
                self.scheduler.set(id, timing, spread, start);
            }
            None => {
                self.scheduler.remove(&id);
            }
        }
    }

    /// Another process checks a monitor in the place of one that is gone. What was not checked meanwhile is a gap, from which
    /// nothing is concluded.
    fn end_gap(&mut self, id: MonitorId, now: Moment) {
        let Some(live) = self.live.get_mut(&id) else {
            return;
        };
        let plan = &live.plan;
        if live.is_paused || !plan.is_shareable(&self.base.region) {
            return;
        }
        live.detector.begin_anew(now);
        let is_own = |from: &String| *from == self.base.region;
        let (Some(last), Some(timing)) = (live.last_at, plan.timing) else {
            return;
        };
        let health = live.detector.health();
        let was_checked = matches!(health, Health::Up | Health::Degraded | Health::Down);
        let from = last
            .plus(timing.interval)
            .max(live.detector.since().plus(Duration::from_millis(1)));
        // Agents checked it all the time.
        if !was_checked || !plan.from.iter().all(is_own) || now.wall.since(from) < SHORTEST_GAP {
            return;
        }
        let view = self.board.view(&plan.key);
        let reason = view.and_then(|view| view.last?.reason);
        let changes = [(from, Health::NoData, None), (now.wall, health, reason)];
        let changes = changes.map(|(at, health, reason)| Change::Health {
            monitor: id,
            at,
            health,
            reason,
        });
        self.group.extend(changes);
    }

    /// Has a monitor conclude nothing from the silence of a process that checks it, until another one would have replaced that.
    pub(super) fn excuse_silence(&mut self, id: MonitorId, now: Moment) {
        if self.sharing.has(id) {
            return;
        }
        let Some(live) = self.live.get_mut(&id) else {
            return;
        };
        if !live.plan.is_shareable(&self.base.region) {
            return;
        }
        let silent_for = live
            .last_at
            .map_or(now.elapsed, |last| now.wall.since(last));
        let after = live.plan.policy.silent_after;
        if (after..after.saturating_add(REPLACED_WITHIN)).contains(&silent_for) {
            live.detector.begin_anew(now);
        }
    }

    /// Takes what other processes found.
    pub(super) fn take_handed_over(&mut self, all: Vec<HandedOver>) {
        let now = self.moment().wall;
        for one in all {
            // Marks of monitors that were held back have numbers below zero, and change nothing when they come again.
            if one.number > 0 {
                let last = self.sharing.last.entry(one.process).or_insert(0);
                if one.number <= *last {
                    continue;
                }
                *last = one.number;
            }
            // One of a later version may find something else.
            let Ok(found) = serde_json::from_str::<SharedFinding>(&one.text) else {
                continue;
            };
            match found {
                SharedFinding::Result(report) => {
                    for remote in report.into_results(now.minus(one.age)) {
                        self.take_shared(&remote.key, remote.result, now);
                    }
                }
                SharedFinding::HeldBack(key) => {
                    if let Some(id) = self.keys.get(&key).copied() {
                        let region = self.own_region();
                        self.feed(id, Input::HeldBack { region });
                    }
                }
            }
        }
    }

    /// Takes a result that another process found for this one. What is older than this process's lease is only stored.
    fn take_shared(&mut self, key: &str, mut result: CheckResult, now: Timestamp) {
        let Some(id) = self.keys.get(key).copied() else {
            return;
        };
        let Some(live) = self.live.get(&id) else {
            return;
        };
        let is_old = now.since(result.at) > self.retention.raw;
        if is_old || live.is_paused || !self.checks_itself(&live.plan) {
            return;
        }
        result.at = result.at.min(now);
        if result.at < self.sharing.since {
            if !self.refuses(1) {
                let row = ResultRow::from_result(id, OWN, &result);
                let waits_since = self.clock.now();
                self.batch.add(row, waits_since);
            }
            return;
        }
        // Who waits for a check of this moment gets that of this process.
        self.count_result(id, result, false);
    }
}

#[cfg(test)]
mod tests;
