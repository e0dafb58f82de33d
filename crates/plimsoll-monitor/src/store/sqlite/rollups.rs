//! Buckets of a minute, an hour and a day, and what is deleted.
//!
//! A minute is computed from raw results, an hour from minutes, a day from hours, each once it is over; computing one
//! again gives the same. What is not complete yet is computed when it is read.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::store::sketch::Sketch;
use crate::store::sqlite::monitors::owns;
use crate::store::sqlite::{accounts, definitions, outbox, results};
use crate::store::types::{MonitorId, OrgId, Resolution, Retention, Rollup, Upkeep};
use crate::time::Timestamp;

/// Results may come this late without making a bucket incomplete again.
const SETTLE_MILLIS: i64 = 10_000;

pub(super) fn range(
    connection: &Connection,
    org: OrgId,
    monitor: MonitorId,
    resolution: Resolution,
    from: Timestamp,
    to: Timestamp,
) -> rusqlite::Result<Vec<Rollup>> {
    if !owns(connection, org, monitor)? {
        return Ok(Vec::new());
    }
    range_of_owned(connection, monitor, resolution, from, to)
}

/// Of a monitor that is the organisation's.
pub(super) fn range_of_owned(
    connection: &Connection,
    monitor: MonitorId,
    resolution: Resolution,
    from: Timestamp,
    to: Timestamp,
) -> rusqlite::Result<Vec<Rollup>> {
    let from = from.floor(resolution.millis());
    buckets(connection, monitor, resolution, from, to)
}

/// The buckets from `from`, the start of one, until before `to`; incomplete ones from finer data.
fn buckets(
    connection: &Connection,
    monitor: MonitorId,
    resolution: Resolution,
    from: Timestamp,
    to: Timestamp,
) -> rusqlite::Result<Vec<Rollup>> {
    let complete = until(connection, monitor, resolution)?.unwrap_or(Timestamp(i64::MIN));
    let mut statement = connection.prepare_cached(
        "SELECT start, up, degraded, down, error, took, phases FROM rollups
         WHERE resolution = ?1 AND monitor = ?2 AND start >= ?3 AND start < ?4 ORDER BY start",
    )?;
    let end = to.min(complete);
    let key = params![number(resolution), monitor.0, from.0, end.0];
    let mut all = statement
        .query_map(key, read)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let fresh = from.max(complete);
    if fresh < to {
        all.extend(computed(connection, monitor, resolution, fresh, to)?);
    }
    Ok(all)
}

