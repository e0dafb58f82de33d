//! Health and incidents.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::detect::status::Health;
use crate::detect::timeline::{HealthChange, HealthSpan, timeline, window};
use crate::detect::uptime::{HealthAt, Span};
use crate::store::sqlite::monitors::owns;
use crate::store::sqlite::outbox;
use crate::store::types::{
    BatchNumber, Change, EventKind, Incident, IncidentEvent, IncidentFilter, IncidentId, MonitorId,
    OpenIncident, OrgId, Orphan, Restored,
};
use crate::time::Timestamp;

/// Applies all changes or none; false if a monitor is not the organisation's. A batch that was applied before changes
/// nothing.
pub(super) fn record(
    connection: &mut Connection,
    org: OrgId,
    batch: Option<BatchNumber>,
    changes: &[Change],
) -> rusqlite::Result<bool> {
    let transaction = connection.transaction()?;
    if let Some(batch) = batch
        && !is_new(&transaction, org, batch)?
    {
        return Ok(true);
    }
    for change in changes {
        if let Some(monitor) = change.monitor()
            && !owns(&transaction, org, monitor)?
        {
            return Ok(false);
        }
        apply(&transaction, org, change)?;
    }
    transaction.commit()?;
    Ok(true)
}

/// Notes a batch; false if it was noted before. Only one process writes at a time, so others are forgotten.
fn is_new(transaction: &Transaction<'_>, org: OrgId, batch: BatchNumber) -> rusqlite::Result<bool> {
    let noted = transaction
        .prepare_cached(
            "INSERT INTO writers (org, writer, number) VALUES (?1, ?2, ?3)
             ON CONFLICT (org, writer) DO UPDATE SET number = excluded.number WHERE number < excluded.number",
        )?
        .execute(params![org.0, batch.writer, batch.number])?;
    transaction
        .prepare_cached("DELETE FROM writers WHERE org = ?1 AND writer <> ?2")?
        .execute(params![org.0, batch.writer])?;
    Ok(noted > 0)
}

fn apply(transaction: &Transaction<'_>, org: OrgId, change: &Change) -> rusqlite::Result<()> {
    match change {
        Change::Health {
            monitor,
            at,
            health,
            reason,
        } => {
            end_health(transaction, *monitor, *at)?;
            begin_health(transaction, *monitor, *at, health.code(), reason.as_deref())?;
            if *health == Health::Down {
                link_outage(transaction, *monitor)?;
            }
        }
        Change::Opened {
            monitor,
            at,
            reason,
        } => {
            let opened = transaction
                .prepare_cached(
                    "INSERT INTO incidents (org, monitor, opened, reason) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT DO NOTHING",
                )?
                .execute(params![org.0, monitor.0, at.0, reason])?;
            if opened > 0 {
                transaction
                    .prepare_cached(
                        "UPDATE incidents SET key =
                             (SELECT m.key FROM monitors m WHERE m.id = monitor) || '/' || opened || '/' || id
                         WHERE id = ?1",
                    )?
                    .execute([transaction.last_insert_rowid()])?;
                event(
                    transaction,
                    *monitor,
                    *at,
                    EventKind::Opened,
                    None,
                    reason.as_deref(),
                )?;
                link_outage(transaction, *monitor)?;
            }
        }
        Change::Event {
            monitor,
            at,
            kind,
            actor,
            text,
        } => {
            let set = match kind {
                EventKind::Announced => "announced = 1",
                EventKind::Acknowledged => "acknowledged = COALESCE(acknowledged, ?2)",
                _ => "monitor = monitor",
            };
            transaction
                .prepare_cached(&format!(
                    "UPDATE incidents SET {set} WHERE monitor = ?1 AND resolved IS NULL AND ?2 = ?2"
                ))?
                .execute(params![monitor.0, at.0])?;
            event(
                transaction,
                *monitor,
                *at,
                *kind,
                actor.as_deref(),
                text.as_deref(),
            )?;
        }
        Change::Notices {
            monitor,
            at,
            notices,
        } => outbox::write(transaction, org, Some(*monitor), notices, *at)?,
        Change::Resolved {
            monitor,
            at,
            by,
            lasted,
            actor,
        } => {
            event(
                transaction,
                *monitor,
                *at,
                EventKind::Resolved,
                actor.as_deref(),
                Some(by.text()),
            )?;
            transaction
                .prepare_cached(
                    "UPDATE incidents SET resolved = MAX(?2, opened), lasted = ?3
                     WHERE monitor = ?1 AND resolved IS NULL",
                )?
                .execute(params![monitor.0, at.0, millis(*lasted)])?;
        }
        Change::SetBack { monitor, from, to } => {
            let open = transaction
                .prepare_cached(
                    "SELECT health, reason FROM health WHERE monitor = ?1 AND until IS NULL",
                )?
                .query_row([monitor.0], |row| {
                    Ok((row.get::<_, u8>(0)?, row.get::<_, Option<String>>(1)?))
                })
                .optional()?;
            if let Some((health, reason)) = open {
                end_health(transaction, *monitor, *from)?;
                begin_health(transaction, *monitor, *to, health, reason.as_deref())?;
                link_outage(transaction, *monitor)?;
            }
        }
        Change::Memory {
            monitor,
            name,
            text: None,
        } => {
            transaction
                .prepare_cached("DELETE FROM memory WHERE monitor = ?1 AND name = ?2")?
                .execute(params![monitor.0, name])?;
        }
        Change::Memory {
            monitor,
            name,
            text: Some(text),
        } => {
            transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO memory (monitor, name, text) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![monitor.0, name, text])?;
        }
        Change::Gap { from, to } => {
            transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO gaps (org, start, until) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![org.0, from.0, to.0])?;
        }
    }
    Ok(())
}

