//! The closed loop: the next exchange follows the last one.

use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

use crate::Ramp;
use crate::pace::{Finished, Gate, Start};
use crate::plan::ThinkTime;

/// Paces one connection of a closed loop.
#[derive(Debug)]
pub(crate) struct ClosedPacer {
    gate: Rc<Gate>,
    /// The connection's number among all of the run.
    index: usize,
    ramp: Option<Rc<Ramp>>,
    think: Option<ThinkTime>,
    random: fastrand::Rng,
}

impl ClosedPacer {
    pub(crate) fn new(
        gate: Rc<Gate>,
        index: usize,
        ramp: Option<Rc<Ramp>>,
        think: Option<ThinkTime>,
        seed: u64,
    ) -> Self {
        Self {
            gate,
            index,
            ramp,
            think,
            random: fastrand::Rng::with_seed(seed.wrapping_add(index as u64)),
        }
    }

    pub(crate) async fn next(&mut self, last: Option<Finished>) -> Option<Start> {
        // The end of the last exchange is the start of this one: no second look at the clock.
        let mut now = last.map_or_else(|| SystemClock.now(), |last| last.done);
        if let Some(last) = last {
            let pause = last.back_off.max(self.think());
            if !pause.is_zero() {
                now = self.wait_until(last.done + pause).await?;
            }
        }
        if let Some(ramp) = &self.ramp {
            let start = self.gate.run_start();
            let at = start + ramp.next_active(self.index, now.duration_since(start))?;
            if at > now {
                now = self.wait_until(at).await?;
            }
        }
        let in_window = self.gate.admit(now)?;
        Some(Start {
            intended: now,
            started: now,
            in_window,
            lag: None,
        })
    }

    fn think(&mut self) -> Duration {
        self.think.map_or(Duration::ZERO, |think| {
            think.least
                + think
                    .most
                    .saturating_sub(think.least)
                    .mul_f64(self.random.f64())
        })
    }

    /// The present once `deadline` has passed; `None` if the run ends before.
    async fn wait_until(&self, deadline: Instant) -> Option<Instant> {
        if self.gate.end().is_some_and(|end| deadline >= end) {
            return None;
        }
        tokio::select! {
            () = tokio::time::sleep_until(deadline.into()) => Some(SystemClock.now()),
            () = self.gate.wait_for_stop() => None,
        }
    }
}
