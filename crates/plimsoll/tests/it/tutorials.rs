//! The tutorials of docs/tutorials/, done as a reader does them: the same files, commands in the same shell, servers in terminals of their own; and each command
//! prints what its page shows.
//!
//! What is changed: ports, since another program may have those of the page, and how long things take.

mod output;
mod page;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex, mpsc};

use plimsoll_testkit::{eventually, free_port};
use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};

use self::output::Comparison;
use self::page::Step;
use crate::docs::{WORKSPACE, serves, shell};

#[test]
fn cost_gate() {
    check("cost-gate");
}

#[test]
fn from_k6() {
    check("from-k6");
}

#[test]
fn mock_front_end() {
    check("mock-front-end");
}

#[test]
fn status_page() {
    check("status-page");
}

#[test]
fn two_servers() {
    check("two-servers");
}

#[test]
fn every_tutorial_has_a_test() {
    let folder = Path::new(WORKSPACE).join("docs/tutorials");
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = [
        "cost-gate",
        "from-k6",
        "mock-front-end",
        "status-page",
        "two-servers",
    ];
    assert_eq!(names, expected.map(|name| format!("{name}.md")));
}

/// Follows a page.
fn check(name: &str) {
    let file = Path::new(WORKSPACE).join(format!("docs/tutorials/{name}.md"));
    let text = fs::read_to_string(file).unwrap();
    let mut reader = Reader::new(&text);
    let steps = page::steps(&text);
    assert!(steps.len() > 10, "{} steps were found", steps.len());
    for (line, step) in steps {
        reader.take_step(step, &format!("docs/tutorials/{name}.md:{line}"));
    }
}

/// A reader who follows a page.
struct Reader {
    /// Everything that the page makes is in here.
    folder: tempfile::TempDir,
    ports: Vec<(String, String)>,
    shell: Shell,
    servers: Vec<Terminal>,
    comparison: Comparison,
}

impl Reader {
    fn new(page: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shell = Shell::start(folder.path());
        Self {
            ports: ports(page),
            shell,
            servers: Vec::new(),
            comparison: Comparison::new(),
            folder,
        }
    }

    /// - `place`: of the page, for what goes wrong.
    fn take_step(&mut self, step: Step, place: &str) {
        match step {
            Step::File { name, content } => {
                let file = self.shell.folder().join(self.adapt(&name));
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, self.adapt(&content)).unwrap();
            }
            Step::Command { text, prints, .. } if serves(&text) => {
                let terminal = Terminal::start(
                    &text,
                    &self.adapt(&text),
                    &self.shell.folder(),
                    self.folder.path(),
                );
                self.servers.push(terminal);
                self.await_lines(self.servers.len() - 1, &prints, place);
            }
            Step::Command {
                text,
                prints,
                is_repeated,
            } => {
                let adapted = self.adapt(&text);
                let prints: Vec<_> = prints.iter().map(|line| self.adapt(line)).collect();
                let mut printed = self.shell.run(&adapted);
                if is_repeated {
                    let (shell, comparison) = (&mut self.shell, &self.comparison);
                    let _described = Described(|| format!("{place}: {adapted}"));
                    eventually(|| {
                        printed = shell.run(&adapted);
                        comparison.agrees(&prints, &printed)
                    });
                }
                assert!(
                    self.comparison.agrees(&prints, &printed),
                    "{place}: {adapted}\nprinted:\n{}",
                    printed.join("\n")
                );
            }
            Step::Terminal { command, prints } => {
                let at = self.server(&command, place);
                self.await_lines(at, &prints, place);
            }
            Step::Stop { command } => {
                let at = self.server(&command, place);
                self.servers.remove(at).stop();
            }
        }
    }

    /// The running server that a command of this beginning has started.
    fn server(&self, command: &str, place: &str) -> usize {
        let found = self
            .servers
            .iter()
            .position(|it| it.command.starts_with(command));
        found.unwrap_or_else(|| panic!("{place}: no server was started by `{command}`"))
    }

    /// Waits until a server has printed these lines, in any order.
    fn await_lines(&self, at: usize, prints: &[String], place: &str) {
        let server = &self.servers[at];
        let _described = Described(|| {
            format!(
                "{place}: {} printed:\n{}",
                server.command,
                server.printed().join("\n")
            )
        });
        for line in prints {
            let line = self.adapt(line);
            eventually(|| self.comparison.has(&line, &server.printed()));
        }
    }

    /// Text of the page for this test: its ports, the files of the package, and short times.
    fn adapt(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (theirs, ours) in &self.ports {
            text = text.replace(&format!(":{theirs}"), &format!(":{ours}"));
            text = text.replace(&format!("-p {theirs}"), &format!("-p {ours}"));
        }
        let packaging = format!("{WORKSPACE}/packaging/");
        for (page, here) in [
            ("/usr/share/plimsoll/", packaging.as_str()),
            ("-z 3s", "-z 500ms"),
            ("-z 10s", "-z 2s"),
            ("-q 500", "-q 100"),
            ("duration: \"3s\"", "duration: \"1s\""),
            ("--trials 6", "--trials 3"),
            ("TRIALS=6", "TRIALS=3"),
            ("DURATION=3s WARM_UP=1s", "DURATION=500ms WARM_UP=100ms"),
            ("interval = \"2s\"", "interval = \"300ms\""),
            ("interval = \"1s\"", "interval = \"200ms\""),
            ("time = \"5s\"", "time = \"1s\""),
            ("hold = \"5s\"", "hold = \"1s\""),
        ] {
            text = text.replace(page, here);
        }
        text
    }
}

