//! `cargo xtask instructions`: how many instructions each request takes in user space, by callgrind.
//!
//! Each case of bench/instructions/cases.toml runs twice with different numbers of requests; the difference of both counts,
//! divided by the difference of the requests, has neither start nor end in it. Counts hardly depend on the machine or on
//! what else runs there, so a change by a few percent shows, which the intervals of benchmarks hide.

mod auxv;
mod figures;
mod plan;

use std::net::TcpStream;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{fs, iter, thread};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};

use self::figures::Figures;
use self::plan::{Case, Plan, Subject};
use crate::bench::{free_ports, target_directory};
use crate::packages;
use crate::server::Server;
use crate::step;
use crate::{Failure, Outcome};

/// Which cases, and what for
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Run only cases whose names begin with this, repeatable
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,

    /// Build with this profile; each has figures of its own
    #[arg(long, default_value = "release")]
    profile: String,

    /// Count the program that is there instead of building one
    #[arg(long)]
    built: bool,

    /// Count the peers' instructions too, where they are installed
    #[arg(long)]
    peers: bool,

    /// Replace the figures of the profile instead of comparing with them
    #[arg(long)]
    write: bool,

    /// Keep what callgrind writes in this folder, for `callgrind_annotate`
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// A case that has grown is counted so often in all, alone, and the smallest count is taken: on a busy machine a program wakes more
/// often for the same work.
const MOST_COUNTS: u32 = 3;

/// The profile of cargo whose folder has another name.
const DEV: &str = "dev";

/// Waiting for a server under callgrind to listen or to end: so often, so long.
const LOOKS: u32 = 1_200;
const PAUSE: Duration = Duration::from_millis(50);

/// Code that is not optimised takes about ten times as long under callgrind; so many requests less are enough, since they are the
/// same each time.
const FEWER_WITHOUT_OPTIMISATION: u64 = 10;

impl Arguments {
    /// All cases with the program of the tests, which is there once they have been built: a step of `cargo xtask ci`.
    pub(crate) fn of_tests() -> Self {
        Self {
            cases: Vec::new(),
            profile: DEV.to_owned(),
            built: true,
            peers: false,
            write: false,
            keep: None,
        }
    }
}

/// Runs the task; fails if a case takes more instructions than the repository's figure by more than the case permits, or if
/// the repository has no figure of it.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let mut plan = Plan::read(&root.join("bench/instructions/cases.toml"))?;
    plan.select(&arguments.cases)?;
    let needed = [packages::VALGRIND, packages::NGINX, packages::CURL];
    packages::install(root, &needed)?;
    let profile = arguments.profile.as_str();
    if !arguments.built {
        let build = [
            "build",
            "--locked",
            "--profile",
            profile,
            "--bin",
            "plimsoll",
        ];
        step::run(root, &mut step::cargo(&build))?;
    }
    if profile == DEV {
        plan.cases.retain(|case| !case.needs_optimisation);
        for case in &mut plan.cases {
            case.requests /= FEWER_WITHOUT_OPTIMISATION;
        }
    }
    // What is refused stays so for a thread's life.
    thread::scope(|scope| {
        let counting = scope.spawn(|| {
            auxv::refuse()?;
            compare(root, arguments, &plan)
        });
        counting.join().map_err(|_| "counting ended by a panic")?
    })
}

/// Counts every case and compares it with the figures of the repository, or replaces these.
fn compare(root: &Path, arguments: &Arguments, plan: &Plan) -> Outcome {
    let profile = arguments.profile.as_str();
    let target = target_directory(root)?;
    let folder = if profile == DEV { "debug" } else { profile };
    let path = root.join("bench/instructions/figures.toml");
    let mut figures = Figures::read(&path)?;
    let (mut grown, mut unknown) = (Vec::new(), Vec::new());
    let prepare = |case: &Case| Bench::prepare(&target, folder, case, arguments.keep.as_deref());
    let counts = on_each_core(&plan.cases, |case| {
        prepare(case)?.per_request(case, &case.subject)
    });
    for (case, count) in plan.cases.iter().zip(counts) {
        let known = figures.get(profile, &case.name);
        let mut count = count?;
        for _ in 1..MOST_COUNTS {
            if known.is_some_and(|known| growth(known, count) > case.most_growth) {
                count = count.min(prepare(case)?.per_request(case, &case.subject)?);
            }
        }
        println!("{}", figures::line(&case.name, count, known));
        match known {
            Some(known) if growth(known, count) > case.most_growth => grown.push(case.name.clone()),
            Some(_) => {}
            None => unknown.push(case.name.clone()),
        }
        figures.set(profile, &case.name, count);
        for peer in case.peers.iter().filter(|_| arguments.peers) {
            let is_there = peer.subject.command.first();
            if is_there.is_some_and(|program| packages::find(program, &[]).is_some()) {
                let count = prepare(case)?.per_request(case, &peer.subject)?;
                println!(
                    "{}",
                    figures::line(&format!("  {}", peer.name), count, None)
                );
            }
        }
    }
    if arguments.write {
        return figures.write(&path);
    }
    if !unknown.is_empty() {
        let unknown = unknown.join(", ");
        return Err(format!(
            "no figure of the profile `{profile}` is recorded: {unknown}; --write records them"
        )
        .into());
    }
    if grown.is_empty() {
        return Ok(());
    }
    Err(format!(
        "more instructions than recorded, by more than is permitted (3 % unless bench/instructions/cases.toml says otherwise): {}; if that is meant, add --write",
        grown.join(", ")
    )
    .into())
}

