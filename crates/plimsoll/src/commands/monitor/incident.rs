//! `plimsoll monitor incident`: declare, update and resolve incidents by the API of a running monitor.

use std::convert::Infallible;
use std::time::Duration;

use plimsoll_client::fetch::{FetchLimits, Fetcher};
use plimsoll_model::Secret;
use serde_json::{Map, Value, json};
use url::Url;

use crate::commands::monitor::done;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// Which monitor, and who uses it.
#[derive(Debug, clap::Args)]
pub(super) struct Server {
    /// Address of the running monitor
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: Url,

    /// Token with the scope `write`; `plimsoll monitor token` makes one
    #[arg(long, env = "PLIMSOLL_MONITOR_TOKEN", hide_env_values = true, value_parser = secret)]
    token: Option<Secret>,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum IncidentCommand {
    /// Declare an incident
    Open {
        /// Title on status pages
        title: String,

        /// First update
        #[arg(long, short, value_name = "TEXT", default_value = "")]
        message: String,

        /// How much it affects users: none, minor, major or critical
        #[arg(long, default_value = "minor")]
        impact: String,

        /// Phase: investigating, identified, monitoring, resolved or postmortem
        #[arg(long, default_value = "investigating")]
        phase: String,

        /// Monitor that it affects, by key; repeatable
        #[arg(long, value_name = "KEY")]
        monitor: Vec<String>,

        /// Count its time as downtime of these monitors
        #[arg(long)]
        counts_as_downtime: bool,

        /// When it began (RFC 3339); now unless it is given
        #[arg(long, value_name = "TIME")]
        started_at: Option<String>,

        #[command(flatten)]
        server: Server,
    },

    /// Publish an update
    Update {
        /// Number of the incident
        id: i64,

        /// Update
        #[arg(long, short, value_name = "TEXT")]
        message: Option<String>,

        /// New impact
        #[arg(long)]
        impact: Option<String>,

        /// New phase
        #[arg(long)]
        phase: Option<String>,

        #[command(flatten)]
        server: Server,
    },

    /// End an incident
    Resolve {
        /// Number of the incident
        id: i64,

        /// Last update
        #[arg(long, short, value_name = "TEXT")]
        message: Option<String>,

        #[command(flatten)]
        server: Server,
    },

    /// List declared incidents, the newest first
    List {
        /// Only those that are not over
        #[arg(long)]
        open: bool,

        #[command(flatten)]
        server: Server,
    },
}

#[expect(clippy::unnecessary_wraps, reason = "the form of parsers of clap")]
fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text))
}

const PATH: &str = "/api/v1/declared-incidents";

/// For one request.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(30),
    bytes: 16 * 1024 * 1024,
    redirects: 0,
};

pub(super) fn run(command: &IncidentCommand) -> Result<Exit, Failed> {
    match command {
        IncidentCommand::Open {
            title,
            message,
            impact,
            phase,
            monitor,
            counts_as_downtime,
            started_at,
            server,
        } => {
            let mut body = json!({
                "title": title,
                "body": message,
                "impact": impact,
                "phase": phase,
                "monitors": monitor,
                "counts_as_downtime": counts_as_downtime,
            });
            if let Some(at) = started_at {
                body["started_at"] = at.as_str().into();
            }
            shown(&server.call("POST", PATH, Some(&body))?)
        }
        IncidentCommand::Update {
            id,
            message,
            impact,
            phase,
            server,
        } => {
            let body: Map<_, _> = [("body", message), ("impact", impact), ("phase", phase)]
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value.as_deref()?.into())))
                .collect();
            if body.is_empty() {
                let problem = Problem::new("nothing is to be updated");
                return Err(problem.hint("give --message, --phase or --impact").usage());
            }
            let path = format!("{PATH}/{id}");
            shown(&server.call("PATCH", &path, Some(&body.into()))?)
        }
        IncidentCommand::Resolve {
            id,
            message,
            server,
        } => {
            let body = json!({ "phase": "resolved", "body": message });
            shown(&server.call("PATCH", &format!("{PATH}/{id}"), Some(&body))?)
        }
        IncidentCommand::List { open, server } => {
            let path = if *open {
                format!("{PATH}?limit=200&state=open")
            } else {
                format!("{PATH}?limit=200")
            };
            let answer = server.call("GET", &path, None)?;
            let incidents = answer["declared_incidents"].as_array();
            let lines: Vec<_> = incidents.into_iter().flatten().map(line).collect();
            done(&lines.join("\n"))
        }
    }
}

fn shown(incident: &Value) -> Result<Exit, Failed> {
    done(&line(incident))
}

/// `3  resolved  minor  2026-03-01T12:00:00Z  Search is slow`
fn line(incident: &Value) -> String {
    let text = |key: &str| incident[key].as_str().unwrap_or_default();
    format!(
        "{}  {}  {}  {}  {}",
        incident["id"],
        text("phase"),
        text("impact"),
        text("started_at"),
        text("title")
    )
}

impl Server {
    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Failed> {
        let could_not = |error: &dyn std::error::Error| {
            Problem::caused_by(error)
                .about(self.url.as_str())
                .could_not_run()
        };
        let url = self.url.join(path).map_err(|error| could_not(&error))?;
        let mut fields = vec![("accept".to_owned(), "application/json".to_owned())];
        if let Some(token) = &self.token {
            let token = format!("Bearer {}", token.expose());
            fields.push(("authorization".to_owned(), token));
        }
        let content = body.map(Value::to_string);
        if content.is_some() {
            fields.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| could_not(&error))?;
        // Connections that are kept live on the runtime's thread.
        let local = tokio::task::LocalSet::new();
        let sent = local.block_on(&runtime, async {
            let fetcher = Fetcher::new(LIMITS).map_err(|error| could_not(&error))?;
            let content = content.as_deref().map(str::as_bytes);
            let sent = fetcher.send(method, &url, fields, content).await;
            sent.map_err(|error| could_not(&error))
        })?;
        let answer: Value = serde_json::from_slice(&sent.content).unwrap_or_default();
        if (200..300).contains(&sent.status) {
            return Ok(answer);
        }
        let error = &answer["error"];
        let message = match (error["field"].as_str(), error["message"].as_str()) {
            (Some(field), Some(message)) => format!("`{field}` {message}"),
            (None, Some(message)) => message.to_owned(),
            _ => format!("the monitor answers with status {}", sent.status),
        };
        let problem = Problem::new(message).about(self.url.as_str());
        Err(match sent.status {
            401 | 403 => problem
                .hint("give --token or set PLIMSOLL_MONITOR_TOKEN; `plimsoll monitor token NAME --write` makes one")
                .could_not_run(),
            400..=499 => problem.usage(),
            _ => problem.could_not_run(),
        })
    }
}
