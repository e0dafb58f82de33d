//! Inputs to detectors, and what their effects lead to.

use std::sync::Arc;
use std::time::Duration;

use crate::config::What;
use crate::detect::status::{Health, Status};
use crate::detect::{Effect, Hold, Input, Notice, Resolution};
use crate::engine::supervisor::{LiveMonitor, OWN, Supervisor};
use crate::probe::reading::CheckResult;
use crate::store::{Change, EventKind, MonitorId, ResultRow};
use crate::time::{Moment, Timestamp};

/// Inputs that one input may lead to: monitors that depend on each other have no more.
const MOST_CONSEQUENCES: usize = 100_000;

impl Supervisor {
    /// Gives an input to a monitor, and what follows from it to those that depend on it. The store gets all of it or nothing.
    pub(super) fn feed(&mut self, id: MonitorId, input: Input) {
        let now = self.moment();
        let mut work = vec![(id, input)];
        let mut done = 0;
        while let Some((id, input)) = work.pop() {
            done += 1;
            if done > MOST_CONSEQUENCES {
                break;
            }
            let before = self.live.get(&id).map(|live| live.detector.health());
            self.step(id, input, now);
            let after = self.live.get(&id).map(|live| live.detector.health());
            if before != after {
                self.consequences(id, now, &mut work);
            }
        }
        self.flush_group();
    }

    /// Gives an input to a monitor alone, within a step that goes on.
    pub(super) fn step_only(&mut self, id: MonitorId, input: Input) {
        self.step(id, input, self.moment());
    }

    fn step(&mut self, id: MonitorId, input: Input, now: Moment) {
        let Some(live) = self.live.get_mut(&id) else {
            return;
        };
        let before = live.detector.incident().map(|(opened, _)| opened);
        let effects = live.detector.step(input, &live.plan.policy, now);
        let plan = Arc::clone(&live.plan);
        let mut changes = Vec::new();
        for effect in effects {
            changes.extend(self.effect(id, effect, before, now));
        }
        // The notice of an end is about the incident that is still open.
        changes.sort_by_key(|change| matches!(change, Change::Resolved { .. }));
        self.group.extend(changes);
        self.remember(id);
        let Some(live) = self.live.get(&id) else {
            return;
        };
        let detector = &live.detector;
        let mut is_shown = false;
        self.board.change(&plan.key, |view| {
            is_shown = view.health != detector.health()
                || view.in_maintenance != detector.is_in_maintenance();
            view.health = detector.health();
            view.since = detector.since();
            view.in_maintenance = detector.is_in_maintenance();
            view.has_incident = detector.has_incident();
            view.incident = detector.incident();
            view.regions = if plan.from.is_empty() {
                Vec::new()
            } else {
                detector.regions()
            };
        });
        if is_shown {
            self.board.touch();
        }
        self.set_timer(id);
    }

    /// The changes of an effect; what is worth it goes to the operator.
    ///
    /// - `before`: when the incident opened that the step may have ended.
    fn effect(
        &mut self,
        id: MonitorId,
        effect: Effect,
        before: Option<Timestamp>,
        now: Moment,
    ) -> Vec<Change> {
        let event = |at, kind, text| Change::Event {
            monitor: id,
            at,
            kind,
            actor: None,
            text,
        };
        match effect {
            Effect::HealthChanged { to, at, reason, .. } => vec![Change::Health {
                monitor: id,
                at,
                health: to,
                reason,
            }],
            Effect::Opened { at, reason, held } => {
                let opened = Change::Opened {
                    monitor: id,
                    at,
                    reason,
                };
                let held = held.map(|held| {
                    let why = match held {
                        Hold::Maintenance => "notices are held back: maintenance",
                        Hold::Parent => {
                            "notices are held back: a monitor that this one depends on is down"
                        }
                        Hold::Flapping => "notices are held back: incidents open too often",
                    };
                    event(now.wall, EventKind::Note, Some(why.to_owned()))
                });
                [Some(opened), held].into_iter().flatten().collect()
            }
            Effect::Recovering { at } => vec![event(at, EventKind::Recovering, None)],
            Effect::Reopened { at, reason } => vec![event(at, EventKind::Reopened, reason)],
            Effect::Acknowledged => vec![Change::Event {
                monitor: id,
                at: now.wall,
                kind: EventKind::Acknowledged,
                actor: self.actor.clone(),
                text: None,
            }],
            Effect::SetBack { from, to } => vec![Change::SetBack {
                monitor: id,
                from,
                to,
            }],
            Effect::Resolved { at, by, lasted } => vec![Change::Resolved {
                monitor: id,
                at,
                by,
                lasted,
                actor: self.actor.clone(),
            }],
            Effect::Notify(notice) => {
                self.announce(id, notice);
                let notices = self.notices(id, notice, before, now);
                let announced = matches!(notice, Notice::Opened)
                    .then(|| event(now.wall, EventKind::Announced, None));
                notices.into_iter().chain(announced).collect()
            }
        }
    }

