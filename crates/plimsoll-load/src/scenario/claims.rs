//! The assignment of iterations to virtual users.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::executor::{ConstantVus, Executor};
use super::segment::Segment;

/// The next start of a virtual user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStart {
    /// It makes this iteration.
    Iteration {
        /// When it is meant to start; may lie before now.
        at: Duration,
        /// Its number within the scenario, from 0.
        number: u64,
    },
    /// It claims again at that time.
    Later(Duration),
    /// It is done.
    Never,
}

/// Hands out the iterations of a scenario to virtual users of all workers, by two counters and no lock.
///
/// Of an open executor, a free virtual user claims the next arrival, and waits for it. One that lies in the past had no
/// free virtual user when it was due: it is dropped, not delayed.
#[derive(Debug)]
pub struct Claims {
    executor: Executor,
    /// Which arrivals and iterations of the run are made here; all without one.
    segment: Option<Segment>,
    next: AtomicU64,
    dropped: AtomicU64,
    started: AtomicU64,
}

impl Claims {
    /// Nothing is claimed yet.
    pub fn new(executor: Executor) -> Self {
        Self {
            executor,
            segment: None,
            next: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            started: AtomicU64::new(0),
        }
    }

    /// Those of a segment of the run.
    ///
    /// - `executor`: of the whole run.
    pub fn in_segment(executor: Executor, segment: Segment) -> Self {
        Self {
            executor: executor.in_segment(&segment),
            segment: Some(segment),
            ..Self::new(Executor::ConstantVus(ConstantVus {
                vus: 0,
                duration: Duration::ZERO,
            }))
        }
    }

    /// The number in the whole run of an iteration of that number, both within the scenario and from 0.
    pub fn number_in_run(&self, number: u64) -> u64 {
        match &self.segment {
            Some(segment) => segment.of_run(number),
            None => number,
        }
    }

    fn arrival(&self, number: u64) -> Option<Duration> {
        self.executor.arrival(self.number_in_run(number))
    }

