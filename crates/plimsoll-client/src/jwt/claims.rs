//! The claims of a token.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The claims of a token by their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JwtClaims(Map<String, Value>);

impl JwtClaims {
    /// The claims of a JSON object; `None` if it is none, or has a name twice (RFC 7519, section 4).
    pub fn parse(content: &[u8]) -> Option<Self> {
        unique_members(content).map(Self)
    }

    /// A claim; one within others by its path, such as `realm_access.roles`. A claim whose own name has dots comes first.
    pub fn find(&self, name: &str) -> Option<&Value> {
        found(&self.0, name)
    }

    /// A claim that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A claim that is a date: seconds since 1970.
    pub(crate) fn date(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// The claims of these names alone, and the outermost of those named by a path.
    #[must_use]
    pub fn only(&self, names: &[String]) -> Self {
        let is_named = |claim: &str| {
            let mut names = names.iter();
            names.any(|name| {
                let rest = name.strip_prefix(claim);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        let claims = self.0.iter().filter(|(name, _)| is_named(name));
        Self(
            claims
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// These claims, and of `others` those that are not among them.
    #[must_use]
    pub fn or(mut self, others: Self) -> Self {
        for (name, value) in others.0 {
            self.0.entry(name).or_insert(value);
        }
        self
    }

    /// The JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// Whether there is a claim of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether a claim is one of these texts, or an array with one of them.
    pub fn is_any_of(&self, name: &str, wanted: &[String]) -> bool {
        let is_wanted = |value: &Value| match value {
            Value::String(text) => wanted.contains(text),
            Value::Bool(_) | Value::Number(_) => wanted.contains(&value.to_string()),
            _ => false,
        };
        match self.find(name) {
            Some(Value::Array(values)) => values.iter().any(is_wanted),
            Some(value) => is_wanted(value),
            None => false,
        }
    }

    /// A claim as the value of a header field: texts as they are, arrays with commas between their values, objects as
    /// JSON.
    ///
    /// `None` for a text with control characters, and for an array one of whose texts has a comma, since a reader would take
    /// it for two values.
    pub fn shown(&self, name: &str) -> Option<String> {
        let shown = match self.find(name)? {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            Value::Array(values) => {
                let values = values.iter().map(|value| match value {
                    Value::String(text) if !text.contains(',') => Some(text.clone()),
                    Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
                    _ => None,
                });
                values.collect::<Option<Vec<_>>>()?.join(",")
            }
            value => value.to_string(),
        };
        (!shown.contains(char::is_control)).then_some(shown)
    }
}

fn found<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let mut dots = name.match_indices('.');
    dots.find_map(|(at, _)| {
        let (first, rest) = (name.get(..at)?, name.get(at + 1..)?);
        found(claims.get(first)?.as_object()?, rest)
    })
}

/// The members of a JSON object, if no name is there twice: two readers could choose different ones.
pub(super) fn unique_members(content: &[u8]) -> Option<Map<String, Value>> {
    let mut deserializer = serde_json::Deserializer::from_slice(content);
    let members = deserializer.deserialize_map(UniqueMembers).ok()?;
    deserializer.end().ok()?;
    Some(members)
}

struct UniqueMembers;

impl<'de> Visitor<'de> for UniqueMembers {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("a name is there twice"));
            }
        }
        Ok(members)
    }
}
