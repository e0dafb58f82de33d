//! `cargo xtask conformance k6`: scripts of ours, run by k6 and by `plimsoll load` against one server.
//!
//! Compared are exit codes, lines of the console and the data of `handleSummary()`: counts have to be equal, durations only have
//! to be there. A script says in its first lines what else holds: `// exit: 99`, `// flags: -u 2`, `// signal: 1500ms`, and
//! `// about: iterations` for metrics whose counts depend on timing. Lines of the console that begin with `at` end with
//! milliseconds, which may differ by a few. A script that differs is run again, up to three times in all: it fails if it differs
//! each time.

mod compare;

mod corpus;

mod examples;

mod run;

use std::fs;
use std::io::{BufRead, BufReader};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, Subcommand};

use self::compare::differences;
use self::corpus::Corpus;
use self::run::Run;
use crate::bench::{install_k6, target_directory};
use crate::packages;
use crate::server::Server;
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

/// Where the scripts are.
const SCRIPTS: &str = "crates/plimsoll-k6/tests/conformance";

/// How often a script that differs is run. On a busy machine either program may start iterations late or not at all; a
/// difference of their behaviour is found every time.
const ATTEMPTS: usize = 3;

/// What is compared
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    program: Program,
}

#[derive(Debug, Subcommand)]
enum Program {
    /// Run scripts by k6 and by plimsoll, and compare what they do
    K6 {
        /// Run only scripts whose names contain one of these
        names: Vec<String>,

        /// Run this k6 [default: the one on the path]
        #[arg(long, value_name = "FILE")]
        k6: Option<PathBuf>,

        /// Test this program instead of building one
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,

        /// Run these scripts of others instead, such as k6's `examples`, once each; only exit codes and exceptions are compared
        #[arg(long, value_name = "DIR")]
        examples: Option<PathBuf>,

        /// Run scripts of public repositories instead, whose clones are in this folder, and report causes of differences
        #[arg(long, value_name = "DIR", conflicts_with = "examples")]
        corpus: Option<PathBuf>,

        /// Run at most so many scripts of each repository, from all of its folders
        #[arg(long, value_name = "N", requires = "corpus", default_value_t = usize::MAX)]
        most: usize,

        /// Run so many repositories at the same time
        #[arg(long, value_name = "N", requires = "corpus", default_value = "1")]
        jobs: NonZeroUsize,

        /// Bundle scripts that k6 does not run as they are by this program
        #[arg(long, value_name = "FILE", requires = "corpus")]
        esbuild: Option<PathBuf>,
    },
}

