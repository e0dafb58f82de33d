//! Notifications of Uptime Kuma as channels.

use serde_json::Value;

use crate::config::import::text_of;
use crate::notify::{CHANNELS, ChannelError, notifier_of};

/// The channel of a notification, as a key with an inline table; fails with why it has none.
pub(super) fn channel(notification: &Value) -> Result<(&'static str, String), ChannelError> {
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
    notifier_of(channel.key, &settings)?;
    Ok((channel.key, toml::Value::Table(settings).to_string()))
}
