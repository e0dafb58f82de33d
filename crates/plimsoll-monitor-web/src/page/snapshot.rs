//! The content of a page at a moment, without its language: pure, from the board and rows of the store.

mod maintenance;

mod measured;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use plimsoll_monitor::config::page::PagePlan;
use plimsoll_monitor::detect::excluded::excluded;
use plimsoll_monitor::detect::status::Health;
use plimsoll_monitor::detect::uptime::Uptime;
use plimsoll_monitor::engine::{Timelines, View};
use plimsoll_monitor::store::{
    Declared, EventKind, Impact, Incident, IncidentEvent, MonitorHistory, MonitorId, PublicPhase,
    Rollup, Sketch,
};
use plimsoll_monitor::time::Timestamp;

use crate::page::snapshot::maintenance::coming;

pub(crate) use crate::page::snapshot::measured::{Grades, Measured};

pub(crate) use crate::page::snapshot::maintenance::{
    Completed, MaintenancePhase, PublicMaintenance, completed,
};

/// Days of a strip, the present one included.
pub(crate) const DAYS: usize = 90;

/// Days of a strip on a phone.
pub(crate) const NEAR: usize = 45;

/// Hours of a sparkline.
pub(crate) const HOURS: usize = 24;

/// State of a component, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum State {
    /// Nothing is known.
    Unknown,
    Operational,
    Maintenance,
    Degraded,
    /// Some of it fails.
    Partial,
    Major,
}

impl State {
    /// In names of classes and texts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Operational => "operational",
            Self::Maintenance => "maintenance",
            Self::Degraded => "degraded",
            Self::Partial => "partial",
            Self::Major => "major",
        }
    }

    /// The key of its text for a component.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Unknown => "state_unknown",
            Self::Operational => "state_operational",
            Self::Maintenance => "state_maintenance",
            Self::Degraded => "state_degraded",
            Self::Partial => "state_partial",
            Self::Major => "state_major",
        }
    }

    /// The key of its text for a whole page.
    pub(crate) const fn overall(self) -> &'static str {
        match self {
            Self::Unknown => "overall_unknown",
            Self::Operational => "overall_operational",
            Self::Maintenance => "overall_maintenance",
            Self::Degraded => "overall_degraded",
            Self::Partial => "overall_partial",
            Self::Major => "overall_major",
        }
    }

    /// The state of several; an outage of some of them is a partial one.
    fn of_all(states: impl Iterator<Item = Self> + Clone) -> Self {
        let worst = states.clone().max().unwrap_or(Self::Unknown);
        let mut known = states.filter(|state| *state != Self::Unknown);
        if worst == Self::Major && !known.all(|state| state == Self::Major) {
            return Self::Partial;
        }
        worst
    }
}

/// A day of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day {
    pub(crate) state: State,
    pub(crate) down: Duration,
    pub(crate) degraded: Duration,
}

/// A component.
#[derive(Debug, Clone)]
pub(crate) struct Component {
    pub(crate) id: MonitorId,
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) about: Option<String>,
    pub(crate) state: State,
    pub(crate) since: Timestamp,
    /// From when on its health is known, as far as the strip goes back.
    pub(crate) known: Option<Timestamp>,
    /// Over all days of the strip.
    pub(crate) uptime: Uptime,
    /// Over the last [`NEAR`] days.
    pub(crate) near: Uptime,
    pub(crate) days: Vec<Day>,
    /// The median of each of the last hours, in microseconds.
    pub(crate) hours: Vec<Option<u64>>,
    /// The median of all of them.
    pub(crate) median_us: Option<u64>,
}

/// Components below a heading.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) components: Vec<Component>,
}

/// The title of an incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Title {
    /// The monitor of that name is down.
    MonitorDown(String),
    /// A text of an operator.
    Text(String),
}

/// The body of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// The text of a phase of an incident that a monitor opened.
    Automatic,
    /// A text of an operator.
    Text(String),
}

/// An update of an incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Update {
    pub(crate) at: Timestamp,
    pub(crate) phase: PublicPhase,
    pub(crate) body: Body,
}

/// An incident as the public sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicIncident {
    /// In its URL: `m` with the number of a monitor's incident, `d` with that of a declared one.
    pub(crate) id: String,
    pub(crate) title: Title,
    pub(crate) impact: Impact,
    pub(crate) phase: PublicPhase,
    pub(crate) started: Timestamp,
    pub(crate) resolved: Option<Timestamp>,
    pub(crate) changed: Timestamp,
    /// Keys and names of the components that it affects.
    pub(crate) components: Vec<(String, String)>,
    /// The newest first.
    pub(crate) updates: Vec<Update>,
}

/// All that a page shows.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// When it was made.
    pub(crate) built: Timestamp,
    pub(crate) overall: State,
    pub(crate) groups: Vec<Group>,
    /// Those of the last ninety days, the newest first.
    pub(crate) incidents: Vec<PublicIncident>,
    /// Under way and soon, in order.
    pub(crate) maintenance: Vec<PublicMaintenance>,
    /// The days of strips.
    pub(crate) dates: Vec<Date>,
}

