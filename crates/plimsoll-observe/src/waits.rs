//! What the threads of a target wait for, and which of them computes most, over a stretch of time.
//!
//! Every 50 ms each thread's system call is read from `/proc/TID/syscall` (proc(5)); a thread that waits for a lock is in
//! `futex(2)`, with the value that marks a lock as contended. So that of an idle worker, which waits for work, is no lock.
//! Reading it takes the right to trace the process.
//!
//! Linux only; elsewhere there is nothing to see.

mod connections;

mod memory;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

use self::connections::{Listeners, OpenFiles};
use self::memory::MemoryGroup;
use super::ProcessTree;

/// Twenty samples a second are enough for a share, and cost little even with a hundred threads.
const INTERVAL: Duration = Duration::from_millis(50);

/// Threads that are looked at in a sample.
const MOST_THREADS: usize = 512;

/// What was seen of the threads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Waits {
    /// Samples in which the system calls of threads could be read; zero where that is not permitted.
    pub samples: u32,
    /// The lock that was waited for most often, if there was any.
    pub lock: Option<LockWaits>,
    /// The thread that computed most.
    pub busiest: Option<BusyThread>,
    /// How the memory limit of the control group was felt, if it has one.
    pub memory: Option<MemoryStall>,
    /// The limit on open files of a process that had so many, if one had: it accepts no more connections.
    pub full_files: Option<u64>,
    /// Connections that found the queue of a listener full, in the network namespace of the target.
    pub overflows: u64,
}

/// Waiting for one lock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LockWaits {
    /// Its place in the memory of the process.
    pub address: u64,
    /// Share of the samples in which at least one thread waited for it. A lock that is always waited for is always held.
    pub share: f64,
    /// Threads that waited for it, on average over all samples.
    pub threads: f64,
}

/// A thread and how much of one core it used.
#[derive(Debug, Clone, PartialEq)]
pub struct BusyThread {
    /// As the kernel has it.
    pub name: String,
    /// Share of one core, in percent.
    pub percent: f64,
}

/// What a memory limit did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryStall {
    /// The limit in bytes.
    pub limit_bytes: u64,
    /// How often the group was at its limit and memory had to be reclaimed.
    pub reached: u64,
    /// Share of the time in which some process waited for memory, where the kernel counts that.
    pub waited: Option<f64>,
}

/// A thread that looks at a target until it is stopped.
#[derive(Debug)]
pub struct WaitSampler {
    stop: SyncSender<()>,
    thread: JoinHandle<Waits>,
}

impl WaitSampler {
    /// Begins to look at the threads of `tree`, the root of which is the process `pid`.
    pub fn start(pid: u32, tree: ProcessTree) -> io::Result<Self> {
        let (stop, inbox) = sync_channel(0);
        let thread = thread::Builder::new()
            .name("waits".to_owned())
            .spawn(move || watch(pid, tree, &inbox))?;
        Ok(Self { stop, thread })
    }

