//! Results in PostgreSQL, where there is no ClickHouse: raw ones by day, and buckets of a minute, an hour and a day.
//!
//! A minute is computed from raw results, an hour from minutes, a day from hours, each once it is over, as in SQLite. What is not
//! complete yet is computed when it is read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::pin::Pin;

use tokio_postgres::Row;

use crate::detect::status::Status;
use crate::store::StoreError;
use crate::store::server::postgres::{Postgres, Scoped, row_limit};
use crate::store::server::results::{Line, conditions_of};
use crate::store::sketch::Sketch;
use crate::store::types::{
    Detail, MonitorId, OrgId, Resolution, ResultRow, Retention, Rollup, Upkeep,
};
use crate::time::Timestamp;

/// Milliseconds of a partition.
const DAY: i64 = 86_400_000;

/// Results may come this late without making a bucket incomplete again.
const SETTLE_MILLIS: i64 = 10_000;

/// Between two deletions of single rows; whole days are dropped whenever they are old.
const DELETE_EVERY: i64 = 3_600_000;

/// Rows of one statement.
const MOST_ROWS: usize = 5_000;

/// Columns of a raw result, in the order in which [`raw`] reads them.
const RAW: &str =
    "monitor, at, region, status, took, dns, connect, tls, wait, receive, code, certificate";

/// The tables of results.
pub(super) struct OwnResults {
    postgres: Postgres,
    /// Days that have a partition.
    days: RefCell<HashSet<i64>>,
    deleted_at: Cell<Option<i64>>,
}

/// From when on buckets are read, by monitor.
type Begins = BTreeMap<MonitorId, Timestamp>;

/// Buckets by monitor, ascending.
type Buckets = HashMap<MonitorId, Vec<Rollup>>;

impl OwnResults {
    pub(super) fn new(postgres: Postgres) -> Self {
        Self {
            postgres,
            days: RefCell::default(),
            deleted_at: Cell::new(None),
        }
    }

