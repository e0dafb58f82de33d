//! `load_script`: a k6 script within the bounds.

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::bounds::Bounds;
use super::request::{HTTP2, HTTP3};
use super::{Act, Command, Form, Tool};
use crate::flags::number;
use crate::problem::Problem;

pub(super) const TOOL: Tool = Tool {
    name: "load_script",
    title: "Run a k6 script",
    doc: "Run a k6 script (.js, .ts or an archive of k6) and return its summary: checks, thresholds and metrics, in the format of \
          k6's --summary-export. Virtual users, duration and requests per second are bounded, and connections lead to allowed \
          targets alone. `load_validate` shows what a script would do.",
    arguments: &[
        SCRIPT,
        Argument {
            name: "vus",
            kind: Kind::Connections,
            passed: Passed::Flag("--vus"),
            doc: "Virtual users, in place of the script's scenarios",
        },
        Argument {
            name: "duration",
            kind: Kind::Time,
            passed: Passed::Flag("--duration"),
            doc: "Length of the run, in place of the script's scenarios",
        },
        Argument {
            name: "iterations",
            kind: Kind::Count(number::MOST_REQUESTS),
            passed: Passed::Flag("--iterations"),
            doc: "Iterations that all virtual users share, in place of the script's scenarios",
        },
        ENVIRONMENT,
        HTTP2,
        HTTP3,
    ],
    required: &["script"],
    output_schema: None,
    sends: true,
    act: Act::Run(act),
};

pub(super) const SCRIPT: Argument = Argument {
    name: "script",
    kind: Kind::Path,
    passed: Passed::Positional,
    doc: "File of the script, below the root",
};

pub(super) const ENVIRONMENT: Argument = Argument {
    name: "env",
    kind: Kind::Texts,
    passed: Passed::Flag("--env"),
    doc: "Variables of `__ENV`, each `NAME=VALUE`",
};

fn act(call: &Call, bounds: &Bounds, problems: &mut Vec<Problem>) -> Command {
    check_name(call, problems);
    let mut command = Command::new(&["load", "--no-tui"], call, Form::JsonFile)
        .reading_files()
        .measuring(None, bounds.duration);
    command.program.result_flag = Some("--summary-export");
    command
}

/// The command takes a file for a script by its name.
pub(super) fn check_name(call: &Call, problems: &mut Vec<Problem>) {
    let is_script = call.text("script").is_none_or(|path| {
        let known = [".js", ".mjs", ".cjs", ".ts", ".tar"];
        known.iter().any(|extension| path.ends_with(extension))
    });
    if !is_script {
        let message = "is not the name of a script: it ends in .js, .mjs, .cjs, .ts or .tar";
        problems.push(Problem::with("script", message));
    }
}
