//! A store in one SQLite file, or in memory.
//!
//! One thread owns the connection that writes, another the one that reads; calls are jobs for them over bounded channels.
//! The file is in WAL mode, so reading and writing do not wait for one another.

mod schema;

mod files;

mod thread;

mod monitors;

mod results;

mod rollups;

mod incidents;

mod declared;

mod definitions;

mod accounts;

mod outbox;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rusqlite::Connection;

use crate::detect::uptime::HealthAt;
use crate::store::accounts::{
    Accounts, AuditEntry, NewAudit, NewSession, NewToken, Role, Session, SessionChoice,
    StoredToken, User, UserEdit, UserId,
};
use crate::store::declared::{Declared, DeclaredEdit, DeclaredId, NewDeclared};
use crate::store::definitions::{
    Definition, DefinitionChanges, DefinitionKind, Definitions, Replay,
};
use crate::store::outbox::{NewNotice, NoticeOutcome, NoticeState, StoredNotice};
use crate::store::sqlite::files::{LOCK_TRIES, connect, keep_statements, lock, prepare};
use crate::store::sqlite::thread::{Reader, Writer};
use crate::store::types::{
    BatchNumber, Change, Incident, IncidentEvent, IncidentFilter, IncidentId, MonitorHistory,
    MonitorId, MonitorRow, NewMonitor, OrgId, Orphan, Resolution, Restored, ResultRow, Retention,
    Rollup, Upkeep,
};
use crate::store::vault::Vault;
use crate::store::{Store, StoreError, StoreFuture};
use crate::time::Timestamp;

pub use crate::store::sqlite::files::{backup, restore};

/// Where the data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlitePath {
    /// In a file, with `-wal` and `-shm` beside it, and `.lock` while it is in use.
    File(PathBuf),
    /// In memory, until the program ends.
    Memory,
}

/// How a store is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqliteOptions {
    /// Results wait at most this long before they are written: what a killed process may lose.
    pub flush_every: Duration,
    /// Results that are written at once.
    pub batch: usize,
    /// Results that wait while the disk is full or slow; those beyond it are refused.
    pub most_waiting: usize,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            flush_every: Duration::from_millis(500),
            batch: 5_000,
            most_waiting: 200_000,
        }
    }
}

/// A store in SQLite; clones are the same store, which closes with the last of them.
#[derive(Debug, Clone)]
pub struct SqliteStore(Arc<Threads>);

#[derive(Debug)]
struct Threads {
    /// Ends before the writer, which may wait for a checkpoint.
    reader: Option<Reader>,
    writer: Writer,
    vault: OnceLock<Arc<Vault>>,
    /// Held while the file is in use.
    lock: Option<File>,
}

impl SqliteStore {
    /// Opens a store, makes it if it is not there, and brings its schema up to date.
    ///
    /// Fails with [`StoreError::InUse`] if another process has it open, [`StoreError::Newer`] if a newer version wrote
    /// it, and [`StoreError::Open`] if it cannot be opened.
    pub fn open(path: &SqlitePath, options: SqliteOptions) -> Result<Self, StoreError> {
        Self::open_within(path, options, LOCK_TRIES)
    }

    /// - `tries`: to take the lock; at least 1.
    fn open_within(
        path: &SqlitePath,
        options: SqliteOptions,
        tries: u32,
    ) -> Result<Self, StoreError> {
        let (lock, mut connection) = match path {
            SqlitePath::Memory => {
                let connection = Connection::open_in_memory().map_err(database)?;
                keep_statements(&connection)?;
                (None, connection)
            }
            SqlitePath::File(path) => {
                let lock = lock(path, tries)?;
                prepare(path)?;
                (Some(lock), connect(path)?)
            }
        };
        schema::prepare(&connection, path)?;
        schema::migrate(&mut connection, path)?;
        let reader = match path {
            SqlitePath::Memory => None,
            SqlitePath::File(path) => {
                let reading = connect(path)?;
                reading
                    .pragma_update(None, "query_only", true)
                    .map_err(database)?;
                Some(Reader::start(reading)?)
            }
        };
        let writer = Writer::start(connection, options)?;
        Ok(Self(Arc::new(Threads {
            reader,
            writer,
            vault: OnceLock::new(),
            lock,
        })))
    }

