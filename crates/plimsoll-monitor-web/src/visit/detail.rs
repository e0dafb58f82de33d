//! Pages of one incident, maintenance, component or month, which may be older than the snapshot.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use plimsoll_monitor::detect::excluded::excluded;
use plimsoll_monitor::detect::uptime::{Span, uptime};
use plimsoll_monitor::engine::View;
use plimsoll_monitor::store::{
    DeclaredId, IncidentId, MonitorId, Resolution, Rollup, StoreError, declared_downtime,
};
use plimsoll_monitor::time::Timestamp;

use crate::page::html::{self, Frame, WINDOWS, Window};
use crate::page::snapshot::{
    Completed, PublicIncident, PublicMaintenance, Rows, Snapshot, completed, days_until,
    incidents_of,
};
use crate::visit::Visit;

/// How long a page waits for response times before it is shown without them.
const PATIENCE: Duration = Duration::from_secs(3);

/// Incidents of a month that are read.
const MOST_INCIDENTS: usize = 5_000;

/// Maintenance lasts so long at most, unless its occurrences meet.
const LONGEST: Duration = Duration::from_hours(30 * 24);

/// Occurrences of one maintenance window in the history of a month: enough for a daily one.
const MOST_OF_MONTH: usize = 31;

/// Occurrences of one maintenance window that is over, in JSON.
const MOST_COMPLETED: usize = 50;

