//! `mock_check`: the errors of mock rules.

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::bounds::Bounds;
use super::{Act, Command, Form, Tool};
use crate::problem::Problem;

pub(super) const TOOL: Tool = Tool {
    name: "mock_check",
    title: "Check mock rules",
    doc: "Report all errors in a rule file of `plimsoll mock`, and in the files that it names, with file, line and column. \
          `mock_match` explains which rule answers a request.",
    arguments: &[Argument {
        name: "file",
        kind: Kind::Path,
        passed: Passed::Positional,
        doc: "Rule file (TOML), below the root",
    }],
    required: &["file"],
    output_schema: None,
    sends: false,
    act: Act::Run(act),
};

fn act(call: &Call, _: &Bounds, _: &mut Vec<Problem>) -> Command {
    Command::new(&["mock", "validate"], call, Form::Text).reading_files()
}
