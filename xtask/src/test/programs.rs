//! Programs of tests: cargo builds them, and they run here, as many at once as there are cores. Most of them wait for
//! sockets, timers and databases for most of their time.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use super::since::Changed;
use crate::Failure;
use crate::step;

/// Programs that measure what a server of theirs holds, by package and name: they run when no other does.
const ALONE: [(&str, &str); 1] = [("plimsoll-lab", "line")];

/// Lines that are repeated at the end of a test that failed.
const LINES: usize = 25;

/// A program of tests that is built.
#[derive(Debug)]
pub(super) struct Program {
    package: String,
    /// That of the target: `it`, or the library's.
    name: String,
    executable: PathBuf,
    /// That of the package, in which cargo would run it.
    folder: PathBuf,
    /// The tests to be run, by parts of their names; all without one.
    tests: Vec<String>,
}

/// What cargo has built.
#[derive(Debug, Default)]
pub(super) struct Built {
    pub(super) programs: Vec<Program>,
    /// Packages whose documentation may have tests.
    pub(super) libraries: BTreeSet<String>,
}

/// What all programs are run with.
#[derive(Debug)]
pub(super) struct Setting<'a> {
    /// Words before the program, such as `faketime` and its options.
    pub(super) before: Vec<String>,
    /// Arguments of each program.
    pub(super) arguments: &'a [String],
    /// Whether they print how long each test takes.
    pub(super) times: bool,
    /// So many tests that fail run again, alone; if more fail, none does.
    pub(super) second_chances: usize,
    /// Variables in addition to those of this process.
    pub(super) variables: Vec<(&'static str, String)>,
}

/// Builds by `command`, a `cargo test` without its mode, and reads what there is to run.
pub(super) fn build(root: &Path, command: &mut Command) -> Result<Built, Failure> {
    command.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let shown = step::shown(command);
    println!("$ {shown}");
    let cannot = |error| Failure(format!("cannot run `{shown}`: {error}"));
    let mut child = command
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let mut built = Built::default();
    if let Some(output) = child.stdout.take() {
        let messages = serde_json::Deserializer::from_reader(BufReader::new(output));
        for message in messages.into_iter::<Value>() {
            built.add(&message.map_err(|error| format!("what cargo prints: {error}"))?);
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("tests do not build ({status})").into());
    }
    Ok(built)
}

impl Built {
    /// Takes what a message of cargo is about (Cargo Book, External tools, JSON messages).
    fn add(&mut self, message: &Value) {
        let text = |key: &str| message.pointer(key).and_then(Value::as_str);
        let is_artifact = text("/reason") == Some("compiler-artifact");
        let (Some(manifest), Some(name)) = (text("/manifest_path"), text("/target/name")) else {
            return;
        };
        let folder = Path::new(manifest).parent().unwrap_or(Path::new("."));
        let Some(package) = text("/package_id").and_then(|id| package_of(id, folder)) else {
            return;
        };
        if !is_artifact {
            return;
        }
        if message.pointer("/target/doctest") == Some(&Value::Bool(true)) {
            self.libraries.insert(package.clone());
        }
        if message.pointer("/profile/test") == Some(&Value::Bool(true))
            && let Some(executable) = text("/executable")
        {
            self.programs.push(Program {
                package,
                name: name.to_owned(),
                executable: executable.into(),
                folder: folder.to_owned(),
                tests: Vec::new(),
            });
        }
    }

    /// Leaves only these tests; none of documentation.
    pub(super) fn keep(&mut self, root: &Path, changed: &Changed) {
        self.libraries.clear();
        for program in &mut self.programs {
            let folder = program.folder.strip_prefix(root).ok();
            let tests = folder.and_then(|it| changed.get(it.to_str()?));
            program.tests = tests.into_iter().flatten().cloned().collect();
        }
        self.programs.retain(|program| !program.tests.is_empty());
    }
}

