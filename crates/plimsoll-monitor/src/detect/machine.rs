//! The incident machine of one monitor.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::detect::policy::DetectPolicy;
use crate::detect::region::{RegionState, Seen};
use crate::detect::status::{Health, Status};
use crate::store::timestamp::{Moment, Timestamp};

/// The state of one monitor: regions, health, the open incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detector {
    regions: BTreeMap<Arc<str>, RegionState>,
    health: Health,
    since: Timestamp,
    incident: Option<Incident>,
    /// When incidents opened, for flap control.
    opens: VecDeque<Duration>,
    in_maintenance: bool,
    parent_down: bool,
    is_paused: bool,
    /// Since when no region reports; timers need it after a start without results.
    started: Moment,
}

/// The view of one region on a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionView {
    /// Its name.
    pub name: Arc<str>,
    /// The confirmed health.
    pub health: Health,
    /// Since when.
    pub since: Timestamp,
    /// Why it is not up.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Incident {
    opened: Moment,
    acknowledged: bool,
    /// Up again, inside the hold.
    recovering: Option<Moment>,
    /// Whether its opening was sent.
    is_announced: bool,
    is_flapping: bool,
}

/// Inputs about a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A result came.
    Observed {
        /// Region of the check.
        region: Arc<str>,
        /// Its verdict.
        status: Status,
        /// Why it is not up.
        reason: Option<String>,
        /// When the check started.
        at: Timestamp,
    },
    /// No check was started, since the breaker of the monitor's host is open.
    HeldBack {
        /// Region of the missed check.
        region: Arc<str>,
    },
    /// [`Detector::next_wake`] has come.
    Tick,
    /// A maintenance window begins or ends.
    Maintenance(bool),
    /// A monitor that this one depends on goes down or comes back.
    ParentDown(bool),
    /// An operator has seen the incident.
    Acknowledge,
    /// An operator closes the incident, though the monitor may be down.
    Resolve,
    /// An operator pauses or resumes the monitor.
    Pause(bool),
}

/// Effects to record or to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The health changed, as of `at`: the first result of the row that confirmed it.
    HealthChanged {
        /// Before.
        from: Health,
        /// From now on.
        to: Health,
        /// Since when.
        at: Timestamp,
        /// Why it is not up.
        reason: Option<String>,
    },
    /// An incident opens.
    Opened {
        /// When the outage began.
        at: Timestamp,
        /// The reason that the check reported.
        reason: Option<String>,
        /// Why its notice is held back, if it is.
        held: Option<Hold>,
    },
    /// The monitor is up again; the incident stays open for the hold.
    Recovering {
        /// Since when it is up.
        at: Timestamp,
    },
    /// The monitor went down again inside the hold.
    Reopened {
        /// Since when.
        at: Timestamp,
        /// The reason that the check reported.
        reason: Option<String>,
    },
    /// An operator has seen the incident.
    Acknowledged,
    /// The incident is over.
    Resolved {
        /// Since when.
        at: Timestamp,
        /// Outcome.
        by: Resolution,
    },
    /// Something is to be sent.
    Notify(Notice),
}

/// Outcome of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// The monitor was up for the whole hold.
    Recovery,
    /// An operator closed it.
    Operator,
    /// The monitor was paused.
    Paused,
}

/// Why a notice is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A maintenance window is under way.
    Maintenance,
    /// A monitor that this one depends on is down.
    Parent,
    /// Incidents open too often.
    Flapping,
}

/// Notices to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// An incident opened, or its hold ended while it was open.
    Opened,
    /// An incident that was sent is over.
    Resolved,
    /// Results stopped coming.
    NoData,
    /// Results come again.
    DataAgain,
}

impl Detector {
    /// Nothing is known yet.
    pub fn new(now: Moment) -> Self {
        Self {
            regions: BTreeMap::new(),
            health: Health::Pending,
            since: now.wall,
            incident: None,
            opens: VecDeque::new(),
            in_maintenance: false,
            parent_down: false,
            is_paused: false,
            started: now,
        }
    }

