//! `cargo xtask conformance k6 --corpus DIR`: scripts of public repositories, run by k6 and by plimsoll.
//!
//! `repositories.txt` lists the repositories with their commits; DIR has their clones, which nothing here fetches or commits.
//! Every script that k6 initialises is compared twice: what both programs say of it without a run (`inspect`), as it is; and
//! what they do in a short run of it against a stand-in, for which hosts and durations are rewritten by rule ([`rewrite`]).
//! Differences are grouped by cause ([`differ`]). A script that differs is run again, as the scripts of ours are.

mod checkout;

mod differ;

mod grpc;

mod report;

mod rewrite;

mod session;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use self::checkout::Repository;
use self::differ::Difference;
use self::report::Report;
use self::session::{Programs, Session};
use super::ATTEMPTS;
use crate::server::Server;
use crate::{Failure, Outcome};

/// The list of repositories, and the stand-in.
const FOLDER: &str = "crates/plimsoll-k6/tests/conformance/corpus";

/// What is run.
pub(super) struct Corpus<'a> {
    /// The workspace.
    pub(super) root: &'a Path,
    /// The clones.
    pub(super) clones: &'a Path,
    /// Parts of names of repositories or scripts; all if empty.
    pub(super) names: &'a [String],
    pub(super) k6: &'a Path,
    pub(super) program: &'a Path,
    /// Bundles scripts that k6 does not run as they are.
    pub(super) esbuild: Option<&'a Path>,
    /// Where scripts are checked out and the report is written.
    pub(super) target: &'a Path,
    /// Scripts of each repository that are run.
    pub(super) most: usize,
    /// Repositories that are run at the same time.
    pub(super) jobs: NonZeroUsize,
}

/// Compares all scripts, and prints the causes of what differs.
pub(super) fn run(corpus: &Corpus<'_>) -> Outcome {
    let folder = corpus.root.join(FOLDER);
    let list = folder.join("repositories.txt");
    let list = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let repositories = checkout::repositories(&list)?;
    let (_server, address) = serve(corpus.program, &folder.join("rules.toml"))?;
    let programs = Programs::prepare(corpus, &address)?;
    let report = Mutex::new(Report::default());
    let waiting = repositories.iter().filter(|it| it.is_named(corpus.names));
    let waiting = Mutex::new(waiting);
    let work = || -> Result<(), String> {
        loop {
            let next = lock(&waiting).next();
            let Some(repository) = next else {
                return Ok(());
            };
            compare_all(corpus, &programs, repository, &report)
                .map_err(|error| format!("{}: {}", repository.name, error.0))?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..corpus.jobs.get()).map(|_| scope.spawn(work)).collect();
        let ends = threads.into_iter().map(|thread| match thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        // All of them are waited for.
        ends.collect::<Vec<_>>()
            .into_iter()
            .collect::<Result<(), _>>()
    })?;
    lock(&report).print();
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compares the scripts of a repository.
fn compare_all(
    corpus: &Corpus<'_>,
    programs: &Programs<'_>,
    repository: &Repository,
    report: &Mutex<Report>,
) -> Outcome {
    let Some(git) = repository.clone_in(corpus.clones) else {
        lock(report).is_missing(repository);
        return Ok(());
    };
    let session = Session::check_out(programs, repository, &git)?;
    let mut scripts = session.scripts()?;
    scripts.retain(|script| {
        let name = format!("{}/{script}", repository.name);
        corpus.names.is_empty() || corpus.names.iter().any(|it| name.contains(it.as_str()))
    });
    // Those that are run are of all folders, and the same in every run.
    scripts.sort_by_key(|script| checkout::mixed(script));
    let mut count = 0;
    for script in scripts {
        if count == corpus.most {
            break;
        }
        let (script, theirs) = match session.inspect_by_k6(&script)? {
            Ok(theirs) => (script, theirs),
            Err(error) => {
                let Some(bundled) = session.bundle(&script)? else {
                    lock(report).is_not_run(repository, &script, &error);
                    continue;
                };
                bundled
            }
        };
        count += 1;
        let found = compare(&session, &script, &theirs)?;
        let word = if found.is_empty() {
            "same   "
        } else {
            "differs"
        };
        let mut lines = format!("{word} {}/{script}", repository.name);
        for difference in &found {
            lines.push_str("\n        ");
            lines.push_str(&difference.to_string());
        }
        println!("{lines}");
        lock(report).add(repository, &script, found);
    }
    session.clear();
    // A run of all takes long: what there is can be read meanwhile.
    lock(report).write(&corpus.target.join("report.md"))
}

/// Differences that every attempt has.
fn compare(
    session: &Session<'_>,
    script: &str,
    theirs: &serde_json::Value,
) -> Result<Vec<Difference>, Failure> {
    let inspected = session.inspect_by_plimsoll(script)?;
    let mut lasting = differ::inspected(theirs, &inspected);
    let scenarios = theirs["scenarios"].as_object();
    let is_parallel = scenarios.is_some_and(|scenarios| scenarios.len() > 1);
    let mut of_runs: Option<BTreeMap<String, Difference>> = None;
    let mut before = None;
    for _ in 0..ATTEMPTS {
        let by_k6 = session.run_k6(script)?;
        let found = differ::runs(&by_k6, &session.run_plimsoll(script)?, is_parallel);
        let found = found.into_iter().map(|it| (it.cause.clone(), it));
        let mut found: BTreeMap<_, _> = found.collect();
        // A difference between two runs of k6 is chance.
        if let Some(before) = &before {
            for changing in differ::runs(before, &by_k6, is_parallel) {
                found.remove(&changing.cause);
            }
        }
        before = Some(by_k6);
        let kept = match of_runs {
            None => found,
            Some(before) => before
                .into_iter()
                .filter(|(cause, _)| found.contains_key(cause))
                .collect(),
        };
        let is_same = kept.is_empty();
        of_runs = Some(kept);
        if is_same {
            break;
        }
    }
    lasting.extend(of_runs.unwrap_or_default().into_values());
    Ok(lasting)
}

/// Starts the stand-in; returns `HOST:PORT`.
fn serve(program: &Path, rules: &Path) -> Result<(Server, String), Failure> {
    let mut command = Command::new(program);
    command
        .arg("mock")
        .arg(rules)
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped());
    let mut server = Server::start(&mut command)?;
    let stdout = server.0.stdout.take().ok_or("the server has no output")?;
    let line = BufReader::new(stdout).lines().map_while(Result::ok).next();
    let address = line.and_then(|line| {
        let (_, address) = line.split_once("http://")?;
        Some(address.trim_end_matches('/').to_owned())
    });
    Ok((server, address.ok_or("the server does not listen")?))
}

/// A folder that exists, without anything that was in it.
fn emptied(folder: &Path) -> Result<PathBuf, Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder.to_owned())
}
