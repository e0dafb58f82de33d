//! A cache of the histories and incidents that status pages show. Entries are read from the store once and updated by each write of
//! the engine.
//!
//! Only the process that judges the results of an organisation uses it: no other process writes them at the same time, and each
//! process starts with an empty cache. Results are added to their hour. An entry is read again after its monitor's health changed,
//! or after a result arrived late or twice: the store resolves those cases, and they are rare. Incidents are read again after each
//! change.
//!
//! Rows that another program writes into a shared store, such as an imported history, show after [`KEPT_FOR`] at most.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ids::{MonitorMap, MonitorSet};
use crate::store::{
    Change, Incident, IncidentEvent, MonitorHistory, MonitorId, OrgId, Resolution, ResultRow,
    Rollup, Store, StoreError,
};
use crate::time::Timestamp;

/// A history is read again after so long.
const KEPT_FOR: Duration = Duration::from_hours(1);

/// Entries reach back further than requested, so that pages of all time zones share them.
const EARLIER_HEALTH: Duration = Duration::from_hours(48);
const EARLIER_HOURS: Duration = Duration::from_hours(1);

/// Hours of an entry; older ones are removed.
const MOST_HOURS: usize = 30;

/// A result older than the last one by more than this invalidates the entry: the store may have deleted other results of its time.
const LATE: Duration = Duration::from_mins(10);

/// Pages of so many time zones keep their incidents.
const MOST_MIDNIGHTS: usize = 8;

/// Reads include results and changes dated after the present time, which exist after the clock was set back.
const TO_THE_END: Duration = Duration::from_hours(10 * 366 * 24);

/// The histories of an organisation's monitors.
#[derive(Debug, Default)]
pub struct Histories {
    kept: Mutex<Kept>,
    /// Held while the store is read.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Whether the engine of this process reports its writes; otherwise nothing is cached.
    is_followed: bool,
    by_monitor: MonitorMap<Entry>,
    /// Monitors whose results are being written, and those whose health is.
    in_writing: [InWriting; 2],
    incidents: KeptIncidents,
}

#[derive(Debug, Default)]
struct InWriting {
    monitors: MonitorSet,
    /// A gap affects all monitors.
    are_all: bool,
}

impl InWriting {
    fn has(&self, monitor: MonitorId) -> bool {
        self.are_all || self.monitors.contains(&monitor)
    }
}

/// Incidents with their timelines.
pub type Timelines = Arc<[(Incident, Vec<IncidentEvent>)]>;

/// The incidents of pages, of which each time zone has those since another midnight.
#[derive(Debug, Default)]
struct KeptIncidents {
    known: Vec<KnownIncidents>,
    /// Number of writes that have begun.
    writes: u64,
    are_in_writing: bool,
}

#[derive(Debug)]
struct KnownIncidents {
    since: Timestamp,
    limit: usize,
    timelines: Timelines,
    read: Timestamp,
}

impl KeptIncidents {
    fn find(&self, since: Timestamp, limit: usize, now: Timestamp) -> Option<Timelines> {
        let mut known = self.known.iter();
        let found = known.find(|it| it.since == since && it.limit == limit && is_new(it.read, now));
        found.map(|it| Arc::clone(&it.timelines))
    }
}

/// Whether rows that were read at that time are younger than [`KEPT_FOR`].
fn is_new(read: Timestamp, now: Timestamp) -> bool {
    read <= now && now.since(read) < KEPT_FOR
}

/// One monitor.
#[derive(Debug, Default)]
struct Entry {
    /// The history; absent if the store has to be read.
    known: Option<Known>,
    /// The date of the last result of each region since the entry exists.
    last: Vec<(u16, Timestamp)>,
    /// Whether it is being read and no write has begun since.
    is_being_read: bool,
    /// When it was last wanted.
    wanted: Timestamp,
}

#[derive(Debug)]
struct Known {
    history: Arc<MonitorHistory>,
    /// How far it reaches back.
    since: Since,
    read: Timestamp,
}

impl Known {
    fn has(&self, wanted: Since, now: Timestamp) -> bool {
        self.since.health <= wanted.health
            && self.since.hours <= wanted.hours.floor(Resolution::Hour.millis())
            && is_new(self.read, now)
    }

    /// Adds a result to its hour.
    fn add(&mut self, row: &ResultRow) {
        let start = row.at.floor(Resolution::Hour.millis());
        if start < self.since.hours {
            return;
        }
        let history = Arc::make_mut(&mut self.history);
        let hours = history.hours.get_or_insert_default();
        let position = hours.partition_point(|hour| hour.start < start);
        if hours.get(position).is_none_or(|hour| hour.start != start) {
            hours.insert(position, Rollup::at(start));
        }
        hours[position].add(row);
        if hours.len() > MOST_HOURS {
            let gone = hours.remove(0);
            self.since.hours = Timestamp(gone.start.0 + Resolution::Hour.millis());
        }
    }
}

/// From when on a history is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The health, with the last change before.
    pub health: Timestamp,
    /// The results by hour, with the hour that it is in.
    pub hours: Timestamp,
}

