//! `plimsoll profile`: where the processor time of running processes goes.

mod server;

mod store;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::commands::profile::server::ServerArgs;
use crate::commands::profile::store::StoreArgs;
use crate::exit::Exit;
use crate::flags::{Problems, number};
use crate::problem::{Failed, Problem};
use crate::{signals, terminal};
use plimsoll_lab::profile::{
    CallGraph, FetchError, Profile, ProfileError, ProfileKind, ProfilePlan, Server, fetch, firefox,
    flame, pprof, take_profile, text,
};
use plimsoll_load::Interrupt;
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::{Output, Process, ProcessSpec};

/// Profile the CPU time of running processes, or their waits
///
/// Sample the stacks of every thread of a process and its descendants with perf events, or fetch a
/// server's own profile, and list threads and functions. With --out, also write a flame graph, folded
/// stacks and a pprof file.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Server that profiles itself, as with Go's net/http/pprof [default path: /debug/pprof/profile]
    #[arg(value_name = "URL", conflicts_with_all = ["pid", "spawn", "frequency", "call_graph"])]
    url: Option<String>,

    /// Process to profile, repeatable
    #[arg(
        long,
        value_name = "PID|NAME",
        required_unless_present_any = ["spawn", "url"],
        conflicts_with = "spawn",
        value_parser = number::process
    )]
    pid: Vec<u32>,

    /// Command to start, profile and stop
    #[arg(long, value_name = "COMMAND")]
    spawn: Option<String>,

    /// Profile for this time, or until the processes end
    // At the default frequency some 10,000 samples of a busy core: shares of 1 % are known within a fifth.
    #[arg(short = 'z', long, value_name = "TIME", default_value = "10s",
          value_parser = number::positive_duration)]
    duration: Duration,

    /// Samples per second of CPU time per thread
    // A prime near 1,000, so that sampling never runs in step with a timer of the program.
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 997,
        value_parser = number::count::<u64>(100_000))]
    frequency: u64,

    /// Profile what threads wait for instead of where they compute: locks, sockets, files, timers
    #[arg(long, conflicts_with_all = ["url", "frequency"])]
    off_cpu: bool,

    /// Take a profile at this interval until the duration is over, each into a folder of --out
    /// (0001, 0002, …) and to --push
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration)]
    every: Option<Duration>,

    /// Stack unwinding [default: unwind tables where a program has them,
    /// else frame pointers; frame pointers for programs that a runtime compiles and maps, such as Node]
    #[arg(long, value_name = "HOW")]
    call_graph: Option<Callers>,

    /// Number of functions to list
    // As many as a terminal shows without scrolling.
    #[arg(long, value_name = "N", default_value_t = 30,
          value_parser = number::count::<usize>(number::MOST_TRIALS))]
    top: usize,

    /// Order of the functions
    #[arg(long, value_enum, default_value_t = Order::Own)]
    sort: Order,

    /// Write profile.svg, profile.folded and profile.pb.gz into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write a file for the Firefox Profiler, <https://profiler.firefox.com>
    #[arg(long, value_name = "FILE", conflicts_with = "every")]
    firefox: Option<PathBuf>,

    /// Compare with the profile in this folder and write difference.svg
    #[arg(long, value_name = "DIR", requires = "out")]
    before: Option<PathBuf>,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Order {
    /// By the time that was spent in each function itself
    Own,
    /// By the time in each function and in what it called
    Total,
}

/// As perf names them.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Callers {
    /// Frame pointers: cheap and deep, if everything was built with them
    Fp,
    /// Unwind tables: the top 16 KiB of each stack are copied
    Dwarf,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll profile --pid nginx -z 5s
  plimsoll profile --pid nginx --off-cpu
  plimsoll profile --spawn './server --port 8080' --out after --before before
  plimsoll profile http://127.0.0.1:6060 -z 5s --firefox server.json";

/// In less there is next to nothing to see.
const SHORTEST: Duration = Duration::from_millis(100);

