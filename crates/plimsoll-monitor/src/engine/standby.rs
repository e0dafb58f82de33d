//! The board of a process that runs no checks, for its status pages: what the process that runs them has written, read again
//! every few seconds.
//!
//! Nothing is written here, and commands fail. Readers who subscribe change rows of the store alone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::config::{MonitorPlan, Plan, Source};
use crate::detect::status::Health;
use crate::engine::Handle;
use crate::engine::board::{Board, Counters, View};
use crate::engine::composition::{Composed, StoredDefinitions, compose};
use crate::engine::supervisor::OWN;
use crate::schedule::GateLimits;
use crate::store::{DefinitionKind, MonitorId, OrgId, Restored, Store, StoreError};
use crate::time::Timestamp;

/// Between two looks for other definitions: they are many, and change seldom.
const DEFINITIONS_EVERY: Duration = Duration::from_secs(10);

/// A process that checks marks itself every second; one that has not for so long has ended.
const MARKS_WITHIN: Duration = Duration::from_secs(5);

/// What there is to check of a region, for a process that checks a share of it.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    /// Monitors that are not paused, by their numbers in the store.
    pub monitors: Arc<[(MonitorId, Arc<MonitorPlan>)]>,
    /// The limits of each process.
    pub limits: GateLimits,
}

/// Reads what another process writes.
#[derive(Debug)]
pub struct Standby {
    handle: Handle,
    stored: StoredDefinitions,
    /// Of which plan the definitions were composed: its number; and when they were read.
    composed_of: Option<(u64, Duration)>,
    monitors: Vec<(Source, Arc<MonitorPlan>)>,
    /// The mark of the other process, and when it was first seen here.
    mark: Option<(Timestamp, Duration)>,
}

/// What is shown of a monitor.
type Shown = (
    MonitorId,
    Health,
    Timestamp,
    bool,
    bool,
    Option<(Timestamp, bool)>,
);

impl Standby {
    /// Of an organisation, whose rows another process writes. Fails if the store does.
    pub async fn new(organisation: &str, store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let org = store.org(organisation).await?;
        // Without its other end: no command is ever executed.
        let (commands, _) = mpsc::channel(1);
        Ok(Self {
            handle: Handle {
                org,
                board: Arc::<Board>::default(),
                store,
                commands,
                changing: Arc::default(),
            },
            stored: StoredDefinitions::default(),
            composed_of: None,
            monitors: Vec::new(),
            mark: None,
        })
    }

    /// Its board, with the store.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// What there is to check, as of the last [`refresh`](Self::refresh).
    pub fn checks(&self, plan: &Plan) -> Checks {
        let views = self.handle.board.views();
        let views = views
            .into_iter()
            .filter(|view| !view.is_paused && view.plan.is_shareable(&plan.region));
        Checks {
            monitors: views.map(|view| (view.id, view.plan)).collect(),
            limits: plan.limits,
        }
    }

    /// Brings the board up to date.
    ///
    /// - `number`: of the plan; another plan has another one.
    /// - `elapsed`: by a clock that never steps.
    pub async fn refresh(
        &mut self,
        plan: &Plan,
        number: u64,
        (now, elapsed): (Timestamp, Duration),
    ) -> Result<(), StoreError> {
        let (store, org) = (Arc::clone(&self.handle.store), self.handle.org);
        let is_composed = self.composed_of.is_some_and(|(known, at)| {
            known == number && elapsed.saturating_sub(at) < DEFINITIONS_EVERY
        });
        if !is_composed {
            let stored = StoredDefinitions::read(&*store, org).await?;
            let regions = regions(&*store, org, plan).await?;
            let is_same = self.composed_of.is_some_and(|(known, _)| known == number);
            if !is_same || self.stored != stored {
                // The process that runs the checks reports what does not fit.
                self.apply(plan, compose(plan, &stored, &|_| {}));
                self.stored = stored;
            }
            self.handle.board.set_regions(regions);
            self.composed_of = Some((number, elapsed));
        }
        self.refresh_monitors(now).await?;
        let mark = store.last_alive(org).await?;
        let ended = self.follow_mark(mark, elapsed);
        self.handle.board.set_ended(ended);
        Ok(())
    }

    fn apply(&mut self, plan: &Plan, composed: Composed) {
        self.monitors = composed.monitors;
        let board = &self.handle.board;
        for view in board.views() {
            board.remove(view.id);
        }
        board.settle(plan);
        board.set_rotations(composed.rotations);
        board.set_pages(composed.pages, &composed.windows);
    }