    /// The state that a store had when the program ended.
    ///
    /// - `incident`: when the open incident opened, whether it was acknowledged, and whether it was sent.
    pub fn restored(
        region: &Arc<str>,
        health: Health,
        since: Timestamp,
        incident: Option<(Timestamp, bool, bool)>,
        now: Moment,
    ) -> Self {
        let seen = match health {
            Health::Up => Some(Seen::Up),
            Health::Degraded => Some(Seen::Degraded),
            Health::Down => Some(Seen::Down),
            Health::Pending | Health::NoData | Health::Paused => None,
        };
        let region = seen.map(|seen| (Arc::clone(region), RegionState::restored(seen, since, now)));
        let incident = incident.map(|(at, acknowledged, is_announced)| Incident {
            opened: Moment {
                elapsed: now.elapsed,
                wall: at,
            },
            acknowledged,
            recovering: (health != Health::Down).then_some(now),
            is_announced,
            is_flapping: false,
        });
        Self {
            regions: region.into_iter().collect(),
            health,
            since,
            incident,
            is_paused: health == Health::Paused,
            ..Self::new(now)
        }
    }

    /// The view of each region that reports, by name.
    pub fn regions(&self) -> Vec<RegionView> {
        let regions = self.regions.iter();
        let view = |(name, state): (&Arc<str>, &RegionState)| RegionView {
            name: Arc::clone(name),
            health: match state.confirmed {
                None => Health::Pending,
                Some(Seen::Up) => Health::Up,
                Some(Seen::Degraded) => Health::Degraded,
                Some(Seen::Down) => Health::Down,
            },
            since: state.since,
            reason: state.reason.clone(),
        };
        regions.map(view).collect()
    }

    /// The confirmed health.
    pub fn health(&self) -> Health {
        self.health
    }

    /// Since when.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Whether an incident is open.
    pub fn has_incident(&self) -> bool {
        self.incident.is_some()
    }

    /// When the open incident opened, and whether an operator has seen it.
    pub fn incident(&self) -> Option<(Timestamp, bool)> {
        let incident = self.incident.as_ref()?;
        Some((incident.opened.wall, incident.acknowledged))
    }

    /// Whether a maintenance window is under way.
    pub fn is_in_maintenance(&self) -> bool {
        self.in_maintenance
    }

    /// When [`Input::Tick`] is due, on the monotonic clock; `None` if nothing is waited for.
    pub fn next_wake(&self, policy: &DetectPolicy) -> Option<Duration> {
        if self.is_paused {
            return None;
        }
        let silence = self
            .regions
            .values()
            .map(|region| region.last.elapsed + policy.silent_after)
            .min();
        let waits_for_data =
            self.regions.is_empty() && policy.reports_no_data && self.health != Health::NoData;
        let unseen = waits_for_data.then(|| self.started.elapsed + policy.silent_after);
        let is_up = matches!(self.health, Health::Up | Health::Degraded);
        let incident = self.incident.as_ref();
        let hold = incident
            .filter(|_| is_up)
            .and_then(|incident| Some(incident.recovering?.elapsed + policy.hold));
        let quiet = incident
            .filter(|it| it.is_flapping && !it.is_announced && it.recovering.is_none())
            .filter(|_| !self.in_maintenance && !self.parent_down)
            .and_then(|incident| Some(incident.opened.elapsed + policy.flap?.quiet));
        [silence, unseen, hold, quiet].into_iter().flatten().min()
    }