    fn announce(&self, id: MonitorId, notice: Notice) {
        let Some(live) = self.live.get(&id) else {
            return;
        };
        let plan = &live.plan;
        let name = if plan.group.is_empty() {
            plan.name.clone()
        } else {
            format!("{}/{}", plan.group, plan.name)
        };
        let view = self.board.view(&plan.key);
        let reason = view.and_then(|view| view.last?.reason).unwrap_or_default();
        let message = match notice {
            Notice::Opened if reason.is_empty() => format!("{name} is down"),
            Notice::Opened => format!("{name} is down: {reason}"),
            Notice::Resolved(Resolution::Recovery) => format!("{name} is up again"),
            Notice::NoData => format!("{name} has no results any more"),
            Notice::DataAgain(Resolution::Recovery) => format!("{name} has results again"),
            Notice::Resolved(by) | Notice::DataAgain(by) => {
                format!("{name}: {}", by.text())
            }
        };
        (self.notice)(&message);
    }

    /// The consequences of a monitor's new health for others.
    fn consequences(&mut self, id: MonitorId, now: Moment, work: &mut Vec<(MonitorId, Input)>) {
        for child in self.children.get(&id).cloned().unwrap_or_default() {
            work.push((child, Input::ParentDown(self.has_parent_down(child))));
        }
        for composite in self.composites.get(&id).cloned().unwrap_or_default() {
            if let Some(result) = self.composed(composite, now) {
                work.push((composite, self.count_composed(composite, result, now)));
            }
        }
    }

    /// Has a composite be what its members say, where no change of theirs will: it is new, or was resumed, or
    /// a member changed before it was linked to it.
    pub(super) fn judge_composite(&mut self, id: MonitorId) {
        let now = self.moment();
        let Some(result) = self.composed(id, now) else {
            return;
        };
        let health = match result.status {
            Status::Up => Health::Up,
            Status::Degraded => Health::Degraded,
            Status::Down => Health::Down,
            Status::Error => return,
        };
        let is_new = |live: &LiveMonitor| live.detector.health() != health;
        if self.live.get(&id).is_some_and(is_new) {
            let input = self.count_composed(id, result, now);
            self.feed(id, input);
        }
    }

    /// Stores the result of a composite, which becomes its input.
    fn count_composed(&mut self, id: MonitorId, result: CheckResult, now: Moment) -> Input {
        let row = ResultRow::from_result(id, OWN, &result);
        self.batch.add(row, self.origin + now.elapsed);
        let input = Input::Observed {
            region: self.own_region(),
            status: result.status,
            reason: result.reason.clone(),
            at: result.at,
        };
        if let Some(live) = self.live.get(&id) {
            self.board.change(&live.plan.key, |view| view.count(result));
        }
        input
    }

    pub(super) fn has_parent_down(&self, child: MonitorId) -> bool {
        let parents = self
            .live
            .get(&child)
            .map(|live| live.plan.parents.as_slice());
        parents.unwrap_or_default().iter().any(|parent| {
            let parent = self.keys.get(parent).and_then(|id| self.live.get(id));
            parent.is_some_and(|parent| parent.detector.health() == Health::Down)
        })
    }

