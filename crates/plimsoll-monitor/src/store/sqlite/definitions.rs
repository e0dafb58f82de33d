//! Definitions of operators, and responses that may be repeated.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::store::definitions::{
    Definition, DefinitionChanges, DefinitionKind, PutDefinition, Replay, ids_of,
};
use crate::store::sqlite::accounts;
use crate::store::sqlite::declared::Refusal;
use crate::store::types::OrgId;
use crate::time::Timestamp;

/// Who defines monitors in the store.
const SOURCE: &str = "store";

type Written = Vec<(Definition, Option<i64>)>;

pub(super) fn list(
    connection: &Connection,
    org: OrgId,
    kind: DefinitionKind,
) -> rusqlite::Result<Written> {
    let mut statement = connection.prepare_cached(
        "SELECT d.key, d.version, d.text, d.created, d.changed, d.actor, COALESCE(d.external, d.key), m.id
         FROM definitions d LEFT JOIN monitors m
           ON d.kind = 'monitor' AND m.org = d.org_id AND m.key = d.key
         WHERE d.org_id = ?1 AND d.kind = ?2 ORDER BY d.key",
    )?;
    let rows = statement.query_map(params![org.0, kind.name()], |row| {
        Ok((read(row)?, row.get(7)?))
    })?;
    rows.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Definition> {
    Ok(Definition {
        key: row.get(0)?,
        version: row.get(1)?,
        text: row.get(2)?,
        created: Timestamp(row.get(3)?),
        changed: Timestamp(row.get(4)?),
        actor: row.get(5)?,
        id: row.get(6)?,
    })
}

/// Columns in the order in which [`read`] takes them.
const COLUMNS: &str = "key, version, text, created, changed, actor, COALESCE(external, key)";

pub(super) fn one(
    connection: &Connection,
    org: OrgId,
    kind: DefinitionKind,
    key: &str,
) -> rusqlite::Result<Option<Definition>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM definitions WHERE org_id = ?1 AND kind = ?2 AND key = ?3"
    ))?;
    statement
        .query_row(params![org.0, kind.name(), key], read)
        .optional()
}

pub(super) fn by_id(
    connection: &Connection,
    org: OrgId,
    kind: DefinitionKind,
    id: &str,
) -> rusqlite::Result<Option<Definition>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM definitions
         WHERE org_id = ?1 AND kind = ?2 AND COALESCE(external, key) = ?3"
    ))?;
    statement
        .query_row(params![org.0, kind.name(), id], read)
        .optional()
}