    /// Opens the store for a few changes, also while another process uses it, which must be of this version.
    ///
    /// Fails with [`StoreError::Open`] if there is no store that is up to date.
    pub fn open_beside(path: &Path) -> Result<Self, StoreError> {
        let options = SqliteOptions::default();
        match Self::open_within(&SqlitePath::File(path.to_owned()), options, 1) {
            Err(StoreError::InUse(_)) => {}
            outcome => return outcome,
        }
        let connection = connect(path)?;
        schema::prepare(&connection, &SqlitePath::File(path.to_owned()))?;
        if !schema::is_present(&connection, path)? {
            return Err(StoreError::Open {
                path: path.to_owned(),
                reason: "an older version of plimsoll uses it; stop that first".to_owned(),
            });
        }
        let writer = Writer::start(connection, options)?;
        Ok(Self(Arc::new(Threads {
            reader: None,
            writer,
            vault: OnceLock::new(),
            lock: None,
        })))
    }

    /// Results that wait to be written, and those that were refused because too many did.
    pub fn waiting(&self) -> (u64, u64) {
        self.0.writer.waiting()
    }

    fn vault(&self) -> &Vault {
        self.0.vault.get_or_init(Arc::default)
    }

    fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(async move {
            match &self.0.reader {
                None => self.0.writer.call(move |connection| job(connection)).await,
                Some(reader) => {
                    // What was written can be read on a full disk too.
                    match self.0.writer.flush().await {
                        Ok(()) | Err(StoreError::Full) => {}
                        Err(error) => return Err(error),
                    }
                    reader.call(job).await
                }
            }
        })
    }

    fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.0.writer.call(job))
    }

    /// Writes what survives a loss of power too, which results need not.
    fn write_durably<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.write(move |connection| {
            connection.pragma_update(None, "synchronous", "FULL")?;
            let outcome = job(connection);
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            outcome
        })
    }

    /// A durable write that may be refused.
    fn write_checked<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<Result<T, declared::Refusal>>
        + Send
        + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(async move {
            let outcome = self.write_durably(job).await?;
            outcome.map_err(|refusal| match refusal {
                declared::Refusal::NotFound(what) => StoreError::NotFound(what),
                declared::Refusal::Conflict => StoreError::Conflict,
            })
        })
    }
}

impl Definitions for SqliteStore {
    fn definitions(
        &self,
        org: OrgId,
        kind: DefinitionKind,
    ) -> StoreFuture<'_, Vec<(Definition, Option<i64>)>> {
        Box::pin(async move {
            let read = self.read(move |connection| definitions::list(connection, org, kind));
            self.vault().opened(org, kind, read.await?)
        })
    }

    fn definition(
        &self,
        org: OrgId,
        kind: DefinitionKind,
        key: &str,
    ) -> StoreFuture<'_, Option<Definition>> {
        let key = key.to_owned();
        Box::pin(async move {
            let read = self.read(move |connection| definitions::one(connection, org, kind, &key));
            self.vault().opened_one(org, kind, read.await?)
        })
    }

    fn definition_by_id(
        &self,
        org: OrgId,
        kind: DefinitionKind,
        id: &str,
    ) -> StoreFuture<'_, Option<Definition>> {
        let id = id.to_owned();
        Box::pin(async move {
            let read = self.read(move |connection| definitions::by_id(connection, org, kind, &id));
            self.vault().opened_one(org, kind, read.await?)
        })
    }

    fn change_definitions(
        &self,
        org: OrgId,
        kind: DefinitionKind,
        changes: DefinitionChanges,
        now: Timestamp,
    ) -> StoreFuture<'_, Vec<(Definition, Option<i64>)>> {
        Box::pin(async move {
            let changes = self.vault().sealed(org, kind, changes)?;
            let written = self.write_checked(move |connection| {
                definitions::change(connection, org, kind, &changes, now)
            });
            self.vault().opened(org, kind, written.await?)
        })
    }

    fn replay(&self, org: OrgId, key: &str) -> StoreFuture<'_, Option<Replay>> {
        let key = key.to_owned();
        self.read(move |connection| definitions::replay(connection, org, &key))
    }
}

