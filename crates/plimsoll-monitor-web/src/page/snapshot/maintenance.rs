//! Maintenance windows as the public sees them: to come, under way and over.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_monitor::config::page::PagePlan;
use plimsoll_monitor::detect::uptime::Span;
use plimsoll_monitor::detect::window::{Starts, Window};
use plimsoll_monitor::engine::View;
use plimsoll_monitor::store::MonitorId;
use plimsoll_monitor::time::Timestamp;

/// How far ahead maintenance is announced.
const AHEAD: Duration = Duration::from_hours(14 * 24);

/// Where maintenance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaintenancePhase {
    Scheduled,
    InProgress,
    Completed,
}

/// An occurrence of a maintenance window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicMaintenance {
    /// In paths, feeds and JSON; the same for the same window at the same time.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) phase: MaintenancePhase,
    /// At least one; windows of the same name that begin at the same time are one to readers.
    pub(crate) windows: Vec<Arc<Window>>,
    pub(crate) components: Vec<(String, String)>,
}

impl PublicMaintenance {
    /// The path of its own page, below that of the status page.
    pub(crate) fn path(&self) -> String {
        /// Ids are readable in paths.
        const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-');

        format!("/maintenance/{}", utf8_percent_encode(&self.id, ESCAPED))
    }

    /// What is done.
    pub(crate) fn about(&self) -> Option<&str> {
        self.windows
            .iter()
            .find_map(|window| window.about.as_deref())
    }

    /// Whether both are occurrences of one window, which is more than its name.
    pub(crate) fn recurs_as(&self, other: &Self) -> bool {
        // Compared by content: windows may have been loaded again in between.
        self.windows
            .iter()
            .any(|window| other.windows.contains(window))
    }

    /// The start of the occurrence that has an id; `None` if no occurrence has it.
    pub(crate) fn start_of(id: &str) -> Option<Timestamp> {
        let (millis, _) = id.strip_prefix('w')?.split_once('-')?;
        let millis = millis.parse().ok().filter(|millis| *millis >= 0)?;
        Some(Timestamp(millis))
    }
}

/// Maintenance that is over.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Completed {
    /// The newest first.
    pub(crate) all: Vec<PublicMaintenance>,
    /// Names of windows with more occurrences, and how many more.
    pub(crate) omitted: BTreeMap<String, usize>,
}

/// Occurrences of several windows by start, each with the components that it is for.
#[derive(Default)]
struct Occurrences(BTreeMap<(Timestamp, String), PublicMaintenance>);

impl Occurrences {
    fn add(
        &mut self,
        window: &Arc<Window>,
        (from, to): Span,
        phase: MaintenancePhase,
        component: (String, String),
    ) {
        let slug = window.name.to_lowercase().replace(' ', "-");
        let id = format!("w{from}-{slug}", from = from.0);
        let one = self
            .0
            .entry((from, id.clone()))
            .or_insert_with(|| PublicMaintenance {
                id,
                name: window.name.clone(),
                from,
                to,
                phase,
                windows: Vec::new(),
                components: Vec::new(),
            });
        one.to = one.to.max(to);
        if !one.windows.iter().any(|known| Arc::ptr_eq(known, window)) {
            one.windows.push(Arc::clone(window));
        }
        if one.components.last() != Some(&component) {
            one.components.push(component);
        }
    }
}

/// Windows of the page's monitors that are under way or begin soon, in order.
pub(super) fn coming(
    plan: &PagePlan,
    views: &BTreeMap<String, View>,
    now: Timestamp,
) -> Vec<PublicMaintenance> {
    /// Occurrences of one window.
    const MOST: usize = 50;

    let mut all = Occurrences::default();
    let mut known: HashMap<*const Window, Vec<Span>> = HashMap::new();
    for component in plan.components() {
        let Some(view) = views.get(&component.key) else {
            continue;
        };
        for window in &view.plan.windows {
            let spans = known
                .entry(Arc::as_ptr(window))
                .or_insert_with(|| occurrences(window, now, MOST));
            for span in spans.iter().copied() {
                let phase = if span.0 <= now {
                    MaintenancePhase::InProgress
                } else {
                    MaintenancePhase::Scheduled
                };
                let component = (component.key.clone(), component.name.clone());
                all.add(window, span, phase, component);
            }
        }
    }
    all.0.into_values().collect()
}

/// The occurrence that is under way, as a whole, and those that begin soon.
fn occurrences(window: &Window, now: Timestamp, most: usize) -> Vec<Span> {
    let active = window.occurrence(now);
    let from = active.map_or(now, |(_, end)| end);
    let coming = window.spans(from, now.plus(AHEAD));
    // The last one may go on behind what was looked at.
    let whole = |span: Span| window.occurrence(span.0).unwrap_or(span);
    let coming = coming.into_iter().take(most).map(whole);
    active.into_iter().chain(coming).take(most).collect()
}

/// Maintenance of the page's monitors that began within `period` and is over at `now`.
///
/// A window that recurs has no beginning of its own, so its occurrences before the first result of a monitor are left
/// out.
///
/// - `known`: from when on the health of a monitor is known.
/// - `most`: occurrences of one window; the newest are kept.
pub(crate) fn completed(
    plan: &PagePlan,
    views: &BTreeMap<String, View>,
    known: &HashMap<MonitorId, Timestamp>,
    period: Span,
    now: Timestamp,
    most: usize,
) -> Completed {
    let mut all = Occurrences::default();
    let mut older: HashMap<*const Window, (&str, usize)> = HashMap::new();
    let mut ended: HashMap<*const Window, Vec<Span>> = HashMap::new();
    for component in plan.components() {
        let Some(view) = views.get(&component.key) else {
            continue;
        };
        for window in &view.plan.windows {
            let spans = ended
                .entry(Arc::as_ptr(window))
                .or_insert_with(|| past(window, period, now));
            let spans = match (&window.starts, known.get(&view.id)) {
                (Starts::Once(_), _) => spans.as_slice(),
                (_, Some(first)) => &spans[spans.partition_point(|span| span.1 <= *first)..],
                (_, None) => &[],
            };
            let omitted = spans.len().saturating_sub(most);
            if omitted > 0 {
                let entry = older.entry(Arc::as_ptr(window));
                let (_, count) = entry.or_insert((&window.name, 0));
                *count = omitted.max(*count);
            }
            for span in spans[omitted..].iter().copied() {
                let component = (component.key.clone(), component.name.clone());
                all.add(window, span, MaintenancePhase::Completed, component);
            }
        }
    }
    let mut omitted: BTreeMap<String, usize> = BTreeMap::new();
    for (name, count) in older.into_values() {
        *omitted.entry(name.to_owned()).or_default() += count;
    }
    Completed {
        all: all.0.into_values().rev().collect(),
        omitted,
    }
}

/// Occurrences that began within a period and are over, in order.
fn past(window: &Window, (from, to): Span, now: Timestamp) -> Vec<Span> {
    // What is under way is not over, however long it has been.
    let until = window.occurrence(now).map_or(now, |(start, _)| start);
    let mut spans = window.spans(from, until.min(to));
    // The first one may have begun before, and the last one may go on behind what was looked at.
    for span in [0, spans.len().saturating_sub(1)] {
        if let Some(span) = spans.get_mut(span) {
            *span = window.occurrence(span.0).unwrap_or(*span);
        }
    }
    spans.retain(|span| span.0 >= from && span.0 < to);
    spans
}
