//! Snapshots and what was rendered of them, kept until something changes.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_model::Clock;
use plimsoll_monitor::config::{ApiToken, Language};
use plimsoll_monitor::engine::{Handle, Since};
use plimsoll_monitor::store::StoreError;
use plimsoll_monitor::time::Timestamp;
use plimsoll_wire::SystemClock;
use ring::digest::{SHA256, digest};

use crate::page::PagePlan;
use crate::page::snapshot::{Rows, Snapshot, days_until, hours_from};

/// A snapshot without a change is made again after so long: uptime and response times go on.
const FRESH: Duration = Duration::from_secs(30);

/// A reader waits at most so long for the store before the last snapshot is shown.
const PATIENCE: Duration = Duration::from_secs(3);

/// Between two attempts while the store is away.
const RETRY: Duration = Duration::from_secs(5);

/// Incidents of a page.
const MOST_INCIDENTS: usize = 500;

/// Renderings of one snapshot that are kept.
const MOST_RENDERED: usize = 256;

/// The pages of a monitor, shared by all workers.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    kept: Mutex<HashMap<String, Arc<Kept>>>,
}

/// One page.
#[derive(Debug, Default)]
struct Kept {
    current: Mutex<Option<Arc<Current>>>,
    /// Held by the reader that makes a snapshot; others wait for it.
    making: tokio::sync::Mutex<()>,
    tried: Mutex<Option<Timestamp>>,
}

/// A snapshot with what was rendered of it.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) snapshot: Snapshot,
    plan: Arc<PagePlan>,
    version: u64,
    /// What of it is not the present state.
    pub(crate) stale: Option<Stale>,
    rendered: Mutex<HashMap<(Language, String), Arc<Rendered>>>,
}

/// Why a page does not show all of the present state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stale {
    /// The store could not be read since the snapshot was made.
    StoreAway,
    /// The process that ran the checks ended at that date, and no other one has taken over.
    NoChecks(Timestamp),
    /// The database of results is away: response times are missing, and nothing else.
    NoTimes,
}

/// A response body.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) media_type: &'static str,
    pub(crate) content: Bytes,
    pub(crate) compressed: Bytes,
    /// In quotes.
    pub(crate) tag: String,
}

impl Rendered {
    pub(crate) fn new(media_type: &'static str, content: String) -> Self {
        let hash = digest(&SHA256, content.as_bytes());
        let mut first = [0; 32];
        first.copy_from_slice(hash.as_ref());
        let tag: String = ApiToken::written(&first).chars().take(20).collect();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
        let compressed = encoder
            .write_all(content.as_bytes())
            .and_then(|()| encoder.finish())
            .unwrap_or_default();
        Self {
            media_type,
            content: content.into(),
            compressed: compressed.into(),
            tag: format!("W/\"{tag}\""),
        }
    }
}

impl Current {
    /// Why and when it was the present state, if it no longer is: a text with `{time}`, and the time.
    pub(crate) fn stale_text(&self) -> Option<(&'static str, Timestamp)> {
        self.stale.map(|stale| match stale {
            Stale::StoreAway => ("stale", self.snapshot.built),
            Stale::NoChecks(ended) => ("no_checks", ended),
            Stale::NoTimes => ("no_times", self.snapshot.built),
        })
    }

    /// The rendered response for a path.
    pub(crate) fn known(&self, language: Language, path: &str) -> Option<Arc<Rendered>> {
        let rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        rendered.get(&(language, path.to_owned())).cloned()
    }

    pub(crate) fn keep(&self, language: Language, path: &str, rendered: Arc<Rendered>) {
        let mut kept = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_RENDERED {
            kept.clear();
        }
        kept.insert((language, path.to_owned()), rendered);
    }

    fn is_fresh(&self, plan: &Arc<PagePlan>, version: u64, now: Timestamp) -> bool {
        let lasts = match self.stale {
            Some(Stale::NoTimes) => RETRY,
            _ => FRESH,
        };
        self.version == version
            && Arc::ptr_eq(&self.plan, plan)
            && self.stale != Some(Stale::StoreAway)
            && now.since(self.snapshot.built) < lasts
            && now >= self.snapshot.built
    }
}

