//! The outbox.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::store::outbox::{
    About, NewNotice, NoticeId, NoticeIncident, NoticeOutcome, NoticeState, StoredNotice,
};
use crate::store::types::{IncidentId, MonitorId, OrgId};
use crate::time::Timestamp;

/// Writes notices within the transaction of what they report; those that are there already stay as they are.
///
/// - `monitor`: whose open incident [`About::OpenIncident`] means.
pub(super) fn write(
    transaction: &Transaction<'_>,
    org: OrgId,
    monitor: Option<MonitorId>,
    notices: &[NewNotice],
    now: Timestamp,
) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "INSERT INTO outbox (org, channel, dedup, message, created, due, incident)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
    )?;
    for notice in notices {
        let incident = match notice.about {
            About::Other => None,
            about => {
                let (sql, value) = match (about, monitor) {
                    (About::Incident(id), _) => ("id = ?2", id.0),
                    (_, Some(monitor)) => ("monitor = ?2 AND resolved IS NULL", monitor.0),
                    (_, None) => continue,
                };
                let sql = format!("SELECT id, key FROM incidents WHERE org = ?1 AND {sql}");
                let found = transaction
                    .prepare_cached(&sql)?
                    .query_row(params![org.0, value], |row| {
                        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
                    })
                    .optional()?;
                let Some(found) = found else {
                    continue;
                };
                Some(found)
            }
        };
        let dedup = match &incident {
            None => notice.dedup.clone(),
            Some((_, key)) => format!("{key}/{}", notice.dedup),
        };
        statement.execute(params![
            org.0,
            notice.channel,
            dedup,
            notice.message,
            now.0,
            notice.due.0,
            incident.map(|(id, _)| id),
        ])?;
    }
    Ok(())
}

const SELECT: &str =
    "SELECT o.id, o.channel, o.dedup, o.message, o.state, o.created, o.due, o.attempts, o.error,
     i.id, i.key, i.opened, i.acknowledged IS NOT NULL, i.resolved IS NOT NULL
     FROM outbox o LEFT JOIN incidents i ON i.id = o.incident";

/// Those that are due, the oldest first.
pub(super) fn due(
    connection: &Connection,
    org: OrgId,
    channel: &str,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<StoredNotice>> {
    let mut statement = connection.prepare_cached(&format!(
        "{SELECT} WHERE o.org = ?1 AND o.state = 0 AND o.due <= ?2 AND o.channel = ?3 ORDER BY o.id LIMIT ?4"
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
        "{SELECT} WHERE o.org = ?1 AND o.channel = ?2 AND o.dedup = ?3"
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
        "{SELECT} WHERE o.org = ?1 AND (?2 IS NULL OR o.state = ?2) ORDER BY o.id DESC LIMIT ?3"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![org.0, state.map(NoticeState::code), limit], read)?;
    rows.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredNotice> {
    let state: u8 = row.get(4)?;
    let state = NoticeState::ALL.get(usize::from(state)).copied();
    let incident = match row.get::<_, Option<i64>>(9)? {
        None => None,
        Some(id) => Some(NoticeIncident {
            id: IncidentId(id),
            key: row.get(10)?,
            opened: Timestamp(row.get(11)?),
            is_acknowledged: row.get(12)?,
            is_resolved: row.get(13)?,
        }),
    };
    Ok(StoredNotice {
        id: NoticeId(row.get(0)?),
        channel: row.get(1)?,
        incident,
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
    write(&transaction, org, None, more, now)?;
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

/// Deletes those that ended before `before`, but for those of open incidents: their ends go to who got their beginnings.
pub(super) fn prune(connection: &Connection, before: Timestamp) -> rusqlite::Result<usize> {
    connection.execute(
        "DELETE FROM outbox WHERE ended < ?1 AND NOT EXISTS (
             SELECT 1 FROM incidents i WHERE i.id = outbox.incident AND i.resolved IS NULL)",
        [before.0],
    )
}
