//! Raw results.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Value, json};

use crate::detect::status::Status;
use crate::probe::reading::Judged;
use crate::store::sqlite::monitors::owns;
use crate::store::types::{Detail, MonitorId, OrgId, Resolution, ResultRow, Rollup};
use crate::time::Timestamp;

/// Writes results in one transaction; those of monitors of other organisations, and repeated ones, are left out.
///
/// A result from before the complete rollups, such as one of an agent that was away, makes these incomplete again.
///
/// - `owners`: monitors that were looked up before, of any batch: a monitor stays with its organisation, and its row is
///   never deleted.
pub(super) fn insert(
    connection: &mut Connection,
    owners: &mut HashSet<(OrgId, MonitorId)>,
    rows: &[(OrgId, ResultRow)],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare_cached(
            "INSERT OR IGNORE INTO results
             (monitor, at, region, status, took, dns, connect, tls, wait, receive, code, certificate)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        let mut detail = transaction.prepare_cached(
            "INSERT OR IGNORE INTO details (monitor, at, region, reason, conditions) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let mut late = transaction.prepare_cached(
            "UPDATE rolled SET until = ?3 WHERE resolution = ?1 AND monitor = ?2 AND until > ?3",
        )?;
        let mut earliest: HashMap<MonitorId, Timestamp> = HashMap::new();
        for (org, row) in rows {
            let owner = (*org, row.monitor);
            if !owners.contains(&owner) {
                if !owns(&transaction, *org, row.monitor)? {
                    continue;
                }
                owners.insert(owner);
            }
            let micros = |micros: Option<u64>| micros.map(signed);
            let [dns, connect, tls, wait, receive] = row.phases_us;
            let (monitor, at, region) = (row.monitor.0, row.at.0, row.region);
            insert.execute(params![
                monitor,
                at,
                region,
                row.status.code(),
                signed(row.took_us),
                micros(dns),
                micros(connect),
                micros(tls),
                micros(wait),
                micros(receive),
                row.code,
                row.certificate_days,
            ])?;
            if let Some(found) = &row.detail {
                let conditions = conditions_text(&found.conditions);
                detail.execute(params![monitor, at, region, found.reason, conditions])?;
            }
            let first = earliest.entry(row.monitor).or_insert(row.at);
            *first = row.at.min(*first);
        }
        for (monitor, at) in earliest {
            // The finest first: coarser rollups are complete until then at most, so most results end here.
            for (number, resolution) in (0..).zip(Resolution::ALL) {
                let bucket = at.floor(resolution.millis());
                if late.execute(params![number, monitor.0, bucket.0])? == 0 {
                    break;
                }
            }
        }
    }
    transaction.commit()
}

pub(super) fn before(
    connection: &Connection,
    org: OrgId,
    monitor: MonitorId,
    before: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<ResultRow>> {
    if !owns(connection, org, monitor)? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM results WHERE monitor = ?1 AND at < ?2 ORDER BY at DESC, region DESC LIMIT ?3"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![monitor.0, before.0, limit], |row| {
        read(monitor, row)
    })?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut statement = connection.prepare_cached(
        "SELECT reason, conditions FROM details WHERE monitor = ?1 AND at = ?2 AND region = ?3",
    )?;
    for row in &mut rows {
        let key = params![monitor.0, row.at.0, row.region];
        let found = statement.query_row(key, |found| {
            let conditions: Option<String> = found.get(1)?;
            Ok(Detail {
                reason: found.get(0)?,
                conditions: conditions.as_deref().map(conditions_of).unwrap_or_default(),
            })
        });
        row.detail = found.optional()?;
    }
    Ok(rows)
}

/// The raw results of `from..to`, ascending, without details.
pub(super) fn between(
    connection: &Connection,
    monitor: MonitorId,
    from: Timestamp,
    to: Timestamp,
    mut each: impl FnMut(&ResultRow),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM results WHERE monitor = ?1 AND at >= ?2 AND at < ?3 ORDER BY at"
    ))?;
    let mut rows = statement.query(params![monitor.0, from.0, to.0])?;
    while let Some(row) = rows.next()? {
        each(&read(monitor, row)?);
    }
    Ok(())
}

/// The same added up by region.
pub(super) fn by_region(
    connection: &Connection,
    org: OrgId,
    monitor: MonitorId,
    from: Timestamp,
    to: Timestamp,
) -> rusqlite::Result<Vec<(u16, Rollup)>> {
    if !owns(connection, org, monitor)? {
        return Ok(Vec::new());
    }
    let mut all: BTreeMap<u16, Rollup> = BTreeMap::new();
    between(connection, monitor, from, to, |row| {
        let rollup = all.entry(row.region).or_insert_with(|| Rollup::at(from));
        rollup.add(row);
    })?;
    Ok(all.into_iter().collect())
}

const COLUMNS: &str =
    "at, region, status, took, dns, connect, tls, wait, receive, code, certificate";

fn read(monitor: MonitorId, row: &Row<'_>) -> rusqlite::Result<ResultRow> {
    let micros = |index| -> rusqlite::Result<Option<u64>> {
        let found: Option<i64> = row.get(index)?;
        Ok(found.map(i64::unsigned_abs))
    };
    Ok(ResultRow {
        monitor,
        at: Timestamp(row.get(0)?),
        region: row.get(1)?,
        // A code that is not known can only come from a newer version.
        status: Status::of_code(row.get(2)?).unwrap_or(Status::Error),
        took_us: micros(3)?.unwrap_or(0),
        phases_us: [micros(4)?, micros(5)?, micros(6)?, micros(7)?, micros(8)?],
        code: row.get(9)?,
        certificate_days: row.get(10)?,
        detail: None,
    })
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// As a list of pairs: the condition, and whether it holds.
fn conditions_text(conditions: &[Judged]) -> Option<String> {
    if conditions.is_empty() {
        return None;
    }
    let pairs = conditions.iter().map(|one| json!([one.condition, one.met]));
    Some(Value::Array(pairs.collect()).to_string())
}

fn conditions_of(text: &str) -> Vec<Judged> {
    let pairs: Vec<(String, bool)> = serde_json::from_str(text).unwrap_or_default();
    let judged = |(condition, met)| Judged { condition, met };
    pairs.into_iter().map(judged).collect()
}
