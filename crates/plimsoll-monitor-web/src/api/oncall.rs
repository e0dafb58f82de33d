//! `/api/v1/on-call`, and the calendars of rotations.

use axum::extract::{Path, State};
use plimsoll_model::Clock;
use plimsoll_monitor::time::Timestamp;
use serde_json::json;
use std::time::Duration;

use crate::answer::{Answer, ApiError, json_of, with_type};
use crate::state::Api;

/// How far ahead shifts are listed.
const AHEAD: Duration = Duration::from_hours(30 * 24);

/// Lists rotations: who is on call, and who comes next.
pub(super) async fn list(State(api): State<Api>) -> Answer {
    let now = Timestamp::from_system(api.clock.wall());
    let rotations = api.handle.board.rotations();
    let rotations = rotations.iter().map(|rotation| {
        let shifts = rotation.shifts(now, now.plus(AHEAD));
        let shifts = shifts.iter().map(|shift| {
            json!({
                "who": shift.who,
                "from": shift.from.to_string(),
                "until": shift.until.to_string(),
            })
        });
        json!({
            "name": rotation.name,
            "who": rotation.who(now),
            "shifts": shifts.collect::<Vec<_>>(),
        })
    });
    let rotations: Vec<_> = rotations.collect();
    Ok(json_of(&json!({ "rotations": rotations })))
}

/// `/on-call/TOKEN.ics`.
pub(super) async fn calendar(State(api): State<Api>, Path(file): Path<String>) -> Answer {
    let token = file.strip_suffix(".ics").unwrap_or_default();
    let rotations = api.handle.board.rotations();
    let found = rotations.iter().find(|rotation| rotation.has_token(token));
    let found = found.ok_or_else(|| ApiError::not_found("calendar"))?;
    let now = Timestamp::from_system(api.clock.wall());
    Ok(with_type(
        found.calendar(now),
        "text/calendar; charset=utf-8",
    ))
}
