//! What probes of databases share: their URLs, and rows as JSON.

use plimsoll_model::Secret;
use serde_json::{Map, Value};
use url::Url;

use crate::probe::context::TcpTarget;

/// Rows and bytes of a result that are kept for conditions.
const MOST_ROWS: usize = 1_000;
const MOST_KEPT: usize = 64 * 1024;

/// Whether a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsMode {
    /// Never.
    Disable,
    /// If the server can.
    Prefer,
    /// Always.
    Require,
}

/// Where a database is, and who signs in.
#[derive(Debug)]
pub(super) struct DatabaseUrl {
    pub(super) target: TcpTarget,
    /// Empty if there is none.
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    /// Empty if there is none.
    pub(super) database: String,
    pub(super) tls: TlsMode,
}

/// A scheme of URLs.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatabaseScheme {
    pub(super) names: [&'static str; 2],
    pub(super) port: u16,
    pub(super) example: &'static str,
}

/// Why a URL of a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseUrlError {
    /// It is no URL of that scheme.
    #[error("must be a URL such as {0}")]
    Url(&'static str),
    /// A parameter is not known.
    #[error("`{0}` is not a parameter that is known; `sslmode` is")]
    Parameter(String),
    /// The mode is not known.
    #[error("sslmode `{0}` is not disable, prefer or require")]
    Tls(String),
}

impl DatabaseUrl {
    /// - `is_tls`: whether connections begin with a handshake, by the scheme of the URL.
    pub(super) fn parse(
        text: &str,
        scheme: DatabaseScheme,
        is_tls: impl FnOnce(&str) -> bool,
    ) -> Result<Self, DatabaseUrlError> {
        let wrong = || DatabaseUrlError::Url(scheme.example);
        let url = Url::parse(text).map_err(|_| wrong())?;
        let is_known = scheme.names.contains(&url.scheme());
        let host = url
            .host_str()
            .filter(|host| is_known && !host.is_empty())
            .ok_or_else(wrong)?;
        let target = format!("{host}:{}", url.port().unwrap_or(scheme.port));
        let mut tls = TlsMode::Prefer;
        for (key, value) in url.query_pairs() {
            if key != "sslmode" {
                return Err(DatabaseUrlError::Parameter(key.into_owned()));
            }
            tls = match &*value {
                "disable" => TlsMode::Disable,
                "prefer" => TlsMode::Prefer,
                // Certificates are always verified.
                "require" | "verify-ca" | "verify-full" => TlsMode::Require,
                other => return Err(DatabaseUrlError::Tls(other.to_owned())),
            };
        }
        Ok(Self {
            target: TcpTarget::parse(&target, is_tls(url.scheme()), scheme.port)
                .map_err(|_| wrong())?,
            user: decoded(url.username()),
            password: url.password().map(|it| Secret::new(decoded(it))),
            database: decoded(url.path().trim_start_matches('/')),
            tls,
        })
    }
}

fn decoded(text: &str) -> String {
    let text = percent_encoding::percent_decode_str(text);
    text.decode_utf8_lossy().into_owned()
}

/// The first rows of a result.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Value>,
    size: usize,
}

impl Rows {
    /// Adds a row by its columns; false if there is no room for it.
    ///
    /// Texts that are written as numbers are numbers.
    pub(super) fn add<'r>(
        &mut self,
        columns: impl Iterator<Item = (&'r str, Option<&'r str>)>,
    ) -> bool {
        let mut row = Map::new();
        for (name, text) in columns {
            self.size += name.len() + text.map_or(4, str::len);
            row.insert(name.to_owned(), text.map_or(Value::Null, value));
        }
        if self.rows.len() >= MOST_ROWS || self.size > MOST_KEPT {
            return false;
        }
        self.rows.push(Value::Object(row));
        true
    }

    /// As JSON.
    pub(super) fn into_body(self) -> Vec<u8> {
        Value::Array(self.rows).to_string().into_bytes()
    }
}

fn value(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(number @ Value::Number(_)) => number,
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEME: DatabaseScheme = DatabaseScheme {
        names: ["postgres", "postgresql"],
        port: 5432,
        example: "postgres://db.example.org/shop",
    };

    #[test]
    fn urls_say_who_signs_in_and_where() {
        let parse = |text| DatabaseUrl::parse(text, SCHEME, |_| false);
        let url = parse("postgres://a%40b:p%3A@[::1]:99/x%20y?sslmode=require").unwrap();
        assert_eq!((url.user.as_str(), url.database.as_str()), ("a@b", "x y"));
        assert_eq!(url.password.unwrap().expose(), "p:");
        assert_eq!(
            (url.target.text().as_str(), url.tls),
            ("[::1]:99", TlsMode::Require)
        );
        let plain = parse("postgresql://db.example.org").unwrap();
        assert_eq!(plain.target.text(), "db.example.org:5432");
        assert!(plain.user.is_empty() && plain.database.is_empty() && plain.password.is_none());
        for (wrong, expected) in [
            ("mysql://a/", "must be a URL such as"),
            ("postgres:///x", "must be a URL such as"),
            ("a.example", "must be a URL such as"),
            ("postgres://a/?ssl=1", "`ssl` is not a parameter"),
            ("postgres://a/?sslmode=x", "sslmode `x` is not"),
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }

    #[test]
    fn rows_have_numbers_and_a_limit() {
        let mut rows = Rows::default();
        let columns = [
            ("n", Some("5")),
            ("t", Some("05")),
            ("x", None),
            ("d", Some("-1.5")),
        ];
        assert!(rows.add(columns.into_iter()));
        let body = String::from_utf8(rows.into_body()).unwrap();
        assert_eq!(body, r#"[{"n":5,"t":"05","x":null,"d":-1.5}]"#);
        let (mut rows, long) = (Rows::default(), "x".repeat(30_000));
        let added = (0..5).filter(|_| rows.add([("a", Some(&*long))].into_iter()));
        assert_eq!(added.count(), 2);
    }
}
