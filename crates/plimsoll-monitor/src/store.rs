//! Stores of results, health and incidents: the [`Store`] trait, SQLite, and PostgreSQL with ClickHouse.
//!
//! Every query names the organisation first, and sees nothing of another one. A store accepts results in batches and
//! may lose the last flush interval of them when the process is killed; what [`Store::record`] and the other changes
//! returned from is durable.

mod types;

mod declared;

mod definitions;

mod accounts;

mod outbox;

pub mod shards;

mod sketch;

mod vault;

pub(crate) mod private;

mod sqlite;

mod server;

#[cfg(any(test, feature = "contract"))]
pub mod contract;

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::detect::uptime::HealthAt;
use crate::store::shards::{Division, HandedOver, Shards, SharedResult};
use crate::time::Timestamp;

pub use crate::store::accounts::{
    Accounts, AuditEntry, NewAudit, NewSession, NewToken, Role, Scope, Session, SessionChoice,
    StoredToken, TotpSecret, User, UserEdit, UserId,
};
pub use crate::store::declared::{
    Declared, DeclaredEdit, DeclaredId, DeclaredUpdate, Impact, NewDeclared, PublicPhase,
    declared_downtime,
};
pub use crate::store::definitions::{
    Definition, DefinitionChanges, DefinitionKind, Definitions, PutDefinition, Replay, Source,
};
pub use crate::store::outbox::{
    About, NewNotice, NoticeId, NoticeIncident, NoticeOutcome, NoticeState, StoredNotice,
};
pub use crate::store::server::{ServerOptions, ServerStore, ServerUrls};
pub use crate::store::sketch::Sketch;
pub use crate::store::sqlite::{SqliteOptions, SqlitePath, SqliteStore, backup, restore};
pub use crate::store::types::{
    BatchNumber, Change, Detail, EventKind, Incident, IncidentEvent, IncidentFilter, IncidentId,
    MonitorHistory, MonitorId, MonitorRow, NewMonitor, OpenIncident, OrgId, Orphan, Resolution,
    Restored, ResultRow, Retention, Rollup, Upkeep,
};
pub use crate::store::vault::Vault;

/// The result of a call of a store, later.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Damage to results that waited on the disk for their database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// Results that are lost: their file is missing, damaged, or was deleted because too many waited.
    pub lost: u64,
    /// The damaged files, where they are kept.
    pub set_aside: Vec<PathBuf>,
}

