//! The incident machine of one monitor.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::detect::policy::DetectPolicy;
use crate::detect::region::{RegionState, Seen, moment_of};
use crate::detect::status::{Health, Status};
use crate::time::{Moment, Timestamp};

/// The state of one monitor: regions, health, the open incident, announced silence.
///
/// All of it but the time of the last results is written to the store as text, and read again by the next process, so
/// that a restart changes nothing but that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about a monitor"
)]
pub struct Detector {
    #[serde(with = "by_name")]
    regions: BTreeMap<Arc<str>, RegionState>,
    health: Health,
    since: Moment,
    incident: Option<Incident>,
    /// Whether it was announced that results stopped coming.
    silence_announced: bool,
    /// When incidents opened, for flap control.
    opens: VecDeque<Moment>,
    in_maintenance: bool,
    parent_down: bool,
    is_paused: bool,
    /// Since when no region reports; timers need it after a start without results.
    #[serde(skip)]
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Incident {
    /// When it was confirmed.
    confirmed: Moment,
    /// When the outage began, for its duration.
    began: Moment,
    /// The same as the store has it; a step of the clock does not move it.
    opened: Timestamp,
    acknowledged: bool,
    /// Up again since then, inside the hold.
    recovering: Option<Moment>,
    /// The hold runs from here.
    #[serde(skip)]
    held_from: Duration,
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
    /// The rules by which it is judged have changed: what follows from them begins now.
    Rejudge,
    /// The date was set back. What is remembered keeps its distance from the present.
    SetBack {
        /// The date before.
        from: Timestamp,
        /// The date after.
        to: Timestamp,
    },
    /// The monitor is removed.
    Removed,
}

/// What a step leads to, in order.
pub type StepEffects = Vec<Effect>;

/// Something to record or to send.
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
        /// How long the outage lasted, by a clock that never steps.
        lasted: Duration,
    },
    /// The present health ends at one date and goes on at another, earlier one.
    SetBack {
        /// The date before.
        from: Timestamp,
        /// The date after.
        to: Timestamp,
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
    /// The monitor was removed.
    Removed,
}

impl Resolution {
    /// What the timeline of the incident says.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Recovery => "the monitor is up",
            Self::Operator => "an operator closed it",
            Self::Paused => "the monitor was paused",
            Self::Removed => "the monitor was removed",
        }
    }
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
    Resolved(Resolution),
    /// Results stopped coming, or what held that back ended while they had not come again.
    NoData,
    /// Silence that was sent is over.
    DataAgain(Resolution),
}

impl Detector {
    /// Nothing is known yet.
    pub fn new(now: Moment) -> Self {
        Self {
            regions: BTreeMap::new(),
            health: Health::Pending,
            since: now,
            incident: None,
            silence_announced: false,
            opens: VecDeque::new(),
            in_maintenance: false,
            parent_down: false,
            is_paused: false,
            started: now,
        }
    }

