//! Declared incidents.

use std::collections::HashMap;

use tokio_postgres::Row;

use crate::store::StoreError;
use crate::store::declared::{
    Declared, DeclaredEdit, DeclaredId, DeclaredUpdate, Impact, NewDeclared, PublicPhase,
};
use crate::store::server::monitors::owns;
use crate::store::server::postgres::{Scoped, row_limit};
use crate::store::types::MonitorId;
use crate::time::Timestamp;

pub(super) async fn declare(
    scoped: &Scoped<'_>,
    new: &NewDeclared,
    now: Timestamp,
) -> Result<Declared, StoreError> {
    if let Some((key, request)) = &new.idempotency {
        let rows = scoped
            .query(
                "SELECT id, request FROM declared WHERE org_id = $1 AND idempotency = $2",
                &[&scoped.org(), &key],
            )
            .await?;
        if let Some(row) = rows.first() {
            let known: &[u8] = row.try_get(1)?;
            if known != request {
                return Err(StoreError::Conflict);
            }
            let found = one(scoped, DeclaredId(row.try_get(0)?)).await?;
            return found.ok_or(StoreError::Conflict);
        }
    }
    let (key, request) = match &new.idempotency {
        Some((key, request)) => (Some(key), Some(request.as_slice())),
        None => (None, None),
    };
    let resolved = new.phase.is_over().then_some(now.0.max(new.started.0));
    let row = scoped
        .one(
            "INSERT INTO declared
             (org_id, version, title, phase, impact, counts, started, resolved, changed, idempotency, request)
             VALUES ($1, 1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id",
            &[
                &scoped.org(),
                &new.title,
                &new.phase.name(),
                &new.impact.name(),
                &new.counts_as_downtime,
                &new.started.0,
                &resolved,
                &now.0,
                &key,
                &request,
            ],
        )
        .await?;
    let id = DeclaredId(row.try_get(0)?);
    affect(scoped, id, &new.monitors).await?;
    let actor = new.actor.as_deref();
    write_update(scoped, id, now, new.phase, &new.body, actor).await?;
    let declared = one(scoped, id).await?;
    declared.ok_or(StoreError::NotFound("declared incident"))
}

pub(super) async fn edit(
    scoped: &Scoped<'_>,
    id: DeclaredId,
    edit: &DeclaredEdit,
    now: Timestamp,
) -> Result<Declared, StoreError> {
    let missing = StoreError::NotFound("declared incident");
    let Some(known) = one(scoped, id).await? else {
        return Err(missing);
    };
    if edit.version.is_some_and(|version| version != known.version) {
        return Err(StoreError::Conflict);
    }
    let phase = edit.phase.unwrap_or(known.phase);
    let resolved = match (phase.is_over(), known.resolved) {
        (false, _) => None,
        (true, Some(resolved)) => Some(resolved),
        (true, None) => Some(now.max(known.started)),
    };
    scoped
        .execute(
            "UPDATE declared SET version = version + 1, title = $3, phase = $4, impact = $5, counts = $6,
               resolved = $7, changed = $8
             WHERE org_id = $1 AND id = $2",
            &[
                &scoped.org(),
                &id.0,
                edit.title.as_ref().unwrap_or(&known.title),
                &phase.name(),
                &edit.impact.unwrap_or(known.impact).name(),
                &edit.counts_as_downtime.unwrap_or(known.counts_as_downtime),
                &resolved.map(|at| at.0),
                &now.0,
            ],
        )
        .await?;
    if let Some(monitors) = &edit.monitors {
        scoped
            .execute(
                "DELETE FROM declared_monitors WHERE org_id = $1 AND declared = $2",
                &[&scoped.org(), &id.0],
            )
            .await?;
        affect(scoped, id, monitors).await?;
    }
    if edit.body.is_some() || phase != known.phase {
        let body = edit.body.as_deref().unwrap_or_default();
        write_update(scoped, id, now, phase, body, edit.actor.as_deref()).await?;
    }
    one(scoped, id).await?.ok_or(missing)
}

/// Fails with [`StoreError::NotFound`] if a monitor is not the organisation's.
async fn affect(
    scoped: &Scoped<'_>,
    id: DeclaredId,
    monitors: &[MonitorId],
) -> Result<(), StoreError> {
    for monitor in monitors {
        if !owns(scoped, *monitor).await? {
            return Err(StoreError::NotFound("monitor"));
        }
        scoped
            .execute(
                "INSERT INTO declared_monitors (org_id, declared, monitor) VALUES ($1, $2, $3)
                 ON CONFLICT DO NOTHING",
                &[&scoped.org(), &id.0, &monitor.0],
            )
            .await?;
    }
    Ok(())
}

async fn write_update(
    scoped: &Scoped<'_>,
    id: DeclaredId,
    at: Timestamp,
    phase: PublicPhase,
    body: &str,
    actor: Option<&str>,
) -> Result<(), StoreError> {
    scoped
        .execute(
            "INSERT INTO declared_updates (org_id, declared, at, phase, body, actor)
             VALUES ($1, $2, $3, $4, $5, $6)",
            &[&scoped.org(), &id.0, &at.0, &phase.name(), &body, &actor],
        )
        .await?;
    Ok(())
}

pub(super) async fn one(
    scoped: &Scoped<'_>,
    id: DeclaredId,
) -> Result<Option<Declared>, StoreError> {
    let rows = scoped
        .query(
            "SELECT id, version, title, phase, impact, counts, started, resolved, changed FROM declared
             WHERE org_id = $1 AND id = $2",
            &[&scoped.org(), &id.0],
        )
        .await?;
    Ok(complete(scoped, &rows).await?.pop())
}

/// The newest first: those before `before` that are not over, or were over after `since`.
pub(super) async fn list(
    scoped: &Scoped<'_>,
    since: Timestamp,
    before: Option<DeclaredId>,
    limit: usize,
) -> Result<Vec<Declared>, StoreError> {
    let before = before.map_or(i64::MAX, |before| before.0);
    let rows = scoped
        .query(
            "SELECT id, version, title, phase, impact, counts, started, resolved, changed FROM declared
             WHERE org_id = $1 AND (resolved IS NULL OR resolved >= $2) AND id < $3 ORDER BY id DESC LIMIT $4",
            &[&scoped.org(), &since.0, &before, &row_limit(limit)],
        )
        .await?;
    complete(scoped, &rows).await
}

fn read(row: &Row) -> Result<Declared, StoreError> {
    let resolved: Option<i64> = row.try_get(7)?;
    Ok(Declared {
        id: DeclaredId(row.try_get(0)?),
        version: row.try_get(1)?,
        title: row.try_get(2)?,
        phase: PublicPhase::named(row.try_get(3)?).unwrap_or(PublicPhase::Investigating),
        impact: Impact::named(row.try_get(4)?).unwrap_or(Impact::None),
        counts_as_downtime: row.try_get(5)?,
        started: Timestamp(row.try_get(6)?),
        resolved: resolved.map(Timestamp),
        changed: Timestamp(row.try_get(8)?),
        monitors: Vec::new(),
        updates: Vec::new(),
    })
}

/// Declared incidents with their monitors, ascending, and their updates, the newest first.
async fn complete(scoped: &Scoped<'_>, rows: &[Row]) -> Result<Vec<Declared>, StoreError> {
    let mut all: Vec<Declared> = rows.iter().map(read).collect::<Result<_, _>>()?;
    let ids: Vec<i64> = all.iter().map(|declared| declared.id.0).collect();
    let rows = scoped
        .query(
            "SELECT declared, monitor FROM declared_monitors
             WHERE org_id = $1 AND declared = ANY($2) ORDER BY monitor",
            &[&scoped.org(), &ids],
        )
        .await?;
    let mut monitors: HashMap<i64, Vec<MonitorId>> = HashMap::new();
    for row in rows {
        let monitor = MonitorId(row.try_get(1)?);
        monitors.entry(row.try_get(0)?).or_default().push(monitor);
    }
    let rows = scoped
        .query(
            "SELECT declared, at, phase, body, actor FROM declared_updates
             WHERE org_id = $1 AND declared = ANY($2) ORDER BY id DESC",
            &[&scoped.org(), &ids],
        )
        .await?;
    let mut updates: HashMap<i64, Vec<DeclaredUpdate>> = HashMap::new();
    for row in rows {
        let update = DeclaredUpdate {
            at: Timestamp(row.try_get(1)?),
            phase: PublicPhase::named(row.try_get(2)?).unwrap_or(PublicPhase::Investigating),
            body: row.try_get(3)?,
            actor: row.try_get(4)?,
        };
        updates.entry(row.try_get(0)?).or_default().push(update);
    }
    for declared in &mut all {
        declared.monitors = monitors.remove(&declared.id.0).unwrap_or_default();
        declared.updates = updates.remove(&declared.id.0).unwrap_or_default();
    }
    Ok(all)
}
