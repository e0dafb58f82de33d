//! `check`: one request, judged.

use std::time::Duration;

use serde_json::Value;

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::bounds::Bounds;
use super::request::{BODY, EXPECT, HEADERS, HTTP2, HTTP3, INSECURE, METHOD, TIMEOUT, URL};
use super::{Act, Command, Form, Tool};
use crate::problem::Problem;

pub(super) const TOOL: Tool = Tool {
    name: "check",
    title: "Check a URL",
    doc: "Make one HTTP request and report its status, phases (dns, connect, tls, send, wait, receive), response headers, \
          certificate and conditions. The verdict is `met` if a complete response arrived and met every condition. \
          For many requests use `load`.",
    arguments: &[
        URL,
        METHOD,
        HEADERS,
        BODY,
        EXPECT,
        TIMEOUT,
        Argument {
            name: "follow_redirects",
            kind: Kind::Switch,
            passed: Passed::Flag("--location"),
            doc: "Follow redirects, to allowed targets",
        },
        Argument {
            name: "compressed",
            kind: Kind::Switch,
            passed: Passed::Flag("--compressed"),
            doc: "Accept compressed content, and decode it for conditions",
        },
        HTTP2,
        HTTP3,
        INSECURE,
    ],
    required: &["url"],
    output_schema: Some(include_str!("../../../../../../schemas/check.v1.json")),
    sends: true,
    act: Act::Run(act),
};

fn act(call: &Call, _: &Bounds, _: &mut Vec<Problem>) -> Command {
    let mut command = Command::new(&["check", "--json"], call, Form::Json(summary));
    // Each redirect has the timeout of a request.
    let timeout = call.time("timeout").unwrap_or(Duration::from_secs(10));
    command.program.limit += timeout;
    command
}

/// `met: GET http://127.0.0.1/ status 200 in 1.2 ms`, with unmet conditions and the failure.
fn summary(check: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let exchange = &check["exchange"];
    let outcome = match (exchange["status"].as_u64(), &exchange["failure"]) {
        (_, failure @ Value::Object(_)) => format!(
            "{} in phase {}: {}",
            text(&failure["kind"]),
            text(&failure["phase"]),
            text(&failure["cause"])
        ),
        (Some(status), _) => format!("status {status}"),
        _ => "no response".to_owned(),
    };
    let took = exchange["time_us"].as_f64().unwrap_or_default() / 1000.0;
    let mut lines = vec![format!(
        "{}: {} {} {outcome} in {took:.1} ms",
        text(&check["verdict"]),
        text(&check["method"]),
        text(&check["url"])
    )];
    for condition in check["conditions"].as_array().into_iter().flatten() {
        if condition["met"] != true {
            lines.push(format!("unmet: {}", text(&condition["condition"])));
        }
    }
    lines.join("\n")
}