impl Pages {
    /// The present snapshot of a page: the one that is kept if nothing has changed; otherwise a new one, which is made
    /// once for all readers that wait; the last one if the store cannot be read.
    pub(crate) async fn current(
        &self,
        handle: &Handle,
        plan: &Arc<PagePlan>,
    ) -> Result<Arc<Current>, StoreError> {
        let kept = self.kept(&plan.slug);
        let now = Timestamp::from_system(SystemClock.wall());
        let last = kept.current();
        if let Some(last) = last.filter(|last| last.is_fresh(plan, handle.board.version(), now)) {
            return Ok(last);
        }
        let _making = kept.making.lock().await;
        // Another reader may have made it meanwhile.
        let (version, last) = (handle.board.version(), kept.current());
        let last = match last {
            Some(last) if last.is_fresh(plan, version, now) => return Ok(last),
            // The board is always at hand: a page that shows an older one says so.
            Some(last)
                if last.stale == Some(Stale::StoreAway)
                    && kept.has_tried(now)
                    && last.version == version =>
            {
                return Ok(last);
            }
            last => last,
        };
        kept.try_at(now);
        let reading = tokio::time::timeout(PATIENCE, read(handle, plan, now)).await;
        let snapshot = match (reading, last) {
            (Ok(Ok(rows)), _) => {
                let views = handle.board.views_of(plan);
                let snapshot = Snapshot::from_rows(plan, &views, &rows, now);
                let lacks_times = rows.histories.values().any(|one| one.hours.is_none());
                let stale = handle.board.ended().map(Stale::NoChecks);
                let stale = stale.or(lacks_times.then_some(Stale::NoTimes));
                Current::new(snapshot, plan, version, stale)
            }
            (_, Some(last)) => {
                let stale = Some(Stale::StoreAway);
                Current::new(last.snapshot.clone(), &last.plan, version, stale)
            }
            (Ok(Err(error)), None) => return Err(error),
            (Err(_), None) => return Err(StoreError::Busy),
        };
        let current = Arc::new(snapshot);
        *kept.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&current));
        Ok(current)
    }

    /// Makes a snapshot of each page that has none, so that one that was not requested before is there too once the store goes away.
    pub(crate) async fn prepare(&self, handle: &Handle) {
        for plan in handle.board.pages().iter() {
            if self.kept(&plan.slug).current().is_none() {
                // One that fails is made when it is read, or with the next change.
                self.current(handle, plan).await.ok();
            }
        }
    }

    fn kept(&self, slug: &str) -> Arc<Kept> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(slug.to_owned()).or_default())
    }
}

impl Kept {
    fn current(&self) -> Option<Arc<Current>> {
        let current = self.current.lock();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn has_tried(&self, now: Timestamp) -> bool {
        let tried = *self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        tried.is_some_and(|at| now.since(at) < RETRY)
    }

    fn try_at(&self, now: Timestamp) {
        *self.tried.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}

impl Current {
    fn new(snapshot: Snapshot, plan: &Arc<PagePlan>, version: u64, stale: Option<Stale>) -> Self {
        Self {
            snapshot,
            plan: Arc::clone(plan),
            version,
            stale,
            rendered: Mutex::default(),
        }
    }
}

async fn read(handle: &Handle, plan: &PagePlan, now: Timestamp) -> Result<Rows, StoreError> {
    let (_, borders) = days_until(&plan.zone, now);
    let from = borders.first().copied().unwrap_or(now);
    let board = &handle.board;
    let monitors: Vec<_> = plan
        .components()
        .filter_map(|one| Some(board.view(&one.key)?.id))
        .collect();
    let since = Since {
        health: from,
        hours: hours_from(now),
    };
    let (store, org) = (&handle.store, handle.org);
    // Together, so that a store answers them one right after the other, or at once.
    let (histories, incidents, declared) = tokio::try_join!(
        board.histories.read((org, &**store), &monitors, since, now),
        board
            .histories
            .timelines((org, &**store), from, MOST_INCIDENTS, now),
        store.declared(org, from, None, MOST_INCIDENTS),
    )?;
    Ok(Rows {
        histories: monitors.into_iter().zip(histories).collect(),
        incidents,
        declared,
    })
}
