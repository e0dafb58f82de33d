//! Programs that plimsoll starts and must not leave behind.
//!
//! Each runs in a process group of its own, so that a Ctrl-C on the terminal does not reach it, and
//! so that stopping it also reaches the processes it has started. A process that leaves its group
//! (a daemon) is out of reach.

pub mod cores;

pub mod cpu_time;

pub mod descriptors;

pub(crate) mod memory;

mod output;

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_model::{Clock, CpuTime};
use rustix::fs::Mode;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, kill_process_group, setrlimit, umask,
    waitid,
};
use wait4::Wait4;

use crate::SystemClock;
use crate::process::cores::{PinError, Rebound};
use output::Tail;

/// A program to start, with its arguments and surroundings.
#[derive(Debug, Clone, Default)]
pub struct ProcessSpec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Cores to bind it to; empty leaves it to the scheduler.
    pub cores: Vec<usize>,
    /// Destination of standard output.
    pub stdout: Output,
    /// Destination of standard error.
    pub stderr: Output,
    /// Content of standard input; empty closes it.
    pub stdin: Vec<u8>,
    /// The environment, whole; absent passes on that of this process.
    pub environment: Option<Vec<(String, String)>>,
    /// The working directory; absent is that of this process.
    pub folder: Option<PathBuf>,
}

/// Destination of an output stream of a started program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// Nowhere.
    #[default]
    Null,
    /// The stream of this process.
    Inherit,
    /// Into memory, of which the last few kilobytes are kept.
    Captured,
    /// Into memory, of which at most so many bytes are kept: the last ones.
    CapturedUpTo(usize),
}

/// Exit and resource use of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Time of the process and of all descendants that were waited for: exact, to the microsecond.
    pub cpu: CpuTime,
    /// Largest resident memory of any one of those processes, in bytes. A process starts out with
    /// the peak of the one that started it, so values up to our own peak say nothing.
    pub max_rss_bytes: u64,
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The command line has no words.
    #[error("the command is empty")]
    Empty,
    /// No file of that name, in the directories of `PATH` if it has no slash.
    #[error("program `{program}` not found")]
    NotFound {
        /// The first word of the command line.
        program: String,
    },
    /// It could not be bound to the requested cores.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The system refused.
    #[error("start `{program}`")]
    Refused {
        /// The first word of the command line.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// Makes the kernel write no file with the memory of this process, keys among it, when a signal ends it.
///
/// A debugger can still be attached, and programs that collect dumps (`systemd-coredump`) keep none.
pub fn forbid_core_dumps() -> io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    Ok(setrlimit(Resource::Core, none)?)
}

/// Makes files that this process creates from now on accessible to its user alone (umask 077); files with a mode of their own,
/// such as sockets of listeners, keep it.
pub fn keep_new_files_private() {
    let before = umask(Mode::empty());
    umask(before | Mode::RWXG | Mode::RWXO);
}

/// Where `program` lies, in the directories of `PATH` if it has no slash; `None` if there is no such file.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    let files = std::env::split_paths(&path).map(|folder| folder.join(program));
    files.into_iter().find(|path| path.is_file())
}

/// Asks the kernel to end this process when the thread that started it ends, so that nothing is left
/// behind even by a parent that was killed. Does nothing where there is no such service.
pub fn end_with_parent() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getppid, set_parent_process_death_signal};

        set_parent_process_death_signal(Some(Signal::TERM))?;
        // The parent may have ended before the signal was requested.
        if getppid().is_none_or(Pid::is_init) {
            return Err(io::Error::other("the parent process has ended"));
        }
    }
    Ok(())
}

/// A started program; dropping it kills its process group and reaps it.
#[derive(Debug)]
pub struct Process {
    id: u32,
    /// Gone once it has been reaped.
    child: Option<Child>,
    finished: Option<Finished>,
    shared: Arc<WatchState>,
}