/// The rows of the store about the monitors of a page.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) histories: HashMap<MonitorId, Arc<MonitorHistory>>,
    pub(crate) incidents: Timelines,
    pub(crate) declared: Vec<Declared>,
}

/// Dates and borders of the days of a strip; the last border is `now`.
pub(crate) fn days_until(zone: &TimeZone, now: Timestamp) -> (Vec<Date>, Vec<Timestamp>) {
    let today = now.to_jiff().to_zoned(zone.clone()).date();
    let mut dates: Vec<_> = (0..DAYS)
        .map_while(|back| {
            let span = jiff::Span::new().days(i64::try_from(back).ok()?);
            today.checked_sub(span).ok()
        })
        .collect();
    dates.reverse();
    let midnight = |date: &Date| {
        let start = date.to_zoned(zone.clone()).ok()?;
        Some(Timestamp(start.timestamp().as_millisecond()))
    };
    let mut borders: Vec<_> = dates.iter().filter_map(midnight).collect();
    borders.push(now);
    (dates, borders)
}

/// From when on results of the last hours are shown.
pub(crate) fn hours_from(now: Timestamp) -> Timestamp {
    now.minus(Duration::from_hours(u64::try_from(HOURS).unwrap_or(24)))
}

impl Snapshot {
    /// - `views`: the board, by key.
    pub(crate) fn from_rows(
        plan: &PagePlan,
        views: &BTreeMap<String, View>,
        rows: &Rows,
        now: Timestamp,
    ) -> Self {
        let (dates, borders) = days_until(&plan.zone, now);
        let from = borders.first().copied().unwrap_or(now);
        let end = Timestamp(now.0 + 1);
        let none = MonitorHistory::default();
        let groups: Vec<_> = plan
            .groups
            .iter()
            .map(|group| {
                let components: Vec<_> = group
                    .components
                    .iter()
                    .filter_map(|one| {
                        let view = views.get(&one.key)?;
                        let history = rows.histories.get(&view.id);
                        let history = history.map_or(&none, |known| &**known);
                        let health = history.health_within((from, end));
                        let last_hours = history.hours_within((hours_from(now), end));
                        let measured = Measured::from_health(
                            view.id,
                            &view.plan,
                            health,
                            &rows.declared,
                            &borders,
                            Grades::DAY,
                        );
                        Some(Component {
                            id: view.id,
                            key: one.key.clone(),
                            name: one.name.clone(),
                            about: one.about.clone(),
                            state: state_of(view, &rows.declared),
                            since: view.since,
                            known: health.first().map(|first| first.at),
                            uptime: measured.uptime,
                            near: measured.near,
                            days: measured.days,
                            hours: medians(last_hours, now),
                            median_us: median(last_hours),
                        })
                    })
                    .collect();
                Group {
                    name: group.name.clone(),
                    state: State::of_all(components.iter().map(|one| one.state)),
                    components,
                }
            })
            .collect();
        let all = groups.iter().flat_map(|group| &group.components);
        let overall = State::of_all(all.map(|one| one.state));
        Self {
            built: now,
            overall,
            groups,
            incidents: incidents_of(plan, views, rows, now),
            maintenance: coming(plan, views, now),
            dates,
        }
    }

    /// One that shows nothing.
    pub(crate) fn without_rows(now: Timestamp) -> Self {
        Self {
            built: now,
            overall: State::Unknown,
            groups: Vec::new(),
            incidents: Vec::new(),
            maintenance: Vec::new(),
            dates: Vec::new(),
        }
    }

    pub(crate) fn components(&self) -> impl Iterator<Item = &Component> {
        self.groups.iter().flat_map(|group| &group.components)
    }

    /// From when on the health of each component's monitor is known.
    pub(crate) fn known(&self) -> HashMap<MonitorId, Timestamp> {
        let all = self.components();
        all.filter_map(|one| Some((one.id, one.known?))).collect()
    }

    /// Incidents that are not over.
    pub(crate) fn active(&self) -> impl Iterator<Item = &PublicIncident> {
        self.incidents.iter().filter(|incident| !incident.is_over())
    }

    /// Incidents that are over and ended at `since` or later.
    pub(crate) fn past(&self, since: Timestamp) -> impl Iterator<Item = &PublicIncident> {
        self.incidents
            .iter()
            .filter(move |incident| incident.resolved.is_some_and(|at| at >= since))
    }
}

/// The incidents of rows that a page shows, the newest first.
pub(crate) fn incidents_of(
    plan: &PagePlan,
    views: &BTreeMap<String, View>,
    rows: &Rows,
    now: Timestamp,
) -> Vec<PublicIncident> {
    let shown = plan.components().filter_map(|one| {
        let view = views.get(&one.key)?;
        Some((view.id, (one.key.clone(), one.name.clone())))
    });
    let shown: HashMap<MonitorId, (String, String)> = shown.collect();
    let automatic = rows
        .incidents
        .iter()
        .filter(|(incident, _)| !is_excused(incident, &shown, views, now))
        .filter_map(|(incident, events)| automatic(incident, events, &shown));
    let declared = rows
        .declared
        .iter()
        .filter_map(|declared| public(declared, &shown));
    let mut incidents: Vec<_> = automatic.chain(declared).collect();
    incidents.sort_by_key(|incident| std::cmp::Reverse((incident.started, incident.id.clone())));
    incidents
}

