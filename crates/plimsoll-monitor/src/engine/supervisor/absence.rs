//! Time in which nothing was seen, dates that are set, and what follows from both.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::config::{HeartbeatPlan, What};
use crate::detect::status::Health;
use crate::detect::{Input, Resolution};
use crate::engine::board::Figures;
use crate::engine::clock::Break;
use crate::engine::memory;
use crate::engine::supervisor::apply::pushed_heartbeat;
use crate::engine::supervisor::{LiveMonitor, Supervisor};
use crate::store::{Change, MonitorId, StoreError};
use crate::time::Timestamp;

/// Between two marks in the store that this process runs: what a kill makes unknown at most.
const MARK: Duration = Duration::from_secs(1);

/// A process that was away for less has missed nothing.
const SHORTEST: Duration = Duration::from_secs(1);

impl LiveMonitor {
    /// What is expected of its heartbeat, if it has one.
    pub(super) fn heartbeat_plan(&self) -> Option<HeartbeatPlan> {
        match &self.plan.what {
            What::Heartbeat(plan) => Some(plan.clone()),
            other => pushed_heartbeat(other),
        }
    }
}

impl Supervisor {
    /// Goes on where another process ended.
    ///
    /// - `last`: when a process last ran.
    pub(super) async fn come_back(&mut self, last: Option<Timestamp>) -> Result<(), StoreError> {
        let now = self.moment();
        match last {
            Some(last) if last > now.wall => self.set_back(last, now.wall),
            Some(last) if now.wall.since(last) >= SHORTEST => self.absent(last, now.wall),
            _ => {}
        }
        self.bury_orphans().await?;
        self.look_at_store();
        // Figures that are read from now on leave the absence out; and a kill in between must not lose it, as it would once
        // the store has a later mark.
        self.recorder.drain(self.org, &*self.store).await?;
        self.mark_alive().await;
        Ok(())
    }

    /// Incidents of monitors that were removed while no process ran end, and what was remembered of them is forgotten.
    async fn bury_orphans(&mut self) -> Result<(), StoreError> {
        let now = self.moment();
        for orphan in self.store.orphans(self.org).await? {
            let notices = if orphan.incident.announced {
                self.notices_of_removed(&orphan, now.wall)
            } else {
                Vec::new()
            };
            let monitor = orphan.monitor;
            let group = vec![
                Change::Notices {
                    monitor,
                    at: now.wall,
                    notices,
                },
                Change::Resolved {
                    monitor,
                    at: now.wall,
                    by: Resolution::Removed,
                    lasted: now.wall.since(orphan.incident.opened),
                    actor: None,
                },
            ];
            self.recorder.record(group);
        }
        for (monitor, text) in self.store.memories(self.org, memory::STATE).await? {
            if self.live.contains_key(&monitor) {
                continue;
            }
            let mut group = vec![Change::Memory {
                monitor,
                name: memory::STATE,
                text: None,
            }];
            let left = memory::recall(&text, now);
            if let Some(silence) = left.as_ref().and_then(|left| left.silence.as_ref()) {
                let key = silence.key.trim_end_matches("/silence");
                let notices = self.notices_of_removed_silence(key, silence, now.wall);
                group.push(Change::Notices {
                    monitor,
                    at: now.wall,
                    notices: notices.await?,
                });
            }
            let health = left.map(|left| left.detector.health());
            if health != Some(Health::Pending) {
                group.push(Change::Health {
                    monitor,
                    at: now.wall,
                    health: Health::Pending,
                    reason: None,
                });
            }
            self.recorder.record(group);
        }
        Ok(())
    }

    /// Looks at the clocks, and marks in the store that this process runs, until it is dropped. Both go on while the loop, or
    /// one another, waits for the store: who waits is not absent.
    pub(super) fn tick(&self) -> JoinSet<()> {
        let mut ticking = JoinSet::new();
        let (clock, watch) = (Rc::clone(&self.clock), Rc::clone(&self.watch));
        let breaks = Rc::clone(&self.breaks);
        ticking.spawn_local(async move {
            loop {
                breaks.borrow_mut().extend(watch.look(&*clock));
                tokio::time::sleep(MARK).await;
            }
        });
        let clock = Rc::clone(&self.clock);
        let (store, org) = (Arc::clone(&self.store), self.org);
        ticking.spawn_local(async move {
            loop {
                // What fails is repeated a second later, and the store says elsewhere that it fails.
                store
                    .mark_alive(org, Timestamp::from_system(clock.wall()))
                    .await
                    .ok();
                tokio::time::sleep(MARK).await;
            }
        });
        ticking
    }

    pub(super) async fn mark_alive(&self) {
        let at = self.moment().wall;
        if let Err(error) = self.store.mark_alive(self.org, at).await {
            (self.notice)(&format!(
                "the store does not note that this process runs: {error}"
            ));
        }
    }

