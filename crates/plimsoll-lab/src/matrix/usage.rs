//! The usage of each side of a trial, and the sides that were at their limit.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use plimsoll_model::{Clock, CpuTime, ResourceSample};
use plimsoll_observe::{AttachError, ProcessTree, SampleSource, TargetPlace};
use plimsoll_wire::SystemClock;
use serde::{Deserialize, Serialize};

/// Part of what a side may use from which it is at its limit.
const FULL: f64 = 0.9;

/// Part of what a side may use up to which it is idle: whatever takes time, it is not this side.
const IDLE: f64 = 0.5;

/// The usage of one side in the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// `target`, `generator`, or `upstream` and its name.
    pub name: String,
    /// Processor time over time: 1 is one core all the while.
    pub cores: f64,
    /// The same of its busiest thread.
    pub busiest_thread: f64,
    /// Cores that it may use.
    pub allowed_cores: f64,
    /// Largest resident memory seen, in bytes.
    pub peak_memory_bytes: u64,
    /// Most descriptors seen.
    pub peak_fds: u64,
    /// Most threads seen.
    pub peak_threads: u64,
}

impl Usage {
    /// Whether it can do no more: all its cores, or the one thread that all goes through.
    pub fn is_saturated(&self) -> bool {
        self.cores >= FULL * self.allowed_cores
            || self.busiest_thread >= FULL * self.allowed_cores.min(1.0)
    }

    /// Whether it has much to spare.
    pub fn is_idle(&self) -> bool {
        self.cores < IDLE * self.allowed_cores
            && self.busiest_thread < IDLE * self.allowed_cores.min(1.0)
    }

    /// Processor time in the window over its length, in percent of one core: 200 is two cores.
    pub fn cpu_percent(&self) -> f64 {
        self.cores * 100.0
    }

    /// Processor time per request in microseconds.
    pub fn cpu_us_per_request(&self, requests_per_second: f64) -> Option<f64> {
        (requests_per_second > 0.0).then(|| self.cores * 1e6 / requests_per_second)
    }
}

/// Which of `sides` were at their limit, and `machine` if only all of them together were.
///
/// - `cores`: what they share.
pub(super) fn saturated(sides: &[&Usage], cores: f64) -> Vec<String> {
    let mut found: Vec<String> = sides
        .iter()
        .filter(|side| side.is_saturated())
        .map(|side| side.name.clone())
        .collect();
    let used: f64 = sides.iter().map(|side| side.cores).sum();
    if found.is_empty() && used >= FULL * cores {
        found.push("machine".to_owned());
    }
    found
}

/// A side that is observed.
#[derive(Debug)]
pub(super) struct ObservedSide {
    name: String,
    allowed_cores: f64,
    tree: ProcessTree,
    first: Option<Reading>,
    last: Option<Reading>,
    peak_memory_bytes: u64,
    peak_fds: u64,
    peak_threads: u64,
}

#[derive(Debug)]
struct Reading {
    at: Instant,
    cpu: CpuTime,
    threads: HashMap<u32, CpuTime>,
}

impl ObservedSide {
    pub(super) fn new(name: String, allowed_cores: f64, tree: ProcessTree) -> Self {
        Self {
            name,
            allowed_cores,
            tree,
            first: None,
            last: None,
            peak_memory_bytes: 0,
            peak_fds: 0,
            peak_threads: 0,
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Looks at it; one that has ended keeps what was seen before.
    pub(super) fn look(&mut self) -> Option<ResourceSample> {
        let sample = self.tree.sample(Duration::ZERO, 0).ok()?;
        self.peak_memory_bytes = self.peak_memory_bytes.max(sample.memory.total_bytes());
        self.peak_fds = self.peak_fds.max(sample.fds);
        self.peak_threads = self.peak_threads.max(sample.threads);
        Some(sample)
    }

    /// The window begins.
    pub(super) fn begin(&mut self) {
        self.first = self.read();
    }

    /// The window ends.
    pub(super) fn end(&mut self) {
        self.last = self.read();
        // Peaks between two looks count too.
        if let Ok(peak) = self.tree.peak_memory_bytes() {
            self.peak_memory_bytes = self.peak_memory_bytes.max(peak);
        }
    }

    fn read(&mut self) -> Option<Reading> {
        let sample = self.look()?;
        Some(Reading {
            at: SystemClock.now(),
            cpu: sample.cpu,
            threads: self.tree.threads().ok()?,
        })
    }

    /// The largest memory seen so far.
    pub(super) fn peak_memory_bytes(&self) -> u64 {
        self.peak_memory_bytes
    }

    /// Its usage between the start and the end; `None` if it did not exist at both.
    pub(super) fn usage(&self) -> Option<Usage> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        let seconds = last.at.saturating_duration_since(first.at).as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let cores = |spent: CpuTime| spent.total().as_secs_f64() / seconds;
        let busiest = last.threads.iter().map(|(id, now)| {
            let before = first.threads.get(id).copied().unwrap_or_default();
            cores(now.since(before))
        });
        Some(Usage {
            name: self.name.clone(),
            cores: cores(last.cpu.since(first.cpu)),
            busiest_thread: busiest.fold(0.0, f64::max),
            allowed_cores: self.allowed_cores,
            peak_memory_bytes: self.peak_memory_bytes,
            peak_fds: self.peak_fds,
            peak_threads: self.peak_threads,
        })
    }
}

/// A server that no trial starts, and that is observed where it runs.
#[derive(Debug)]
pub(super) struct ObservedUpstream {
    name: String,
    source: Box<dyn SampleSource>,
    allowed_cores: f64,
    /// Whether it uses cores of this machine.
    is_here: bool,
    first: Option<(Instant, ResourceSample)>,
    last: Option<(Instant, ResourceSample)>,
    /// Why a sample is missing.
    problem: Option<String>,
}

impl ObservedUpstream {
    /// - `machine_cores`: of this machine.
    pub(super) fn open(
        name: &str,
        place: &TargetPlace,
        machine_cores: usize,
    ) -> Result<Self, AttachError> {
        let source = place.source()?;
        Ok(Self {
            name: format!("upstream {name}"),
            allowed_cores: source.cores().unwrap_or(machine_cores) as f64,
            is_here: matches!(place, TargetPlace::Here(_)),
            source,
            first: None,
            last: None,
            problem: None,
        })
    }

