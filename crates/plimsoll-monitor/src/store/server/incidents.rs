//! Health and incidents.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::Row;

use crate::detect::status::Health;
use crate::detect::timeline::{HealthChange, HealthSpan, timeline, window};
use crate::detect::uptime::Span;
use crate::store::StoreError;
use crate::store::server::postgres::{Scoped, row_limit};
use crate::store::server::{monitors, outbox};
use crate::store::types::{
    BatchNumber, Change, EventKind, Incident, IncidentEvent, IncidentFilter, IncidentId, MonitorId,
    OpenIncident, Orphan, Restored,
};
use crate::time::Timestamp;

/// Applies all changes or none; fails with [`StoreError::NotFound`] if a monitor is not the organisation's. A batch that was
/// applied before changes nothing.
pub(super) async fn record(
    scoped: &Scoped<'_>,
    batch: Option<BatchNumber>,
    changes: &[Change],
) -> Result<(), StoreError> {
    if let Some(batch) = batch
        && !is_new(scoped, batch).await?
    {
        return Ok(());
    }
    let named = changes.iter().filter_map(Change::monitor);
    let mut named: Vec<i64> = named.map(|monitor| monitor.0).collect();
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

/// Notes a batch; false if it was noted before. Only one process writes at a time, so others are forgotten.
async fn is_new(scoped: &Scoped<'_>, batch: BatchNumber) -> Result<bool, StoreError> {
    let noted = scoped
        .execute(
            "INSERT INTO writers (org_id, writer, number) VALUES ($1, $2, $3)
             ON CONFLICT (org_id, writer) DO UPDATE SET number = excluded.number
             WHERE writers.number < excluded.number",
            &[&scoped.org(), &batch.writer, &batch.number],
        )
        .await?;
    let others = "DELETE FROM writers WHERE org_id = $1 AND writer <> $2";
    scoped
        .execute(others, &[&scoped.org(), &batch.writer])
        .await?;
    Ok(noted > 0)
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
            let code = i16::from(health.code());
            end_health(scoped, *monitor, *at).await?;
            begin_health(scoped, *monitor, *at, code, reason.as_deref()).await?;
            if *health == Health::Down {
                link_outage(scoped, *monitor).await?;
            }
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
                let name = "UPDATE incidents SET key =
                        (SELECT m.key FROM monitors m WHERE m.id = monitor) || '/' || opened || '/' || id
                    WHERE org_id = $1 AND monitor = $2 AND resolved IS NULL";
                scoped.execute(name, &[&org, &monitor.0]).await?;
                let text = reason.as_deref();
                event(scoped, *monitor, *at, EventKind::Opened, None, text).await?;
                link_outage(scoped, *monitor).await?;
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
        Change::Notices {
            monitor,
            at,
            notices,
        } => outbox::write(scoped, Some(*monitor), notices, *at).await?,
        Change::Resolved {
            monitor,
            at,
            by,
            lasted,
            actor,
        } => {
            let actor = actor.as_deref();
            event(
                scoped,
                *monitor,
                *at,
                EventKind::Resolved,
                actor,
                Some(by.text()),
            )
            .await?;
            scoped
                .execute(
                    "UPDATE incidents SET resolved = GREATEST($3, opened), lasted = $4
                     WHERE org_id = $1 AND monitor = $2 AND resolved IS NULL",
                    &[&org, &monitor.0, &at.0, &millis(*lasted)],
                )
                .await?;
        }
        Change::SetBack { monitor, from, to } => {
            let open = "SELECT health, reason FROM health
                        WHERE org_id = $1 AND monitor = $2 AND until IS NULL";
            if let Some(row) = scoped.query(open, &[&org, &monitor.0]).await?.first() {
                let (code, reason): (i16, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
                end_health(scoped, *monitor, *from).await?;
                begin_health(scoped, *monitor, *to, code, reason.as_deref()).await?;
                link_outage(scoped, *monitor).await?;
            }
        }
        Change::Memory {
            monitor,
            name,
            text: None,
        } => {
            let sql = "DELETE FROM memory WHERE org_id = $1 AND monitor = $2 AND name = $3";
            scoped.execute(sql, &[&org, &monitor.0, name]).await?;
        }
        Change::Memory {
            monitor,
            name,
            text: Some(text),
        } => {
            let sql = "INSERT INTO memory (org_id, monitor, name, text) VALUES ($1, $2, $3, $4)
                       ON CONFLICT (monitor, name) DO UPDATE SET text = excluded.text";
            scoped.execute(sql, &[&org, &monitor.0, name, text]).await?;
        }
        Change::Gap { from, to } => {
            let sql = "INSERT INTO gaps (org_id, start, until) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
            scoped.execute(sql, &[&org, &from.0, &to.0]).await?;
        }
    }
    Ok(())
}

/// The present health of a monitor ends.
async fn end_health(
    scoped: &Scoped<'_>,
    monitor: MonitorId,
    at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "UPDATE health SET until = GREATEST(at, $3)
               WHERE org_id = $1 AND monitor = $2 AND until IS NULL";
    scoped
        .execute(sql, &[&scoped.org(), &monitor.0, &at.0])
        .await?;
    Ok(())
}

async fn begin_health(
    scoped: &Scoped<'_>,
    monitor: MonitorId,
    at: Timestamp,
    code: i16,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO health (org_id, monitor, at, sequence, health, reason)
               SELECT $1, $2, $3, COALESCE(MAX(sequence) + 1, 0), $4, $5
               FROM health WHERE org_id = $1 AND monitor = $2 AND at = $3";
    scoped
        .execute(sql, &[&scoped.org(), &monitor.0, &at.0, &code, &reason])
        .await?;
    Ok(())
}

/// Notes that the present downtime of a monitor belongs to its open incident, if both are there.
async fn link_outage(scoped: &Scoped<'_>, monitor: MonitorId) -> Result<(), StoreError> {
    let sql = "UPDATE health SET incident =
                   (SELECT i.id FROM incidents i
                    WHERE i.org_id = $1 AND i.monitor = $2 AND i.resolved IS NULL)
               WHERE org_id = $1 AND monitor = $2 AND until IS NULL AND health = $3";
    let down = i16::from(Health::Down.code());
    scoped
        .execute(sql, &[&scoped.org(), &monitor.0, &down])
        .await?;
    Ok(())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
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
                 SELECT at, health FROM health WHERE org_id = $1 AND monitor = m.id AND until IS NULL
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
pub(super) type HealthChanges = Vec<HealthChange>;

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
            "SELECT monitor, at, health, reason, until, incident FROM health
             WHERE org_id = $1 AND monitor = ANY($2) AND at < $4 AND (until IS NULL OR until >= $3)
             ORDER BY monitor, at, sequence",
            &[&scoped.org(), &ids, &from.0, &to.0],
        )
        .await?;
    let mut all: HashMap<MonitorId, Vec<HealthSpan>> = HashMap::new();
    for row in rows {
        let span = HealthSpan {
            at: Timestamp(row.try_get(1)?),
            until: row.try_get::<_, Option<i64>>(4)?.map(Timestamp),
            health: read_health(row.try_get(2)?),
            reason: row.try_get(3)?,
            incident: row.try_get::<_, Option<i64>>(5)?.map(IncidentId),
        };
        let monitor = MonitorId(row.try_get(0)?);
        all.entry(monitor).or_default().push(span);
    }
    let gaps = gaps(scoped, from, to).await?;
    let changes = all.into_iter().map(|(monitor, spans)| {
        let changes = timeline(&spans, gaps.clone());
        (monitor, window(changes, from, to))
    });
    Ok(changes.collect())
}