impl Visit<'_> {
    /// Maintenance of the days of the strips that is over.
    pub(super) fn completed(&self, snapshot: &Snapshot) -> Completed {
        let (_, borders) = days_until(&self.plan.zone, snapshot.built);
        let now = snapshot.built;
        let from = borders.first().copied().unwrap_or(now);
        let (views, known) = (self.views(), snapshot.known());
        completed(self.plan, &views, &known, (from, now), now, MOST_COMPLETED)
    }

    /// The incidents and maintenance of a month, the present one unless it is given.
    pub(super) async fn history(
        &self,
        f: Frame<'_>,
        snapshot: &Snapshot,
        month: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        let now = snapshot.built;
        let zone = &self.plan.zone;
        let today = now.to_jiff().to_zoned(zone.clone()).date();
        let first = match month {
            None => Some(today.first_of_month()),
            Some(month) => month_of(month).filter(|first| *first <= today),
        };
        let of_month = first.and_then(|first| Some((first, span_of_month(first, zone)?)));
        let Some((first, month)) = of_month else {
            return Ok(None);
        };
        let start = month.0;
        let views = self.views();
        let completed = |known: &HashMap<MonitorId, Timestamp>| {
            completed(self.plan, &views, known, month, now, MOST_OF_MONTH)
        };
        let is_kept = snapshot.dates.first().is_some_and(|from| *from <= first);
        if is_kept {
            let completed = completed(&snapshot.known());
            let incidents = &snapshot.incidents;
            let page = html::history_page(f, incidents, &completed, first, now);
            return Ok(Some(page));
        }
        let handle = &self.api.handle;
        let (store, org) = (&handle.store, handle.org);
        let rows = Rows {
            incidents: store.timelines(org, start, MOST_INCIDENTS).await?.into(),
            declared: store.declared(org, start, None, MOST_INCIDENTS).await?,
            ..Rows::default()
        };
        let known = self.known(snapshot, month).await?;
        let incidents = incidents_of(self.plan, &views, &rows, now);
        let completed = completed(&known);
        let page = html::history_page(f, &incidents, &completed, first, now);
        Ok(Some(page))
    }

    /// From when on the health of each component's monitor is known, within a period that the snapshot lacks.
    async fn known(
        &self,
        snapshot: &Snapshot,
        (from, to): Span,
    ) -> Result<HashMap<MonitorId, Timestamp>, StoreError> {
        let handle = &self.api.handle;
        let monitors: Vec<_> = snapshot.components().map(|one| one.id).collect();
        let histories = handle
            .store
            .histories(handle.org, monitors.clone(), from, to, to);
        let histories = monitors.into_iter().zip(histories.await?);
        let known =
            histories.filter_map(|(monitor, history)| Some((monitor, history.health.first()?.at)));
        Ok(known.collect())
    }

    /// One occurrence of maintenance, which may be older than those of the snapshot, with links to the last one and the
    /// next ones of its window.
    pub(super) async fn maintenance(
        &self,
        f: Frame<'_>,
        snapshot: &Snapshot,
        id: &str,
    ) -> Result<Option<String>, StoreError> {
        let now = snapshot.built;
        let recent = self.completed(snapshot).all;
        let announced = || snapshot.maintenance.iter();
        let mut found = announced().chain(&recent).find(|one| one.id == id).cloned();
        let start = PublicMaintenance::start_of(id).filter(|from| *from < now);
        if found.is_none()
            && let Some(from) = start
        {
            let moment = (from, Timestamp(from.0 + 1));
            // Its monitors may have begun while it was under way.
            let known = self.known(snapshot, (from, from.plus(LONGEST))).await?;
            let all = completed(self.plan, &self.views(), &known, moment, now, 1).all;
            found = all.into_iter().find(|one| one.id == id);
        }
        let Some(found) = found else {
            return Ok(None);
        };
        let is_other = |one: &&PublicMaintenance| one.recurs_as(&found) && one.id != found.id;
        let last = recent.iter().find(is_other);
        let next = announced().filter(is_other).take(html::PLANNED);
        let others = last.into_iter().chain(next);
        Ok(Some(html::maintenance_page(f, &found, others)))
    }

    fn views(&self) -> BTreeMap<String, View> {
        self.api.handle.board.views_of(self.plan)
    }

    fn incidents(&self, rows: &Rows, now: Timestamp) -> Vec<PublicIncident> {
        incidents_of(self.plan, &self.views(), rows, now)
    }

    /// One incident, which may be older than those of the snapshot.
    pub(super) async fn incident(
        &self,
        f: Frame<'_>,
        snapshot: &Snapshot,
        id: &str,
    ) -> Result<Option<String>, StoreError> {
        if let Some(known) = snapshot.incidents.iter().find(|one| one.id == id) {
            return Ok(Some(html::incident_page(f, known)));
        }
        let handle = &self.api.handle;
        let (store, org) = (&handle.store, handle.org);
        let mut rows = Rows::default();
        let number = |prefix| id.strip_prefix(prefix)?.parse::<i64>().ok();
        if let Some(number) = number('m') {
            let found = store.incident(org, IncidentId(number)).await?;
            rows.incidents = found.into_iter().collect();
        } else if let Some(number) = number('d') {
            let found = store.declared_one(org, DeclaredId(number)).await?;
            rows.declared.extend(found);
        }
        let found = self.incidents(&rows, snapshot.built);
        Ok(found.first().map(|one| html::incident_page(f, one)))
    }

    pub(super) async fn component(
        &self,
        f: Frame<'_>,
        snapshot: &Snapshot,
        key: &str,
        window: &str,
    ) -> Result<Option<String>, StoreError> {
        let view = self.api.handle.board.view(key);
        let component = snapshot.components().find(|one| one.key == key);
        let (Some(component), Some(view)) = (component, view) else {
            return Ok(None);
        };
        let chosen = WINDOWS.iter().find(|one| one.query == window);
        let chosen: &Window = chosen.unwrap_or(&WINDOWS[0]);
        let now = snapshot.built;
        let handle = &self.api.handle;
        let (store, org) = (&handle.store, handle.org);
        let longest = now.minus(WINDOWS[WINDOWS.len() - 1].length);
        let until = Timestamp(now.0 + 1);
        let health = store.health(org, component.id, longest, until).await?;
        let changes: Vec<_> = health.into_iter().map(|(change, _)| change).collect();
        let declared = store.declared(org, longest, None, MOST_INCIDENTS).await?;
        let declared = declared_downtime(&declared, component.id, now);
        let uptimes = WINDOWS.iter().map(|window| {
            let span = (now.minus(window.length), now);
            uptime(
                &changes,
                &declared,
                &excluded(&view.plan.windows, span),
                span,
            )
        });
        let uptimes: Vec<_> = uptimes.collect();
        // About a hundred points at most.
        let (resolution, merged) = match chosen.length.as_secs() / 86_400 {
            ..=1 => (Resolution::Minute, 15),
            2..=8 => (Resolution::Hour, 2),
            _ => (Resolution::Hour, 8),
        };
        let from = now.minus(chosen.length);
        let times = async {
            let rollups = store.rollups(org, component.id, resolution, from, until);
            let buckets = Rollup::merged(&rollups.await?, resolution.millis() * merged);
            let mut regions = Vec::new();
            if view.plan.from.len() > 1 {
                let day = now.minus(WINDOWS[0].length);
                let found = store.by_region(org, component.id, day, until).await?;
                let named = |(number, rollup)| (handle.board.region_of(number), rollup);
                regions = found.into_iter().map(named).collect();
            }
            Ok::<_, StoreError>((buckets, regions))
        };
        // The rest of the page needs none of them.
        let times = tokio::time::timeout(PATIENCE, times).await;
        let times = times.ok().and_then(Result::ok);
        let measured = times
            .as_ref()
            .map(|(buckets, regions)| (buckets.as_slice(), regions.as_slice()));
        Ok(Some(html::component_page(
            f, snapshot, component, &uptimes, chosen, measured,
        )))
    }
}

/// The instants at which a month begins and ends.
fn span_of_month(first: Date, zone: &TimeZone) -> Option<Span> {
    let midnight = |date: Date| {
        let start = date.to_zoned(zone.clone()).ok()?.timestamp();
        Some(Timestamp(start.as_millisecond()))
    };
    let next = first.checked_add(jiff::Span::new().months(1)).ok()?;
    Some((midnight(first)?, midnight(next)?))
}

/// The first day of a month such as `2026-03`.
fn month_of(text: &str) -> Option<Date> {
    let (year, month) = text.split_once('-')?;
    if year.len() != 4 || month.len() != 2 {
        return None;
    }
    Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_have_a_year_and_a_number() {
        assert!(month_of("2026-02").is_some());
        for wrong in ["2026-13", "26-01", "2026-1", "2026", "x-01", "2026-02-01"] {
            assert_eq!(month_of(wrong), None, "{wrong}");
        }
    }
}