    /// Inserts results that are not there yet. Those from before complete buckets make these incomplete again.
    pub(super) async fn insert(&self, lines: &[Line]) -> Result<(), StoreError> {
        let days: HashSet<i64> = lines.iter().map(|line| line.at.div_euclid(DAY)).collect();
        // Those of a failure are forgotten: after a promotion the server may lack a partition that the former one had.
        let known = std::mem::take(&mut *self.days.borrow_mut());
        let fresh: Vec<i64> = days.difference(&known).copied().collect();
        let mut earliest: BTreeMap<i64, i64> = BTreeMap::new();
        for line in lines {
            let first = earliest.entry(line.monitor).or_insert(line.at);
            *first = line.at.min(*first);
        }
        let (monitors, dates): (Vec<i64>, Vec<i64>) = earliest.into_iter().unzip();
        self.postgres
            .write_all(async |scoped: &Scoped<'_>| {
                for day in &fresh {
                    let (from, to) = (day * DAY, (day + 1) * DAY);
                    let sql = format!(
                        "CREATE TABLE IF NOT EXISTS \"results_{day}\" PARTITION OF results
                         FOR VALUES FROM ({from}) TO ({to})"
                    );
                    scoped.batch(&sql).await?;
                }
                for batch in lines.chunks(MOST_ROWS) {
                    let texts: Vec<&str> = batch.iter().map(|line| line.text.as_str()).collect();
                    // Texts of PostgreSQL have no character of that number.
                    let list = format!("[{}]", texts.join(",")).replace("\\u0000", "\\ufffd");
                    // The sixth value is the bucket, which is computed anew.
                    let sql = "INSERT INTO results
                             (org_id, monitor, at, region, status, took, dns, connect, tls, wait, receive,
                              code, certificate, has_detail, reason, conditions)
                         SELECT (v->>0)::BIGINT, (v->>1)::BIGINT, (v->>2)::BIGINT, (v->>3)::INTEGER, (v->>4)::SMALLINT,
                             (v->>5)::BIGINT, (v->>7)::BIGINT, (v->>8)::BIGINT, (v->>9)::BIGINT, (v->>10)::BIGINT,
                             (v->>11)::BIGINT, (v->>12)::INTEGER, (v->>13)::INTEGER, (v->>14) = '1', v->>15, v->>16
                         FROM jsonb_array_elements($1::TEXT::JSONB) v
                         ON CONFLICT DO NOTHING";
                    scoped.execute(sql, &[&list]).await?;
                }
                for resolution in Resolution::ALL {
                    let sql = "UPDATE rolled SET until = late.at / $4 * $4
                         FROM UNNEST($1::BIGINT[], $2::BIGINT[]) AS late (monitor, at)
                         WHERE resolution = $3 AND rolled.monitor = late.monitor AND until > late.at / $4 * $4";
                    let values = (number(resolution), resolution.millis());
                    scoped
                        .execute(sql, &[&monitors, &dates, &values.0, &values.1])
                        .await?;
                }
                Ok(())
            })
            .await?;
        self.days
            .borrow_mut()
            .extend(known.into_iter().chain(fresh));
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
        let sql = format!(
            "SELECT {RAW}, has_detail, reason, conditions FROM results
             WHERE org_id = $1 AND monitor = $2 AND at < $3 ORDER BY at DESC, region DESC LIMIT $4"
        );
        self.postgres
            .read(org, async |scoped: &Scoped<'_>| {
                let values = (before.0, row_limit(limit));
                let rows = scoped
                    .query(&sql, &[&org.0, &monitor.0, &values.0, &values.1])
                    .await?;
                let read = |row: &Row| {
                    let has_detail: bool = row.try_get(12)?;
                    let conditions: String = row.try_get(14)?;
                    let detail = Detail {
                        reason: row.try_get(13)?,
                        conditions: conditions_of(&conditions),
                    };
                    Ok(ResultRow {
                        detail: has_detail.then_some(detail),
                        ..raw(row)?
                    })
                };
                rows.iter().map(read).collect()
            })
            .await
    }

    /// The buckets of monitors that begin from `from` until before `to`, ascending.
    pub(super) async fn range(
        &self,
        org: OrgId,
        monitors: &[MonitorId],
        resolution: Resolution,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Buckets, StoreError> {
        let from = from.floor(resolution.millis());
        let from = monitors.iter().map(|monitor| (*monitor, from)).collect();
        self.postgres
            .read(org, async |scoped: &Scoped<'_>| {
                buckets(scoped, &from, resolution, to).await
            })
            .await
    }

    /// The raw results of a monitor from `from` until before `to`, added up by region.
    pub(super) async fn by_region(
        &self,
        org: OrgId,
        monitor: MonitorId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<(u16, Rollup)>, StoreError> {
        let rows = self
            .postgres
            .read(org, async |scoped: &Scoped<'_>| {
                raw_between(scoped, &[monitor.0], from, to).await
            })
            .await?;
        let mut regions: BTreeMap<u16, Rollup> = BTreeMap::new();
        for row in rows {
            let rollup = regions
                .entry(row.region)
                .or_insert_with(|| Rollup::at(from));
            rollup.add(&row);
        }
        Ok(regions.into_iter().collect())
    }

    /// Completes buckets, and deletes what is older than the retention.
    pub(super) async fn upkeep(
        &self,
        now: Timestamp,
        retention: &Retention,
    ) -> Result<Upkeep, StoreError> {
        let is_due = |last: i64| now.0 - last >= DELETE_EVERY;
        let deletes_rows = self.deleted_at.get().is_none_or(is_due);
        let done = self
            .postgres
            .write_all(async |scoped: &Scoped<'_>| {
                let mut done = Upkeep::default();
                for resolution in Resolution::ALL {
                    done.rolled += complete(scoped, resolution, now).await?;
                }
                done.deleted += drop_days(scoped, now.minus(retention.raw)).await?;
                if deletes_rows {
                    done.deleted += delete_rows(scoped, now, retention).await?;
                }
                Ok(done)
            })
            .await?;
        if deletes_rows {
            self.deleted_at.set(Some(now.0));
        }
        // Those that were dropped are made again if a result of them comes.
        self.days.borrow_mut().clear();
        Ok(done)
    }
}

