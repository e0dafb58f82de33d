//! The heartbeats of Uptime Kuma as results, health and incidents of monitors that were imported from it.
//!
//! Version 2 keeps all heartbeats of a day, and of the time before only those at which the status changed. Both give the same
//! changes of health, so that uptime and incidents are those of the whole history; response times are as far back as the file has them.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::config::import::{ImportError, Imported};
use crate::config::{Plan, import::import_file};
use crate::detect;
use crate::detect::status::{Health, Status};
use crate::store::{Change, Detail, MonitorId, NewMonitor, OrgId, ResultRow, Store, StoreError};
use crate::time::Timestamp;

/// What is written at a time.
const BATCH: usize = 1_000;

/// What was written of a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Monitors that have a history now.
    pub monitors: usize,
    /// Results.
    pub results: usize,
    /// Incidents.
    pub incidents: usize,
    /// Monitors that were left out, and why.
    pub remarks: Vec<String>,
}

/// Why a history cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] ImportError),
    /// It has no heartbeats.
    #[error("has no history: {0}")]
    Heartbeats(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A heartbeat there.
struct Heartbeat {
    at: Timestamp,
    status: Status,
    took: Duration,
    reason: Option<String>,
}

/// Writes the history of a store of Uptime Kuma into the store of a configuration that was imported from it. Monitors that have
/// results already are left out, so that nothing is written twice.
pub async fn import_history(
    path: &Path,
    plan: &Plan,
    store: &dyn Store,
    now: Timestamp,
) -> Result<History, HistoryError> {
    let (_, Imported { numbers, .. }) = import_file(path)?;
    let failed = |error: rusqlite::Error| HistoryError::Heartbeats(error.to_string());
    let kuma =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let org = store.org(&plan.organisation).await?;
    let rows = plan.monitors.iter().map(|monitor| NewMonitor {
        key: monitor.key.clone(),
        name: monitor.name.clone(),
        group: monitor.group.clone(),
        kind: monitor.kind.clone(),
    });
    let ids = store
        .sync_monitors(org, "file", rows.collect(), now)
        .await?;
    let mut history = History::default();
    let mut last = None;
    for (monitor, id) in plan.monitors.iter().zip(ids) {
        let Some((number, _)) = numbers.iter().find(|(_, key)| *key == monitor.key) else {
            continue;
        };
        let before = store.results(org, id, Timestamp(i64::MAX), 1).await?;
        if !before.is_empty() {
            let remark = format!("{}: has results already, and is left out", monitor.name);
            history.remarks.push(remark);
            continue;
        }
        let heartbeats = heartbeats(&kuma, *number, now).map_err(failed)?;
        last = last.max(heartbeats.last().map(|one| one.at));
        write(store, org, id, &heartbeats, &mut history).await?;
    }
    store.flush().await?;
    // From there until the monitor starts nothing was checked.
    if let Some(last) = last
        && store
            .last_alive(org)
            .await?
            .is_none_or(|known| known < last)
    {
        store.mark_alive(org, last).await?;
    }
    Ok(history)
}

/// Those of a monitor in their order, but for those in maintenance.
fn heartbeats(kuma: &Connection, number: i64, now: Timestamp) -> rusqlite::Result<Vec<Heartbeat>> {
    let mut statement = kuma.prepare(
        "SELECT time, status, ping, msg FROM heartbeat WHERE monitor_id = ?1 ORDER BY time, id",
    )?;
    let mut rows = statement.query([number])?;
    let mut all: Vec<Heartbeat> = Vec::new();
    while let Some(row) = rows.next()? {
        // In UTC, such as `2026-03-01 12:00:00.123`.
        let time = row.get::<_, String>(0)?.replacen(' ', "T", 1);
        let at = Timestamp::parse(&format!("{}Z", time.trim_end_matches('Z')));
        let status = match row.get::<_, i64>(1)? {
            1 => Status::Up,
            // Down, and down while it is tried again.
            0 | 2 => Status::Down,
            _ => continue,
        };
        let Some(at) = at.filter(|at| *at < now) else {
            continue;
        };
        // One result for each date.
        let at = match all.last() {
            Some(last) if last.at >= at => last.at.plus(Duration::from_millis(1)),
            _ => at,
        };
        let ping = row.get::<_, Option<f64>>(2)?.filter(|ping| *ping > 0.0);
        let reason = row.get::<_, Option<String>>(3)?;
        all.push(Heartbeat {
            at,
            status,
            took: Duration::from_secs_f64(ping.unwrap_or(0.0).min(3.6e6) / 1_000.0),
            reason: reason.filter(|text| status == Status::Down && !text.is_empty()),
        });
    }
    Ok(all)
}

async fn write(
    store: &dyn Store,
    org: OrgId,
    monitor: MonitorId,
    heartbeats: &[Heartbeat],
    history: &mut History,
) -> Result<(), StoreError> {
    if heartbeats.is_empty() {
        return Ok(());
    }
    history.monitors += 1;
    history.results += heartbeats.len();
    for batch in heartbeats.chunks(BATCH) {
        let rows = batch.iter().map(|one| ResultRow {
            monitor,
            region: 0,
            at: one.at,
            status: one.status,
            took_us: u64::try_from(one.took.as_micros()).unwrap_or(u64::MAX),
            phases_us: [None; 5],
            code: None,
            certificate_days: None,
            detail: one.reason.as_ref().map(|reason| Detail {
                reason: Some(reason.clone()),
                conditions: Vec::new(),
            }),
        });
        store.append(org, rows.collect()).await?;
        store.flush().await?;
    }
    let mut changes = Vec::new();
    let mut down_since = None;
    let mut health = None;
    for one in heartbeats {
        let next = if one.status == Status::Up {
            Health::Up
        } else {
            Health::Down
        };
        if health == Some(next) {
            continue;
        }
        health = Some(next);
        let (at, reason) = (one.at, one.reason.clone());
        changes.push(Change::Health {
            monitor,
            at,
            health: next,
            reason: reason.clone(),
        });
        match (next, down_since.take()) {
            (Health::Down, _) => {
                down_since = Some(at);
                history.incidents += 1;
                changes.push(Change::Opened {
                    monitor,
                    at,
                    reason,
                });
            }
            (_, Some(since)) => changes.push(Change::Resolved {
                monitor,
                at,
                by: detect::Resolution::Recovery,
                lasted: at.since(since),
                actor: None,
            }),
            (_, None) => {}
        }
    }
    for batch in changes.chunks(BATCH) {
        store.record(org, batch.to_vec()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::uptime::uptime;
    use crate::store::{IncidentFilter, SqliteOptions, SqlitePath, SqliteStore};

    #[test]
    fn heartbeats_are_results_health_and_incidents() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("kuma.db");
        let kuma = Connection::open(&path).unwrap();
        kuma.execute_batch(
            "CREATE TABLE monitor (id INTEGER PRIMARY KEY, name TEXT, type TEXT, hostname TEXT, port INTEGER, active BOOLEAN DEFAULT 1);
             INSERT INTO monitor (id, name, type, hostname, port) VALUES (7, 'web', 'port', 'a.example', 80), (9, 'new', 'port', 'b.example', 80);
             CREATE TABLE heartbeat (id INTEGER PRIMARY KEY, important BOOLEAN, monitor_id INTEGER, status SMALLINT, msg TEXT, time DATETIME, ping INTEGER);
             INSERT INTO heartbeat (important, monitor_id, status, msg, time, ping) VALUES
                 (1, 7, 1, '', '2026-03-01 12:00:00.000', 20), (0, 7, 1, '', '2026-03-01 12:01:00.000', 30),
                 (0, 7, 2, 'refused', '2026-03-01 12:02:00.000', NULL), (1, 7, 0, 'refused', '2026-03-01 12:03:00.000', NULL),
                 (1, 7, 1, '', '2026-03-01 12:05:00.000', 25), (1, 7, 3, 'works', '2026-03-01 12:06:00.000', NULL),
                 (1, 7, 0, 'gone', '2026-03-01 12:08:00.000', NULL);",
        )
        .unwrap();
        drop(kuma);
        let (_, imported) = import_file(&path).unwrap();
        let config = folder.path().join("monitor.toml");
        std::fs::write(&config, &imported.text).unwrap();
        let plan = crate::config::load(&config, &|_| None).unwrap();
        let store = SqliteStore::open(&SqlitePath::Memory, SqliteOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let now = Timestamp::parse("2026-03-01T12:30:00Z").unwrap();
        runtime.block_on(async {
            let history = import_history(&path, &plan, &store, now).await.unwrap();
            assert_eq!(
                (history.monitors, history.results, history.incidents),
                (1, 6, 2)
            );
            let org = store.org("default").await.unwrap();
            let monitor = store.monitors(org).await.unwrap();
            let monitor = monitor
                .iter()
                .find(|one| one.monitor.key == "_web")
                .unwrap()
                .id;
            let from = Timestamp::parse("2026-03-01T12:00:00Z").unwrap();
            let until = Timestamp::parse("2026-03-01T12:10:00Z").unwrap();
            let changes = store.health(org, monitor, from, until).await.unwrap();
            let changes: Vec<_> = changes.into_iter().map(|(change, _)| change).collect();
            let measured = uptime(&changes, &[], &[], (from, until));
            assert_eq!((measured.down.as_secs(), measured.outages), (5 * 60, 2));
            let all = store
                .incidents(org, IncidentFilter::default(), None, 10)
                .await
                .unwrap();
            assert_eq!(
                (all.len(), all[0].resolved, all[0].reason.as_deref()),
                (2, None, Some("gone"))
            );
            assert_eq!(all[1].lasted, Some(Duration::from_mins(3)));
            let results = store.results(org, monitor, now, 10).await.unwrap();
            assert_eq!(
                (results[5].took_us, results[3].status),
                (20_000, Status::Down)
            );
            let last = Timestamp::parse("2026-03-01T12:08:00Z");
            assert_eq!(store.last_alive(org).await.unwrap(), last);
            // Again, nothing is written twice.
            let again = import_history(&path, &plan, &store, now).await.unwrap();
            assert_eq!((again.results, again.remarks.len()), (0, 1));
        });
    }
}
