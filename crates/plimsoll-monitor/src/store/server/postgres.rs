//! Connections to PostgreSQL, and transactions that work for one organisation.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime, Timeouts, Transaction,
};
use plimsoll_model::with_causes;
use plimsoll_wire::tls::{TlsSettings, Trust};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::StoreError;
use crate::store::types::OrgId;

/// Connections of one process: each is a process of the server, which allows 100 by default.
const CONNECTIONS: usize = 8;

/// How long a statement may take, or the server be silent, before the call fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// A statement's values.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The connections; clones are the same.
#[derive(Clone)]
pub(super) struct Postgres {
    pool: Pool,
}

/// A transaction that sees the rows of one organisation.
pub(super) struct Scoped<'a> {
    transaction: Transaction<'a>,
    org: i64,
}

impl Postgres {
    /// Connects when it is first used.
    ///
    /// - `ca`: a PEM file, trusted alone.
    ///
    /// Fails with [`StoreError::Open`] if the URL cannot be read, or TLS cannot be prepared.
    pub(super) fn new(url: &str, ca: Option<PathBuf>) -> Result<Self, StoreError> {
        let mut config: tokio_postgres::Config = url.parse().map_err(|error| {
            unusable(
                url,
                format!("the URL cannot be read: {}", with_causes(&error)),
            )
        })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        config.keepalives_idle(PATIENCE);
        if config.get_application_name().is_none() {
            config.application_name("plimsoll monitor");
        }
        let options = format!("-c statement_timeout={}", PATIENCE.as_millis());
        if config.get_options().is_none() {
            config.options(options);
        }
        let settings = TlsSettings {
            trust: ca.map_or(Trust::PublicRoots, Trust::Only),
            ..TlsSettings::default()
        };
        let tls = settings
            .compile()
            .map_err(|error| unusable(url, error.to_string()))?;
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let tls = MakeRustlsConnect::new((*tls).clone());
        let pool = Pool::builder(Manager::from_config(config, tls, recycling))
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(PATIENCE),
                create: Some(PATIENCE),
                recycle: Some(PATIENCE),
            })
            .build()
            .map_err(|error| unusable(url, error.to_string()))?;
        Ok(Self { pool })
    }

    /// Reads in a transaction.
    pub(super) async fn read<T>(
        &self,
        org: OrgId,
        job: impl AsyncFnOnce(&Scoped<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.run(&org.0.to_string(), org.0, false, job).await
    }

    /// Writes in a transaction, one at a time for each organisation. An error writes nothing.
    pub(super) async fn write<T>(
        &self,
        org: OrgId,
        job: impl AsyncFnOnce(&Scoped<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.run(&org.0.to_string(), org.0, true, job).await
    }

    /// Works on all organisations.
    pub(super) async fn write_all<T>(
        &self,
        job: impl AsyncFnOnce(&Scoped<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.run("all", 0, false, job).await
    }

    async fn run<T>(
        &self,
        scope: &str,
        org: i64,
        locks: bool,
        job: impl AsyncFnOnce(&Scoped<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let scoped = Scoped { transaction, org };
        let set = "SELECT set_config('plimsoll.org', $1, TRUE)";
        scoped.query(set, &[&scope]).await?;
        if locks {
            // The conditions checked before a write still hold when it is written.
            let lock = "SELECT pg_advisory_xact_lock($1::INT, ($2::BIGINT % 2147483647)::INT)";
            scoped.query(lock, &[&LOCK, &org]).await?;
        }
        let outcome = job(&scoped).await?;
        scoped.transaction.commit().await?;
        Ok(outcome)
    }
}

/// The first half of the key of advisory locks, so that they are not those of another program in the same database.
const LOCK: i32 = 0x706c_696d;

impl Scoped<'_> {
    /// The organisation.
    pub(super) fn org(&self) -> i64 {
        self.org
    }

    pub(super) async fn query(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let statement = self.transaction.prepare_cached(sql).await?;
        Ok(self.transaction.query(&statement, values).await?)
    }

    /// Exactly one row.
    pub(super) async fn one(&self, sql: &str, values: Values<'_>) -> Result<Row, StoreError> {
        let statement = self.transaction.prepare_cached(sql).await?;
        Ok(self.transaction.query_one(&statement, values).await?)
    }

    /// The rows that were changed.
    pub(super) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, StoreError> {
        let statement = self.transaction.prepare_cached(sql).await?;
        Ok(self.transaction.execute(&statement, values).await?)
    }

    /// Statements without values.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), StoreError> {
        Ok(self.transaction.batch_execute(sql).await?)
    }
}

/// A limit of rows as the server takes it.
pub(super) fn row_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The URL without its password, which messages may show.
pub(super) fn shown(url: &str) -> PathBuf {
    let shown = url::Url::parse(url).map_or_else(
        |_| "the database".to_owned(),
        |mut url| {
            // Fails for URLs that cannot have one.
            url.set_password(None).ok();
            url.set_query(None);
            url.to_string()
        },
    );
    PathBuf::from(shown)
}

pub(super) fn unusable(url: &str, reason: String) -> StoreError {
    StoreError::Open {
        path: shown(url),
        reason,
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = || format!("PostgreSQL: {}", with_causes(&error));
        match error.code() {
            Some(code) if *code == SqlState::DISK_FULL => Self::Full,
            Some(code) if is_absence(code) => Self::Away(text()),
            None if error.is_closed() || is_unreachable(&error) => Self::Away(text()),
            _ => Self::Database(text()),
        }
    }
}

/// Whether the server says that it starts or ends, or has no room for this client: it may serve soon.
fn is_absence(code: &SqlState) -> bool {
    [
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::TOO_MANY_CONNECTIONS,
    ]
    .contains(code)
}

/// Whether no connection was made, or it broke. An answer of a server that is not PostgreSQL, or whose certificate is not
/// believed, is another matter.
fn is_unreachable(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return !matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
            );
        }
        cause = error.source();
    }
    false
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(_) => Self::Away(format!(
                "PostgreSQL: no connection within {} s",
                PATIENCE.as_secs()
            )),
            error => Self::Database(format!("PostgreSQL: {}", with_causes(&error))),
        }
    }
}
