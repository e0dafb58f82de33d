//! Notifications of Uptime Kuma as channels.

use plimsoll_model::document::toml_string;
use serde_json::Value;

use crate::config::import::{table, text_of};
use crate::notify::{ChannelError, notifier_of};

/// A kind there: its name, our channel, and the keys of both.
type Kind = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const KINDS: [Kind; 15] = [
    ("discord", "discord", &[("discordWebhookUrl", "url")]),
    ("slack", "slack", &[("slackwebhookURL", "url")]),
    ("teams", "teams", &[("webhookUrl", "url")]),
    (
        "GoogleChat",
        "google_chat",
        &[("googleChatWebhookURL", "url")],
    ),
    (
        "mattermost",
        "mattermost",
        &[
            ("mattermostWebhookUrl", "url"),
            ("mattermostchannel", "channel"),
        ],
    ),
    (
        "rocket.chat",
        "mattermost",
        &[("rocketwebhookURL", "url"), ("rocketchannel", "channel")],
    ),
    (
        "telegram",
        "telegram",
        &[("telegramBotToken", "token"), ("telegramChatID", "chat")],
    ),
    (
        "gotify",
        "gotify",
        &[
            ("gotifyserverurl", "url"),
            ("gotifyapplicationToken", "token"),
        ],
    ),
    (
        "ntfy",
        "ntfy",
        &[
            ("ntfyserverurl", "url"),
            ("ntfytopic", "topic"),
            ("ntfyaccesstoken", "token"),
        ],
    ),
    (
        "pushover",
        "pushover",
        &[("pushoverapptoken", "token"), ("pushoveruserkey", "user")],
    ),
    (
        "matrix",
        "matrix",
        &[
            ("homeserverUrl", "url"),
            ("internalRoomId", "room"),
            ("accessToken", "token"),
        ],
    ),
    (
        "PagerDuty",
        "pagerduty",
        &[("pagerdutyIntegrationKey", "routing_key")],
    ),
    ("Opsgenie", "opsgenie", &[("opsgenieApiKey", "key")]),
    (
        "twilio",
        "twilio",
        &[
            ("twilioAccountSID", "account"),
            ("twilioAuthToken", "token"),
            ("twilioFromNumber", "from"),
            ("twilioToNumber", "to"),
        ],
    ),
    ("webhook", "webhook", &[("webhookURL", "url")]),
];

/// The channel of a notification, as a key with an inline table; fails with why it has none.
pub(super) fn channel(notification: &Value) -> Result<(&'static str, String), ChannelError> {
    let config = match text_of(notification, "config") {
        Some(text) => serde_json::from_str(text).unwrap_or_default(),
        None => Value::Null,
    };
    let kind = text_of(&config, "type").unwrap_or_default();
    let (channel, pairs) = if kind == "smtp" {
        ("email", email(&config))
    } else {
        let found = KINDS.iter().find(|(name, ..)| *name == kind);
        let (_, channel, keys) = found.ok_or_else(|| ChannelError::NoneLike(kind.to_owned()))?;
        let pairs = keys
            .iter()
            .filter_map(|(theirs, ours)| Some((*ours, toml_string(text_of(&config, theirs)?))));
        (*channel, pairs.collect())
    };
    let written = table(&pairs);
    let settings: toml::Table = format!("it = {written}").parse().unwrap_or_default();
    let settings = settings.get("it").and_then(toml::Value::as_table);
    notifier_of(channel, settings.unwrap_or(&toml::Table::new()))?;
    Ok((channel, written))
}

fn email(config: &Value) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    for (theirs, ours) in [
        ("smtpHost", "host"),
        ("smtpUsername", "username"),
        ("smtpPassword", "password"),
        ("smtpFrom", "from"),
    ] {
        pairs.extend(text_of(config, theirs).map(|text| (ours, toml_string(text))));
    }
    let port = match &config["smtpPort"] {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let port = port.unwrap_or(587);
    let security = match (config["smtpSecure"] == true, port) {
        (true, _) => "tls",
        (false, 25) => "none",
        (false, _) => "starttls",
    };
    pairs.push(("port", port.to_string()));
    pairs.push(("security", toml_string(security)));
    let to = text_of(config, "smtpTo").unwrap_or_default();
    let to = to.split(',').map(str::trim).filter(|one| !one.is_empty());
    let to: Vec<_> = to.map(toml_string).collect();
    pairs.push(("to", format!("[{}]", to.join(", "))));
    pairs
}
