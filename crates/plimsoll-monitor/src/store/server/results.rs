//! Results on their way to ClickHouse, or to PostgreSQL where there is none, and back from it.
//!
//! They wait in memory for a flush, then are inserted as one batch. While the database cannot take them they wait on the disk,
//! in the order in which they came.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::detect::status::Status;
use crate::probe::reading::Judged;
use crate::store::server::clickhouse::ClickHouse;
use crate::store::server::monitors;
use crate::store::server::own_results::OwnResults;
use crate::store::server::postgres::{Postgres, Scoped};
use crate::store::server::spill::Spill;
use crate::store::sketch::Sketch;
use crate::store::types::{Detail, MonitorId, OrgId, ResultRow};
use crate::store::{Damage, StoreError};
use crate::time::Timestamp;

/// Counts that other threads read.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Results in memory.
    pub(super) waiting: AtomicU64,
    /// Results that were refused or deleted because too many waited.
    pub(super) refused: AtomicU64,
    /// Results on the disk.
    pub(super) spilled: AtomicU64,
    /// Damage on the disk that was not reported yet.
    pub(super) damage: Mutex<Damage>,
    /// Why results are not written at present, if they are not.
    trouble: Mutex<Option<String>>,
}

impl Counts {
    /// Why results are not written at present, if they are not.
    pub(super) fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock();
        trouble.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes whether ClickHouse serves what is requested.
    fn note<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        let error = outcome.as_ref().err().map(ToString::to_string);
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = error;
        outcome
    }

    /// Notes results that are lost though they were taken, and files that were set aside.
    fn add_damage(&self, lost: u64, set_aside: impl IntoIterator<Item = PathBuf>) {
        self.refused.fetch_add(lost, Ordering::Relaxed);
        let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.lost += lost;
        damage.set_aside.extend(set_aside);
    }
}

/// Where results are.
pub(super) enum ResultBase {
    ClickHouse(ClickHouse),
    Postgres(OwnResults),
}

/// The results of all organisations.
pub(super) struct Results {
    base: ResultBase,
    is_prepared: std::cell::Cell<bool>,
    buffer: RefCell<Vec<(OrgId, ResultRow)>>,
    /// Absent in a process that only changes configuration.
    spill: Option<RefCell<Spill>>,
    /// The organisations of monitors, which never change in one database.
    owners: RefCell<HashMap<MonitorId, OrgId>>,
    /// The latest result that is in ClickHouse for certain, by monitor and region: later ones are no repetitions.
    latest: RefCell<HashMap<(i64, u16), i64>>,
    /// Held by the one flush or drain that runs.
    writing: tokio::sync::Mutex<()>,
    counts: Arc<Counts>,
}

/// A result as it is inserted.
pub(super) struct Line {
    pub(super) monitor: i64,
    pub(super) at: i64,
    region: u16,
    /// A list of JSON.
    pub(super) text: String,
}

impl Line {
    fn from_row(org: OrgId, row: &ResultRow) -> Self {
        let took = row.took_us.min(i64::MAX as u64);
        let [dns, connect, tls, wait, receive] = row.phases_us;
        let detail = row.detail.as_ref();
        let text = json!([
            org.0,
            row.monitor.0,
            row.at.0,
            row.region,
            row.status.code(),
            took,
            Sketch::bucket(took),
            dns,
            connect,
            tls,
            wait,
            receive,
            row.code,
            row.certificate_days,
            u8::from(detail.is_some()),
            detail.and_then(|detail| detail.reason.as_deref()),
            detail.map_or_else(String::new, |detail| conditions_text(&detail.conditions)),
        ]);
        Self {
            monitor: row.monitor.0,
            at: row.at.0,
            region: row.region,
            text: text.to_string(),
        }
    }

    /// A line of a spilled batch; `None` if the file is damaged.
    fn of_text(text: &str) -> Option<Self> {
        let values: Vec<Value> = serde_json::from_str(text).ok()?;
        Some(Self {
            monitor: values.get(1)?.as_i64()?,
            at: values.get(2)?.as_i64()?,
            region: u16::try_from(values.get(3)?.as_u64()?).ok()?,
            text: text.to_owned(),
        })
    }

