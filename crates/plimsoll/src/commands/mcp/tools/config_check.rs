//! `config_check`: the errors of configuration files.

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::bounds::Bounds;
use super::{Act, Command, Form, Tool};
use crate::problem::Problem;

pub(super) const TOOL: Tool = Tool {
    name: "config_check",
    title: "Check a configuration",
    doc: "Report all errors in a configuration file, with file, line and column. The schemas of the files are resources. Variables \
          of the environment have values only if `plimsoll mcp --pass-env` names them.",
    arguments: &[
        Argument {
            name: "kind",
            kind: Kind::Choice(KINDS),
            passed: Passed::ByTool,
            doc: "`up` and `gateway`: files of `plimsoll up`; `monitor`: files of `plimsoll monitor`; `serve`: a folder of a static \
                  site with its redirect rules",
        },
        Argument {
            name: "file",
            kind: Kind::Path,
            passed: Passed::Positional,
            doc: "The file (TOML), or the folder for `serve`, below the root",
        },
    ],
    required: &["kind", "file"],
    output_schema: None,
    sends: false,
    act: Act::Run(act),
};

const KINDS: &[&str] = &[
    "up",
    "gateway",
    #[cfg(feature = "monitor")]
    "monitor",
    "serve",
];

fn act(call: &Call, _: &Bounds, _: &mut Vec<Problem>) -> Command {
    let command = match call.text("kind") {
        Some("monitor") => "monitor",
        Some("serve") => "serve",
        _ => "up",
    };
    Command::new(&[command, "--check"], call, Form::Text).reading_files()
}
