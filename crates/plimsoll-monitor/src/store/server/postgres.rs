//! Connections to PostgreSQL, and transactions that work for one organisation.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use deadpool_postgres::{
    Client, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Timeouts,
    Transaction,
};
use plimsoll_model::with_causes;
use plimsoll_wire::tls::{TlsSettings, Trust};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::StoreError;
use crate::store::server::hosts::Hosts;
use crate::store::types::OrgId;

/// Connections of one process: each is a process of the server, which allows 100 by default.
const CONNECTIONS: usize = 8;

/// How long a statement may take, or the server be silent, before the call fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much longer than that a response may be on its way.
const ON_ITS_WAY: Duration = Duration::from_secs(2);

/// A statement's values.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The connections; clones are the same.
#[derive(Clone)]
pub(super) struct Postgres {
    pool: Pool,
    hosts: Hosts,
    limit: Limit,
}

/// A transaction that sees the rows of one organisation.
pub(super) struct Scoped<'a> {
    transaction: Transaction<'a>,
    org: i64,
    limit: Limit,
}

/// How long a response may take, if there is a limit: the server ends statements by itself, but a server that hangs does not, and
/// neither does a machine that is gone.
#[derive(Debug, Clone, Copy)]
struct Limit(Option<Duration>);

impl Limit {
    async fn hold<T>(
        self,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        let Some(limit) = self.0 else {
            return Ok(call.await?);
        };
        match tokio::time::timeout(limit, call).await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(StoreError::Away(format!(
                "PostgreSQL: no response within {} s",
                limit.as_secs()
            ))),
        }
    }
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
        config.keepalives_idle(PATIENCE);
        if config.get_keepalives_interval().is_none() {
            config.keepalives_interval(ON_ITS_WAY);
        }
        if config.get_keepalives_retries().is_none() {
            config.keepalives_retries(2);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(PATIENCE);
        }
        if config.get_application_name().is_none() {
            config.application_name("plimsoll monitor");
        }
        // Statements of a URL with options of its own may take as long as these say.
        let mut limit = Limit(None);
        if config.get_options().is_none() {
            // A process whose machine is gone in the midst of a transaction keeps no lock for longer than its lease.
            let millis = PATIENCE.as_millis();
            config.options(format!(
                "-c statement_timeout={millis} -c idle_in_transaction_session_timeout={millis}"
            ));
            limit = Limit(Some(PATIENCE + ON_ITS_WAY));
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
        let hosts = Hosts::new(&config, tls, PATIENCE);
        let manager = Manager::from_connect(config, hosts.clone(), recycling);
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(PATIENCE),
                create: Some(hosts.patience()),
                recycle: Some(PATIENCE),
            })
            .build()
            .map_err(|error| unusable(url, error.to_string()))?;
        Ok(Self { pool, hosts, limit })
    }

    /// Whether another server serves, or the same one with another history, since the last call: it may lack what was acknowledged.
    pub(super) fn take_change(&self) -> bool {
        self.hosts.take_change()
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
        let outcome = self.transact(&mut client, scope, org, locks, job).await;
        if matches!(outcome, Err(StoreError::Away(_))) {
            // What leads to a server that is gone, is silent or takes no writes any more serves no other call. Neither do
            // the other connections, which lead there too.
            drop(Object::take(client));
            self.pool.retain(|_, _| false);
        }
        outcome
    }

    async fn transact<T>(
        &self,
        client: &mut Client,
        scope: &str,
        org: i64,
        locks: bool,
        job: impl AsyncFnOnce(&Scoped<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let limit = self.limit;
        let transaction = limit.hold(client.transaction()).await?;
        let scoped = Scoped {
            transaction,
            org,
            limit,
        };
        let set = "SELECT set_config('plimsoll.org', $1, TRUE)";
        scoped.query(set, &[&scope]).await?;
        if locks {
            // The conditions checked before a write still hold when it is written.
            let lock = "SELECT pg_advisory_xact_lock($1::INT, ($2::BIGINT % 2147483647)::INT)";
            scoped.query(lock, &[&LOCK, &org]).await?;
        }
        let outcome = job(&scoped).await?;
        limit.hold(scoped.transaction.commit()).await?;
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
        let statement = self.prepared(sql).await?;
        let rows = self.transaction.query(&statement, values);
        self.limit.hold(rows).await
    }

    /// Exactly one row.
    pub(super) async fn one(&self, sql: &str, values: Values<'_>) -> Result<Row, StoreError> {
        let statement = self.prepared(sql).await?;
        let row = self.transaction.query_one(&statement, values);
        self.limit.hold(row).await
    }

    /// The rows that were changed.
    pub(super) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, StoreError> {
        let statement = self.prepared(sql).await?;
        let changed = self.transaction.execute(&statement, values);
        self.limit.hold(changed).await
    }

    /// Statements without values.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), StoreError> {
        self.limit.hold(self.transaction.batch_execute(sql)).await
    }

    async fn prepared(&self, sql: &str) -> Result<Statement, StoreError> {
        self.limit.hold(self.transaction.prepare_cached(sql)).await
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

/// Whether the server says that it starts or ends, has no room for this client, or takes no writes, as a primary that became
/// a standby: it or another one may serve soon.
fn is_absence(code: &SqlState) -> bool {
    [
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
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
            PoolError::Timeout(_) => Self::Away("PostgreSQL: no connection in time".to_owned()),
            error => Self::Database(format!("PostgreSQL: {}", with_causes(&error))),
        }
    }
}
