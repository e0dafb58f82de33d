//! The API of a running monitor, for commands that read or change something there.

use std::convert::Infallible;
use std::time::Duration;

use plimsoll_client::fetch::{FetchLimits, Fetcher};
use plimsoll_model::Secret;
use serde_json::Value;
use url::Url;

use crate::problem::{Failed, Problem};

/// Which monitor, and who uses it.
#[derive(Debug, clap::Args)]
pub(crate) struct Server {
    /// Address of the running monitor
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: Url,

    /// Token with the scope `write`; `plimsoll monitor token` makes one
    #[arg(long, env = "PLIMSOLL_MONITOR_TOKEN", hide_env_values = true, value_parser = secret)]
    token: Option<Secret>,
}

#[expect(clippy::unnecessary_wraps, reason = "the form of parsers of clap")]
pub(super) fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text))
}

/// For one request.
pub(super) const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(30),
    bytes: 16 * 1024 * 1024,
    redirects: 0,
};

impl Server {
    #[cfg(feature = "mcp")]
    pub(crate) fn new(url: Url, token: Option<Secret>) -> Self {
        Self { url, token }
    }

    /// The JSON of a path that only reads.
    #[cfg(feature = "mcp")]
    pub(crate) fn get(&self, path: &str) -> Result<Value, Failed> {
        self.call("GET", path, None)
    }

    /// The JSON that the API responds with.
    pub(super) fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failed> {
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
            sent.map_err(|error| {
                Problem::caused_by(&error)
                    .about(self.url.as_str())
                    .hint("start the monitor with `plimsoll monitor`, or give the address of another one by --url")
                    .could_not_run()
            })
        })?;
        let answer: Value = serde_json::from_slice(&sent.content).unwrap_or_default();
        if (200..300).contains(&sent.status) {
            let text = || String::from_utf8_lossy(&sent.content).into_owned().into();
            return Ok(if answer.is_null() { text() } else { answer });
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
