//! When a heartbeat is late: pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::HeartbeatPlan;
use crate::engine::board::Beat;
use crate::time::{Moment, Timestamp};

/// The state of one heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeartbeatState {
    /// The last success or failure, or when the monitor began.
    last: Moment,
    /// Whether one ever came.
    has_come: bool,
    /// When the run that is under way began.
    started: Option<Moment>,
    /// When lateness was last reported.
    reported: Option<Moment>,
    /// It is not late before: a heartbeat was due while no process could receive it.
    not_before: Option<Moment>,
    /// Successes and failures that came.
    #[serde(default)]
    count: u64,
}

/// What reasons begin with that no job sent.
const LATE: [&str; 2] = ["no heartbeat ", "the run that began at "];

/// Whether a reason says that a heartbeat is late, and is no message of a job.
pub fn is_late(reason: &str) -> bool {
    LATE.iter().any(|start| reason.starts_with(start))
}

impl HeartbeatState {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            last: now,
            has_come: false,
            started: None,
            reported: None,
            not_before: None,
            count: 0,
        }
    }

    /// The signals that were received so far.
    pub(super) fn beat(&self) -> Beat {
        Beat {
            last: self.has_come.then_some(self.last.wall),
            started: self.started.map(|started| started.wall),
            count: self.count,
        }
    }

    /// What another process left, which serialized it; `None` if it cannot be read.
    ///
    /// - `as_of`: when that process wrote it, by its clocks.
    pub(super) fn recalled(text: serde_json::Value, as_of: Moment, now: Moment) -> Option<Self> {
        let mut state: Self = serde_json::from_value(text).ok()?;
        for moment in state.moments() {
            *moment = moment.carried_over(as_of, now);
        }
        Some(state)
    }

    fn moments(&mut self) -> impl Iterator<Item = &mut Moment> {
        let more = [
            self.started.as_mut(),
            self.reported.as_mut(),
            self.not_before.as_mut(),
        ];
        [&mut self.last]
            .into_iter()
            .chain(more.into_iter().flatten())
    }

    /// The date was set: what is remembered keeps its distance from the present.
    pub(super) fn set_date(&mut self, from: Timestamp, to: Timestamp) {
        for moment in self.moments() {
            moment.wall = Timestamp(moment.wall.0.saturating_add(to.0).saturating_sub(from.0));
        }
    }

    /// Nothing could be received for a while: what was due then, and may have been sent in vain, has the grace once more.
    pub(super) fn absent(&mut self, plan: &HeartbeatPlan, lasted: Duration, now: Moment) {
        let since = now.elapsed.saturating_sub(lasted);
        let due = match self.reported {
            Some(_) => return,
            None => self.next_wake(plan).saturating_sub(plan.grace),
        };
        if (since..=now.elapsed).contains(&due) {
            self.not_before = Some(now.plus(plan.grace));
        }
    }

    /// A run begins.
    pub(super) fn start(&mut self, now: Moment) {
        self.started = Some(now);
    }

    /// A run ended; how long it took, if its start was reported.
    pub(super) fn end(&mut self, now: Moment) -> Duration {
        let took = self
            .started
            .take()
            .map(|started| now.elapsed.saturating_sub(started.elapsed));
        self.last = now;
        self.has_come = true;
        self.count += 1;
        self.reported = None;
        self.not_before = None;
        took.unwrap_or_default()
    }

    /// When it is late next, on the monotonic clock.
    pub(super) fn next_wake(&self, plan: &HeartbeatPlan) -> Duration {
        if let Some(reported) = self.reported {
            return reported.elapsed + self.period(plan);
        }
        let late = self.last.elapsed + self.period(plan) + plan.grace;
        let late = match (self.started, plan.most_runtime) {
            (Some(started), Some(most)) => late.min(started.elapsed + most),
            _ => late,
        };
        self.not_before
            .map_or(late, |moment| late.max(moment.elapsed))
    }

    /// Why it is late at `now`, if it is; reported once per period.
    pub(super) fn late(&mut self, plan: &HeartbeatPlan, now: Moment) -> Option<String> {
        if now.elapsed < self.next_wake(plan) {
            return None;
        }
        self.reported = Some(now);
        if let (Some(started), Some(most)) = (self.started, plan.most_runtime)
            && now.elapsed >= started.elapsed + most
        {
            return Some(format!(
                "the run that began at {} takes longer than {most:?}",
                started.wall
            ));
        }
        Some(if self.has_come {
            format!("no heartbeat since {}", self.last.wall)
        } else {
            format!("no heartbeat has come since {}", self.last.wall)
        })
    }

    /// From the last heartbeat to the next.
    fn period(&self, plan: &HeartbeatPlan) -> Duration {
        plan.period_after(self.last.wall)
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use plimsoll_model::Secret;

    use super::*;
    use crate::config::EveryOrCron;

    fn at(seconds: u64) -> Moment {
        Moment {
            elapsed: Duration::from_secs(5_000 + seconds),
            wall: Timestamp(i64::try_from(seconds).unwrap() * 1000),
        }
    }

    fn plan(due: EveryOrCron, most_runtime: Option<u64>) -> HeartbeatPlan {
        HeartbeatPlan {
            token: Secret::new("a"),
            slug: None,
            due,
            grace: Duration::from_secs(10),
            most_runtime: most_runtime.map(Duration::from_secs),
            resumes: false,
            about: None,
        }
    }

    #[test]
    fn a_heartbeat_is_late_after_its_period_and_grace_and_then_once_per_period() {
        let plan = plan(EveryOrCron::Every(Duration::from_mins(1)), None);
        let mut state = HeartbeatState::new(at(0));
        assert_eq!(state.late(&plan, at(69)), None);
        assert!(state.late(&plan, at(70)).unwrap().contains("has come"));
        assert_eq!(state.late(&plan, at(129)), None);
        assert!(state.late(&plan, at(130)).is_some());
        state.end(at(140));
        assert_eq!(state.next_wake(&plan), at(210).elapsed);
        assert_eq!(
            state.late(&plan, at(210)).unwrap(),
            "no heartbeat since 1970-01-01T00:02:20Z"
        );
    }

    #[test]
    fn a_heartbeat_that_was_due_before_a_restart_is_still_missing_after_it() {
        // Every day at 02:30 with an hour of grace.
        let due = EveryOrCron::Cron("30 2 * * *".parse().unwrap(), TimeZone::UTC);
        let plan = HeartbeatPlan {
            grace: Duration::from_hours(1),
            ..plan(due, None)
        };
        let hours = |hours: u64| at(hours * 3_600);
        let mut state = HeartbeatState::new(hours(0));
        state.end(at(2 * 3_600 + 1_860));
        let as_of = hours(20);
        // The process ends at 02:50 and begins at 03:00, with another monotonic clock.
        let now = Moment {
            elapsed: Duration::from_hours(100 * 24),
            wall: hours(27).wall,
        };
        let left = serde_json::to_value(&state).unwrap();
        let mut next = HeartbeatState::recalled(left, as_of, now).unwrap();
        next.absent(&plan, Duration::from_mins(10), now);
        let late = now.elapsed + Duration::from_mins(30);
        assert_eq!(next.next_wake(&plan), late);
        // Had it ended at 02:20, the heartbeat may have been sent in vain.
        next.absent(&plan, Duration::from_mins(40), now);
        let late = now.elapsed + Duration::from_hours(1);
        assert_eq!(next.next_wake(&plan), late);
    }

    #[test]
    fn a_run_has_a_duration_and_a_limit() {
        let plan = plan(EveryOrCron::Every(Duration::from_mins(10)), Some(30));
        let mut state = HeartbeatState::new(at(0));
        state.start(at(10));
        assert_eq!(state.end(at(25)), Duration::from_secs(15));
        state.start(at(30));
        assert_eq!(state.next_wake(&plan), at(60).elapsed);
        assert!(
            state
                .late(&plan, at(60))
                .unwrap()
                .contains("takes longer than 30s")
        );
        assert_eq!(state.end(at(61)), Duration::from_secs(31));
    }

    #[test]
    fn reasons_of_lateness_differ_from_messages_of_jobs() {
        let plan = plan(EveryOrCron::Every(Duration::from_mins(1)), Some(20));
        let mut state = HeartbeatState::new(at(0));
        let mut reasons = vec![state.late(&plan, at(70)).unwrap()];
        state.end(at(80));
        reasons.extend(state.late(&plan, at(160)));
        state.end(at(170));
        state.start(at(180));
        reasons.extend(state.late(&plan, at(200)));
        assert_eq!(reasons.len(), 3);
        assert!(reasons.iter().all(|reason| is_late(reason)), "{reasons:?}");
        for message in ["the job reported a failure", "no heart", "disk full"] {
            assert!(!is_late(message), "{message}");
        }
        let beat = state.beat();
        assert_eq!((beat.count, beat.last), (2, Some(at(170).wall)));
        assert_eq!(beat.started, Some(at(180).wall));
    }

    #[test]
    fn a_cron_expression_says_when_the_next_is_due() {
        let due = EveryOrCron::Cron("0 * * * *".parse().unwrap(), TimeZone::UTC);
        let plan = plan(due, None);
        let mut state = HeartbeatState::new(at(0));
        state.end(at(1_800));
        assert_eq!(state.next_wake(&plan), at(3_610).elapsed);
        assert_eq!(state.late(&plan, at(3_609)), None);
        assert!(state.late(&plan, at(3_610)).is_some());
    }
}