/// What `work` makes of each item, as many at once as there are cores.
fn on_each_core<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let queue = Mutex::new(items.iter().enumerate());
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.next()
    };
    let worker = || {
        let items = iter::from_fn(next);
        items.map(|(at, item)| (at, work(item))).collect::<Vec<_>>()
    };
    let mut done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        let done = workers.into_iter().flat_map(|it| match it.join() {
            Ok(done) => done,
            Err(panic) => resume_unwind(panic),
        });
        done.collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

/// In percent.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2⁵²")]
fn growth(known: u64, count: u64) -> f64 {
    (count as f64 / known as f64 - 1.0) * 100.0
}

/// One case with its files and what runs beside it.
struct Bench {
    program: PathBuf,
    /// The case's files; removed with the value.
    directory: PathBuf,
    ports: [u16; 3],
    keep: Option<PathBuf>,
    /// Stopped with the value.
    background: Vec<Server>,
}

impl Bench {
    fn prepare(
        target: &Path,
        folder: &str,
        case: &Case,
        keep: Option<&Path>,
    ) -> Result<Self, Failure> {
        let mut bench = Self {
            program: target.join(folder).join("plimsoll"),
            directory: target.join(format!("instructions-{}-{}", std::process::id(), case.name)),
            ports: free_ports()?,
            keep: keep.map(Path::to_owned),
            background: Vec::new(),
        };
        fs::create_dir_all(&bench.directory).map_err(|error| error.to_string())?;
        if let Some(keep) = keep {
            fs::create_dir_all(keep).map_err(|error| error.to_string())?;
        }
        for (name, text) in &case.files {
            let path = bench.directory.join(name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(|error| error.to_string())?;
            }
            fs::write(&path, bench.filled(text, 0)).map_err(|error| error.to_string())?;
        }
        for words in &case.background {
            let mut command = bench.command(words, 0)?;
            command.stdout(Stdio::null());
            bench.background.push(Server::start(&mut command)?);
            wait_for(bench.ports[1], None)?;
        }
        Ok(bench)
    }

    /// Instructions of one request more.
    fn per_request(&self, case: &Case, subject: &Subject) -> Result<u64, Failure> {
        let few = case.requests / 10;
        let (less, more) = (few, few + case.requests);
        let less = self.count(case, subject, less)?;
        let more = self.count(case, subject, more)?;
        Ok(more.saturating_sub(less) / case.requests)
    }

    /// Instructions of all that the subject does with so many requests.
    fn count(&self, case: &Case, subject: &Subject, requests: u64) -> Result<u64, Failure> {
        let log = self.directory.join("valgrind.log");
        let profile = match &self.keep {
            Some(keep) => keep.join(format!("{}-{requests}.callgrind", case.name)),
            None => "/dev/null".into(),
        };
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--fair-sched=yes"])
            .arg(format!("--callgrind-out-file={}", profile.display()))
            .arg(format!("--log-file={}", log.display()))
            .args(self.words(&subject.command, requests))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match &subject.driver {
            None => step::run(&self.directory, &mut command)?,
            Some(driver) => {
                let mut server = Server::start(&mut command)?;
                wait_for(self.ports[0], Some(&mut server.0))?;
                let mut drive = self.command(driver, requests)?;
                step::run(&self.directory, drive.stdout(Stdio::null()))?;
                end(&mut server.0)?;
            }
        }
        let text = fs::read_to_string(&log).map_err(|error| error.to_string())?;
        collected(&text).ok_or_else(|| format!("valgrind: {}", text.trim()).into())
    }

    fn command(&self, words: &[String], requests: u64) -> Result<Command, Failure> {
        let words = self.words(words, requests);
        let (program, arguments) = words.split_first().ok_or("an empty command")?;
        let program = packages::find(program, &[]).unwrap_or_else(|| program.into());
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(command)
    }

    fn words(&self, words: &[String], requests: u64) -> Vec<String> {
        let words = words.iter();
        words.map(|word| self.filled(word, requests)).collect()
    }

    fn filled(&self, text: &str, requests: u64) -> String {
        text.replace("{plimsoll}", &self.program.to_string_lossy())
            .replace("{dir}", &self.directory.to_string_lossy())
            .replace("{requests}", &requests.to_string())
            .replace("{port}", &self.ports[0].to_string())
            .replace("{port2}", &self.ports[1].to_string())
            .replace("{port3}", &self.ports[2].to_string())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A leftover lies in the target directory.
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// Waits until a server listens.
fn wait_for(port: u16, mut server: Option<&mut Child>) -> Outcome {
    for _ in 0..LOOKS {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        let ended = server.as_mut().and_then(|child| child.try_wait().ok()?);
        if let Some(status) = ended {
            return Err(format!("the server ended before it served ({status})").into());
        }
        thread::park_timeout(PAUSE);
    }
    Err(format!("no server listens on port {port}").into())
}

/// Has a server end by itself, so that callgrind sums up.
fn end(server: &mut Child) -> Outcome {
    let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
    let id = id.ok_or("a process has no id")?;
    kill_process(id, Signal::TERM).map_err(|error| error.to_string())?;
    for _ in 0..LOOKS {
        match server.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => thread::park_timeout(PAUSE),
            Err(error) => return Err(error.to_string().into()),
        }
    }
    Err("the server does not end".into())
}

/// The total of callgrind's log.
fn collected(log: &str) -> Option<u64> {
    let line = log
        .lines()
        .find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_callgrind_is_found() {
        let log = "==7== \n==7== Events    : Ir\n==7== Collected : 153486\n==7== \n";
        assert_eq!(collected(log), Some(153_486));
        assert_eq!(collected("==7== no such program\n"), None);
    }

    #[test]
    fn what_is_made_on_each_core_keeps_its_order() {
        let items: Vec<_> = (0..100).collect();
        let made = on_each_core(&items, |item| item * 2);
        assert_eq!(made, items.iter().map(|item| item * 2).collect::<Vec<_>>());
    }
}