/// A write that has begun; it ends with [`Histories::written`].
#[derive(Debug)]
pub(super) struct Writing {
    part: Part,
    /// Results of monitors that are kept.
    rows: Vec<ResultRow>,
    /// Monitors whose health may be another one then; absent for all of them.
    changed: Option<Vec<MonitorId>>,
    /// Whether incidents may be others then.
    has_incidents: bool,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Results,
    Changes,
}

impl Histories {
    /// Starts to cache: from now on the engine of this process is the only writer, and reports each write.
    pub(super) fn follow(&self) {
        self.lock().is_followed = true;
    }

    /// Begins a write of results, before the call of the store.
    pub(super) fn writing_results(&self, rows: &[ResultRow]) -> Writing {
        let mut kept = self.lock();
        let mut of_kept = Vec::new();
        for row in rows {
            let in_writing = &mut kept.in_writing[Part::Results as usize];
            in_writing.monitors.insert(row.monitor);
            let Some(entry) = kept.by_monitor.get_mut(&row.monitor) else {
                continue;
            };
            entry.is_being_read = false;
            of_kept.push(row.without_detail());
        }
        Writing {
            part: Part::Results,
            rows: of_kept,
            changed: Some(Vec::new()),
            has_incidents: false,
        }
    }

    /// Begins a write of changes, before the call of the store.
    pub(super) fn writing_changes(&self, changes: &[Change]) -> Writing {
        let mut kept = self.lock();
        let is_gap = |change: &Change| matches!(change, Change::Gap { .. });
        let monitors = (!changes.iter().any(is_gap)).then(|| {
            let of_health = changes.iter().filter(|change| has_health(change));
            of_health.filter_map(Change::monitor).collect::<Vec<_>>()
        });
        let in_writing = &mut kept.in_writing[Part::Changes as usize];
        match &monitors {
            Some(monitors) => in_writing.monitors.extend(monitors),
            None => in_writing.are_all = true,
        }
        kept.interrupt_reading(monitors.as_deref());
        let has_incidents = changes.iter().any(has_incident);
        if has_incidents {
            kept.incidents.writes += 1;
            kept.incidents.are_in_writing = true;
        }
        Writing {
            part: Part::Changes,
            rows: Vec::new(),
            changed: monitors,
            has_incidents,
        }
    }

    /// Ends a write.
    ///
    /// - `is_taken`: whether the store accepted all of it; after an error it may have accepted a part.
    pub(super) fn written(&self, writing: Writing, is_taken: bool) {
        let mut kept = self.lock();
        let in_writing = &mut kept.in_writing[writing.part as usize];
        in_writing.monitors.clear();
        in_writing.are_all = false;
        for row in &writing.rows {
            let Some(entry) = kept.by_monitor.get_mut(&row.monitor) else {
                continue;
            };
            let is_next = entry.note(row);
            match &mut entry.known {
                Some(known) if is_taken && is_next => known.add(row),
                known => *known = None,
            }
        }
        if writing.has_incidents {
            kept.incidents.known.clear();
            kept.incidents.are_in_writing = false;
        }
        match writing.changed {
            None => kept.by_monitor.values_mut().for_each(Entry::forget),
            Some(monitors) => {
                for monitor in monitors {
                    kept.by_monitor.get_mut(&monitor).map(Entry::forget);
                }
            }
        }
    }

    /// The histories of monitors, in their order. They may reach back further than `wanted`, and have results and changes that
    /// are dated later than `now`: see [`MonitorHistory::health_within`]. Fails if the store does.
    pub async fn read(
        &self,
        (org, store): (OrgId, &dyn Store),
        monitors: &[MonitorId],
        wanted: Since,
        now: Timestamp,
    ) -> Result<Vec<Arc<MonitorHistory>>, StoreError> {
        if !self.lock().is_followed {
            let Since { health, hours } = wanted;
            let until = now.plus(Duration::from_millis(1));
            let read = store.histories(org, monitors.to_vec(), health, hours, until);
            return Ok(read.await?.into_iter().map(Arc::new).collect());
        }
        let known = self.lock().all(monitors, wanted, now);
        if let Some(all) = known {
            return Ok(all);
        }
        let _reading = self.reading.lock().await;
        let (mut found, missing) = self.lock().begin(monitors, wanted, now);
        if !missing.is_empty() {
            let earlier = wanted.hours.minus(EARLIER_HOURS);
            let since = Since {
                health: wanted.health.minus(EARLIER_HEALTH),
                hours: earlier.floor(Resolution::Hour.millis()),
            };
            let until = now.plus(TO_THE_END);
            let read = store.histories(org, missing.clone(), since.health, since.hours, until);
            let read = missing.into_iter().zip(read.await?);
            let mut kept = self.lock();
            for (monitor, history) in read {
                let history = Arc::new(history);
                kept.keep(monitor, &history, since, now);
                found.insert(monitor, history);
            }
        }
        let history_of = |monitor| found.get(monitor).cloned().unwrap_or_default();
        Ok(monitors.iter().map(history_of).collect())
    }

