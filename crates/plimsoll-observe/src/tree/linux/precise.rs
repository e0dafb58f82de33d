//! Processor time of a process to the nanosecond, from those of its threads.
//!
//! `/proc/PID/task/TID/schedstat` has the time of a thread that runs (sched-stats.rst); what threads had spent that
//! have ended is only in the clock ticks of the process.

use std::collections::HashMap;
use std::time::Duration;

use plimsoll_model::CpuTime;
use procfs::process::Process;

use crate::group::counters::never_back;

/// The time of one process, which never goes back.
#[derive(Debug, Default)]
pub(super) struct PreciseTime {
    /// The threads of the last reading.
    threads: HashMap<i32, Duration>,
    /// Spent by threads that have ended.
    ended: Option<Duration>,
    /// The last result.
    last: CpuTime,
}

impl PreciseTime {
    /// The time that `process` has spent until now.
    ///
    /// - `ticks`: the same in whole clock ticks, each of length `tick`.
    pub(super) fn update(&mut self, process: &Process, ticks: CpuTime, tick: Duration) -> CpuTime {
        let tasks = process.tasks().into_iter().flatten().flatten();
        let read = tasks.filter_map(|task| {
            let spent = task.schedstat().ok()?.sum_exec_runtime;
            Some((task.tid, Duration::from_nanos(spent)))
        });
        self.advance(read.collect(), ticks, tick)
    }

    /// The time in clock ticks, or the last result if that is more.
    pub(super) fn at_least(&mut self, ticks: CpuTime) -> CpuTime {
        self.last = never_back(self.last, ticks);
        self.last
    }

    fn advance(
        &mut self,
        threads: HashMap<i32, Duration>,
        ticks: CpuTime,
        tick: Duration,
    ) -> CpuTime {
        let running: Duration = threads.values().sum();
        if running.is_zero() {
            // The kernel does not count it.
            return self.at_least(ticks);
        }
        let whole = ticks.total();
        let gone = self
            .threads
            .iter()
            .filter(|(id, _)| !threads.contains_key(id));
        let gone: Duration = gone.map(|(_, spent)| *spent).sum();
        // What had ended before the first reading is known in ticks.
        let mut ended = self.ended.unwrap_or_else(|| whole.saturating_sub(running)) + gone;
        // Both kinds of time are truncated, each by less than a tick. A larger gap is what ended threads
        // had spent since they were last read.
        if whole > ended + running + 2 * tick {
            ended = whole.saturating_sub(running);
        }
        self.ended = Some(ended);
        self.threads = threads;
        self.last = never_back(self.last, split(ended + running, ticks));
        self.last
    }
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

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn ticks(user: u32, system: u32) -> CpuTime {
        CpuTime {
            user: TICK * user,
            system: TICK * system,
        }
    }

    fn threads(spent: &[(i32, u64)]) -> HashMap<i32, Duration> {
        spent
            .iter()
            .map(|(id, time)| (*id, micros(*time)))
            .collect()
    }

    #[test]
    fn less_than_a_tick_is_seen() {
        let mut time = PreciseTime::default();
        let first = time.advance(threads(&[(1, 4_200)]), ticks(0, 0), TICK);
        let second = time.advance(threads(&[(1, 4_900), (2, 100)]), ticks(0, 0), TICK);
        assert_eq!(second.since(first).total(), micros(800));
    }

    #[test]
    fn what_ended_threads_had_spent_stays() {
        let mut time = PreciseTime::default();
        // 30 ms had been spent by threads that are no more.
        let first = time.advance(threads(&[(1, 1_000), (2, 9_000)]), ticks(2, 2), TICK);
        assert_eq!(first.total(), micros(40_000));
        let second = time.advance(threads(&[(1, 1_500)]), ticks(2, 2), TICK);
        assert_eq!(second.since(first).total(), micros(500));
        // One that came and went between two readings is seen in ticks alone.
        let third = time.advance(threads(&[(1, 1_500)]), ticks(4, 4), TICK);
        assert_eq!(third.total(), micros(80_000));
        assert!(third.user >= second.user && third.system >= second.system);
    }

    #[test]
    fn without_the_counters_ticks_are_used() {
        let mut time = PreciseTime::default();
        assert_eq!(time.advance(HashMap::new(), ticks(3, 1), TICK), ticks(3, 1));
        assert_eq!(
            time.advance(threads(&[(1, 0)]), ticks(3, 2), TICK),
            ticks(3, 2)
        );
    }

    #[test]
    fn neither_part_goes_back() {
        let mut time = PreciseTime::default();
        let first = time.advance(threads(&[(1, 12_000)]), ticks(1, 0), TICK);
        // By ticks alone half of it is now system time.
        let second = time.advance(threads(&[(1, 21_000)]), ticks(1, 1), TICK);
        assert!(second.user >= first.user && second.system >= first.system);
        assert_eq!(second.total(), micros(21_000));
        assert_eq!(never_back(second, first), second);
    }
}
