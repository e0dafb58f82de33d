//! Runs the program and takes down what it says.

use std::fmt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program's output and how it exited.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

impl CommandOutput {
    pub(crate) fn from_output(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code(),
        }
    }

    /// The JSON that it printed.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self}"))
    }

    /// Fails the test unless it exited with `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }
}

impl fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or("none".to_owned(), |code| code.to_string());
        if !self.stdout.is_empty() {
            writeln!(f, "{}", self.stdout.trim_end())?;
        }
        if !self.stderr.is_empty() {
            writeln!(f, "{}", self.stderr.trim_end())?;
        }
        write!(f, "exit {code}")
    }
}

/// The program with these arguments, without the user's proxies and colours.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(arguments).stdin(Stdio::null());
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command
}

/// Runs the program to its end.
pub(crate) fn plimsoll(arguments: &[&str]) -> CommandOutput {
    run(&mut command(arguments))
}

pub(crate) fn run(command: &mut Command) -> CommandOutput {
    CommandOutput::from_output(command.output().unwrap())
}

/// The names of the files in `directory`, sorted.
pub(crate) fn files_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
