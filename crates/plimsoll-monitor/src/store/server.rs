//! A store on servers: PostgreSQL for configuration, incidents, notices and accounts, ClickHouse for results.
//!
//! Every row has its organisation, every statement names it, and policies of PostgreSQL hold each transaction to the one that
//! it works for.

mod thread;

mod postgres;

mod hosts;

mod schema;

mod monitors;

mod incidents;

mod outbox;

mod declared;

mod definitions;

mod accounts;

mod clickhouse;

mod results;

mod spill;

mod rollups;

mod own_results;

mod lease;

mod share;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use plimsoll_model::Secret;

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
use crate::store::server::postgres::Scoped;
use crate::store::server::thread::{Core, StoreThread};
use crate::store::shards::{Division, HandedOver, SharedResult};
use crate::store::types::{
    BatchNumber, Change, Incident, IncidentEvent, IncidentFilter, IncidentId, MonitorHistory,
    MonitorId, MonitorRow, NewMonitor, OrgId, Orphan, Resolution, Restored, ResultRow, Retention,
    Rollup, Upkeep,
};
use crate::store::vault::Vault;
use crate::store::{Damage, Store, StoreError, StoreFuture};
use crate::time::Timestamp;

/// Where the data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrls {
    /// `postgres://user:password@host/database`, with the parameters of libpq that the driver knows, such as `sslmode`.
    pub postgres: Secret,
    /// `http://user:password@host:8123/database`, or `https://…`; absent to keep results in PostgreSQL too.
    pub clickhouse: Option<Secret>,
    /// A PEM file: PostgreSQL's certificate must end in one of it, instead of a public root.
    pub ca: Option<PathBuf>,
    /// The folder in which results wait while ClickHouse is away. A process without one writes no results.
    pub spill: Option<PathBuf>,
}

/// How a store is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerOptions {
    /// Results wait at most this long before they are written: what a killed process may lose.
    pub flush_every: Duration,
    /// Results that are written at once. ClickHouse wants few large inserts.
    pub batch: usize,
    /// Results that wait in memory while they can neither be written nor spilled; those beyond it are refused.
    pub most_waiting: usize,
    /// Bytes of results on the disk; beyond it the oldest are deleted, and counted. 1 GiB holds some 8 million.
    pub most_spilled: u64,
    /// Whether processes that share the store divide the checks; otherwise one of them makes all.
    pub shares_checks: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            flush_every: Duration::from_millis(500),
            batch: 20_000,
            most_waiting: 200_000,
            most_spilled: 1 << 30,
            shares_checks: true,
        }
    }
}

/// How long a status page waits for response times before it is shown without them.
const HOURS_WITHIN: Duration = Duration::from_secs(2);

/// A store on servers; clones are the same store, which closes with the last of them.
#[derive(Debug, Clone)]
pub struct ServerStore(Arc<StoreThread>, Arc<OnceLock<Arc<Vault>>>);

impl ServerStore {
    /// Connects to PostgreSQL and brings the schemas up to date. ClickHouse may be away.
    ///
    /// Fails with [`StoreError::Away`] if PostgreSQL cannot be reached at present, [`StoreError::Open`] if it refuses this
    /// client or a URL cannot be used, and [`StoreError::Newer`] if a newer version of plimsoll has been there.
    pub fn open(urls: ServerUrls, options: ServerOptions) -> Result<Self, StoreError> {
        StoreThread::start(urls, options).map(|thread| Self(Arc::new(thread), Arc::default()))
    }

    fn vault(&self) -> &Vault {
        self.1.get_or_init(Arc::default)
    }

    /// Results that wait in memory, on the disk, and those that were refused or deleted because too many did.
    pub fn waiting(&self) -> (u64, u64, u64) {
        let counts = self.0.counts();
        let load = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        (
            load(&counts.waiting),
            load(&counts.spilled),
            load(&counts.refused),
        )
    }

