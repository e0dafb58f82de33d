//! Users, sessions, tokens of the API, and the audit log.

use plimsoll_model::Secret;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::store::accounts::{
    AuditEntry, NewAudit, NewSession, NewToken, Role, Scope, Session, SessionChoice, StoredToken,
    TotpSecret, User, UserEdit, UserId,
};
use crate::store::sqlite::declared::Refusal;
use crate::store::types::OrgId;
use crate::time::Timestamp;

const USER: &str = "u.id, u.name, u.role, u.password, u.must_change, u.totp, u.created, u.seen";

fn read_user(row: &Row<'_>, at: usize) -> rusqlite::Result<User> {
    let role: String = row.get(at + 2)?;
    let totp: Option<Vec<u8>> = row.get(at + 5)?;
    let seen: Option<i64> = row.get(at + 7)?;
    let password: String = row.get(at + 3)?;
    Ok(User {
        id: UserId(row.get(at)?),
        name: row.get(at + 1)?,
        // A role of a newer version may do nothing that is not known here.
        role: Role::named(&role).unwrap_or(Role::Viewer),
        password: Secret::new(password),
        must_change: row.get(at + 4)?,
        totp: totp.map(TotpSecret),
        created: Timestamp(row.get(at + 6)?),
        seen: seen.map(Timestamp),
    })
}

pub(super) fn add_user(
    connection: &mut Connection,
    org: OrgId,
    name: &str,
    role: Role,
    (password, must_change): (&str, bool),
    only_first: bool,
    now: Timestamp,
) -> rusqlite::Result<Result<UserId, Refusal>> {
    let transaction = connection.transaction()?;
    let clash: bool = transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM users WHERE org_id = ?1 AND (?3 OR name = ?2))",
        params![org.0, name, only_first],
        |row| row.get(0),
    )?;
    if clash {
        return Ok(Err(Refusal::Conflict));
    }
    transaction.execute(
        "INSERT INTO users (org_id, name, role, password, must_change, created)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![org.0, name, role.name(), password, must_change, now.0],
    )?;
    let id = UserId(transaction.last_insert_rowid());
    transaction.commit()?;
    Ok(Ok(id))
}

pub(super) fn users(connection: &Connection, org: OrgId) -> rusqlite::Result<Vec<User>> {
    let sql = format!("SELECT {USER} FROM users u WHERE u.org_id = ?1 ORDER BY u.name");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([org.0], |row| read_user(row, 0))?;
    rows.collect()
}

/// Whether another owner than this user is left.
fn has_other_owner(
    transaction: &Transaction<'_>,
    org: OrgId,
    user: UserId,
) -> rusqlite::Result<bool> {
    transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM users WHERE org_id = ?1 AND role = 'owner' AND id <> ?2)",
        params![org.0, user.0],
        |row| row.get(0),
    )
}

fn role_of(
    transaction: &Transaction<'_>,
    org: OrgId,
    user: UserId,
) -> rusqlite::Result<Option<String>> {
    transaction
        .query_row(
            "SELECT role FROM users WHERE org_id = ?1 AND id = ?2",
            params![org.0, user.0],
            |row| row.get(0),
        )
        .optional()
}

pub(super) fn edit_user(
    connection: &mut Connection,
    org: OrgId,
    user: UserId,
    edit: &UserEdit,
) -> rusqlite::Result<Result<bool, Refusal>> {
    let transaction = connection.transaction()?;
    let Some(role) = role_of(&transaction, org, user)? else {
        return Ok(Ok(false));
    };
    if let Some(new) = edit.role {
        if role == Role::Owner.name()
            && new != Role::Owner
            && !has_other_owner(&transaction, org, user)?
        {
            return Ok(Err(Refusal::Conflict));
        }
        transaction.execute(
            "UPDATE users SET role = ?2 WHERE id = ?1",
            params![user.0, new.name()],
        )?;
    }
    if let Some((password, must_change)) = &edit.password {
        transaction.execute(
            "UPDATE users SET password = ?2, must_change = ?3 WHERE id = ?1",
            params![user.0, password, must_change],
        )?;
    }
    if let Some(totp) = &edit.totp {
        transaction.execute(
            "UPDATE users SET totp = ?2, totp_step = 0 WHERE id = ?1",
            params![user.0, totp.as_ref().map(|secret| &secret.0)],
        )?;
    }
    if let Some(seen) = edit.seen {
        transaction.execute(
            "UPDATE users SET seen = ?2 WHERE id = ?1",
            params![user.0, seen.0],
        )?;
    }
    if edit.ends_sessions {
        transaction.execute("DELETE FROM sessions WHERE user = ?1", [user.0])?;
    }
    transaction.commit()?;
    Ok(Ok(true))
}