/// The gaps of the organisation that reach into a window.
async fn gaps(
    scoped: &Scoped<'_>,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Span>, StoreError> {
    let rows = scoped
        .query(
            "SELECT start, until FROM gaps WHERE org_id = $1 AND until > $2 AND start < $3",
            &[&scoped.org(), &from.0, &to.0],
        )
        .await?;
    let read = |row: &Row| Ok((Timestamp(row.try_get(0)?), Timestamp(row.try_get(1)?)));
    rows.iter().map(read).collect()
}

pub(super) async fn orphans(scoped: &Scoped<'_>) -> Result<Vec<Orphan>, StoreError> {
    let rows = scoped
        .query(
            "SELECT m.id, m.key, m.name, m.grp, i.opened, i.acknowledged IS NOT NULL, i.announced
             FROM incidents i JOIN monitors m ON m.org_id = i.org_id AND m.id = i.monitor
             WHERE i.org_id = $1 AND i.resolved IS NULL AND m.retired IS NOT NULL ORDER BY i.id",
            &[&scoped.org()],
        )
        .await?;
    let read = |row: &Row| {
        Ok(Orphan {
            monitor: MonitorId(row.try_get(0)?),
            key: row.try_get(1)?,
            name: row.try_get(2)?,
            group: row.try_get(3)?,
            incident: OpenIncident {
                opened: Timestamp(row.try_get(4)?),
                acknowledged: row.try_get(5)?,
                announced: row.try_get(6)?,
            },
        })
    };
    rows.iter().map(read).collect()
}

pub(super) async fn memories(
    scoped: &Scoped<'_>,
    name: &str,
) -> Result<Vec<(MonitorId, String)>, StoreError> {
    let rows = scoped
        .query(
            "SELECT monitor, text FROM memory WHERE org_id = $1 AND name = $2 ORDER BY monitor",
            &[&scoped.org(), &name],
        )
        .await?;
    let read = |row: &Row| Ok((MonitorId(row.try_get(0)?), row.try_get(1)?));
    rows.iter().map(read).collect()
}

pub(super) async fn mark_alive(scoped: &Scoped<'_>, at: Timestamp) -> Result<(), StoreError> {
    let sql = "INSERT INTO alive (org_id, at) VALUES ($1, $2)
               ON CONFLICT (org_id) DO UPDATE SET at = excluded.at";
    scoped.execute(sql, &[&scoped.org(), &at.0]).await?;
    Ok(())
}

pub(super) async fn last_alive(scoped: &Scoped<'_>) -> Result<Option<Timestamp>, StoreError> {
    let rows = scoped
        .query("SELECT at FROM alive WHERE org_id = $1", &[&scoped.org()])
        .await?;
    let at = rows.first().map(|row| row.try_get(0)).transpose()?;
    Ok(at.map(Timestamp))
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
        lasted: row
            .try_get::<_, Option<i64>>(6)?
            .map(|millis| Duration::from_millis(millis.unsigned_abs())),
        key: row.try_get(7)?,
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
            "SELECT id, monitor, opened, acknowledged, resolved, reason, lasted, key FROM incidents
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
            "SELECT id, monitor, opened, acknowledged, resolved, reason, lasted, key FROM incidents
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
            "SELECT id, monitor, opened, acknowledged, resolved, reason, lasted, key FROM incidents
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