    fn call<T: Send + 'static>(
        &self,
        job: impl AsyncFnOnce(&Core) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.0.call(job))
    }

    fn read<T: Send + 'static>(
        &self,
        org: OrgId,
        job: impl AsyncFnOnce(&Scoped<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.call(async move |core: &Core| core.postgres.read(org, job).await)
    }

    fn write<T: Send + 'static>(
        &self,
        org: OrgId,
        job: impl AsyncFnOnce(&Scoped<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.call(async move |core: &Core| core.postgres.write(org, job).await)
    }
}

impl Definitions for ServerStore {
    fn definitions(
        &self,
        org: OrgId,
        kind: DefinitionKind,
    ) -> StoreFuture<'_, Vec<(Definition, Option<i64>)>> {
        Box::pin(async move {
            let read = self.read(org, async move |scoped: &Scoped<'_>| {
                definitions::list(scoped, kind).await
            });
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
            let read = self.read(org, async move |scoped: &Scoped<'_>| {
                definitions::one(scoped, kind, &key).await
            });
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
            let read = self.read(org, async move |scoped: &Scoped<'_>| {
                definitions::by_id(scoped, kind, &id).await
            });
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
            let written = self.write(org, async move |scoped: &Scoped<'_>| {
                definitions::change(scoped, kind, &changes, now).await
            });
            self.vault().opened(org, kind, written.await?)
        })
    }

    fn replay(&self, org: OrgId, key: &str) -> StoreFuture<'_, Option<Replay>> {
        let key = key.to_owned();
        self.read(org, async move |scoped: &Scoped<'_>| {
            definitions::replay(scoped, &key).await
        })
    }
}

impl Accounts for ServerStore {
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
        self.write(org, async move |scoped: &Scoped<'_>| {
            let password = (password.as_str(), must_change);
            accounts::add_user(scoped, &name, role, password, only_first, now).await
        })
    }

    fn users(&self, org: OrgId) -> StoreFuture<'_, Vec<User>> {
        Box::pin(async move {
            let users = self.read(org, async |scoped: &Scoped<'_>| {
                accounts::users(scoped).await
            });
            let users = users.await?.into_iter();
            users
                .map(|user| self.vault().opened_user(org, user))
                .collect()
        })
    }

    fn edit_user(&self, org: OrgId, user: UserId, edit: UserEdit) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let edit = self.vault().sealed_edit(org, user, edit)?;
            self.write(org, async move |scoped: &Scoped<'_>| {
                accounts::edit_user(scoped, user, &edit).await
            })
            .await
        })
    }

    fn remove_user(&self, org: OrgId, user: UserId) -> StoreFuture<'_, bool> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            accounts::remove_user(scoped, user).await
        })
    }

    fn use_totp_step(&self, org: OrgId, user: UserId, step: i64) -> StoreFuture<'_, bool> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            accounts::use_totp_step(scoped, user, step).await
        })
    }

    fn open_session(&self, org: OrgId, session: NewSession, now: Timestamp) -> StoreFuture<'_, ()> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            accounts::open_session(scoped, &session, now).await
        })
    }

    fn session(
        &self,
        org: OrgId,
        hash: [u8; 32],
        now: Timestamp,
    ) -> StoreFuture<'_, Option<(Session, User)>> {
        Box::pin(async move {
            let found = self.read(org, async move |scoped: &Scoped<'_>| {
                accounts::session(scoped, hash, now).await
            });
            let found = found.await?;
            found
                .map(|(session, user)| Ok((session, self.vault().opened_user(org, user)?)))
                .transpose()
        })
    }

    fn sessions(&self, org: OrgId, user: UserId, now: Timestamp) -> StoreFuture<'_, Vec<Session>> {
        self.read(org, async move |scoped: &Scoped<'_>| {
            accounts::sessions(scoped, user, now).await
        })
    }

    fn end_sessions(
        &self,
        org: OrgId,
        user: UserId,
        which: SessionChoice,
    ) -> StoreFuture<'_, usize> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            accounts::end_sessions(scoped, user, which).await
        })
    }

    fn add_token(&self, org: OrgId, token: NewToken, now: Timestamp) -> StoreFuture<'_, i64> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            accounts::add_token(scoped, &token, now).await
        })
    }

    fn tokens(&self, org: OrgId) -> StoreFuture<'_, Vec<StoredToken>> {
        self.read(org, async |scoped: &Scoped<'_>| {
            accounts::tokens(scoped).await
        })
    }

    fn revoke_token(&self, org: OrgId, token: i64, now: Timestamp) -> StoreFuture<'_, bool> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            accounts::revoke_token(scoped, token, now).await
        })
    }

    fn record_audit(&self, org: OrgId, entry: NewAudit, now: Timestamp) -> StoreFuture<'_, ()> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            accounts::record_audit(scoped, &entry, now).await
        })
    }

    fn audit(
        &self,
        org: OrgId,
        before: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<AuditEntry>> {
        self.read(org, async move |scoped: &Scoped<'_>| {
            accounts::audit(scoped, before, limit).await
        })
    }
}

