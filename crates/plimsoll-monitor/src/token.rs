//! `[[token]]`: who may use the API, by the hash of what they send.

use crate::store::Scope;
use plimsoll_model::Secret;
use plimsoll_model::document::{Table, Value, as_text};
use ring::digest::{SHA256, digest};
use ring::rand::{self, SystemRandom};

/// A token of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiToken {
    /// In timelines.
    pub name: String,
    /// The SHA-256 of the token, which itself is nowhere.
    pub hash: [u8; 32],
    /// Its permissions.
    pub scope: Scope,
}

impl ApiToken {
    /// A new token of 256 random bits; fails if the system has none.
    pub fn generate() -> Result<String, ring::error::Unspecified> {
        let random: [u8; 32] = rand::generate(&SystemRandom::new())?.expose();
        Ok(format!("pm_{}", Self::written(&random)))
    }

    /// The hash of a token.
    pub fn hash_of(token: &str) -> [u8; 32] {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        hash
    }

    /// A hash as it stands in files: 64 hexadecimal digits.
    pub fn written(hash: &[u8; 32]) -> String {
        const DIGITS: [char; 16] = [
            '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
        ];

        let digits = |byte: &u8| {
            [
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]
        };
        hash.iter().flat_map(digits).collect()
    }
}

pub(crate) fn compile(mut table: Table<'_>) -> Option<ApiToken> {
    let name = table.text("name");
    if !table.was_given("name") {
        table.missing("name", "who uses the token");
    }
    let hash = if let Some(value) = table.take_value("sha256") {
        parse(&value)
    } else {
        table.missing(
            "sha256",
            "`plimsoll monitor token` makes a token and its hash",
        );
        None
    };
    let mut scope = Scope::Read;
    for value in table
        .take_value("scopes")
        .map(Value::elements)
        .unwrap_or_default()
    {
        match as_text(&value) {
            None => {}
            Some(name) => match Scope::named(name) {
                Some(named) => scope = scope.max(named),
                None => {
                    value.wrong::<()>(format!("`{name}` is not \"read\", \"write\" or \"admin\""));
                }
            },
        }
    }
    table.finish();
    Some(ApiToken {
        name: name?,
        hash: hash?,
        scope,
    })
}

/// A secret that is part of a URL, such as that of a heartbeat.
pub(crate) fn of_url(value: &Value<'_>) -> Option<Secret> {
    /// Shorter ones can be guessed.
    const SHORTEST: usize = 16;

    let text = as_text(value)?;
    let is_safe = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if text.len() < SHORTEST || !is_safe {
        return value
            .wrong("needs at least 16 letters, digits, hyphens and underscores, such as a UUID");
    }
    Some(Secret::new(text))
}

/// The hash that a value holds as text.
pub(crate) fn parse(value: &Value<'_>) -> Option<[u8; 32]> {
    let text = as_text(value)?;
    let mut hash = [0; 32];
    let pairs = text.as_bytes().chunks(2);
    let is_hash = text.len() == 64
        && hash.iter_mut().zip(pairs).all(|(byte, pair)| {
            let pair = std::str::from_utf8(pair).unwrap_or_default();
            let parsed = u8::from_str_radix(pair, 16).ok();
            *byte = parsed.unwrap_or(0);
            parsed.is_some()
        });
    if is_hash {
        Some(hash)
    } else {
        value.wrong_with(
            "is not 64 hexadecimal digits",
            Some("`plimsoll monitor token` makes one".to_owned()),
        )
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::document::Document;

    use super::*;

    #[test]
    fn a_secret_of_a_url_has_what_admin_pages_put_into_it() {
        let secret = |text: &str| {
            let text = format!("token = \"{text}\"");
            let mut document = Document::parse(&text);
            let value = document.root().take_value("token").unwrap();
            of_url(&value).map(|secret| secret.expose().to_owned())
        };
        // Every letter of base64 for URLs.
        let all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        assert_eq!(secret(all).as_deref(), Some(all));
        for wrong in [
            "0123456789abcde",
            "0123456789abcdef/",
            "0123456789abcdef.",
            "0123456789 abcdef",
        ] {
            assert_eq!(secret(wrong), None, "{wrong}");
        }
    }
}
