//! Secrets of a configuration, by the keys that they stand at.

use plimsoll_model::{MASK, is_secret_name, masked_text};
use serde_json::Value;

/// Tables whose texts are secret, whatever their keys are called: hashes of passwords by their users, the account
/// at an authority, and keys in the configuration, which may have their private part.
const SECRET_TABLES: [&str; 3] = ["users", "external_account", "keys"];

/// Tables about tokens, or several, which hold none, and about a service that authorizes.
const OPEN_TABLES: [&str; 2] = ["jwt", "auth"];

/// Whether the value at `key` is secret, or each text below it.
///
/// - `is_secret`: whether the table that it is in is.
pub(super) fn is_secret_value(key: &str, value: &Value, is_secret: bool) -> bool {
    let is_open = OPEN_TABLES.contains(&key) && (value.is_object() || value.is_array());
    is_secret || (is_secret_name(key) && !is_open) || SECRET_TABLES.contains(&key)
}

/// Puts a mask in place of each secret.
///
/// - `is_secret`: whether the table that the value is in is secret.
pub(super) fn mask(key: &str, value: &mut Value, is_secret: bool) {
    let is_secret = is_secret_value(key, value, is_secret);
    match value {
        Value::String(text) if is_secret => MASK.clone_into(text),
        // The user information of URLs.
        Value::String(text) => *text = masked_text(text).into_owned(),
        Value::Array(values) => {
            for value in values {
                mask(key, value, is_secret);
            }
        }
        Value::Object(table) => {
            for (key, value) in table {
                mask(key, value, is_secret);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
