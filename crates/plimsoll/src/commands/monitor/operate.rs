//! `plimsoll monitor list`, `check-now`, `pause` and `resume`: monitors of a running monitor.

use std::time::Duration;

use serde_json::Value;

use crate::commands::monitor::done;
use crate::commands::monitor::server::Server;
use crate::exit::Exit;
use crate::problem::Failed;

/// Which monitors are listed.
#[derive(Debug, clap::Args)]
pub(super) struct Listed {
    /// Only those of this group
    #[arg(long)]
    group: Option<String>,

    /// Only those with this tag
    #[arg(long)]
    tag: Option<String>,

    /// Only those with this health: pending, up, degraded, down, `no_data` or paused
    #[arg(long)]
    health: Option<String>,

    /// Print the API's JSON, one monitor a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: Server,
}

/// One monitor of a running monitor.
#[derive(Debug, clap::Args)]
pub(super) struct Chosen {
    /// Key of the monitor, such as `web_shop`; `plimsoll monitor list` prints it
    key: String,

    #[command(flatten)]
    server: Server,
}

/// Monitors of one response, at most.
const PAGE: usize = 500;

pub(super) fn list(listed: &Listed) -> Result<Exit, Failed> {
    let mut lines = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("limit", &PAGE.to_string());
        let filters = [
            ("group", &listed.group),
            ("tag", &listed.tag),
            ("health", &listed.health),
            ("cursor", &cursor),
        ];
        for (key, value) in filters {
            if let Some(value) = value {
                query.append_pair(key, value);
            }
        }
        let path = format!("/api/v1/monitors?{}", query.finish());
        let answer = listed.server.call("GET", &path, None)?;
        let monitors = answer["monitors"].as_array().into_iter().flatten();
        lines.extend(monitors.map(|monitor| {
            if listed.json {
                monitor.to_string()
            } else {
                line(monitor)
            }
        }));
        cursor = answer["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    if lines.is_empty() {
        return Ok(Exit::Fine);
    }
    done(&lines.join("\n"))
}

/// `up           web_shop  3.2 ms  https://shop.example.org/`
fn line(monitor: &Value) -> String {
    let last = &monitor["last"];
    let took = took(last);
    let target = monitor["target"].as_str();
    let reason = last["reason"].as_str();
    let parts = [
        Some(format!("{:11}", text(monitor, "shown"))),
        Some(text(monitor, "key").to_owned()),
        took,
        target.map(str::to_owned),
        reason.map(str::to_owned),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    parts.join("  ")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn took(result: &Value) -> Option<String> {
    let took = Duration::from_micros(result["took_us"].as_u64()?);
    Some(format!("{:.1} ms", took.as_secs_f64() * 1e3))
}

/// The exit code is the verdict.
pub(super) fn check_now(chosen: &Chosen) -> Result<Exit, Failed> {
    let result = call(chosen, "check-now")?;
    let status = text(&result, "status");
    let parts = [
        Some(format!("{}: {status}", chosen.key)),
        took(&result),
        result["reason"].as_str().map(str::to_owned),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let mut lines = vec![parts.join(", ")];
    for judged in result["conditions"].as_array().into_iter().flatten() {
        let met = match judged["met"].as_bool() {
            Some(true) => "met",
            _ => "unmet",
        };
        lines.push(format!("  {met}: {}", text(judged, "condition")));
    }
    done(&lines.join("\n"))?;
    Ok(match status {
        "up" | "degraded" => Exit::Fine,
        "error" => Exit::CouldNotRun,
        _ => Exit::Objective,
    })
}

pub(super) fn pause(chosen: &Chosen) -> Result<Exit, Failed> {
    call(chosen, "pause")?;
    done(&format!("paused {}", chosen.key))
}

pub(super) fn resume(chosen: &Chosen) -> Result<Exit, Failed> {
    call(chosen, "resume")?;
    done(&format!("resumed {}", chosen.key))
}

fn call(chosen: &Chosen, action: &str) -> Result<Value, Failed> {
    let key: String = url::form_urlencoded::byte_serialize(chosen.key.as_bytes()).collect();
    // A space is `%20` in a path.
    let key = key.replace('+', "%20");
    let path = format!("/api/v1/monitors/{key}/{action}");
    chosen.server.call("POST", &path, None)
}
