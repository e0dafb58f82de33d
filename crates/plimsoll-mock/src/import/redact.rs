//! Secrets of what was recorded: what they are called, and what stands in their place.

use serde_json::Value;

use super::entry::Entry;
use super::when::bare_test;

/// What stands where a secret stood.
pub const REDACTED: &str = "REDACTED";

/// Names that contain one of these, whatever their case and without `-` and `_`, are those of secrets.
const PARTS: [&str; 13] = [
    "authorization",
    "cookie",
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "sessionid",
    "signature",
];

/// Which names are those of secrets.
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    /// Besides those that are known, whatever their case and without `-` and `_`.
    more: Vec<String>,
}

impl Redaction {
    /// - `more`: names besides those that are known.
    pub fn new(more: &[String]) -> Self {
        Self {
            more: more.iter().map(|name| plain(name)).collect(),
        }
    }

    /// Whether something of that name is secret.
    pub fn hides(&self, name: &str) -> bool {
        let name = plain(name);
        PARTS.iter().any(|part| name.contains(part)) || self.more.contains(&name)
    }

    /// The value of a field of the header, without what is secret in it.
    pub fn field(&self, name: &str, value: &str) -> String {
        if !self.hides(name) {
            return value.to_owned();
        }
        // What a cookie is called, and how long it lasts, is none of its secrets.
        if name.eq_ignore_ascii_case("set-cookie")
            && let Some((name, rest)) = value.split_once('=')
        {
            let attributes = rest.find(';').and_then(|at| rest.get(at..));
            return format!("{name}={REDACTED}{}", attributes.unwrap_or_default());
        }
        REDACTED.to_owned()
    }

    /// Content without what is secret in it, if it is JSON.
    pub fn json(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut value: Value = serde_json::from_slice(bytes).ok()?;
        self.hide(&mut value, false)
            .then(|| value.to_string().into_bytes())
    }

    /// Hides the texts of secrets; says whether there were any.
    fn hide(&self, value: &mut Value, is_secret: bool) -> bool {
        match value {
            Value::String(text) if is_secret => {
                REDACTED.clone_into(text);
                true
            }
            Value::Array(all) => {
                let hidden = all.iter_mut().map(|it| self.hide(it, is_secret));
                hidden.fold(false, |one, other| one | other)
            }
            Value::Object(all) => {
                let hidden = all
                    .iter_mut()
                    .map(|(name, it)| self.hide(it, is_secret || self.hides(name)));
                hidden.fold(false, |one, other| one | other)
            }
            _ => false,
        }
    }

    /// The condition on a parameter: its value, or only that it is there if that is secret.
    pub(crate) fn condition(&self, name: &str, value: &str) -> Entry {
        if self.hides(name) {
            bare_test("exists")
        } else {
            value.into()
        }
    }
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|it| !matches!(it, '-' | '_' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        let redaction = Redaction::new(&["PIN-code".to_owned()]);
        for name in [
            "Authorization",
            "set-cookie",
            "X-API-Key",
            "access_token",
            "clientSecret",
            "pin_code",
        ] {
            assert!(redaction.hides(name), "{name}");
        }
        for name in ["accept", "key", "id", "pin"] {
            assert!(!redaction.hides(name), "{name}");
        }
        assert_eq!(
            redaction.field("set-cookie", "sid=abc; Path=/"),
            "sid=REDACTED; Path=/"
        );
        assert_eq!(redaction.field("x-api-key", "abc"), REDACTED);
        assert_eq!(redaction.field("accept", "abc"), "abc");
        let json = br#"{"user": "a", "tokens": ["b", {"c": "d"}], "max_tokens": 5}"#;
        let hidden = redaction.json(json).unwrap();
        let text = String::from_utf8(hidden).unwrap();
        assert_eq!(
            text,
            r#"{"max_tokens":5,"tokens":["REDACTED",{"c":"REDACTED"}],"user":"a"}"#
        );
        assert_eq!(redaction.json(b"{\"a\": 1}"), None);
        assert_eq!(redaction.json(b"password=x"), None);
    }
}
