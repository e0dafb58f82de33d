//! `docs_search`: sections of the documentation.

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::pages;
use super::{Act, Tool};

pub(super) const TOOL: Tool = Tool {
    name: "docs_search",
    title: "Search the documentation",
    doc: "Find sections of plimsoll's documentation by words: flags, keys of configurations, conditions, thresholds, errors. \
          Whole pages are resources (plimsoll://docs/…).",
    arguments: &[
        Argument {
            name: "query",
            kind: Kind::Text,
            passed: Passed::ByTool,
            doc: "Words to look for",
        },
        Argument {
            name: "limit",
            kind: Kind::Count(10),
            passed: Passed::ByTool,
            doc: "Number of sections [default: 3]",
        },
    ],
    required: &["query"],
    output_schema: None,
    sends: false,
    act: Act::Answer(answer),
};

fn answer(call: &Call) -> String {
    let query = call.text("query").unwrap_or_default();
    let limit = call.number("limit").unwrap_or(3);
    let found = pages::search(query, usize::try_from(limit).unwrap_or(1));
    if found.is_empty() {
        return format!("no section has these words: {query:.200}");
    }
    let shown = found.iter().map(|section| {
        format!(
            "{} (plimsoll://docs/{})\n\n{}",
            section.title, section.page, section.text
        )
    });
    shown.collect::<Vec<_>>().join("\n\n---\n\n")
}
