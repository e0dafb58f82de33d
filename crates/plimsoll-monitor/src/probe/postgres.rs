//! PostgreSQL: a connection, and the rows of a query.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use plimsoll_client::Stream;
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::database::{DatabaseScheme, DatabaseUrl, DatabaseUrlError, Rows, TlsMode};
use crate::probe::reading::Reading;
use crate::probe::{Probe, ProbeFuture};

const SCHEME: DatabaseScheme = DatabaseScheme {
    names: ["postgres", "postgresql"],
    port: 5432,
    example: "postgres://user:password@db.example.org/database",
};

/// The longest wait for the end of a connection.
const CLOSE_WITHIN: Duration = Duration::from_millis(200);

/// A query that any server can answer.
const PLAIN: &str = "SELECT 1 AS one";

/// Connects to PostgreSQL.
pub struct PostgresProbe {
    url: DatabaseUrl,
    query: String,
    reach: Reach,
}

impl PostgresProbe {
    /// - `url`: `postgres://user:password@host:port/database`.
    pub fn new(url: &str, query: Option<String>, reach: Reach) -> Result<Self, DatabaseUrlError> {
        let mut url = DatabaseUrl::parse(url, SCHEME, |_| false)?;
        if url.database.is_empty() {
            url.database.clone_from(&url.user);
        }
        Ok(Self {
            url,
            query: query.unwrap_or_else(|| PLAIN.to_owned()),
            reach,
        })
    }

    async fn look(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let endpoint = self.url.target.endpoint();
        let Some(connection) = self.reach.connect(endpoint, context, reading).await else {
            return Ok(());
        };
        let begun = context.clock.now();
        let mut config = Config::new();
        config
            .user(&self.url.user)
            .dbname(&self.url.database)
            .application_name("plimsoll")
            .ssl_mode(match self.url.tls {
                TlsMode::Disable => SslMode::Disable,
                TlsMode::Prefer => SslMode::Prefer,
                TlsMode::Require => SslMode::Require,
            });
        if let Some(password) = &self.url.password {
            config.password(password.expose());
        }
        let host = endpoint.host().to_string();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = self.reach.server_name.as_deref().unwrap_or(host);
        let mut tls = MakeRustlsConnect::new((*self.reach.tls).clone());
        let tls = MakeTlsConnect::<Stream>::make_tls_connect(&mut tls, name);
        let tls = tls.map_err(|error| {
            Failure::new(Phase::Tls, FailureKind::CertificateHostname).because(error.to_string())
        })?;
        let connected = config.connect_raw(connection.stream, tls).await;
        let (client, mut connection) = match connected {
            Ok(pair) => pair,
            Err(error) => return refused(&error, reading),
        };
        let outcome = tokio::select! {
            rows = rows(&client, &self.query) => rows,
            Err(error) = &mut connection => Err(error),
        };
        let is_whole = match outcome {
            Ok((rows, is_whole)) => {
                reading.body = rows.into_body();
                reading.size = reading.body.len() as u64;
                is_whole
            }
            Err(error) => return refused(&error, reading),
        };
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        // Otherwise the server logs a lost connection. What is left of a large result is not waited for.
        drop(client);
        if is_whole {
            tokio::time::timeout(CLOSE_WITHIN, connection).await.ok();
        }
        Ok(())
    }
}

/// An error that the server reports is a verdict; everything else is a failure.
fn refused(error: &tokio_postgres::Error, reading: &mut Reading) -> Result<(), Failure> {
    if let Some(reported) = error.as_db_error() {
        let (message, code) = (reported.message(), reported.code().code());
        reading.unmet = Some(format!("the server reports: {message} ({code})"));
        return Ok(());
    }
    let kind = if error.is_closed() {
        FailureKind::Closed
    } else {
        FailureKind::Protocol
    };
    let cause =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    Err(Failure::new(Phase::Wait, kind).because(cause))
}

/// The first rows, and whether these are all.
async fn rows(client: &Client, query: &str) -> Result<(Rows, bool), tokio_postgres::Error> {
    let mut messages = std::pin::pin!(client.simple_query_raw(query).await?);
    let mut rows = Rows::default();
    while let Some(message) = messages.next().await {
        let SimpleQueryMessage::Row(row) = message? else {
            continue;
        };
        let columns = row.columns().iter().enumerate();
        if !rows.add(columns.map(|(index, column)| (column.name(), row.get(index)))) {
            return Ok((rows, false));
        }
    }
    Ok((rows, true))
}

impl Probe for PostgresProbe {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn target(&self) -> String {
        format!("{}/{}", self.url.target.text(), self.url.database)
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

impl fmt::Debug for PostgresProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresProbe")
            .field("target", &self.target())
            .finish_non_exhaustive()
    }
}