/// Buckets from data that is finer by a step.
fn computed(
    connection: &Connection,
    monitor: MonitorId,
    resolution: Resolution,
    from: Timestamp,
    to: Timestamp,
) -> rusqlite::Result<Vec<Rollup>> {
    let mut all = Vec::new();
    let finer = match resolution {
        Resolution::Minute => {
            results::between(connection, monitor, from, to, |row| {
                bucket_of(&mut all, row.at, resolution).add(row);
            })?;
            return Ok(all);
        }
        Resolution::Hour => Resolution::Minute,
        Resolution::Day => Resolution::Hour,
    };
    for part in buckets(connection, monitor, finer, from, to)? {
        bucket_of(&mut all, part.start, resolution).merge(&part);
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

/// Responses may be requested again for so long.
const REPLAYS: Duration = Duration::from_hours(24);

pub(super) fn upkeep(
    connection: &mut Connection,
    now: Timestamp,
    retention: &Retention,
) -> rusqlite::Result<Upkeep> {
    let transaction = connection.transaction()?;
    let mut done = Upkeep::default();
    let monitors: Vec<MonitorId> = {
        let mut statement = transaction.prepare_cached("SELECT id FROM monitors")?;
        let ids = statement.query_map([], |row| Ok(MonitorId(row.get(0)?)))?;
        ids.collect::<rusqlite::Result<_>>()?
    };
    for monitor in monitors {
        for resolution in Resolution::ALL {
            done.rolled += complete(&transaction, monitor, resolution, now)?;
        }
        // Finer rows stay until the coarser ones made of them are complete.
        let border = |age, coarser| -> rusqlite::Result<Timestamp> {
            let complete = until(&transaction, monitor, coarser)?.unwrap_or(Timestamp(i64::MIN));
            Ok(complete.min(now.minus(age)))
        };
        for (resolution, coarser) in [
            (Resolution::Minute, Resolution::Hour),
            (Resolution::Hour, Resolution::Day),
        ] {
            let border = border(retention.age(resolution), coarser)?;
            done.deleted += expire(&transaction, monitor, resolution, border)?;
        }
        let oldest = now.minus(retention.days);
        done.deleted += expire(&transaction, monitor, Resolution::Day, oldest)?;
        let border = border(retention.raw, Resolution::Minute)?;
        for table in ["results", "details"] {
            let sql = format!("DELETE FROM {table} WHERE monitor = ?1 AND at < ?2");
            let deleted = transaction
                .prepare_cached(&sql)?
                .execute(params![monitor.0, border.0])?;
            done.deleted += deleted as u64;
        }
    }
    done.deleted += outbox::prune(&transaction, now.minus(retention.minutes))? as u64;
    done.deleted += definitions::prune(&transaction, now.minus(REPLAYS))? as u64;
    done.deleted += accounts::prune(&transaction, now, now.minus(retention.days))? as u64;
    transaction.commit()?;
    Ok(done)
}

/// Writes the buckets that are over and were not written yet.
fn complete(
    connection: &Connection,
    monitor: MonitorId,
    resolution: Resolution,
    now: Timestamp,
) -> rusqlite::Result<u64> {
    let to = Timestamp(now.0 - SETTLE_MILLIS).floor(resolution.millis());
    let from = match until(connection, monitor, resolution)? {
        Some(from) => from,
        None => match first_result(connection, monitor)? {
            Some(first) => first.floor(resolution.millis()),
            None => return Ok(0),
        },
    };
    if from >= to {
        return Ok(0);
    }
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO rollups (resolution, monitor, start, up, degraded, down, error, took, phases)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let mut rolled = 0;
    for bucket in computed(connection, monitor, resolution, from, to)? {
        let [up, degraded, down, error] = bucket.counts.map(signed);
        insert.execute(params![
            number(resolution),
            monitor.0,
            bucket.start.0,
            up,
            degraded,
            down,
            error,
            bucket.took.encode(),
            phases_text(&bucket),
        ])?;
        rolled += 1;
    }
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO rolled (resolution, monitor, until) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![number(resolution), monitor.0, to.0])?;
    Ok(rolled)
}

fn expire(
    connection: &Connection,
    monitor: MonitorId,
    resolution: Resolution,
    border: Timestamp,
) -> rusqlite::Result<u64> {
    let deleted = connection
        .prepare_cached(
            "DELETE FROM rollups WHERE resolution = ?1 AND monitor = ?2 AND start < ?3",
        )?
        .execute(params![number(resolution), monitor.0, border.0])?;
    Ok(deleted as u64)
}

fn first_result(
    connection: &Connection,
    monitor: MonitorId,
) -> rusqlite::Result<Option<Timestamp>> {
    let mut statement = connection
        .prepare_cached("SELECT at FROM results WHERE monitor = ?1 ORDER BY at LIMIT 1")?;
    let first = statement.query_row([monitor.0], |row| Ok(Timestamp(row.get(0)?)));
    first.optional()
}

fn until(
    connection: &Connection,
    monitor: MonitorId,
    resolution: Resolution,
) -> rusqlite::Result<Option<Timestamp>> {
    let mut statement = connection
        .prepare_cached("SELECT until FROM rolled WHERE resolution = ?1 AND monitor = ?2")?;
    let key = params![number(resolution), monitor.0];
    statement
        .query_row(key, |row| Ok(Timestamp(row.get(0)?)))
        .optional()
}

const fn number(resolution: Resolution) -> i64 {
    match resolution {
        Resolution::Minute => 0,
        Resolution::Hour => 1,
        Resolution::Day => 2,
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The sums of the phases, 8 bytes each; nothing if all are zero.
fn phases_text(bucket: &Rollup) -> Vec<u8> {
    if bucket.phases_us == [0; 5] {
        return Vec::new();
    }
    bucket
        .phases_us
        .iter()
        .flat_map(|sum| sum.to_le_bytes())
        .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Rollup> {
    let count = |index| -> rusqlite::Result<u64> { Ok(row.get::<_, i64>(index)?.unsigned_abs()) };
    // Bytes of the page cache: a status page reads thousands of rows.
    let (took, phases) = (row.get_ref(5)?.as_blob()?, row.get_ref(6)?.as_blob()?);
    let mut phases_us = [0; 5];
    for (sum, bytes) in phases_us.iter_mut().zip(phases.chunks_exact(8)) {
        *sum = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    Ok(Rollup {
        start: Timestamp(row.get(0)?),
        counts: [count(1)?, count(2)?, count(3)?, count(4)?],
        took: Sketch::decode(took).unwrap_or_default(),
        phases_us,
    })
}
