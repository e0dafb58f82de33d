//! What a channel would send, for people: with masks in place of its credentials.

use std::fmt::Write as _;

use serde_json::Value;
use url::Position;

use crate::notify::channel::{Channel, HttpRequest, Outgoing};
use crate::notify::deliver::known_secrets;
use crate::notify::field::FieldKind;
use crate::notify::message::NoticeKind;
use crate::notify::plan::NotifyPlan;
use crate::probe::KnownSecrets;
use crate::probe::known_secrets::MASK;
use crate::time::Timestamp;

/// Requests of a chain that are shown.
const MOST_REQUESTS: usize = 3;

/// The request, or the mail, of a channel for a sample message: its line, its fields and its content.
///
/// - `settings`: the table of the channel, whose credentials are not shown.
pub fn preview(
    plan: &NotifyPlan,
    channel: &Channel,
    settings: &toml::Table,
    kind: NoticeKind,
    now: Timestamp,
) -> String {
    let message = plan.sample(kind);
    let mut text = String::new();
    let mut next = Some(plan.notifier.outgoing(&message, now));
    for _ in 0..MOST_REQUESTS {
        let Some(outgoing) = next.take() else {
            break;
        };
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        match outgoing {
            Outgoing::Http(request) => text.push_str(&shown(&request, plan, channel, settings)),
            Outgoing::Question(question) => {
                text.push_str(&shown(&question.request, plan, channel, settings));
                // As if the receiver knew nothing of the incident.
                next = question.next(&Value::Null).unwrap_or_default();
            }
            Outgoing::Mail(mail) => {
                let (subject, content) = (&mail.subject, &mail.text);
                write!(text, "Subject: {subject}\n\n{content}").expect(INFALLIBLE);
            }
        }
    }
    text
}

const INFALLIBLE: &str = "text can be written to memory";

fn shown(
    request: &HttpRequest,
    plan: &NotifyPlan,
    channel: &Channel,
    settings: &toml::Table,
) -> String {
    let mut secrets = known_secrets(request, plan.notifier.secrets());
    let mut has_secret_url = false;
    let mut given = Vec::new();
    for field in channel.fields.iter().filter(|field| field.kind.is_secret()) {
        let value = settings.get(field.key);
        has_secret_url |= value.is_some()
            && matches!(field.kind, FieldKind::SecretUrl | FieldKind::SecretTemplate);
        if let Some(toml::Value::Table(pairs)) = value {
            given.extend(pairs.iter().filter_map(|(name, value)| {
                let is_plain = value.as_str().is_some_and(|text| text.contains("{{"));
                (!is_plain).then(|| name.to_ascii_lowercase())
            }));
        }
        add(&mut secrets, value);
    }
    let url = &request.url;
    let mut text = if has_secret_url && url[Position::BeforePath..].len() > 1 {
        let origin = &url[..Position::BeforePath];
        format!("{} {origin}/{MASK}", request.method)
    } else {
        format!("{} {}", request.method, secrets.hide(url.as_str()))
    };
    for (name, value) in &request.fields {
        let is_hidden = given.contains(name) && name != "content-type";
        let value = if is_hidden {
            MASK.into()
        } else {
            secrets.hide(value)
        };
        write!(text, "\n{name}: {value}").expect(INFALLIBLE);
    }
    if !request.content.is_empty() {
        let content = match serde_json::from_str::<Value>(&request.content) {
            Ok(json) => format!("{json:#}"),
            Err(_) => request.content.clone(),
        };
        write!(text, "\n\n{}", secrets.hide(&content)).expect(INFALLIBLE);
    }
    text
}

/// Notes a text of the settings, and what it becomes in a form.
fn add(secrets: &mut KnownSecrets, value: Option<&toml::Value>) {
    match value {
        Some(toml::Value::String(text)) => secrets.add(text),
        Some(toml::Value::Table(pairs)) => {
            for (_, value) in pairs {
                add(secrets, Some(value));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::overlay;
    use crate::notify::channel::all::channel;

    fn shown_of(kind: &str, settings: &str, of: NoticeKind) -> String {
        let text = format!("name = \"a\"\ntitle = \"[{{state}}] {{name}}\"\n[{kind}]\n{settings}");
        let plan = overlay::channel(&text, &overlay::Grounds::default(), &[], &[], &[]).unwrap();
        let settings = settings.parse().unwrap();
        preview(&plan, channel(kind).unwrap(), &settings, of, Timestamp(0))
    }

    #[test]
    fn credentials_are_masked() {
        for (kind, settings, secret, shows) in [
            (
                "slack",
                "url = \"https://hooks.slack.com/services/T0/B0/x1\"",
                "x1",
                "POST https://hooks.slack.com/********",
            ),
            (
                "telegram",
                "token = \"12:ab\"\nchat = \"-5\"",
                "12:ab",
                "/bot********/sendMessage",
            ),
            (
                "twilio",
                "account = \"AC1\"\ntoken = \"of-the-account\"\nfrom = \"+1\"\nto = \"+2\"",
                "QUMxOm9mLXRoZS1hY2NvdW50",
                "From=%2B1",
            ),
            (
                "wecom",
                "key = \"k-of-the-robot\"",
                "k-of-the-robot",
                "key=********",
            ),
            (
                "webhook",
                "url = \"https://a.example/x/y\"\nbody = \"{{ title }}\"\nheaders = { x-key = \"k123\", x-title = \"{{ name }}\" }",
                "k123",
                "x-title: API",
            ),
            (
                "pagerduty",
                "routing_key = \"R0123\"",
                "R0123",
                "\"routing_key\": \"********\"",
            ),
        ] {
            let text = shown_of(kind, settings, NoticeKind::Opened);
            assert!(
                !text.contains(secret) && text.contains(shows),
                "{kind}: {text}"
            );
        }
    }

    #[test]
    fn a_chain_is_shown_as_for_a_new_incident() {
        let settings = "repository = \"a/b\"\ntoken = \"of-github\"";
        let text = shown_of("github", settings, NoticeKind::Opened);
        assert!(
            text.contains("GET https://api.github.com/repos/a/b/issues?"),
            "{text}"
        );
        assert!(
            text.contains("POST https://api.github.com/repos/a/b/issues\n"),
            "{text}"
        );
        assert!(
            text.contains("\"title\": \"[down] API\"") && !text.contains("of-github"),
            "{text}"
        );
        let settings = "host = \"m\"\nfrom = \"a@a.example\"\nto = \"b@b.example\"";
        let text = shown_of("email", settings, NoticeKind::Resolved);
        assert!(text.starts_with("Subject: [up again] API\n\n"), "{text}");
    }
}