    /// The state of a monitor in a store that has no text of it: of one that an older
    /// version wrote.
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
        let before = |at: Timestamp| Moment {
            elapsed: now.elapsed.saturating_sub(now.wall.since(at)),
            wall: at,
        };
        let since = before(since);
        let region = seen.map(|seen| (Arc::clone(region), RegionState::restored(seen, since, now)));
        let incident = incident.map(|(at, acknowledged, is_announced)| Incident {
            confirmed: before(at),
            began: before(at),
            opened: at,
            acknowledged,
            recovering: (health != Health::Down).then_some(since),
            held_from: now.elapsed,
            is_announced,
            is_flapping: false,
        });
        Self {
            regions: region.into_iter().collect(),
            health,
            since,
            incident,
            silence_announced: health == Health::NoData,
            is_paused: health == Health::Paused,
            ..Self::new(now)
        }
    }

    /// The state that another process left, which serialized it; `None` if it cannot be read.
    ///
    /// - `as_of`: when that process wrote it, by its clocks.
    pub fn recalled(text: serde_json::Value, as_of: Moment, now: Moment) -> Option<Self> {
        let mut detector: Self = serde_json::from_value(text).ok()?;
        for moment in detector.moments() {
            *moment = moment.carried_over(as_of, now);
        }
        detector.begin_anew(now);
        Some(detector)
    }

    /// The moments that are remembered.
    fn moments(&mut self) -> impl Iterator<Item = &mut Moment> {
        let regions = self.regions.values_mut().flat_map(RegionState::moments);
        let incident = self.incident.iter_mut().flat_map(|it| {
            let fixed = [&mut it.confirmed, &mut it.began].into_iter();
            fixed.chain(it.recovering.as_mut())
        });
        regions
            .chain(incident)
            .chain(&mut self.opens)
            .chain([&mut self.since])
    }

    /// No process ran until now, or this one did not: nothing was seen, and nothing is concluded from that. Silence and the
    /// hold are measured from now on.
    pub fn begin_anew(&mut self, now: Moment) {
        self.started = now;
        for region in self.regions.values_mut() {
            region.last = now;
        }
        if let Some(incident) = &mut self.incident {
            incident.held_from = now.elapsed;
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
            since: state.since.wall,
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
        self.since.wall
    }

    /// Whether an incident is open.
    pub fn has_incident(&self) -> bool {
        self.incident.is_some()
    }

    /// When the outage of the open incident began, and whether an operator has seen it.
    pub fn incident(&self) -> Option<(Timestamp, bool)> {
        let incident = self.incident.as_ref()?;
        Some((incident.opened, incident.acknowledged))
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
            .filter(|incident| incident.recovering.is_some())
            .map(|incident| incident.held_from + policy.hold);
        let quiet = incident
            .filter(|it| it.is_flapping && !it.is_announced && it.recovering.is_none())
            .filter(|_| !self.in_maintenance && !self.parent_down)
            .and_then(|incident| Some(incident.confirmed.elapsed + policy.flap?.quiet));
        [silence, unseen, hold, quiet].into_iter().flatten().min()
    }

    /// Takes one input; returns what is to be done.
    #[must_use]
    pub fn step(&mut self, input: Input, policy: &DetectPolicy, now: Moment) -> StepEffects {
        let mut effects = Vec::new();
        let mut is_rejudged = false;
        match input {
            Input::Observed {
                region,
                status,
                reason,
                at,
            } => {
                if self.is_paused {
                    return effects;
                }
                let rows = (policy.confirm.max(1), policy.recover.max(1));
                let region = self
                    .regions
                    .entry(region)
                    .or_insert_with(|| RegionState::new(now));
                region.observe(status, reason, moment_of(at, now), now, rows);
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
            Input::Rejudge => is_rejudged = true,
            Input::SetBack { from, to } => {
                let by = from.since(to);
                for moment in self.moments() {
                    moment.wall = moment.wall.minus(by);
                }
                effects.push(Effect::SetBack { from, to });
            }
            Input::Removed => {
                self.end(Resolution::Removed, Health::Pending, now, &mut effects);
                return effects;
            }
        }
        if !self.is_paused {
            self.settle(policy, is_rejudged, now, &mut effects);
        }
        effects
    }

    fn pause(&mut self, is_paused: bool, now: Moment, effects: &mut StepEffects) {
        self.is_paused = is_paused;
        let health = if is_paused {
            Health::Paused
        } else {
            Health::Pending
        };
        self.end(Resolution::Paused, health, now, effects);
    }

    /// Whatever is under way is over, and nothing is known any more.
    fn end(&mut self, by: Resolution, health: Health, now: Moment, effects: &mut StepEffects) {
        self.regions.clear();
        self.started = now;
        self.resolve(now, by, effects);
        self.end_silence(by, effects);
        self.change(health, now, None, effects);
    }

    /// Draws the consequences of regions and timers.
    ///
    /// - `is_rejudged`: whether the rules are new, so that what they say is so from now on.
    fn settle(
        &mut self,
        policy: &DetectPolicy,
        is_rejudged: bool,
        now: Moment,
        effects: &mut StepEffects,
    ) {
        let silent = |since: Moment| now.elapsed >= since.elapsed + policy.silent_after;
        let reporting = self.regions.len();
        self.regions.retain(|_, region| !silent(region.last));
        if let Some((health, since, reason)) = self.judged(policy) {
            // Without a region that reported, or by other rules, the same results mean something else, but only from now on.
            let is_new = is_rejudged || self.regions.len() < reporting;
            let at = if is_new { now } else { since };
            self.change(health, at, reason, effects);
        } else if self.regions.is_empty()
            && policy.reports_no_data
            && !matches!(self.health, Health::NoData)
            && (self.health != Health::Pending || silent(self.started))
        {
            self.change(Health::NoData, now, None, effects);
        }
        if self.health != Health::NoData {
            self.end_silence(Resolution::Recovery, effects);
        }
        self.drive_incident(policy, now, effects);
    }

    /// The verdict of the regions that report, and since when it holds; `None` while none has confirmed anything.
    fn judged(&self, policy: &DetectPolicy) -> Option<(Health, Moment, Option<String>)> {
        let confirmed: Vec<_> = self
            .regions
            .values()
            .filter_map(|region| Some((region.confirmed?, region)))
            .collect();
        if confirmed.is_empty() {
            return None;
        }
        let of = |wanted: &dyn Fn(Seen) -> bool| {
            let mut of: Vec<_> = confirmed
                .iter()
                .filter(|(seen, _)| wanted(*seen))
                .map(|(_, region)| *region)
                .collect();
            of.sort_by_key(|region| region.since.wall);
            of
        };
        let down = of(&|seen| seen == Seen::Down);
        let needed = policy.regions.needed(confirmed.len());
        if let Some(deciding) = down.get(needed - 1) {
            // The quorum was reached with the last region that it needed.
            return Some((Health::Down, deciding.since, deciding.reason.clone()));
        }
        let worse = of(&|seen| seen != Seen::Up);
        let health = match worse.first() {
            Some(_) => Health::Degraded,
            None => Health::Up,
        };
        let reason = worse.first().and_then(|region| region.reason.clone());
        let since = if self.health == Health::Down || health == Health::Up {
            // The quorum was lost, or trouble ended, with the last region that came back.
            of(&|seen| seen != Seen::Down).last()?.since
        } else {
            worse.first()?.since
        };
        Some((health, since, reason))
    }

    fn change(
        &mut self,
        to: Health,
        at: Moment,
        reason: Option<String>,
        effects: &mut StepEffects,
    ) {
        if to == self.health {
            return;
        }
        // A change is never before the one before it.
        let at = if at.wall < self.since.wall {
            self.since
        } else {
            at
        };
        effects.push(Effect::HealthChanged {
            from: self.health,
            to,
            at: at.wall,
            reason,
        });
        self.health = to;
        self.since = at;
    }

    fn drive_incident(&mut self, policy: &DetectPolicy, now: Moment, effects: &mut StepEffects) {
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
                    confirmed: now,
                    began: since,
                    opened: since.wall,
                    acknowledged: false,
                    recovering: None,
                    held_from: now.elapsed,
                    is_announced: false,
                    is_flapping,
                });
                effects.push(Effect::Opened {
                    at: since.wall,
                    reason,
                    held: self.held(policy, now),
                });
            }
            (Some(incident), Health::Down) if incident.recovering.is_some() => {
                incident.recovering = None;
                effects.push(Effect::Reopened {
                    at: since.wall,
                    reason,
                });
            }
            (Some(incident), Health::Up | Health::Degraded) => match incident.recovering {
                None if policy.hold.is_zero() => {
                    self.resolve(since, Resolution::Recovery, effects);
                }
                None => {
                    incident.recovering = Some(since);
                    incident.held_from = now.elapsed;
                    effects.push(Effect::Recovering { at: since.wall });
                }
                Some(recovering) if now.elapsed >= incident.held_from + policy.hold => {
                    self.resolve(recovering, Resolution::Recovery, effects);
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
        self.opens.push_back(now);
        while self
            .opens
            .front()
            .is_some_and(|opened| now.elapsed.saturating_sub(opened.elapsed) > flap.within)
        {
            self.opens.pop_front();
        }
        self.opens.len() > usize::try_from(flap.opens).unwrap_or(usize::MAX)
    }

    /// Why nothing is announced, whatever it is.
    fn held_around(&self) -> Option<Hold> {
        if self.in_maintenance {
            return Some(Hold::Maintenance);
        }
        self.parent_down.then_some(Hold::Parent)
    }

    fn held(&self, policy: &DetectPolicy, now: Moment) -> Option<Hold> {
        if let Some(held) = self.held_around() {
            return Some(held);
        }
        let incident = self.incident.as_ref()?;
        let flap = policy.flap.filter(|_| incident.is_flapping)?;
        let is_quiet = now.elapsed < incident.confirmed.elapsed + flap.quiet;
        is_quiet.then_some(Hold::Flapping)
    }

    /// Sends the opening of an incident, or the beginning of silence, at once or when what held it back is over.
    fn announce(&mut self, policy: &DetectPolicy, now: Moment, effects: &mut StepEffects) {
        let is_held = self.held(policy, now).is_some();
        if let Some(incident) = &mut self.incident
            && !is_held
            && !incident.is_announced
            && incident.recovering.is_none()
        {
            incident.is_announced = true;
            effects.push(Effect::Notify(Notice::Opened));
        }
        if self.health == Health::NoData && !self.silence_announced && self.held_around().is_none()
        {
            self.silence_announced = true;
            effects.push(Effect::Notify(Notice::NoData));
        }
    }

    fn end_silence(&mut self, by: Resolution, effects: &mut StepEffects) {
        if std::mem::take(&mut self.silence_announced) {
            effects.push(Effect::Notify(Notice::DataAgain(by)));
        }
    }

    fn resolve(&mut self, at: Moment, by: Resolution, effects: &mut StepEffects) {
        let Some(incident) = self.incident.take() else {
            return;
        };
        effects.push(Effect::Resolved {
            at: at.wall,
            by,
            lasted: at.elapsed.saturating_sub(incident.began.elapsed),
        });
        if incident.is_announced {
            effects.push(Effect::Notify(Notice::Resolved(by)));
        }
    }

    /// The outage is dealt with: a new incident needs new failures.
    fn resolve_by_operator(&mut self, now: Moment, effects: &mut StepEffects) {
        if self.incident.is_none() {
            return;
        }
        self.resolve(now, Resolution::Operator, effects);
        if self.health == Health::Down {
            self.regions.clear();
            self.started = now;
            self.change(Health::Pending, now, None, effects);
        }
    }
}

/// Regions as pairs of their name and state.
mod by_name {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::detect::region::RegionState;

    pub(super) fn serialize<S: Serializer>(
        regions: &BTreeMap<Arc<str>, RegionState>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let pairs: Vec<(&str, &RegionState)> = regions.iter().map(|(k, v)| (&**k, v)).collect();
        pairs.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Arc<str>, RegionState>, D::Error> {
        let pairs = Vec::<(String, RegionState)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }
}
