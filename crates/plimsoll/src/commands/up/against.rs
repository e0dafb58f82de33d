//! `--against`: what a reload of a file would change at a server that runs.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_client::fetch::{FetchLimits, Fetched, Fetcher};
use plimsoll_server::config::Difference;
use serde_json::Value;
use url::Url;

use crate::problem::{Failed, Problem};

/// The server that runs.
#[derive(Debug, clap::Args)]
pub(super) struct AgainstArgs {
    /// With --check, print what a reload of the file would change at the server with this admin port; exit code 1 if
    /// anything would
    #[arg(long, value_name = "URL", requires = "check")]
    against: Option<Url>,

    /// File with the token of that admin port
    #[arg(long, value_name = "FILE", requires = "against")]
    token_file: Option<PathBuf>,
}

/// Of the admin port's response.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(30),
    bytes: 16 << 20,
    redirects: 0,
};

impl AgainstArgs {
    /// What a reload of `text` would change; nothing if no server is given.
    pub(super) fn differences(&self, text: &str) -> Result<Option<Vec<Difference>>, Failed> {
        let Some(admin) = &self.against else {
            return Ok(None);
        };
        let problem = |message: String| Problem::new(message).about(admin.as_str());
        let could_not = |error: &dyn std::error::Error| {
            Problem::caused_by(error)
                .about(admin.as_str())
                .could_not_run()
        };
        let url = admin
            .join("/config/difference")
            .map_err(|error| could_not(&error))?;
        let mut fields = vec![("content-type".to_owned(), "application/toml".to_owned())];
        if let Some(file) = &self.token_file {
            let token = fs::read_to_string(file).map_err(|error| {
                let message = format!("cannot read {}: {error}", file.display());
                Problem::with("--token-file", message).could_not_run()
            })?;
            fields.push((
                "authorization".to_owned(),
                format!("Bearer {}", token.trim()),
            ));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| could_not(&error))?;
        // Connections that are kept live on the runtime's thread.
        let local = tokio::task::LocalSet::new();
        let fetched = local.block_on(&runtime, async {
            let fetcher = Fetcher::new(LIMITS).map_err(|error| could_not(&error))?;
            let sent = fetcher.send("POST", &url, fields, Some(text.as_bytes()));
            sent.await.map_err(|error| {
                Problem::caused_by(&error)
                    .about(admin.as_str())
                    .hint("give the address of [admin], such as --against http://127.0.0.1:9090")
                    .could_not_run()
            })
        })?;
        match differences(&fetched) {
            Some(differences) => Ok(Some(differences)),
            None if fetched.status == 401 => Err(problem("a token is needed".to_owned())
                .hint("give the file that it is in: --token-file FILE")
                .could_not_run()),
            None => {
                let message = format!("it responds with {}{}", fetched.status, reason(&fetched));
                Err(problem(message).could_not_run())
            }
        }
    }
}

/// The differences in a response, if it has any.
fn differences(fetched: &Fetched) -> Option<Vec<Difference>> {
    if fetched.status != 200 {
        return None;
    }
    let document: Value = serde_json::from_slice(&fetched.content).ok()?;
    let changes = document["changes"].as_array()?.iter().map(|change| {
        let text = |key: &str| change[key].as_str().map(str::to_owned);
        Some(Difference {
            path: text("path")?,
            before: text("before"),
            after: text("after"),
        })
    });
    changes.collect()
}

/// The first error in a response, with what stands before it.
fn reason(fetched: &Fetched) -> String {
    let document: Value = serde_json::from_slice(&fetched.content).unwrap_or_default();
    let message = document["errors"][0]["message"].as_str();
    message.map_or_else(String::new, |message| format!(": {message}"))
}