    /// The result of a composite by its members; `None` while too little is known.
    fn composed(&self, id: MonitorId, now: Moment) -> Option<CheckResult> {
        let live = self.live.get(&id).filter(|live| !live.is_paused)?;
        let What::Composite(composite) = &live.plan.what else {
            return None;
        };
        let members: Vec<_> = composite
            .members
            .iter()
            .filter_map(|key| self.live.get(self.keys.get(key)?))
            .map(|live| (live.detector.health(), live.plan.name.clone()))
            .collect();
        let count =
            |wanted: &[Health]| members.iter().filter(|(it, _)| wanted.contains(it)).count();
        let up = count(&[Health::Up, Health::Degraded]);
        let down: Vec<_> = members
            .iter()
            .filter(|(health, _)| *health == Health::Down)
            .map(|(_, name)| name.as_str())
            .collect();
        let is_decided =
            up >= composite.least_up || members.len() - down.len() < composite.least_up;
        if !is_decided {
            return None;
        }
        let reason = (!down.is_empty()).then(|| format!("down: {}", down.join(", ")));
        let status = if up < composite.least_up {
            Status::Down
        } else if down.is_empty() && count(&[Health::Degraded]) == 0 {
            Status::Up
        } else {
            Status::Degraded
        };
        let result = CheckResult::plain(now.wall, status, Duration::ZERO, reason);
        Some(result.without(&live.plan.secrets))
    }

    /// Timers of detectors and heartbeats that are due.
    pub(super) fn fire(&mut self, now: Moment) {
        while let Some((at, id)) = self
            .timers
            .first()
            .copied()
            .filter(|(at, _)| *at <= now.elapsed)
        {
            self.timers.remove(&(at, id));
            if let Some(live) = self.live.get_mut(&id) {
                live.wake = None;
                let plan = live.heartbeat_plan().filter(|_| !live.is_paused);
                let state = plan.zip(live.heartbeat.as_mut());
                let late = state.and_then(|(plan, state)| state.late(&plan, now));
                match late {
                    Some(reason) => {
                        let result = CheckResult::plain(
                            now.wall,
                            Status::Down,
                            Duration::ZERO,
                            Some(reason),
                        );
                        self.accept_result(id, result);
                    }
                    None => self.feed(id, Input::Tick),
                }
            }
        }
        if now.elapsed >= self.windows.due() {
            self.look_at_windows(now);
        }
    }

    /// Begins and ends maintenance.
    pub(super) fn look_at_windows(&mut self, now: Moment) {
        let changed = self.windows.look(now);
        if changed.is_empty() {
            return;
        }
        let active = self.windows.active();
        let touches = |windows: &[Arc<_>], some: &[Arc<_>]| {
            windows
                .iter()
                .any(|window| some.iter().any(|other| Arc::ptr_eq(window, other)))
        };
        let affected: Vec<_> = self
            .live
            .iter()
            .filter(|(_, live)| touches(&live.plan.windows, &changed))
            .map(|(id, live)| (*id, touches(&live.plan.windows, &active)))
            .collect();
        for (id, is_active) in affected {
            self.feed(id, Input::Maintenance(is_active));
        }
    }

    /// Puts the next timer of a monitor in the place of its last one.
    pub(super) fn set_timer(&mut self, id: MonitorId) {
        /// A timer that is due again at once would keep the loop busy.
        const LEAST: Duration = Duration::from_millis(10);

        let now = self.moment();
        let Some(live) = self.live.get_mut(&id) else {
            return;
        };
        if let Some(old) = live.wake.take() {
            self.timers.remove(&(old, id));
        }
        let detector = live.detector.next_wake(&live.plan.policy);
        let heartbeat = live.heartbeat.as_ref().filter(|_| !live.is_paused);
        let heartbeat = heartbeat.zip(live.heartbeat_plan());
        let heartbeat = heartbeat.map(|(state, plan)| state.next_wake(&plan));
        if let Some(wake) = [detector, heartbeat].into_iter().flatten().min() {
            let wake = wake.max(now.elapsed + LEAST);
            live.wake = Some(wake);
            self.timers.insert((wake, id));
        }
    }
}

/// The heartbeat that a pushed monitor has, if one is demanded.
pub(super) fn pushed_heartbeat(what: &What) -> Option<crate::config::HeartbeatPlan> {
    let What::Pushed {
        token,
        every: Some(every),
    } = what
    else {
        return None;
    };
    Some(crate::config::HeartbeatPlan {
        token: token.clone(),
        slug: None,
        due: crate::config::EveryOrCron::Every(*every),
        grace: Duration::ZERO,
        most_runtime: None,
        resumes: false,
        about: None,
    })
}