    /// Incidents with their timelines, as [`Store::timelines`] returns them. Fails if the store does.
    pub async fn timelines(
        &self,
        (org, store): (OrgId, &dyn Store),
        since: Timestamp,
        limit: usize,
        now: Timestamp,
    ) -> Result<Timelines, StoreError> {
        let (is_free, writes) = {
            let kept = self.lock();
            if let Some(known) = kept.incidents.find(since, limit, now) {
                return Ok(known);
            }
            let is_free = kept.is_followed && !kept.incidents.are_in_writing;
            (is_free, kept.incidents.writes)
        };
        let read: Timelines = store.timelines(org, since, limit).await?.into();
        let incidents = &mut self.lock().incidents;
        if is_free && incidents.writes == writes {
            incidents.known.retain(|known| known.since != since);
            incidents.known.truncate(MOST_MIDNIGHTS - 1);
            let known = KnownIncidents {
                since,
                limit,
                timelines: Arc::clone(&read),
                read: now,
            };
            incidents.known.insert(0, known);
        }
        Ok(read)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Marks reads under way of these monitors, or of all, as outdated.
    fn interrupt_reading(&mut self, monitors: Option<&[MonitorId]>) {
        let entries = &mut self.by_monitor;
        match monitors {
            None => entries.values_mut().for_each(|it| it.is_being_read = false),
            Some(monitors) => {
                for monitor in monitors {
                    if let Some(entry) = entries.get_mut(monitor) {
                        entry.is_being_read = false;
                    }
                }
            }
        }
    }

    fn one(
        &mut self,
        monitor: MonitorId,
        wanted: Since,
        now: Timestamp,
    ) -> Option<Arc<MonitorHistory>> {
        let entry = self.by_monitor.get_mut(&monitor)?;
        entry.wanted = now;
        let known = entry.known.as_ref()?;
        known.has(wanted, now).then(|| Arc::clone(&known.history))
    }

    /// All of them, if none has to be read.
    fn all(
        &mut self,
        monitors: &[MonitorId],
        wanted: Since,
        now: Timestamp,
    ) -> Option<Vec<Arc<MonitorHistory>>> {
        let known = monitors
            .iter()
            .map(|monitor| self.one(*monitor, wanted, now));
        known.collect()
    }

    /// Those that are known, and those that are to be read, which are marked so.
    fn begin(
        &mut self,
        monitors: &[MonitorId],
        wanted: Since,
        now: Timestamp,
    ) -> (HashMap<MonitorId, Arc<MonitorHistory>>, Vec<MonitorId>) {
        // Entries of pages without readers.
        self.by_monitor
            .retain(|_, entry| entry.is_being_read || now.since(entry.wanted) < KEPT_FOR);
        let (mut found, mut missing) = (HashMap::new(), Vec::new());
        for monitor in monitors {
            if let Some(known) = self.one(*monitor, wanted, now) {
                found.insert(*monitor, known);
                continue;
            }
            let is_free = !self.in_writing.iter().any(|it| it.has(*monitor));
            let entry = self.by_monitor.entry(*monitor).or_default();
            (entry.is_being_read, entry.wanted) = (is_free, now);
            missing.push(*monitor);
        }
        (found, missing)
    }

    fn keep(
        &mut self,
        monitor: MonitorId,
        history: &Arc<MonitorHistory>,
        since: Since,
        now: Timestamp,
    ) {
        let Some(entry) = self.by_monitor.get_mut(&monitor) else {
            return;
        };
        let is_whole = std::mem::take(&mut entry.is_being_read) && history.hours.is_some();
        entry.known = is_whole.then(|| Known {
            history: Arc::clone(history),
            since,
            read: now,
        });
    }
}

impl Entry {
    /// Notes the date of a result; false if it is late, or may have come before.
    fn note(&mut self, row: &ResultRow) -> bool {
        let newest = self.last.iter().map(|(_, at)| *at).max();
        let is_late = newest.is_some_and(|newest| row.at < newest.minus(LATE));
        let mut regions = self.last.iter_mut();
        let Some((_, last)) = regions.find(|(region, _)| *region == row.region) else {
            self.last.push((row.region, row.at));
            // The rows that were read may include it.
            return false;
        };
        let is_next = row.at > *last;
        *last = row.at.max(*last);
        is_next && !is_late
    }

    fn forget(&mut self) {
        self.known = None;
    }
}

/// Whether a change is one of incidents or of their timelines.
fn has_incident(change: &Change) -> bool {
    match change {
        Change::Opened { .. } | Change::Event { .. } | Change::Resolved { .. } => true,
        Change::Health { .. }
        | Change::SetBack { .. }
        | Change::Gap { .. }
        | Change::Notices { .. }
        | Change::Memory { .. } => false,
    }
}

/// Whether a change is one of health, as histories have it.
fn has_health(change: &Change) -> bool {
    match change {
        Change::Health { .. }
        | Change::Opened { .. }
        | Change::Resolved { .. }
        | Change::SetBack { .. }
        | Change::Gap { .. } => true,
        Change::Event { .. } | Change::Notices { .. } | Change::Memory { .. } => false,
    }
}

#[cfg(test)]
mod tests;
