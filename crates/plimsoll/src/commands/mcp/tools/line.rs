//! `line`: the highest rate at which a service keeps its objectives, within the bounds.

use serde_json::Value;

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::bounds::Bounds;
use super::request::{BODY, EXPECT, HEADERS, HTTP2, HTTP3, INSECURE, METHOD, TIMEOUT, URL};
use super::{Act, Command, Form, Tool};
use crate::problem::Problem;

pub(super) const TOOL: Tool = Tool {
    name: "line",
    title: "Find the load line",
    doc: "Find the highest rate at which a URL meets its objectives: raise the rate until one breaks, narrow the boundary, and repeat \
          the rates around it. It takes minutes; shorter windows and fewer rounds make it faster and less exact. If the bound on \
          the rate or on the time ends the search, `ended` says so.",
    arguments: &[
        URL,
        Argument {
            name: "objectives",
            kind: Kind::Texts,
            passed: Passed::Flag("--objective"),
            doc: "Objectives of every window [default: `p99<50ms` and `errors<0.1%`]",
        },
        Argument {
            name: "first",
            kind: Kind::Rate,
            passed: Passed::Flag("--first"),
            doc: "First rate to try [default: 100]",
        },
        Argument {
            name: "most",
            kind: Kind::Rate,
            passed: Passed::Flag("--most"),
            doc: "Highest rate to try [default: the bound]",
        },
        Argument {
            name: "window",
            kind: Kind::Time,
            passed: Passed::Flag("--window"),
            doc: "Length of a window [default: 3s]",
        },
        Argument {
            name: "warm_up",
            kind: Kind::Time,
            passed: Passed::Flag("--warm-up"),
            doc: "Warm-up before each window [default: 1s]",
        },
        Argument {
            name: "confirm",
            kind: Kind::Time,
            passed: Passed::Flag("--confirm"),
            doc: "Length of the window that confirms the result; `0s` for none [default: ten windows]",
        },
        Argument {
            name: "rounds",
            kind: Kind::Count(100),
            passed: Passed::Flag("--rounds"),
            doc: "Windows at each rate around the line; 6 or more give a 95 % interval [default: 6]",
        },
        Argument {
            name: "precision",
            kind: Kind::Text,
            passed: Passed::Flag("--precision"),
            doc: "Distance between these rates [default: 2%]",
        },
        Argument {
            name: "connections",
            kind: Kind::Connections,
            passed: Passed::Flag("--connections"),
            doc: "Connections [default: 256, or the bound]",
        },
        METHOD,
        HEADERS,
        BODY,
        EXPECT,
        TIMEOUT,
        HTTP2,
        HTTP3,
        INSECURE,
    ],
    required: &["url"],
    output_schema: Some(include_str!("../../../../../../schemas/line.v1.json")),
    sends: true,
    act: Act::Run(act),
};

/// Enough for 10,000 requests per second of 25 ms.
const CONNECTIONS: u64 = 256;

/// As of the command.
const FIRST: f64 = 100.0;

fn act(call: &Call, bounds: &Bounds, _: &mut Vec<Problem>) -> Command {
    let mut command = Command::new(&["line", "--json"], call, Form::Json(summary))
        .measuring(None, bounds.duration);
    let most = bounds.rate.per_second();
    for (name, flag) in [
        (
            "connections",
            format!("--connections={}", CONNECTIONS.min(bounds.connections)),
        ),
        ("most", format!("--most={most}")),
        ("first", format!("--first={}", FIRST.min(most))),
    ] {
        if !call.has(name) {
            command = command.with_flag(flag);
        }
    }
    command
}

fn summary(line: &Value) -> String {
    let ended = line["ended"].as_str().unwrap_or_default();
    let rate = |key: &str| line[key].as_f64().map(|rate| format!("{rate:.0}/s"));
    let found = match (rate("line_per_second"), rate("held_up_to_per_second")) {
        (Some(line), _) => format!("the load line is {line}"),
        (None, Some(held)) => format!("objectives held up to {held}"),
        (None, None) => "no rate held".to_owned(),
    };
    let interval = match &line["interval"] {
        Value::Object(interval) => {
            format!(", interval {} to {}/s", interval["low"], interval["high"])
        }
        _ => String::new(),
    };
    format!("{found}{interval} (ended: {ended})")
}