pub(super) fn remove_user(
    connection: &mut Connection,
    org: OrgId,
    user: UserId,
) -> rusqlite::Result<Result<bool, Refusal>> {
    let transaction = connection.transaction()?;
    let Some(role) = role_of(&transaction, org, user)? else {
        return Ok(Ok(false));
    };
    if role == Role::Owner.name() && !has_other_owner(&transaction, org, user)? {
        return Ok(Err(Refusal::Conflict));
    }
    transaction.execute("DELETE FROM users WHERE id = ?1", [user.0])?;
    transaction.commit()?;
    Ok(Ok(true))
}

pub(super) fn use_totp_step(
    connection: &Connection,
    org: OrgId,
    user: UserId,
    step: i64,
) -> rusqlite::Result<bool> {
    let changed = connection.execute(
        "UPDATE users SET totp_step = ?3 WHERE org_id = ?1 AND id = ?2 AND totp_step < ?3",
        params![org.0, user.0, step],
    )?;
    Ok(changed > 0)
}

pub(super) fn open_session(
    connection: &Connection,
    org: OrgId,
    session: &NewSession,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let NewSession {
        user,
        hash,
        until,
        address,
        agent,
    } = session;
    connection.execute(
        "INSERT INTO sessions (org_id, user, hash, created, seen, until, address, agent)
         SELECT ?1, id, ?3, ?4, ?4, ?5, ?6, ?7 FROM users WHERE org_id = ?1 AND id = ?2",
        params![org.0, user.0, hash, now.0, until.0, address, agent],
    )?;
    Ok(())
}

const SESSION: &str = "s.id, s.user, s.created, s.seen, s.until, s.address, s.agent";

fn read_session(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: row.get(0)?,
        user: UserId(row.get(1)?),
        created: Timestamp(row.get(2)?),
        seen: Timestamp(row.get(3)?),
        until: Timestamp(row.get(4)?),
        address: row.get(5)?,
        agent: row.get(6)?,
    })
}

/// Only reads: see [`touch_session`].
pub(super) fn session(
    connection: &Connection,
    org: OrgId,
    hash: [u8; 32],
    now: Timestamp,
) -> rusqlite::Result<Option<(Session, User)>> {
    let sql = format!(
        "SELECT {SESSION}, {USER} FROM sessions s JOIN users u ON u.id = s.user
         WHERE s.org_id = ?1 AND u.org_id = ?1 AND s.hash = ?2 AND s.until > ?3"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_row(params![org.0, hash, now.0], |row| {
            Ok((read_session(row)?, read_user(row, 7)?))
        })
        .optional()
}

pub(super) fn touch_session(
    connection: &Connection,
    session: i64,
    now: Timestamp,
) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE sessions SET seen = ?2 WHERE id = ?1",
        params![session, now.0],
    )?;
    Ok(())
}