    async fn refresh_monitors(&self, now: Timestamp) -> Result<(), StoreError> {
        let Handle {
            store, org, board, ..
        } = &self.handle;
        let rows = store.monitors(*org).await?;
        let restored = store.restored(*org).await?.into_iter();
        let restored: HashMap<MonitorId, Restored> =
            restored.map(|one| (one.monitor, one)).collect();
        let by_key: HashMap<_, _> = rows
            .iter()
            .map(|row| (row.monitor.key.as_str(), row))
            .collect();
        let before: HashMap<String, Shown> = board
            .views()
            .iter()
            .map(|view| (view.plan.key.clone(), shown(view)))
            .collect();
        let mut is_other = false;
        let mut present = HashSet::new();
        for (source, plan) in &self.monitors {
            // One that the other process does not have yet.
            let Some(row) = by_key.get(plan.key.as_str()) else {
                continue;
            };
            present.insert(row.id);
            let left = restored.get(&row.id);
            let incident = left.and_then(|left| left.incident.as_ref());
            let view = View {
                id: row.id,
                plan: Arc::clone(plan),
                source: *source,
                health: left.map_or(Health::Pending, |left| left.health),
                since: left.map_or(now, |left| left.since),
                in_maintenance: plan.windows.iter().any(|window| window.is_active(now)),
                has_incident: incident.is_some(),
                incident: incident.map(|one| (one.opened, one.acknowledged)),
                is_paused: row.paused,
                regions: Vec::new(),
                last: None,
                beat: None,
                counters: Counters::default(),
            };
            is_other |= before.get(&plan.key) != Some(&shown(&view));
            board.insert(view);
        }
        for (id, ..) in before.values().filter(|(id, ..)| !present.contains(id)) {
            is_other = true;
            board.remove(*id);
        }
        if is_other {
            board.touch();
        }
        Ok(())
    }

    /// When the other process ended, if it has.
    fn follow_mark(&mut self, mark: Option<Timestamp>, elapsed: Duration) -> Option<Timestamp> {
        let mark = mark?;
        let seen = match self.mark {
            // By the clock here: that of the other machine may be off.
            Some((known, seen)) if known == mark => seen,
            _ => elapsed,
        };
        self.mark = Some((mark, seen));
        (elapsed.saturating_sub(seen) >= MARKS_WITHIN).then_some(mark)
    }
}

fn shown(view: &View) -> Shown {
    // A monitor without health has it since whenever one looks.
    let since = if view.health == Health::Pending {
        Timestamp(0)
    } else {
        view.since
    };
    (
        view.id,
        view.health,
        since,
        view.in_maintenance,
        view.is_paused,
        view.incident,
    )
}

/// Names of regions by their numbers in the store.
async fn regions(
    store: &dyn Store,
    org: OrgId,
    plan: &Plan,
) -> Result<BTreeMap<u16, Arc<str>>, StoreError> {
    let stored = store.definitions(org, DefinitionKind::Region).await?;
    let named = stored.into_iter().filter_map(|(definition, _)| {
        let number = definition.text.parse().ok()?;
        Some((number, Arc::from(definition.key)))
    });
    let mut named: BTreeMap<_, _> = named.collect();
    named.insert(OWN, plan.region.as_str().into());
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{SqliteOptions, SqlitePath, SqliteStore};

    #[test]
    fn a_process_has_ended_once_its_mark_stands_still() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let store = SqliteStore::open(&SqlitePath::Memory, SqliteOptions::default()).unwrap();
        let mut standby = runtime
            .block_on(Standby::new("default", Arc::new(store)))
            .unwrap();
        let mut follow = |mark: Option<i64>, seconds| {
            let ended = standby.follow_mark(mark.map(Timestamp), Duration::from_secs(seconds));
            ended.map(|at| at.0)
        };
        // None has ever run.
        assert_eq!(follow(None, 0), None);
        // Its clock may be anything, and may be set back.
        assert_eq!(follow(Some(7_000), 10), None);
        assert_eq!(follow(Some(8_000), 11), None);
        assert_eq!(follow(Some(1_000), 12), None);
        assert_eq!(follow(Some(1_000), 16), None);
        assert_eq!(follow(Some(1_000), 17), Some(1_000));
        assert_eq!(follow(Some(19_000), 18), None);
    }
}
