//! A process that checks its share of the monitors for the one that has the lease: an agent whose centre is the store.
//!
//! It judges nothing and sends no notice. Monitors, incidents, composites and notices are those of the process that has the
//! lease, which fetches the results from the store.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_wire::{SystemClock, block_on_local};
use tokio::sync::{oneshot, watch};

use crate::agent::{self, AgentOptions, CentreError, Link, LinkFuture, Reply};
use crate::config::MonitorPlan;
use crate::engine::report::{Report, SharedFinding};
use crate::engine::standby::Checks;
use crate::schedule::GateLimits;
use crate::store::shards::{Shards, SharedResult};
use crate::store::{MonitorId, OrgId, Store};

/// Between two looks at the share, and at what is to be checked.
const LOOK: Duration = Duration::from_millis(500);

/// Results wait at most this long for others.
const SEND: Duration = Duration::from_millis(250);

/// Results that wait while the store is away. It has the share of this process no longer than a lease lasts.
const MOST_WAITING: usize = 20_000;

/// The shards of a process, and until when they are its own.
type Share = Arc<Mutex<(Shards, Option<Instant>)>>;

/// Checks a share on a thread of its own, until this is dropped.
#[derive(Debug)]
pub struct Helper {
    share: Share,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Helper {
    /// Without a share at first. Fails if the system has no thread for it.
    ///
    /// - `checks`: what there is to check.
    /// - `report`: receives what an operator should see.
    pub fn start(
        (org, store): (OrgId, Arc<dyn Store>),
        process: String,
        checks: watch::Receiver<Checks>,
        report: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> std::io::Result<Self> {
        /// The runs of this process, so that no number of a result comes again.
        static RUNS: AtomicI64 = AtomicI64::new(1);

        let share = Share::new(Mutex::new((Shards::NONE, None)));
        let (stop, stopped) = oneshot::channel();
        let first = RUNS.fetch_add(1, Ordering::Relaxed) << 40;
        let own = Arc::clone(&share);
        let work = move || {
            let options = AgentOptions {
                fetch_every: LOOK,
                send_every: SEND,
                buffer: MOST_WAITING,
                state: None,
            };
            let link = Rc::new(StoreLink {
                org,
                store,
                process,
                share: own,
                checks,
                first,
                marks: Cell::new(0),
                known: RefCell::default(),
                ids: RefCell::default(),
                held_back: RefCell::default(),
            });
            let failed = Arc::clone(&report);
            if block_on_local(agent::run(options, link, report, stopped)).is_err() {
                failed("cannot start to check a share of the monitors");
            }
        };
        let thread = thread::Builder::new()
            .name("monitor-share".to_owned())
            .spawn(work)?;
        Ok(Self {
            share,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Checks these shards until a moment, unless this is called again.
    pub fn set_share(&self, shards: Shards, until: Instant) {
        *lock(&self.share) = (shards, Some(until));
    }
}

impl Drop for Helper {
    /// Waits until what was found is handed over.
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn lock(share: &Share) -> std::sync::MutexGuard<'_, (Shards, Option<Instant>)> {
    share.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The store as the centre of an agent.
struct StoreLink {
    org: OrgId,
    store: Arc<dyn Store>,
    process: String,
    share: Share,
    checks: watch::Receiver<Checks>,
    /// The number of a result is that of its report and this.
    first: i64,
    /// Of monitors that were held back since the start.
    marks: Cell<i64>,
    /// What the agent was last given to check.
    known: RefCell<Option<(Vec<Arc<MonitorPlan>>, GateLimits)>>,
    ids: RefCell<HashMap<String, MonitorId>>,
    held_back: RefCell<BTreeSet<String>>,
}

impl StoreLink {
    /// What waits for the process that has the lease.
    ///
    /// - `held_back`: the keys of monitors that were not checked.
    fn results(&self, mut frame: Report, held_back: &BTreeSet<String>) -> Vec<SharedResult> {
        let ids = self.ids.borrow();
        let found = std::mem::take(&mut frame.results);
        let found = found.into_iter().filter_map(|found| {
            let monitor = *ids.get(found.key())?;
            let number = self.first + i64::try_from(found.number()).ok()?;
            let report = Report {
                results: vec![found],
                ..frame.clone()
            };
            Some(SharedResult {
                number,
                monitor,
                text: report.handed_over()?,
            })
        });
        let marks = held_back.iter().filter_map(|key| {
            self.marks.set(self.marks.get() + 1);
            Some(SharedResult {
                // Below those of results, which come again if their answer was lost.
                number: -(self.first + self.marks.get()),
                monitor: *ids.get(key)?,
                text: serde_json::to_string(&SharedFinding::HeldBack(key.clone())).ok()?,
            })
        });
        found.chain(marks).collect()
    }
}

impl Link for StoreLink {
    fn fetch(&self, _known: Option<String>) -> LinkFuture<'_> {
        let (shards, until) = *lock(&self.share);
        let is_own = until.is_some_and(|until| SystemClock.now() < until);
        let shards = if is_own { shards } else { Shards::NONE };
        let checks = self.checks.borrow().clone();
        let mine = checks.monitors.iter();
        let mine = mine.filter(|(id, _)| shards.has_monitor(*id));
        let monitors: Vec<_> = mine.map(|(_, plan)| Arc::clone(plan)).collect();
        let mut known = self.known.borrow_mut();
        let is_known = known.as_ref().is_some_and(|(known, limits)| {
            *limits == checks.limits
                && known.len() == monitors.len()
                && known
                    .iter()
                    .zip(&monitors)
                    .all(|(one, other)| Arc::ptr_eq(one, other))
        });
        let reply = if is_known {
            Reply::Fine
        } else {
            // Monitors of the last list may have results that are not sent yet; older ones have none.
            let mut ids = self.ids.borrow_mut();
            let before = known.as_ref().map(|(before, _)| before.iter());
            let before: BTreeSet<_> = before.into_iter().flatten().map(|it| &it.key).collect();
            ids.retain(|key, _| before.contains(key));
            for (id, plan) in &*checks.monitors {
                ids.insert(plan.key.clone(), *id);
            }
            *known = Some((monitors.clone(), checks.limits));
            Reply::Monitors(monitors, checks.limits)
        };
        Box::pin(async move { Ok(reply) })
    }

    fn send(&self, report: Report) -> LinkFuture<'_> {
        let held_back = std::mem::take(&mut *self.held_back.borrow_mut());
        let results = self.results(report, &held_back);
        Box::pin(async move {
            if results.is_empty() {
                return Ok(Reply::Fine);
            }
            let sent = self.store.hand_over(self.org, &self.process, results).await;
            match sent {
                Ok(()) => Ok(Reply::Fine),
                Err(error) => Err(CentreError::Store(error.to_string())),
            }
        })
    }

    fn hold_back(&self, key: &str) {
        self.held_back.borrow_mut().insert(key.to_owned());
    }
}
