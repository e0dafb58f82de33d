//! The configuration that is served, for operators: as TOML, with secrets masked.

use std::sync::Arc;

use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use plimsoll_model::{MASK, is_secret_name, masked_text};
use toml::{Table, Value};

use crate::action::Answer;
use crate::message::response::{Response, ResponseBody};
use crate::observe::admin::{AdminMethod, AdminPath};

/// Tables whose texts are secret, whatever their keys are called: hashes of passwords by their users, the account
/// at an authority, and keys in the configuration, which may have their private part.
const SECRET_TABLES: [&str; 3] = ["users", "external_account", "keys"];

/// A table about tokens, or several, which hold none.
const OPEN_TABLE: &str = "jwt";

/// `/config`: the file that was compiled.
pub(super) fn path(text: &str) -> AdminPath {
    let shown = shown(text);
    AdminPath {
        path: "/config",
        method: AdminMethod::Get,
        answer: Arc::new(move |_| {
            let response = Response::new(StatusCode::OK)
                .with_field(CONTENT_TYPE, HeaderValue::from_static("application/toml"))
                .with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"))
                .with_body(ResponseBody::Bytes(shown.clone().into()));
            Answer::now(response)
        }),
    }
}

/// The same configuration without secrets and comments.
fn shown(text: &str) -> String {
    // A configuration that is not TOML is never served.
    let mut table: Table = text.parse().unwrap_or_default();
    for (key, value) in &mut table {
        mask(key, value, false);
    }
    toml::to_string_pretty(&table).unwrap_or_default()
}

fn mask(key: &str, value: &mut Value, is_secret: bool) {
    let is_open = key == OPEN_TABLE && (value.is_table() || value.is_array());
    let is_secret = is_secret || (is_secret_name(key) && !is_open) || SECRET_TABLES.contains(&key);
    match value {
        Value::String(text) if is_secret => MASK.clone_into(text),
        // The user information of URLs.
        Value::String(text) => *text = masked_text(text).into_owned(),
        Value::Array(values) => {
            for value in values {
                mask(key, value, is_secret);
            }
        }
        Value::Table(table) => {
            for (key, value) in table {
                mask(key, value, is_secret);
            }
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let text = r#"
            # hunter2
            [[listen]]
            address = "127.0.0.1:80"
            tls = { acme = { names = ["a.example"], external_account = { id = "hunter2", key = "hunter2" } } }
            [[route]]
            basic_auth = { realm = "a", users = { alice = "hunter2" } }
            proxy = { to = "http://alice:hunter2@127.0.0.1:1/x", headers = { authorization = "hunter2", x-a = "b" } }
            jwt = { issuer = "https://id.example", audience = "api", jwks = { keys = [{ kty = "RSA", d = "hunter2" }] } }
            [[route]]
            jwt = [{ issuer = "https://other.example" }]
            oidc = { issuer = "https://op.example", client_secret = "hunter2", secret = ["hunter2"] }
            [admin]
            token = """
hunter2"""
        "#;
        let shown = shown(text);
        assert!(!shown.contains("hunter2"), "{shown}");
        for kept in [
            "127.0.0.1:80",
            "a.example",
            "realm = \"a\"",
            "x-a = \"b\"",
            "127.0.0.1:1/x",
            "https://id.example",
            "audience = \"api\"",
            "https://op.example",
            "https://other.example",
        ] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        assert!(shown.parse::<Table>().is_ok());
    }
}
