//! NATS: a connection that the server accepts, and the answer to a `PING`.
//!
//! Source: the client protocol of NATS.

use std::fmt;
use std::sync::Arc;

use plimsoll_client::Stream;
use plimsoll_model::{Clock, Failure, FailureKind, Phase, Secret};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::database::{DatabaseScheme, DatabaseUrl, DatabaseUrlError};
use crate::probe::reading::Reading;
use crate::probe::starttls::{line, upgraded};
use crate::probe::{Probe, ProbeFuture};

const SCHEME: DatabaseScheme = DatabaseScheme {
    names: ["nats", "tls"],
    port: 4222,
    example: "nats://user:password@broker.example.org",
};

/// Fields of the server's `INFO` that conditions see.
const SHOWN: [&str; 7] = [
    "server_id",
    "server_name",
    "version",
    "cluster",
    "jetstream",
    "max_payload",
    "client_ip",
];

/// Connects to NATS.
pub struct NatsProbe {
    url: DatabaseUrl,
    token: Option<Secret>,
    requires_tls: bool,
    reach: Reach,
}

impl NatsProbe {
    /// - `url`: `nats://user:password@host:port`; `tls://` demands TLS.
    /// - `token`: gives access in place of a user.
    pub fn new(url: &str, token: Option<Secret>, reach: Reach) -> Result<Self, DatabaseUrlError> {
        Ok(Self {
            // The handshake comes behind the first line of the server.
            url: DatabaseUrl::parse(url, SCHEME, |_| false)?,
            token,
            requires_tls: url.starts_with("tls:"),
            reach,
        })
    }

    async fn look(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let endpoint = self.url.target.endpoint();
        let Some(connection) = self.reach.connect(endpoint, context, reading).await else {
            return Ok(());
        };
        let mut stream = connection.stream;
        let begun = context.clock.now();
        let first = line(&mut stream).await?;
        let info = info(&first).ok_or_else(|| unknown(&first))?;
        let offers = |key: &str| info[key].as_bool().unwrap_or(false);
        let has_tls = offers("tls_required") || offers("tls_available");
        if self.requires_tls && !has_tls {
            reading.unmet = Some("the server offers no TLS".to_owned());
            return Ok(());
        }
        let greeted = context.clock.now().saturating_duration_since(begun);
        if self.requires_tls || offers("tls_required") {
            stream = upgraded(stream, endpoint, &self.reach, context, reading).await?;
        }
        let begun = context.clock.now();
        let outcome = self.ping(&mut stream).await?;
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, greeted + waited);
        reading.unmet = outcome.map(|error| format!("the server reports: {error}"));
        let shown = SHOWN.map(|key| (key.to_owned(), info[key].clone()));
        let shown = shown.into_iter().filter(|(_, value)| !value.is_null());
        reading.body = Value::Object(shown.collect()).to_string().into_bytes();
        reading.size = reading.body.len() as u64;
        Ok(())
    }

    /// The error that the server reports, if it reports one.
    async fn ping(&self, stream: &mut Stream) -> Result<Option<String>, Failure> {
        let mut connect = json!({
            "verbose": false, "pedantic": false, "tls_required": self.requires_tls, "name": "plimsoll",
            "lang": "rust", "version": env!("CARGO_PKG_VERSION"), "protocol": 0,
        });
        if let Some(token) = &self.token {
            connect["auth_token"] = token.expose().into();
        }
        if !self.url.user.is_empty() {
            connect["user"] = self.url.user.as_str().into();
        }
        if let Some(password) = &self.url.password {
            connect["pass"] = password.expose().into();
        }
        let sent = async {
            let text = format!("CONNECT {connect}\r\nPING\r\n");
            stream.write_all(text.as_bytes()).await?;
            stream.flush().await
        };
        let sent = sent.await;
        sent.map_err(|error| Failure::from_io(Phase::Send, &error))?;
        loop {
            let answer = line(stream).await?;
            let answer = answer.trim_end();
            let (verb, rest) = answer.split_once(' ').unwrap_or((answer, ""));
            match verb.to_ascii_uppercase().as_str() {
                "PONG" => return Ok(None),
                "-ERR" => return Ok(Some(rest.trim_matches('\'').to_owned())),
                // Servers repeat what they are, and check that the client is there.
                "INFO" | "+OK" | "PING" => {}
                _ => return Err(unknown(answer)),
            }
        }
    }
}

/// The content of the server's first line.
pub(super) fn info(line: &str) -> Option<Value> {
    let (verb, rest) = line.trim_end().split_once(' ')?;
    let info: Value = serde_json::from_str(rest.trim()).ok()?;
    (verb.eq_ignore_ascii_case("INFO") && info.is_object()).then_some(info)
}

fn unknown(answer: &str) -> Failure {
    let shown: String = answer.trim_end().chars().take(40).collect();
    let cause = format!("the server does not speak the protocol of NATS: `{shown}`");
    Failure::new(Phase::Receive, FailureKind::Protocol).because(cause)
}

impl Probe for NatsProbe {
    fn kind(&self) -> &'static str {
        "nats"
    }

    fn target(&self) -> String {
        self.url.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.url.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.look(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

impl fmt::Debug for NatsProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsProbe")
            .field("target", &self.target())
            .finish_non_exhaustive()
    }
}