    fn key(&self) -> (i64, i64, u16) {
        (self.monitor, self.at, self.region)
    }
}

impl Results {
    /// - `folder`: where results wait while ClickHouse is away, `most` bytes of them.
    pub(super) fn new(
        base: ResultBase,
        folder: Option<&Path>,
        most: u64,
        counts: Arc<Counts>,
    ) -> Result<Self, StoreError> {
        let spill = match folder {
            None => None,
            Some(folder) => {
                let opened = Spill::open(folder, most);
                let spill = opened.map_err(|error| StoreError::Open {
                    path: folder.to_owned(),
                    reason: error.to_string(),
                })?;
                counts.spilled.store(spill.rows(), Ordering::Relaxed);
                Some(RefCell::new(spill))
            }
        };
        Ok(Self {
            base,
            is_prepared: std::cell::Cell::new(false),
            buffer: RefCell::default(),
            spill,
            owners: RefCell::default(),
            latest: RefCell::default(),
            writing: tokio::sync::Mutex::default(),
            counts,
        })
    }

    /// The database with its tables.
    pub(super) async fn prepared(&self) -> Result<&ResultBase, StoreError> {
        if let ResultBase::ClickHouse(clickhouse) = &self.base
            && !self.is_prepared.get()
        {
            self.counts.note(clickhouse.migrate().await)?;
            self.is_prepared.set(true);
        }
        Ok(&self.base)
    }

    /// Takes results, and returns how many wait.
    pub(super) fn accept_results(&self, org: OrgId, rows: Vec<ResultRow>) -> usize {
        let mut buffer = self.buffer.borrow_mut();
        buffer.extend(rows.into_iter().map(|row| (org, row)));
        buffer.len()
    }

    /// Writes what waits, or spills it to the disk. On an error it still waits.
    pub(super) async fn flush(&self, postgres: &Postgres) -> Result<(), StoreError> {
        let _writing = self.writing.lock().await;
        let rows = std::mem::take(&mut *self.buffer.borrow_mut());
        if rows.is_empty() {
            return Ok(());
        }
        let outcome = self.write_or_spill(postgres, &rows).await;
        if outcome.is_ok() {
            let count = rows.len() as u64;
            self.counts.waiting.fetch_sub(count, Ordering::Relaxed);
        } else {
            let mut buffer = self.buffer.borrow_mut();
            let later = std::mem::replace(&mut *buffer, rows);
            buffer.extend(later);
        }
        outcome
    }

    async fn write_or_spill(
        &self,
        postgres: &Postgres,
        rows: &[(OrgId, ResultRow)],
    ) -> Result<(), StoreError> {
        self.learn_owners(postgres, rows).await?;
        let mut lines: Vec<Line> = {
            let owners = self.owners.borrow();
            let own = rows
                .iter()
                .filter(|(org, row)| owners.get(&row.monitor) == Some(org));
            own.map(|(org, row)| Line::from_row(*org, row)).collect()
        };
        // The order is kept: while older results wait on the disk, newer ones wait behind them.
        if !self.has_spilled() {
            match self.counts.note(self.insert(&mut lines).await) {
                Err(error) if self.spill.is_none() => return Err(error),
                Err(_) => {}
                Ok(()) => return Ok(()),
            }
        }
        self.spill_lines(&lines)
    }

    fn spill_lines(&self, lines: &[Line]) -> Result<(), StoreError> {
        let Some(spill) = &self.spill else {
            return Ok(());
        };
        let mut text = String::new();
        for line in lines {
            text.push_str(&line.text);
            text.push('\n');
        }
        let mut spill = spill.borrow_mut();
        let deleted = spill.push(&text, lines.len() as u64).map_err(spill_error)?;
        self.counts.add_damage(deleted, None);
        self.counts.spilled.store(spill.rows(), Ordering::Relaxed);
        Ok(())
    }

    /// Whether results cannot be written at present.
    pub(super) fn has_trouble(&self) -> bool {
        self.counts.trouble().is_some()
    }