impl Accounts for SqliteStore {
    fn add_user(
        &self,
        org: OrgId,
        name: &str,
        role: Role,
        (password, must_change): (String, bool),
        only_first: bool,
        now: Timestamp,
    ) -> StoreFuture<'_, UserId> {
        let name = name.to_owned();
        self.write_checked(move |connection| {
            let password = (password.as_str(), must_change);
            accounts::add_user(connection, org, &name, role, password, only_first, now)
        })
    }

    fn users(&self, org: OrgId) -> StoreFuture<'_, Vec<User>> {
        Box::pin(async move {
            let users = self.read(move |connection| accounts::users(connection, org));
            let users = users.await?.into_iter();
            users
                .map(|user| self.vault().opened_user(org, user))
                .collect()
        })
    }

    fn edit_user(&self, org: OrgId, user: UserId, edit: UserEdit) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let edit = self.vault().sealed_edit(org, user, edit)?;
            self.write_checked(move |connection| accounts::edit_user(connection, org, user, &edit))
                .await
        })
    }

    fn remove_user(&self, org: OrgId, user: UserId) -> StoreFuture<'_, bool> {
        self.write_checked(move |connection| accounts::remove_user(connection, org, user))
    }

    fn use_totp_step(&self, org: OrgId, user: UserId, step: i64) -> StoreFuture<'_, bool> {
        self.write_durably(move |connection| accounts::use_totp_step(connection, org, user, step))
    }

    fn open_session(&self, org: OrgId, session: NewSession, now: Timestamp) -> StoreFuture<'_, ()> {
        self.write_durably(move |connection| accounts::open_session(connection, org, &session, now))
    }

    fn session(
        &self,
        org: OrgId,
        hash: [u8; 32],
        now: Timestamp,
    ) -> StoreFuture<'_, Option<(Session, User)>> {
        Box::pin(async move {
            let found = self
                .read(move |connection| accounts::session(connection, org, hash, now))
                .await?;
            if let Some((session, _)) = &found
                && session.is_to_touch(now)
            {
                let id = session.id;
                self.write(move |connection| accounts::touch_session(connection, id, now))
                    .await?;
            }
            found
                .map(|(session, user)| Ok((session, self.vault().opened_user(org, user)?)))
                .transpose()
        })
    }

    fn sessions(&self, org: OrgId, user: UserId, now: Timestamp) -> StoreFuture<'_, Vec<Session>> {
        self.read(move |connection| accounts::sessions(connection, org, user, now))
    }

    fn end_sessions(
        &self,
        org: OrgId,
        user: UserId,
        which: SessionChoice,
    ) -> StoreFuture<'_, usize> {
        self.write_durably(move |connection| accounts::end_sessions(connection, org, user, which))
    }

    fn add_token(&self, org: OrgId, token: NewToken, now: Timestamp) -> StoreFuture<'_, i64> {
        self.write_durably(move |connection| accounts::add_token(connection, org, &token, now))
    }

    fn tokens(&self, org: OrgId) -> StoreFuture<'_, Vec<StoredToken>> {
        self.read(move |connection| accounts::tokens(connection, org))
    }

    fn revoke_token(&self, org: OrgId, token: i64, now: Timestamp) -> StoreFuture<'_, bool> {
        self.write_durably(move |connection| accounts::revoke_token(connection, org, token, now))
    }

    fn record_audit(&self, org: OrgId, entry: NewAudit, now: Timestamp) -> StoreFuture<'_, ()> {
        self.write_durably(move |connection| accounts::record_audit(connection, org, &entry, now))
    }

    fn audit(
        &self,
        org: OrgId,
        before: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<AuditEntry>> {
        self.read(move |connection| accounts::audit(connection, org, before, limit))
    }
}