/// The present health of a monitor ends.
fn end_health(
    transaction: &Transaction<'_>,
    monitor: MonitorId,
    at: Timestamp,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE health SET until = MAX(at, ?2) WHERE monitor = ?1 AND until IS NULL",
        )?
        .execute(params![monitor.0, at.0])?;
    Ok(())
}

fn begin_health(
    transaction: &Transaction<'_>,
    monitor: MonitorId,
    at: Timestamp,
    health: u8,
    reason: Option<&str>,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO health (monitor, at, sequence, health, reason)
             SELECT ?1, ?2, COALESCE(MAX(sequence) + 1, 0), ?3, ?4
             FROM health WHERE monitor = ?1 AND at = ?2",
        )?
        .execute(params![monitor.0, at.0, health, reason])?;
    Ok(())
}

/// Notes that the present downtime of a monitor belongs to its open incident, if both are there.
fn link_outage(transaction: &Transaction<'_>, monitor: MonitorId) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE health SET incident =
                 (SELECT i.id FROM incidents i WHERE i.monitor = ?1 AND i.resolved IS NULL)
             WHERE monitor = ?1 AND until IS NULL AND health = ?2",
        )?
        .execute(params![monitor.0, Health::Down.code()])?;
    Ok(())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Adds to the timeline of the open incident.
fn event(
    transaction: &Transaction<'_>,
    monitor: MonitorId,
    at: Timestamp,
    kind: EventKind,
    actor: Option<&str>,
    text: Option<&str>,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO incident_events (incident, at, kind, actor, text)
             SELECT id, ?2, ?3, ?4, ?5 FROM incidents WHERE monitor = ?1 AND resolved IS NULL",
        )?
        .execute(params![monitor.0, at.0, kind.name(), actor, text])?;
    Ok(())
}

pub(super) fn restored(connection: &Connection, org: OrgId) -> rusqlite::Result<Vec<Restored>> {
    let mut statement = connection.prepare_cached(
        "SELECT m.id, i.opened, i.acknowledged IS NOT NULL, i.announced FROM monitors m
         LEFT JOIN incidents i ON i.monitor = m.id AND i.resolved IS NULL
         WHERE m.org = ?1 AND m.retired IS NULL ORDER BY m.id",
    )?;
    let rows = statement.query_map([org.0], |row| {
        let opened: Option<i64> = row.get(1)?;
        let incident = match opened {
            None => None,
            Some(opened) => Some(OpenIncident {
                opened: Timestamp(opened),
                acknowledged: row.get(2)?,
                announced: row.get(3)?,
            }),
        };
        Ok((MonitorId(row.get(0)?), incident))
    })?;
    let mut last = connection
        .prepare_cached("SELECT at, health FROM health WHERE monitor = ?1 AND until IS NULL")?;
    let mut all = Vec::new();
    for row in rows {
        let (monitor, incident) = row?;
        let health = last.query_row([monitor.0], read_health).optional()?;
        if let Some(health) = health {
            all.push(Restored {
                monitor,
                health: health.health,
                since: health.at,
                incident,
            });
        }
    }
    Ok(all)
}

