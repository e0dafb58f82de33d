//! Channels of notices, a test of each, and the outbox.

use std::collections::HashSet;
use std::time::Duration;

use askama::Template;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use plimsoll_monitor::config::Source;
use plimsoll_monitor::notify::{EscalationStep, EscalationTarget, NoticeKind, channel, send_test};
use plimsoll_monitor::store::Role;

use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::outgoing::apart;
use crate::admin::overview::refused;
use crate::admin::shell::{Shell, When, duration, missing, page, redirect};
use crate::api::encoded;
use crate::state::Api;

/// Notices that are shown.
const MOST: usize = 100;

/// How far ahead the next shift is looked for.
const AHEAD: Duration = Duration::from_hours(60 * 24);

/// A channel.
#[derive(Debug)]
struct Channel {
    /// The name in paths.
    path: String,
    is_kept: bool,
    name: String,
    /// The kind of its receiver.
    receiver: String,
    kinds: String,
    scope: String,
}

/// An escalation.
#[derive(Debug)]
struct Escalation {
    /// The name in paths.
    path: String,
    is_kept: bool,
    name: String,
    scope: String,
    steps: Vec<String>,
}

/// Current and next member on call.
#[derive(Debug)]
struct Rotation {
    /// The name in paths.
    path: String,
    is_kept: bool,
    name: String,
    who: String,
    until: When,
    next: String,
}

/// A notice of the outbox.
#[derive(Debug)]
struct Notice {
    channel: String,
    state: &'static str,
    class: &'static str,
    title: String,
    created: When,
    attempts: u32,
    error: String,
}

#[derive(Template)]
#[template(path = "admin/notices.html")]
struct NoticesPage {
    s: Shell,
    channels: Vec<Channel>,
    escalations: Vec<Escalation>,
    rotations: Vec<Rotation>,
    notices: Vec<Notice>,
    /// Whether the user may change channels.
    manages: bool,
}

pub(super) async fn list(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let handle = &api.handle;
    let channels = handle.board.channels();
    let channels = channels.iter().map(|plan| Channel {
        path: encoded(&plan.name),
        is_kept: plan.source == Source::Store,
        name: plan.name.clone(),
        receiver: channel(&plan.channel).map_or_else(
            || plan.channel.replace('_', " "),
            |channel| channel.name.to_owned(),
        ),
        kinds: if plan.kinds.len() == NoticeKind::ALL.len() {
            "all".to_owned()
        } else {
            let names = plan.kinds.iter().map(|kind| kind.name().replace('_', " "));
            names.collect::<Vec<_>>().join(", ")
        },
        scope: scope(plan.monitors.as_ref().map(HashSet::len)),
    });
    let found = handle.store.notices(handle.org, None, MOST).await;
    let notices = found.map_err(refused)?.into_iter().map(|notice| {
        let message: serde_json::Value = serde_json::from_str(&notice.message).unwrap_or_default();
        Notice {
            channel: notice.channel,
            state: notice.state.name(),
            class: match notice.state.name() {
                "sent" => "operational",
                "waiting" => "degraded",
                "dead" | "given_up" => "major",
                _ => "unknown",
            },
            title: match message["title"].as_str() {
                Some(title) => title.to_owned(),
                None => "To a reader of a page".to_owned(),
            },
            created: When::from_timestamp(notice.created),
            attempts: notice.attempts,
            error: notice.error.unwrap_or_default(),
        }
    });
    let escalations = handle.board.escalations();
    let escalations = escalations.iter().map(|plan| Escalation {
        path: encoded(&plan.name),
        is_kept: plan.source == Source::Store,
        name: plan.name.clone(),
        scope: scope(plan.monitors.as_ref().map(HashSet::len)),
        steps: plan.steps.iter().map(step).collect(),
    });
    let rotations = handle.board.rotations();
    let rotations = rotations.iter().map(|rotation| {
        let shifts = rotation.shifts(me.now, me.now.plus(AHEAD));
        Rotation {
            path: encoded(&rotation.name),
            is_kept: rotation.source == Source::Store,
            name: rotation.name.clone(),
            who: rotation.who(me.now).to_owned(),
            until: When::from_timestamp(shifts.first().map_or(me.now, |shift| shift.until)),
            next: shifts
                .get(1)
                .map(|shift| shift.who.clone())
                .unwrap_or_default(),
        }
    });
    Ok(page(&NoticesPage {
        manages: me.may(Role::Admin),
        escalations: escalations.collect(),
        rotations: rotations.collect(),
        s: Shell::new(&me, "/admin/notices", "Notices").done(query.as_deref()),
        channels: channels.collect(),
        notices: notices.collect(),
    }))
}

/// - `count`: of the chosen monitors; absent for all.
fn scope(count: Option<usize>) -> String {
    match count {
        None => "all monitors".to_owned(),
        Some(1) => "1 monitor".to_owned(),
        Some(count) => format!("{count} monitors"),
    }
}

/// A step in words.
fn step(step: &EscalationStep) -> String {
    let names: Vec<_> = step.targets.iter().map(EscalationTarget::name).collect();
    let names = names.join(", ");
    if step.after.is_zero() {
        format!("at once: {names}")
    } else {
        format!("after {}: {names}", duration(step.after))
    }
}

/// Sends a test message and waits for its receiver.
pub(super) async fn test(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    let name = me.form.get("channel").to_owned();
    let channels = api.handle.board.channels();
    let Some(plan) = channels.iter().find(|plan| plan.name == name).cloned() else {
        return missing().await;
    };
    let sent = apart(move || async move { send_test(&plan).await }).await;
    if let Err(error) = api
        .handle
        .note(&me.actor, "channel.test", &name, me.now)
        .await
    {
        return failed(&me, error.to_string());
    }
    match sent {
        Ok(()) => redirect("/admin/notices?done=sent"),
        Err(reason) => failed(
            &me,
            format!("{name} did not accept the test message: {reason}"),
        ),
    }
}
