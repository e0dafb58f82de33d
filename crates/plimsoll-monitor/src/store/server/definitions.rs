//! Definitions of operators, and responses that may be repeated.

use tokio_postgres::Row;

use crate::store::StoreError;
use crate::store::accounts::NewAudit;
use crate::store::definitions::{
    Definition, DefinitionChanges, DefinitionKind, PutDefinition, Replay, ids_of,
};
use crate::store::server::accounts;
use crate::store::server::monitors::UPSERT;
use crate::store::server::postgres::Scoped;
use crate::time::Timestamp;

/// Source of monitors that the store defines.
const SOURCE: &str = "store";

/// A definition, and the number of its monitor.
type Written = (Definition, Option<i64>);

pub(super) async fn list(
    scoped: &Scoped<'_>,
    kind: DefinitionKind,
) -> Result<Vec<Written>, StoreError> {
    let rows = scoped
        .query(
            "SELECT d.key, d.version, d.text, d.created, d.changed, d.actor, COALESCE(d.external, d.key), m.id
             FROM definitions d LEFT JOIN monitors m
               ON d.kind = 'monitor' AND m.org_id = d.org_id AND m.key = d.key
             WHERE d.org_id = $1 AND d.kind = $2 ORDER BY d.key COLLATE \"C\"",
            &[&scoped.org(), &kind.name()],
        )
        .await?;
    let read = |row| Ok((read(row)?, row.try_get(7)?));
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Definition, StoreError> {
    Ok(Definition {
        key: row.try_get(0)?,
        version: row.try_get(1)?,
        text: row.try_get(2)?,
        created: Timestamp(row.try_get(3)?),
        changed: Timestamp(row.try_get(4)?),
        actor: row.try_get(5)?,
        id: row.try_get(6)?,
    })
}

/// Columns in the order in which [`read`] takes them.
const COLUMNS: &str = "key, version, text, created, changed, actor, COALESCE(external, key)";

pub(super) async fn one(
    scoped: &Scoped<'_>,
    kind: DefinitionKind,
    key: &str,
) -> Result<Option<Definition>, StoreError> {
    let sql =
        format!("SELECT {COLUMNS} FROM definitions WHERE org_id = $1 AND kind = $2 AND key = $3");
    let rows = scoped
        .query(&sql, &[&scoped.org(), &kind.name(), &key])
        .await?;
    rows.first().map(read).transpose()
}

pub(super) async fn by_id(
    scoped: &Scoped<'_>,
    kind: DefinitionKind,
    id: &str,
) -> Result<Option<Definition>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM definitions
         WHERE org_id = $1 AND kind = $2 AND COALESCE(external, key) = $3"
    );
    let rows = scoped
        .query(&sql, &[&scoped.org(), &kind.name(), &id])
        .await?;
    rows.first().map(read).transpose()
}

pub(super) async fn change(
    scoped: &Scoped<'_>,
    kind: DefinitionKind,
    changes: &DefinitionChanges,
    now: Timestamp,
) -> Result<Vec<Written>, StoreError> {
    for (key, version) in &changes.removals {
        let known = one(scoped, kind, key).await?;
        let known = known.ok_or(StoreError::NotFound("definition"))?;
        if version.is_some_and(|version| version != known.version) {
            return Err(StoreError::Conflict);
        }
        scoped
            .execute(
                "DELETE FROM definitions WHERE org_id = $1 AND kind = $2 AND key = $3",
                &[&scoped.org(), &kind.name(), &key],
            )
            .await?;
        if kind == DefinitionKind::Monitor {
            scoped
                .execute(
                    "UPDATE monitors SET retired = $4 WHERE org_id = $1 AND key = $2 AND source = $3",
                    &[&scoped.org(), &key, &SOURCE, &now.0],
                )
                .await?;
        }
    }
    let mut written = Vec::with_capacity(changes.puts.len());
    for put in &changes.puts {
        written.push(write(scoped, kind, put, &changes.audit, now).await?);
    }
    if let Some(replay) = &changes.replay {
        scoped
            .execute(
                "INSERT INTO replays (org_id, key, request, answer, at) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT DO NOTHING",
                &[
                    &scoped.org(),
                    &replay.key,
                    &replay.request.as_slice(),
                    &replay.answer,
                    &now.0,
                ],
            )
            .await?;
    }
    for entry in &changes.audit {
        accounts::record_audit(scoped, entry, now).await?;
    }
    Ok(written)
}

