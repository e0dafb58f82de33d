//! Health and incidents.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::detect;
use crate::detect::status::Health;
use crate::detect::uptime::HealthAt;
use crate::store::sqlite::monitors::owns;
use crate::store::sqlite::outbox;
use crate::store::timestamp::Timestamp;
use crate::store::types::{
    Change, EventKind, Incident, IncidentEvent, IncidentFilter, IncidentId, MonitorId,
    OpenIncident, OrgId, Restored,
};

/// Applies all changes or none; false if a monitor is not the organisation's.
pub(super) fn record(
    connection: &mut Connection,
    org: OrgId,
    changes: &[Change],
) -> rusqlite::Result<bool> {
    let transaction = connection.transaction()?;
    for change in changes {
        if !owns(&transaction, org, change.monitor())? {
            return Ok(false);
        }
        apply(&transaction, org, change)?;
    }
    transaction.commit()?;
    Ok(true)
}

fn apply(transaction: &Transaction<'_>, org: OrgId, change: &Change) -> rusqlite::Result<()> {
    match change {
        Change::Health {
            monitor,
            at,
            health,
            reason,
        } => {
            transaction
                .prepare_cached(
                    "INSERT INTO health (monitor, at, sequence, health, reason)
                     SELECT ?1, ?2, COALESCE(MAX(sequence) + 1, 0), ?3, ?4
                     FROM health WHERE monitor = ?1 AND at = ?2",
                )?
                .execute(params![monitor.0, at.0, health.code(), reason])?;
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
                event(
                    transaction,
                    *monitor,
                    *at,
                    EventKind::Opened,
                    None,
                    reason.as_deref(),
                )?;
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
        Change::Notices { at, notices, .. } => outbox::write(transaction, org, notices, *at)?,
        Change::Resolved {
            monitor,
            at,
            by,
            actor,
        } => {
            let text = match by {
                detect::Resolution::Recovery => "the monitor is up",
                detect::Resolution::Operator => "an operator closed it",
                detect::Resolution::Paused => "the monitor was paused",
            };
            event(
                transaction,
                *monitor,
                *at,
                EventKind::Resolved,
                actor.as_deref(),
                Some(text),
            )?;
            transaction
                .prepare_cached(
                    "UPDATE incidents SET resolved = MAX(?2, opened) WHERE monitor = ?1 AND resolved IS NULL",
                )?
                .execute(params![monitor.0, at.0])?;
        }
    }
    Ok(())
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
    let mut last = connection.prepare_cached(
        "SELECT at, health FROM health WHERE monitor = ?1 ORDER BY at DESC, sequence DESC LIMIT 1",
    )?;
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
    Ok(HealthAt {
        at: Timestamp(row.get(0)?),
        health: Health::of_code(row.get(1)?).unwrap_or(Health::Pending),
    })
}

pub(super) fn health(
    connection: &Connection,
    org: OrgId,
    monitor: MonitorId,
    from: Timestamp,
    to: Timestamp,
) -> rusqlite::Result<Vec<(HealthAt, Option<String>)>> {
    if !owns(connection, org, monitor)? {
        return Ok(Vec::new());
    }
    health_of_owned(connection, monitor, from, to)
}

/// Of a monitor that is the organisation's.
pub(super) fn health_of_owned(
    connection: &Connection,
    monitor: MonitorId,
    from: Timestamp,
    to: Timestamp,
) -> rusqlite::Result<Vec<(HealthAt, Option<String>)>> {
    let with_reason = |row: &Row<'_>| Ok((read_health(row)?, row.get(2)?));
    let mut before = connection.prepare_cached(
        "SELECT at, health, reason FROM health WHERE monitor = ?1 AND at < ?2
         ORDER BY at DESC, sequence DESC LIMIT 1",
    )?;
    let first = before
        .query_row(params![monitor.0, from.0], with_reason)
        .optional()?;
    let mut statement = connection.prepare_cached(
        "SELECT at, health, reason FROM health WHERE monitor = ?1 AND at >= ?2 AND at < ?3
         ORDER BY at, sequence",
    )?;
    let rows = statement.query_map(params![monitor.0, from.0, to.0], with_reason)?;
    first.into_iter().map(Ok).chain(rows).collect()
}

const COLUMNS: &str = "id, monitor, opened, acknowledged, resolved, reason";

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