    /// The executor.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Claims the next iteration for a virtual user that is free.
    ///
    /// - `vu`: within the scenario, from 0.
    /// - `made`: iterations that it has made.
    /// - `now`: since the start of the scenario; virtual users that are there at the start claim at 0.
    pub fn claim(&self, vu: u32, made: u64, now: Duration) -> NextStart {
        if now >= self.executor.end() {
            self.drop_rest(made);
            return NextStart::Never;
        }
        match &self.executor {
            Executor::SharedIterations(executor) => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                if number < executor.iterations {
                    self.begin(now, number)
                } else {
                    NextStart::Never
                }
            }
            Executor::PerVuIterations(executor) if made >= executor.iterations => NextStart::Never,
            Executor::PerVuIterations(_) | Executor::ConstantVus(_) => self.begin_next(now),
            Executor::RampingVus(executor) => match executor.active_from(vu, now) {
                Some(at) if at <= now => self.begin_next(now),
                Some(at) => NextStart::Later(at),
                None => NextStart::Never,
            },
            Executor::ConstantArrivalRate(_) | Executor::RampingArrivalRate(_) => loop {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                match self.arrival(number) {
                    Some(at) if at >= now => break self.begin(at, number),
                    Some(_) => {
                        self.dropped.fetch_add(1, Ordering::Relaxed);
                    }
                    None => break NextStart::Never,
                }
            },
        }
    }

    /// Drops the next arrival of an open executor if it is due and no virtual user has claimed it. Otherwise returns
    /// when the next unclaimed one is due, or `None` behind the last one.
    pub fn drop_due(&self, now: Duration) -> Result<u64, Option<Duration>> {
        let number = self.next.load(Ordering::Relaxed);
        let Some(at) = self.arrival(number) else {
            return Err(None);
        };
        if at > now {
            return Err(Some(at));
        }
        let exchange =
            self.next
                .compare_exchange(number, number + 1, Ordering::Relaxed, Ordering::Relaxed);
        if exchange.is_err() {
            // A virtual user was faster.
            return Err(Some(at));
        }
        Ok(self.dropped.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Drops the iterations that are left when the time of an executor of iterations is up: those of a virtual user, or those
    /// that all of them share.
    ///
    /// - `made`: iterations that the virtual user has made.
    pub fn drop_rest(&self, made: u64) {
        let rest = match &self.executor {
            Executor::PerVuIterations(executor) => executor.iterations.saturating_sub(made),
            Executor::SharedIterations(executor) => {
                // The first virtual user that is done drops those of all.
                let claimed = self.next.fetch_max(executor.iterations, Ordering::Relaxed);
                executor.iterations.saturating_sub(claimed)
            }
            _ => 0,
        };
        self.dropped.fetch_add(rest, Ordering::Relaxed);
    }

    /// Arrivals that no virtual user was free for, and iterations that were left when their time was up.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Iterations that were claimed.
    pub fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    fn begin_next(&self, now: Duration) -> NextStart {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.begin(now, number)
    }

    fn begin(&self, at: Duration, number: u64) -> NextStart {
        self.started.fetch_add(1, Ordering::Relaxed);
        NextStart::Iteration { at, number }
    }
}

#[cfg(test)]
mod tests {
    use super::super::executor::{
        ConstantArrivalRate, PerVuIterations, RampingArrivalRate, RampingVus, SharedIterations,
        Stage,
    };
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn start(millis: u64, number: u64) -> NextStart {
        NextStart::Iteration {
            at: at(millis),
            number,
        }
    }

    #[test]
    fn shared_iterations_go_to_the_next_free_user() {
        let claims = Claims::new(Executor::SharedIterations(SharedIterations {
            vus: 2,
            iterations: 3,
            max_duration: at(1000),
        }));
        assert_eq!(claims.claim(0, 0, at(0)), start(0, 0));
        assert_eq!(claims.claim(1, 0, at(0)), start(0, 1));
        assert_eq!(claims.claim(0, 1, at(10)), start(10, 2));
        assert_eq!(claims.claim(0, 2, at(20)), NextStart::Never);
        assert_eq!(claims.claim(1, 1, at(20)), NextStart::Never);
    }

    #[test]
    fn each_user_makes_its_own_until_time_is_up() {
        let claims = Claims::new(Executor::PerVuIterations(PerVuIterations {
            vus: 2,
            iterations: 2,
            max_duration: at(100),
        }));
        assert_eq!(claims.claim(0, 0, at(0)), start(0, 0));
        assert_eq!(claims.claim(0, 1, at(1)), start(1, 1));
        assert_eq!(claims.claim(0, 2, at(2)), NextStart::Never);
        assert_eq!(claims.claim(1, 0, at(3)), start(3, 2));
        assert_eq!(claims.dropped(), 0);
        assert_eq!(claims.claim(1, 1, at(100)), NextStart::Never);
        assert_eq!(claims.dropped(), 1);
    }

    #[test]
    fn shared_iterations_that_are_left_are_dropped_once() {
        let claims = Claims::new(Executor::SharedIterations(SharedIterations {
            vus: 2,
            iterations: 5,
            max_duration: at(100),
        }));
        assert_eq!(claims.claim(0, 0, at(0)), start(0, 0));
        assert_eq!(claims.claim(1, 0, at(0)), start(0, 1));
        for made in [1, 1] {
            assert_eq!(claims.claim(0, made, at(100)), NextStart::Never);
            assert_eq!(claims.dropped(), 3);
        }
    }

    #[test]
    fn arrivals_without_a_free_user_are_dropped_and_not_delayed() {
        let claims = Claims::new(Executor::ConstantArrivalRate(ConstantArrivalRate {
            rate: 100,
            time_unit: at(1000),
            duration: at(100),
            pre_allocated_vus: 2,
            most_vus: 3,
        }));
        assert_eq!(claims.claim(0, 0, at(0)), start(0, 0));
        assert_eq!(claims.claim(1, 0, at(0)), start(10, 1));
        // Both are busy when the third is due.
        assert_eq!(claims.drop_due(at(5)), Err(Some(at(20))));
        assert_eq!(claims.drop_due(at(20)), Ok(1));
        // The first is free at 45: those at 30 and 40 are lost, it takes the one at 50.
        assert_eq!(claims.claim(0, 1, at(45)), start(50, 5));
        assert_eq!(claims.dropped(), 3);
        assert_eq!(claims.claim(1, 1, at(96)), NextStart::Never);
        assert_eq!(claims.dropped(), 7);
        assert_eq!(claims.started(), 3);
        assert_eq!(claims.drop_due(at(100)), Err(None));
    }

    #[test]
    fn users_of_a_ramp_wait_for_their_turn() {
        let stages = [Stage {
            duration: at(100),
            target: 2,
        }];
        let claims = Claims::new(Executor::RampingVus(RampingVus::new(0, &stages, at(0))));
        assert_eq!(claims.claim(0, 0, at(0)), NextStart::Later(at(50)));
        assert_eq!(claims.claim(0, 0, at(50)), start(50, 0));
        assert_eq!(claims.claim(1, 0, at(50)), NextStart::Never);
    }

    #[test]
    fn segments_share_arrivals_users_and_iterations() {
        let halves = ["0:1/2", "1/2:1"].map(|it| Segment::new(it, "0,1/2,1").unwrap());
        let [first, second] = halves.clone().map(|segment| {
            let executor = Executor::ConstantArrivalRate(ConstantArrivalRate {
                rate: 10,
                time_unit: at(1000),
                duration: at(450),
                pre_allocated_vus: 3,
                most_vus: 5,
            });
            Claims::in_segment(executor, segment)
        });
        assert_eq!(first.claim(0, 0, at(0)), start(0, 0));
        assert_eq!(first.claim(0, 1, at(1)), start(200, 1));
        assert_eq!(second.claim(0, 0, at(0)), start(100, 0));
        assert_eq!(second.claim(0, 1, at(101)), start(300, 1));
        assert_eq!(second.claim(0, 2, at(301)), NextStart::Never);
        assert_eq!((first.number_in_run(1), second.number_in_run(1)), (2, 3));
        let vus =
            [&first, &second].map(|it| (it.executor().initial_vus(), it.executor().most_vus()));
        assert_eq!(vus, [(2, 3), (1, 2)]);
        let stages = [Stage {
            duration: at(1000),
            target: 4,
        }];
        let ramps = halves.clone().map(|segment| {
            let ramp = Executor::RampingVus(RampingVus::new(0, &stages, at(0)));
            ramp.in_segment(&segment)
        });
        let levels = ramps.map(|ramp| match ramp {
            Executor::RampingVus(ramp) => [0, 250, 500, 750, 1000].map(|it| ramp.vus_at(at(it))),
            _ => [9; 5],
        });
        assert_eq!(levels, [[0, 1, 1, 2, 2], [0, 0, 1, 1, 2]]);
        let shared = halves.clone().map(|segment| {
            let executor = Executor::SharedIterations(SharedIterations {
                vus: 1,
                iterations: 5,
                max_duration: at(1000),
            });
            let part = executor.in_segment(&segment);
            (part.most_vus(), part.has_work())
        });
        assert_eq!(shared, [(1, true), (0, false)]);
        // The arrivals of all segments are those of the whole.
        let whole = RampingArrivalRate::new(0, at(1000), &stages, 2, 2);
        let whole = Executor::RampingArrivalRate(whole);
        let parts = halves.map(|segment| Claims::in_segment(whole.clone(), segment));
        let mut arrivals: Vec<_> = parts
            .iter()
            .flat_map(|part| (0..9).filter_map(|number| part.arrival(number)))
            .collect();
        arrivals.sort_unstable();
        let all: Vec<_> = (0..9).filter_map(|number| whole.arrival(number)).collect();
        assert_eq!(arrivals, all);
        assert!(!all.is_empty());
    }
}