    /// Takes one input; the new state and what is to be done.
    #[must_use]
    pub fn step(mut self, input: Input, policy: &DetectPolicy, now: Moment) -> (Self, Vec<Effect>) {
        let mut effects = Vec::new();
        match input {
            Input::Observed {
                region,
                status,
                reason,
                at,
            } => {
                if self.is_paused {
                    return (self, effects);
                }
                let rows = (policy.confirm.max(1), policy.recover.max(1));
                let region = self
                    .regions
                    .entry(region)
                    .or_insert_with(|| RegionState::new(now));
                region.observe(status, reason, at, now, rows);
            }
            Input::HeldBack { region } => {
                // Its host is known to be unreachable: a monitor that is down stays down. One that is up may fall silent.
                let region = self.regions.get_mut(&region);
                if let Some(region) = region.filter(|it| it.confirmed == Some(Seen::Down)) {
                    region.last = now;
                }
            }
            Input::Tick => {}
            Input::Maintenance(is_active) => self.in_maintenance = is_active,
            Input::ParentDown(is_down) => self.parent_down = is_down,
            Input::Acknowledge => {
                if let Some(incident) = self.incident.as_mut().filter(|it| !it.acknowledged) {
                    incident.acknowledged = true;
                    effects.push(Effect::Acknowledged);
                }
            }
            Input::Resolve => self.resolve_by_operator(now, &mut effects),
            Input::Pause(is_paused) => {
                if is_paused != self.is_paused {
                    self.pause(is_paused, now, &mut effects);
                }
            }
        }
        if !self.is_paused {
            self.settle(policy, now, &mut effects);
        }
        (self, effects)
    }

    fn pause(&mut self, is_paused: bool, now: Moment, effects: &mut Vec<Effect>) {
        self.is_paused = is_paused;
        self.regions.clear();
        self.started = now;
        if is_paused {
            self.resolve(now.wall, Resolution::Paused, effects);
            self.change(Health::Paused, now.wall, None, effects);
        } else {
            self.change(Health::Pending, now.wall, None, effects);
        }
    }

    /// Draws the consequences of regions and timers.
    fn settle(&mut self, policy: &DetectPolicy, now: Moment, effects: &mut Vec<Effect>) {
        let silent = |since: Moment| now.elapsed >= since.elapsed + policy.silent_after;
        self.regions.retain(|_, region| !silent(region.last));
        let before = self.health;
        if let Some((health, at, reason)) = self.judged(policy) {
            self.change(health, at, reason, effects);
        } else if self.regions.is_empty()
            && policy.reports_no_data
            && !matches!(self.health, Health::NoData)
            && (self.health != Health::Pending || silent(self.started))
        {
            self.change(Health::NoData, now.wall, None, effects);
        }
        if before != Health::NoData && self.health == Health::NoData && !self.in_maintenance {
            effects.push(Effect::Notify(Notice::NoData));
        }
        if before == Health::NoData && self.health.is_probed() && !self.in_maintenance {
            effects.push(Effect::Notify(Notice::DataAgain));
        }
        self.drive_incident(policy, now, effects);
    }

    /// The verdict of the regions that report; `None` while none has confirmed anything.
    fn judged(&self, policy: &DetectPolicy) -> Option<(Health, Timestamp, Option<String>)> {
        let confirmed: Vec<_> = self
            .regions
            .values()
            .filter_map(|region| Some((region.confirmed?, region)))
            .collect();
        if confirmed.is_empty() {
            return None;
        }
        let mut down: Vec<_> = confirmed
            .iter()
            .filter(|(seen, _)| *seen == Seen::Down)
            .map(|(_, region)| *region)
            .collect();
        down.sort_by_key(|region| region.since);
        let needed = policy.regions.needed(confirmed.len());
        if let Some(deciding) = down.get(needed - 1) {
            return Some((Health::Down, deciding.since, deciding.reason.clone()));
        }
        let worse = confirmed.iter().find(|(seen, _)| *seen != Seen::Up);
        if let Some((_, region)) = worse {
            return Some((Health::Degraded, region.since, region.reason.clone()));
        }
        let since = confirmed.iter().map(|(_, region)| region.since).max()?;
        Some((Health::Up, since, None))
    }