pub(super) fn change(
    connection: &mut Connection,
    org: OrgId,
    kind: DefinitionKind,
    changes: &DefinitionChanges,
    now: Timestamp,
) -> rusqlite::Result<Result<Written, Refusal>> {
    let transaction = connection.transaction()?;
    for (key, version) in &changes.removals {
        let Some(known) = one(&transaction, org, kind, key)? else {
            return Ok(Err(Refusal::NotFound("definition")));
        };
        if version.is_some_and(|version| version != known.version) {
            return Ok(Err(Refusal::Conflict));
        }
        transaction.execute(
            "DELETE FROM definitions WHERE org_id = ?1 AND kind = ?2 AND key = ?3",
            params![org.0, kind.name(), key],
        )?;
        if kind == DefinitionKind::Monitor {
            transaction.execute(
                "UPDATE monitors SET retired = ?4 WHERE org = ?1 AND key = ?2 AND source = ?3",
                params![org.0, key, SOURCE, now.0],
            )?;
        }
    }
    let mut written = Vec::with_capacity(changes.puts.len());
    for put in &changes.puts {
        match write(&transaction, org, kind, put, &changes.audit, now)? {
            Ok(one) => written.push(one),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    if let Some(replay) = &changes.replay {
        let values = params![org.0, replay.key, replay.request, replay.answer, now.0];
        transaction.execute(
            "INSERT INTO replays (org_id, key, request, answer, at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO NOTHING",
            values,
        )?;
    }
    for entry in &changes.audit {
        accounts::record_audit(&transaction, org, entry, now)?;
    }
    transaction.commit()?;
    Ok(Ok(written))
}

fn write(
    transaction: &Transaction<'_>,
    org: OrgId,
    kind: DefinitionKind,
    put: &PutDefinition,
    audit: &[crate::store::NewAudit],
    now: Timestamp,
) -> rusqlite::Result<Result<(Definition, Option<i64>), Refusal>> {
    let actor = audit.first().map(|entry| entry.actor.as_str());
    let taken = one(transaction, org, kind, &put.key)?;
    let version = match &put.was {
        None if taken.is_some() => return Ok(Err(Refusal::Conflict)),
        None => {
            let Some(id) = free_id(transaction, org, kind, put)? else {
                return Ok(Err(Refusal::Conflict));
            };
            let external = (id != put.key).then_some(id);
            transaction
                .prepare_cached(
                    "INSERT INTO definitions (org_id, kind, key, version, text, created, changed, actor, external)
                     VALUES (?1, ?2, ?3, 1, ?4, ?5, ?5, ?6, ?7)",
                )?
                .execute(params![org.0, kind.name(), put.key, put.text, now.0, actor, external])?;
            1
        }
        Some(was) => {
            let Some(known) = one(transaction, org, kind, was)? else {
                return Ok(Err(Refusal::NotFound("definition")));
            };
            if put.version.is_some_and(|version| version != known.version)
                || (*was != put.key && taken.is_some())
            {
                return Ok(Err(Refusal::Conflict));
            }
            transaction
                .prepare_cached(
                    "UPDATE definitions SET key = ?4, version = version + 1, text = ?5, changed = ?6, actor = ?7,
                       external = CASE WHEN key = ?4 THEN external ELSE COALESCE(external, key) END
                     WHERE org_id = ?1 AND kind = ?2 AND key = ?3",
                )?
                .execute(params![org.0, kind.name(), was, put.key, put.text, now.0, actor])?;
            if *was != put.key && kind == DefinitionKind::Monitor {
                rename(transaction, org, was, &put.key)?;
            }
            known.version + 1
        }
    };
    let monitor = match &put.monitor {
        None => None,
        Some(monitor) => {
            let mut upsert = transaction.prepare_cached(
                "INSERT INTO monitors (org, key, name, grp, kind, source, created)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (org, key) DO UPDATE
                 SET name = excluded.name, grp = excluded.grp, kind = excluded.kind,
                     source = excluded.source, retired = NULL
                 RETURNING id",
            )?;
            let values = params![
                org.0,
                monitor.key,
                monitor.name,
                monitor.group,
                monitor.kind,
                SOURCE,
                now.0
            ];
            Some(upsert.query_row(values, |row| row.get(0))?)
        }
    };
    let definition = one(transaction, org, kind, &put.key)?;
    debug_assert!(definition.as_ref().is_some_and(|it| it.version == version));
    Ok(definition
        .map(|definition| (definition, monitor))
        .ok_or(Refusal::NotFound("definition")))
}

/// The id of a new definition: the one that the client chose, or one made of its key; `None` if it is in use.
fn free_id(
    transaction: &Transaction<'_>,
    org: OrgId,
    kind: DefinitionKind,
    put: &PutDefinition,
) -> rusqlite::Result<Option<String>> {
    if let Some(id) = &put.id {
        let taken = by_id(transaction, org, kind, id)?;
        return Ok(taken.is_none().then(|| id.clone()));
    }
    for id in ids_of(&put.key) {
        if by_id(transaction, org, kind, &id)?.is_none() {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The monitor keeps its number and so its history. A retired one that has the key steps aside.
fn rename(transaction: &Transaction<'_>, org: OrgId, from: &str, to: &str) -> rusqlite::Result<()> {
    transaction.execute(
        "UPDATE monitors SET key = key || '~' || id WHERE org = ?1 AND key = ?2 AND retired IS NOT NULL",
        params![org.0, to],
    )?;
    transaction.execute(
        "UPDATE monitors SET key = ?3 WHERE org = ?1 AND key = ?2 AND source = ?4",
        params![org.0, from, to, SOURCE],
    )?;
    Ok(())
}

pub(super) fn replay(
    connection: &Connection,
    org: OrgId,
    key: &str,
) -> rusqlite::Result<Option<Replay>> {
    let mut statement = connection.prepare_cached(
        "SELECT key, request, answer FROM replays WHERE org_id = ?1 AND key = ?2",
    )?;
    statement
        .query_row(params![org.0, key], |row| {
            Ok(Replay {
                key: row.get(0)?,
                request: row.get(1)?,
                answer: row.get(2)?,
            })
        })
        .optional()
}

/// Deletes responses that were given before a date.
pub(super) fn prune(connection: &Connection, before: Timestamp) -> rusqlite::Result<usize> {
    connection.execute("DELETE FROM replays WHERE at < ?1", [before.0])
}
