//! The tree read from proc(5).
//!
//! Processor time of a process comes in clock ticks (usually 10 ms), truncated to whole ones, and by its clock in
//! nanoseconds ([`precise`]). Children that nothing waits for are in neither; they are in the counters
//! of their control group ([`group`]).

mod group;

mod precise;

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use plimsoll_model::{CpuTime, Memory, ResourceSample};
use procfs::process::{Process, Stat};
use procfs::{CurrentSI, KernelStats, ProcError, ProcResult};

use self::group::Group;
use self::precise::PreciseTime;
use super::{AttachError, TargetEnded};
use crate::group::counters::never_back;

/// Up to so many threads, the children of each are read at every sample; a child belongs to the
/// thread that forked it.
const FEW_THREADS: i64 = 64;

/// With more threads than that, only the main thread is read every time, and all of them at each
/// such sample.
const FULL_SCAN_EVERY: u64 = 10;

/// Of signal(7); the same on every architecture that Linux supports but for two.
const SIGCHLD: u32 = 17;

/// How often the tree is read again because a process ended while it was being read.
const PASSES: usize = 4;

#[derive(Debug)]
pub(super) struct Tree {
    root: i32,
    descendants: bool,
    /// Parents before their children, which [`Tree::read`] depends on.
    members: Vec<Member>,
    /// CPU time of ended processes that no surviving parent has taken over.
    carried: CpuTime,
    samples: u64,
    /// The time of the last sample, which never goes back.
    last: CpuTime,
    /// Whether the kernel lists children by thread (`CONFIG_PROC_CHILDREN`).
    lists_children: bool,
    /// The control group, as long as it holds nothing but the tree.
    group: Option<Group>,
    /// Processes and threads that the machine had made when the tree was attached.
    forks_before: u64,
    units: Units,
}

#[derive(Debug)]
struct Member {
    /// Holds the directory open: it keeps naming this process even if the id is given away.
    process: Process,
    parent: i32,
    threads: i64,
    zombie: bool,
    /// Spent by itself.
    own: CpuTime,
    /// The same in whole clock ticks, as its parent takes it over.
    own_ticks: CpuTime,
    precise: PreciseTime,
    /// Its children vanish as they end, and nothing takes over what they spent.
    ignores_children: bool,
    /// Spent by children that it has waited for, and by theirs.
    reaped: CpuTime,
    /// `reaped` as of the previous sample.
    reaped_before: CpuTime,
}

#[derive(Debug, Clone, Copy)]
struct Units {
    ticks_per_second: u64,
    page_bytes: u64,
}

impl Tree {
    pub(super) fn attach(pid: u32, descendants: bool) -> Result<Self, AttachError> {
        let root = i32::try_from(pid).map_err(|_| AttachError::NoSuchProcess { pid })?;
        let units = Units {
            ticks_per_second: procfs::ticks_per_second().max(1),
            page_bytes: procfs::page_size(),
        };
        let member = Member::open(root, units).map_err(|error| match error {
            ProcError::PermissionDenied(_) => AttachError::Permission { pid },
            ProcError::NotFound(_) => AttachError::NoSuchProcess { pid },
            ProcError::Io(source, _) => AttachError::Unreadable { pid, source },
            other => AttachError::Unreadable {
                pid,
                source: io::Error::other(other.to_string()),
            },
        })?;
        if member.zombie {
            return Err(AttachError::NoSuchProcess { pid });
        }
        let lists_children = member
            .process
            .task_main_thread()
            .and_then(|thread| thread.children())
            .is_ok();
        let own = member.own + member.reaped;
        Ok(Self {
            root,
            descendants,
            group: descendants.then(|| Group::find(root, own)).flatten(),
            forks_before: forks(),
            members: vec![member],
            carried: CpuTime::default(),
            samples: 0,
            last: CpuTime::default(),
            lists_children,
            units,
        })
    }

    pub(super) fn sample(
        &mut self,
        at: Duration,
        completed: u64,
    ) -> Result<ResourceSample, TargetEnded> {
        self.refresh()?;
        let mut sample = ResourceSample {
            at,
            completed,
            cpu: self.carried,
            ..ResourceSample::default()
        };
        for member in &self.members {
            sample.cpu = sample.cpu + member.own + member.reaped;
            if !member.zombie {
                sample.memory = sample.memory + member.memory(self.units);
                sample.fds += member.process.fd_count().unwrap_or(0) as u64;
                sample.threads += member.threads.unsigned_abs();
                sample.processes += 1;
            }
        }
        let pids = self.members.iter().map(Member::pid).collect();
        self.group.take_if(|group| !group.holds_only(&pids));
        if let Some(spent) = self.group.as_ref().and_then(Group::spent)
            && spent.total() > sample.cpu.total()
        {
            sample.cpu = spent;
        }
        // A parent takes over what an ended child had spent in whole ticks.
        sample.cpu = never_back(self.last, sample.cpu);
        self.last = sample.cpu;
        Ok(sample)
    }

