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

use crate::step;
use crate::{Failure, Outcome};

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
            });
        }
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
    fn run(&self, setting: &Setting<'_>) -> (String, bool) {
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
        command
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
pub(super) fn run(
    programs: &[Program],
    lanes: usize,
    setting: &Setting<'_>,
    mut finished: impl FnMut(&Program, &str) + Send,
) -> Outcome {
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
                        let (output, passed) = program.run(setting);
                        let Ok(mut results) = results.lock() else {
                            return;
                        };
                        println!("\n     Tests of {}\n{output}", program.title());
                        (results.0)(program, &output);
                        if !passed {
                            results.1.push((program.title(), failures(&output)));
                        }
                    }
                });
            }
        });
    }
    if failed.is_empty() {
        Ok(())
    } else {
        failed.sort();
        let titles: Vec<&str> = failed.iter().map(|(title, _)| title.as_str()).collect();
        let mut message = format!("tests failed: {}", titles.join(", "));
        for (title, failures) in &failed {
            write!(message, "\n\nin {title}:\n{failures}").ok();
        }
        Err(message.into())
    }
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
