//! Perf events on every thread, and what they deliver.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Clock as PerfClock, SampleFlag, Sampler};
use plimsoll_load::Interrupt;
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use super::mappings::{self, Mapping};
use super::result::{Origin, Thread};
use super::symbols::{Symbols, jit_map};
use super::{CallGraph, Frame, Profile, ProfileError, ProfileKind, ProfilePlan};
use off_cpu::Waiting;
use unwind::Unwinding;

mod off_cpu;

mod unwind;

/// Interval at which new threads are found and samples are read.
const BEAT: Duration = Duration::from_millis(20);

/// Bytes that hold the samples of a thread between two beats.
const ROOM: usize = 64 * 1024;

/// The same where each sample has a piece of the stack in it: at 997 a second, half as many again as a beat
/// has.
const ROOM_WITH_STACKS: usize = 512 * 1024;

/// A thread may be switched more often than it is sampled.
const OFF_CPU_ROOM: usize = 4;

const MICROS_PER_SECOND: u64 = 1_000_000;

/// Records that are taken from a thread at once: it may make new ones faster than they are taken.
const MOST_AT_ONCE: usize = 4096;

/// `ESRCH`, which has no kind of its own.
const NO_SUCH_THREAD: i32 = 3;

/// From here on, an entry of a call chain says whose addresses follow (`PERF_CONTEXT_MAX`).
const CONTEXTS: u64 = (-4095_i64).cast_unsigned();
const CONTEXT_KERNEL: u64 = (-128_i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512_i64).cast_unsigned();

pub(super) fn take_profile(
    plan: &ProfilePlan,
    interrupt: &Interrupt,
) -> Result<Profile, ProfileError> {
    let mut sampling = Sampling::new(plan);
    for pid in &plan.pids {
        if !is_there(*pid) {
            return Err(ProfileError::NoProcess(*pid));
        }
    }
    let start = SystemClock.now();
    let end = start + plan.duration;
    sampling.look_for_threads();
    if let Some(error) = sampling.nothing_to_watch() {
        return Err(error);
    }
    let mut now = start;
    while now < end && !interrupt.is_set() && plan.pids.iter().any(|pid| is_there(*pid)) {
        thread::park_timeout(BEAT.min(end - now));
        // First what is mapped, then the samples that lie in it.
        let there = sampling.look_for_threads();
        sampling.collect();
        sampling.leave_all_but(&there);
        now = SystemClock.now();
    }
    sampling.collect();
    Ok(sampling.finish(start, now))
}

fn is_there(pid: u32) -> bool {
    // A process that has ended and was not waited for still exists, but does not run.
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
    call_graphs: HashMap<u32, CallGraph>,
    threads: BTreeMap<(u32, u32), ProcessEvents>,
    unwatched: BTreeSet<(u32, u32)>,
    /// Why the first one is not watched.
    refusal: Option<ProfileError>,
    /// The mappings of each process at any time.
    mappings: HashMap<u32, Vec<Mapping>>,
    /// The program of each process, which may have ended before it is named.
    programs: HashMap<u32, PathBuf>,
    unwinding: Unwinding,
    lost: u64,
}

#[derive(Default)]
struct ProcessEvents {
    /// None once the thread has ended.
    sampler: Option<Sampler>,
    name: String,
    /// Samples by raw call chain, contexts included; of an off-CPU profile microseconds.
    chains: HashMap<Vec<u64>, u64>,
    /// Of an off-CPU profile.
    waiting: Waiting,
}

impl<'a> Sampling<'a> {
    fn new(plan: &'a ProfilePlan) -> Self {
        Self {
            plan,
            with_kernel: true,
            call_graphs: HashMap::new(),
            threads: BTreeMap::new(),
            unwatched: BTreeSet::new(),
            refusal: None,
            mappings: HashMap::new(),
            programs: HashMap::new(),
            unwinding: Unwinding::default(),
            lost: 0,
        }
    }

