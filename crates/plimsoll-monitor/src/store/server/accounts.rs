//! Users, sessions, tokens of the API, and the audit log.

use plimsoll_model::Secret;
use tokio_postgres::Row;

use crate::store::StoreError;
use crate::store::accounts::{
    AuditEntry, NewAudit, NewSession, NewToken, Role, Scope, Session, SessionChoice, StoredToken,
    TotpSecret, User, UserEdit, UserId,
};
use crate::store::server::postgres::{Scoped, row_limit};
use crate::time::Timestamp;

/// The columns of a user, from position `at` of a row.
fn read_user(row: &Row, at: usize) -> Result<User, StoreError> {
    let totp: Option<Vec<u8>> = row.try_get(at + 5)?;
    let seen: Option<i64> = row.try_get(at + 7)?;
    let password: String = row.try_get(at + 3)?;
    Ok(User {
        id: UserId(row.try_get(at)?),
        name: row.try_get(at + 1)?,
        // A role of a newer version may do nothing that is not known here.
        role: Role::named(row.try_get(at + 2)?).unwrap_or(Role::Viewer),
        password: Secret::new(password),
        must_change: row.try_get(at + 4)?,
        totp: totp.map(TotpSecret),
        created: Timestamp(row.try_get(at + 6)?),
        seen: seen.map(Timestamp),
    })
}

pub(super) async fn add_user(
    scoped: &Scoped<'_>,
    name: &str,
    role: Role,
    (password, must_change): (&str, bool),
    only_first: bool,
    now: Timestamp,
) -> Result<UserId, StoreError> {
    let row = scoped
        .one(
            "SELECT EXISTS (SELECT 1 FROM users WHERE org_id = $1 AND ($3 OR name = $2))",
            &[&scoped.org(), &name, &only_first],
        )
        .await?;
    if row.try_get(0)? {
        return Err(StoreError::Conflict);
    }
    let row = scoped
        .one(
            "INSERT INTO users (org_id, name, role, password, must_change, created)
             VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
            &[
                &scoped.org(),
                &name,
                &role.name(),
                &password,
                &must_change,
                &now.0,
            ],
        )
        .await?;
    Ok(UserId(row.try_get(0)?))
}

pub(super) async fn users(scoped: &Scoped<'_>) -> Result<Vec<User>, StoreError> {
    let rows = scoped
        .query(
            "SELECT id, name, role, password, must_change, totp, created, seen FROM users
             WHERE org_id = $1 ORDER BY name COLLATE \"C\"",
            &[&scoped.org()],
        )
        .await?;
    rows.iter().map(|row| read_user(row, 0)).collect()
}

async fn role_of(scoped: &Scoped<'_>, user: UserId) -> Result<Option<String>, StoreError> {
    let rows = scoped
        .query(
            "SELECT role FROM users WHERE org_id = $1 AND id = $2",
            &[&scoped.org(), &user.0],
        )
        .await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
}

/// Fails with [`StoreError::Conflict`] if no other owner than this user is left.
async fn require_other_owner(scoped: &Scoped<'_>, user: UserId) -> Result<(), StoreError> {
    let row = scoped
        .one(
            "SELECT EXISTS (SELECT 1 FROM users WHERE org_id = $1 AND role = 'owner' AND id <> $2)",
            &[&scoped.org(), &user.0],
        )
        .await?;
    if row.try_get(0)? {
        Ok(())
    } else {
        Err(StoreError::Conflict)
    }
}

pub(super) async fn edit_user(
    scoped: &Scoped<'_>,
    user: UserId,
    edit: &UserEdit,
) -> Result<bool, StoreError> {
    let Some(role) = role_of(scoped, user).await? else {
        return Ok(false);
    };
    let org = scoped.org();
    if let Some(new) = edit.role {
        if role == Role::Owner.name() && new != Role::Owner {
            require_other_owner(scoped, user).await?;
        }
        let sql = "UPDATE users SET role = $3 WHERE org_id = $1 AND id = $2";
        scoped.execute(sql, &[&org, &user.0, &new.name()]).await?;
    }
    if let Some((password, must_change)) = &edit.password {
        let sql = "UPDATE users SET password = $3, must_change = $4 WHERE org_id = $1 AND id = $2";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&org, &user.0, password, must_change];
        scoped.execute(sql, &values).await?;
    }
    if let Some(totp) = &edit.totp {
        let sql = "UPDATE users SET totp = $3, totp_step = 0 WHERE org_id = $1 AND id = $2";
        let totp = totp.as_ref().map(|secret| &secret.0);
        scoped.execute(sql, &[&org, &user.0, &totp]).await?;
    }
    if let Some(seen) = edit.seen {
        let sql = "UPDATE users SET seen = $3 WHERE org_id = $1 AND id = $2";
        scoped.execute(sql, &[&org, &user.0, &seen.0]).await?;
    }
    if edit.ends_sessions {
        let sql = "DELETE FROM sessions WHERE org_id = $1 AND user_id = $2";
        scoped.execute(sql, &[&org, &user.0]).await?;
    }
    Ok(true)
}

