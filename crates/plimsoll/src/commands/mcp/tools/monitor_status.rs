//! `monitor_status`: the monitors of a running monitor.

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::{Act, Tool, monitor_query};

pub(super) const TOOL: Tool = Tool {
    name: "monitor_status",
    title: "Show monitors",
    doc: "List the monitors of the running `plimsoll monitor` with their health and last result, as its API does. Read-only.",
    arguments: &[
        text(
            "health",
            "Only those with this health: pending, up, degraded, down, no_data or paused",
        ),
        text("group", "Only those of this group"),
        text("tag", "Only those with this tag"),
        Argument {
            name: "limit",
            kind: Kind::Count(500),
            passed: Passed::ByTool,
            doc: "Number of monitors [default: 50]",
        },
        text(
            "cursor",
            "`next_cursor` of an earlier result, for those that follow",
        ),
    ],
    required: &[],
    output_schema: None,
    sends: false,
    act: Act::Monitor(path),
};

const fn text(name: &'static str, doc: &'static str) -> Argument {
    Argument {
        name,
        kind: Kind::Text,
        passed: Passed::ByTool,
        doc,
    }
}

fn path(call: &Call) -> String {
    monitor_query(
        "/api/v1/monitors",
        call,
        &["health", "group", "tag", "cursor"],
    )
}
