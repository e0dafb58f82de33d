//! Perf events on every thread, and what they deliver.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};
use plimsoll_load::Interrupt;
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

use super::mappings::{self, Mapping};
use super::result::Thread;
use super::symbols::Symbols;
use super::{Frame, Profile, ProfileError, ProfilePlan};

/// How often threads are looked for and samples taken over.
const BEAT: Duration = Duration::from_millis(50);

/// Pages that hold the samples of a thread between two beats.
const PAGES: usize = 32;

/// From here on, an entry of a call chain says whose addresses follow (`PERF_CONTEXT_MAX`).
const CONTEXTS: u64 = (-4095_i64).cast_unsigned();
const CONTEXT_KERNEL: u64 = (-128_i64).cast_unsigned();

pub(super) fn take(plan: &ProfilePlan, interrupt: &Interrupt) -> Result<Profile, ProfileError> {
    let mut sampling = Sampling::new(plan);
    for pid in &plan.pids {
        if !is_there(*pid) {
            return Err(ProfileError::NoProcess(*pid));
        }
    }
    let start = SystemClock.now();
    let end = start + plan.duration;
    sampling.look_for_threads()?;
    let mut now = start;
    while now < end && !interrupt.is_asked() && plan.pids.iter().any(|pid| is_there(*pid)) {
        thread::park_timeout(BEAT.min(end - now));
        sampling.collect();
        // One that cannot be watched has ended meanwhile, or is of somebody else.
        sampling.look_for_threads().ok();
        now = SystemClock.now();
    }
    sampling.collect();
    Ok(sampling.finish(start, now))
}

fn is_there(pid: u32) -> bool {
    // What has ended and was not waited for is there, but runs no more.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

struct Sampling<'a> {
    plan: &'a ProfilePlan,
    /// Cleared once the kernel has refused to show its own functions.
    with_kernel: bool,
    threads: BTreeMap<(u32, u32), Watched>,
    /// What each process had mapped at any time.
    mappings: HashMap<u32, Vec<Mapping>>,
    lost: u64,
}

struct Watched {
    sampler: Sampler,
    name: String,
    /// Counts by raw call chain, contexts included.
    chains: HashMap<Vec<u64>, u64>,
}

impl<'a> Sampling<'a> {
    fn new(plan: &'a ProfilePlan) -> Self {
        Self {
            plan,
            with_kernel: true,
            threads: BTreeMap::new(),
            mappings: HashMap::new(),
            lost: 0,
        }
    }

    /// Watches threads that are new; tells the first reason why one cannot be.
    fn look_for_threads(&mut self) -> Result<(), ProfileError> {
        for pid in family(&self.plan.pids) {
            for tid in numbers(&format!("/proc/{pid}/task")) {
                if let std::collections::btree_map::Entry::Vacant(entry) =
                    self.threads.entry((pid, tid))
                {
                    let sampler = open(tid, self.plan.frequency, &mut self.with_kernel)
                        .map_err(|source| refused(pid, source))?;
                    let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
                    entry.insert(Watched {
                        sampler,
                        name: name.unwrap_or_default().trim_end().to_owned(),
                        chains: HashMap::new(),
                    });
                }
            }
            if let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) {
                let known = self.mappings.entry(pid).or_default();
                mappings::merge(known, mappings::parse(&maps));
            }
        }
        Ok(())
    }

    /// Takes over what the kernel has noted.
    fn collect(&mut self) {
        for watched in self.threads.values_mut() {
            while let Some(record) = watched.sampler.next_record() {
                match record.parse_record() {
                    Ok(Record::Sample(sample)) => {
                        let chain = sample.callchain().map(<[u64]>::to_vec).unwrap_or_default();
                        *watched.chains.entry(chain).or_default() += 1;
                    }
                    Ok(Record::Lost(lost)) => self.lost += lost.lost,
                    _ => {}
                }
            }
        }
    }

    /// Names everything.
    fn finish(self, start: Instant, end: Instant) -> Profile {
        let mut symbols = Symbols::default();
        let mut threads = BTreeMap::new();
        for ((pid, tid), watched) in self.threads {
            let mappings = self
                .mappings
                .get(&pid)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let mut thread = Thread {
                name: watched.name,
                ..Thread::default()
            };
            for (chain, count) in watched.chains {
                let stack = stack(&chain, pid, mappings, &mut symbols);
                *thread.stacks.entry(stack).or_default() += count;
            }
            threads.insert((pid, tid), thread);
        }
        Profile {
            duration: end.saturating_duration_since(start),
            frequency: self.plan.frequency,
            has_kernel: self.with_kernel,
            lost: self.lost,
            threads,
        }
    }
}

/// The names of a call chain, the outermost first.
fn stack(chain: &[u64], pid: u32, mappings: &[Mapping], symbols: &mut Symbols) -> Vec<Rc<Frame>> {
    let mut frames = Vec::new();
    let mut is_kernel = false;
    let mut is_innermost = true;
    for address in chain {
        if *address >= CONTEXTS {
            is_kernel = *address == CONTEXT_KERNEL;
            // The first address in either is where it was, the others are where it will return to.
            is_innermost = true;
            continue;
        }
        let address = if is_innermost {
            *address
        } else {
            // A call may be the last instruction of its function.
            address.saturating_sub(1)
        };
        is_innermost = false;
        if is_kernel {
            frames.push(Rc::new(symbols.kernel(address)));
        } else {
            let named = symbols.user(pid, mappings, address);
            frames.extend(named.iter().cloned().map(Rc::new));
        }
    }
    frames.reverse();
    frames
}

fn open(tid: u32, frequency: u64, with_kernel: &mut bool) -> io::Result<Sampler> {
    let attempt = |with_kernel: bool| {
        let mut builder = Builder::new(Software::CPU_CLOCK);
        let pid = i32::try_from(tid).map_err(io::Error::other)?;
        builder
            .observe_pid(pid)
            .any_cpu()
            .sample_frequency(frequency)
            .sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::CALLCHAIN)
            .exclude_hv(true)
            .exclude_kernel(!with_kernel);
        let mut sampler = builder.build()?.sampled(PAGES)?;
        sampler.enable()?;
        Ok(sampler)
    };
    let first = attempt(*with_kernel);
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    match first {
        Err(error) if *with_kernel && is_refused(&error) => {
            *with_kernel = false;
            attempt(false)
        }
        other => other,
    }
}

fn refused(pid: u32, source: io::Error) -> ProfileError {
    if source.kind() == io::ErrorKind::PermissionDenied {
        ProfileError::NotPermitted { pid, source }
    } else {
        ProfileError::Event { pid, source }
    }
}

/// The processes and all that descend from them.
fn family(pids: &[u32]) -> BTreeSet<u32> {
    let mut family = BTreeSet::new();
    let mut to_visit = pids.to_vec();
    while let Some(pid) = to_visit.pop() {
        if !family.insert(pid) {
            continue;
        }
        for tid in numbers(&format!("/proc/{pid}/task")) {
            let path = format!("/proc/{pid}/task/{tid}/children");
            let children = fs::read_to_string(path).unwrap_or_default();
            to_visit.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
    family
}

/// The names of a folder's entries that are numbers.
fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