pub(super) async fn remove_user(scoped: &Scoped<'_>, user: UserId) -> Result<bool, StoreError> {
    let Some(role) = role_of(scoped, user).await? else {
        return Ok(false);
    };
    if role == Role::Owner.name() {
        require_other_owner(scoped, user).await?;
    }
    let sql = "DELETE FROM users WHERE org_id = $1 AND id = $2";
    scoped.execute(sql, &[&scoped.org(), &user.0]).await?;
    Ok(true)
}

pub(super) async fn use_totp_step(
    scoped: &Scoped<'_>,
    user: UserId,
    step: i64,
) -> Result<bool, StoreError> {
    let changed = scoped
        .execute(
            "UPDATE users SET totp_step = $3 WHERE org_id = $1 AND id = $2 AND totp_step < $3",
            &[&scoped.org(), &user.0, &step],
        )
        .await?;
    Ok(changed > 0)
}

pub(super) async fn open_session(
    scoped: &Scoped<'_>,
    session: &NewSession,
    now: Timestamp,
) -> Result<(), StoreError> {
    let NewSession {
        user,
        hash,
        until,
        address,
        agent,
    } = session;
    scoped
        .execute(
            "INSERT INTO sessions (org_id, user_id, hash, created, seen, until, address, agent)
             SELECT $1, id, $3, $4, $4, $5, $6, $7 FROM users WHERE org_id = $1 AND id = $2",
            &[
                &scoped.org(),
                &user.0,
                &hash.as_slice(),
                &now.0,
                &until.0,
                address,
                agent,
            ],
        )
        .await?;
    Ok(())
}

fn read_session(row: &Row) -> Result<Session, StoreError> {
    Ok(Session {
        id: row.try_get(0)?,
        user: UserId(row.try_get(1)?),
        created: Timestamp(row.try_get(2)?),
        seen: Timestamp(row.try_get(3)?),
        until: Timestamp(row.try_get(4)?),
        address: row.try_get(5)?,
        agent: row.try_get(6)?,
    })
}

/// The session of a cookie; notes that it was used.
pub(super) async fn session(
    scoped: &Scoped<'_>,
    hash: [u8; 32],
    now: Timestamp,
) -> Result<Option<(Session, User)>, StoreError> {
    let rows = scoped
        .query(
            "SELECT s.id, s.user_id, s.created, s.seen, s.until, s.address, s.agent,
                 u.id, u.name, u.role, u.password, u.must_change, u.totp, u.created, u.seen
             FROM sessions s JOIN users u ON u.id = s.user_id
             WHERE s.org_id = $1 AND u.org_id = $1 AND s.hash = $2 AND s.until > $3",
            &[&scoped.org(), &hash.as_slice(), &now.0],
        )
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let session = read_session(row)?;
    if session.is_to_touch(now) {
        let sql = "UPDATE sessions SET seen = $3 WHERE org_id = $1 AND id = $2";
        scoped
            .execute(sql, &[&scoped.org(), &session.id, &now.0])
            .await?;
    }
    Ok(Some((session, read_user(row, 7)?)))
}

pub(super) async fn sessions(
    scoped: &Scoped<'_>,
    user: UserId,
    now: Timestamp,
) -> Result<Vec<Session>, StoreError> {
    let rows = scoped
        .query(
            "SELECT id, user_id, created, seen, until, address, agent FROM sessions
             WHERE org_id = $1 AND user_id = $2 AND until > $3 ORDER BY id DESC",
            &[&scoped.org(), &user.0, &now.0],
        )
        .await?;
    rows.iter().map(read_session).collect()
}

