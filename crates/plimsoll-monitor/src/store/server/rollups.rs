//! Buckets of a minute, an hour and a day, which views of ClickHouse add up as results come in; and what is deleted.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

use crate::store::StoreError;
use crate::store::server::clickhouse::ClickHouse;
use crate::store::server::postgres::{Postgres, Scoped};
use crate::store::server::results::{ResultBase, Results};
use crate::store::sketch::Sketch;
use crate::store::types::{MonitorId, OrgId, Resolution, Retention, Rollup, Upkeep};
use crate::time::Timestamp;

/// Between two deletions in ClickHouse, each of which marks rows of every part.
const DELETE_EVERY: i64 = 3_600_000;

/// Responses may be requested again for so long.
const REPLAYS: Duration = Duration::from_hours(24);

const fn table(resolution: Resolution) -> &'static str {
    match resolution {
        Resolution::Minute => "rollups_minute",
        Resolution::Hour => "rollups_hour",
        Resolution::Day => "rollups_day",
    }
}

/// The buckets of monitors that begin from `from` until before `to`, ascending.
pub(super) async fn range(
    results: &Results,
    org: OrgId,
    monitors: &[MonitorId],
    resolution: Resolution,
    from: Timestamp,
    to: Timestamp,
) -> Result<HashMap<MonitorId, Vec<Rollup>>, StoreError> {
    type Row = (
        (i64, i64),
        (u64, u64, u64, u64),
        (u64, (Vec<u16>, Vec<u64>)),
        (u64, u64, u64, u64, u64),
    );

    if monitors.is_empty() {
        return Ok(HashMap::new());
    }
    let clickhouse = match results.prepared().await? {
        ResultBase::ClickHouse(clickhouse) => clickhouse,
        ResultBase::Postgres(own) => return own.range(org, monitors, resolution, from, to).await,
    };
    let ids: Vec<String> = monitors.iter().map(|id| id.0.to_string()).collect();
    let rows: Vec<Row> = clickhouse
        .query(&format!(
            "SELECT (monitor, start), (sum(up), sum(degraded), sum(down), sum(error)), (sum(took), sumMap(buckets)),
                 (sum(dns), sum(connect), sum(tls), sum(wait), sum(receive))
             FROM {}.{} WHERE org_id = {} AND monitor IN ({}) AND start >= {} AND start < {}
             GROUP BY monitor, start ORDER BY monitor, start",
            clickhouse.database(),
            table(resolution),
            org.0,
            ids.join(","),
            from.floor(resolution.millis()).0,
            to.0
        ))
        .await?;
    let mut all: HashMap<MonitorId, Vec<Rollup>> = HashMap::new();
    for ((monitor, start), counts, (took, (buckets, times)), phases) in rows {
        let rollup = Rollup {
            start: Timestamp(start),
            counts: counts.into(),
            took: Sketch::of_buckets(buckets.into_iter().zip(times), took),
            phases_us: phases.into(),
        };
        all.entry(MonitorId(monitor)).or_default().push(rollup);
    }
    Ok(all)
}

