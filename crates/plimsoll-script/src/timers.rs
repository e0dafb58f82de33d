//! Timers as data: when which one is due.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Timers with what each carries, in the order in which they are due.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    due: BTreeMap<(Instant, u64), Entry<T>>,
    /// When each is due, by its id.
    at: HashMap<u64, Instant>,
    next_id: u64,
}

#[derive(Debug)]
struct Entry<T> {
    payload: T,
    /// Of a timer that repeats.
    interval: Option<Duration>,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            at: HashMap::new(),
            next_id: 1,
        }
    }
}

impl<T: Clone> Timers<T> {
    /// Adds a timer and returns its id.
    ///
    /// - `repeats`: whether it is due again and again, every `delay`.
    pub(crate) fn add(&mut self, now: Instant, delay: Duration, repeats: bool, payload: T) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let interval = repeats.then_some(delay);
        self.insert(id, now + delay, Entry { payload, interval });
        id
    }

    /// Removes a timer; one that is gone already does not matter.
    pub(crate) fn remove(&mut self, id: u64) {
        if let Some(at) = self.at.remove(&id) {
            self.due.remove(&(at, id));
        }
    }

    /// The next timer that is due. One that repeats is set again, from now.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<T> {
        let (&(at, id), _) = self.due.first_key_value()?;
        if at > now {
            return None;
        }
        let (_, entry) = self.due.pop_first()?;
        self.at.remove(&id);
        let payload = entry.payload.clone();
        if let Some(interval) = entry.interval {
            // An interval of 0 would never let the loop wait.
            let interval = interval.max(Duration::from_millis(1));
            self.insert(id, now + interval, entry);
        }
        Some(payload)
    }

    /// When the next timer is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        let ((at, _), _) = self.due.first_key_value()?;
        Some(*at)
    }

    pub(crate) fn clear(&mut self) {
        self.due.clear();
        self.at.clear();
    }

    fn insert(&mut self, id: u64, at: Instant, entry: Entry<T>) {
        self.at.insert(id, at);
        self.due.insert((at, id), entry);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock as _;
    use plimsoll_testkit::VirtualClock;

    use super::*;

    #[test]
    fn timers_are_due_in_order_and_intervals_repeat() {
        let now = VirtualClock::new().now();
        let at = |millis| now + Duration::from_millis(millis);
        let mut timers = Timers::default();
        timers.add(now, Duration::from_millis(20), false, "late");
        timers.add(now, Duration::from_millis(10), false, "first");
        timers.add(now, Duration::from_millis(10), false, "second");
        let every = timers.add(now, Duration::from_millis(15), true, "every");
        assert_eq!(timers.pop_due(at(9)), None);
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.pop_due(at(10)), Some("first"));
        assert_eq!(timers.pop_due(at(10)), Some("second"));
        assert_eq!(timers.pop_due(at(16)), Some("every"));
        assert_eq!(timers.pop_due(at(30)), Some("late"));
        assert_eq!(timers.pop_due(at(31)), Some("every"));
        timers.remove(every);
        assert_eq!(timers.next(), None);
    }
}