    /// Writes what waits on the disk.
    pub(super) async fn drain(&self) -> Result<(), StoreError> {
        /// Rows of one insert: batches of single flushes are put together, since ClickHouse wants few large inserts.
        const ROWS: u64 = 20_000;

        let Some(spill) = &self.spill else {
            return Ok(());
        };
        loop {
            let _writing = self.writing.lock().await;
            let oldest = spill.borrow_mut().oldest(ROWS).map_err(spill_error)?;
            self.counts.add_damage(oldest.damaged, oldest.set_aside);
            self.count_spilled(&spill.borrow());
            if oldest.batches.is_empty() {
                return Ok(());
            }
            // A line that is damaged is left out: it would hold up all others.
            let mut lines = Vec::new();
            let mut damaged = Vec::new();
            for batch in &oldest.batches {
                let before = lines.len();
                lines.extend(batch.lines().filter_map(Line::of_text));
                damaged.push((batch.lines().count() - (lines.len() - before)) as u64);
            }
            self.counts.note(self.insert(&mut lines).await)?;
            let mut spill = spill.borrow_mut();
            for damaged in damaged {
                // Only the file that has what cannot be read is kept.
                let aside = if damaged > 0 {
                    spill.set_aside_oldest().map_err(spill_error)?
                } else {
                    spill.pop().map_err(spill_error)?;
                    None
                };
                self.counts.add_damage(damaged, aside);
            }
            self.count_spilled(&spill);
        }
    }

    fn count_spilled(&self, spill: &Spill) {
        self.counts.spilled.store(spill.rows(), Ordering::Relaxed);
    }

    pub(super) fn has_spilled(&self) -> bool {
        let spill = self.spill.as_ref();
        spill.is_some_and(|spill| !spill.borrow().is_empty())
    }

