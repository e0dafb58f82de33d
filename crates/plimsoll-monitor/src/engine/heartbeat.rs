//! When a heartbeat is late: pure.

use std::time::Duration;

use crate::config::{EveryOrCron, HeartbeatPlan};
use crate::store::timestamp::{Moment, Timestamp};

/// The state of one heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeartbeatState {
    /// The last success or failure, or the start of the program.
    last: Moment,
    /// Whether one came since the start of the program.
    has_come: bool,
    /// When the run that is under way began.
    started: Option<Moment>,
    /// When lateness was last reported.
    reported: Option<Duration>,
}

impl HeartbeatState {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            last: now,
            has_come: false,
            started: None,
            reported: None,
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
        self.reported = None;
        took.unwrap_or_default()
    }

    /// When it is late next, on the monotonic clock.
    pub(super) fn next_wake(&self, plan: &HeartbeatPlan) -> Duration {
        if let Some(reported) = self.reported {
            return reported + self.period(plan);
        }
        let late = self.last.elapsed + self.period(plan) + plan.grace;
        match (self.started, plan.most_runtime) {
            (Some(started), Some(most)) => late.min(started.elapsed + most),
            _ => late,
        }
    }

    /// Why it is late at `now`, if it is; reported once per period.
    pub(super) fn late(&mut self, plan: &HeartbeatPlan, now: Moment) -> Option<String> {
        if now.elapsed < self.next_wake(plan) {
            return None;
        }
        self.reported = Some(now.elapsed);
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
        match &plan.due {
            EveryOrCron::Every(period) => *period,
            EveryOrCron::Cron(cron, zone) => {
                let last: Timestamp = self.last.wall;
                let next = cron.next(last, zone);
                next.map_or(Duration::from_hours(24 * 366), |next| next.since(last))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use plimsoll_model::Secret;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment {
            elapsed: Duration::from_secs(5_000 + seconds),
            wall: Timestamp(i64::try_from(seconds).unwrap() * 1000),
        }
    }

    fn plan(due: EveryOrCron, most_runtime: Option<u64>) -> HeartbeatPlan {
        HeartbeatPlan {
            token: Secret::new("a"),
            due,
            grace: Duration::from_secs(10),
            most_runtime: most_runtime.map(Duration::from_secs),
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