/// The name of a package of this workspace (`path+file:///…/plimsoll-wire#0.1.0`, or `…#name@0.1.0` where its folder has
/// another name); none of others.
fn package_of(id: &str, folder: &Path) -> Option<String> {
    let (place, version) = id.strip_prefix("path+file://")?.split_once('#')?;
    debug_assert!(Path::new(place) == folder);
    match version.split_once('@') {
        Some((name, _)) => Some(name.to_owned()),
        None => Some(place.rsplit('/').next()?.to_owned()),
    }
}

impl Program {
    /// `plimsoll-monitor it`.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.package, self.name)
    }

    fn is_alone(&self) -> bool {
        ALONE.contains(&(&self.package, &self.name))
    }

    fn size(&self) -> u64 {
        fs::metadata(&self.executable).map_or(0, |metadata| metadata.len())
    }

    /// Runs it and returns what it printed, and whether its tests passed.
    ///
    /// - `only`: the names of tests; all without one.
    fn run(&self, setting: &Setting<'_>, only: &[&str]) -> (String, bool) {
        let mut words = setting.before.iter().map(String::as_str);
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(&self.executable);
                command
            }
            None => Command::new(&self.executable),
        };
        // As cargo runs them.
        if !only.is_empty() {
            command.arg("--exact");
        }
        command
            .args(only)
            .args(self.tests.iter().filter(|_| only.is_empty()))
            .args(setting.arguments)
            .current_dir(&self.folder)
            .env("CARGO", env!("CARGO"))
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package)
            .envs(setting.variables.iter().map(|(name, value)| (name, value)));
        if setting.times {
            // The harness has it behind a variable, which is not for cargo: it would build again what depends on it.
            command
                .args(["-Zunstable-options", "--report-time"])
                .env("RUSTC_BOOTSTRAP", "1");
        }
        match output_of(&mut command) {
            Ok(finished) => finished,
            Err(error) => (format!("cannot run {}: {error}\n", self.title()), false),
        }
    }
}

/// Both streams of a process in the order in which they were written, and whether it succeeded.
fn output_of(command: &mut Command) -> std::io::Result<(String, bool)> {
    let (mut reader, writer) = std::io::pipe()?;
    let mut child: Child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    // The command keeps its ends of the pipe, behind which the reader would wait.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut output = Vec::new();
    reader.read_to_end(&mut output)?;
    let succeeded = child.wait()?.success();
    Ok((String::from_utf8_lossy(&output).into_owned(), succeeded))
}

/// Runs all of them, `lanes` at once, prints what each has to say when it has ended, and gives it to `finished`.
///
/// Returns what is to be said of tests that failed and then passed.
pub(super) fn run(
    programs: &[Program],
    lanes: usize,
    setting: &Setting<'_>,
    mut finished: impl FnMut(&Program, &str) + Send,
) -> Result<String, Failure> {
    let (alone, mut together): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| program.is_alone());
    // A large program has many tests: the long ones begin first, so that none of them is left over at the end.
    together.sort_by_key(|program| program.size());
    let mut failed = Vec::new();
    for (queue, lanes) in [(together, lanes), (alone, 1)] {
        let queue = Mutex::new(queue);
        let results = Mutex::new((&mut finished, &mut failed));
        thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().ok().and_then(|mut queue| queue.pop());
                        let Some(program) = next else { return };
                        println!("     Running {}", program.title());
                        let (output, passed) = program.run(setting, &[]);
                        let Ok(mut results) = results.lock() else {
                            return;
                        };
                        println!("\n     Tests of {}\n{output}", program.title());
                        (results.0)(program, &output);
                        if !passed {
                            results.1.push((program, output));
                        }
                    }
                });
            }
        });
    }
    failed.sort_by_key(|(program, _)| program.title());
    let (flaky, failed) = if has_second_chance(&failed, setting) {
        let passes = |(program, output): &(&Program, String)| {
            println!(
                "\n     Running {} again, its failures alone",
                program.title()
            );
            let (again, passed) = program.run(setting, &names(output));
            println!("{again}");
            passed
        };
        failed.into_iter().partition(passes)
    } else {
        (Vec::new(), failed)
    };
    if !failed.is_empty() {
        return Err(said("tests failed", &failed).into());
    }
    if flaky.is_empty() {
        return Ok(String::new());
    }
    Ok(said("tests failed, and passed when they ran again", &flaky))
}