    pub(super) fn unseen_children(&self) -> Option<u64> {
        let may_lose = self.members.iter().any(|member| member.ignores_children);
        (may_lose && self.descendants && self.group.is_none())
            .then(|| forks().saturating_sub(self.forks_before))
    }

    pub(super) fn peak_memory_bytes(&mut self) -> Result<u64, TargetEnded> {
        self.refresh()?;
        let live = self.members.iter().filter(|member| !member.zombie);
        Ok(live.map(Member::peak_memory_bytes).sum())
    }

    pub(super) fn threads(&mut self) -> Result<HashMap<u32, CpuTime>, TargetEnded> {
        self.refresh()?;
        let mut threads = HashMap::new();
        for member in self.members.iter().filter(|member| !member.zombie) {
            for thread in member.process.tasks().into_iter().flatten().flatten() {
                // One that has just ended is no limit any more.
                let Ok(stat) = thread.stat() else { continue };
                let spent = CpuTime {
                    user: self.units.time(stat.utime),
                    system: self.units.time(stat.stime),
                };
                threads.insert(thread.tid.unsigned_abs(), spent);
            }
        }
        Ok(threads)
    }

    pub(super) fn thread_ids(&mut self) -> Result<Vec<u32>, TargetEnded> {
        self.refresh()?;
        let members = self.members.iter().filter(|member| !member.zombie);
        let threads =
            members.flat_map(|member| member.process.tasks().into_iter().flatten().flatten());
        Ok(threads.map(|thread| thread.tid.unsigned_abs()).collect())
    }

    /// Follows the tree to where it is now.
    fn refresh(&mut self) -> Result<(), TargetEnded> {
        if self.descendants {
            self.discover();
        }
        self.samples += 1;
        self.read();
        if self.members.iter().all(|member| member.zombie) {
            return Err(TargetEnded {
                pid: self.root.unsigned_abs(),
            });
        }
        Ok(())
    }

    /// Takes up the descendants that have come since.
    fn discover(&mut self) {
        let every_thread = self.samples.is_multiple_of(FULL_SCAN_EVERY);
        if !self.lists_children {
            if every_thread {
                self.discover_by_parent();
            }
            return;
        }
        let mut known: HashSet<i32> = self.members.iter().map(Member::pid).collect();
        let mut next = 0;
        while let Some(member) = self.members.get(next) {
            next += 1;
            for child in member.children(every_thread) {
                if known.insert(child)
                    && let Ok(member) = Member::open(child, self.units)
                {
                    self.members.push(member);
                }
            }
        }
    }

    /// The slow way: asks every process of the system for its parent.
    fn discover_by_parent(&mut self) {
        let Ok(processes) = procfs::process::all_processes() else {
            return;
        };
        let mut children: HashMap<i32, Vec<Member>> = HashMap::new();
        for process in processes.flatten() {
            if let Ok(member) = Member::new(process, self.units) {
                children.entry(member.parent).or_default().push(member);
            }
        }
        let mut known: HashSet<i32> = self.members.iter().map(Member::pid).collect();
        let mut next = 0;
        while let Some(parent) = self.members.get(next).map(Member::pid) {
            next += 1;
            for member in children.remove(&parent).unwrap_or_default() {
                if known.insert(member.pid()) {
                    self.members.push(member);
                }
            }
        }
    }

    /// Reads every member, forgets those that are gone and settles what these had spent.
    ///
    /// A process is read after its parent, so no time is seen both in its own figures and in
    /// those of the parent that reaped it. One that vanishes on the way may already be in neither,
    /// so the members are then read again.
    fn read(&mut self) {
        let mut gone: Vec<Member> = Vec::new();
        for _ in 0..PASSES {
            let before = gone.len();
            let units = self.units;
            gone.extend(
                self.members
                    .extract_if(.., |member| member.refresh(units).is_err()),
            );
            if gone.len() == before {
                break;
            }
        }
        self.settle(&gone);
        for member in &mut self.members {
            member.reaped_before = member.reaped;
        }
    }

