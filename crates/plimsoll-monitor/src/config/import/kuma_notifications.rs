//! Notifications of Uptime Kuma as channels.

use serde_json::Value;

use crate::config::import::text_of;
use crate::notify::{CHANNELS, ChannelError, notifier_of};

/// Keys of a notification that are no settings of its channel.
const OF_ALL: [&str; 7] = [
    "name",
    "type",
    "id",
    "userId",
    "active",
    "isDefault",
    "applyExisting",
];

/// How a webhook's content is written: as JSON, by a template, or as JSON in a form, which our webhooks do not write.
const FORMAT: &str = "webhookContentType";

/// A notification as a channel.
pub(super) struct ImportedChannel {
    pub(super) key: &'static str,
    /// An inline table.
    pub(super) settings: String,
    /// Settings that the channel does not have, by their keys in Uptime Kuma.
    pub(super) not_carried_over: Vec<String>,
}

/// Fails with why a notification has no channel.
pub(super) fn channel(notification: &Value) -> Result<ImportedChannel, ChannelError> {
    let config = match text_of(notification, "config") {
        Some(text) => serde_json::from_str(text).unwrap_or_default(),
        None => Value::Null,
    };
    let kind = text_of(&config, "type").unwrap_or_default();
    let found = CHANNELS.iter().find_map(|channel| {
        let mut all = channel.kuma.iter();
        Some((channel, all.find(|foreign| foreign.name == kind)?))
    });
    let (channel, foreign) = found.ok_or_else(|| ChannelError::NoneLike(kind.to_owned()))?;
    let theirs = |key| match config.get(key)? {
        Value::String(text) => Some(text.trim().to_owned()),
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
        // Lists of texts are divided by commas elsewhere.
        Value::Array(all) => {
            let all = all.iter().filter_map(Value::as_str);
            Some(all.collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Object(_) => None,
    };
    let settings = foreign.settings(channel, &theirs);
    notifier_of(channel.key, &settings.table)?;
    let given = config.as_object().into_iter().flatten();
    let mut not_carried_over: Vec<_> = given
        .filter(|(key, value)| {
            let is_read = OF_ALL.contains(&key.as_str()) || settings.read.contains(&key.as_str());
            !is_read && says_something(value)
        })
        .map(|(key, _)| key.clone())
        .collect();
    if theirs(FORMAT).as_deref() == Some("form-data") {
        not_carried_over.push(format!("{FORMAT}: form-data"));
    }
    Ok(ImportedChannel {
        key: channel.key,
        settings: toml::Value::Table(settings.table).to_string(),
        not_carried_over,
    })
}

/// Forms keep what was never filled in.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(all) => !all.is_empty(),
        Value::Object(all) => !all.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}
