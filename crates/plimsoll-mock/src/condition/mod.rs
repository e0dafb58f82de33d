//! What a rule asks of a request.

pub mod field;

pub mod json;

pub mod text;

use std::fmt;

use crate::asked::{Asked, values};

use self::field::FieldTest;
use self::json::{DottedPath, JsonTest};
use self::text::TextTest;

/// One condition.
#[derive(Debug, Clone)]
pub enum Condition {
    /// Of the path, decoded and normalised.
    Path(TextTest),
    /// One of these methods, whatever the case; none of them if negated.
    Method(Vec<String>),
    /// Of the first field of that name.
    Header(String, FieldTest),
    /// Of the parameters of that name.
    Query(String, FieldTest),
    /// Of the cookies of that name.
    Cookie(String, FieldTest),
    /// Of the fields of that name in a form.
    Form(String, FieldTest),
    /// Of a value in the content, which must be JSON.
    Json(DottedPath, JsonTest),
    /// All of them.
    All(Vec<Self>),
    /// At least one of them.
    Any(Vec<Self>),
    /// Not this one.
    Not(Box<Self>),
}

impl Condition {
    /// Whether a request meets it.
    pub fn is_met_by(&self, asked: &Asked<'_>) -> bool {
        match self {
            Self::Path(test) => test.is_met_by(&asked.path),
            Self::Method(methods) => methods
                .iter()
                .any(|method| method.eq_ignore_ascii_case(asked.method)),
            Self::Header(name, test) => test.is_met_by_bytes(asked.header(name)),
            Self::Query(name, test) => test.is_met_by_any(values(asked.parameters(), name)),
            Self::Cookie(name, test) => test.is_met_by_any(values(asked.cookies(), name)),
            Self::Form(name, test) => test.is_met_by_any(values(asked.form(), name)),
            Self::Json(path, test) => asked
                .json()
                .is_some_and(|json| test.is_met_by(path.find(json))),
            Self::All(conditions) => conditions.iter().all(|it| it.is_met_by(asked)),
            Self::Any(conditions) => conditions.iter().any(|it| it.is_met_by(asked)),
            Self::Not(condition) => !condition.is_met_by(asked),
        }
    }

    /// What a request has where the condition looks, for people.
    pub fn found(&self, asked: &Asked<'_>) -> String {
        let text = |value: Option<&[u8]>| match value {
            None => "nothing".to_owned(),
            Some(value) => shown(&String::from_utf8_lossy(value)),
        };
        let of = |pairs, name: &str| {
            let values: Vec<_> = values(pairs, name).map(shown).collect();
            if values.is_empty() {
                "nothing".to_owned()
            } else {
                values.join(", ")
            }
        };
        match self {
            Self::Path(_) => shown(&asked.path),
            Self::Method(_) => asked.method.to_owned(),
            Self::Header(name, _) => text(asked.header(name)),
            Self::Query(name, _) => of(asked.parameters(), name),
            Self::Cookie(name, _) => of(asked.cookies(), name),
            Self::Form(name, _) => of(asked.form(), name),
            Self::Json(path, _) => match asked.json() {
                None => "content that is no JSON".to_owned(),
                Some(json) => path
                    .find(json)
                    .map_or_else(|| "nothing".to_owned(), |value| cut(&value.to_string())),
            },
            Self::All(conditions) | Self::Any(conditions) => {
                let unmet = conditions.iter().filter(|it| !it.is_met_by(asked));
                let found: Vec<_> = unmet.map(|it| it.found(asked)).collect();
                found.join("; ")
            }
            Self::Not(condition) => condition.found(asked),
        }
    }
}

/// As files would say it, more or less.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, name: &str, conditions: &[Self]| {
            write!(f, "{name}(")?;
            for (at, condition) in conditions.iter().enumerate() {
                if at > 0 {
                    f.write_str(", ")?;
                }
                condition.fmt(f)?;
            }
            f.write_str(")")
        };
        match self {
            Self::Path(test) => write!(f, "url_path {test}"),
            Self::Method(methods) => write!(f, "method {}", methods.join(" or ")),
            Self::Header(name, test) => write!(f, "header {name} {test}"),
            Self::Query(name, test) => write!(f, "query {name} {test}"),
            Self::Cookie(name, test) => write!(f, "cookie {name} {test}"),
            Self::Form(name, test) => write!(f, "form {name} {test}"),
            Self::Json(path, test) => write!(f, "body.json {path} {test}"),
            Self::All(conditions) => joined(f, "all", conditions),
            Self::Any(conditions) => joined(f, "any", conditions),
            Self::Not(condition) => write!(f, "not({condition})"),
        }
    }
}

fn shown(text: &str) -> String {
    format!("{:?}", cut(text))
}

/// Enough of a text to recognise it.
fn cut(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