/// Keeps the data of all organisations.
pub trait Store: Definitions + Accounts + Send + Sync + fmt::Debug + 'static {
    /// The organisation of that slug, which is made unless it exists.
    fn org(&self, slug: &str) -> StoreFuture<'_, OrgId>;

    /// Makes the monitors of one source those of the list: new ones are added, others updated, and those that are gone
    /// retired with their history. The numbers are in the order of the list.
    ///
    /// - `source`: who defines them, such as `file`; monitors of other sources stay as they are.
    fn sync_monitors(
        &self,
        org: OrgId,
        source: &str,
        monitors: Vec<NewMonitor>,
        now: Timestamp,
    ) -> StoreFuture<'_, Vec<MonitorId>>;

    /// The monitors that are not retired, by key.
    fn monitors(&self, org: OrgId) -> StoreFuture<'_, Vec<MonitorRow>>;

    /// Pauses or resumes a monitor; false if there is no such monitor.
    fn pause_monitor(&self, org: OrgId, monitor: MonitorId, paused: bool) -> StoreFuture<'_, bool>;

    /// The state in which each monitor was when the program ended.
    fn restored(&self, org: OrgId) -> StoreFuture<'_, Vec<Restored>>;

    /// Takes results; they are written with the next flush.
    fn append(&self, org: OrgId, results: Vec<ResultRow>) -> StoreFuture<'_, ()>;

    /// Writes the results that were taken.
    fn flush(&self) -> StoreFuture<'_, ()>;

    /// Lets another process have the store from now on; for when nothing more is recorded here. What was opened stays readable.
    fn release(&self) {}

    /// Open incidents of monitors that are retired.
    fn orphans(&self, org: OrgId) -> StoreFuture<'_, Vec<Orphan>>;

    /// What [`Change::Memory`] kept under a name, by monitor.
    fn memories(&self, org: OrgId, name: &str) -> StoreFuture<'_, Vec<(MonitorId, String)>>;

    /// Notes that a process runs; not durably, so that it may be called every second.
    fn mark_alive(&self, org: OrgId, at: Timestamp) -> StoreFuture<'_, ()>;

    /// When a process last ran.
    fn last_alive(&self, org: OrgId) -> StoreFuture<'_, Option<Timestamp>>;

    /// Applies changes in one transaction, durably. Changes of monitors of other organisations are an error.
    fn record(&self, org: OrgId, changes: Vec<Change>) -> StoreFuture<'_, ()> {
        self.record_once(org, None, changes)
    }

    /// The same, unless the batch was applied already.
    fn record_once(
        &self,
        org: OrgId,
        batch: Option<BatchNumber>,
        changes: Vec<Change>,
    ) -> StoreFuture<'_, ()>;

    /// The results of a monitor before `before`, the newest first.
    fn results(
        &self,
        org: OrgId,
        monitor: MonitorId,
        before: Timestamp,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ResultRow>>;

    /// The rollups of a monitor from `from` until before `to`, ascending. Buckets that are not complete yet are
    /// computed from raw results.
    fn rollups(
        &self,
        org: OrgId,
        monitor: MonitorId,
        resolution: Resolution,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<Rollup>>;

    /// The raw results of a monitor from `from` until before `to`, added up by region, in the order of their numbers.
    fn by_region(
        &self,
        org: OrgId,
        monitor: MonitorId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<(u16, Rollup)>>;

    /// The health of a monitor from the last change before `from` on, until before `to`, ascending. Gaps are
    /// [`Health::NoData`](crate::Health::NoData).
    fn health(
        &self,
        org: OrgId,
        monitor: MonitorId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<(HealthAt, Option<String>)>>;

    /// Incidents, the newest first, after `after`, at most `limit`.
    fn incidents(
        &self,
        org: OrgId,
        filter: IncidentFilter,
        after: Option<IncidentId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Incident>>;

    /// An incident with its timeline, ascending.
    fn incident(
        &self,
        org: OrgId,
        incident: IncidentId,
    ) -> StoreFuture<'_, Option<(Incident, Vec<IncidentEvent>)>>;

    /// The history of monitors for a status page, in their order: the health as of [`health`](Self::health) from `from` on, and
    /// the rollups of hours from `hours_from` on, both until before `to`. Those of other organisations are empty. A store whose
    /// results are in a database of their own returns the health without rollups while that is away.
    fn histories(
        &self,
        org: OrgId,
        monitors: Vec<MonitorId>,
        from: Timestamp,
        hours_from: Timestamp,
        to: Timestamp,
    ) -> StoreFuture<'_, Vec<MonitorHistory>>;

    /// Incidents with their timelines that are open or were resolved at `since` or later, the newest first, at most
    /// `limit`.
    fn timelines(
        &self,
        org: OrgId,
        since: Timestamp,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(Incident, Vec<IncidentEvent>)>>;

    /// Declares an incident, durably. A request that is repeated with its key returns what the first one declared.
    ///
    /// Fails with [`StoreError::NotFound`] for a monitor of another organisation, and [`StoreError::Conflict`] if the
    /// key was used for another request.
    fn declare(
        &self,
        org: OrgId,
        declared: NewDeclared,
        now: Timestamp,
    ) -> StoreFuture<'_, Declared>;

    /// Changes a declared incident, durably.
    ///
    /// Fails with [`StoreError::Conflict`] if the edit names another version than the present one.
    fn edit_declared(
        &self,
        org: OrgId,
        id: DeclaredId,
        edit: DeclaredEdit,
        now: Timestamp,
    ) -> StoreFuture<'_, Declared>;

    /// Declared incidents before `before` that are open or were resolved at `since` or later, the newest first, at most
    /// `limit`.
    fn declared(
        &self,
        org: OrgId,
        since: Timestamp,
        before: Option<DeclaredId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Declared>>;

    /// One declared incident.
    fn declared_one(&self, org: OrgId, id: DeclaredId) -> StoreFuture<'_, Option<Declared>>;

    /// Notices of a channel that wait and are due, the oldest first.
    fn due_notices(
        &self,
        org: OrgId,
        channel: &str,
        now: Timestamp,
        limit: usize,
    ) -> StoreFuture<'_, Vec<StoredNotice>>;

    /// The notice of a channel by what makes it the same as another one.
    fn notice(
        &self,
        org: OrgId,
        channel: &str,
        dedup: &str,
    ) -> StoreFuture<'_, Option<StoredNotice>>;

    /// Notes what became of notices that waited, and adds others, durably.
    fn settle_notices(
        &self,
        org: OrgId,
        outcomes: Vec<NoticeOutcome>,
        more: Vec<NewNotice>,
        now: Timestamp,
    ) -> StoreFuture<'_, ()>;

    /// Notices, the newest first.
    fn notices(
        &self,
        org: OrgId,
        state: Option<NoticeState>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<StoredNotice>>;

    /// Completes rollups and deletes what is older than `retention`. Call it every minute.
    fn upkeep(&self, now: Timestamp, retention: Retention) -> StoreFuture<'_, Upkeep>;

    /// Copies everything to a new file while the store is in use.
    fn backup(&self, to: PathBuf) -> StoreFuture<'_, ()>;

    /// Why results are not written at present, such as the absence of their database; they wait until they are.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// What was lost of results that waited on the disk, since the last call.
    fn damage(&self) -> Damage {
        Damage::default()
    }

    /// Seals secrets from now on, and opens those that are sealed. Once, before anything else.
    fn use_vault(&self, vault: Arc<Vault>);

    /// Whether secrets are there that the present key has not sealed, as far as they were read; reset by this.
    fn is_behind(&self) -> bool;

    /// Acquires the lease of running the checks of an organisation for `lasts`, or renews it. False while another process holds
    /// it, and once after connections moved to another database server, which may lack acknowledged changes: the leading
    /// process then reloads its state.
    ///
    /// - `holder`: the process, by a name of its own.
    fn hold_lease(
        &self,
        organisation: &str,
        holder: &str,
        lasts: Duration,
    ) -> StoreFuture<'_, bool>;

    /// Ends the lease of `holder`, if that has it.
    fn end_lease(&self, organisation: &str, holder: &str) -> StoreFuture<'_, ()>;

    /// Takes the share of a process in the checks of an organisation for `lasts` from now on, or renews it. It becomes what
    /// [`Division::claim`] says, as the processes are that are alive at the moment.
    ///
    /// A store that one process has for itself leaves all shards to that.
    fn hold_share(
        &self,
        _org: OrgId,
        _organisation: &str,
        process: &str,
        _lasts: Duration,
    ) -> StoreFuture<'_, Division> {
        let process = process.to_owned();
        Box::pin(async move {
            Ok(Division {
                shares: [(process.clone(), Shards::ALL)].into(),
                leader: Some(process),
            })
        })
    }

    /// Ends the share of a process.
    fn end_share(&self, _org: OrgId, _process: &str) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Hands results over to the process that has the lease; durably, but for a crash of the database. Those of shards that the
    /// process does not have any more are left out.
    fn hand_over(
        &self,
        _org: OrgId,
        _process: &str,
        _results: Vec<SharedResult>,
    ) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Fetches the results that other processes handed over, each once, in the order of each of them.
    fn fetch_handed_over(&self, _org: OrgId) -> StoreFuture<'_, Vec<HandedOver>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Why a store could not do what it was called for.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened, or the database not be reached.
    #[error("cannot open the store `{}`: {reason}", path.display())]
    Open {
        /// The file, or the URL without its password.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A database cannot be reached at present: it starts, ends, or nothing responds at its address. It may come back by itself.
    #[error("the store cannot be reached: {0}")]
    Away(String),
    /// Another process uses it.
    #[error("the store `{}` is in use by another process; stop it, or give this one another store", .0.display())]
    InUse(PathBuf),
    /// It was written by a newer version.
    #[error("the store `{}` has schema {found}, and this version of plimsoll knows {known}; use a newer plimsoll", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// It has secrets that were sealed by a key that this process does not have.
    #[error(
        "the store has secrets that none of the keys of `[secrets]` opens; add the key that sealed them to `old_keys`"
    )]
    Sealed,
    /// The disk is full.
    #[error("the disk of the store is full")]
    Full,
    /// More is to be written than it can take.
    #[error("the store is overloaded")]
    Busy,
    /// Something is not there, or belongs to another organisation.
    #[error("there is no {0} of that number")]
    NotFound(&'static str),
    /// It was changed since, or the key was used for another request.
    #[error("it was changed meanwhile")]
    Conflict,
    /// The database refused a statement.
    #[error("the store failed: {0}")]
    Database(String),
    /// It was closed.
    #[error("the store is closed")]
    Closed,
}
