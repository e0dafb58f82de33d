//! Health and incidents.

use std::collections::HashMap;

use tokio_postgres::Row;

use crate::detect;
use crate::detect::status::Health;
use crate::detect::uptime::HealthAt;
use crate::store::StoreError;
use crate::store::server::postgres::{Scoped, row_limit};
use crate::store::server::{monitors, outbox};
use crate::store::timestamp::Timestamp;
use crate::store::types::{
    Change, EventKind, Incident, IncidentEvent, IncidentFilter, IncidentId, MonitorId,
    OpenIncident, Restored,
};

/// Applies all changes or none; fails with [`StoreError::NotFound`] if a monitor is not the organisation's.
pub(super) async fn record(scoped: &Scoped<'_>, changes: &[Change]) -> Result<(), StoreError> {
    let mut named: Vec<i64> = changes.iter().map(|change| change.monitor().0).collect();
    named.sort_unstable();
    named.dedup();
    if monitors::owned(scoped, &named).await?.len() != named.len() {
        return Err(StoreError::NotFound("monitor"));
    }
    for change in changes {
        apply(scoped, change).await?;
    }
    Ok(())
}

async fn apply(scoped: &Scoped<'_>, change: &Change) -> Result<(), StoreError> {
    let org = scoped.org();
    match change {
        Change::Health {
            monitor,
            at,
            health,
            reason,
        } => {
            scoped
                .execute(
                    "INSERT INTO health (org_id, monitor, at, sequence, health, reason)
                     SELECT $1, $2, $3, COALESCE(MAX(sequence) + 1, 0), $4, $5
                     FROM health WHERE org_id = $1 AND monitor = $2 AND at = $3",
                    &[&org, &monitor.0, &at.0, &i16::from(health.code()), reason],
                )
                .await?;
        }
        Change::Opened {
            monitor,
            at,
            reason,
        } => {
            let opened = scoped
                .execute(
                    "INSERT INTO incidents (org_id, monitor, opened, reason) VALUES ($1, $2, $3, $4)
                     ON CONFLICT DO NOTHING",
                    &[&org, &monitor.0, &at.0, reason],
                )
                .await?;
            if opened > 0 {
                let text = reason.as_deref();
                event(scoped, *monitor, *at, EventKind::Opened, None, text).await?;
            }
        }
        Change::Event {
            monitor,
            at,
            kind,
            actor,
            text,
        } => {
            match kind {
                EventKind::Announced => {
                    let sql = "UPDATE incidents SET announced = TRUE
                               WHERE org_id = $1 AND monitor = $2 AND resolved IS NULL";
                    scoped.execute(sql, &[&org, &monitor.0]).await?;
                }
                EventKind::Acknowledged => {
                    let sql = "UPDATE incidents SET acknowledged = COALESCE(acknowledged, $3)
                               WHERE org_id = $1 AND monitor = $2 AND resolved IS NULL";
                    scoped.execute(sql, &[&org, &monitor.0, &at.0]).await?;
                }
                _ => {}
            }
            let (actor, text) = (actor.as_deref(), text.as_deref());
            event(scoped, *monitor, *at, *kind, actor, text).await?;
        }
        Change::Notices { at, notices, .. } => outbox::write(scoped, notices, *at).await?,
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
            let actor = actor.as_deref();
            event(
                scoped,
                *monitor,
                *at,
                EventKind::Resolved,
                actor,
                Some(text),
            )
            .await?;
            scoped
                .execute(
                    "UPDATE incidents SET resolved = GREATEST($3, opened)
                     WHERE org_id = $1 AND monitor = $2 AND resolved IS NULL",
                    &[&org, &monitor.0, &at.0],
                )
                .await?;
        }
    }
    Ok(())
}

