//! Work that is done once a second: gauges, dropped iterations, thresholds, figures for the REST API.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_load::scenario::{ScenarioTick, Sinks};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::consumers::Consumers;
use super::iterations::{THRESHOLDS, started};
use super::standings::PartStandings;
use crate::metrics::thresholds::Thresholds;
use crate::run::control::RunControl;
use crate::run::progress::RunProgress;
use crate::user::RunState;

/// The interval at which thresholds are evaluated, as in k6.
pub(super) const JUDGING: Duration = Duration::from_secs(2);

/// Work that is done once a second.
pub(super) struct Ticks<'a, 'b> {
    pub(super) shared: &'a Arc<RunState>,
    pub(super) sinks: Rc<RefCell<Sinks>>,
    pub(super) thresholds: &'a mut Thresholds,
    /// Arrivals that were counted already, by scenario.
    pub(super) dropped: Vec<u64>,
    pub(super) judge_at: Duration,
    pub(super) consumers: &'a mut Consumers<'b>,
    pub(super) on_progress: Option<&'a dyn Fn(&RunProgress)>,
    pub(super) control: Option<&'a RunControl>,
    /// Whether this process makes a part of the run.
    pub(super) is_part: bool,
    /// Of a run that several processes make.
    pub(super) parts: PartStandings,
}

impl Ticks<'_, '_> {
    pub(super) fn tick(&mut self, tick: &ScenarioTick<'_>) {
        let (at, total) = (tick.at, tick.total);
        let metrics = &self.shared.built_in;
        let progress = &self.shared.progress;
        let mut sinks = self.sinks.borrow_mut();
        // At the end none takes part. Runs of less than a second have no other tick, and no such gauges, as by k6.
        // Of several processes one counts the virtual users of all.
        if !tick.is_last && !self.is_part {
            sinks.add(metrics.vus, progress.active() as f64, &[], at);
            sinks.add(metrics.vus_max, progress.initialised() as f64, &[], at);
        }
        for (index, claims) in self.shared.claims.iter().enumerate() {
            let dropped = claims.dropped();
            let new = dropped - self.dropped[index];
            if new > 0 {
                let name = self.shared.options.scenarios[index].name.as_str();
                let tags = [("scenario".into(), name.into())];
                sinks.add(metrics.dropped_iterations, new as f64, &tags, at);
                self.dropped[index] = dropped;
            }
        }
        if let (Some(show), false) = (self.on_progress, tick.is_last) {
            show(&RunProgress {
                agents: self.parts.standings().to_vec(),
                ..RunProgress::from_sinks(self.shared, total, tick.recent, at)
            });
        }
        if !self.consumers.is_empty() {
            let start = started(self.shared);
            let own = sinks.take_points();
            self.consumers.hand_over_points(tick.points, start);
            self.consumers.hand_over_points(&own, start);
            self.consumers.tick(at);
        }
        let took = self.shared.duration(SystemClock.now());
        let is_due = at >= self.judge_at && !self.thresholds.judged.is_empty();
        // A part has the series of thresholds, and not the samples of the others.
        let is_judging = is_due && !self.is_part;
        if !is_judging && self.control.is_none() {
            return;
        }
        let mut all = Sinks::new(self.shared.registry.clone());
        all.merge(total);
        all.merge(&sinks);
        if is_judging {
            self.judge_at = at + JUDGING;
            if self.thresholds.judge(&all, took) {
                self.shared.abort.abort(THRESHOLDS);
            }
        }
        if let Some(control) = self.control {
            control.observe(&all, self.thresholds, took);
        }
    }
}
