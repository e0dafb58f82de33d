//! `incidents`: the incidents of a running monitor.

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::{Act, Tool, monitor_query};

pub(super) const TOOL: Tool = Tool {
    name: "incidents",
    title: "Show incidents",
    doc: "List incidents of the running `plimsoll monitor`, the newest first, as its API does. Read-only.",
    arguments: &[
        Argument {
            name: "state",
            kind: Kind::Choice(&["open", "resolved"]),
            passed: Passed::ByTool,
            doc: "Only those in this state",
        },
        Argument {
            name: "monitor",
            kind: Kind::Text,
            passed: Passed::ByTool,
            doc: "Only those of the monitor with this key",
        },
        Argument {
            name: "declared",
            kind: Kind::Switch,
            passed: Passed::ByTool,
            doc: "List those that people declared instead of those that checks opened",
        },
        Argument {
            name: "limit",
            kind: Kind::Count(200),
            passed: Passed::ByTool,
            doc: "Number of incidents [default: 50]",
        },
        Argument {
            name: "cursor",
            kind: Kind::Text,
            passed: Passed::ByTool,
            doc: "`next_cursor` of an earlier result, for those that follow",
        },
    ],
    required: &[],
    output_schema: None,
    sends: false,
    act: Act::Monitor(path),
};

fn path(call: &Call) -> String {
    if call.is_on("declared") {
        monitor_query("/api/v1/declared-incidents", call, &["state", "cursor"])
    } else {
        monitor_query("/api/v1/incidents", call, &["state", "monitor", "cursor"])
    }
}