const fn number(resolution: Resolution) -> i16 {
    match resolution {
        Resolution::Minute => 0,
        Resolution::Hour => 1,
        Resolution::Day => 2,
    }
}

/// A result without its details.
fn raw(row: &Row) -> Result<ResultRow, StoreError> {
    let micros = |index: usize| -> Result<Option<u64>, StoreError> {
        let micros: Option<i64> = row.try_get(index)?;
        Ok(micros.map(i64::unsigned_abs))
    };
    let status: i16 = row.try_get(3)?;
    let status = u8::try_from(status).ok().and_then(Status::of_code);
    let region: i32 = row.try_get(2)?;
    let code: Option<i32> = row.try_get(10)?;
    let mut phases_us = [None; 5];
    for (phase, index) in phases_us.iter_mut().zip(5..) {
        *phase = micros(index)?;
    }
    Ok(ResultRow {
        monitor: MonitorId(row.try_get(0)?),
        at: Timestamp(row.try_get(1)?),
        region: u16::try_from(region).unwrap_or_default(),
        // A code that is not known can only come from a newer version.
        status: status.unwrap_or(Status::Error),
        took_us: micros(4)?.unwrap_or_default(),
        phases_us,
        code: code.and_then(|code| u16::try_from(code).ok()),
        certificate_days: row.try_get(11)?,
        detail: None,
    })
}

/// The raw results of monitors, by monitor and date.
async fn raw_between(
    scoped: &Scoped<'_>,
    monitors: &[i64],
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<ResultRow>, StoreError> {
    let sql = format!(
        "SELECT {RAW} FROM results WHERE monitor = ANY($1) AND at >= $2 AND at < $3 ORDER BY monitor, at, region"
    );
    let rows = scoped.query(&sql, &[&monitors, &from.0, &to.0]).await?;
    rows.iter().map(raw).collect()
}

/// Until when the buckets of monitors are complete.
async fn rolled(
    scoped: &Scoped<'_>,
    monitors: &[i64],
    resolution: Resolution,
) -> Result<HashMap<MonitorId, Timestamp>, StoreError> {
    let sql = "SELECT monitor, until FROM rolled WHERE resolution = $1 AND monitor = ANY($2)";
    let rows = scoped.query(sql, &[&number(resolution), &monitors]).await?;
    let read = |row: &Row| Ok((MonitorId(row.try_get(0)?), Timestamp(row.try_get(1)?)));
    rows.iter().map(read).collect()
}

/// Buckets from the start of one until before `to`; incomplete ones from finer data.
fn buckets<'a>(
    scoped: &'a Scoped<'_>,
    from: &'a Begins,
    resolution: Resolution,
    to: Timestamp,
) -> Pin<Box<dyn Future<Output = Result<Buckets, StoreError>> + 'a>> {
    Box::pin(async move {
        let mut all = Buckets::new();
        let Some(first) = from.values().min() else {
            return Ok(all);
        };
        let monitors: Vec<i64> = from.keys().map(|monitor| monitor.0).collect();
        let complete = rolled(scoped, &monitors, resolution).await?;
        let until = |monitor: &MonitorId| {
            let until = complete.get(monitor).copied();
            until.unwrap_or(Timestamp(i64::MIN))
        };
        let sql = "SELECT monitor, start, up, degraded, down, error, took, dns, connect, tls, wait, receive FROM rollups
             WHERE resolution = $1 AND monitor = ANY($2) AND start >= $3 AND start < $4 ORDER BY monitor, start";
        let rows = scoped
            .query(sql, &[&number(resolution), &monitors, &first.0, &to.0])
            .await?;
        for row in &rows {
            let (monitor, rollup) = read(row)?;
            let begins = from.get(&monitor).is_some_and(|from| rollup.start >= *from);
            if begins && rollup.start < until(&monitor) {
                all.entry(monitor).or_default().push(rollup);
            }
        }
        let fresh = from
            .iter()
            .map(|(monitor, from)| (*monitor, (*from).max(until(monitor))));
        let fresh: Begins = fresh.filter(|(_, from)| *from < to).collect();
        for (monitor, more) in computed(scoped, &fresh, resolution, to).await? {
            all.entry(monitor).or_default().extend(more);
        }
        Ok(all)
    })
}