impl Store for ServerStore {
    fn org(&self, slug: &str) -> StoreFuture<'_, OrgId> {
        let slug = slug.to_owned();
        self.call(async move |core: &Core| {
            core.postgres
                .write_all(async |scoped: &Scoped<'_>| monitors::org(scoped, &slug).await)
                .await
        })
    }

    fn sync_monitors(
        &self,
        org: OrgId,
        source: &str,
        monitors: Vec<NewMonitor>,
        now: Timestamp,
    ) -> StoreFuture<'_, Vec<MonitorId>> {
        let source = source.to_owned();
        self.write(org, async move |scoped: &Scoped<'_>| {
            monitors::sync(scoped, &source, &monitors, now).await
        })
    }

    fn monitors(&self, org: OrgId) -> StoreFuture<'_, Vec<MonitorRow>> {
        self.read(org, async |scoped: &Scoped<'_>| {
            monitors::list(scoped).await
        })
    }

    fn pause_monitor(&self, org: OrgId, monitor: MonitorId, paused: bool) -> StoreFuture<'_, bool> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            monitors::pause(scoped, monitor, paused).await
        })
    }

    fn restored(&self, org: OrgId) -> StoreFuture<'_, Vec<Restored>> {
        self.read(org, async |scoped: &Scoped<'_>| {
            incidents::restored(scoped).await
        })
    }

    fn append(&self, org: OrgId, results: Vec<ResultRow>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.0.append(org, results) })
    }

    fn flush(&self) -> StoreFuture<'_, ()> {
        self.call(async |core: &Core| core.results.flush(&core.postgres).await)
    }

    fn orphans(&self, org: OrgId) -> StoreFuture<'_, Vec<Orphan>> {
        self.read(org, async |scoped: &Scoped<'_>| {
            incidents::orphans(scoped).await
        })
    }

    fn memories(&self, org: OrgId, name: &str) -> StoreFuture<'_, Vec<(MonitorId, String)>> {
        let name = name.to_owned();
        self.read(org, async move |scoped: &Scoped<'_>| {
            incidents::memories(scoped, &name).await
        })
    }

    fn mark_alive(&self, org: OrgId, at: Timestamp) -> StoreFuture<'_, ()> {
        self.read(org, async move |scoped: &Scoped<'_>| {
            incidents::mark_alive(scoped, at).await
        })
    }

    fn last_alive(&self, org: OrgId) -> StoreFuture<'_, Option<Timestamp>> {
        self.read(org, async |scoped: &Scoped<'_>| {
            incidents::last_alive(scoped).await
        })
    }

    fn record_once(
        &self,
        org: OrgId,
        batch: Option<BatchNumber>,
        changes: Vec<Change>,
    ) -> StoreFuture<'_, ()> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            incidents::record(scoped, batch, &changes).await
        })
    }

    fn results(
        &self,
        org: OrgId,
        monitor: MonitorId,
        before: Timestamp,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ResultRow>> {
        self.call(async move |core: &Core| {
            core.results.flush(&core.postgres).await?;
            core.results.before(org, monitor, before, limit).await
        })
    }

    fn by_region(
        &self,
        org: OrgId,
        monitor: MonitorId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<(u16, Rollup)>> {
        self.call(async move |core: &Core| {
            core.results.flush(&core.postgres).await?;
            rollups::by_region(&core.results, org, monitor, from, to).await
        })
    }

    fn rollups(
        &self,
        org: OrgId,
        monitor: MonitorId,
        resolution: Resolution,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<Rollup>> {
        self.call(async move |core: &Core| {
            core.results.flush(&core.postgres).await?;
            let of = [monitor];
            let found = rollups::range(&core.results, org, &of, resolution, from, to).await?;
            Ok(found.into_values().next().unwrap_or_default())
        })
    }

    fn health(
        &self,
        org: OrgId,
        monitor: MonitorId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<(HealthAt, Option<String>)>> {
        self.read(org, async move |scoped: &Scoped<'_>| {
            let found = incidents::health(scoped, &[monitor], from, to).await?;
            Ok(found.into_values().next().unwrap_or_default())
        })
    }

    fn incidents(
        &self,
        org: OrgId,
        filter: IncidentFilter,
        after: Option<IncidentId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Incident>> {
        self.read(org, async move |scoped: &Scoped<'_>| {
            incidents::list(scoped, filter, after, limit).await
        })
    }

    fn incident(
        &self,
        org: OrgId,
        incident: IncidentId,
    ) -> StoreFuture<'_, Option<(Incident, Vec<IncidentEvent>)>> {
        self.read(org, async move |scoped: &Scoped<'_>| {
            incidents::one(scoped, incident).await
        })
    }

    fn histories(
        &self,
        org: OrgId,
        monitors: Vec<MonitorId>,
        from: Timestamp,
        hours_from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<MonitorHistory>> {
        self.call(async move |core: &Core| {
            let health = core.postgres.read(org, async |scoped: &Scoped<'_>| {
                incidents::health(scoped, &monitors, from, to).await
            });
            let hours = async {
                // Never cancelled, since it holds what waits; it lasts while the database is away, which is known by then.
                if !core.results.has_trouble() {
                    core.results.flush(&core.postgres).await?;
                }
                let hour = Resolution::Hour;
                let read = rollups::range(&core.results, org, &monitors, hour, hours_from, to);
                let read = tokio::time::timeout(HOURS_WITHIN, read).await;
                read.unwrap_or(Err(StoreError::Busy))
            };
            let (health, hours) = tokio::join!(health, hours);
            let (mut health, mut hours) = (health?, hours.ok());
            let histories = monitors.iter().map(|monitor| MonitorHistory {
                health: health
                    .remove(monitor)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(change, _)| change)
                    .collect(),
                hours: hours
                    .as_mut()
                    .map(|hours| hours.remove(monitor).unwrap_or_default()),
            });
            Ok(histories.collect())
        })
    }

    fn timelines(
        &self,
        org: OrgId,
        since: Timestamp,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(Incident, Vec<IncidentEvent>)>> {
        self.read(org, async move |scoped: &Scoped<'_>| {
            incidents::timelines(scoped, since, limit).await
        })
    }

    fn declare(&self, org: OrgId, new: NewDeclared, now: Timestamp) -> StoreFuture<'_, Declared> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            declared::declare(scoped, &new, now).await
        })
    }

    fn edit_declared(
        &self,
        org: OrgId,
        id: DeclaredId,
        edit: DeclaredEdit,
        now: Timestamp,
    ) -> StoreFuture<'_, Declared> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            declared::edit(scoped, id, &edit, now).await
        })
    }

    fn declared(
        &self,
        org: OrgId,
        since: Timestamp,
        before: Option<DeclaredId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Declared>> {
        self.read(org, async move |scoped: &Scoped<'_>| {
            declared::list(scoped, since, before, limit).await
        })
    }

    fn declared_one(&self, org: OrgId, id: DeclaredId) -> StoreFuture<'_, Option<Declared>> {
        self.read(org, async move |scoped: &Scoped<'_>| {
            declared::one(scoped, id).await
        })
    }

    fn due_notices(
        &self,
        org: OrgId,
        channel: &str,
        now: Timestamp,
        limit: usize,
    ) -> StoreFuture<'_, Vec<StoredNotice>> {
        let channel = channel.to_owned();
        self.read(org, async move |scoped: &Scoped<'_>| {
            outbox::due(scoped, &channel, now, limit).await
        })
    }

    fn notice(
        &self,
        org: OrgId,
        channel: &str,
        dedup: &str,
    ) -> StoreFuture<'_, Option<StoredNotice>> {
        let (channel, dedup) = (channel.to_owned(), dedup.to_owned());
        self.read(org, async move |scoped: &Scoped<'_>| {
            outbox::one(scoped, &channel, &dedup).await
        })
    }

    fn settle_notices(
        &self,
        org: OrgId,
        outcomes: Vec<NoticeOutcome>,
        more: Vec<NewNotice>,
        now: Timestamp,
    ) -> StoreFuture<'_, ()> {
        self.write(org, async move |scoped: &Scoped<'_>| {
            outbox::settle(scoped, &outcomes, &more, now).await
        })
    }

    fn notices(
        &self,
        org: OrgId,
        state: Option<NoticeState>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<StoredNotice>> {
        self.read(org, async move |scoped: &Scoped<'_>| {
            outbox::list(scoped, state, limit).await
        })
    }

    fn upkeep(&self, now: Timestamp, retention: Retention) -> StoreFuture<'_, Upkeep> {
        self.call(async move |core: &Core| {
            core.results.flush(&core.postgres).await?;
            let (postgres, results) = (&core.postgres, &core.results);
            core.upkeep.run(postgres, results, now, retention).await
        })
    }

    fn backup(&self, _: PathBuf) -> StoreFuture<'_, ()> {
        Box::pin(async {
            Err(StoreError::Database(
                "a store on servers is copied by pg_dump and by BACKUP of ClickHouse".to_owned(),
            ))
        })
    }

    fn trouble(&self) -> Option<String> {
        self.0.counts().trouble()
    }

    fn damage(&self) -> Damage {
        let damage = &self.0.counts().damage;
        std::mem::take(&mut *damage.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn use_vault(&self, vault: Arc<Vault>) {
        self.1.set(vault).ok();
    }

    fn is_behind(&self) -> bool {
        self.vault().takes_over()
    }

    fn hold_lease(
        &self,
        organisation: &str,
        holder: &str,
        lasts: Duration,
    ) -> StoreFuture<'_, bool> {
        let (name, holder) = (organisation.to_owned(), holder.to_owned());
        self.call(async move |core: &Core| {
            let granted = lease::hold(&core.postgres, &name, &holder, lasts).await?;
            if core.postgres.take_change() {
                core.results.forget_owners();
                return Ok(false);
            }
            Ok(granted)
        })
    }

    fn end_lease(&self, organisation: &str, holder: &str) -> StoreFuture<'_, ()> {
        let (name, holder) = (organisation.to_owned(), holder.to_owned());
        self.call(async move |core: &Core| lease::end(&core.postgres, &name, &holder).await)
    }

    fn hold_share(
        &self,
        org: OrgId,
        organisation: &str,
        process: &str,
        lasts: Duration,
    ) -> StoreFuture<'_, Division> {
        let (organisation, process) = (organisation.to_owned(), process.to_owned());
        self.read(org, async move |scoped: &Scoped<'_>| {
            share::hold(scoped, &organisation, &process, lasts).await
        })
    }

    fn end_share(&self, org: OrgId, process: &str) -> StoreFuture<'_, ()> {
        let process = process.to_owned();
        self.read(org, async move |scoped: &Scoped<'_>| {
            share::end(scoped, &process).await
        })
    }

    fn hand_over(
        &self,
        org: OrgId,
        process: &str,
        results: Vec<SharedResult>,
    ) -> StoreFuture<'_, ()> {
        let process = process.to_owned();
        self.read(org, async move |scoped: &Scoped<'_>| {
            share::hand_over(scoped, &process, &results).await
        })
    }

    fn fetch_handed_over(&self, org: OrgId) -> StoreFuture<'_, Vec<HandedOver>> {
        self.read(org, async |scoped: &Scoped<'_>| share::fetch(scoped).await)
    }
}

#[cfg(test)]
mod tests;