    /// Watches threads that are new; these are all that there are now.
    fn look_for_threads(&mut self) -> BTreeSet<(u32, u32)> {
        let mut there = BTreeSet::new();
        let own = gettid().as_raw_nonzero().get().cast_unsigned();
        for pid in family(&self.plan.pids) {
            if !self.programs.contains_key(&pid)
                && let Ok(program) = fs::read_link(format!("/proc/{pid}/exe"))
            {
                self.programs.insert(pid, program);
            }
            for tid in numbers(&format!("/proc/{pid}/task")) {
                // Taking samples would make samples.
                if tid == own {
                    continue;
                }
                there.insert((pid, tid));
                let known = self.threads.get(&(pid, tid));
                let is_watched = known.is_some_and(|watched| watched.sampler.is_some());
                if !is_watched && !self.unwatched.contains(&(pid, tid)) {
                    self.watch(pid, tid);
                }
            }
            if let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) {
                let known = self.mappings.entry(pid).or_default();
                mappings::merge(known, mappings::parse(&maps));
            }
        }
        there
    }

    fn watch(&mut self, pid: u32, tid: u32) {
        let call_graph = *self.call_graphs.entry(pid).or_insert_with(|| {
            // Code that was compiled at run time has frame pointers and no tables.
            let is_compiled_at_run_time = jit_map(pid).exists();
            let by_tables = unwind::has_tables(pid) && !is_compiled_at_run_time;
            self.plan.call_graph.unwrap_or(if by_tables {
                CallGraph::UnwindTables
            } else {
                CallGraph::FramePointers
            })
        });
        match open(pid, tid, self.plan, call_graph, &mut self.with_kernel) {
            Ok(sampler) => {
                let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
                let watched = self.threads.entry((pid, tid)).or_default();
                watched.sampler = Some(sampler);
                name.unwrap_or_default()
                    .trim_end()
                    .clone_into(&mut watched.name);
            }
            // It has ended meanwhile.
            Err(ProfileError::NoProcess(_)) => {}
            Err(error) => {
                self.unwatched.insert((pid, tid));
                self.refusal.get_or_insert(error);
            }
        }
    }

    /// Why there is none to watch, if so.
    fn nothing_to_watch(&mut self) -> Option<ProfileError> {
        self.refusal.take_if(|_| self.threads.is_empty())
    }

    /// Takes over what the kernel has noted.
    fn collect(&mut self) {
        for ((pid, _), watched) in &mut self.threads {
            let mappings = self
                .mappings
                .get(pid)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let Some(sampler) = &mut watched.sampler else {
                continue;
            };
            for _ in 0..MOST_AT_ONCE {
                let Some(record) = sampler.next_record() else {
                    break;
                };
                if record.ty() == off_cpu::SWITCH {
                    let time = off_cpu::time_of(&record.to_contiguous());
                    let over = time.and_then(|time| watched.waiting.switch(record.misc(), time));
                    if let Some((chain, micros)) = over {
                        *watched.chains.entry(chain).or_default() += micros;
                    }
                    continue;
                }
                match record.parse_record() {
                    Ok(Record::Sample(sample)) => {
                        let mut chain = sample.callchain().map(<[u64]>::to_vec).unwrap_or_default();
                        if let (Some(registers), Some(stack)) =
                            (sample.regs_user(), sample.stack_user())
                        {
                            chain.push(CONTEXT_USER);
                            let registers = &registers.regs;
                            let unwinding = &mut self.unwinding;
                            chain.extend(unwinding.addresses(*pid, mappings, registers, stack));
                        }
                        match self.plan.kind {
                            ProfileKind::Cpu => *watched.chains.entry(chain).or_default() += 1,
                            ProfileKind::OffCpu => {
                                watched
                                    .waiting
                                    .begin(sample.time().unwrap_or_default(), chain);
                            }
                        }
                    }
                    Ok(Record::Lost(lost)) => {
                        self.lost += lost.lost;
                        watched.waiting.forget();
                    }
                    _ => {}
                }
            }
        }
    }

    /// Gives back what the threads that have ended held.
    fn leave_all_but(&mut self, there: &BTreeSet<(u32, u32)>) {
        for (thread, watched) in &mut self.threads {
            if !there.contains(thread) {
                watched.sampler = None;
            }
        }
    }

    /// Names everything.
    fn finish(mut self, start: Instant, end: Instant) -> Profile {
        let monotonic = clock_gettime(ClockId::Monotonic);
        let monotonic = Duration::try_from(monotonic).unwrap_or_default();
        let monotonic = u64::try_from(monotonic.as_nanos()).unwrap_or(u64::MAX);
        for watched in self.threads.values_mut().filter(|it| it.sampler.is_some()) {
            if let Some((chain, micros)) = watched.waiting.end(monotonic) {
                *watched.chains.entry(chain).or_default() += micros;
            }
        }
        let mut symbols = Symbols::default();
        let mut threads = BTreeMap::new();
        for ((pid, tid), watched) in std::mem::take(&mut self.threads) {
            let mappings = self
                .mappings
                .get(&pid)
                .map(Vec::as_slice)
                .unwrap_or_default();
            // A thread that had just begun did not have its name yet.
            let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
            let mut thread = Thread {
                name: match name.unwrap_or_default().trim_end() {
                    "" => watched.name,
                    name => name.to_owned(),
                },
                ..Thread::default()
            };
            for (chain, count) in watched.chains {
                let mut stack = stack(&chain, pid, mappings, &mut symbols);
                if self.plan.kind == ProfileKind::OffCpu {
                    // Every wait ends in the scheduler; what called it says what it is.
                    while stack.len() > 1 && stack.last().is_some_and(|it| is_scheduler(it)) {
                        stack.pop();
                    }
                }
                *thread.stacks.entry(stack).or_default() += count;
            }
            threads.insert((pid, tid), thread);
        }
        let programs = self.mappings.keys().filter_map(|pid| {
            let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
            let program = program.or_else(|| self.programs.get(pid).cloned())?;
            let name = program.file_name()?.to_string_lossy().into_owned();
            Some((*pid, name))
        });
        Profile {
            no_python: BTreeMap::new(),
            refusal: self.refusal.as_ref().map(reason),
            no_kernel: (!self.with_kernel).then(no_kernel),
            programs: programs.collect(),
            duration: end.saturating_duration_since(start),
            kind: self.plan.kind,
            frequency: match self.plan.kind {
                ProfileKind::Cpu => self.plan.frequency,
                ProfileKind::OffCpu => MICROS_PER_SECOND,
            },
            has_kernel: self.with_kernel,
            lost: self.lost,
            unwatched: self.unwatched.len(),
            threads,
        }
    }
}