/// The raw results of a monitor from `from` until before `to`, added up by region.
pub(super) async fn by_region(
    results: &Results,
    org: OrgId,
    monitor: MonitorId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<(u16, Rollup)>, StoreError> {
    type Row = (
        u16,
        (u64, u64, u64, u64),
        (u64, (Vec<u16>, Vec<u64>)),
        (u64, u64, u64, u64, u64),
    );

    let clickhouse = match results.prepared().await? {
        ResultBase::ClickHouse(clickhouse) => clickhouse,
        ResultBase::Postgres(own) => return own.by_region(org, monitor, from, to).await,
    };
    let rows: Vec<Row> = clickhouse
        .query(&format!(
            "SELECT region, (countIf(status = 0), countIf(status = 1), countIf(status = 2), countIf(status = 3)),
                 (sumIf(took, status < 2),
                  sumMap(if(status < 2, [bucket], emptyArrayUInt16()), if(status < 2, [toUInt64(1)], emptyArrayUInt64()))),
                 (sumIf(ifNull(dns, 0), status < 2), sumIf(ifNull(connect, 0), status < 2), sumIf(ifNull(tls, 0), status < 2),
                  sumIf(ifNull(wait, 0), status < 2), sumIf(ifNull(receive, 0), status < 2))
             FROM {}.results WHERE org_id = {} AND monitor = {} AND at >= {} AND at < {}
             GROUP BY region ORDER BY region",
            clickhouse.database(),
            org.0,
            monitor.0,
            from.0,
            to.0
        ))
        .await?;
    let rollup = |(region, counts, (took, (buckets, times)), phases): Row| {
        let rollup = Rollup {
            start: from,
            counts: counts.into(),
            took: Sketch::of_buckets(buckets.into_iter().zip(times), took),
            phases_us: phases.into(),
        };
        (region, rollup)
    };
    Ok(rows.into_iter().map(rollup).collect())
}

/// When this process last deleted, and what it counted as complete.
#[derive(Debug, Default)]
pub(super) struct UpkeepState {
    deleted_at: Cell<Option<i64>>,
    complete_until: Cell<Option<i64>>,
    retention: Cell<Option<Retention>>,
}

impl UpkeepState {
    /// Counts buckets that are complete since the last upkeep, and deletes what is older than the retention.
    pub(super) async fn run(
        &self,
        postgres: &Postgres,
        results: &Results,
        now: Timestamp,
        retention: Retention,
    ) -> Result<Upkeep, StoreError> {
        let mut done = Upkeep {
            deleted: prune(postgres, now, &retention).await?,
            rolled: 0,
        };
        let clickhouse = match results.prepared().await? {
            ResultBase::ClickHouse(clickhouse) => clickhouse,
            ResultBase::Postgres(own) => {
                let more = own.upkeep(now, &retention).await?;
                return Ok(Upkeep {
                    rolled: more.rolled,
                    deleted: done.deleted + more.deleted,
                });
            }
        };
        let since = self.complete_until.get().unwrap_or(i64::MIN);
        for resolution in Resolution::ALL {
            let millis = resolution.millis();
            let (database, table) = (clickhouse.database(), table(resolution));
            let complete: Vec<(u64,)> = clickhouse
                .query(&format!(
                    "SELECT uniqExact(monitor, start) FROM {database}.{table}
                     WHERE start > {} AND start <= {}",
                    since.saturating_sub(millis),
                    now.0.saturating_sub(millis)
                ))
                .await?;
            done.rolled += complete.first().map_or(0, |(count,)| *count);
        }
        self.complete_until.set(Some(now.0));
        if self.retention.get() != Some(retention) {
            keep_for(clickhouse, &retention).await?;
            self.retention.set(Some(retention));
        }
        let is_due = |last: i64| now.0 - last >= DELETE_EVERY;
        if self.deleted_at.get().is_none_or(is_due) {
            done.deleted += delete(clickhouse, now, &retention).await?;
            self.deleted_at.set(Some(now.0));
        }
        Ok(done)
    }
}

/// The tables, their date, and how long rows are kept.
fn ages(retention: &Retention) -> [(&'static str, &'static str, Duration); 4] {
    [
        ("results", "at", retention.raw),
        ("rollups_minute", "start", retention.minutes),
        ("rollups_hour", "start", retention.hours),
        ("rollups_day", "start", retention.days),
    ]
}

/// Has ClickHouse delete rows by itself when it merges parts, counted from when they were written.
async fn keep_for(clickhouse: &ClickHouse, retention: &Retention) -> Result<(), StoreError> {
    for (table, _, age) in ages(retention) {
        clickhouse
            .execute(&format!(
                "ALTER TABLE {}.{table} MODIFY TTL written + toIntervalSecond({})
                 SETTINGS materialize_ttl_after_modify = 0",
                clickhouse.database(),
                age.as_secs()
            ))
            .await?;
    }
    Ok(())
}

async fn delete(
    clickhouse: &ClickHouse,
    now: Timestamp,
    retention: &Retention,
) -> Result<u64, StoreError> {
    let mut deleted = 0;
    for (table, date, age) in ages(retention) {
        let database = clickhouse.database();
        let condition = format!("{date} < {}", now.minus(age).0);
        let old: Vec<(u64,)> = clickhouse
            .query(&format!(
                "SELECT count() FROM {database}.{table} WHERE {condition}"
            ))
            .await?;
        let old = old.first().map_or(0, |(count,)| *count);
        if old > 0 {
            clickhouse
                .execute(&format!("DELETE FROM {database}.{table} WHERE {condition}"))
                .await?;
        }
        deleted += old;
    }
    Ok(deleted)
}

/// Deletes what is old in PostgreSQL.
async fn prune(
    postgres: &Postgres,
    now: Timestamp,
    retention: &Retention,
) -> Result<u64, StoreError> {
    let outbox = now.minus(retention.minutes).0;
    let (replays, audit) = (now.minus(REPLAYS).0, now.minus(retention.days).0);
    postgres
        .write_all(async |scoped: &Scoped<'_>| {
            let mut deleted = 0;
            for (sql, before) in [
                (
                    "DELETE FROM outbox WHERE ended < $1 AND NOT EXISTS (
                         SELECT 1 FROM incidents i WHERE i.id = outbox.incident AND i.resolved IS NULL)",
                    outbox,
                ),
                ("DELETE FROM replays WHERE at < $1", replays),
                ("DELETE FROM sessions WHERE until <= $1", now.0),
                ("DELETE FROM audit WHERE at < $1", audit),
            ] {
                deleted += scoped.execute(sql, &[&before]).await?;
            }
            Ok(deleted)
        })
        .await
}