/// A script with what its first lines say.
#[derive(Debug, Clone, Default)]
struct Case {
    name: String,
    /// `js` or `ts`.
    extension: String,
    text: String,
    exit: i32,
    flags: Vec<String>,
    /// Milliseconds after which both programs get a SIGINT.
    signal: Option<u64>,
    /// Metrics whose counts may differ.
    about: Vec<String>,
}

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let Program::K6 {
        names,
        k6,
        program,
        examples,
        corpus,
        most,
        jobs,
        esbuild,
    } = &arguments.program;
    let target = target_directory(root)?;
    let k6 = if let Some(k6) = k6 {
        k6.clone()
    } else {
        let peers = target.join("peers");
        let find = || packages::find("k6", &[peers.join("bin")]);
        if find().is_none() {
            install_k6(root, &peers)?;
        }
        find().ok_or("k6 cannot be built without Go; name one that exists by --k6")?
    };
    let program = if let Some(program) = program {
        program.clone()
    } else {
        step::run(root, &mut cargo(&["build", "--locked"]))?;
        target.join("debug/plimsoll")
    };
    // The programs are run in separate folders.
    let absolute = |path: PathBuf| {
        path.canonicalize()
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    let (k6, program) = (absolute(k6)?, absolute(program)?);
    if let Some(folder) = examples {
        return examples::run(&absolute(folder.clone())?, &program, &k6);
    }
    if let Some(clones) = corpus {
        let work = target.join("corpus");
        fs::create_dir_all(&work).map_err(|error| error.to_string())?;
        return corpus::run(&Corpus {
            root,
            clones: &absolute(clones.clone())?,
            names,
            k6: &k6,
            program: &program,
            esbuild: esbuild.clone().map(absolute).transpose()?.as_deref(),
            target: &absolute(work)?,
            most: *most,
            jobs: *jobs,
        });
    }
    let cases = cases(&root.join(SCRIPTS), names)?;
    let directory = target.join(format!("conformance-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let outcome = compare_all(root, &program, &k6, &directory, &cases);
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    outcome
}

fn compare_all(
    root: &Path,
    program: &Path,
    k6: &Path,
    directory: &Path,
    cases: &[Case],
) -> Outcome {
    let (_server, base) = serve(root, program)?;
    let mut failed = 0;
    for case in cases {
        let attempts = attempts(ATTEMPTS, || {
            let theirs = Run::of_k6(k6, case, &base, directory)?;
            let ours = Run::of_plimsoll(program, case, &base, directory)?;
            Ok::<_, Failure>(differences(case, &theirs, &ours))
        })?;
        let is_same = attempts.last().is_none_or(Vec::is_empty);
        let (word, note) = match (is_same, attempts.len()) {
            (true, 1) => ("ok    ", String::new()),
            (true, attempt) => ("ok    ", format!(" (attempt {attempt}; earlier:)")),
            (false, attempt) => ("FAILED", format!(" (in each of {attempt} attempts)")),
        };
        println!("{word} {}{note}", case.name);
        // Those of the last attempt that differed.
        let differed = attempts.iter().rfind(|found| !found.is_empty());
        for difference in differed.into_iter().flatten() {
            println!("       {difference}");
        }
        failed += usize::from(!is_same);
    }
    println!("{} scripts, {failed} that differ", cases.len());
    if failed == 0 {
        Ok(())
    } else {
        Err(format!("{failed} scripts differ").into())
    }
}

/// The differences of each attempt, until one has none.
fn attempts<E>(
    most: usize,
    mut compare: impl FnMut() -> Result<Vec<String>, E>,
) -> Result<Vec<Vec<String>>, E> {
    let mut attempts = Vec::new();
    while attempts.len() < most
        && attempts
            .last()
            .is_none_or(|found: &Vec<_>| !found.is_empty())
    {
        attempts.push(compare()?);
    }
    Ok(attempts)
}

/// Starts the server that the scripts request; returns its URL.
fn serve(root: &Path, program: &Path) -> Result<(Server, String), Failure> {
    let mut command = Command::new(program);
    command
        .arg("mock")
        .arg(root.join(SCRIPTS).join("server/rules.toml"))
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped());
    let mut server = Server::start(&mut command)?;
    let stdout = server.0.stdout.take().ok_or("the server has no output")?;
    let line = BufReader::new(stdout).lines().map_while(Result::ok).next();
    let url = line.and_then(|line| {
        Some(
            line.split_once("http://")?
                .1
                .trim_end_matches('/')
                .to_owned(),
        )
    });
    let url = url.ok_or("the server does not listen")?;
    Ok((server, format!("http://{url}")))
}

/// The scripts of a folder by name.
fn cases(folder: &Path, names: &[String]) -> Result<Vec<Case>, Failure> {
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let extension = path.extension().and_then(|it| it.to_str());
        let Some(extension) = extension.filter(|it| matches!(*it, "js" | "ts")) else {
            continue;
        };
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !names.is_empty() && !names.iter().any(|wanted| name.contains(wanted.as_str())) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(unreadable)?;
        cases.push(Case {
            extension: extension.to_owned(),
            ..case(name, text)?
        });
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(cases)
}

fn case(name: String, text: String) -> Result<Case, Failure> {
    let mut case = Case {
        name,
        ..Case::default()
    };
    let directives = text.lines().map_while(|line| line.strip_prefix("// "));
    for (key, value) in directives.filter_map(|line| line.split_once(": ")) {
        let wrong = || format!("{}: `{value}` is no value of `{key}`", case.name);
        let words = value.split(' ').map(str::to_owned);
        match key {
            "exit" => case.exit = value.parse().map_err(|_| wrong())?,
            "flags" => case.flags = words.collect(),
            "signal" => {
                let millis = value.strip_suffix("ms").and_then(|it| it.parse().ok());
                case.signal = Some(millis.ok_or_else(wrong)?);
            }
            "about" => case.about = words.collect(),
            _ => return Err(format!("{}: no directive `{key}`", case.name).into()),
        }
    }
    case.text = text;
    Ok(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_run_until_it_does_not_differ() {
        let run = |results: &[&[&str]]| {
            let mut results = results.iter();
            let compare = || {
                let next = results.next().ok_or("run too often")?;
                Ok::<_, &str>(next.iter().map(|it| (*it).to_owned()).collect())
            };
            attempts(3, compare)
        };
        let lengths = |results: &[&[&str]]| -> Result<Vec<usize>, &str> {
            Ok(run(results)?.iter().map(Vec::len).collect())
        };
        assert_eq!(lengths(&[&[]]), Ok(vec![0]));
        assert_eq!(lengths(&[&["late"], &[]]), Ok(vec![1, 0]));
        assert_eq!(lengths(&[&["a"], &["a", "b"], &["a"]]), Ok(vec![1, 2, 1]));
        assert_eq!(lengths(&[&["a"]]), Err("run too often"));
    }
}