impl Store for SqliteStore {
    fn org(&self, slug: &str) -> StoreFuture<'_, OrgId> {
        let slug = slug.to_owned();
        self.write(move |connection| monitors::org(connection, &slug))
    }

    fn sync_monitors(
        &self,
        org: OrgId,
        source: &str,
        monitors: Vec<NewMonitor>,
        now: Timestamp,
    ) -> StoreFuture<'_, Vec<MonitorId>> {
        let source = source.to_owned();
        self.write(move |connection| monitors::sync(connection, org, &source, &monitors, now))
    }

    fn monitors(&self, org: OrgId) -> StoreFuture<'_, Vec<MonitorRow>> {
        self.read(move |connection| monitors::list(connection, org))
    }

    fn pause_monitor(&self, org: OrgId, monitor: MonitorId, paused: bool) -> StoreFuture<'_, bool> {
        self.write(move |connection| monitors::pause(connection, org, monitor, paused))
    }

    fn restored(&self, org: OrgId) -> StoreFuture<'_, Vec<Restored>> {
        self.read(move |connection| incidents::restored(connection, org))
    }

    fn append(&self, org: OrgId, results: Vec<ResultRow>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.0.writer.append(org, results) })
    }

    fn trouble(&self) -> Option<String> {
        self.0.writer.trouble()
    }

    fn release(&self) {
        if let Some(lock) = &self.0.lock {
            // Without it the other process waits until this one ends.
            lock.unlock().ok();
        }
    }

    fn flush(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.0.writer.flush())
    }

    fn orphans(&self, org: OrgId) -> StoreFuture<'_, Vec<Orphan>> {
        self.read(move |connection| incidents::orphans(connection, org))
    }

    fn memories(&self, org: OrgId, name: &str) -> StoreFuture<'_, Vec<(MonitorId, String)>> {
        let name = name.to_owned();
        self.read(move |connection| incidents::memories(connection, org, &name))
    }

    fn mark_alive(&self, org: OrgId, at: Timestamp) -> StoreFuture<'_, ()> {
        self.write(move |connection| incidents::mark_alive(connection, org, at))
    }

    fn last_alive(&self, org: OrgId) -> StoreFuture<'_, Option<Timestamp>> {
        self.read(move |connection| incidents::last_alive(connection, org))
    }

    fn record_once(
        &self,
        org: OrgId,
        batch: Option<BatchNumber>,
        changes: Vec<Change>,
    ) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let outcome = self
                .write_durably(move |connection| {
                    incidents::record(connection, org, batch, &changes)
                })
                .await?;
            if outcome {
                Ok(())
            } else {
                Err(StoreError::NotFound("monitor"))
            }
        })
    }

    fn results(
        &self,
        org: OrgId,
        monitor: MonitorId,
        before: Timestamp,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ResultRow>> {
        self.read(move |connection| results::before(connection, org, monitor, before, limit))
    }

    fn by_region(
        &self,
        org: OrgId,
        monitor: MonitorId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<(u16, Rollup)>> {
        self.read(move |connection| results::by_region(connection, org, monitor, from, to))
    }

    fn rollups(
        &self,
        org: OrgId,
        monitor: MonitorId,
        resolution: Resolution,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<Rollup>> {
        self.read(move |connection| rollups::range(connection, org, monitor, resolution, from, to))
    }

    fn health(
        &self,
        org: OrgId,
        monitor: MonitorId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<(HealthAt, Option<String>)>> {
        self.read(move |connection| incidents::health(connection, org, monitor, from, to))
    }

    fn incidents(
        &self,
        org: OrgId,
        filter: IncidentFilter,
        after: Option<IncidentId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Incident>> {
        self.read(move |connection| incidents::list(connection, org, filter, after, limit))
    }

    fn incident(
        &self,
        org: OrgId,
        incident: IncidentId,
    ) -> StoreFuture<'_, Option<(Incident, Vec<IncidentEvent>)>> {
        self.read(move |connection| incidents::one(connection, org, incident))
    }

    fn histories(
        &self,
        org: OrgId,
        monitors: Vec<MonitorId>,
        from: Timestamp,
        hours_from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<MonitorHistory>> {
        self.read(move |connection| {
            let gaps = incidents::gaps(connection, org, from, to)?;
            let histories = monitors.into_iter().map(|monitor| {
                if !monitors::owns(connection, org, monitor)? {
                    return Ok(MonitorHistory::default());
                }
                let health = incidents::health_of_owned(connection, monitor, &gaps, from, to)?;
                let hour = Resolution::Hour;
                Ok(MonitorHistory {
                    health: health.into_iter().map(|(change, _)| change).collect(),
                    hours: Some(rollups::range_of_owned(
                        connection, monitor, hour, hours_from, to,
                    )?),
                })
            });
            histories.collect()
        })
    }

    fn timelines(
        &self,
        org: OrgId,
        since: Timestamp,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(Incident, Vec<IncidentEvent>)>> {
        self.read(move |connection| incidents::timelines(connection, org, since, limit))
    }

    fn declare(&self, org: OrgId, new: NewDeclared, now: Timestamp) -> StoreFuture<'_, Declared> {
        self.write_checked(move |connection| declared::declare(connection, org, &new, now))
    }

    fn edit_declared(
        &self,
        org: OrgId,
        id: DeclaredId,
        edit: DeclaredEdit,
        now: Timestamp,
    ) -> StoreFuture<'_, Declared> {
        self.write_checked(move |connection| declared::edit(connection, org, id, &edit, now))
    }

    fn declared(
        &self,
        org: OrgId,
        since: Timestamp,
        before: Option<DeclaredId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Declared>> {
        self.read(move |connection| declared::list(connection, org, since, before, limit))
    }

    fn declared_one(&self, org: OrgId, id: DeclaredId) -> StoreFuture<'_, Option<Declared>> {
        self.read(move |connection| declared::one(connection, org, id))
    }

    fn due_notices(
        &self,
        org: OrgId,
        channel: &str,
        now: Timestamp,
        limit: usize,
    ) -> StoreFuture<'_, Vec<StoredNotice>> {
        let channel = channel.to_owned();
        self.read(move |connection| outbox::due(connection, org, &channel, now, limit))
    }

    fn notice(
        &self,
        org: OrgId,
        channel: &str,
        dedup: &str,
    ) -> StoreFuture<'_, Option<StoredNotice>> {
        let (channel, dedup) = (channel.to_owned(), dedup.to_owned());
        self.read(move |connection| outbox::one(connection, org, &channel, &dedup))
    }

    fn settle_notices(
        &self,
        org: OrgId,
        outcomes: Vec<NoticeOutcome>,
        more: Vec<NewNotice>,
        now: Timestamp,
    ) -> StoreFuture<'_, ()> {
        self.write_durably(move |connection| outbox::settle(connection, org, &outcomes, &more, now))
    }

    fn notices(
        &self,
        org: OrgId,
        state: Option<NoticeState>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<StoredNotice>> {
        self.read(move |connection| outbox::list(connection, org, state, limit))
    }

    fn upkeep(&self, now: Timestamp, retention: Retention) -> StoreFuture<'_, Upkeep> {
        self.write(move |connection| rollups::upkeep(connection, now, &retention))
    }

    fn backup(&self, to: PathBuf) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            if to.exists() {
                let reason = "it exists already; name a new file".to_owned();
                return Err(StoreError::Open { path: to, reason });
            }
            self.read(move |connection| {
                let to = to.to_string_lossy().into_owned();
                connection.execute("VACUUM INTO ?1", [to])?;
                Ok(())
            })
            .await
        })
    }

    /// The lock of the file is the lease: a store is open in one process at a time.
    fn use_vault(&self, vault: Arc<Vault>) {
        self.0.vault.set(vault).ok();
    }

    fn is_behind(&self) -> bool {
        self.vault().takes_over()
    }

    fn hold_lease(&self, _: &str, _: &str, _: Duration) -> StoreFuture<'_, bool> {
        Box::pin(async { Ok(true) })
    }

    fn end_lease(&self, _: &str, _: &str) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// The error of SQLite as one of stores.
#[expect(clippy::needless_pass_by_value, reason = "the form of `map_err`")]
fn database(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full,
        _ => StoreError::Database(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
