//! Statements to ClickHouse over its HTTP interface.
//!
//! A statement, with the rows of an `INSERT` behind it, is the content of a `POST`. All values in statements are numbers,
//! so nothing needs to be quoted.

use std::time::Duration;

use http::StatusCode;
use plimsoll_client::fetch::{FetchLimits, Fetcher};
use plimsoll_wire::tls::Trust;
use serde::de::DeserializeOwned;
use url::Url;

use crate::store::StoreError;
use crate::store::server::postgres::{shown, unusable};

/// Of a statement, the time to insert a batch included.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Of an answer: a page of results with their conditions is far smaller.
const MOST_ANSWER: u64 = 256 * 1024 * 1024;

/// Each brings the tables from the version of its position to the next.
const MIGRATIONS: [&str; 1] = [include_str!("clickhouse_1.sql")];

/// A database of a server.
pub(super) struct ClickHouse {
    fetcher: Fetcher,
    url: Url,
    fields: Vec<(String, String)>,
    database: String,
}

impl ClickHouse {
    /// Connects when it is first used.
    ///
    /// - `url`: `http://user:password@host:8123/database`; the database is `plimsoll` unless the path names one.
    ///
    /// Fails with [`StoreError::Open`] if the URL cannot be used.
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        let limits = FetchLimits {
            timeout: TIMEOUT,
            bytes: MOST_ANSWER,
            redirects: 0,
        };
        let mut parsed: Url = url
            .parse()
            .map_err(|error: url::ParseError| unusable(url, error.to_string()))?;
        let database = match parsed.path().trim_matches('/') {
            "" => "plimsoll".to_owned(),
            name => name.to_owned(),
        };
        let is_name = database
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || database.starts_with(|first: char| first.is_ascii_digit()) {
            let reason = format!(
                "`{database}` is no name of a database; use letters, digits and underscores"
            );
            return Err(unusable(url, reason));
        }
        let mut fields = vec![("content-type".to_owned(), "text/plain".to_owned())];
        if !parsed.username().is_empty() {
            let decoded = |text: &str| {
                let text = percent_encoding::percent_decode_str(text);
                text.decode_utf8_lossy().into_owned()
            };
            fields.push(("x-clickhouse-user".to_owned(), decoded(parsed.username())));
            if let Some(password) = parsed.password() {
                fields.push(("x-clickhouse-key".to_owned(), decoded(password)));
            }
        }
        // Fails only for URLs without a host, which the connection reports.
        parsed.set_username("").ok();
        parsed.set_password(None).ok();
        parsed.set_path("/");
        // Without it an error may come after the status 200.
        parsed
            .query_pairs_mut()
            .append_pair("wait_end_of_query", "1");
        let fetcher = Fetcher::believing(Trust::PublicRoots, limits)
            .map_err(|error| unusable(url, error.to_string()))?;
        Ok(Self {
            fetcher,
            url: parsed,
            fields,
            database,
        })
    }

    /// The database, which statements name.
    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// Runs a statement, and returns what it prints.
    pub(super) async fn execute(&self, statement: &str) -> Result<Vec<u8>, StoreError> {
        let content = Some(statement.as_bytes());
        let sent = self
            .fetcher
            .send("POST", &self.url, self.fields.clone(), content);
        let answer = sent.await.map_err(|error| failed(&error.to_string()))?;
        if answer.status == StatusCode::OK.as_u16() {
            return Ok(answer.content);
        }
        let text = String::from_utf8_lossy(&answer.content);
        let text: String = text.trim().chars().take(300).collect();
        Err(failed(&format!("status {} {text}", answer.status)))
    }

    /// Runs a `SELECT`, whose rows are tuples.
    pub(super) async fn query<T: DeserializeOwned>(
        &self,
        statement: &str,
    ) -> Result<Vec<T>, StoreError> {
        let statement = format!(
            "{statement} SETTINGS output_format_json_quote_64bit_integers = 0 FORMAT JSONCompactEachRow"
        );
        let content = self.execute(&statement).await?;
        serde_json::Deserializer::from_slice(&content)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| failed(&format!("the answer cannot be read: {error}")))
    }

    /// Makes the database and brings its tables up to date.
    ///
    /// Fails with [`StoreError::Newer`] if a newer version of plimsoll has been here.
    pub(super) async fn migrate(&self) -> Result<(), StoreError> {
        let database = &self.database;
        self.execute(&format!("CREATE DATABASE IF NOT EXISTS {database}"))
            .await?;
        self.execute(&format!(
            "CREATE TABLE IF NOT EXISTS {database}.plimsoll_schema (version Int64)
             ENGINE = MergeTree ORDER BY version"
        ))
        .await?;
        let versions: Vec<(i64,)> = self
            .query(&format!(
                "SELECT max(version) FROM {database}.plimsoll_schema"
            ))
            .await?;
        let found = versions.first().map_or(0, |(version,)| *version);
        let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        if found > known {
            return Err(StoreError::Newer {
                path: shown(self.url.as_str()),
                found,
                known,
            });
        }
        for (version, script) in (1_i64..).zip(MIGRATIONS) {
            if version <= found {
                continue;
            }
            let script = script.replace("{database}", database);
            // Each statement may be repeated, so a migration that was interrupted goes on.
            for statement in script.split(";\n") {
                if !statement.trim().is_empty() {
                    self.execute(statement).await?;
                }
            }
            self.execute(&format!(
                "INSERT INTO {database}.plimsoll_schema VALUES ({version})"
            ))
            .await?;
        }
        Ok(())
    }
}

fn failed(reason: &str) -> StoreError {
    StoreError::Database(format!("ClickHouse: {reason}"))
}
