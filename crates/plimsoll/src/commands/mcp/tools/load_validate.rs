//! `load_validate`: what a load test would do, without sending anything.

use serde_json::Value;

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::bounds::Bounds;
use super::{Act, Command, Form, Tool, load};
use crate::problem::Problem;

pub(super) const TOOL: Tool = Tool {
    name: "load_validate",
    title: "Validate a load test",
    doc: "Report all errors in the arguments of `load`, in a file of requests or in a k6 script, and describe what the run would \
          do: load model, connections, duration, requests. It sends nothing.",
    arguments: &ARGUMENTS,
    required: &[],
    output_schema: None,
    sends: false,
    act: Act::Run(act),
};

const SCRIPT: Argument = Argument {
    name: "script",
    kind: Kind::Path,
    passed: Passed::Positional,
    doc: "k6 script to describe; of the other arguments only `env` goes with it",
};

const ENVIRONMENT: Argument = Argument {
    name: "env",
    kind: Kind::Texts,
    passed: Passed::Flag("--env"),
    doc: "Variables of the script's `__ENV`, each `NAME=VALUE`",
};

/// Those of `load`, and a script.
const ARGUMENTS: [Argument; load::ARGUMENTS.len() + 2] = {
    let mut all = [SCRIPT; load::ARGUMENTS.len() + 2];
    all[1] = ENVIRONMENT;
    let mut index = 0;
    while index < load::ARGUMENTS.len() {
        all[index + 2] = load::ARGUMENTS[index];
        index += 1;
    }
    all
};

fn act(call: &Call, bounds: &Bounds, problems: &mut Vec<Problem>) -> Command {
    if !call.has("script") {
        if call.has("env") {
            problems.push(Problem::with("env", "needs a script"));
        }
        let mut command = load::command(call, bounds, problems, "--check");
        command.form = Form::Json(plan_summary);
        return command.with_flag("--json".to_owned());
    }
    let others = load::ARGUMENTS
        .iter()
        .filter(|argument| call.has(argument.name));
    for argument in others {
        problems.push(Problem::with(argument.name, "does not go with a script"));
    }
    #[cfg(feature = "k6")]
    super::load_script::check_name(call, problems);
    let words = ["k6", "inspect", "--execution-requirements"];
    Command::new(&words, call, Form::Json(script_summary)).reading_files()
}

fn plan_summary(plan: &Value) -> String {
    let load = &plan["load"];
    let text = |key: &str| load[key].as_str().unwrap_or_default();
    let seconds = load["duration_us"].as_f64().map(|us| us / 1e6);
    let length = match (seconds, load["requests"].as_u64()) {
        (_, Some(requests)) => format!("{requests} requests"),
        (Some(seconds), None) => format!("{seconds} s"),
        (None, None) => "until it is stopped".to_owned(),
    };
    let pace = match load["rate_per_second"].as_f64() {
        Some(rate) => format!("{rate}/s (open loop)"),
        None => "closed loop".to_owned(),
    };
    format!(
        "no errors; {} {} {}, {pace}, {} connections, {length}; nothing was sent",
        text("method"),
        text("url"),
        text("protocol"),
        load["connections"]
    )
}

fn script_summary(options: &Value) -> String {
    format!(
        "no errors; up to {} virtual users, {}; nothing was sent",
        options["maxVUs"],
        options["totalDuration"].as_str().unwrap_or_default()
    )
}
