//! Which of several processes on one store runs the checks: a state machine over a lease, driven by a passed-in time.
//!
//! The store keeps the lease and its clock. A leader stops before its lease is over, by its own clock, so two processes
//! never lead at a time even if one of them cannot reach the store.

use std::time::Duration;

/// How long a lease lasts: what a standby waits for at most after a leader was killed.
pub const LASTS: Duration = Duration::from_secs(10);

/// A leader without renewal stops so long before the lease is over: time to end what runs.
const MARGIN: Duration = Duration::from_secs(2);

/// Between two renewals: two may fail before the leader stops.
const RENEW: Duration = Duration::from_secs(3);

/// Between two attempts of a standby.
const ATTEMPT: Duration = Duration::from_secs(1);

/// The state of one process. Times are since any fixed start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Leadership {
    leads_until: Option<Duration>,
    /// How long the share of a process that may not lead is its own, without another renewal.
    shares_until: Option<Duration>,
    due: Duration,
}

impl Leadership {
    /// Whether this process may run checks.
    pub fn leads(&self, now: Duration) -> bool {
        self.leads_until.is_some_and(|until| now < until)
    }

    /// Until when this process may check its share, whether it leads or not.
    pub fn shares_until(&self) -> Option<Duration> {
        self.shares_until
    }

    /// Has the store be called soon again, since shards wait for their process.
    pub fn hurry(&mut self, now: Duration) {
        self.due = self.due.min(now + ATTEMPT);
    }

    /// When the store is next called for the lease.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// When something may change: the next call, or the end of the leadership.
    pub fn next_wake(&self) -> Duration {
        self.leads_until
            .map_or(self.due, |until| until.min(self.due))
    }

    /// How long a call may take: until the leadership ends, and not beyond a renewal.
    pub fn patience(&self, now: Duration) -> Duration {
        let left = self.leads_until.map(|until| until.saturating_sub(now));
        left.filter(|left| !left.is_zero())
            .map_or(RENEW, |left| left.min(RENEW))
    }

    /// Takes the answer of a call for the lease and the share that began at `called`; `None` if the store could not be reached.
    pub fn answer(&mut self, called: Duration, now: Duration, granted: Option<bool>) {
        // The lease began no earlier than the call.
        let until = LASTS.checked_sub(MARGIN).map(|lasts| called + lasts);
        if let Some(leads) = granted {
            self.leads_until = until.filter(|_| leads);
            self.shares_until = until;
        }
        let pause = match granted {
            Some(true) => RENEW,
            _ => ATTEMPT,
        };
        self.due = now + pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store whose lease ends by a virtual clock.
    #[derive(Default)]
    struct Lease(Option<(usize, Duration)>);

    impl Lease {
        fn hold(&mut self, holder: usize, now: Duration) -> bool {
            let is_free = self
                .0
                .is_none_or(|(other, until)| other == holder || until < now);
            if is_free {
                self.0 = Some((holder, now + LASTS));
            }
            is_free
        }
    }

    const STEP: Duration = Duration::from_millis(10);

    #[test]
    fn a_standby_takes_over_within_fifteen_seconds_and_never_two_lead() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut lease = Lease::default();
            let mut processes = [Leadership::default(); 3];
            let killed_at = Duration::from_millis(random.u64(5_000..60_000));
            let (mut dead, mut without_leader) = (None, Duration::ZERO);
            let mut now = Duration::ZERO;
            while now < Duration::from_mins(2) {
                for (number, process) in processes.iter_mut().enumerate() {
                    if dead == Some(number) || now < process.due() {
                        continue;
                    }
                    // An answer takes up to a second, and one in five calls fails.
                    let is_reached = random.u8(0..5) > 0;
                    let answered = now + Duration::from_millis(random.u64(0..1_000));
                    let granted = is_reached.then(|| lease.hold(number, now));
                    process.answer(now, answered, granted);
                }
                let leaders = (0..3).filter(|number| processes[*number].leads(now));
                let alive: Vec<usize> = leaders.filter(|number| dead != Some(*number)).collect();
                assert!(alive.len() <= 1, "seed {seed} at {now:?}: {alive:?}");
                if now >= killed_at && dead.is_none() {
                    dead = alive.first().copied();
                }
                without_leader = match alive.as_slice() {
                    [] => without_leader + STEP,
                    _ => Duration::ZERO,
                };
                // Twice the lease would mean that many calls in a row failed for both others.
                assert!(
                    without_leader <= Duration::from_secs(15),
                    "seed {seed} at {now:?}"
                );
                now += STEP;
            }
            assert!(dead.is_some(), "seed {seed}: one led and was killed");
        }
    }

    #[test]
    fn a_leader_that_cannot_reach_the_store_stops_before_its_lease_is_over() {
        let second = Duration::from_secs;
        let mut process = Leadership::default();
        process.answer(second(0), second(1), Some(true));
        assert!(process.leads(second(7)));
        process.answer(second(4), second(7), None);
        assert_eq!(process.patience(second(7)), second(1));
        assert!(!process.leads(second(8)));
        assert_eq!(process.next_wake(), second(8));
        process.answer(second(8), second(9), Some(true));
        assert!(process.leads(second(15)));
        process.answer(second(12), second(12), Some(false));
        assert!(!process.leads(second(12)));
        // Its share of the checks ends in the same way.
        assert_eq!(process.shares_until(), Some(second(20)));
        process.answer(second(13), second(16), None);
        assert_eq!(process.shares_until(), Some(second(20)));
        process.answer(second(20), second(20), Some(true));
        process.hurry(second(20));
        assert_eq!(process.due(), second(21));
        process.hurry(second(22));
        assert_eq!(process.due(), second(21));
    }
}
