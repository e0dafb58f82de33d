//! The closed loop: the next exchange follows the last one.

use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

use crate::Ramp;
use crate::plan::ThinkTime;
use crate::worker::pace::{Finished, Gate, Start};

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

/// Leave for the next exchange, or when to ask again.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Start(Start),
    Wait(Instant),
    /// There will be no more.
    End,
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
        let mut last = last;
        loop {
            match self.step(now, last.take()) {
                Step::Start(start) => return Some(start),
                Step::Wait(until) => now = self.wait_until(until).await?,
                Step::End => return None,
            }
        }
    }

    /// Whether the next exchange may begin at `now`, the present.
    ///
    /// - `last`: the exchange before, reported once.
    #[inline]
    pub(crate) fn step(&mut self, now: Instant, last: Option<Finished>) -> Step {
        if let Some(last) = last {
            let pause = last.back_off.max(self.think());
            if !pause.is_zero() {
                return self.wait(last.done + pause);
            }
        }
        if let Some(ramp) = &self.ramp {
            let start = self.gate.run_start();
            let Some(active) = ramp.next_active(self.index, now.duration_since(start)) else {
                return Step::End;
            };
            let at = start + active;
            if at > now {
                return self.wait(at);
            }
        }
        match self.gate.admit(now) {
            None => Step::End,
            Some(in_window) => Step::Start(Start {
                intended: now,
                started: now,
                in_window,
                lag: None,
                request: 0,
                arrival: None,
            }),
        }
    }

    fn wait(&self, until: Instant) -> Step {
        if self.gate.end().is_some_and(|end| until >= end) {
            return Step::End;
        }
        Step::Wait(until)
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
        tokio::select! {
            () = tokio::time::sleep_until(deadline.into()) => Some(SystemClock.now()),
            () = self.gate.wait_for_stop() => None,
        }
    }
}
