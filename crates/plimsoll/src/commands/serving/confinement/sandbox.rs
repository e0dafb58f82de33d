//! `--sandbox`: the kernel refuses this process every file that its configuration does not name, and every system call that a
//! server never makes.
//!
//! Both are best effort: a kernel without Landlock or seccomp leaves a server running, which reports it. Neither touches sockets.

mod files;

mod system_calls;

use std::fs::{self, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use plimsoll_server::config::{NamedPath, PathUse, PermittedPaths, is_in_shared_folder};
use plimsoll_wire::SystemClock;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use self::files::{FilesRestricted, OwnProcess};
use crate::problem::{Failed, Problem};
use crate::terminal;

/// A sandbox, in force until the process ends.
#[derive(Debug)]
pub(crate) struct Sandbox {
    permitted: PermittedPaths,
    /// The rule for the files of this process holds while it is open.
    _own_process: Option<OwnProcess>,
}

impl Sandbox {
    /// Confines this thread and all that it starts. It must be the only one.
    ///
    /// - `named`: the paths of the configuration, and of flags.
    pub(crate) fn enter(named: &[NamedPath]) -> Result<Self, Failed> {
        only_thread()?;
        let mut permitted = PermittedPaths::default();
        for path in named {
            make(path)?;
            permitted.add(path);
        }
        for path in system_paths() {
            permitted.add_alone(&path);
        }
        // A process of the same user may not read the memory of this one, by a debugger or /proc.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .map_err(|error| cannot("hide its memory", &error.into()))?;
        let own_process = OwnProcess::open();
        let files = files::restrict(&permitted, own_process.as_ref())
            .map_err(|error| cannot("restrict files", &io::Error::other(error)))?;
        let calls = system_calls::filter();
        report(&files, calls.as_ref().err());
        Ok(Self {
            permitted,
            _own_process: own_process,
        })
    }

    /// The paths that may be used from now on.
    pub(crate) fn permitted(&self) -> &PermittedPaths {
        &self.permitted
    }
}

/// Prints what is in force, and what is not.
fn report(files: &FilesRestricted, no_filter: Option<&io::Error>) {
    let restricted = match files {
        FilesRestricted::By(abi) => Ok(format!("files restricted (Landlock ABI {abi})")),
        FilesRestricted::Not => {
            Err("files not restricted (this kernel has no Landlock)".to_owned())
        }
    };
    let filtered = match no_filter {
        None => Ok("system calls filtered".to_owned()),
        Some(error) => Err(format!("system calls not filtered ({error})")),
    };
    let is_whole = restricted.is_ok() && filtered.is_ok();
    let parts = [restricted, filtered].map(|part| part.unwrap_or_else(|missing| missing));
    let problem = Problem::new(parts.join(", ")).about("--sandbox");
    if is_whole {
        terminal::print_notes(&[problem]);
    } else {
        terminal::print_warnings(&[problem]);
    }
}

/// How long threads that were started before may take to end, and how often they are counted.
const THREADS_END: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);

/// Rules hold for one thread and those that it starts, so no other thread may run.
///
/// The system lists a thread for a moment longer than it can be joined.
fn only_thread() -> Result<(), Failed> {
    let begin = SystemClock.monotonic();
    loop {
        // Without /proc it is not known.
        let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads <= 1 {
            return Ok(());
        }
        if SystemClock.monotonic().saturating_sub(begin) > THREADS_END {
            let error = io::Error::other(format!("{threads} threads run already"));
            return Err(cannot("begin", &error));
        }
        thread::park_timeout(LOOK);
    }
}

/// Makes what the server writes to, if it is not there yet: a rule holds for a file or a folder that exists.
fn make(named: &NamedPath) -> Result<(), Failed> {
    let path = &named.path;
    let made = match named.usage {
        PathUse::WriteFolder => fs::create_dir_all(path),
        PathUse::WriteFile if is_in_shared_folder(path) && !path.exists() => OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map(drop),
        PathUse::Read | PathUse::WriteFile => Ok(()),
    };
    made.map_err(|error| {
        let message = format!("cannot make {}: {error}", path.display());
        Problem::new(message).could_not_run()
    })
}

/// What every server reads of the system: names, certificates of authorities, time zones, its own program and figures.
///
/// All of `/etc`, because its files are replaced while a server runs, and a rule for a file ends with it.
fn system_paths() -> Vec<PathBuf> {
    const PATHS: [&str; 19] = [
        "/etc",
        "/usr",
        "/lib",
        "/lib64",
        "/nix/store",
        "/run/systemd/resolve",
        "/run/resolvconf",
        "/run/NetworkManager",
        "/var/lib/ca-certificates",
        "/dev/null",
        "/dev/random",
        "/dev/urandom",
        "/proc/cpuinfo",
        "/proc/loadavg",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/sys",
        "/sys/fs/cgroup",
        "/sys/devices/system",
    ];
    let mut paths: Vec<_> = PATHS.iter().map(PathBuf::from).collect();
    // Where the certificates of authorities are looked for first.
    paths.extend(
        ["SSL_CERT_FILE", "SSL_CERT_DIR"]
            .into_iter()
            .filter_map(path_of),
    );
    paths.extend(crate::own_file::own_file().ok());
    paths.retain(|path| path.exists());
    paths
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the binary, and the library of certificates reads them"
)]
fn path_of(variable: &str) -> Option<PathBuf> {
    let path = std::env::var(variable).ok()?;
    (!path.is_empty()).then(|| PathBuf::from(path))
}

fn cannot(verb: &str, error: &io::Error) -> Failed {
    Problem::with("--sandbox", format!("cannot {verb}: {error}")).could_not_run()
}