    fn change(
        &mut self,
        to: Health,
        at: Timestamp,
        reason: Option<String>,
        effects: &mut Vec<Effect>,
    ) {
        if to == self.health {
            return;
        }
        // A step of the clock must not put a change before the one before it.
        let at = at.max(self.since);
        effects.push(Effect::HealthChanged {
            from: self.health,
            to,
            at,
            reason,
        });
        self.health = to;
        self.since = at;
    }

    fn drive_incident(&mut self, policy: &DetectPolicy, now: Moment, effects: &mut Vec<Effect>) {
        let reason = self
            .regions
            .values()
            .find(|region| region.confirmed == Some(Seen::Down))
            .and_then(|region| region.reason.clone());
        let (health, since) = (self.health, self.since);
        match (&mut self.incident, health) {
            (None, Health::Down) => {
                let is_flapping = self.note_open(policy, now);
                self.incident = Some(Incident {
                    opened: now,
                    acknowledged: false,
                    recovering: None,
                    is_announced: false,
                    is_flapping,
                });
                effects.push(Effect::Opened {
                    at: since,
                    reason,
                    held: self.held(policy, now),
                });
            }
            (Some(incident), Health::Down) if incident.recovering.is_some() => {
                incident.recovering = None;
                effects.push(Effect::Reopened { at: since, reason });
            }
            (Some(incident), Health::Up | Health::Degraded) => match incident.recovering {
                None if policy.hold.is_zero() => {
                    self.resolve(since, Resolution::Recovery, effects);
                }
                None => {
                    incident.recovering = Some(Moment {
                        elapsed: now.elapsed,
                        wall: since,
                    });
                    effects.push(Effect::Recovering { at: since });
                }
                Some(recovering) if now.elapsed >= recovering.elapsed + policy.hold => {
                    self.resolve(recovering.wall, Resolution::Recovery, effects);
                }
                Some(_) => {}
            },
            _ => {}
        }
        self.announce(policy, now, effects);
    }

    /// Counts an incident that opens; whether there were too many.
    fn note_open(&mut self, policy: &DetectPolicy, now: Moment) -> bool {
        let Some(flap) = policy.flap else {
            return false;
        };
        self.opens.push_back(now.elapsed);
        while self
            .opens
            .front()
            .is_some_and(|opened| now.elapsed.saturating_sub(*opened) > flap.within)
        {
            self.opens.pop_front();
        }
        self.opens.len() > usize::try_from(flap.opens).unwrap_or(usize::MAX)
    }

    fn held(&self, policy: &DetectPolicy, now: Moment) -> Option<Hold> {
        if self.in_maintenance {
            return Some(Hold::Maintenance);
        }
        if self.parent_down {
            return Some(Hold::Parent);
        }
        let incident = self.incident.as_ref()?;
        let flap = policy.flap.filter(|_| incident.is_flapping)?;
        let is_quiet = now.elapsed < incident.opened.elapsed + flap.quiet;
        is_quiet.then_some(Hold::Flapping)
    }

    /// Sends the opening of an incident, at once or when what held it back is over.
    fn announce(&mut self, policy: &DetectPolicy, now: Moment, effects: &mut Vec<Effect>) {
        let is_held = self.held(policy, now).is_some();
        if let Some(incident) = &mut self.incident
            && !is_held
            && !incident.is_announced
            && incident.recovering.is_none()
        {
            incident.is_announced = true;
            effects.push(Effect::Notify(Notice::Opened));
        }
    }

    fn resolve(&mut self, at: Timestamp, by: Resolution, effects: &mut Vec<Effect>) {
        let Some(incident) = self.incident.take() else {
            return;
        };
        effects.push(Effect::Resolved { at, by });
        if incident.is_announced {
            effects.push(Effect::Notify(Notice::Resolved));
        }
    }

    /// The outage is dealt with: a new incident needs new failures.
    fn resolve_by_operator(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        if self.incident.is_none() {
            return;
        }
        self.resolve(now.wall.max(self.since), Resolution::Operator, effects);
        if self.health == Health::Down {
            self.regions.clear();
            self.started = now;
            self.change(Health::Pending, now.wall, None, effects);
        }
    }
}