async fn write(
    scoped: &Scoped<'_>,
    kind: DefinitionKind,
    put: &PutDefinition,
    audit: &[NewAudit],
    now: Timestamp,
) -> Result<Written, StoreError> {
    let org = scoped.org();
    let actor = audit.first().map(|entry| entry.actor.as_str());
    let taken = one(scoped, kind, &put.key).await?;
    match &put.was {
        None if taken.is_some() => return Err(StoreError::Conflict),
        None => {
            let id = free_id(scoped, kind, put).await?;
            let external = (id != put.key).then_some(id);
            scoped
                .execute(
                    "INSERT INTO definitions (org_id, kind, key, version, text, created, changed, actor, external)
                     VALUES ($1, $2, $3, 1, $4, $5, $5, $6, $7)",
                    &[
                        &org,
                        &kind.name(),
                        &put.key,
                        &put.text,
                        &now.0,
                        &actor,
                        &external,
                    ],
                )
                .await?;
        }
        Some(was) => {
            let known = one(scoped, kind, was).await?;
            let known = known.ok_or(StoreError::NotFound("definition"))?;
            if put.version.is_some_and(|version| version != known.version)
                || (*was != put.key && taken.is_some())
            {
                return Err(StoreError::Conflict);
            }
            scoped
                .execute(
                    "UPDATE definitions SET key = $4, version = version + 1, text = $5, changed = $6, actor = $7,
                       external = CASE WHEN key = $4 THEN external ELSE COALESCE(external, key) END
                     WHERE org_id = $1 AND kind = $2 AND key = $3",
                    &[&org, &kind.name(), was, &put.key, &put.text, &now.0, &actor],
                )
                .await?;
            if *was != put.key && kind == DefinitionKind::Monitor {
                rename(scoped, was, &put.key).await?;
            }
        }
    }
    let monitor = match &put.monitor {
        None => None,
        Some(monitor) => {
            let row = scoped
                .one(
                    UPSERT,
                    &[
                        &org,
                        &monitor.key,
                        &monitor.name,
                        &monitor.group,
                        &monitor.kind,
                        &SOURCE,
                        &now.0,
                    ],
                )
                .await?;
            Some(row.try_get(0)?)
        }
    };
    let definition = one(scoped, kind, &put.key).await?;
    let definition = definition.ok_or(StoreError::NotFound("definition"))?;
    Ok((definition, monitor))
}

/// The id of a new definition: the one that the client chose, or one made of its key.
async fn free_id(
    scoped: &Scoped<'_>,
    kind: DefinitionKind,
    put: &PutDefinition,
) -> Result<String, StoreError> {
    if let Some(id) = &put.id {
        return match by_id(scoped, kind, id).await? {
            Some(_) => Err(StoreError::Conflict),
            None => Ok(id.clone()),
        };
    }
    for id in ids_of(&put.key) {
        if by_id(scoped, kind, &id).await?.is_none() {
            return Ok(id);
        }
    }
    Err(StoreError::Conflict)
}

/// The monitor keeps its number and so its history. A retired one that has the key steps aside.
async fn rename(scoped: &Scoped<'_>, from: &str, to: &str) -> Result<(), StoreError> {
    scoped
        .execute(
            "UPDATE monitors SET key = key || '~' || id
             WHERE org_id = $1 AND key = $2 AND retired IS NOT NULL",
            &[&scoped.org(), &to],
        )
        .await?;
    scoped
        .execute(
            "UPDATE monitors SET key = $3 WHERE org_id = $1 AND key = $2 AND source = $4",
            &[&scoped.org(), &from, &to, &SOURCE],
        )
        .await?;
    Ok(())
}

pub(super) async fn replay(scoped: &Scoped<'_>, key: &str) -> Result<Option<Replay>, StoreError> {
    let rows = scoped
        .query(
            "SELECT key, request, answer FROM replays WHERE org_id = $1 AND key = $2",
            &[&scoped.org(), &key],
        )
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let request: &[u8] = row.try_get(1)?;
    Ok(Some(Replay {
        key: row.try_get(0)?,
        request: request
            .try_into()
            .map_err(|_| StoreError::Database("a stored hash has another length".to_owned()))?,
        answer: row.try_get(2)?,
    }))
}
