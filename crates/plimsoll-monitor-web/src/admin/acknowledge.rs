//! `/acknowledge/TOKEN`: the link of a notice, by which its receiver acknowledges an incident without signing in.
//!
//! Following the link changes nothing: programs that scan mails and draw previews follow links too. The page has a button,
//! whose POST acknowledges.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{Extensions, StatusCode};
use plimsoll_model::Clock;
use plimsoll_monitor::engine::{CommandError, View};
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::notify::{Acknowledgement, LinkKey};
use plimsoll_monitor::store::{EventKind, Incident, IncidentEvent, IncidentId, StoreError};
use plimsoll_monitor::time::Timestamp;

use crate::admin::shell::{When, html, message};
use crate::request::{address_of, client_of};
use crate::state::Api;

#[derive(Template)]
#[template(path = "admin/acknowledge.html")]
struct AcknowledgePage {
    name: String,
    reason: String,
    since: When,
    /// Whether the button is of use.
    is_waiting: bool,
    /// What became of it otherwise.
    outcome: String,
}

/// What a valid link leads to.
struct Found {
    what: Acknowledgement,
    incident: Incident,
    events: Vec<IncidentEvent>,
    view: View,
}

pub(super) async fn show(
    State(api): State<Api>,
    Path(token): Path<String>,
    extensions: Extensions,
) -> Response {
    match find(&api, &token, &extensions).await {
        Ok(found) => found.page(),
        Err(refusal) => refusal,
    }
}

pub(super) async fn act(
    State(api): State<Api>,
    Path(token): Path<String>,
    extensions: Extensions,
) -> Response {
    let found = match find(&api, &token, &extensions).await {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    if found.incident.resolved.is_some() || found.incident.acknowledged.is_some() {
        return found.page();
    }
    let actor = Actor {
        name: format!("{} (link)", found.what.channel),
        address: address_of(&extensions),
    };
    let (key, opened) = (found.view.plan.key.clone(), found.incident.opened);
    let done = api
        .handle
        .acknowledge_one(&key, opened, Some(actor.name.clone()));
    match done.await {
        // It ended in this moment.
        Ok(()) | Err(CommandError::NoIncident | CommandError::NotFound) => {}
        Err(_) => return away(),
    }
    let now = Timestamp::from_system(api.clock.wall());
    let noted = api.handle.note(&actor, "incident.acknowledge", &key, now);
    if noted.await.is_err() {
        return away();
    }
    message(
        StatusCode::OK,
        "Acknowledged",
        &format!(
            "{} is acknowledged: nobody else is called, and there are no reminders.",
            found.view.plan.name
        ),
    )
}

/// What a token leads to, or the page that says why nothing.
async fn find(api: &Api, token: &str, extensions: &Extensions) -> Result<Found, Response> {
    let (handle, source) = (&api.handle, client_of(extensions));
    let now = Timestamp::from_system(api.clock.wall());
    if handle.board.acknowledge().is_none() {
        return Err(invalid());
    }
    if !api.sessions.may_follow_links(source, now) {
        return Err(message(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many links",
            "Wait a minute, and follow the link again.",
        ));
    }
    let failed = |_: StoreError| away();
    let key = LinkKey::of_store(&*handle.store, handle.org, now).await;
    let Some(what) = key.map_err(failed)?.read(token, now) else {
        api.sessions.followed_wrong_link(source, now);
        return Err(invalid());
    };
    let id = IncidentId(what.incident);
    let found = handle.store.incident(handle.org, id).await;
    let (incident, events) = found.map_err(failed)?.ok_or_else(invalid)?;
    let mut views = handle.board.views().into_iter();
    let view = views.find(|view| view.id == incident.monitor);
    Ok(Found {
        what,
        incident,
        events,
        view: view.ok_or_else(invalid)?,
    })
}

impl Found {
    fn page(&self) -> Response {
        let incident = &self.incident;
        let seen = self
            .events
            .iter()
            .find(|event| event.kind == EventKind::Acknowledged);
        let outcome = match (incident.resolved, incident.acknowledged) {
            (Some(_), _) => "It is over.".to_owned(),
            (None, Some(at)) => {
                let by = seen.and_then(|event| event.actor.as_deref());
                let by = by.map_or_else(String::new, |by| format!(" by {by}"));
                format!("It was acknowledged{by} at {at}.")
            }
            (None, None) => String::new(),
        };
        let page = AcknowledgePage {
            name: self.view.plan.name.clone(),
            reason: incident.reason.clone().unwrap_or_default(),
            since: When::from_timestamp(incident.opened),
            is_waiting: outcome.is_empty(),
            outcome,
        };
        html(&page, StatusCode::OK)
    }
}

fn invalid() -> Response {
    message(
        StatusCode::NOT_FOUND,
        "The link is not valid",
        "It may be too old, or cut off. Sign in to acknowledge the incident.",
    )
}

fn away() -> Response {
    message(
        StatusCode::SERVICE_UNAVAILABLE,
        "Not now",
        "The monitor cannot do this at present. Follow the link again in a minute.",
    )
}
