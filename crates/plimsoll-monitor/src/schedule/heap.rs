//! The due times of all monitors in one heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

/// When the checks of one monitor are due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// From one intended start to the next; above zero.
    pub interval: Duration,
    /// The share of the interval by which a start may be late on purpose, `0.0..=1.0`.
    pub jitter: f64,
    /// Treatment of missed starts, for example because the machine slept.
    pub catch_up: CatchUp,
}

/// Treatment of missed starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// One check is made at once; the others are counted as missed.
    #[default]
    Once,
    /// No check is made before the next regular start; all are counted as missed.
    Skip,
}

/// A check that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due<K> {
    /// The monitor.
    pub key: K,
    /// When it was meant to start.
    pub intended: Instant,
    /// Intended starts before it that were missed.
    pub missed: u64,
}

/// The due times of all monitors.
///
/// Changes apply to one monitor at a time; an entry of the heap that a change outdated is skipped when it comes up.
/// Due times are on a monotonic clock, so steps of the date do not move them.
#[derive(Debug)]
pub struct Scheduler<K> {
    heap: BinaryHeap<Reverse<(Instant, u64, K)>>,
    /// Keys are assigned here, so a fast hash is safe.
    entries: HashMap<K, Entry, RandomState>,
    random: fastrand::Rng,
    generation: u64,
}

#[derive(Debug)]
struct Entry {
    timing: Timing,
    /// The regular start, before jitter.
    base: Instant,
    /// Of its only valid entry in the heap.
    generation: u64,
    is_first: bool,
}

impl<K: Copy + Ord + Hash> Scheduler<K> {
    /// Empty.
    ///
    /// - `seed`: of the jitter; the same seed gives the same starts.
    pub fn new(seed: u64) -> Self {
        Self {
            heap: BinaryHeap::new(),
            entries: HashMap::default(),
            random: fastrand::Rng::with_seed(seed),
            generation: 0,
        }
    }

    /// Monitors that are scheduled.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no monitor is scheduled.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// When [`pop`](Self::pop) next has something; `None` if nothing is scheduled.
    pub fn next_wake(&mut self) -> Option<Instant> {
        while let Some(Reverse((due, generation, key))) = self.heap.peek() {
            if self.is_valid(key, *generation) {
                return Some(*due);
            }
            self.heap.pop();
        }
        None
    }

    /// Schedules a monitor, or changes its timing. A monitor whose interval stays keeps its due time.
    ///
    /// - `spread`: the first check starts at a random moment within it.
    pub fn set(&mut self, key: K, timing: Timing, spread: Duration, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&key)
            && entry.timing.interval == timing.interval
        {
            entry.timing = timing;
            return;
        }
        let spread = spread.min(timing.interval);
        let base = now + self.share_of(spread, 1.0);
        let generation = self.push(key, base);
        self.entries.insert(
            key,
            Entry {
                timing,
                base,
                generation,
                is_first: true,
            },
        );
    }

    /// Schedules no more checks of a monitor; whether any was scheduled.
    pub fn remove(&mut self, key: &K) -> bool {
        self.entries.remove(key).is_some()
    }

    /// The next check that is due at `now`; call it until it returns nothing.
    pub fn pop(&mut self, now: Instant) -> Option<Due<K>> {
        loop {
            if self.next_wake()? > now {
                return None;
            }
            let Reverse((_, _, key)) = self.heap.pop()?;
            let draw = self.random.f64();
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            let Timing {
                interval,
                jitter,
                catch_up,
            } = entry.timing;
            let late = now.saturating_duration_since(entry.base);
            let missed = (late.as_nanos() / interval.as_nanos().max(1)).min(u128::from(u32::MAX));
            let missed = u32::try_from(missed).unwrap_or(u32::MAX);
            let intended = entry.base + interval * missed;
            // Monitors that were added together would otherwise be due together for ever.
            let step = if std::mem::take(&mut entry.is_first) {
                interval.mul_f64(0.5 + draw / 2.0)
            } else {
                interval
            };
            entry.base = intended + step;
            let base = entry.base;
            let due = base + self.share_of(interval, jitter);
            let generation = self.push(key, due);
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.generation = generation;
            }
            if missed > 0 && catch_up == CatchUp::Skip {
                continue;
            }
            return Some(Due {
                key,
                intended,
                missed: u64::from(missed),
            });
        }
    }

    /// Makes a monitor due at once, and an interval after that. Whether it is scheduled.
    pub fn bring_forward(&mut self, key: K, now: Instant) -> bool {
        self.move_to(key, now)
    }

    /// Makes a monitor whose check found no room due again within half an interval, at random, and an interval after that. At
    /// the same time in every round, it might find none for ever.
    pub fn put_off(&mut self, key: K, now: Instant) -> bool {
        let Some(entry) = self.entries.get(&key) else {
            return false;
        };
        let quarter = entry.timing.interval / 4;
        let due = now + quarter + self.share_of(quarter, 1.0);
        self.move_to(key, due)
    }

    fn move_to(&mut self, key: K, due: Instant) -> bool {
        if !self.entries.contains_key(&key) {
            return false;
        }
        let generation = self.push(key, due);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.base = due;
            entry.generation = generation;
        }
        true
    }

    fn is_valid(&self, key: &K, generation: u64) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| entry.generation == generation)
    }

    fn push(&mut self, key: K, due: Instant) -> u64 {
        self.generation += 1;
        self.heap.push(Reverse((due, self.generation, key)));
        self.generation
    }

    fn share_of(&mut self, whole: Duration, most: f64) -> Duration {
        whole.mul_f64(self.random.f64() * most.clamp(0.0, 1.0))
    }
}