    /// Reports that results are not written or are again, and counts those that waited on the disk and are lost.
    pub(super) fn look_at_store(&mut self) {
        let trouble = self.store.trouble();
        if trouble.is_some() != std::mem::replace(&mut self.is_troubled, trouble.is_some()) {
            match trouble {
                Some(why) => (self.notice)(&format!(
                    "results wait, since they cannot be written: {why}"
                )),
                None => (self.notice)("results are written again"),
            }
        }
        let damage = self.store.damage();
        let figures = &self.board.figures;
        Figures::add(&figures.lost, damage.lost);
        Figures::add(&figures.damaged_files, damage.set_aside.len() as u64);
        for path in damage.set_aside {
            let path = path.display();
            (self.notice)(&format!(
                "a file of results that waited for the store is damaged; it is kept as {path}"
            ));
        }
        if damage.lost > 0 {
            let lost = damage.lost;
            (self.notice)(&format!(
                "results that waited on the disk are lost: {lost}; their files are missing, damaged, or were too many"
            ));
        }
    }

    /// Applies what happened to the clocks since the last look.
    pub(super) fn look_at_clocks(&mut self) {
        let seen = self.watch.look(&*self.clock);
        self.breaks.borrow_mut().extend(seen);
        let breaks = std::mem::take(&mut *self.breaks.borrow_mut());
        for one in breaks {
            match one {
                Break::Absent { from, to } => self.absent(from, to),
                Break::SetForward { from, to } => self.set_forward(from, to),
                Break::SetBack { from, to } => self.set_back(from, to),
            }
        }
    }

    pub(super) fn absent(&mut self, from: Timestamp, to: Timestamp) {
        let now = self.moment();
        self.begin_anew();
        self.group.push(Change::Gap { from, to });
        // A window that began or ended meanwhile holds notices back, or does not any more, before any is due.
        self.look_at_windows(now);
        for id in self.ids() {
            if let Some(live) = self.live.get_mut(&id) {
                // A clock that stands still while the machine is suspended does not know of this time; the next process,
                // which goes by the date, must not either.
                live.remembered = Box::default();
                let plan = live.heartbeat_plan();
                if let (Some(plan), Some(heartbeat)) = (plan, &mut live.heartbeat) {
                    heartbeat.absent(&plan, to.since(from), now);
                }
            }
            self.feed(id, Input::Tick);
        }
        self.flush_group();
    }

    /// Has every monitor conclude nothing from the time until now.
    pub(super) fn begin_anew(&mut self) {
        let now = self.moment();
        for live in self.live.values_mut() {
            live.detector.begin_anew(now);
        }
    }

    /// The dates in between never were: nothing happened in them, and nothing lasted.
    fn set_forward(&mut self, from: Timestamp, to: Timestamp) {
        self.group.push(Change::Gap { from, to });
        self.date_set(from, to);
    }

    fn set_back(&mut self, from: Timestamp, to: Timestamp) {
        for id in self.ids() {
            self.step_only(id, Input::SetBack { from, to });
        }
        self.date_set(from, to);
    }

    fn date_set(&mut self, from: Timestamp, to: Timestamp) {
        self.windows.expect_change();
        self.sharing.set_date(to);
        for id in self.ids() {
            if let Some(live) = self.live.get_mut(&id) {
                if let Some(heartbeat) = &mut live.heartbeat {
                    heartbeat.set_date(from, to);
                }
                if let Some(last) = &mut live.last_at {
                    *last = (*last).min(to);
                }
                // The next process measures how long ago things were from the date of this.
                live.remembered = Box::default();
            }
            self.remember(id);
            self.set_timer(id);
        }
        self.flush_group();
    }

    pub(super) fn ids(&self) -> Vec<MonitorId> {
        let mut ids: Vec<_> = self.live.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Has the store remember what the next process has to know about a monitor, if that has changed.
    pub(super) fn remember(&mut self, id: MonitorId) {
        let now = self.moment();
        let Some(live) = self.live.get_mut(&id) else {
            return;
        };
        let content = memory::Content::new(
            &live.detector,
            live.heartbeat.as_ref(),
            live.silence.as_ref(),
        );
        let compact = content.compact();
        if compact.is_some() && compact.as_deref() == Some(&*live.remembered) {
            return;
        }
        self.group.push(Change::Memory {
            monitor: id,
            name: memory::STATE,
            text: Some(content.text(now)),
        });
        live.remembered = compact.unwrap_or_default().into();
    }

    /// Ends a step: the store gets its changes.
    pub(super) fn flush_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        self.recorder.record(group);
    }

    /// Whether results are lost, because the store has not taken what came before.
    pub(super) fn refuses(&self, results: u64) -> bool {
        let is_full = self.recorder.is_full();
        if is_full {
            Figures::add(&self.board.figures.lost, results);
        }
        is_full
    }

    /// Forgets a monitor that is removed. What it had opened ends.
    pub(super) fn forget(&mut self, id: MonitorId) {
        if self.live.contains_key(&id) {
            self.feed(id, Input::Removed);
            self.recorder.record(vec![Change::Memory {
                monitor: id,
                name: memory::STATE,
                text: None,
            }]);
        }
        if let Some(live) = self.live.remove(&id)
            && let Some(wake) = live.wake
        {
            self.timers.remove(&(wake, id));
        }
        self.scheduler.remove(&id);
        self.waiting_for.remove(&id);
        self.agents.forget(id);
        self.board.remove(id);
    }
}