pub(super) fn sessions(
    connection: &Connection,
    org: OrgId,
    user: UserId,
    now: Timestamp,
) -> rusqlite::Result<Vec<Session>> {
    let sql = format!(
        "SELECT {SESSION} FROM sessions s
         WHERE s.org_id = ?1 AND s.user = ?2 AND s.until > ?3 ORDER BY s.id DESC"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![org.0, user.0, now.0], read_session)?;
    rows.collect()
}

pub(super) fn end_sessions(
    connection: &Connection,
    org: OrgId,
    user: UserId,
    which: SessionChoice,
) -> rusqlite::Result<usize> {
    let (sql, id) = match which {
        SessionChoice::One(id) => (
            "DELETE FROM sessions WHERE org_id = ?1 AND user = ?2 AND id = ?3",
            id,
        ),
        SessionChoice::AllBut(id) => (
            "DELETE FROM sessions WHERE org_id = ?1 AND user = ?2 AND id <> ?3",
            id,
        ),
    };
    connection.execute(sql, params![org.0, user.0, id])
}

pub(super) fn add_token(
    connection: &Connection,
    org: OrgId,
    token: &NewToken,
    now: Timestamp,
) -> rusqlite::Result<i64> {
    connection.execute(
        "INSERT INTO api_tokens (org_id, name, hash, scope, created, creator, until)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            org.0,
            token.name,
            token.hash,
            token.scope.name(),
            now.0,
            token.creator,
            token.until.map(|until| until.0),
        ],
    )?;
    Ok(connection.last_insert_rowid())
}

pub(super) fn tokens(connection: &Connection, org: OrgId) -> rusqlite::Result<Vec<StoredToken>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, name, hash, scope, created, creator, until, revoked FROM api_tokens
         WHERE org_id = ?1 ORDER BY id DESC",
    )?;
    let rows = statement.query_map([org.0], |row| {
        let scope: String = row.get(3)?;
        let (until, revoked): (Option<i64>, Option<i64>) = (row.get(6)?, row.get(7)?);
        let creator: Option<String> = row.get(5)?;
        Ok(StoredToken {
            id: row.get(0)?,
            token: NewToken {
                name: row.get(1)?,
                hash: row.get(2)?,
                scope: Scope::named(&scope).unwrap_or(Scope::Read),
                until: until.map(Timestamp),
                creator: creator.unwrap_or_default(),
            },
            created: Timestamp(row.get(4)?),
            revoked: revoked.map(Timestamp),
        })
    })?;
    rows.collect()
}

pub(super) fn revoke_token(
    connection: &Connection,
    org: OrgId,
    token: i64,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    let changed = connection.execute(
        "UPDATE api_tokens SET revoked = ?3 WHERE org_id = ?1 AND id = ?2 AND revoked IS NULL",
        params![org.0, token, now.0],
    )?;
    Ok(changed > 0)
}

pub(super) fn record_audit(
    connection: &Connection,
    org: OrgId,
    entry: &NewAudit,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let NewAudit {
        actor,
        address,
        action,
        object,
        detail,
    } = entry;
    connection
        .prepare_cached(
            "INSERT INTO audit (org_id, at, actor, address, action, object, detail)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            org.0, now.0, actor, address, action, object, detail
        ])?;
    Ok(())
}

pub(super) fn audit(
    connection: &Connection,
    org: OrgId,
    before: Option<i64>,
    limit: usize,
) -> rusqlite::Result<Vec<AuditEntry>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, at, actor, address, action, object, detail FROM audit
         WHERE org_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = params![org.0, before.unwrap_or(i64::MAX), limit];
    let rows = statement.query_map(values, |row| {
        Ok(AuditEntry {
            id: row.get(0)?,
            at: Timestamp(row.get(1)?),
            entry: NewAudit {
                actor: row.get(2)?,
                address: row.get(3)?,
                action: row.get(4)?,
                object: row.get(5)?,
                detail: row.get(6)?,
            },
        })
    })?;
    rows.collect()
}

/// Deletes sessions that have ended, and lines of the audit log before a date.
pub(super) fn prune(
    connection: &Connection,
    now: Timestamp,
    audit_before: Timestamp,
) -> rusqlite::Result<usize> {
    let ended = connection.execute("DELETE FROM sessions WHERE until <= ?1", [now.0])?;
    let old = connection.execute("DELETE FROM audit WHERE at < ?1", [audit_before.0])?;
    Ok(ended + old)
}