/// Adds to the timeline of the open incident.
async fn event(
    scoped: &Scoped<'_>,
    monitor: MonitorId,
    at: Timestamp,
    kind: EventKind,
    actor: Option<&str>,
    text: Option<&str>,
) -> Result<(), StoreError> {
    scoped
        .execute(
            "INSERT INTO incident_events (org_id, incident, at, kind, actor, text)
             SELECT $1, id, $3, $4, $5, $6 FROM incidents
             WHERE org_id = $1 AND monitor = $2 AND resolved IS NULL",
            &[
                &scoped.org(),
                &monitor.0,
                &at.0,
                &kind.name(),
                &actor,
                &text,
            ],
        )
        .await?;
    Ok(())
}

pub(super) async fn restored(scoped: &Scoped<'_>) -> Result<Vec<Restored>, StoreError> {
    let rows = scoped
        .query(
            "SELECT m.id, last.at, last.health, i.opened, i.acknowledged IS NOT NULL, COALESCE(i.announced, FALSE)
             FROM monitors m
             CROSS JOIN LATERAL (
                 SELECT at, health FROM health WHERE org_id = $1 AND monitor = m.id
                 ORDER BY at DESC, sequence DESC LIMIT 1
             ) last
             LEFT JOIN incidents i ON i.org_id = $1 AND i.monitor = m.id AND i.resolved IS NULL
             WHERE m.org_id = $1 AND m.retired IS NULL ORDER BY m.id",
            &[&scoped.org()],
        )
        .await?;
    let read = |row: &Row| {
        let opened: Option<i64> = row.try_get(3)?;
        let (acknowledged, announced) = (row.try_get(4)?, row.try_get(5)?);
        Ok(Restored {
            monitor: MonitorId(row.try_get(0)?),
            health: read_health(row.try_get(2)?),
            since: Timestamp(row.try_get(1)?),
            incident: opened.map(|opened| OpenIncident {
                opened: Timestamp(opened),
                acknowledged,
                announced,
            }),
        })
    };
    rows.iter().map(read).collect()
}

/// A code that is not known can only come from a newer version.
fn read_health(code: i16) -> Health {
    let known = u8::try_from(code).ok().and_then(Health::of_code);
    known.unwrap_or(Health::Pending)
}

/// Changes of health, with their reasons.
pub(super) type HealthChanges = Vec<(HealthAt, Option<String>)>;

/// The health of monitors: the last change before `from`, and those from then on until before `to`, ascending.
pub(super) async fn health(
    scoped: &Scoped<'_>,
    monitors: &[MonitorId],
    from: Timestamp,
    to: Timestamp,
) -> Result<HashMap<MonitorId, HealthChanges>, StoreError> {
    let ids: Vec<i64> = monitors.iter().map(|monitor| monitor.0).collect();
    let rows = scoped
        .query(
            "SELECT monitor, at, health, reason FROM (
                 SELECT m.id AS monitor, last.at, last.sequence, last.health, last.reason
                 FROM monitors m CROSS JOIN LATERAL (
                     SELECT at, sequence, health, reason FROM health
                     WHERE org_id = $1 AND monitor = m.id AND at < $3
                     ORDER BY at DESC, sequence DESC LIMIT 1
                 ) last WHERE m.org_id = $1 AND m.id = ANY($2)
                 UNION ALL
                 SELECT monitor, at, sequence, health, reason FROM health
                 WHERE org_id = $1 AND monitor = ANY($2) AND at >= $3 AND at < $4
             ) changes ORDER BY monitor, at, sequence",
            &[&scoped.org(), &ids, &from.0, &to.0],
        )
        .await?;
    let mut all: HashMap<MonitorId, HealthChanges> = HashMap::new();
    for row in rows {
        let change = HealthAt {
            at: Timestamp(row.try_get(1)?),
            health: read_health(row.try_get(2)?),
        };
        let monitor = MonitorId(row.try_get(0)?);
        all.entry(monitor)
            .or_default()
            .push((change, row.try_get(3)?));
    }
    Ok(all)
}