/// Buckets from data that is finer by a step.
async fn computed(
    scoped: &Scoped<'_>,
    from: &Begins,
    resolution: Resolution,
    to: Timestamp,
) -> Result<Buckets, StoreError> {
    let mut all = Buckets::new();
    let finer = match resolution {
        Resolution::Minute => {
            let Some(first) = from.values().min() else {
                return Ok(all);
            };
            let monitors: Vec<i64> = from.keys().map(|monitor| monitor.0).collect();
            for row in raw_between(scoped, &monitors, *first, to).await? {
                if from.get(&row.monitor).is_some_and(|from| row.at >= *from) {
                    let of_monitor = all.entry(row.monitor).or_default();
                    bucket_of(of_monitor, row.at, resolution).add(&row);
                }
            }
            return Ok(all);
        }
        Resolution::Hour => Resolution::Minute,
        Resolution::Day => Resolution::Hour,
    };
    for (monitor, parts) in buckets(scoped, from, finer, to).await? {
        let of_monitor = all.entry(monitor).or_default();
        for part in parts {
            bucket_of(of_monitor, part.start, resolution).merge(&part);
        }
    }
    Ok(all)
}

/// The bucket of a date, which is the last one or a new one behind it.
fn bucket_of(all: &mut Vec<Rollup>, at: Timestamp, resolution: Resolution) -> &mut Rollup {
    let start = at.floor(resolution.millis());
    if all.last().is_none_or(|last| last.start != start) {
        all.push(Rollup::at(start));
    }
    let last = all.len() - 1;
    &mut all[last]
}

fn read(row: &Row) -> Result<(MonitorId, Rollup), StoreError> {
    let count = |index: usize| -> Result<u64, StoreError> {
        let count: i64 = row.try_get(index)?;
        Ok(count.unsigned_abs())
    };
    let took: &[u8] = row.try_get(6)?;
    let rollup = Rollup {
        start: Timestamp(row.try_get(1)?),
        counts: [count(2)?, count(3)?, count(4)?, count(5)?],
        took: Sketch::decode(took).unwrap_or_default(),
        phases_us: [count(7)?, count(8)?, count(9)?, count(10)?, count(11)?],
    };
    Ok((MonitorId(row.try_get(0)?), rollup))
}

/// Writes the buckets that are over and were not written yet.
async fn complete(
    scoped: &Scoped<'_>,
    resolution: Resolution,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let to = Timestamp(now.0 - SETTLE_MILLIS).floor(resolution.millis());
    // Monitors without complete buckets begin with their first result.
    let sql = "SELECT m.org_id, m.id, COALESCE(r.until, (SELECT MIN(at) FROM results WHERE monitor = m.id) / $2 * $2)
         FROM monitors m LEFT JOIN rolled r ON r.resolution = $1 AND r.monitor = m.id";
    let rows = scoped
        .query(sql, &[&number(resolution), &resolution.millis()])
        .await?;
    let mut orgs: HashMap<MonitorId, i64> = HashMap::new();
    let mut from = Begins::new();
    for row in &rows {
        let begins: Option<i64> = row.try_get(2)?;
        if let Some(begins) = begins.filter(|begins| *begins < to.0) {
            let monitor = MonitorId(row.try_get(1)?);
            orgs.insert(monitor, row.try_get(0)?);
            from.insert(monitor, Timestamp(begins));
        }
    }
    let mut rolled = 0;
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    for (monitor, buckets) in computed(scoped, &from, resolution, to).await? {
        for bucket in buckets {
            let [up, degraded, down, error] = bucket.counts.map(signed);
            let [dns, connect, tls, wait, receive] = bucket.phases_us.map(signed);
            let sql = "INSERT INTO rollups
                     (org_id, resolution, monitor, start, up, degraded, down, error, took, dns, connect, tls, wait, receive)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
                 ON CONFLICT (resolution, monitor, start) DO UPDATE SET
                     up = excluded.up, degraded = excluded.degraded, down = excluded.down, error = excluded.error,
                     took = excluded.took, dns = excluded.dns, connect = excluded.connect, tls = excluded.tls,
                     wait = excluded.wait, receive = excluded.receive";
            scoped
                .execute(
                    sql,
                    &[
                        &orgs.get(&monitor).copied().unwrap_or_default(),
                        &number(resolution),
                        &monitor.0,
                        &bucket.start.0,
                        &up,
                        &degraded,
                        &down,
                        &error,
                        &bucket.took.encode(),
                        &dns,
                        &connect,
                        &tls,
                        &wait,
                        &receive,
                    ],
                )
                .await?;
            rolled += 1;
        }
    }
    let monitors: Vec<i64> = from.keys().map(|monitor| monitor.0).collect();
    let owners: Vec<i64> = from
        .keys()
        .filter_map(|monitor| orgs.get(monitor).copied())
        .collect();
    let sql = "INSERT INTO rolled (org_id, resolution, monitor, until)
         SELECT owner, $3::SMALLINT, monitor, $4::BIGINT FROM UNNEST($1::BIGINT[], $2::BIGINT[]) AS done (owner, monitor)
         ON CONFLICT (resolution, monitor) DO UPDATE SET until = excluded.until";
    scoped
        .execute(sql, &[&owners, &monitors, &number(resolution), &to.0])
        .await?;
    Ok(rolled)
}

