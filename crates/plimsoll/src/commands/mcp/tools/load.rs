//! `load`: a load test within the bounds.

use std::time::Duration;

use plimsoll_model::grouped;
use serde_json::Value;

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::bounds::Bounds;
use super::request::{BODY, EXPECT, HEADERS, HTTP2, HTTP3, INSECURE, METHOD, TIMEOUT, URL};
use super::{Act, Command, Form, Tool};
use crate::confined::Target;
use crate::flags::number;
use crate::problem::Problem;

pub(super) const TOOL: Tool = Tool {
    name: "load",
    title: "Run a load test",
    doc: "Send requests to a URL, or those of a file, and report throughput, latency percentiles, errors, thresholds and \
          cautions. With `rate` requests start at that rate whatever the responses take (open loop); without it each \
          connection sends its next request after the response (closed loop), which is allowed for loopback alone. \
          Default: 50 connections for 10 seconds. `load_validate` with the same arguments sends nothing.",
    arguments: ARGUMENTS,
    required: &[],
    output_schema: Some(include_str!(
        "../../../../../../schemas/load-summary.v1.json"
    )),
    sends: true,
    act: Act::Run(act),
};

pub(super) const ARGUMENTS: &[Argument] = &[
    URL,
    Argument {
        name: "file",
        kind: Kind::Path,
        passed: Passed::Flag("--from"),
        doc: "File of requests (.http, HAR, OpenAPI, curl, URL list, access log); `url` is then the base of paths",
    },
    Argument {
        name: "variables",
        kind: Kind::Texts,
        passed: Passed::Flag("--var"),
        doc: "Values of `{{NAME}}` in requests, each `NAME=VALUE`",
    },
    Argument {
        name: "only",
        kind: Kind::Texts,
        passed: Passed::Flag("--only"),
        doc: "Send only matching requests of the file: `path=/api`, `method=GET`, `name=…`, `tag=…`",
    },
    Argument {
        name: "rate",
        kind: Kind::Rate,
        passed: Passed::Flag("--rate"),
        doc: "Requests per second: a number, or text such as \"5k/s\"",
    },
    Argument {
        name: "duration",
        kind: Kind::Time,
        passed: Passed::Flag("--duration"),
        doc: "Length of the run: seconds, or text such as \"1m\"",
    },
    Argument {
        name: "requests",
        kind: Kind::Count(number::MOST_REQUESTS),
        passed: Passed::Flag("--requests"),
        doc: "Stop after this number of requests instead of a duration",
    },
    Argument {
        name: "warm_up",
        kind: Kind::Time,
        passed: Passed::Flag("--warm-up"),
        doc: "Time before the measurement, left out of the results",
    },
    Argument {
        name: "connections",
        kind: Kind::Connections,
        passed: Passed::Flag("--connections"),
        doc: "Number of connections [default: 50]",
    },
    Argument {
        name: "streams",
        kind: Kind::Connections,
        passed: Passed::Flag("--streams"),
        doc: "Concurrent requests per connection, with http2 or http3",
    },
    METHOD,
    HEADERS,
    BODY,
    EXPECT,
    Argument {
        name: "thresholds",
        kind: Kind::Texts,
        passed: Passed::Flag("--threshold"),
        doc: "Objectives of the run: `p99<50ms`, `errors<1%`, `http_req_duration:p(99)<300ms`, `http_reqs:rate>=500/s`",
    },
    Argument {
        name: "fail_status",
        kind: Kind::Text,
        passed: Passed::Flag("--fail-status"),
        doc: "Statuses that count as errors: `5xx`, `400-499,5xx`, `none` [default: 429,5xx]",
    },
    TIMEOUT,
    HTTP2,
    HTTP3,
    INSECURE,
];

/// As of the command, if the bounds allow it.
const CONNECTIONS: u64 = 50;
const DURATION: Duration = Duration::from_secs(10);

fn act(call: &Call, bounds: &Bounds, problems: &mut Vec<Problem>) -> Command {
    let expected = expected(call, bounds);
    let command = command(call, bounds, problems, "--json").measuring(expected, bounds.duration);
    command.with_flag("--no-tui".to_owned())
}

/// The time of a run, if it is known.
fn expected(call: &Call, bounds: &Bounds) -> Option<Duration> {
    if call.has("requests") && !call.has("duration") {
        return None;
    }
    let duration = call
        .time("duration")
        .unwrap_or(DURATION.min(bounds.duration));
    Some(duration + call.time("warm_up").unwrap_or_default())
}