const SVG: &str = "profile.svg";
const FOLDED: &str = "profile.folded";
const PPROF: &str = "profile.pb.gz";
const DIFFERENCE: &str = "difference.svg";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let mut problems = Problems::default();
    let store = args.store.compile(&mut problems);
    let server = args.server.compile(args.url.as_deref(), &mut problems);
    let mut checked = |problem| problems.push(problem);
    let command = args.spawn.as_deref().map(words).transpose();
    let command = command.map_err(&mut checked).ok().flatten();
    let before = args.before.as_deref().map(earlier).transpose();
    let before = before.map_err(&mut checked).ok().flatten();
    if args.every.is_some() && args.out.is_none() && args.store.push.is_none() {
        checked(Problem::with("--every", "needs --out or --push"));
    }
    if args.every.is_some_and(|every| every < SHORTEST) {
        checked(Problem::with("--every", "must be at least 100ms"));
    }
    problems.unless_any(Some(()))?;
    let order = match args.sort {
        Order::Own => text::FunctionOrder::Own,
        Order::Total => text::FunctionOrder::Total,
    };
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let name = if let Some(server) = &server {
        server.url.to_string()
    } else if let Some(words) = &command {
        words[0].clone()
    } else {
        let pids: Vec<_> = args.pid.iter().map(u32::to_string).collect();
        format!("process {}", pids.join(", "))
    };
    let process = command.map(start).transpose()?;
    let mut plan = ProfilePlan {
        pids: match &process {
            Some(process) => vec![process.id()],
            None => args.pid.clone(),
        },
        duration: args.duration,
        frequency: args.frequency,
        kind: if args.off_cpu {
            ProfileKind::OffCpu
        } else {
            ProfileKind::Cpu
        },
        call_graph: args.call_graph.map(|callers| match callers {
            Callers::Fp => CallGraph::FramePointers,
            Callers::Dwarf => CallGraph::UnwindTables,
        }),
    };
    let end = SystemClock.now() + args.duration;
    let mut samples = 0;
    for number in 1_u32.. {
        let left = end.saturating_duration_since(SystemClock.now());
        plan.duration = args.every.map_or(left, |every| every.min(left));
        let begun = SystemClock.wall();
        let profile = match &server {
            Some(server) => fetch_profile(server, plan.duration, &interrupt)?,
            None => match take_profile(&plan, &interrupt) {
                // It ended between two profiles.
                Err(ProfileError::NoProcess(_)) if number > 1 => break,
                taken => taken.map_err(|error| failed(&error))?,
            },
        };
        samples += profile.samples();
        if let Some(out) = &args.out {
            let folder = match args.every {
                Some(_) => out.join(format!("{number:04}")),
                None => out.clone(),
            };
            write(&profile, &folder, &name, begun, before.as_deref())?;
        }
        if let Some(store) = &store {
            store.keep_profile(&profile, begun)?;
        }
        if let Some(file) = &args.firefox {
            let json = firefox::encode(&profile, &name, begun);
            fs::write(file, json).map_err(|error| {
                let message = format!("cannot write {}: {error}", file.display());
                Problem::with("--firefox", message).could_not_run()
            })?;
        }
        let columns = terminal::format_of_stdout().columns;
        let mut table = text::table(&profile, order, args.top, columns);
        if args.every.is_some() {
            table = format!("profile {number:04}: {table}\n");
        }
        terminal::print(table.trim_end_matches('\n')).map_err(|error| {
            Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
        })?;
        let left = end.saturating_duration_since(SystemClock.now());
        let is_last = args.every.is_none_or(|every| left < every / 2);
        if is_last || interrupt.is_set() {
            break;
        }
    }
    if let Some(process) = process {
        let stderr = process.stderr_tail();
        process.stop(Duration::from_secs(5));
        if samples == 0 && !stderr.is_empty() {
            let message = format!("the command did nothing; it wrote: {}", stderr.trim_end());
            return Err(Problem::with("--spawn", message).could_not_run());
        }
    }
    Ok(if interrupt.is_set() {
        Exit::Interrupted
    } else {
        Exit::Fine
    })
}

/// The profile that a server takes of itself.
fn fetch_profile(
    server: &Server,
    duration: Duration,
    interrupt: &Interrupt,
) -> Result<Profile, Failed> {
    fetch(server, duration, interrupt).map_err(|error| Failed {
        exit: match error {
            FetchError::Interrupted => Exit::Interrupted,
            FetchError::Answer { .. } | FetchError::Content { .. } => Exit::CouldNotRun,
        },
        problems: vec![Problem::caused_by(&error)],
    })
}

fn words(command: &str) -> Result<Vec<String>, Problem> {
    let words = shlex::split(command).filter(|words| !words.is_empty());
    words.ok_or_else(|| {
        let message =
            format!("`{command}` is not a command: a quote is not closed, or it is empty");
        Problem::with("--spawn", message)
    })
}

/// The folded stacks of an earlier profile.
fn earlier(folder: &Path) -> Result<String, Problem> {
    let path = folder.join(FOLDED);
    fs::read_to_string(&path).map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        Problem::with("--before", message)
    })
}

fn start(argv: Vec<String>) -> Result<Process, Failed> {
    Process::spawn(&ProcessSpec {
        argv,
        stderr: Output::Captured,
        ..ProcessSpec::default()
    })
    .map_err(|error| Problem::with("--spawn", error.to_string()).could_not_run())
}

fn write(
    profile: &Profile,
    out: &Path,
    name: &str,
    begun: SystemTime,
    before: Option<&str>,
) -> Result<(), Failed> {
    let cannot = |what: &str, error: &dyn std::fmt::Display| {
        Problem::with("--out", format!("cannot write {what}: {error}")).could_not_run()
    };
    let save = |file: &str, content: std::io::Result<Vec<u8>>| {
        let path = out.join(file);
        content
            .and_then(|content| fs::write(&path, content))
            .map_err(|error| cannot(&path.display().to_string(), &error))
    };
    fs::create_dir_all(out).map_err(|error| cannot(&out.display().to_string(), &error))?;
    let folded = profile.folded();
    save(PPROF, pprof::encode(profile, begun))?;
    // Nothing cannot be drawn.
    if !folded.is_empty() {
        save(SVG, flame::svg(profile, name))?;
        if let Some(before) = before.filter(|before| !before.is_empty()) {
            save(DIFFERENCE, flame::difference(before, &folded, name))?;
        }
    }
    save(FOLDED, Ok(folded.into_bytes()))
}

fn failed(error: &ProfileError) -> Failed {
    let problem = Problem::caused_by(error);
    let problem = match error {
        ProfileError::NoProcess(_) => problem.about("--pid"),
        _ => problem,
    };
    let problem = match error.remedy() {
        Some(remedy) => problem.hint(remedy),
        None => problem,
    };
    problem.could_not_run()
}
