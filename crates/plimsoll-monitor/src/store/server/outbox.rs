//! The outbox.

use tokio_postgres::Row;

use crate::store::StoreError;
use crate::store::outbox::{NewNotice, NoticeId, NoticeOutcome, NoticeState, StoredNotice};
use crate::store::server::postgres::{Scoped, row_limit};
use crate::store::timestamp::Timestamp;

/// Writes notices within the transaction of what they report; those that are there already stay as they are.
pub(super) async fn write(
    scoped: &Scoped<'_>,
    notices: &[NewNotice],
    now: Timestamp,
) -> Result<(), StoreError> {
    for notice in notices {
        scoped
            .execute(
                "INSERT INTO outbox (org_id, channel, dedup, message, created, due)
                 VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
                &[
                    &scoped.org(),
                    &notice.channel,
                    &notice.dedup,
                    &notice.message,
                    &now.0,
                    &notice.due.0,
                ],
            )
            .await?;
    }
    Ok(())
}

/// Those that are due, the oldest first.
pub(super) async fn due(
    scoped: &Scoped<'_>,
    channel: &str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<StoredNotice>, StoreError> {
    let rows = scoped
        .query(
            "SELECT id, channel, dedup, message, state, created, due, attempts, error FROM outbox
             WHERE org_id = $1 AND state = 0 AND due <= $2 AND channel = $3 ORDER BY id LIMIT $4",
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
            "SELECT id, channel, dedup, message, state, created, due, attempts, error FROM outbox
             WHERE org_id = $1 AND channel = $2 AND dedup = $3",
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
            "SELECT id, channel, dedup, message, state, created, due, attempts, error FROM outbox
             WHERE org_id = $1 AND ($2::SMALLINT IS NULL OR state = $2) ORDER BY id DESC LIMIT $3",
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
    Ok(StoredNotice {
        id: NoticeId(row.try_get(0)?),
        channel: row.try_get(1)?,
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
    write(scoped, more, now).await?;
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
