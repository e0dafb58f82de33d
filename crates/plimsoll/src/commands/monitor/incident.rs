//! `plimsoll monitor incident`: declare, update and resolve incidents by the API of a running monitor.

use serde_json::{Map, Value, json};

use crate::commands::monitor::done;
use crate::commands::monitor::server::Server;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};

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

const PATH: &str = "/api/v1/declared-incidents";

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
