//! The program while it serves.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::plimsoll::{command, plimsoll};

/// A server that ends with the test.
pub(crate) struct Served {
    pub(crate) child: Child,
    /// Where it listens, as it says itself.
    pub(crate) url: String,
}

impl Served {
    /// - `arguments`: of a command that serves.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_program(&mut command(arguments))
    }

    /// Any program that says where it listens as ours does.
    pub(crate) fn start_program(program: &mut Command) -> Self {
        let (served, []) = Self::with_more(program);
        served
    }

    /// The same with `N` more listeners, and their URLs.
    pub(crate) fn with_more<const N: usize>(program: &mut Command) -> (Self, [String; N]) {
        let mut child = program
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let mut url = || {
            let line = lines.next().unwrap().unwrap();
            let url = line.strip_prefix("listening on ");
            url.unwrap_or_else(|| panic!("no address: {line}"))
                .to_owned()
        };
        let (url, more) = (url(), std::array::from_fn(|_| url()));
        (Self { child, url }, more)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether what is behind a path is as `check` expects it.
    ///
    /// - `path`: with its slash.
    pub(crate) fn answers(&self, path: &str, conditions: &[&str]) -> bool {
        let url = format!("{}{path}", self.url.trim_end_matches('/'));
        let mut arguments = vec!["check", &url, "--insecure"];
        for condition in conditions {
            arguments.extend(["--expect", condition]);
        }
        plimsoll(&arguments).code == Some(0)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