    /// Ends it.
    pub fn stop(self) -> Waits {
        // The thread ends when nothing can be sent to it any more.
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

fn watch(pid: u32, mut tree: ProcessTree, inbox: &Receiver<()>) -> Waits {
    let mut tally = Tally::default();
    let memory = MemoryGroup::find(pid);
    let listeners = Listeners::find(pid);
    let mut files = OpenFiles::default();
    let start = SystemClock.now();
    let before = tree.threads().unwrap_or_default();
    while let Err(RecvTimeoutError::Timeout) = inbox.recv_timeout(INTERVAL) {
        let Ok(threads) = tree.thread_ids() else {
            break;
        };
        files.look(&threads);
        let calls = threads.into_iter().take(MOST_THREADS).map(|thread| {
            let call = fs::read_to_string(format!("/proc/{thread}/syscall"));
            call.ok().map(|call| lock_waited_for(&call))
        });
        tally.add(calls);
    }
    let after = tree.threads().unwrap_or_default();
    let elapsed = length_since(start);
    let used = after.into_iter().map(|(thread, spent)| {
        let before = before.get(&thread).copied().unwrap_or_default();
        (
            thread,
            spent.since(before).total().as_secs_f64() / elapsed * 100.0,
        )
    });
    let busiest = used.max_by(|one, other| one.1.total_cmp(&other.1));
    Waits {
        samples: tally.samples,
        lock: tally.most(),
        busiest: busiest.map(|(thread, percent)| BusyThread {
            name: fs::read_to_string(format!("/proc/{thread}/comm"))
                .unwrap_or_default()
                .trim_end()
                .to_owned(),
            percent,
        }),
        memory: memory.and_then(|memory| memory.stall(elapsed)),
        full_files: files.full(),
        overflows: listeners.map_or(0, Listeners::overflows),
    }
}

fn length_since(start: Instant) -> f64 {
    let length = SystemClock.now().saturating_duration_since(start);
    length.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[derive(Debug, Default)]
struct Tally {
    samples: u32,
    /// By address: samples with a waiting thread, and waiting threads in all.
    locks: HashMap<u64, (u32, u32)>,
}

impl Tally {
    /// - `calls`: for each thread the lock that it waits for, if it does; `None` if its call could not be read.
    fn add(&mut self, calls: impl Iterator<Item = Option<Option<u64>>>) {
        let mut waiting: HashMap<u64, u32> = HashMap::new();
        let mut is_readable = false;
        for call in calls.flatten() {
            is_readable = true;
            if let Some(address) = call {
                *waiting.entry(address).or_default() += 1;
            }
        }
        self.samples += u32::from(is_readable);
        for (address, threads) in waiting {
            let lock = self.locks.entry(address).or_default();
            *lock = (lock.0 + 1, lock.1 + threads);
        }
    }

    fn most(&self) -> Option<LockWaits> {
        let most = self
            .locks
            .iter()
            .max_by_key(|(address, seen)| (**seen, **address));
        most.map(|(address, (samples, threads))| LockWaits {
            address: *address,
            share: f64::from(*samples) / f64::from(self.samples.max(1)),
            threads: f64::from(*threads) / f64::from(self.samples.max(1)),
        })
    }
}

#[cfg(target_arch = "x86_64")]
const FUTEX: u64 = 202;
#[cfg(not(target_arch = "x86_64"))]
const FUTEX: u64 = 98;

/// The address of the lock that a thread waits for, from its `/proc/TID/syscall`: a number and arguments in hexadecimal.
///
/// The value that `futex(2)` expects at the address separates locks from other waits: glibc's mutexes and those of Rust's library
/// have 2 there while others wait, musl's the owner with the highest bit. Condition variables have counters, parked threads -1,
/// Go's idle threads 0.
fn lock_waited_for(call: &str) -> Option<u64> {
    const COMMANDS: u64 = 0x7f;
    const WAIT: u64 = 0;
    const WAIT_BITSET: u64 = 9;
    const LOCK_PI: u64 = 6;
    const LOCK_PI2: u64 = 13;
    let mut words = call.split_whitespace();
    if words.next()?.parse() != Ok(FUTEX) {
        return None;
    }
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (address, operation, expected) = (argument()?, argument()?, argument()?);
    let expected = expected & u64::from(u32::MAX);
    let is_contended = expected == 2 || (0x8000_0001..0xc000_0000).contains(&expected);
    let is_lock = match operation & COMMANDS {
        LOCK_PI | LOCK_PI2 => true,
        WAIT | WAIT_BITSET => is_contended,
        _ => false,
    };
    is_lock.then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn futex(operation: u32, expected: u32) -> String {
        format!("{FUTEX} 0x7f00 {operation:#x} {expected:#x} 0x0 0x0 0x0 0x7ffd 0x7f12\n")
    }

    #[test]
    fn a_lock_is_told_from_other_waits() {
        for (call, is_lock) in [
            ("running\n".to_owned(), false),
            (
                "0 0x3 0x7f00 0x1000 0x0 0x0 0x0 0x7ffd 0x7f12\n".to_owned(),
                false,
            ),
            ("-1 0x7ffd 0x7f12\n".to_owned(), false),
            // pthread_mutex_lock of glibc, Mutex of Rust's library, musl's, and one with priority inheritance.
            (futex(0x80, 2), true),
            (futex(0x89, 2), true),
            (futex(0x80, 0x8000_1234), true),
            (futex(0x86, 0), true),
            // pthread_cond_wait, a parked thread, an idle thread of Go, a wake-up.
            (futex(0x189, 7), false),
            (futex(0x89, u32::MAX), false),
            (futex(0x80, 0), false),
            (futex(0x81, 2), false),
        ] {
            assert_eq!(lock_waited_for(&call).is_some(), is_lock, "{call}");
        }
        assert_eq!(lock_waited_for(&futex(0x80, 2)), Some(0x7f00));
    }

    #[test]
    fn the_lock_that_most_wait_for_is_found() {
        let mut tally = Tally::default();
        tally.add([Some(None), Some(Some(7)), Some(Some(7)), None].into_iter());
        tally.add([Some(None), Some(Some(7)), Some(Some(9)), None].into_iter());
        tally.add([Some(None), Some(None)].into_iter());
        tally.add([None, None].into_iter());
        assert_eq!(tally.samples, 3, "one could not be read");
        let most = tally.most().unwrap();
        assert_eq!(most.address, 7);
        assert!((most.share - 2.0 / 3.0).abs() < 1e-9);
        assert!((most.threads - 1.0).abs() < 1e-9);
        assert_eq!(Tally::default().most(), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_of_a_running_process_is_seen() {
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::sync::{Arc, Mutex};

        use plimsoll_testkit::eventually;

        let lock = Arc::new(Mutex::new(()));
        let ends = Arc::new(AtomicBool::new(false));
        let held = lock.lock().unwrap();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let (lock, ends) = (Arc::clone(&lock), Arc::clone(&ends));
                thread::spawn(
                    move || while !ends.load(Ordering::Relaxed) && lock.lock().is_err() {},
                )
            })
            .collect();
        let own = std::process::id();
        let attempt = || {
            let sampler = WaitSampler::start(own, ProcessTree::attach(own).unwrap()).unwrap();
            thread::park_timeout(INTERVAL * 3);
            let waits = sampler.stop();
            // Where tracing is not permitted there is nothing to see.
            waits.samples == 0 || waits.lock.is_some_and(|lock| lock.threads >= 2.5)
        };
        eventually(attempt);
        ends.store(true, Ordering::Relaxed);
        drop(held);
        for thread in waiting {
            thread.join().unwrap();
        }
    }
}
