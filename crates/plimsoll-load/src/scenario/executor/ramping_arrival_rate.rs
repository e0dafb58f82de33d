//! `ramping-arrival-rate`: starts at a rate that changes over time.

use std::time::Duration;

use super::ramping_vus::Stage;

/// How far a moment that is the end on paper may miss it: near a rate of 0, an error of an area has the size of its square root.
const ROUNDING: Duration = Duration::from_micros(1);

/// Iterations start at a rate that follows stages, linearly within each.
///
/// The arrival of number n, from 1, is at the moment at which the area under the line of the rate is n; what is left of
/// an area at the end of a stage is carried into the next one. An arrival at the end of the last stage is too late, as in k6, whose
/// run ends before that arrival: its clock starts before the virtual users do, that of the arrivals after them.
#[derive(Debug, Clone, PartialEq)]
pub struct RampingArrivalRate {
    pieces: Vec<RampStage>,
    end: Duration,
    /// Virtual users at the start.
    pub pre_allocated_vus: u32,
    /// Virtual users that there may be.
    pub most_vus: u32,
}

/// A stage with what came before it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RampStage {
    /// Seconds from the start of the scenario.
    start: f64,
    seconds: f64,
    /// Per second.
    from: f64,
    to: f64,
    /// Arrivals before it, and with it.
    before: f64,
    after: f64,
}

impl RampingArrivalRate {
    /// - `start_rate`: in each time unit, as the targets of the stages.
    pub fn new(
        start_rate: u32,
        time_unit: Duration,
        stages: &[Stage],
        pre_allocated_vus: u32,
        most_vus: u32,
    ) -> Self {
        let per_second = |rate: u32| f64::from(rate) / time_unit.as_secs_f64();
        let mut pieces = Vec::new();
        let mut from = per_second(start_rate);
        let mut end = Duration::ZERO;
        let mut before = 0.0;
        for stage in stages {
            let to = per_second(stage.target);
            let seconds = stage.duration.as_secs_f64();
            let after = before + f64::midpoint(from, to) * seconds;
            pieces.push(RampStage {
                start: end.as_secs_f64(),
                seconds,
                from,
                to,
                before,
                after,
            });
            before = after;
            from = to;
            end += stage.duration;
        }
        Self {
            pieces,
            end,
            pre_allocated_vus,
            most_vus,
        }
    }

    /// The end of the last stage.
    pub fn end(&self) -> Duration {
        self.end
    }

    /// The start of the arrival of that number, from 0; `None` at the end of the last stage and later.
    pub fn arrival(&self, number: u64) -> Option<Duration> {
        let area = (number + 1) as f64;
        // Areas that are whole numbers on paper may miss them by rounding.
        let piece = self
            .pieces
            .iter()
            .find(|piece| piece.after + 1e-9 * piece.after.max(1.0) >= area)?;
        let seconds = piece.start + piece.seconds_to(area - piece.before);
        let at = Duration::from_secs_f64(seconds);
        (at + ROUNDING < self.end).then_some(at)
    }
}

impl RampStage {
    /// Seconds from its start until the area under it is `area`: the positive root of
    /// `area = from·t + (to − from)·t² / (2·seconds)`, in the form that does not cancel.
    fn seconds_to(&self, area: f64) -> f64 {
        if self.seconds <= 0.0 || area <= 0.0 {
            return 0.0;
        }
        let slope = (self.to - self.from) / self.seconds;
        let root = (self.from * self.from + 2.0 * slope * area).max(0.0).sqrt();
        (2.0 * area / (self.from + root)).min(self.seconds)
    }
}
