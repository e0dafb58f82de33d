//! Organisations and monitors.

use rusqlite::{Connection, OptionalExtension, params};

use crate::store::types::{MonitorId, MonitorRow, NewMonitor, OrgId};
use crate::time::Timestamp;

pub(super) fn org(connection: &Connection, slug: &str) -> rusqlite::Result<OrgId> {
    connection.execute("INSERT OR IGNORE INTO orgs (slug) VALUES (?1)", [slug])?;
    connection.query_row("SELECT id FROM orgs WHERE slug = ?1", [slug], |row| {
        Ok(OrgId(row.get(0)?))
    })
}

pub(super) fn sync(
    connection: &mut Connection,
    org: OrgId,
    source: &str,
    monitors: &[NewMonitor],
    now: Timestamp,
) -> rusqlite::Result<Vec<MonitorId>> {
    let transaction = connection.transaction()?;
    transaction.execute(
        "UPDATE monitors SET retired = ?3 WHERE org = ?1 AND source = ?2 AND retired IS NULL",
        params![org.0, source, now.0],
    )?;
    let mut ids = Vec::with_capacity(monitors.len());
    {
        let mut upsert = transaction.prepare(
            "INSERT INTO monitors (org, key, name, grp, kind, source, created)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (org, key) DO UPDATE
             SET name = excluded.name, grp = excluded.grp, kind = excluded.kind,
                 source = excluded.source, retired = NULL
             RETURNING id",
        )?;
        for monitor in monitors {
            let NewMonitor {
                key,
                name,
                group,
                kind,
            } = monitor;
            let values = params![org.0, key, name, group, kind, source, now.0];
            ids.push(upsert.query_row(values, |row| Ok(MonitorId(row.get(0)?)))?);
        }
    }
    transaction.commit()?;
    Ok(ids)
}

pub(super) fn list(connection: &Connection, org: OrgId) -> rusqlite::Result<Vec<MonitorRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, key, name, grp, kind, source, paused FROM monitors
         WHERE org = ?1 AND retired IS NULL ORDER BY key",
    )?;
    let rows = statement.query_map([org.0], |row| {
        Ok(MonitorRow {
            id: MonitorId(row.get(0)?),
            monitor: NewMonitor {
                key: row.get(1)?,
                name: row.get(2)?,
                group: row.get(3)?,
                kind: row.get(4)?,
            },
            source: row.get(5)?,
            paused: row.get(6)?,
        })
    })?;
    rows.collect()
}

pub(super) fn pause(
    connection: &Connection,
    org: OrgId,
    monitor: MonitorId,
    paused: bool,
) -> rusqlite::Result<bool> {
    let changed = connection.execute(
        "UPDATE monitors SET paused = ?3 WHERE org = ?1 AND id = ?2 AND retired IS NULL",
        params![org.0, monitor.0, paused],
    )?;
    Ok(changed > 0)
}

/// Whether a monitor, retired or not, is the organisation's.
pub(super) fn owns(
    connection: &Connection,
    org: OrgId,
    monitor: MonitorId,
) -> rusqlite::Result<bool> {
    let mut statement =
        connection.prepare_cached("SELECT 1 FROM monitors WHERE id = ?1 AND org = ?2")?;
    let found = statement.query_row(params![monitor.0, org.0], |_| Ok(()));
    Ok(found.optional()?.is_some())
}