    /// CPU time of a process passes to the parent that waits for it. A parent that ignores its
    /// children (`SIGCHLD` ignored), or one outside the tree, takes nothing over that we could see;
    /// then it is carried here.
    fn settle(&mut self, gone: &[Member]) {
        let parents: HashMap<i32, i32> = gone.iter().map(|m| (m.pid(), m.parent)).collect();
        let mut due: HashMap<i32, CpuTime> = HashMap::new();
        for member in gone {
            let mut heir = member.parent;
            // At most as many steps as processes have gone; ids could in theory form a ring.
            for _ in gone {
                match parents.get(&heir) {
                    Some(parent) => heir = *parent,
                    None => break,
                }
            }
            let spent = due.entry(heir).or_default();
            *spent = *spent + member.own_ticks + member.reaped_before;
        }
        for (heir, spent) in due {
            let taken_over = self
                .members
                .iter()
                .find(|member| member.pid() == heir)
                .map(|member| member.reaped.since(member.reaped_before))
                .unwrap_or_default();
            self.carried = self.carried + spent.since(taken_over);
        }
    }
}

impl Member {
    fn open(pid: i32, units: Units) -> ProcResult<Self> {
        Self::new(Process::new(pid)?, units)
    }

    fn new(process: Process, units: Units) -> ProcResult<Self> {
        let stat = process.stat()?;
        let mut member = Self {
            process,
            parent: 0,
            threads: 0,
            zombie: false,
            own: CpuTime::default(),
            own_ticks: CpuTime::default(),
            precise: PreciseTime::default(),
            ignores_children: false,
            reaped: CpuTime::default(),
            reaped_before: CpuTime::default(),
        };
        member.add_stat(&stat, units);
        member.reaped_before = member.reaped;
        Ok(member)
    }

    fn pid(&self) -> i32 {
        self.process.pid
    }

    fn refresh(&mut self, units: Units) -> ProcResult<()> {
        let stat = self.process.stat()?;
        self.add_stat(&stat, units);
        Ok(())
    }

    fn add_stat(&mut self, stat: &Stat, units: Units) {
        self.parent = stat.ppid;
        self.threads = stat.num_threads;
        self.zombie = matches!(stat.state, 'Z' | 'X' | 'x');
        self.own_ticks = CpuTime {
            user: units.time(stat.utime),
            system: units.time(stat.stime),
        };
        self.own = if self.zombie {
            self.precise.at_least(self.own_ticks)
        } else {
            self.precise.update(self.pid(), self.own_ticks)
        };
        self.ignores_children = stat.sigignore & (1 << (SIGCHLD - 1)) != 0;
        self.reaped = CpuTime {
            user: units.time(stat.cutime.unsigned_abs()),
            system: units.time(stat.cstime.unsigned_abs()),
        };
    }

    /// The ids of its children, as far as they can be read.
    fn children(&self, every_thread: bool) -> Vec<i32> {
        let mut found = Vec::new();
        let mut add = |children: ProcResult<Vec<u32>>| {
            found.extend(
                children
                    .unwrap_or_default()
                    .into_iter()
                    .filter_map(|child| i32::try_from(child).ok()),
            );
        };
        if every_thread || self.threads <= FEW_THREADS {
            for thread in self.process.tasks().into_iter().flatten().flatten() {
                add(thread.children());
            }
        } else {
            add(self
                .process
                .task_main_thread()
                .and_then(|thread| thread.children()));
        }
        found
    }

    /// `statm` holds the same counters as `status` and is a tenth of the work to read.
    fn memory(&self, units: Units) -> Memory {
        self.process
            .statm()
            .map(|pages| Memory {
                anonymous_bytes: pages.resident.saturating_sub(pages.shared) * units.page_bytes,
                file_bytes: pages.shared * units.page_bytes,
            })
            .unwrap_or_default()
    }

    /// `VmHWM`; only `status` has it.
    fn peak_memory_bytes(&self) -> u64 {
        self.process
            .status()
            .ok()
            .and_then(|status| status.vmhwm)
            .map_or(0, |kibibytes| kibibytes * 1024)
    }
}

/// Processes and threads that this machine has made since it was started.
fn forks() -> u64 {
    KernelStats::current().map_or(0, |stats| stats.processes)
}

impl Units {
    fn time(self, ticks: u64) -> Duration {
        let seconds = ticks / self.ticks_per_second;
        let rest = ticks % self.ticks_per_second;
        Duration::new(seconds, 0)
            + Duration::from_nanos(rest * 1_000_000_000 / self.ticks_per_second)
    }
}