impl Process {
    /// Starts `spec.argv`.
    pub fn spawn(spec: &ProcessSpec) -> Result<Self, SpawnError> {
        let (program, arguments) = spec.argv.split_first().ok_or(SpawnError::Empty)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .process_group(0)
            .stdin(if spec.stdin.is_empty() {
                Stdio::null()
            } else {
                Stdio::piped()
            })
            .stdout(spec.stdout.stdio())
            .stderr(spec.stderr.stdio());
        if let Some(variables) = &spec.environment {
            command.env_clear().envs(variables.iter().cloned());
        }
        if let Some(folder) = &spec.folder {
            command.current_dir(folder);
        }
        // A child inherits the cores of the thread that starts it.
        let bound = match spec.cores.as_slice() {
            [] => None,
            cores => Some(Rebound::to(cores)?),
        };
        let mut child = command.spawn().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => SpawnError::NotFound {
                program: program.clone(),
            },
            _ => SpawnError::Refused {
                program: program.clone(),
                source,
            },
        })?;
        drop(bound);
        if let Some(stdin) = child.stdin.take() {
            write(stdin, spec.stdin.clone());
        }
        let shared = Arc::new(WatchState::default());
        if let Some(stdout) = child.stdout.take() {
            shared.lock().stdout = Tail::open(spec.stdout.kept());
            output::read(stdout, Arc::clone(&shared), |state| &mut state.stdout);
        }
        if let Some(stderr) = child.stderr.take() {
            shared.lock().stderr = Tail::open(spec.stderr.kept());
            output::read(stderr, Arc::clone(&shared), |state| &mut state.stderr);
        }
        let id = child.id();
        watch(id, Arc::clone(&shared));
        Ok(Self {
            id,
            child: Some(child),
            finished: None,
            shared,
        })
    }

    /// The process id; it names this process until it is dropped or stopped.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The end of the program's standard output, as far as it is captured and kept.
    pub fn stdout_tail(&self) -> String {
        self.shared.lock().stdout.text()
    }

    /// The end of the program's standard error, as far as it is captured and kept.
    pub fn stderr_tail(&self) -> String {
        self.shared.lock().stderr.text()
    }

    /// Waits until the program has ended, `timeout` at most; `None` if it still runs then.
    ///
    /// Whatever is left of its group is killed. Captured output is complete afterwards, unless a
    /// process that left the group still holds it open.
    pub fn finish(&mut self, timeout: Duration) -> io::Result<Option<Finished>> {
        if self.finished.is_none() {
            let ended = |state: &State| state.ended.then_some(());
            if self.shared.wait_for(timeout, ended).is_none() {
                return Ok(None);
            }
            self.reap()?;
            self.shared.wait_for(OUTPUT_GRACE, |state| {
                (!state.stdout.open && !state.stderr.open).then_some(())
            });
        }
        Ok(self.finished)
    }

    /// As [`finish`](Self::finish), for those who only ask how it ended.
    pub fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        Some(self.finish(timeout).ok()??.status)
    }

    /// Waits for a line of captured standard output for which `find` has an answer, `timeout` at
    /// most; `None` if it did not come, or the program ended first.
    pub fn stdout_line<T>(
        &self,
        timeout: Duration,
        mut find: impl FnMut(&str) -> Option<T>,
    ) -> Option<T> {
        let mut find = |state: &State| state.stdout.text().lines().find_map(&mut find);
        let found = self.shared.wait_for(timeout, |state| {
            find(state)
                .map(Some)
                .or_else(|| state.ended.then_some(None))
        })?;
        // The end may be seen before the last line is.
        found.or_else(|| {
            self.shared
                .wait_for(OUTPUT_GRACE, |state| {
                    find(state)
                        .map(Some)
                        .or_else(|| (!state.stdout.open).then_some(None))
                })
                .flatten()
        })
    }

    /// Asks the group to end (`SIGTERM`) and does not wait for it.
    pub fn ask_to_end(&self) {
        if self.child.is_some() {
            self.signal(Signal::TERM);
        }
    }

    /// Interrupts the group as Ctrl+C does (`SIGINT`) and does not wait for it.
    pub fn interrupt(&self) {
        if self.child.is_some() {
            self.signal(Signal::INT);
        }
    }

    /// Asks the group to end (`SIGTERM`), waits for the program, `grace` at most, and kills whatever
    /// of the group is left.
    pub fn stop(mut self, grace: Duration) -> Option<ExitStatus> {
        self.end(grace)
    }

    /// As [`stop`](Self::stop), for those who ask for its output afterwards.
    pub fn end(&mut self, grace: Duration) -> Option<ExitStatus> {
        if self.child.is_some() {
            self.signal(Signal::TERM);
            self.shared
                .wait_for(grace, |state| state.ended.then_some(()));
            // What cannot be reaped has no status either.
            self.reap().ok();
        }
        self.finished.map(|finished| finished.status)
    }

    /// Kills whatever is left of the group, then collects the program.
    ///
    /// In this order, because the group's id is ours only until the program is collected.
    fn reap(&mut self) -> io::Result<()> {
        let child = self
            .child
            .take()
            .ok_or_else(|| io::Error::other("the process was collected before"))?;
        self.signal(Signal::KILL);
        let used = child.wait4()?;
        self.finished = Some(Finished {
            status: used.status,
            cpu: CpuTime {
                user: used.rusage.utime,
                system: used.rusage.stime,
            },
            max_rss_bytes: used.rusage.maxrss,
        });
        Ok(())
    }

    /// A group that is gone needs no signal.
    fn signal(&self, signal: Signal) {
        if let Some(group) = pid(self.id) {
            kill_process_group(group, signal).ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.is_some() {
            // Nothing can be reported from here.
            self.reap().ok();
        }
    }
}