    /// The window begins.
    pub(super) fn begin(&mut self) {
        self.first = self.read();
    }

    /// The window ends.
    pub(super) fn end(&mut self) {
        self.last = self.read();
    }

    /// Why it has no usage; `None` if it has.
    pub(super) fn problem(&self) -> Option<String> {
        let problem = self.problem.as_ref()?;
        Some(format!("the {} gave no sample: {problem}", self.name))
    }

    /// Whether it uses cores of this machine.
    pub(super) fn is_here(&self) -> bool {
        self.is_here
    }

    fn read(&mut self) -> Option<(Instant, ResourceSample)> {
        let now = SystemClock.now();
        match self.source.sample(Duration::ZERO, 0) {
            Ok(sample) => Some((now + sample.at, sample)),
            Err(error) => {
                self.problem = Some(error.to_string());
                None
            }
        }
    }

    /// Its usage between the start and the end. Its threads are not known.
    pub(super) fn usage(&self) -> Option<Usage> {
        let ((began, first), (ended, last)) = (self.first?, self.last?);
        let seconds = ended.saturating_duration_since(began).as_secs_f64();
        let memory = |sample: &ResourceSample| sample.memory.total_bytes();
        (seconds > 0.0).then(|| Usage {
            name: self.name.clone(),
            cores: last.cpu.since(first.cpu).total().as_secs_f64() / seconds,
            busiest_thread: 0.0,
            allowed_cores: self.allowed_cores,
            peak_memory_bytes: memory(&first).max(memory(&last)),
            peak_fds: first.fds.max(last.fds),
            peak_threads: first.threads.max(last.threads),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(name: &str, cores: f64, busiest_thread: f64, allowed_cores: f64) -> Usage {
        Usage {
            name: name.to_owned(),
            cores,
            busiest_thread,
            allowed_cores,
            peak_memory_bytes: 0,
            peak_fds: 0,
            peak_threads: 0,
        }
    }

    #[test]
    fn who_was_the_limit_is_reported_by_name() {
        let target = usage("target", 0.4, 0.2, 2.0);
        for (generator, expected) in [
            // One busy thread is the limit, whatever other cores are idle.
            (usage("generator", 0.95, 0.95, 2.0), vec!["generator"]),
            (usage("generator", 1.85, 0.5, 2.0), vec!["generator"]),
            // Neither alone, but no core is left.
            (usage("generator", 1.5, 0.8, 2.0), vec!["machine"]),
            (usage("generator", 0.3, 0.3, 2.0), vec![]),
            // Half a core is all that it may use.
            (usage("generator", 0.46, 0.1, 0.5), vec!["generator"]),
        ] {
            assert_eq!(saturated(&[&target, &generator], 2.0), expected);
        }
    }

    #[test]
    fn idle_is_far_from_saturated() {
        assert!(usage("target", 0.1, 0.1, 2.0).is_idle());
        assert!(!usage("target", 0.6, 0.6, 2.0).is_idle());
        assert!(!usage("target", 0.4, 0.4, 0.5).is_idle());
    }

    #[test]
    fn a_process_that_burns_is_seen_to() {
        let tree = ProcessTree::generator().unwrap();
        let mut watched = ObservedSide::new("target".to_owned(), 1.0, tree);
        watched.begin();
        let begun = SystemClock.now();
        let mut sum = 0_u64;
        while begun.elapsed() < Duration::from_millis(200) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        watched.end();
        let usage = watched.usage().unwrap();
        assert!(usage.cores > 0.0 && usage.busiest_thread > 0.0, "{usage:?}");
        assert!(usage.peak_memory_bytes > 0);
    }
}
