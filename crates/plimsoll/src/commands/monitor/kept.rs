//! `plimsoll monitor add`, `export` and `import --apply`: monitors in the store of a running monitor.

use std::path::Path;

use serde_json::{Value, json};

use crate::commands::monitor::done;
use crate::commands::monitor::server::Server;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// A monitor to be added.
#[derive(Debug, clap::Args)]
pub(super) struct Added {
    /// Name of the monitor
    name: String,

    /// Target, such as https://example.org/, tcp://db:5432, icmp://host, dns://example.org, tls://host:443
    target: String,

    /// Group that it is shown in
    #[arg(long)]
    group: Option<String>,

    /// Time between two checks [default: 60s]
    #[arg(long, value_name = "DURATION")]
    interval: Option<String>,

    /// Condition that must hold, such as 'status == 200'; repeatable
    #[arg(long, value_name = "CONDITION")]
    expect: Vec<String>,

    /// Tag to find it by; repeatable
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,

    /// Another key of [[monitor]] with its value in TOML, such as 'confirm=3'; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    #[command(flatten)]
    server: Server,
}

/// Kinds whose target is the host, with a port for all but these.
const SCHEMES: [(&str, &str); 13] = [
    ("http", "http"),
    ("https", "http"),
    ("ws", "websocket"),
    ("wss", "websocket"),
    ("grpc", "grpc"),
    ("grpcs", "grpc"),
    ("tcp", "tcp"),
    ("udp", "udp"),
    ("icmp", "icmp"),
    ("dns", "dns"),
    ("tls", "tls"),
    ("ssh", "ssh"),
    ("domain", "domain"),
];

pub(super) fn add(added: &Added) -> Result<Exit, Failed> {
    let (scheme, rest) = added.target.split_once("://").unwrap_or(("", ""));
    let Some((_, kind)) = SCHEMES.iter().find(|(known, _)| *known == scheme) else {
        let known = SCHEMES.map(|(known, _)| format!("{known}://")).join(", ");
        let problem = Problem::new(format!("`{}` has no known scheme", added.target));
        return Err(problem
            .hint(format!("begin it with one of {known}"))
            .usage());
    };
    let target = if matches!(*kind, "http" | "websocket" | "grpc") {
        added.target.as_str()
    } else {
        rest.trim_end_matches('/')
    };
    let mut definition = json!({ "name": added.name, *kind: target });
    if let Some(group) = &added.group {
        definition["group"] = group.as_str().into();
    }
    if let Some(interval) = &added.interval {
        definition["interval"] = interval.as_str().into();
    }
    if !added.expect.is_empty() {
        definition["expect"] = added.expect.clone().into();
    }
    if !added.tag.is_empty() {
        definition["tags"] = added.tag.clone().into();
    }
    for pair in &added.set {
        let table = pair.parse::<toml::Table>().map_err(|error| {
            Problem::new(format!(
                "`{pair}` is not KEY=VALUE in TOML: {}",
                error.message()
            ))
            .usage()
        })?;
        let table = serde_json::to_value(table).unwrap_or_default();
        for (key, value) in table.as_object().into_iter().flatten() {
            definition[key] = value.clone();
        }
    }
    let made = added
        .server
        .call("POST", "/api/v1/monitors", Some(&definition))?;
    done(&format!(
        "added {}",
        made["key"].as_str().unwrap_or_default()
    ))
}

pub(super) fn export(server: &Server) -> Result<Exit, Failed> {
    let text = server.call("GET", "/api/v1/monitors/export", None)?;
    done(text.as_str().unwrap_or_default().trim_end())
}

/// Adds the monitors of a configuration to a running monitor; those whose keys are there are replaced.
pub(super) fn apply(text: &str, file: &Path, server: &Server) -> Result<Exit, Failed> {
    let about = file.display().to_string();
    let parsed = text.parse::<toml::Table>();
    let mut root = parsed.map_err(|error| Problem::new(error.message()).about(&about).usage())?;
    let monitors = root
        .remove("monitor")
        .unwrap_or(toml::Value::Array(Vec::new()));
    let monitors = serde_json::to_value(monitors).unwrap_or_default();
    if monitors.as_array().is_none_or(Vec::is_empty) {
        return Err(Problem::new("there is no [[monitor]]")
            .about(&about)
            .usage());
    }
    let body = json!({ "put": monitors });
    let answer: Value = server.call("POST", "/api/v1/monitors/bulk", Some(&body))?;
    done(&format!(
        "added {}, replaced {}",
        answer["created"], answer["updated"]
    ))
}
