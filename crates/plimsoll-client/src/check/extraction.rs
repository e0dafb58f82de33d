//! Values that are taken from a response for later requests.

use std::fmt;

use serde_json::Value;
use serde_json_path::JsonPath;

use super::condition::json::parse_path;
use super::{ConditionError, Observed};

/// What is taken of a response.
#[derive(Clone)]
pub enum Extraction {
    /// The body, as far as it was kept.
    Body,
    /// The first value that a path selects of a JSON body: the content of a string, any other value as JSON.
    Json(JsonPath),
    /// The first header field of that name, in lower case.
    Field(String),
}

impl Extraction {
    /// What the JSON path (RFC 9535) selects.
    ///
    /// Fails if it is none, or too long or too deep to be parsed quickly.
    pub fn json(path: &str) -> Result<Self, ConditionError> {
        parse_path(path).map(Self::Json)
    }

    /// Whether it needs the body.
    pub fn needs_body(&self) -> bool {
        !matches!(self, Self::Field(_))
    }

    /// The value, unless the response lacks it.
    pub fn value(&self, response: &Observed<'_>) -> Option<Vec<u8>> {
        match self {
            Self::Body => Some(response.body.to_vec()),
            Self::Field(name) => response.header(name).map(<[u8]>::to_vec),
            Self::Json(path) => match path.query(response.json()?).first()? {
                Value::Null => None,
                Value::String(text) => Some(text.clone().into_bytes()),
                value => Some(value.to_string().into_bytes()),
            },
        }
    }

    /// The field that it needs.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Field(name) => Some(name),
            Self::Body | Self::Json(_) => None,
        }
    }
}

impl fmt::Debug for Extraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => f.write_str("Body"),
            Self::Json(path) => write!(f, "Json({path})"),
            Self::Field(name) => write!(f, "Field({name})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::h1::{ResponseHead, ResponseSink as _};

    use super::*;
    use crate::check::{Expectations, Facts};

    #[test]
    fn values_of_fields_and_bodies() {
        let extractions = [Extraction::Body, Extraction::Field("x-id".to_owned())];
        let mut observer = Expectations::default().observer_with(&extractions);
        let header = httparse::Header {
            name: "X-Id",
            value: b"7",
        };
        observer.head(&ResponseHead {
            status: 200,
            reason: "",
            minor_version: 1,
            headers: &[header],
        });
        observer.content(b"{\"token\": \"a\\nb\", \"list\": [{\"id\": 5}], \"none\": null}");
        let response = observer.observed(Facts::default());
        let json = |path: &str| {
            let value = Extraction::json(path).unwrap().value(&response);
            value.map(|value| String::from_utf8(value).unwrap())
        };
        assert_eq!(json("$.token").as_deref(), Some("a\nb"));
        assert_eq!(json("$.list[0].id").as_deref(), Some("5"));
        assert_eq!(json("$.list[0]").as_deref(), Some("{\"id\":5}"));
        assert_eq!(json("$.none"), None);
        assert_eq!(json("$.other"), None);
        let field = |name: &str| Extraction::Field(name.to_owned()).value(&response);
        assert_eq!(field("x-id").as_deref(), Some(&b"7"[..]));
        assert_eq!(field("etag"), None);
        assert!(Extraction::json("token").is_err());
    }
}
