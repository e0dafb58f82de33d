//! A configuration, the first one or another: what changes is changed, and nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{MonitorPlan, Plan, Source, What, overlay};
use crate::detect::status::Health;
use crate::detect::{Detector, Input};
use crate::engine::board::{Access, View};
use crate::engine::composition::{StoredDefinitions, compose};
use crate::engine::heartbeat::HeartbeatState;
use crate::engine::memory;
use crate::engine::supervisor::apply::pushed_heartbeat;
use crate::engine::supervisor::{LiveMonitor, Supervisor};
use crate::store::{
    DefinitionChanges, DefinitionKind, MonitorId, NewMonitor, PutDefinition, Restored, StoreError,
    UserEdit,
};
use crate::time::{Moment, Timestamp};

/// First checks are spread over so much time for each monitor.
const SPREAD: Duration = Duration::from_millis(2);

/// What another process left of a monitor.
pub(super) struct Left {
    restored: Restored,
    memory: Option<String>,
}

impl Supervisor {
    /// Replaces the configuration of the file.
    pub(super) async fn load(&mut self, plan: Plan) -> Result<(), StoreError> {
        self.gates.set_limits(plan.limits);
        self.retention = plan.retention;
        self.board.settle(&plan);
        self.base = plan;
        self.channels.expect_change();
        self.expect_sources();
        self.rebuild().await
    }

    /// Makes the monitors, windows and pages those of the file and of the store.
    pub(super) async fn rebuild(&mut self) -> Result<(), StoreError> {
        let now = self.moment();
        self.number_regions(now.wall).await?;
        let stored = StoredDefinitions::read(&*self.store, self.org).await?;
        let mut composed = compose(&self.base, &stored, &*self.notice);
        self.note_placed(
            std::mem::take(&mut composed.discovered),
            stored.discovered(),
        );
        let (of_file, of_store): (Vec<_>, Vec<_>) = composed
            .monitors
            .into_iter()
            .partition(|(source, _)| *source == Source::File);
        let mut ids = Vec::with_capacity(of_file.len() + of_store.len());
        for (source, monitors) in [(Source::File, &of_file), (Source::Store, &of_store)] {
            let rows = monitors.iter().map(|(_, monitor)| NewMonitor {
                key: monitor.key.clone(),
                name: monitor.name.clone(),
                group: monitor.group.clone(),
                kind: monitor.kind.clone(),
            });
            let synced = self
                .store
                .sync_monitors(self.org, source.name(), rows.collect(), now.wall)
                .await?;
            ids.extend(synced);
        }
        // Later, one that is not live is new, or was removed: what it had opened ended with it.
        let restored = if std::mem::replace(&mut self.is_restored, true) {
            HashMap::new()
        } else {
            self.restored().await?
        };
        let stored = self.store.monitors(self.org).await?;
        let paused: HashSet<_> = stored
            .iter()
            .filter(|row| row.paused)
            .map(|row| row.id)
            .collect();

        let staying: HashSet<_> = ids.iter().copied().collect();
        let gone: Vec<_> = self
            .live
            .keys()
            .filter(|id| !staying.contains(id))
            .copied()
            .collect();
        for id in gone {
            self.forget(id);
        }
        // What ends or begins from here on goes to the channels that are there now.
        let all = self
            .channels
            .replace(composed.file_channels, composed.channels);
        if let Some(all) = all {
            self.board.set_channels(all);
        }
        self.board.set_rotations(composed.rotations);
        self.board.set_escalations(composed.escalations);
        self.board.set_left_out(composed.left_out);
        self.windows.place(composed.windows);
        self.board.set_pages(composed.pages, self.windows.placed());
        let spread = SPREAD * u32::try_from(ids.len()).unwrap_or(u32::MAX);
        self.keys.clear();
        for (id, (source, monitor)) in ids.into_iter().zip(of_file.into_iter().chain(of_store)) {
            self.keys.insert(monitor.key.clone(), id);
            self.adopt(
                id,
                monitor,
                source,
                restored.get(&id),
                paused.contains(&id),
                spread,
                now,
            );
        }
        self.seal_again(now.wall).await?;
        self.refresh_access().await?;
        self.settle(now);
        Ok(())
    }

