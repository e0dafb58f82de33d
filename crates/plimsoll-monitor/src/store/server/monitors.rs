//! Organisations and monitors.

use crate::store::StoreError;
use crate::store::server::postgres::Scoped;
use crate::store::types::{MonitorId, MonitorRow, NewMonitor, OrgId};
use crate::time::Timestamp;

/// Adds a monitor, or updates the one of that key, which is in use again.
pub(super) const UPSERT: &str =
    "INSERT INTO monitors (org_id, key, name, grp, kind, source, created)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (org_id, key) DO UPDATE
     SET name = excluded.name, grp = excluded.grp, kind = excluded.kind,
         source = excluded.source, retired = NULL
     RETURNING id";

pub(super) async fn org(scoped: &Scoped<'_>, slug: &str) -> Result<OrgId, StoreError> {
    let insert = "INSERT INTO orgs (slug) VALUES ($1) ON CONFLICT DO NOTHING";
    scoped.execute(insert, &[&slug]).await?;
    let row = scoped
        .one("SELECT id FROM orgs WHERE slug = $1", &[&slug])
        .await?;
    Ok(OrgId(row.try_get(0)?))
}

pub(super) async fn sync(
    scoped: &Scoped<'_>,
    source: &str,
    monitors: &[NewMonitor],
    now: Timestamp,
) -> Result<Vec<MonitorId>, StoreError> {
    let org = scoped.org();
    scoped
        .execute(
            "UPDATE monitors SET retired = $3 WHERE org_id = $1 AND source = $2 AND retired IS NULL",
            &[&org, &source, &now.0],
        )
        .await?;
    let mut ids = Vec::with_capacity(monitors.len());
    for monitor in monitors {
        let NewMonitor {
            key,
            name,
            group,
            kind,
        } = monitor;
        let row = scoped
            .one(UPSERT, &[&org, &key, &name, &group, &kind, &source, &now.0])
            .await?;
        ids.push(MonitorId(row.try_get(0)?));
    }
    Ok(ids)
}

pub(super) async fn list(scoped: &Scoped<'_>) -> Result<Vec<MonitorRow>, StoreError> {
    let rows = scoped
        .query(
            "SELECT id, key, name, grp, kind, source, paused FROM monitors
             WHERE org_id = $1 AND retired IS NULL ORDER BY key COLLATE \"C\"",
            &[&scoped.org()],
        )
        .await?;
    let read = |row: &tokio_postgres::Row| {
        Ok(MonitorRow {
            id: MonitorId(row.try_get(0)?),
            monitor: NewMonitor {
                key: row.try_get(1)?,
                name: row.try_get(2)?,
                group: row.try_get(3)?,
                kind: row.try_get(4)?,
            },
            source: row.try_get(5)?,
            paused: row.try_get(6)?,
        })
    };
    rows.iter().map(read).collect()
}

pub(super) async fn pause(
    scoped: &Scoped<'_>,
    monitor: MonitorId,
    paused: bool,
) -> Result<bool, StoreError> {
    let changed = scoped
        .execute(
            "UPDATE monitors SET paused = $3 WHERE org_id = $1 AND id = $2 AND retired IS NULL",
            &[&scoped.org(), &monitor.0, &paused],
        )
        .await?;
    Ok(changed > 0)
}

/// Which of the monitors, retired or not, are the organisation's.
pub(super) async fn owned(
    scoped: &Scoped<'_>,
    monitors: &[i64],
) -> Result<Vec<MonitorId>, StoreError> {
    let rows = scoped
        .query(
            "SELECT id FROM monitors WHERE org_id = $1 AND id = ANY($2)",
            &[&scoped.org(), &monitors],
        )
        .await?;
    let ids = rows.iter().map(|row| Ok(MonitorId(row.try_get(0)?)));
    ids.collect()
}

/// Whether a monitor, retired or not, is the organisation's.
pub(super) async fn owns(scoped: &Scoped<'_>, monitor: MonitorId) -> Result<bool, StoreError> {
    Ok(!owned(scoped, &[monitor.0]).await?.is_empty())
}
