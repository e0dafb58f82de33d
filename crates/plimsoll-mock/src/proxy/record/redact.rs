//! Secrets of what was recorded: what they are called, and what stands in their place.

use plimsoll_model::is_secret_name;
use serde_json::Value;

/// Replaces a secret.
pub const REDACTED: &str = "REDACTED";

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
        is_secret_name(name) || self.is_named(name)
    }

    /// Whether something of that name was named on purpose, besides those that are known.
    fn is_named(&self, name: &str) -> bool {
        self.more.contains(&plain(name))
    }

    /// The value of a field of the header, without what is secret in it.
    pub fn field(&self, name: &str, value: &str) -> String {
        if !self.hides(name) {
            return self.url(value);
        }
        // The name of a cookie and its lifetime are not secret.
        if name.eq_ignore_ascii_case("set-cookie")
            && let Some((name, rest)) = value.split_once('=')
        {
            let attributes = rest.find(';').and_then(|at| rest.get(at..));
            return format!("{name}={REDACTED}{}", attributes.unwrap_or_default());
        }
        REDACTED.to_owned()
    }

    /// A text with URLs, such as that of `location`, without the secrets in their queries, fragments and users.
    pub fn url(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        if let Some((scheme, behind)) = text.split_once("://") {
            let end = behind.find(['/', '?', '#', ' ']).unwrap_or(behind.len());
            let (authority, path) = behind.split_at(end);
            if let Some((_, host)) = authority.rsplit_once('@') {
                for piece in [scheme, "://", REDACTED, "@", host] {
                    clean.push_str(piece);
                }
                rest = path;
            }
        }
        // Pairs stand behind the first of these signs, and between the others.
        let Some(start) = rest.find(['?', '#']) else {
            clean.push_str(rest);
            return clean;
        };
        let (before, pairs) = rest.split_at(start);
        clean.push_str(before);
        for piece in pairs.split_inclusive(['?', '#', '&', ';', '>', ' ', ',', '"']) {
            let ends = piece.ends_with(['?', '#', '&', ';', '>', ' ', ',', '"']);
            let (pair, end) = piece.split_at(piece.len() - usize::from(ends));
            match pair.split_once('=') {
                Some((name, _)) if self.hides(&decoded(name)) => {
                    clean.push_str(name);
                    clean.push('=');
                    clean.push_str(REDACTED);
                }
                _ => clean.push_str(pair),
            }
            clean.push_str(end);
        }
        clean
    }

    /// Content without what is secret in it, if it is JSON and has secrets; all else stays byte for byte.
    ///
    /// - `hidden`: what stands in place of texts.
    pub fn json(&self, bytes: &[u8], hidden: &str) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(bytes).ok()?;
        serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
        let mut scanner = Scanner {
            redaction: self,
            hidden,
            rest: text,
            clean: String::with_capacity(text.len()),
            has_secrets: false,
        };
        scanner.value(Secrecy::None);
        scanner.clean.push_str(scanner.rest);
        scanner.has_secrets.then(|| scanner.clean.into_bytes())
    }
}

/// The hidden part of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    None,
    /// Texts, but no numbers: those under `max_tokens` count something.
    Texts,
    /// Texts and numbers.
    Scalars,
    /// Whatever is named on purpose.
    All,
}

/// Walks over JSON that was found to be some, and copies it.
///
/// It calls itself as deep as the parser before it did, which refuses JSON that is too deep.
struct Scanner<'s> {
    redaction: &'s Redaction,
    hidden: &'s str,
    rest: &'s str,
    clean: String,
    has_secrets: bool,
}