    /// What another process left of each monitor.
    async fn restored(&self) -> Result<HashMap<MonitorId, Left>, StoreError> {
        let memories = self.store.memories(self.org, memory::STATE).await?;
        let mut memories: HashMap<_, _> = memories.into_iter().collect();
        let restored = self.store.restored(self.org).await?.into_iter();
        let left = restored.map(|restored| {
            let id = restored.monitor;
            let memory = memories.remove(&id);
            (id, Left { restored, memory })
        });
        let mut left: HashMap<_, _> = left.collect();
        // Of one that has no health yet, such as a heartbeat whose job has only begun.
        for (id, memory) in memories {
            let restored = Restored {
                monitor: id,
                health: Health::Pending,
                since: self.moment().wall,
                incident: None,
            };
            let memory = Some(memory);
            left.insert(id, Left { restored, memory });
        }
        Ok(left)
    }

    /// Seals secrets by the present key that are not sealed, or by another one.
    async fn seal_again(&self, now: Timestamp) -> Result<(), StoreError> {
        let (store, org) = (&self.store, self.org);
        // Reading them all says whether any is.
        for kind in DefinitionKind::SECRET {
            store.definitions(org, kind).await?;
        }
        let users = store.users(org).await?;
        if !store.is_behind() {
            return Ok(());
        }
        for kind in DefinitionKind::SECRET {
            let all = store.definitions(org, kind).await?;
            let puts = all.into_iter().map(|(definition, _)| PutDefinition {
                id: None,
                was: Some(definition.key.clone()),
                key: definition.key,
                version: Some(definition.version),
                text: definition.text,
                monitor: None,
            });
            let changes = DefinitionChanges {
                puts: puts.collect(),
                ..DefinitionChanges::default()
            };
            store.change_definitions(org, kind, changes, now).await?;
        }
        for user in users {
            if user.totp.is_some() {
                let edit = UserEdit {
                    totp: Some(user.totp),
                    ..UserEdit::default()
                };
                store.edit_user(org, user.id, edit).await?;
            }
        }
        // The definitions just written are no reason to do it again.
        store.is_behind();
        Ok(())
    }

    /// Notes who may use the API.
    async fn refresh_access(&self) -> Result<(), StoreError> {
        let tokens = self.store.tokens(self.org).await?;
        let users = self.store.users(self.org).await?;
        self.board.set_access(Access {
            tokens: tokens.into(),
            has_users: !users.is_empty(),
        });
        Ok(())
    }

    /// Adds and changes monitors of the store, and removes others.
    pub(super) async fn put(
        &mut self,
        monitors: Vec<(MonitorId, MonitorPlan)>,
        gone: &[String],
    ) -> Result<(), StoreError> {
        let now = self.moment();
        let is_new = monitors.iter().any(|(id, _)| !self.live.contains_key(id));
        let mut stored = Vec::new();
        if is_new {
            stored = self.store.monitors(self.org).await?;
        }
        let paused: HashSet<_> = stored
            .iter()
            .filter(|row| row.paused)
            .map(|row| row.id)
            .collect();
        for key in gone {
            if let Some(id) = self.keys.remove(key) {
                self.forget(id);
            }
        }
        let spread = SPREAD * u32::try_from(monitors.len()).unwrap_or(u32::MAX);
        let plans = monitors.into_iter().map(|(id, plan)| (id, Arc::new(plan)));
        let (ids, mut plans): (Vec<_>, Vec<_>) = plans.unzip();
        let present = plans.iter().map(|plan| &plan.key);
        self.board.fit_monitors(present.chain(gone));
        overlay::attach(&mut plans, self.windows.placed());
        for (id, plan) in ids.into_iter().zip(plans) {
            let known = self.live.get(&id);
            let is_paused = known.map_or(paused.contains(&id), |live| live.is_paused);
            if let Some(old) = known.map(|live| live.plan.key.clone())
                && old != plan.key
            {
                self.keys.remove(&old);
                self.board.remove(id);
            }
            self.keys.insert(plan.key.clone(), id);
            // A monitor of this name that was there before is another one: what it had opened ended with it.
            self.adopt(id, plan, Source::Store, None, is_paused, spread, now);
        }
        let views = self.board.views();
        let plans = || views.iter().map(|view| &view.plan);
        let pages = self.board.pages();
        let pages = pages.iter().map(|page| page.showing(plans()));
        self.board.set_pages(pages.collect(), self.windows.placed());
        self.settle(now);
        Ok(())
    }