pub(super) async fn end_sessions(
    scoped: &Scoped<'_>,
    user: UserId,
    which: SessionChoice,
) -> Result<usize, StoreError> {
    let (sql, id) = match which {
        SessionChoice::One(id) => (
            "DELETE FROM sessions WHERE org_id = $1 AND user_id = $2 AND id = $3",
            id,
        ),
        SessionChoice::AllBut(id) => (
            "DELETE FROM sessions WHERE org_id = $1 AND user_id = $2 AND id <> $3",
            id,
        ),
    };
    let ended = scoped.execute(sql, &[&scoped.org(), &user.0, &id]).await?;
    Ok(usize::try_from(ended).unwrap_or(usize::MAX))
}

pub(super) async fn add_token(
    scoped: &Scoped<'_>,
    token: &NewToken,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let row = scoped
        .one(
            "INSERT INTO api_tokens (org_id, name, hash, scope, created, creator, until)
             VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
            &[
                &scoped.org(),
                &token.name,
                &token.hash.as_slice(),
                &token.scope.name(),
                &now.0,
                &token.creator,
                &token.until.map(|until| until.0),
            ],
        )
        .await?;
    Ok(row.try_get(0)?)
}

pub(super) async fn tokens(scoped: &Scoped<'_>) -> Result<Vec<StoredToken>, StoreError> {
    let rows = scoped
        .query(
            "SELECT id, name, hash, scope, created, creator, until, revoked FROM api_tokens
             WHERE org_id = $1 ORDER BY id DESC",
            &[&scoped.org()],
        )
        .await?;
    let read = |row: &Row| {
        let hash: &[u8] = row.try_get(2)?;
        let (until, revoked): (Option<i64>, Option<i64>) = (row.try_get(6)?, row.try_get(7)?);
        let creator: Option<String> = row.try_get(5)?;
        Ok(StoredToken {
            id: row.try_get(0)?,
            token: NewToken {
                name: row.try_get(1)?,
                hash: hash.try_into().map_err(|_| {
                    StoreError::Database("a stored hash has another length".to_owned())
                })?,
                scope: Scope::named(row.try_get(3)?).unwrap_or(Scope::Read),
                until: until.map(Timestamp),
                creator: creator.unwrap_or_default(),
            },
            created: Timestamp(row.try_get(4)?),
            revoked: revoked.map(Timestamp),
        })
    };
    rows.iter().map(read).collect()
}

pub(super) async fn revoke_token(
    scoped: &Scoped<'_>,
    token: i64,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed = scoped
        .execute(
            "UPDATE api_tokens SET revoked = $3 WHERE org_id = $1 AND id = $2 AND revoked IS NULL",
            &[&scoped.org(), &token, &now.0],
        )
        .await?;
    Ok(changed > 0)
}

pub(super) async fn record_audit(
    scoped: &Scoped<'_>,
    entry: &NewAudit,
    now: Timestamp,
) -> Result<(), StoreError> {
    let NewAudit {
        actor,
        address,
        action,
        object,
        detail,
    } = entry;
    scoped
        .execute(
            "INSERT INTO audit (org_id, at, actor, address, action, object, detail)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[
                &scoped.org(),
                &now.0,
                actor,
                address,
                action,
                object,
                detail,
            ],
        )
        .await?;
    Ok(())
}

pub(super) async fn audit(
    scoped: &Scoped<'_>,
    before: Option<i64>,
    limit: usize,
) -> Result<Vec<AuditEntry>, StoreError> {
    let before = before.unwrap_or(i64::MAX);
    let rows = scoped
        .query(
            "SELECT id, at, actor, address, action, object, detail FROM audit
             WHERE org_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
            &[&scoped.org(), &before, &row_limit(limit)],
        )
        .await?;
    let read = |row: &Row| {
        Ok(AuditEntry {
            id: row.try_get(0)?,
            at: Timestamp(row.try_get(1)?),
            entry: NewAudit {
                actor: row.try_get(2)?,
                address: row.try_get(3)?,
                action: row.try_get(4)?,
                object: row.try_get(5)?,
                detail: row.try_get(6)?,
            },
        })
    };
    rows.iter().map(read).collect()
}
