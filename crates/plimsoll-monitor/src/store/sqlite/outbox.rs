//! The outbox.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::store::outbox::{NewNotice, NoticeId, NoticeOutcome, NoticeState, StoredNotice};
use crate::store::timestamp::Timestamp;
use crate::store::types::OrgId;

/// Writes notices within the transaction of what they report; those that are there already stay as they are.
pub(super) fn write(
    transaction: &Transaction<'_>,
    org: OrgId,
    notices: &[NewNotice],
    now: Timestamp,
) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "INSERT INTO outbox (org, channel, dedup, message, created, due) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT DO NOTHING",
    )?;
    for notice in notices {
        statement.execute(params![
            org.0,
            notice.channel,
            notice.dedup,
            notice.message,
            now.0,
            notice.due.0
        ])?;
    }
    Ok(())
}

const COLUMNS: &str = "id, channel, dedup, message, state, created, due, attempts, error";

/// Those that are due, the oldest first.
pub(super) fn due(
    connection: &Connection,
    org: OrgId,
    channel: &str,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<StoredNotice>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM outbox
         WHERE org = ?1 AND state = 0 AND due <= ?2 AND channel = ?3 ORDER BY id LIMIT ?4"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![org.0, now.0, channel, limit], read)?;
    rows.collect()
}

pub(super) fn one(
    connection: &Connection,
    org: OrgId,
    channel: &str,
    dedup: &str,
) -> rusqlite::Result<Option<StoredNotice>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM outbox WHERE org = ?1 AND channel = ?2 AND dedup = ?3"
    ))?;
    let found = statement.query_row(params![org.0, channel, dedup], read);
    found.optional()
}

/// The newest first.
pub(super) fn list(
    connection: &Connection,
    org: OrgId,
    state: Option<NoticeState>,
    limit: usize,
) -> rusqlite::Result<Vec<StoredNotice>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM outbox WHERE org = ?1 AND (?2 IS NULL OR state = ?2) ORDER BY id DESC LIMIT ?3"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![org.0, state.map(NoticeState::code), limit], read)?;
    rows.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredNotice> {
    let state: u8 = row.get(4)?;
    let state = NoticeState::ALL.get(usize::from(state)).copied();
    Ok(StoredNotice {
        id: NoticeId(row.get(0)?),
        channel: row.get(1)?,
        dedup: row.get(2)?,
        message: row.get(3)?,
        state: state.unwrap_or(NoticeState::Waiting),
        created: Timestamp(row.get(5)?),
        due: Timestamp(row.get(6)?),
        attempts: row.get(7)?,
        error: row.get(8)?,
    })
}

pub(super) fn settle(
    connection: &mut Connection,
    org: OrgId,
    outcomes: &[NoticeOutcome],
    more: &[NewNotice],
    now: Timestamp,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    write(&transaction, org, more, now)?;
    for outcome in outcomes {
        let ended = (outcome.state != NoticeState::Waiting).then_some(now.0);
        transaction
            .prepare_cached(
                "UPDATE outbox SET state = ?3, due = ?4, error = ?5, attempts = attempts + 1, ended = ?6
                 WHERE org = ?1 AND id = ?2 AND state = 0",
            )?
            .execute(params![
                org.0,
                outcome.id.0,
                outcome.state.code(),
                outcome.due.0,
                outcome.error,
                ended,
            ])?;
    }
    transaction.commit()
}

/// Deletes those that ended before `before`.
pub(super) fn prune(connection: &Connection, before: Timestamp) -> rusqlite::Result<usize> {
    connection.execute("DELETE FROM outbox WHERE ended < ?1", [before.0])
}
