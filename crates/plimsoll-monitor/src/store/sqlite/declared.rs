//! Declared incidents.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::store::declared::{
    Declared, DeclaredEdit, DeclaredId, DeclaredUpdate, Impact, NewDeclared, PublicPhase,
};
use crate::store::sqlite::monitors::owns;
use crate::store::types::{MonitorId, OrgId};
use crate::time::Timestamp;

/// Why nothing was declared or changed.
pub(super) enum Refusal {
    /// The incident, or a monitor, is not the organisation's.
    NotFound(&'static str),
    /// It has another version, or the key was used for another request.
    Conflict,
}

type Outcome = rusqlite::Result<Result<Declared, Refusal>>;

pub(super) fn declare(
    connection: &mut Connection,
    org: OrgId,
    new: &NewDeclared,
    now: Timestamp,
) -> Outcome {
    let transaction = connection.transaction()?;
    if let Some((key, request)) = &new.idempotency {
        let known: Option<(i64, Vec<u8>)> = transaction
            .query_row(
                "SELECT id, request FROM declared WHERE org = ?1 AND idempotency = ?2",
                params![org.0, key],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        if let Some((id, known)) = known {
            let found = one(&transaction, org, DeclaredId(id))?;
            return Ok(found.filter(|_| known == *request).ok_or(Refusal::Conflict));
        }
    }
    let (key, request) = match &new.idempotency {
        Some((key, request)) => (Some(key), Some(request.as_slice())),
        None => (None, None),
    };
    let resolved = new.phase.is_over().then_some(now.0.max(new.started.0));
    transaction.execute(
        "INSERT INTO declared
         (org, version, title, phase, impact, counts, started, resolved, changed, idempotency, request)
         VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            org.0,
            new.title,
            new.phase.name(),
            new.impact.name(),
            new.counts_as_downtime,
            new.started.0,
            resolved,
            now.0,
            key,
            request,
        ],
    )?;
    let id = DeclaredId(transaction.last_insert_rowid());
    if !affect(&transaction, org, id, &new.monitors)? {
        return Ok(Err(Refusal::NotFound("monitor")));
    }
    write_update(
        &transaction,
        id,
        now,
        new.phase,
        &new.body,
        new.actor.as_deref(),
    )?;
    let declared = one(&transaction, org, id)?;
    transaction.commit()?;
    Ok(declared.ok_or(Refusal::NotFound("declared incident")))
}

pub(super) fn edit(
    connection: &mut Connection,
    org: OrgId,
    id: DeclaredId,
    edit: &DeclaredEdit,
    now: Timestamp,
) -> Outcome {
    let transaction = connection.transaction()?;
    let Some(known) = one(&transaction, org, id)? else {
        return Ok(Err(Refusal::NotFound("declared incident")));
    };
    if edit.version.is_some_and(|version| version != known.version) {
        return Ok(Err(Refusal::Conflict));
    }
    let phase = edit.phase.unwrap_or(known.phase);
    let resolved = match (phase.is_over(), known.resolved) {
        (false, _) => None,
        (true, Some(resolved)) => Some(resolved),
        (true, None) => Some(now.max(known.started)),
    };
    transaction.execute(
        "UPDATE declared SET version = version + 1, title = ?3, phase = ?4, impact = ?5, counts = ?6,
           resolved = ?7, changed = ?8
         WHERE org = ?1 AND id = ?2",
        params![
            org.0,
            id.0,
            edit.title.as_ref().unwrap_or(&known.title),
            phase.name(),
            edit.impact.unwrap_or(known.impact).name(),
            edit.counts_as_downtime.unwrap_or(known.counts_as_downtime),
            resolved.map(|at| at.0),
            now.0,
        ],
    )?;
    if let Some(monitors) = &edit.monitors {
        transaction.execute("DELETE FROM declared_monitors WHERE declared = ?1", [id.0])?;
        if !affect(&transaction, org, id, monitors)? {
            return Ok(Err(Refusal::NotFound("monitor")));
        }
    }
    if edit.body.is_some() || phase != known.phase {
        let body = edit.body.as_deref().unwrap_or_default();
        write_update(&transaction, id, now, phase, body, edit.actor.as_deref())?;
    }
    let declared = one(&transaction, org, id)?;
    transaction.commit()?;
    Ok(declared.ok_or(Refusal::NotFound("declared incident")))
}

/// False if a monitor is not the organisation's.
fn affect(
    transaction: &Transaction<'_>,
    org: OrgId,
    id: DeclaredId,
    monitors: &[MonitorId],
) -> rusqlite::Result<bool> {
    for monitor in monitors {
        if !owns(transaction, org, *monitor)? {
            return Ok(false);
        }
        transaction.execute(
            "INSERT OR IGNORE INTO declared_monitors (declared, monitor) VALUES (?1, ?2)",
            params![id.0, monitor.0],
        )?;
    }
    Ok(true)
}

fn write_update(
    transaction: &Transaction<'_>,
    id: DeclaredId,
    at: Timestamp,
    phase: PublicPhase,
    body: &str,
    actor: Option<&str>,
) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO declared_updates (declared, at, phase, body, actor) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id.0, at.0, phase.name(), body, actor],
    )?;
    Ok(())
}

