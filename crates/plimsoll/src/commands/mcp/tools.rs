//! The tools, one file each.

mod check;

#[cfg(feature = "lab")]
mod compare;

#[cfg(feature = "serve")]
mod config_check;

mod docs_search;

#[cfg(feature = "monitor")]
mod incidents;

#[cfg(feature = "lab")]
mod line;

mod load;

#[cfg(feature = "k6")]
mod load_script;

mod load_validate;

#[cfg(feature = "serve")]
mod mock_check;

#[cfg(feature = "serve")]
mod mock_match;

#[cfg(feature = "monitor")]
mod monitor_status;

mod report;

mod request;

use std::time::Duration;

use serde_json::Value;

use super::arguments::{Argument, Call};
use super::bounds::Bounds;
use super::program::Program;
use crate::problem::Problem;

/// A tool: what models read about it, and what it does.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What it does, what it returns, when to use another one.
    pub(super) doc: &'static str,
    pub(super) arguments: &'static [Argument],
    pub(super) required: &'static [&'static str],
    /// The JSON Schema of its results, if all of them have it.
    pub(super) output_schema: Option<&'static str>,
    /// Whether it sends requests to targets.
    pub(super) sends: bool,
    pub(super) act: Act,
}

/// What a tool does with checked arguments.
#[derive(Debug)]
pub(super) enum Act {
    /// Runs a command of this program.
    Run(fn(&Call, &Bounds, &mut Vec<Problem>) -> Command),
    /// Gets this path of the monitor's API.
    #[cfg(feature = "monitor")]
    Monitor(fn(&Call) -> String),
    /// Answers by itself.
    Answer(fn(&Call) -> String),
}

/// A command with the meaning of what it prints.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) program: Program,
    /// Whether it measures, so that no other one may run beside it.
    pub(super) measures: bool,
    pub(super) form: Form,
}

/// The form of a command's result.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// JSON on standard output, which this sums up in a few lines.
    Json(fn(&Value) -> String),
    /// JSON in the result file, and text on standard output.
    JsonFile,
    /// Text on standard output.
    Text,
}

/// All of them, in the order in which clients list them.
pub(super) const TOOLS: &[&Tool] = &[
    &check::TOOL,
    &load::TOOL,
    #[cfg(feature = "k6")]
    &load_script::TOOL,
    &load_validate::TOOL,
    #[cfg(feature = "lab")]
    &compare::TOOL,
    #[cfg(feature = "lab")]
    &line::TOOL,
    &report::TOOL,
    #[cfg(feature = "serve")]
    &mock_check::TOOL,
    #[cfg(feature = "serve")]
    &mock_match::TOOL,
    #[cfg(feature = "serve")]
    &config_check::TOOL,
    #[cfg(feature = "monitor")]
    &monitor_status::TOOL,
    #[cfg(feature = "monitor")]
    &incidents::TOOL,
    &docs_search::TOOL,
];

/// For commands that only read.
const QUICK: Duration = Duration::from_secs(30);

impl Command {
    /// `words` with the flags and arguments of a call.
    fn new(words: &[&str], call: &Call, form: Form) -> Self {
        let words = words.iter().map(ToString::to_string);
        Self {
            program: Program {
                words: words.chain(call.flags.iter().cloned()).collect(),
                positional: call.positional.clone(),
                stdin: call.stdin.clone(),
                reads_files: false,
                starts_itself: false,
                result_flag: None,
                limit: QUICK,
                expected: None,
            },
            measures: false,
            form,
        }
    }

    fn reading_files(mut self) -> Self {
        self.program.reads_files = true;
        self
    }

    /// A measurement that takes this time, or if it is not known at most the other one.
    fn measuring(mut self, expected: Option<Duration>, most: Duration) -> Self {
        self.measures = true;
        self.program.expected = expected;
        // Connections are opened before, and requests in flight completed behind it.
        self.program.limit = expected.unwrap_or(most) + AROUND;
        self
    }

    /// The same with a flag that the call does not have.
    fn with_flag(mut self, flag: String) -> Self {
        self.program.words.push(flag);
        self
    }
}

/// What a run takes besides its duration, at most.
const AROUND: Duration = Duration::from_secs(20);

/// A path of the monitor's API with the arguments of these names, and the limit.
#[cfg(feature = "monitor")]
fn monitor_query(path: &str, call: &Call, names: &[&str]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let limit = call.number("limit").unwrap_or(50);
    query.append_pair("limit", &limit.to_string());
    for name in names {
        if let Some(value) = call.text(name) {
            query.append_pair(name, value);
        }
    }
    format!("{path}?{}", query.finish())
}
