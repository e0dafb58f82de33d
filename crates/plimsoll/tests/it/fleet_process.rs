//! Coordinators and agents as processes, and their lines.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use plimsoll_testkit::{NatsServer, Origin, eventually, eventually_or};
use rustix::process::{Pid, Signal, kill_process};

use crate::plimsoll::{CommandOutput, command, plimsoll};

/// Lines of a program, as they come.
struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
    reading: JoinHandle<()>,
}

impl Lines {
    fn read(stderr: ChildStderr) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let said = Arc::clone(&lines);
        let reading = thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                said.lock().unwrap().push(line);
            }
        });
        Self { lines, reading }
    }

    fn find(&self, text: &str) -> Option<String> {
        let lines = self.lines.lock().unwrap();
        lines.iter().find(|line| line.contains(text)).cloned()
    }

    /// Waits for a line with this text.
    #[track_caller]
    fn wait_for(&self, text: &str) {
        let lines = || format!("in {:#?}", self.lines.lock().unwrap());
        eventually_or(|| self.find(text).is_some(), lines);
    }

    /// All of them, once the program has ended.
    fn all(self) -> String {
        self.reading.join().unwrap();
        let lines = self.lines.lock().unwrap();
        lines.join("\n")
    }
}

/// A coordinator that runs in the background of a test.
pub(crate) struct RunProcess {
    child: Child,
    lines: Lines,
}

impl RunProcess {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = Lines::read(child.stderr.take().unwrap());
        Self { child, lines }
    }

    /// Waits for a line with this text.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        self.lines.wait_for(text);
    }

    /// The name of its run.
    pub(crate) fn name(&self) -> String {
        self.says(" waits up to ");
        let line = self.lines.find(" waits up to ").unwrap();
        let (before, _) = line.split_once(" waits up to ").unwrap();
        before.rsplit(' ').next().unwrap().to_owned()
    }

    pub(crate) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Signals until it has ended: two that come at once are one.
    #[track_caller]
    pub(crate) fn interrupt_to_the_end(&mut self) {
        eventually(|| {
            self.interrupt();
            self.child.try_wait().unwrap().is_some()
        });
    }

    /// Kills it; returns the name of its run.
    pub(crate) fn kill(mut self) -> String {
        let name = self.name();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        name
    }

    /// Waits for its end.
    pub(crate) fn end(self) -> CommandOutput {
        let output = self.child.wait_with_output().unwrap();
        CommandOutput {
            stderr: self.lines.all(),
            ..CommandOutput::from_output(output)
        }
    }
}

/// An agent that is killed with the test, and its lines.
pub(crate) struct AgentProcess {
    child: Child,
    lines: Lines,
}

impl AgentProcess {
    pub(crate) fn start(server: &NatsServer, name: &str, flags: &[&str]) -> Self {
        let url = server.url();
        let mut arguments = vec!["agent", "--nats", &url, "--name", name, "--cores", "2"];
        arguments.extend(flags);
        let mut child = command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Lines::read(child.stderr.take().unwrap());
        Self { child, lines }
    }

    pub(crate) fn has_said(&self, text: &str) -> bool {
        self.lines.find(text).is_some()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit code, once it has ended.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    #[track_caller]
    pub(crate) fn waits(self) -> Self {
        self.lines.wait_for("waits for runs");
        self
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) fn agents(server: &NatsServer, flags: &[&str]) -> [AgentProcess; 2] {
    let agents = ["one", "two"].map(|name| AgentProcess::start(server, name, flags));
    agents.map(AgentProcess::waits)
}

/// The arguments of a run over two agents.
pub(crate) fn fleet<'a>(url: &'a str, flags: &[&'a str], target: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["load", "--fleet", url, "--agents", "2", "--no-tui"];
    // Clocks are compared by round trips, which are long where other tests have the cores.
    arguments.extend(["--most-spread", "5s"]);
    arguments.extend(flags);
    arguments.push(target);
    arguments
}

pub(crate) fn run(server: &NatsServer, flags: &[&str], target: &str) -> CommandOutput {
    plimsoll(&fleet(&server.url(), flags, target))
}

/// Whether the broker keeps nothing of a run.
pub(crate) fn is_clean(server: &NatsServer) -> bool {
    server.streams().is_empty()
}

/// Starts a run over two agents.
pub(crate) fn begin(server: &NatsServer, flags: &[&str], origin: &Origin) -> RunProcess {
    let (broker, url) = (server.url(), origin.url("/"));
    RunProcess::start(&mut command(&fleet(&broker, flags, &url)))
}

pub(crate) fn attach(server: &NatsServer, run: &str) -> CommandOutput {
    let url = server.url();
    plimsoll(&[
        "load", "--fleet", &url, "--attach", run, "--no-tui", "--json",
    ])
}
