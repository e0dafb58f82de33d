//! Processor time of the calling thread, to the nanosecond.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time that the calling thread has used, user and system together.
pub fn of_this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
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
