//! When something came, however late the thread that waited for it had a core.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use crate::clock::now;

/// What the calling thread waited for a core.
///
/// A request that came while others used both cores is read late. That is time its client waits for, so that a log which
/// begins with the reading would have too little.
pub(super) struct Core {
    /// `schedstat` of the thread; absent where the kernel does not count.
    counters: Option<File>,
}

impl Core {
    pub(super) fn of_this_thread() -> Self {
        Self {
            counters: File::open("/proc/thread-self/schedstat").ok(),
        }
    }

    /// What `wait` returns, and when that came: before the time for which the thread then waited for a core.
    pub(super) fn arrival<T>(&self, wait: impl FnOnce() -> T) -> (T, Instant) {
        let before = self.waited();
        let value = wait();
        let (read, waited) = (now(), self.waited().saturating_sub(before));
        (value, read.checked_sub(waited).unwrap_or(read))
    }

    /// All the time for which the thread was ready and not run.
    fn waited(&self) -> Duration {
        let mut text = [0; 64];
        let read = self
            .counters
            .as_ref()
            .and_then(|file| file.read_at(&mut text, 0).ok());
        read.and_then(|length| run_delay(&text[..length]))
            .unwrap_or_default()
    }
}

/// The second number: processor time, time waited for a core, and time slices, the first two in nanoseconds.
fn run_delay(text: &[u8]) -> Option<Duration> {
    let delay = std::str::from_utf8(text).ok()?.split_whitespace().nth(1)?;
    Some(Duration::from_nanos(delay.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_waited_for_a_core_is_the_second_number() {
        let delay = run_delay(b"119235 4500000 7\n");
        assert_eq!(delay, Some(Duration::from_micros(4_500)));
        assert_eq!(run_delay(b""), None);
    }

    #[test]
    fn what_came_is_not_later_than_it_was_read() {
        let core = Core::of_this_thread();
        let before = now();
        let (value, came) = core.arrival(|| 7);
        assert_eq!(value, 7);
        assert!(came <= now() && came + Duration::from_secs(1) > before);
    }
}
