//! Waits of one thread, from what the kernel writes when it is switched away from and back to.
//!
//! When a thread leaves its core, the kernel takes a sample of its stack (the software event `context-switches`, period 1) and
//! then writes a record of the switch; when the thread gets a core again, another one (`PERF_RECORD_SWITCH`,
//! `perf_event_open(2)`). The time between the two is a wait at that stack. A thread that was preempted waits for nothing but a
//! core, and is left out.

/// `PERF_RECORD_SWITCH`.
pub(super) const SWITCH: u32 = 14;

/// `PERF_RECORD_MISC_SWITCH_OUT`, and that with `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`.
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// The wait that a thread is in.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Since when, in nanoseconds of the monotonic clock, and the call chain.
    since: Option<(u64, Vec<u64>)>,
}

impl Waiting {
    /// The thread leaves its core.
    pub(super) fn begin(&mut self, time: u64, chain: Vec<u64>) {
        self.since = Some((time, chain));
    }

    /// The kernel has switched from the thread or to it: the wait that is over, if one is, with its length in microseconds.
    ///
    /// - `misc`: of the record's header.
    pub(super) fn switch(&mut self, misc: u16, time: u64) -> Option<(Vec<u64>, u64)> {
        if misc & OUT == 0 {
            return self.end(time);
        }
        if misc & PREEMPTED != 0 {
            self.since = None;
        }
        None
    }

    /// The wait that lasts until `time`, as when the profile ends.
    pub(super) fn end(&mut self, time: u64) -> Option<(Vec<u64>, u64)> {
        let (since, chain) = self.since.take()?;
        let micros = time.saturating_sub(since) / 1000;
        (micros > 0).then_some((chain, micros))
    }

    /// Records were lost: what the thread does now is not known.
    pub(super) fn forget(&mut self) {
        self.since = None;
    }
}

/// The time of a record of a switch, which has nothing but the id of its thread and the time (`PERF_SAMPLE_TID`,
/// `PERF_SAMPLE_TIME`).
pub(super) fn time_of(data: &[u8]) -> Option<u64> {
    let time = data.get(8..16)?;
    Some(u64::from_ne_bytes(time.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_from_the_switch_away_to_the_switch_back() {
        let mut waiting = Waiting::default();
        // It was waiting when the profile began.
        assert_eq!(waiting.switch(0, 1_000), None);
        waiting.begin(5_000, vec![7]);
        assert_eq!(waiting.switch(OUT, 5_100), None);
        assert_eq!(waiting.switch(0, 12_000), Some((vec![7], 7)));
        assert_eq!(waiting.switch(0, 13_000), None);
        waiting.begin(20_000, vec![8]);
        assert_eq!(waiting.switch(OUT | PREEMPTED, 20_100), None);
        assert_eq!(waiting.switch(0, 90_000), None, "it waited for a core");
        waiting.begin(100_000, vec![9]);
        waiting.forget();
        assert_eq!(waiting.end(200_000), None);
        waiting.begin(200_000, vec![9]);
        assert_eq!(waiting.end(203_000), Some((vec![9], 3)));
    }

    #[test]
    fn the_time_of_a_switch_is_behind_its_thread() {
        let mut data = vec![0; 8];
        data.extend(77_u64.to_ne_bytes());
        assert_eq!(time_of(&data), Some(77));
        assert_eq!(time_of(&data[..12]), None);
    }
}
