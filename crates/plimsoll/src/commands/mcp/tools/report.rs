//! `report`: results of earlier runs.

use serde_json::Value;

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::bounds::Bounds;
use super::{Act, Command, Form, Tool};
use crate::problem::Problem;

pub(super) const TOOL: Tool = Tool {
    name: "report",
    title: "Show results of runs",
    doc: "Show results that `plimsoll load --out DIR` wrote below the root: one folder, or several merged, as the summary of `load`; \
          several side by side as Markdown tables; `trend` finds the steps where a figure changed.",
    arguments: &[
        Argument {
            name: "folders",
            kind: Kind::Paths,
            passed: Passed::Positional,
            doc: "Result folders; for a trend, folders of these too",
        },
        Argument {
            name: "merge",
            kind: Kind::Switch,
            passed: Passed::Flag("--merge"),
            doc: "Merge the results of generators that loaded the same target at the same time",
        },
        #[cfg(feature = "lab")]
        Argument {
            name: "trend",
            kind: Kind::Switch,
            passed: Passed::Flag("--trend"),
            doc: "Show trends over the results, oldest first",
        },
    ],
    required: &["folders"],
    output_schema: None,
    sends: false,
    act: Act::Run(act),
};

fn act(call: &Call, _: &Bounds, _: &mut Vec<Problem>) -> Command {
    let is_on = |flag: &str| call.flags.iter().any(|given| given == flag);
    let is_one = call.positional.len() == 1 || is_on("--merge");
    let (form, flag) = match (is_on("--trend"), is_one) {
        (true, _) => (Form::Json(trend_summary), "--format=json"),
        (false, true) => (Form::Json(super::load::summary), "--format=json"),
        (false, false) => (Form::Text, "--format=markdown"),
    };
    Command::new(&["report", flag], call, form).reading_files()
}

fn trend_summary(trend: &Value) -> String {
    let results = trend["results"].as_array().map_or(0, Vec::len);
    let figures = trend["figures"].as_array().into_iter().flatten();
    let changed = figures.filter(|figure| {
        let changes = figure["changes"].as_array();
        changes.is_some_and(|changes| !changes.is_empty())
    });
    format!(
        "{results} results; figures that changed: {}",
        changed.count()
    )
}
