//! The audit log.

use askama::Template;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;

use crate::admin::guard::Me;
use crate::admin::overview::refused;
use crate::admin::shell::{Shell, When, page};
use crate::request::parameter;
use crate::state::Api;

/// Lines of one page.
const MOST: usize = 100;

/// A line.
#[derive(Debug)]
struct Row {
    at: When,
    actor: String,
    address: String,
    /// The name that the API has for it.
    name: String,
    action: String,
    object: String,
    detail: String,
}

#[derive(Template)]
#[template(path = "admin/audit.html")]
struct AuditPage {
    s: Shell,
    rows: Vec<Row>,
    next: Option<i64>,
}

pub(super) async fn list(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let before = parameter(query.as_deref(), "before").and_then(|text| text.parse().ok());
    let handle = &api.handle;
    let found = handle.store.audit(handle.org, before, MOST + 1).await;
    let mut found = found.map_err(refused)?;
    let has_more = found.len() > MOST;
    found.truncate(MOST);
    let next = found.last().filter(|_| has_more).map(|last| last.id);
    let rows = found.into_iter().map(|one| Row {
        at: When::from_timestamp(one.at),
        actor: one.entry.actor,
        address: one.entry.address,
        action: words(&one.entry.action),
        name: one.entry.action,
        object: one.entry.object,
        detail: one.entry.detail.unwrap_or_default(),
    });
    Ok(page(&AuditPage {
        s: Shell::new(&me, "/admin/audit", "Audit log"),
        rows: rows.collect(),
        next,
    }))
}

/// An action of the audit log for people; one that is not known keeps its name.
fn words(action: &str) -> String {
    let (subject, verb) = action.split_once('.').unwrap_or((action, ""));
    let known = match (subject, verb) {
        ("session", "open") => "signed in",
        ("session", "refused") => "was refused at sign-in",
        ("session", "end") => "ended a session",
        ("account", "password") => "changed their password",
        ("account", "totp-on") => "turned one-time codes on",
        ("account", "totp-off") => "turned one-time codes off",
        ("account", "recovery") => "made new recovery codes",
        ("member", "add") => "added a member",
        ("member", "remove") => "removed a member",
        ("member", "reset") => "gave a member a new password",
        ("member", "role") => "changed the role of a member",
        ("member", "link") => "linked a sign-in of the provider",
        ("member", "unlink") => "unlinked a sign-in of the provider",
        ("monitor", "pause") => "paused a monitor",
        ("monitor", "resume") => "resumed a monitor",
        ("monitor", "check") => "started a check",
        ("monitor", "status") => "set the status of a monitor",
        ("incident", "acknowledge") => "acknowledged an incident",
        ("incident", "resolve") => "resolved an incident",
        ("incident", "declare") => "declared an incident",
        ("incident", "update") => "updated an incident",
        ("channel", "test") => "sent a test message",
        ("share", "add") => "made a link to a page",
        ("share", "revoke") => "revoked a link to a page",
        ("token", "create") => "created an API token",
        ("token", "revoke") => "revoked an API token",
        _ => return definition_words(subject, verb).unwrap_or_else(|| action.to_owned()),
    };
    known.to_owned()
}

/// A change of a definition.
fn definition_words(subject: &str, verb: &str) -> Option<String> {
    let object = match subject {
        "monitor" => "a monitor",
        "maintenance" => "a maintenance window",
        "page" => "a status page",
        "notify" => "a channel",
        "on_call" => "a rotation",
        "escalation" => "an escalation",
        "region" => "a region",
        "subscriber" => "a subscriber",
        _ => return None,
    };
    let verb = match verb {
        "create" => "added",
        "update" => "changed",
        "delete" => "deleted",
        _ => return None,
    };
    Some(format!("{verb} {object}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sources that note actions.
    const SOURCES: [&str; 14] = [
        include_str!("account.rs"),
        include_str!("acknowledge.rs"),
        include_str!("channels.rs"),
        include_str!("incidents.rs"),
        include_str!("members.rs"),
        include_str!("monitors.rs"),
        include_str!("notices.rs"),
        include_str!("oidc.rs"),
        include_str!("oidc/identity.rs"),
        include_str!("setup.rs"),
        include_str!("sign_in.rs"),
        include_str!("../api/actions.rs"),
        include_str!("../api/tokens.rs"),
        include_str!("../page/share.rs"),
    ];

    #[test]
    fn every_action_that_is_noted_has_words() {
        const SUBJECTS: [&str; 9] = [
            "account",
            "channel",
            "incident",
            "member",
            "monitor",
            "session",
            "share",
            "token",
            "subscriber",
        ];
        let is_action = |text: &&str| {
            let subject = text.split_once('.').map(|(subject, _)| subject);
            let is_name = |c: char| c.is_ascii_lowercase() || c == '.' || c == '-';
            subject.is_some_and(|it| SUBJECTS.contains(&it)) && text.chars().all(is_name)
        };
        let texts = SOURCES
            .iter()
            .flat_map(|source| source.split('"').skip(1).step_by(2));
        let mut count = 0;
        for action in texts.filter(is_action) {
            assert_ne!(words(action), action);
            count += 1;
        }
        assert!(count >= 25, "{count} actions were found");
    }

    #[test]
    fn actions_are_shown_in_words() {
        for (action, text) in [
            ("session.open", "signed in"),
            ("monitor.pause", "paused a monitor"),
            ("monitor.update", "changed a monitor"),
            ("notify.create", "added a channel"),
            ("on_call.delete", "deleted a rotation"),
            ("subscriber.delete", "deleted a subscriber"),
            ("of.another-version", "of.another-version"),
            ("unheard", "unheard"),
        ] {
            assert_eq!(words(action), text);
        }
    }
}
