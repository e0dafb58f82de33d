//! Processor time of a process to the nanosecond.
//!
//! The clock of a process (`clock_getcpuclockid(3)`) has the time of all of its threads, of those too that have ended, which
//! are in no file of theirs any more. In clock ticks alone a server with a thread for each connection would have times that are
//! up to two ticks off, which is much of a short window.

use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::Pid;
use plimsoll_model::CpuTime;

use crate::group::counters::never_back;

/// The time of one process, which never goes back.
#[derive(Debug, Default)]
pub(super) struct PreciseTime {
    /// The last result.
    last: CpuTime,
}

impl PreciseTime {
    /// The time that the process has spent until now.
    ///
    /// - `ticks`: the same in whole clock ticks, which tell user time from system time.
    pub(super) fn update(&mut self, pid: i32, ticks: CpuTime) -> CpuTime {
        self.advance(spent(pid).unwrap_or_default(), ticks)
    }

    /// The time in clock ticks, or the last result if that is more.
    pub(super) fn at_least(&mut self, ticks: CpuTime) -> CpuTime {
        self.last = never_back(self.last, ticks);
        self.last
    }

    /// - `total`: zero if the kernel does not tell.
    fn advance(&mut self, total: Duration, ticks: CpuTime) -> CpuTime {
        if total.is_zero() {
            return self.at_least(ticks);
        }
        self.last = never_back(self.last, split(total, ticks));
        self.last
    }
}

/// By the clock of the process.
fn spent(pid: i32) -> Option<Duration> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(pid)).ok()?;
    Some(clock.now().ok()?.into())
}

/// `total`, in the proportion of user and system time that clock ticks have.
fn split(total: Duration, ticks: CpuTime) -> CpuTime {
    let whole = ticks.total().as_secs_f64();
    let share = if whole > 0.0 {
        ticks.user.as_secs_f64() / whole
    } else {
        1.0
    };
    let user = total.mul_f64(share).min(total);
    CpuTime {
        user,
        system: total.saturating_sub(user),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    fn ticks(user: u32, system: u32) -> CpuTime {
        CpuTime {
            user: TICK * user,
            system: TICK * system,
        }
    }

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn less_than_a_tick_is_seen() {
        let mut time = PreciseTime::default();
        let first = time.advance(micros(4_200), ticks(0, 0));
        let second = time.advance(micros(5_000), ticks(0, 0));
        assert_eq!(second.since(first).total(), micros(800));
    }

    #[test]
    fn without_the_clock_ticks_are_used() {
        let mut time = PreciseTime::default();
        assert_eq!(time.advance(Duration::ZERO, ticks(3, 1)), ticks(3, 1));
        assert_eq!(time.advance(Duration::ZERO, ticks(3, 2)), ticks(3, 2));
    }

    #[test]
    fn neither_part_goes_back() {
        let mut time = PreciseTime::default();
        let first = time.advance(micros(12_000), ticks(1, 0));
        // By ticks alone half of it is now system time.
        let second = time.advance(micros(21_000), ticks(1, 1));
        assert!(second.user >= first.user && second.system >= first.system);
        assert_eq!(second.total(), micros(21_000));
        assert_eq!(never_back(second, first), second);
    }

    #[test]
    fn threads_that_have_ended_count() {
        /// Long enough to be spent whatever else runs.
        const EACH: Duration = Duration::from_millis(3);

        let pid = i32::try_from(std::process::id()).unwrap();
        let before = spent(pid).unwrap();
        for _ in 0..4 {
            let work = || {
                let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
                let now = || Duration::from(clock.now().unwrap());
                let until = now() + EACH;
                while now() < until {}
            };
            std::thread::spawn(work).join().unwrap();
        }
        let spent = spent(pid).unwrap().checked_sub(before).unwrap();
        assert!(spent >= 4 * EACH, "{spent:?}");
    }
}