fn read_health(row: &Row<'_>) -> rusqlite::Result<HealthAt> {
    let health = Health::of_code(row.get(1)?).unwrap_or(Health::Pending);
    Ok(HealthAt::new(Timestamp(row.get(0)?), health))
}

pub(super) fn health(
    connection: &Connection,
    org: OrgId,
    monitor: MonitorId,
    from: Timestamp,
    to: Timestamp,
) -> rusqlite::Result<Vec<HealthChange>> {
    if !owns(connection, org, monitor)? {
        return Ok(Vec::new());
    }
    let gaps = gaps(connection, org, from, to)?;
    health_of_owned(connection, monitor, &gaps, from, to)
}

/// Of a monitor that is the organisation's.
///
/// - `gaps`: those of the organisation in this time.
pub(super) fn health_of_owned(
    connection: &Connection,
    monitor: MonitorId,
    gaps: &[Span],
    from: Timestamp,
    to: Timestamp,
) -> rusqlite::Result<Vec<HealthChange>> {
    let mut statement = connection.prepare_cached(
        "SELECT at, health, reason, until, incident, sequence FROM health
         WHERE monitor = ?1 AND until >= ?2 AND at < ?3
         UNION ALL
         SELECT at, health, reason, until, incident, sequence FROM health
         WHERE monitor = ?1 AND until IS NULL AND at < ?3
         ORDER BY at, sequence",
    )?;
    let rows = statement.query_map(params![monitor.0, from.0, to.0], |row| {
        let begun = read_health(row)?;
        Ok(HealthSpan {
            at: begun.at,
            until: row.get::<_, Option<i64>>(3)?.map(Timestamp),
            health: begun.health,
            reason: row.get(2)?,
            incident: row.get::<_, Option<i64>>(4)?.map(IncidentId),
        })
    })?;
    let spans: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
    let changes = timeline(&spans, gaps.to_vec());
    Ok(window(changes, from, to))
}

/// The gaps of an organisation that reach into a window.
pub(super) fn gaps(
    connection: &Connection,
    org: OrgId,
    from: Timestamp,
    to: Timestamp,
) -> rusqlite::Result<Vec<Span>> {
    let mut statement = connection.prepare_cached(
        "SELECT start, until FROM gaps WHERE org = ?1 AND until > ?2 AND start < ?3",
    )?;
    let rows = statement.query_map(params![org.0, from.0, to.0], |row| {
        Ok((Timestamp(row.get(0)?), Timestamp(row.get(1)?)))
    })?;
    rows.collect()
}

pub(super) fn orphans(connection: &Connection, org: OrgId) -> rusqlite::Result<Vec<Orphan>> {
    let mut statement = connection.prepare_cached(
        "SELECT m.id, m.key, m.name, m.grp, i.opened, i.acknowledged IS NOT NULL, i.announced
         FROM incidents i JOIN monitors m ON m.id = i.monitor
         WHERE i.org = ?1 AND i.resolved IS NULL AND m.retired IS NOT NULL ORDER BY i.id",
    )?;
    let rows = statement.query_map([org.0], |row| {
        Ok(Orphan {
            monitor: MonitorId(row.get(0)?),
            key: row.get(1)?,
            name: row.get(2)?,
            group: row.get(3)?,
            incident: OpenIncident {
                opened: Timestamp(row.get(4)?),
                acknowledged: row.get(5)?,
                announced: row.get(6)?,
            },
        })
    })?;
    rows.collect()
}

pub(super) fn memories(
    connection: &Connection,
    org: OrgId,
    name: &str,
) -> rusqlite::Result<Vec<(MonitorId, String)>> {
    let mut statement = connection.prepare_cached(
        "SELECT m.id, k.text FROM memory k JOIN monitors m ON m.id = k.monitor
         WHERE m.org = ?1 AND k.name = ?2 ORDER BY m.id",
    )?;
    let rows = statement.query_map(params![org.0, name], |row| {
        Ok((MonitorId(row.get(0)?), row.get(1)?))
    })?;
    rows.collect()
}