fn read(row: &Row) -> Result<Incident, StoreError> {
    let date = |index| -> Result<Option<Timestamp>, StoreError> {
        let found: Option<i64> = row.try_get(index)?;
        Ok(found.map(Timestamp))
    };
    Ok(Incident {
        id: IncidentId(row.try_get(0)?),
        monitor: MonitorId(row.try_get(1)?),
        opened: Timestamp(row.try_get(2)?),
        acknowledged: date(3)?,
        resolved: date(4)?,
        reason: row.try_get(5)?,
    })
}

pub(super) async fn list(
    scoped: &Scoped<'_>,
    filter: IncidentFilter,
    after: Option<IncidentId>,
    limit: usize,
) -> Result<Vec<Incident>, StoreError> {
    let after = after.map_or(i64::MAX, |after| after.0);
    let monitor = filter.monitor.map(|monitor| monitor.0);
    let rows = scoped
        .query(
            "SELECT id, monitor, opened, acknowledged, resolved, reason FROM incidents
             WHERE org_id = $1 AND id < $2 AND ($3::BIGINT IS NULL OR monitor = $3)
               AND ($4::BOOLEAN IS NULL OR (resolved IS NULL) = $4)
             ORDER BY id DESC LIMIT $5",
            &[
                &scoped.org(),
                &after,
                &monitor,
                &filter.open,
                &row_limit(limit),
            ],
        )
        .await?;
    rows.iter().map(read).collect()
}

pub(super) async fn one(
    scoped: &Scoped<'_>,
    incident: IncidentId,
) -> Result<Option<(Incident, Vec<IncidentEvent>)>, StoreError> {
    let rows = scoped
        .query(
            "SELECT id, monitor, opened, acknowledged, resolved, reason FROM incidents
             WHERE org_id = $1 AND id = $2",
            &[&scoped.org(), &incident.0],
        )
        .await?;
    let Some(found) = rows.first().map(read).transpose()? else {
        return Ok(None);
    };
    let mut found = with_events(scoped, vec![found]).await?;
    Ok(found.pop())
}

/// Incidents with their timelines that are open or were resolved since, the newest first.
pub(super) async fn timelines(
    scoped: &Scoped<'_>,
    since: Timestamp,
    limit: usize,
) -> Result<Vec<(Incident, Vec<IncidentEvent>)>, StoreError> {
    let rows = scoped
        .query(
            "SELECT id, monitor, opened, acknowledged, resolved, reason FROM incidents
             WHERE org_id = $1 AND (resolved IS NULL OR resolved >= $2) ORDER BY id DESC LIMIT $3",
            &[&scoped.org(), &since.0, &row_limit(limit)],
        )
        .await?;
    let incidents: Result<Vec<_>, StoreError> = rows.iter().map(read).collect();
    with_events(scoped, incidents?).await
}

/// Incidents with their timelines, ascending.
async fn with_events(
    scoped: &Scoped<'_>,
    incidents: Vec<Incident>,
) -> Result<Vec<(Incident, Vec<IncidentEvent>)>, StoreError> {
    let ids: Vec<i64> = incidents.iter().map(|incident| incident.id.0).collect();
    let rows = scoped
        .query(
            "SELECT incident, at, kind, actor, text FROM incident_events
             WHERE org_id = $1 AND incident = ANY($2) ORDER BY id",
            &[&scoped.org(), &ids],
        )
        .await?;
    let mut events: HashMap<i64, Vec<IncidentEvent>> = HashMap::new();
    for row in rows {
        let kind: &str = row.try_get(2)?;
        let kind = EventKind::ALL
            .into_iter()
            .find(|known| known.name() == kind);
        let event = IncidentEvent {
            at: Timestamp(row.try_get(1)?),
            kind: kind.unwrap_or(EventKind::Note),
            actor: row.try_get(3)?,
            text: row.try_get(4)?,
        };
        events.entry(row.try_get(0)?).or_default().push(event);
    }
    let whole = incidents.into_iter().map(|incident| {
        let events = events.remove(&incident.id.0).unwrap_or_default();
        (incident, events)
    });
    Ok(whole.collect())
}