/// Time the readers have to see the end of a stream after the program has ended.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);

impl Output {
    fn stdio(self) -> Stdio {
        match self {
            Self::Null => Stdio::null(),
            Self::Inherit => Stdio::inherit(),
            Self::Captured | Self::CapturedUpTo(_) => Stdio::piped(),
        }
    }

    /// Maximum number of bytes kept.
    fn kept(self) -> usize {
        match self {
            Self::Null | Self::Inherit => 0,
            Self::Captured => output::FEW,
            Self::CapturedUpTo(most) => most,
        }
    }
}

/// State that the threads watching a program share.
#[derive(Debug, Default)]
struct WatchState {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The program has ended; it may not have been reaped yet.
    ended: bool,
    stdout: Tail,
    stderr: Tail,
}

impl WatchState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Asks `answer` after each change until it has one or `timeout` is over.
    fn wait_for<T>(
        &self,
        timeout: Duration,
        mut answer: impl FnMut(&State) -> Option<T>,
    ) -> Option<T> {
        let deadline: Option<Instant> = SystemClock.now().checked_add(timeout);
        let mut state = self.lock();
        loop {
            if let Some(found) = answer(&state) {
                return Some(found);
            }
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(SystemClock.now()),
                None => timeout,
            };
            if left.is_zero() {
                return None;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// Writes all of `content` on a thread of its own, so that a program which writes before it reads does not block.
fn write(mut stdin: ChildStdin, content: Vec<u8>) {
    thread::spawn(move || {
        // A program may end without reading all of it.
        stdin.write_all(&content).ok();
    });
}

/// Notes the end of the program without reaping it: its id must stay its own until the owner has
/// signalled its group for the last time.
fn watch(id: u32, shared: Arc<WatchState>) {
    thread::spawn(move || {
        if let Some(pid) = pid(id) {
            loop {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                match waitid(WaitId::Pid(pid), options) {
                    Err(rustix::io::Errno::INTR) => {}
                    // An error means that the owner has reaped it already.
                    Ok(_) | Err(_) => break,
                }
            }
        }
        shared.update(|state| state.ended = true);
    });
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests;