/// An error with its cause, and what to do about it.
fn reason(error: &ProfileError) -> String {
    let cause = std::error::Error::source(error);
    let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
    match error.remedy() {
        Some(remedy) => format!("{error}{cause}; {remedy}"),
        None => format!("{error}{cause}"),
    }
}

/// Why the kernel does not show its own functions.
fn no_kernel() -> String {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    match level.as_deref().map(str::trim) {
        Ok(level) => format!("kernel.perf_event_paranoid is {level}; set it to 1, or be root"),
        Err(_) => "the kernel refuses it".to_owned(),
    }
}

/// The names of a call chain, the outermost first.
fn stack(chain: &[u64], pid: u32, mappings: &[Mapping], symbols: &mut Symbols) -> Vec<Rc<Frame>> {
    let mut frames: Vec<Rc<Frame>> = Vec::new();
    let mut is_kernel = false;
    let mut will_return = false;
    for address in chain {
        if *address >= CONTEXTS {
            is_kernel = *address == CONTEXT_KERNEL;
            // The first address in either is where it was, the others are where it will return to; as is
            // the program's first when it called the kernel.
            will_return = frames.last().is_some_and(|frame| is_system_call(frame));
            continue;
        }
        let address = if will_return {
            // A call may be the last instruction of its function.
            address.saturating_sub(1)
        } else {
            *address
        };
        will_return = true;
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

/// Whether the kernel was entered on request and not by an interrupt: through
/// `entry_SYSCALL_64_after_hwframe` or `do_syscall_64` on x86-64, `el0_svc` or `el0t_64_sync` on aarch64.
fn is_system_call(outermost: &Frame) -> bool {
    let name = outermost.name.to_ascii_lowercase();
    ["syscall", "el0_svc", "el0t_64_sync"]
        .iter()
        .any(|entry| name.contains(entry))
}

/// Whether a function is the scheduler's own.
fn is_scheduler(frame: &Frame) -> bool {
    frame.origin == Origin::Kernel && matches!(frame.name.as_str(), "schedule" | "__schedule")
}

fn open(
    pid: u32,
    tid: u32,
    plan: &ProfilePlan,
    call_graph: CallGraph,
    with_kernel: &mut bool,
) -> Result<Sampler, ProfileError> {
    let attempt = |with_kernel: bool| {
        let mut builder = match plan.kind {
            ProfileKind::Cpu => {
                let mut builder = Builder::new(Software::CPU_CLOCK);
                builder.sample_frequency(plan.frequency);
                builder
            }
            ProfileKind::OffCpu => {
                let mut builder = Builder::new(Software::CONTEXT_SWITCHES);
                builder
                    .sample_period(1)
                    .sample(SampleFlag::TIME)
                    .sample_id_all(true)
                    .clockid(PerfClock::MONOTONIC)
                    .context_switch(true);
                builder
            }
        };
        builder
            .observe_pid(i32::try_from(tid).map_err(io::Error::other)?)
            .any_cpu()
            .sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::CALLCHAIN)
            .exclude_hv(true)
            .exclude_kernel(!with_kernel);
        if call_graph == CallGraph::UnwindTables {
            builder
                .sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER)
                .sample_regs_user(unwind::REGISTERS)
                .sample_stack_user(unwind::STACK_BYTES)
                .exclude_callchain_user(true);
        }
        builder.build()
    };
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let mut counter = attempt(*with_kernel);
    // A thread leaves its core in the kernel: without the kernel there is no sample of that.
    if plan.kind == ProfileKind::OffCpu {
        counter = match counter {
            Err(source) if is_refused(&source) => {
                return Err(ProfileError::OffCpuNotPermitted { pid, source });
            }
            counter => counter,
        };
    }
    if *with_kernel && counter.as_ref().is_err_and(is_refused) {
        counter = attempt(false);
        // A counter that is refused either way does not depend on the kernel's functions.
        *with_kernel = counter.is_err();
    }
    let counter = counter.map_err(|source| {
        if is_refused(&source) {
            ProfileError::NotPermitted { pid, source }
        } else if source.raw_os_error() == Some(NO_SUCH_THREAD) {
            ProfileError::NoProcess(pid)
        } else {
            ProfileError::Event { pid, source }
        }
    })?;
    let room = match call_graph {
        CallGraph::FramePointers => ROOM,
        CallGraph::UnwindTables => ROOM_WITH_STACKS,
    };
    let room = match plan.kind {
        ProfileKind::Cpu => room,
        ProfileKind::OffCpu => room * OFF_CPU_ROOM,
    };
    let no_memory = |source| ProfileError::NoMemory { pid, source };
    let mut sampler = counter.sampled(room).map_err(no_memory)?;
    sampler
        .enable()
        .map_err(|source| ProfileError::Event { pid, source })?;
    Ok(sampler)
}

/// The processes and all that descend from them, without this one unless it is in `pids`.
pub(super) fn family(pids: &[u32]) -> BTreeSet<u32> {
    let own = std::process::id();
    let mut family = BTreeSet::new();
    let mut to_visit = pids.to_vec();
    while let Some(pid) = to_visit.pop() {
        let is_left_out = pid == own && !pids.contains(&own);
        if is_left_out || !family.insert(pid) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_called_the_kernel_is_known_by_the_kernels_outermost_function() {
        let outermost = |name: &str| {
            is_system_call(&Frame {
                name: name.to_owned(),
                origin: Origin::Kernel,
            })
        };
        assert!(outermost("entry_SYSCALL_64_after_hwframe"));
        assert!(outermost("do_syscall_64"));
        assert!(outermost("el0t_64_sync"));
        assert!(!outermost("asm_sysvec_apic_timer_interrupt"));
        assert!(!outermost("asm_exc_page_fault"));
    }
}