    /// Links monitors, and has each feel the windows and parents that it has now.
    fn settle(&mut self, now: Moment) {
        self.connect();
        self.context.prune();
        let windows = self.live.values().flat_map(|live| &live.plan.windows);
        self.windows.watch(windows);
        self.look_at_windows(now);
        let ids = self.ids();
        let active = self.windows.active();
        for &id in &ids {
            // A window that was removed ends.
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
            self.feed(id, Input::Rejudge);
        }
        for id in ids {
            self.judge_composite(id);
        }
        self.board.touch();
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a monitor is made of, used at two places"
    )]
    fn adopt(
        &mut self,
        id: MonitorId,
        plan: Arc<MonitorPlan>,
        source: Source,
        restored: Option<&Left>,
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
        let left = restored.filter(|_| known.is_none());
        let recalled = left
            .and_then(|left| left.memory.as_deref())
            .and_then(|text| memory::recall(text, now));
        let (known_detector, known_heartbeat, silence) = match (&known, recalled) {
            (Some(known), _) => (
                Some(known.detector.clone()),
                known.heartbeat.clone(),
                known.silence.clone(),
            ),
            (None, Some(it)) => (Some(it.detector), it.heartbeat, it.silence),
            (None, None) => (None, None, None),
        };
        let detector = known_detector.unwrap_or_else(|| match left.map(|left| &left.restored) {
            Some(restored) => {
                let incident = restored
                    .incident
                    .map(|it| (it.opened, it.acknowledged, it.announced));
                // Whichever region answers first takes over; the others join it.
                let region = match plan.from.first() {
                    Some(first) if !self.checks_itself(&plan) => Arc::from(first.as_str()),
                    _ => self.own_region(),
                };
                Detector::restored(&region, restored.health, restored.since, incident, now)
            }
            None => Detector::new(now),
        });
        let heartbeat =
            has_heartbeat.then(|| known_heartbeat.unwrap_or_else(|| HeartbeatState::new(now)));
        let view = View {
            id,
            plan: Arc::clone(&plan),
            source,
            health: detector.health(),
            since: detector.since(),
            in_maintenance: detector.is_in_maintenance(),
            has_incident: detector.has_incident(),
            incident: detector.incident(),
            is_paused,
            regions: Vec::new(),
            last: None,
            beat: heartbeat.as_ref().map(HeartbeatState::beat),
            counters: crate::engine::Counters::default(),
        };
        self.board.insert(view);
        let was_paused = detector.health() == Health::Paused;
        let live = LiveMonitor {
            plan,
            detector,
            heartbeat,
            host,
            is_paused,
            wake: known.as_ref().and_then(|known| known.wake),
            last_at: known.as_ref().and_then(|known| known.last_at),
            silence,
            remembered: known.map(|known| known.remembered).unwrap_or_default(),
        };
        self.live.insert(id, live);
        self.schedule(id, spread, now);
        self.set_timer(id);
        if was_paused != is_paused {
            self.feed(id, Input::Pause(is_paused));
        }
    }

    /// Links monitors to those that depend on them.
    fn connect(&mut self) {
        self.children.clear();
        self.composites.clear();
        for id in &self.ids() {
            let Some(live) = self.live.get(id) else {
                continue;
            };
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
