//! A configuration, the first one or another: what changes is changed, and nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{MonitorPlan, Plan, What};
use crate::detect::{Detector, Input};
use crate::engine::board::View;
use crate::engine::heartbeat::HeartbeatState;
use crate::engine::supervisor::apply::pushed_heartbeat;
use crate::engine::supervisor::{Live, Supervisor, region_name};
use crate::status::Health;
use crate::store::{MonitorId, NewMonitor, Restored, StoreError};
use crate::timestamp::Moment;

/// First checks are spread over so much time for each monitor.
const SPREAD: Duration = Duration::from_millis(2);

impl Supervisor {
    pub(super) async fn load(&mut self, plan: Plan) -> Result<(), StoreError> {
        let now = self.moment();
        let rows = plan.monitors.iter().map(|monitor| NewMonitor {
            key: monitor.key.clone(),
            name: monitor.name.clone(),
            group: monitor.group.clone(),
            kind: monitor.kind.clone(),
        });
        let ids = self
            .store
            .sync_monitors(self.org, "file", rows.collect(), now.wall)
            .await?;
        let restored = self.store.restored(self.org).await?;
        let mut restored: HashMap<_, _> =
            restored.into_iter().map(|one| (one.monitor, one)).collect();
        let stored = self.store.monitors(self.org).await?;
        let paused: HashSet<_> = stored
            .iter()
            .filter(|row| row.paused)
            .map(|row| row.id)
            .collect();

        let gone: Vec<_> = self
            .live
            .keys()
            .filter(|id| !ids.contains(id))
            .copied()
            .collect();
        for id in gone {
            self.forget(id);
        }
        self.gates.set_limits(plan.limits);
        self.retention = plan.retention;
        self.board.settle(&plan);
        self.set_channels(plan.channels);
        let spread = SPREAD * u32::try_from(ids.len()).unwrap_or(u32::MAX);
        self.keys.clear();
        for (id, monitor) in ids.into_iter().zip(plan.monitors) {
            self.keys.insert(monitor.key.clone(), id);
            self.adopt(
                id,
                Arc::new(monitor),
                restored.remove(&id).as_ref(),
                paused.contains(&id),
                spread,
                now,
            );
        }
        self.connect();
        self.context.prune();
        self.windows.clear();
        for live in self.live.values() {
            for window in &live.plan.windows {
                if !self
                    .windows
                    .iter()
                    .any(|(known, _)| Arc::ptr_eq(known, window))
                {
                    self.windows.push((Arc::clone(window), false));
                }
            }
        }
        self.look_at_windows(now);
        let ids: Vec<_> = self.live.keys().copied().collect();
        let active: Vec<_> = self
            .windows
            .iter()
            .filter(|(_, it)| *it)
            .map(|(it, _)| Arc::clone(it))
            .collect();
        for id in ids {
            // A window that a reload removed ends.
            let is_held = self.live.get(&id).is_some_and(|live| {
                live.detector.is_in_maintenance()
                    && !live
                        .plan
                        .windows
                        .iter()
                        .any(|it| active.iter().any(|other| Arc::ptr_eq(it, other)))
            });
            if is_held {
                self.feed(id, Input::Maintenance(false));
            }
            let is_down = self.has_parent_down(id);
            self.feed(id, Input::ParentDown(is_down));
        }
        self.board.touch();
        Ok(())
    }

    fn forget(&mut self, id: MonitorId) {
        if let Some(live) = self.live.remove(&id)
            && let Some(wake) = live.wake
        {
            self.timers.remove(&(wake, id));
        }
        self.scheduler.remove(&id);
        self.waiting_for.remove(&id);
        self.board.remove(id);
    }

    fn adopt(
        &mut self,
        id: MonitorId,
        plan: Arc<MonitorPlan>,
        restored: Option<&Restored>,
        is_paused: bool,
        spread: Duration,
        now: Moment,
    ) {
        let host = match &plan.what {
            What::Probe(probe) => probe.host(),
            _ => None,
        };
        let has_heartbeat =
            matches!(plan.what, What::Heartbeat(_)) || pushed_heartbeat(&plan.what).is_some();
        let known = self.live.remove(&id);
        let detector = match (&known, restored) {
            (Some(known), _) => known.detector.clone(),
            (None, Some(restored)) => {
                let incident = restored
                    .incident
                    .map(|it| (it.opened, it.acknowledged, it.announced));
                Detector::restored(
                    &region_name(0),
                    restored.health,
                    restored.since,
                    incident,
                    now,
                )
            }
            (None, None) => Detector::new(now),
        };
        let known_heartbeat = known.as_ref().and_then(|known| known.heartbeat.clone());
        let heartbeat =
            has_heartbeat.then(|| known_heartbeat.unwrap_or_else(|| HeartbeatState::new(now)));
        let view = View {
            id,
            plan: Arc::clone(&plan),
            health: detector.health(),
            since: detector.since(),
            in_maintenance: detector.is_in_maintenance(),
            has_incident: detector.has_incident(),
            incident: detector.incident(),
            is_paused,
            last: None,
            counters: crate::engine::Counters::default(),
        };
        self.board.insert(view);
        match plan.timing.filter(|_| !is_paused) {
            Some(timing) => {
                let start = self.origin + now.elapsed;
                self.scheduler.set(id, timing, spread, start);
            }
            None => {
                self.scheduler.remove(&id);
            }
        }
        let was_paused = detector.health() == Health::Paused;
        let live = Live {
            plan,
            detector,
            heartbeat,
            host,
            is_paused,
            wake: known.as_ref().and_then(|known| known.wake),
            last_at: known.and_then(|known| known.last_at),
        };
        self.live.insert(id, live);
        self.set_timer(id);
        if was_paused != is_paused {
            self.feed(id, Input::Pause(is_paused));
        }
    }

    /// Links monitors to those that depend on them.
    fn connect(&mut self) {
        self.children.clear();
        self.composites.clear();
        for (id, live) in &self.live {
            for parent in &live.plan.parents {
                if let Some(parent) = self.keys.get(parent) {
                    self.children.entry(*parent).or_default().push(*id);
                }
            }
            if let What::Composite(composite) = &live.plan.what {
                for member in &composite.members {
                    if let Some(member) = self.keys.get(member) {
                        self.composites.entry(*member).or_default().push(*id);
                    }
                }
            }
        }
    }
}