pub(super) fn mark_alive(
    connection: &Connection,
    org: OrgId,
    at: Timestamp,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO alive (org, at) VALUES (?1, ?2)")?
        .execute(params![org.0, at.0])?;
    Ok(())
}

pub(super) fn last_alive(
    connection: &Connection,
    org: OrgId,
) -> rusqlite::Result<Option<Timestamp>> {
    connection
        .prepare_cached("SELECT at FROM alive WHERE org = ?1")?
        .query_row([org.0], |row| Ok(Timestamp(row.get(0)?)))
        .optional()
}

const COLUMNS: &str = "id, monitor, opened, acknowledged, resolved, reason, lasted, key";

fn read(row: &Row<'_>) -> rusqlite::Result<Incident> {
    let date = |index| -> rusqlite::Result<Option<Timestamp>> {
        let found: Option<i64> = row.get(index)?;
        Ok(found.map(Timestamp))
    };
    Ok(Incident {
        id: IncidentId(row.get(0)?),
        monitor: MonitorId(row.get(1)?),
        opened: Timestamp(row.get(2)?),
        acknowledged: date(3)?,
        resolved: date(4)?,
        reason: row.get(5)?,
        lasted: row
            .get::<_, Option<i64>>(6)?
            .map(|millis| Duration::from_millis(millis.unsigned_abs())),
        key: row.get(7)?,
    })
}

pub(super) fn list(
    connection: &Connection,
    org: OrgId,
    filter: IncidentFilter,
    after: Option<IncidentId>,
    limit: usize,
) -> rusqlite::Result<Vec<Incident>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM incidents
         WHERE org = ?1 AND id < ?2 AND (?3 IS NULL OR monitor = ?3)
           AND (?4 IS NULL OR (resolved IS NULL) = ?4)
         ORDER BY id DESC LIMIT ?5"
    ))?;
    let values = params![
        org.0,
        after.map_or(i64::MAX, |after| after.0),
        filter.monitor.map(|monitor| monitor.0),
        filter.open,
        i64::try_from(limit).unwrap_or(i64::MAX),
    ];
    let rows = statement.query_map(values, read)?;
    rows.collect()
}

pub(super) fn one(
    connection: &Connection,
    org: OrgId,
    incident: IncidentId,
) -> rusqlite::Result<Option<(Incident, Vec<IncidentEvent>)>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM incidents WHERE org = ?1 AND id = ?2"
    ))?;
    let found = statement.query_row(params![org.0, incident.0], read);
    let Some(found) = found.optional()? else {
        return Ok(None);
    };
    let events = events(connection, incident)?;
    Ok(Some((found, events)))
}

/// Incidents with their timelines that are open or were resolved since, the newest first.
pub(super) fn timelines(
    connection: &Connection,
    org: OrgId,
    since: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<(Incident, Vec<IncidentEvent>)>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM incidents
         WHERE org = ?1 AND (resolved IS NULL OR resolved >= ?2) ORDER BY id DESC LIMIT ?3"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![org.0, since.0, limit], read)?;
    let timelines = rows.map(|incident| {
        let incident = incident?;
        let events = events(connection, incident.id)?;
        Ok((incident, events))
    });
    timelines.collect()
}

/// The timeline of an incident, ascending.
fn events(connection: &Connection, incident: IncidentId) -> rusqlite::Result<Vec<IncidentEvent>> {
    let mut statement = connection.prepare_cached(
        "SELECT at, kind, actor, text FROM incident_events WHERE incident = ?1 ORDER BY id",
    )?;
    let events = statement.query_map([incident.0], |row| {
        let kind: String = row.get(1)?;
        let kind = EventKind::ALL
            .into_iter()
            .find(|known| known.name() == kind);
        Ok(IncidentEvent {
            at: Timestamp(row.get(0)?),
            kind: kind.unwrap_or(EventKind::Note),
            actor: row.get(2)?,
            text: row.get(3)?,
        })
    })?;
    events.collect()
}