/// A text that is printed if the test fails meanwhile.
pub(crate) struct Described<F: Fn() -> String>(pub(crate) F);

impl<F: Fn() -> String> Drop for Described<F> {
    #[expect(clippy::print_stderr, reason = "a failed test is explained there")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", (self.0)());
        }
    }
}

/// The ports of a page, each with one that is free here.
fn ports(page: &str) -> Vec<(String, String)> {
    let pattern = Regex::new(r"(?:127\.0\.0\.1:|-p )(\d{4,5})\b").unwrap();
    let mut found: Vec<String> = pattern
        .captures_iter(page)
        .map(|it| it[1].to_owned())
        .collect();
    found.sort();
    found.dedup();
    found
        .into_iter()
        .map(|port| (port, free_port().unwrap().to_string()))
        .collect()
}

/// The terminal in which commands are typed.
struct Shell {
    child: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<String>,
    folder: PathBuf,
}

impl Shell {
    /// Ends the output of a command.
    const END: &str = "--end of the command--";

    fn start(folder: &Path) -> Self {
        let mut child = shell("exec bash 2>&1", folder)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            output
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self {
            child,
            input,
            lines,
            folder: folder.to_owned(),
        }
    }

    /// What a command prints, on standard output and standard error.
    fn run(&mut self, command: &str) -> Vec<String> {
        let end = Self::END;
        writeln!(
            self.input,
            "{{ {command}\n}} </dev/null; echo; echo {end}; pwd"
        )
        .unwrap();
        let mut printed = Vec::new();
        loop {
            let line = self.lines.recv().expect("the shell goes on");
            if line == end {
                break;
            }
            printed.push(line);
        }
        self.folder = self.lines.recv().unwrap().into();
        printed
    }

    /// Where it is.
    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A terminal with a server.
struct Terminal {
    /// As the page has it.
    command: String,
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Terminal {
    fn start(command: &str, adapted: &str, folder: &Path, home: &Path) -> Self {
        let mut child = shell(&format!("exec {adapted} 2>&1"), home)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let printed = Arc::clone(&lines);
        std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines.for_each(|line| printed.lock().unwrap().push(line));
        });
        Self {
            command: command.to_owned(),
            child,
            lines,
        }
    }

    fn printed(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Ctrl-C.
    fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