impl PublicIncident {
    pub(crate) fn is_over(&self) -> bool {
        self.resolved.is_some()
    }
}

fn state_of(view: &View, declared: &[Declared]) -> State {
    let open = declared
        .iter()
        .filter(|one| one.resolved.is_none() && one.monitors.contains(&view.id));
    let declared = open.map(|one| match one.impact {
        Impact::None => State::Unknown,
        Impact::Minor => State::Degraded,
        Impact::Major => State::Partial,
        Impact::Critical => State::Major,
    });
    let measured = match view.health {
        _ if view.in_maintenance => return State::Maintenance,
        Health::Up => State::Operational,
        Health::Degraded => State::Degraded,
        Health::Down => State::Major,
        // The last that was known is the outage.
        Health::NoData if view.has_incident => State::Major,
        Health::Pending | Health::NoData | Health::Paused => State::Unknown,
    };
    declared.fold(measured, State::max)
}

/// The median of each hour, the last one at the end.
///
/// - `hours`: ascending.
pub(crate) fn medians(hours: &[Rollup], now: Timestamp) -> Vec<Option<u64>> {
    const HOUR: i64 = 3_600_000;

    let last = now.floor(HOUR);
    let shown = (0..i64::try_from(HOURS).unwrap_or(0)).rev();
    shown
        .map(|back| {
            let start = Timestamp(last.0 - back * HOUR);
            let found = hours.binary_search_by_key(&start, |hour| hour.start);
            hours[found.ok()?].took.quantile(0.5)
        })
        .collect()
}

fn median(hours: &[Rollup]) -> Option<u64> {
    let mut all = Sketch::default();
    for hour in hours {
        all.merge(&hour.took);
    }
    all.quantile(0.5)
}

/// Whether a monitor's incident is in maintenance now, or lay in windows as a whole.
fn is_excused(
    incident: &Incident,
    shown: &HashMap<MonitorId, (String, String)>,
    views: &BTreeMap<String, View>,
    now: Timestamp,
) -> bool {
    let view = shown
        .get(&incident.monitor)
        .and_then(|(key, _)| views.get(key));
    let Some(view) = view else {
        return false;
    };
    let windows = &view.plan.windows;
    if !windows.iter().any(|it| it.is_active(incident.opened)) {
        return false;
    }
    // One window may begin where another ends.
    let outage = (incident.opened, incident.resolved.unwrap_or(now));
    outage.0 == outage.1 || excluded(&view.plan.windows, outage) == [outage]
}

/// A monitor's incident, if its monitor is on the page. Reasons are left out: they may name what is not public.
fn automatic(
    incident: &Incident,
    events: &[IncidentEvent],
    shown: &HashMap<MonitorId, (String, String)>,
) -> Option<PublicIncident> {
    let component = shown.get(&incident.monitor)?;
    let updates = events.iter().rev().filter_map(|event| {
        let phase = match event.kind {
            EventKind::Opened | EventKind::Reopened => PublicPhase::Investigating,
            EventKind::Acknowledged => PublicPhase::Identified,
            EventKind::Recovering => PublicPhase::Monitoring,
            EventKind::Resolved => PublicPhase::Resolved,
            EventKind::Announced | EventKind::Note => return None,
        };
        Some(Update {
            at: event.at,
            phase,
            body: Body::Automatic,
        })
    });
    let updates: Vec<_> = updates.collect();
    let newest = updates.first();
    Some(PublicIncident {
        id: format!("m{}", incident.id.0),
        title: Title::MonitorDown(component.1.clone()),
        impact: Impact::Major,
        phase: match incident.resolved {
            Some(_) => PublicPhase::Resolved,
            None => newest.map_or(PublicPhase::Investigating, |update| update.phase),
        },
        started: incident.opened,
        resolved: incident.resolved,
        changed: newest.map_or(incident.opened, |update| update.at),
        components: vec![component.clone()],
        updates,
    })
}

/// A declared incident, if it affects a component of the page, or none at all.
fn public(
    declared: &Declared,
    shown: &HashMap<MonitorId, (String, String)>,
) -> Option<PublicIncident> {
    let components: Vec<_> = declared
        .monitors
        .iter()
        .filter_map(|monitor| shown.get(monitor).cloned())
        .collect();
    if components.is_empty() && !declared.monitors.is_empty() {
        return None;
    }
    let updates = declared.updates.iter().map(|update| Update {
        at: update.at,
        phase: update.phase,
        body: Body::Text(update.body.clone()),
    });
    Some(PublicIncident {
        id: format!("d{}", declared.id.0),
        title: Title::Text(declared.title.clone()),
        impact: declared.impact,
        phase: declared.phase,
        started: declared.started,
        resolved: declared.resolved,
        changed: declared.changed,
        components,
        updates: updates.collect(),
    })
}

#[cfg(test)]
mod tests;