impl Scanner<'_> {
    fn value(&mut self, secrecy: Secrecy) {
        self.blanks();
        match self.rest.as_bytes().first() {
            Some(b'{') => self.object(secrecy),
            Some(b'[') => {
                self.copy(1);
                self.items(']', |scanner| scanner.value(secrecy));
            }
            Some(b'"') => {
                let length = self.string_length();
                if secrecy == Secrecy::None {
                    self.copy(length);
                } else {
                    self.hide(length, &Value::from(self.hidden).to_string());
                }
            }
            Some(b't' | b'f') => {
                let length = self.word_length();
                if secrecy == Secrecy::All {
                    self.hide(length, "false");
                } else {
                    self.copy(length);
                }
            }
            Some(b'n') | None => self.copy(self.word_length()),
            Some(_) => {
                let length = self.word_length();
                if matches!(secrecy, Secrecy::Scalars | Secrecy::All) {
                    self.hide(length, "0");
                } else {
                    self.copy(length);
                }
            }
        }
    }

    fn object(&mut self, secrecy: Secrecy) {
        self.copy(1);
        self.items('}', |scanner| {
            let length = scanner.string_length();
            let name = scanner.rest.get(..length).unwrap_or_default();
            let name: String = serde_json::from_str(name).unwrap_or_default();
            scanner.copy(length);
            scanner.blanks();
            // The colon.
            scanner.copy(1);
            let own = scanner.redaction.secrecy(&name);
            scanner.value(if secrecy == Secrecy::None {
                own
            } else {
                secrecy
            });
        });
    }

    /// Parses items between commas, up to an end.
    fn items(&mut self, end: char, mut each: impl FnMut(&mut Self)) {
        loop {
            self.blanks();
            match self.rest.chars().next() {
                None => return,
                Some(it) if it == end => return self.copy(1),
                Some(',') => self.copy(1),
                Some(_) => each(self),
            }
        }
    }

    fn blanks(&mut self) {
        let rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.copy(self.rest.len() - rest.len());
    }

    fn copy(&mut self, length: usize) {
        let (piece, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.clean.push_str(piece);
        self.rest = rest;
    }

    fn hide(&mut self, length: usize, instead: &str) {
        self.has_secrets = true;
        self.clean.push_str(instead);
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    /// With both quotes.
    fn string_length(&self) -> usize {
        let mut is_escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        });
        end.map_or(self.rest.len(), |end| end + 2)
    }

    fn word_length(&self) -> usize {
        let ends = |it: char| matches!(it, ',' | ']' | '}' | ' ' | '\t' | '\n' | '\r');
        self.rest.find(ends).unwrap_or(self.rest.len())
    }
}

impl Redaction {
    fn secrecy(&self, name: &str) -> Secrecy {
        if self.is_named(name) {
            return Secrecy::All;
        }
        if !self.hides(name) {
            return Secrecy::None;
        }
        let is_count = [
            "tokens",
            "count",
            "length",
            "size",
            "limit",
            "expires",
            "expiresin",
        ];
        let name = plain(name);
        if is_count.iter().any(|ending| name.ends_with(ending)) {
            Secrecy::Texts
        } else {
            Secrecy::Scalars
        }
    }
}

fn decoded(name: &str) -> String {
    let decoded = percent_encoding::percent_decode_str(name);
    decoded.decode_utf8_lossy().into_owned()
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
        for name in ["accept", "key", "id", "code"] {
            assert!(!redaction.hides(name), "{name}");
        }
        assert_eq!(
            redaction.field("set-cookie", "sid=abc; Path=/"),
            "sid=REDACTED; Path=/"
        );
        assert_eq!(redaction.field("x-api-key", "abc"), REDACTED);
        assert_eq!(redaction.field("accept", "abc"), "abc");
        let json = |text: &str| {
            let hidden = redaction.json(text.as_bytes(), REDACTED);
            hidden.map(|it| String::from_utf8(it).unwrap())
        };
        // All but the secrets stays as it was written.
        assert_eq!(
            json(r#"{"user": "a\u0041", "f": 1.10, "tokens": ["b\"", {"c": "d"}],  "max_tokens": 5, "n": 1e3}"#).unwrap(),
            r#"{"user": "a\u0041", "f": 1.10, "tokens": ["REDACTED", {"c": "REDACTED"}],  "max_tokens": 5, "n": 1e3}"#
        );
        assert_eq!(
            json(r#"{"password":123456,"pinCode" : 4711,"pin_code":true,"a":[{"secret":null}]}"#)
                .unwrap(),
            r#"{"password":0,"pinCode" : 0,"pin_code":false,"a":[{"secret":null}]}"#
        );
        assert_eq!(json("{\"a\": 1}"), None);
        assert_eq!(json("password=x"), None);
    }

    #[test]
    fn secrets_in_urls_are_hidden() {
        let redaction = Redaction::new(&["pin".to_owned()]);
        for (value, expected) in [
            ("/cb?access_token=abc&x=1", "/cb?access_token=REDACTED&x=1"),
            (
                "https://a/b?x=1#id_token=abc",
                "https://a/b?x=1#id_token=REDACTED",
            ),
            (
                "https://u:pw@a/b?pin=1",
                "https://REDACTED@a/b?pin=REDACTED",
            ),
            ("/a?api%5Fkey=1;y=2", "/a?api%5Fkey=REDACTED;y=2"),
            ("</a?token=1>; rel=next", "</a?token=REDACTED>; rel=next"),
            ("5; url=/a?secret=1", "5; url=/a?secret=REDACTED"),
            ("/plain", "/plain"),
        ] {
            assert_eq!(redaction.field("location", value), expected);
        }
    }
}