/// Drops the days that are older than `before`, once their minutes are complete.
async fn drop_days(scoped: &Scoped<'_>, before: Timestamp) -> Result<u64, StoreError> {
    let sql = "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'results'::REGCLASS";
    let mut deleted = 0;
    for row in scoped.query(sql, &[]).await? {
        let name: String = row.try_get(0)?;
        let day = name
            .strip_prefix("results_")
            .and_then(|day| day.parse::<i64>().ok());
        let Some(day) = day.filter(|day| (day + 1) * DAY <= before.0) else {
            continue;
        };
        let (from, to) = (day * DAY, (day + 1) * DAY);
        let sql =
            "SELECT COUNT(*), COUNT(*) FILTER (WHERE r.until IS NULL OR r.until <= results.at)
             FROM results LEFT JOIN rolled r ON r.resolution = 0 AND r.monitor = results.monitor
             WHERE at >= $1 AND at < $2";
        let counts = scoped.one(sql, &[&from, &to]).await?;
        let (all, incomplete): (i64, i64) = (counts.try_get(0)?, counts.try_get(1)?);
        if incomplete == 0 {
            scoped.batch(&format!("DROP TABLE \"{name}\"")).await?;
            deleted += all.unsigned_abs();
        }
    }
    Ok(deleted)
}

/// Deletes single rows. Finer ones stay until the coarser ones made of them are complete.
async fn delete_rows(
    scoped: &Scoped<'_>,
    now: Timestamp,
    retention: &Retention,
) -> Result<u64, StoreError> {
    let mut deleted = 0;
    let sql = "DELETE FROM results USING rolled r
         WHERE r.resolution = 0 AND r.monitor = results.monitor AND results.at < LEAST(r.until, $1)";
    deleted += scoped.execute(sql, &[&now.minus(retention.raw).0]).await?;
    for (resolution, coarser) in [
        (Resolution::Minute, Resolution::Hour),
        (Resolution::Hour, Resolution::Day),
    ] {
        let sql = "DELETE FROM rollups USING rolled r
             WHERE rollups.resolution = $1 AND r.resolution = $2 AND r.monitor = rollups.monitor
               AND rollups.start < LEAST(r.until, $3)";
        let oldest = now.minus(retention.age(resolution)).0;
        deleted += scoped
            .execute(sql, &[&number(resolution), &number(coarser), &oldest])
            .await?;
    }
    let sql = "DELETE FROM rollups WHERE resolution = $1 AND start < $2";
    let oldest = now.minus(retention.days).0;
    deleted += scoped
        .execute(sql, &[&number(Resolution::Day), &oldest])
        .await?;
    Ok(deleted)
}