/// A test that fails once in a hundred runs is to be mended, and is not the fault of the change at hand.
fn has_second_chance(failed: &[(&Program, String)], setting: &Setting<'_>) -> bool {
    let names = failed.iter().map(|(_, output)| names(output).len());
    // A program that ended in the middle names none.
    let names: Vec<usize> = names.collect();
    names.iter().all(|it| *it > 0) && names.iter().sum::<usize>() <= setting.second_chances
}

/// The names of the tests that failed: the second list of failures in what their program prints.
fn names(output: &str) -> Vec<&str> {
    let list = output.rsplit_once("\nfailures:\n").map(|(_, list)| list);
    let lines = list.unwrap_or_default().lines();
    lines
        .take_while(|line| line.starts_with("    "))
        .map(str::trim)
        .collect()
}

fn said(headline: &str, failed: &[(&Program, String)]) -> String {
    let titles: Vec<String> = failed.iter().map(|(program, _)| program.title()).collect();
    let mut text = format!("{headline}: {}", titles.join(", "));
    for (program, output) in failed {
        write!(text, "\n\nin {}:\n{}", program.title(), failures(output)).ok();
    }
    text
}

/// What a program says about its tests that failed, a few lines of each; its last lines where it ended in the middle.
/// The output of all programs is long, and where only its end is kept this is what one wants to read.
fn failures(output: &str) -> String {
    let lines: Vec<&str> = if let Some(sections) = output.split("\nfailures:\n").nth(1) {
        let sections = sections.trim().split("\n---- ");
        sections
            .flat_map(|section| section.lines().take(LINES))
            .collect()
    } else {
        let lines: Vec<&str> = output.trim().lines().collect();
        lines[lines.len().saturating_sub(LINES)..].to_vec()
    };
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn artifact(id: &str, name: &str, is_test: bool, executable: Option<&str>) -> Value {
        json!({
            "reason": "compiler-artifact",
            "package_id": id,
            "manifest_path": "/w/crates/plimsoll-wire/Cargo.toml",
            "target": { "name": name, "kind": ["lib"], "doctest": !is_test },
            "profile": { "test": is_test },
            "executable": executable,
        })
    }

    #[test]
    fn programs_are_those_with_tests_of_this_workspace() {
        let own = "path+file:///w/crates/plimsoll-wire#0.1.0";
        let mut built = Built::default();
        for message in [
            artifact(own, "plimsoll_wire", false, None),
            artifact(own, "plimsoll_wire", true, Some("/t/plimsoll_wire-1")),
            artifact(
                "path+file:///w/crates/plimsoll-wire#plimsoll-wire@0.1.0",
                "it",
                true,
                Some("/t/it-2"),
            ),
            artifact(own, "example", false, Some("/t/example")),
            artifact(
                "registry+https://example.org/index#serde@1.0.0",
                "serde",
                false,
                None,
            ),
            json!({ "reason": "build-finished", "success": true }),
        ] {
            built.add(&message);
        }
        let titles: Vec<String> = built.programs.iter().map(Program::title).collect();
        assert_eq!(titles, ["plimsoll-wire plimsoll_wire", "plimsoll-wire it"]);
        assert_eq!(
            built.libraries,
            BTreeSet::from(["plimsoll-wire".to_owned()])
        );
        assert_eq!(
            built.programs[0].folder,
            Path::new("/w/crates/plimsoll-wire")
        );
    }

    /// A program that `sh` is put before.
    fn shell(name: &str, script: &str, folder: &Path) -> Program {
        let executable = folder.join(name);
        fs::write(&executable, script).expect("a file in a temporary folder");
        Program {
            package: "plimsoll-lab".to_owned(),
            name: name.to_owned(),
            executable,
            folder: folder.to_owned(),
            tests: Vec::new(),
        }
    }

    #[test]
    fn output_is_whole_and_failures_are_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = vec![
            shell(
                "good",
                "echo out; echo err >&2; echo $1 $A; pwd",
                folder.path(),
            ),
            shell("bad", "echo the end; exit 3", folder.path()),
            shell("line", "echo alone", folder.path()),
        ];
        let arguments = ["--exact".to_owned()];
        let setting = Setting {
            before: vec!["sh".to_owned()],
            arguments: &arguments,
            times: false,
            second_chances: 0,
            variables: vec![("A", "7".to_owned())],
        };
        let mut seen = Vec::new();
        let outcome = run(&programs, 2, &setting, |program, output| {
            seen.push((program.title(), output.to_owned()));
        });
        let Err(Failure(message)) = outcome else {
            panic!("one of them failed");
        };
        assert_eq!(
            message,
            "tests failed: plimsoll-lab bad\n\nin plimsoll-lab bad:\nthe end"
        );
        assert_eq!(
            seen[2],
            ("plimsoll-lab line".to_owned(), "alone\n".to_owned())
        );
        seen.sort();
        let folder = fs::canonicalize(folder.path()).expect("it is there");
        let expected = format!("out\nerr\n--exact 7\n{}\n", folder.display());
        assert_eq!(seen[1], ("plimsoll-lab good".to_owned(), expected));
    }

    #[test]
    fn tests_that_fail_once_have_a_second_chance_unless_many_do() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // It fails unless it is to run one test alone.
        let script = "[ \"$1 $2\" = \"--exact a::b\" ] && exit\n\
            printf '\\nfailures:\\n---- a::b stdout ----\\nleft: 1\\n\\nfailures:\\n    a::b\\n\\ntest result: FAILED\\n'\nexit 101";
        let once = shell("once", script, folder.path());
        let always = script.replace("exit\n", "true\n");
        let always = shell("always", &always, folder.path());
        let ended = shell("ended", "kill -9 $$", folder.path());
        let setting = |second_chances| Setting {
            before: vec!["sh".to_owned()],
            arguments: &[],
            times: false,
            second_chances,
            variables: Vec::new(),
        };
        let outcome =
            |programs: &[Program], chances| match run(programs, 1, &setting(chances), |_, _| {}) {
                Ok(flaky) => (true, flaky),
                Err(Failure(message)) => (false, message),
            };
        let once = [once];
        let (passed, said) = outcome(&once, 1);
        assert!(passed);
        let headline = "tests failed, and passed when they ran again: plimsoll-lab once";
        assert!(
            said.starts_with(headline) && said.ends_with("left: 1"),
            "{said}"
        );
        assert!(!outcome(&once, 0).0);
        let [once] = once;
        let (passed, said) = outcome(&[once, always], 2);
        assert!(!passed);
        assert!(
            said.starts_with("tests failed: plimsoll-lab always\n"),
            "{said}"
        );
        assert!(!outcome(&[ended], 5).0);
    }

    #[test]
    fn of_failed_tests_the_first_lines_are_said_again() {
        let long = "more\n".repeat(40);
        let output = format!(
            "running 2 tests\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nthread 'a' panicked at x.rs:1:2\n{long}\n\
             ---- b stdout ----\nleft: 1\n\n\nfailures:\n    a\n    b\n\ntest result: FAILED."
        );
        let said = failures(&output);
        assert!(said.starts_with("---- a stdout ----\nthread 'a' panicked at x.rs:1:2\nmore\n"));
        assert!(said.ends_with("more\nb stdout ----\nleft: 1"), "{said}");
        assert_eq!(said.lines().count(), LINES + 2);
    }
}