/// The command of a load with these arguments.
pub(super) fn command(
    call: &Call,
    bounds: &Bounds,
    problems: &mut Vec<Problem>,
    flag: &str,
) -> Command {
    let targets = call.targets("url");
    if targets.is_empty() && !call.has("file") {
        problems.push(Problem::with("url", "give a URL or a file"));
    }
    let is_loopback = !call.has("file") && targets.iter().all(Target::is_loopback);
    if !call.has("rate") && !is_loopback {
        let reason = if call.has("file") {
            "is required with a file, whose targets are not known before"
        } else {
            "is required for targets that are not loopback"
        };
        problems.push(Problem::with("rate", reason).hint(format!(
            "a closed loop has no bound on its rate; the bound is {} (`plimsoll mcp --max-rate`)",
            bounds.rate
        )));
    }
    let connections = call.number("connections");
    let requests = call.number("requests").unwrap_or(u64::MAX);
    let default = CONNECTIONS.min(bounds.connections).min(requests);
    let in_flight = connections
        .unwrap_or(default)
        .saturating_mul(call.number("streams").unwrap_or(1));
    if let Err(message) = bounds.admit_connections(in_flight) {
        let message = format!("connections × streams: {message}");
        problems.push(Problem::with("streams", message));
    }
    if let Some(expected) = expected(call, bounds)
        && call.has("warm_up")
        && let Err(message) = bounds.admit_duration(expected)
    {
        let message = format!("warm_up + duration: {message}");
        problems.push(Problem::with("warm_up", message));
    }
    let mut command = Command::new(&["load", flag], call, Form::Json(summary));
    command.program.reads_files = call.has("file");
    if connections.is_none() {
        command = command.with_flag(format!("--connections={default}"));
    }
    if !call.has("duration") && !call.has("requests") {
        let duration = DURATION.min(bounds.duration);
        command = command.with_flag(format!("--duration={}ms", duration.as_millis()));
    }
    command
}

/// Throughput, errors, latency and thresholds, in a few lines.
pub(super) fn summary(run: &Value) -> String {
    let load = &run["load"];
    let count = |key: &str| grouped(run["counts"][key].as_u64().unwrap_or_default());
    let rate = run["requests_per_second"].as_f64().unwrap_or_default();
    let mut lines = vec![
        format!(
            "{} {} {}: {} requests/s, {} ok, {} failed, {} aborted",
            text(&load["method"]),
            text(&load["url"]),
            text(&load["protocol"]),
            grouped(rate),
            count("ok"),
            count("failed"),
            count("aborted"),
        ),
        latency(&run["latency"]),
    ];
    let statuses = run["statuses"].as_object().into_iter().flatten();
    let statuses: Vec<_> = statuses
        .map(|(status, count)| format!("{status}: {count}"))
        .collect();
    if !statuses.is_empty() {
        lines.push(format!("statuses {}", statuses.join(", ")));
    }
    for failure in run["failures"].as_array().into_iter().flatten().take(5) {
        lines.push(format!(
            "failed {} × {} in phase {}: {}",
            failure["count"],
            text(&failure["kind"]),
            text(&failure["phase"]),
            text(&failure["cause"])
        ));
    }
    for threshold in run["thresholds"].as_array().into_iter().flatten() {
        lines.push(format!(
            "threshold {}: {} (value {}, unit {})",
            text(&threshold["threshold"]),
            text(&threshold["verdict"]),
            threshold["value"],
            text(&threshold["unit"])
        ));
    }
    let warnings = run["conditions"]["warnings"].as_array();
    for warning in warnings.into_iter().flatten() {
        lines.push(format!("caution {}", text(warning)));
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

/// `latency p50 1.2 ms, p99 ≥ 4 ms`; what aborted requests could change is a lower bound.
fn latency(latency: &Value) -> String {
    let (times, since) = match &latency["from_intended"] {
        Value::Object(_) => (&latency["from_intended"], " from the intended start"),
        _ => (&latency["from_started"], ""),
    };
    let bounds = times["censored"].as_array();
    let figure = |(name, key): (&str, &str)| {
        let is_bound = bounds.is_some_and(|names| names.iter().any(|name| name == key));
        let at_least = if is_bound { "≥ " } else { "" };
        let milliseconds = times[key].as_f64()? / 1000.0;
        Some(format!("{name} {at_least}{milliseconds:.2} ms"))
    };
    let keys = [
        ("p50", "p50_us"),
        ("p90", "p90_us"),
        ("p99", "p99_us"),
        ("max", "max_us"),
    ];
    let figures: Vec<_> = keys.into_iter().filter_map(figure).collect();
    if figures.is_empty() {
        return String::new();
    }
    format!("latency{since} {}", figures.join(", "))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