    /// Inserts lines that are not there yet.
    async fn insert(&self, lines: &mut Vec<Line>) -> Result<(), StoreError> {
        let base = self.prepared().await?;
        let mut keys = HashSet::new();
        lines.retain(|line| keys.insert(line.key()));
        let clickhouse = match base {
            ResultBase::ClickHouse(clickhouse) => clickhouse,
            ResultBase::Postgres(own) => return own.insert(lines).await,
        };
        let known = self.repetitions(clickhouse, lines).await?;
        let fresh: Vec<&Line> = lines
            .iter()
            .filter(|line| !known.contains(&line.key()))
            .collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let mut statement = format!(
            "INSERT INTO {}.results (org_id, monitor, at, region, status, took, bucket, dns, connect, tls, wait, receive,
             code, certificate, has_detail, reason, conditions)
             SETTINGS async_insert = 0, deduplicate_blocks_in_dependent_materialized_views = 1
             FORMAT JSONCompactEachRow\n",
            clickhouse.database()
        );
        for line in &fresh {
            statement.push_str(&line.text);
            statement.push('\n');
        }
        let inserted = clickhouse.execute(&statement).await;
        let mut latest = self.latest.borrow_mut();
        for line in &fresh {
            let place = (line.monitor, line.region);
            if inserted.is_ok() {
                let last = latest.entry(place).or_insert(line.at);
                *last = line.at.max(*last);
            } else {
                // It may be there nevertheless, so the next attempt looks.
                latest.remove(&place);
            }
        }
        inserted.map(|_| ())
    }

    /// The lines that are there already. Only those that are not later than the latest are looked up, such as results of
    /// an agent that was away; and all after a start.
    async fn repetitions(
        &self,
        clickhouse: &ClickHouse,
        lines: &[Line],
    ) -> Result<HashSet<(i64, i64, u16)>, StoreError> {
        /// Keys of one statement, which is limited to 256 KiB.
        const MOST_KEYS: usize = 3_000;

        let suspects: Vec<String> = {
            let latest = self.latest.borrow();
            let is_suspect = |line: &&Line| {
                let last = latest.get(&(line.monitor, line.region));
                last.is_none_or(|last| line.at <= *last)
            };
            let key = |line: &Line| format!("({},{},{})", line.monitor, line.at, line.region);
            lines.iter().filter(is_suspect).map(key).collect()
        };
        let mut found = HashSet::new();
        for keys in suspects.chunks(MOST_KEYS) {
            let statement = format!(
                "SELECT monitor, at, region FROM {}.results WHERE (monitor, at, region) IN ({})",
                clickhouse.database(),
                keys.join(",")
            );
            found.extend(clickhouse.query::<(i64, i64, u16)>(&statement).await?);
        }
        Ok(found)
    }

    /// Has the organisations of monitors read again, from a database that may have others.
    pub(super) fn forget_owners(&self) {
        self.owners.borrow_mut().clear();
    }

    async fn learn_owners(
        &self,
        postgres: &Postgres,
        rows: &[(OrgId, ResultRow)],
    ) -> Result<(), StoreError> {
        let mut unknown: HashMap<OrgId, HashSet<i64>> = HashMap::new();
        {
            let owners = self.owners.borrow();
            for (org, row) in rows {
                if !owners.contains_key(&row.monitor) {
                    unknown.entry(*org).or_default().insert(row.monitor.0);
                }
            }
        }
        for (org, ids) in unknown {
            let ids: Vec<i64> = ids.into_iter().collect();
            let owned = postgres
                .read(org, async |scoped: &Scoped<'_>| {
                    monitors::owned(scoped, &ids).await
                })
                .await?;
            let mut owners = self.owners.borrow_mut();
            owners.extend(owned.into_iter().map(|monitor| (monitor, org)));
        }
        Ok(())
    }

    /// The results of a monitor before a date, the newest first.
    pub(super) async fn before(
        &self,
        org: OrgId,
        monitor: MonitorId,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<ResultRow>, StoreError> {
        type Row = (
            (i64, u16, u8, u64),
            (Phase, Phase, Phase, Phase, Phase),
            (Option<u16>, Option<i32>, u8, Option<String>, String),
        );
        type Phase = Option<u64>;

        let clickhouse = match self.prepared().await? {
            ResultBase::ClickHouse(clickhouse) => clickhouse,
            ResultBase::Postgres(own) => return own.before(org, monitor, before, limit).await,
        };
        let rows: Vec<Row> = clickhouse
            .query(&format!(
                "SELECT (at, region, status, took), (dns, connect, tls, wait, receive),
                     (code, certificate, has_detail, reason, conditions)
                 FROM {}.results WHERE org_id = {} AND monitor = {} AND at < {}
                 ORDER BY at DESC, region DESC LIMIT {limit}",
                clickhouse.database(),
                org.0,
                monitor.0,
                before.0
            ))
            .await?;
        let read = |(head, phases, tail): Row| {
            let (at, region, status, took_us) = head;
            let (dns, connect, tls, wait, receive) = phases;
            let (code, certificate_days, has_detail, reason, conditions) = tail;
            ResultRow {
                monitor,
                region,
                at: Timestamp(at),
                // A code that is not known can only come from a newer version.
                status: Status::of_code(status).unwrap_or(Status::Error),
                took_us,
                phases_us: [dns, connect, tls, wait, receive],
                code,
                certificate_days,
                detail: (has_detail != 0).then(|| Detail {
                    reason,
                    conditions: conditions_of(&conditions),
                }),
            }
        };
        Ok(rows.into_iter().map(read).collect())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form of `map_err`")]
fn spill_error(error: std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::StorageFull => StoreError::Full,
        _ => StoreError::Database(format!("results cannot wait on the disk: {error}")),
    }
}

/// As a list of pairs: the condition, and whether it holds; nothing without any.
fn conditions_text(conditions: &[Judged]) -> String {
    if conditions.is_empty() {
        return String::new();
    }
    let pairs = conditions.iter().map(|one| json!([one.condition, one.met]));
    Value::Array(pairs.collect()).to_string()
}

pub(super) fn conditions_of(text: &str) -> Vec<Judged> {
    let pairs: Vec<(String, bool)> = serde_json::from_str(text).unwrap_or_default();
    let judged = |(condition, met)| Judged { condition, met };
    pairs.into_iter().map(judged).collect()
}