const COLUMNS: &str = "id, version, title, phase, impact, counts, started, resolved, changed";

pub(super) fn one(
    connection: &Connection,
    org: OrgId,
    id: DeclaredId,
) -> rusqlite::Result<Option<Declared>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM declared WHERE org = ?1 AND id = ?2"
    ))?;
    let found = statement.query_row(params![org.0, id.0], read).optional()?;
    found.map(|found| complete(connection, found)).transpose()
}

/// The newest first: those before `before` that are not over, or were over after `since`.
pub(super) fn list(
    connection: &Connection,
    org: OrgId,
    since: Timestamp,
    before: Option<DeclaredId>,
    limit: usize,
) -> rusqlite::Result<Vec<Declared>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM declared
         WHERE org = ?1 AND (resolved IS NULL OR resolved >= ?2) AND id < ?3 ORDER BY id DESC LIMIT ?4"
    ))?;
    let values = params![
        org.0,
        since.0,
        before.map_or(i64::MAX, |before| before.0),
        i64::try_from(limit).unwrap_or(i64::MAX),
    ];
    let rows = statement.query_map(values, read)?;
    rows.map(|row| complete(connection, row?)).collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Declared> {
    let (phase, impact): (String, String) = (row.get(3)?, row.get(4)?);
    let resolved: Option<i64> = row.get(7)?;
    Ok(Declared {
        id: DeclaredId(row.get(0)?),
        version: row.get(1)?,
        title: row.get(2)?,
        phase: PublicPhase::named(&phase).unwrap_or(PublicPhase::Investigating),
        impact: Impact::named(&impact).unwrap_or(Impact::None),
        counts_as_downtime: row.get(5)?,
        started: Timestamp(row.get(6)?),
        resolved: resolved.map(Timestamp),
        changed: Timestamp(row.get(8)?),
        monitors: Vec::new(),
        updates: Vec::new(),
    })
}

/// Reads what stands in other tables.
fn complete(connection: &Connection, mut declared: Declared) -> rusqlite::Result<Declared> {
    let mut monitors = connection.prepare_cached(
        "SELECT monitor FROM declared_monitors WHERE declared = ?1 ORDER BY monitor",
    )?;
    let found = monitors.query_map([declared.id.0], |row| Ok(MonitorId(row.get(0)?)))?;
    declared.monitors = found.collect::<rusqlite::Result<_>>()?;
    let mut updates = connection.prepare_cached(
        "SELECT at, phase, body, actor FROM declared_updates WHERE declared = ?1 ORDER BY id DESC",
    )?;
    let found = updates.query_map([declared.id.0], |row| {
        let phase: String = row.get(1)?;
        Ok(DeclaredUpdate {
            at: Timestamp(row.get(0)?),
            phase: PublicPhase::named(&phase).unwrap_or(PublicPhase::Investigating),
            body: row.get(2)?,
            actor: row.get(3)?,
        })
    })?;
    declared.updates = found.collect::<rusqlite::Result<_>>()?;
    Ok(declared)
}
