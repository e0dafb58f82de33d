//! Processor time of the calling thread, to the nanosecond.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time that the calling thread has used, user and system together.
pub fn of_this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Time for which the calling thread was ready to run and no core ran it, since it began; `None` where the
/// kernel does not count it (`CONFIG_SCHED_INFO`, sched-stats.rst).
pub fn run_delay_of_this_thread() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let before = of_this_thread();
        let mut sum = 0_u64;
        while of_this_thread() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(of_this_thread() > before);
    }
}
