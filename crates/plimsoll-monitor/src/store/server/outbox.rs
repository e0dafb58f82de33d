//! The outbox.

use tokio_postgres::Row;

use crate::store::StoreError;
use crate::store::outbox::{
    About, NewNotice, NoticeId, NoticeIncident, NoticeOutcome, NoticeState, StoredNotice,
};
use crate::store::server::postgres::{Scoped, row_limit};
use crate::store::types::{IncidentId, MonitorId};
use crate::time::Timestamp;

/// Writes notices within the transaction of what they report; those that are there already stay as they are.
///
/// - `monitor`: whose open incident [`About::OpenIncident`] means.
pub(super) async fn write(
    scoped: &Scoped<'_>,
    monitor: Option<MonitorId>,
    notices: &[NewNotice],
    now: Timestamp,
) -> Result<(), StoreError> {
    for notice in notices {
        let incident = match notice.about {
            About::Other => None,
            about => {
                let (sql, value) = match (about, monitor) {
                    (About::Incident(id), _) => (
                        "SELECT id, key FROM incidents WHERE org_id = $1 AND id = $2",
                        id.0,
                    ),
                    (_, Some(monitor)) => (
                        "SELECT id, key FROM incidents
                         WHERE org_id = $1 AND monitor = $2 AND resolved IS NULL",
                        monitor.0,
                    ),
                    (_, None) => continue,
                };
                let found = scoped.query(sql, &[&scoped.org(), &value]).await?;
                let Some(row) = found.first() else {
                    continue;
                };
                let found: (i64, String) = (row.try_get(0)?, row.try_get(1)?);
                Some(found)
            }
        };
        let dedup = match &incident {
            None => notice.dedup.clone(),
            Some((_, key)) => format!("{key}/{}", notice.dedup),
        };
        scoped
            .execute(
                "INSERT INTO outbox (org_id, channel, dedup, message, created, due, incident)
                 VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
                &[
                    &scoped.org(),
                    &notice.channel,
                    &dedup,
                    &notice.message,
                    &now.0,
                    &notice.due.0,
                    &incident.map(|(id, _)| id),
                ],
            )
            .await?;
    }
    Ok(())
}

const SELECT: &str =
    "SELECT o.id, o.channel, o.dedup, o.message, o.state, o.created, o.due, o.attempts, o.error,
     i.id, i.key, i.opened, i.acknowledged IS NOT NULL, i.resolved IS NOT NULL
     FROM outbox o LEFT JOIN incidents i ON i.org_id = o.org_id AND i.id = o.incident";

/// Those that are due, the oldest first.
pub(super) async fn due(
    scoped: &Scoped<'_>,
    channel: &str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<StoredNotice>, StoreError> {
    let rows = scoped
        .query(
            &format!(
                "{SELECT} WHERE o.org_id = $1 AND o.state = 0 AND o.due <= $2 AND o.channel = $3
                 ORDER BY o.id LIMIT $4"
            ),
            &[&scoped.org(), &now.0, &channel, &row_limit(limit)],
        )
        .await?;
    rows.iter().map(read).collect()
}

pub(super) async fn one(
    scoped: &Scoped<'_>,
    channel: &str,
    dedup: &str,
) -> Result<Option<StoredNotice>, StoreError> {
    let rows = scoped
        .query(
            &format!("{SELECT} WHERE o.org_id = $1 AND o.channel = $2 AND o.dedup = $3"),
            &[&scoped.org(), &channel, &dedup],
        )
        .await?;
    rows.first().map(read).transpose()
}

/// The newest first.
pub(super) async fn list(
    scoped: &Scoped<'_>,
    state: Option<NoticeState>,
    limit: usize,
) -> Result<Vec<StoredNotice>, StoreError> {
    let state = state.map(|state| i16::from(state.code()));
    let rows = scoped
        .query(
            &format!(
                "{SELECT} WHERE o.org_id = $1 AND ($2::SMALLINT IS NULL OR o.state = $2)
                 ORDER BY o.id DESC LIMIT $3"
            ),
            &[&scoped.org(), &state, &row_limit(limit)],
        )
        .await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<StoredNotice, StoreError> {
    let state: i16 = row.try_get(4)?;
    let state = usize::try_from(state)
        .ok()
        .and_then(|state| NoticeState::ALL.get(state).copied());
    let attempts: i64 = row.try_get(7)?;
    let incident = match row.try_get::<_, Option<i64>>(9)? {
        None => None,
        Some(id) => Some(NoticeIncident {
            id: IncidentId(id),
            key: row.try_get(10)?,
            opened: Timestamp(row.try_get(11)?),
            is_acknowledged: row.try_get(12)?,
            is_resolved: row.try_get(13)?,
        }),
    };
    Ok(StoredNotice {
        id: NoticeId(row.try_get(0)?),
        channel: row.try_get(1)?,
        incident,
        dedup: row.try_get(2)?,
        message: row.try_get(3)?,
        state: state.unwrap_or(NoticeState::Waiting),
        created: Timestamp(row.try_get(5)?),
        due: Timestamp(row.try_get(6)?),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        error: row.try_get(8)?,
    })
}

pub(super) async fn settle(
    scoped: &Scoped<'_>,
    outcomes: &[NoticeOutcome],
    more: &[NewNotice],
    now: Timestamp,
) -> Result<(), StoreError> {
    write(scoped, None, more, now).await?;
    for outcome in outcomes {
        let ended = (outcome.state != NoticeState::Waiting).then_some(now.0);
        scoped
            .execute(
                "UPDATE outbox SET state = $3, due = $4, error = $5, attempts = attempts + 1, ended = $6
                 WHERE org_id = $1 AND id = $2 AND state = 0",
                &[
                    &scoped.org(),
                    &outcome.id.0,
                    &i16::from(outcome.state.code()),
                    &outcome.due.0,
                    &outcome.error,
                    &ended,
                ],
            )
            .await?;
    }
    Ok(())
}
