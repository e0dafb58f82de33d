//! `compare`: URLs beside one another, in interleaved trials.

use std::time::Duration;

use serde_json::Value;

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::bounds::Bounds;
use super::request::{HTTP2, INSECURE};
use super::{Act, Command, Form, Tool};
use crate::problem::Problem;

pub(super) const TOOL: Tool = Tool {
    name: "compare",
    title: "Compare URLs",
    doc: "Load two or more URLs of this machine in interleaved trials, and report medians, the ratio of the first to each other one \
          and a confidence interval of that ratio. It is a closed loop, so targets are loopback alone. By `metric` the verdict is \
          about the throughput or the time of requests.",
    arguments: &[
        Argument {
            name: "urls",
            kind: Kind::Urls,
            passed: Passed::Positional,
            doc: "Two or more http:// or https:// URLs of loopback; the first is compared with each other one",
        },
        Argument {
            name: "names",
            kind: Kind::Texts,
            passed: Passed::Flag("--name"),
            doc: "Names of the URLs in results, in their order [default: the URLs]",
        },
        Argument {
            name: "metric",
            kind: Kind::Choice(&["rps", "mean_us", "p50_us", "p99_us"]),
            passed: Passed::Flag("--metric"),
            doc: "Metric of the verdict [default: rps]",
        },
        Argument {
            name: "trials",
            kind: Kind::Count(100),
            passed: Passed::Flag("--trials"),
            doc: "Trials of each URL [default: 8]",
        },
        Argument {
            name: "seconds",
            kind: Kind::Count(60),
            passed: Passed::Flag("--seconds"),
            doc: "Length of a trial in seconds [default: 3]",
        },
        Argument {
            name: "connections",
            kind: Kind::Connections,
            passed: Passed::Flag("--connections"),
            doc: "Number of connections [default: 50]",
        },
        Argument {
            name: "fail_if_slower",
            kind: Kind::Text,
            passed: Passed::Flag("--fail-if-slower"),
            doc: "Allowed difference of the first URL to the others, such as `5%`, for a verdict of the gate",
        },
        Argument {
            name: "answers_may_differ",
            kind: Kind::Switch,
            passed: Passed::Flag("--answers-may-differ"),
            doc: "Compare URLs also if they answer with another status, length or content",
        },
        HTTP2,
        INSECURE,
    ],
    required: &["urls"],
    output_schema: Some(include_str!("../../../../../../schemas/compare.v1.json")),
    sends: true,
    act: Act::Run(act),
};

/// As of the command.
const TRIALS: u64 = 8;
const SECONDS: u64 = 3;
const CONNECTIONS: u64 = 50;

fn act(call: &Call, bounds: &Bounds, problems: &mut Vec<Problem>) -> Command {
    for (url, target) in call.positional.iter().zip(call.targets("urls")) {
        // Other operands are commands.
        if !url.starts_with("http://") && !url.starts_with("https://") {
            problems.push(Problem::with("urls", format!("`{url}` is not of HTTP")));
        }
        if !target.is_loopback() {
            let problem = Problem::with("urls", format!("{target} is not loopback"));
            problems.push(problem.hint(
                "a closed loop has no bound on its rate; use `load` with a rate for each target (`plimsoll mcp --max-rate`)",
            ));
        }
    }
    let operands = call.positional.len() as u64;
    if operands == 1 {
        problems.push(Problem::with("urls", "has one URL; give two or more"));
    }
    // A trial of each is the warm-up.
    let trials = call.number("trials").unwrap_or(TRIALS) + 1;
    let seconds = trials * call.number("seconds").unwrap_or(SECONDS) * operands;
    let expected = Duration::from_secs(seconds);
    if let Err(message) = bounds.admit_duration(expected) {
        let message = format!("{operands} URLs × (trials + 1) × seconds: {message}");
        problems.push(Problem::with("trials", message));
    }
    let mut command = Command::new(&["compare", "--json"], call, Form::Json(summary))
        .measuring(Some(expected), expected);
    // Each trial starts a process.
    command.program.limit += Duration::from_secs(trials * operands);
    command.program.starts_itself = true;
    if !call.has("connections") {
        let connections = CONNECTIONS.min(bounds.connections);
        command = command.with_flag(format!("--connections={connections}"));
    }
    if !call.has("names") {
        for url in &call.positional {
            command = command.with_flag(format!("--name={url}"));
        }
    }
    if !call.has("metric") {
        command = command.with_flag("--metric=rps".to_owned());
    }
    command
}

fn summary(comparison: &Value) -> String {
    let operands = comparison["operands"].as_array();
    let label = |index: &Value| {
        let index = usize::try_from(index.as_u64()?).ok()?;
        operands?.get(index)?["label"].as_str().map(str::to_owned)
    };
    let mut lines = Vec::new();
    for pair in comparison["pairs"].as_array().into_iter().flatten() {
        let against = label(&pair["peer"]).unwrap_or_default();
        let ours = label(&pair["ours"]).unwrap_or_default();
        lines.push(match pair["not_comparable"].as_str() {
            Some(reason) => format!("{ours} and {against} are not comparable: {reason}"),
            None => format!(
                "{ours} against {against}: {} by {} (ratio {}, interval {} to {})",
                pair["verdict"].as_str().unwrap_or_default(),
                pair["metric"].as_str().unwrap_or_default(),
                figure(&pair["ratio"]),
                figure(&pair["interval"]["low"]),
                figure(&pair["interval"]["high"])
            ),
        });
    }
    lines.join("\n")
}

fn figure(value: &Value) -> String {
    value
        .as_f64()
        .map_or_else(|| "unknown".to_owned(), |figure| format!("{figure:.3}"))
}
