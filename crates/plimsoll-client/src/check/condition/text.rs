//! Tests on text: bodies and header fields, as bytes.

use regex::bytes::Regex;

use super::ConditionError;

#[derive(Debug, Clone)]
pub(super) enum TextTest {
    Equal(Vec<u8>),
    NotEqual(Vec<u8>),
    Contains(Vec<u8>),
    Matches(Regex),
    Exists,
}

const KNOWN: &str = "==, !=, contains, matches, exists";

impl TextTest {
    pub(super) fn parse(
        subject: &str,
        operator: &str,
        value: &str,
    ) -> Result<Self, ConditionError> {
        let text = unquote(value);
        Ok(match operator {
            "==" | "=" => Self::Equal(text.into()),
            "!=" => Self::NotEqual(text.into()),
            "contains" => Self::Contains(text.into()),
            "matches" => Self::Matches(regex(text)?),
            "exists" => Self::Exists,
            _ => {
                return Err(ConditionError::Operator {
                    subject: subject.to_owned(),
                    operator: operator.to_owned(),
                    known: KNOWN,
                });
            }
        })
    }

    /// An absent value differs from every value.
    pub(super) fn holds(&self, value: Option<&[u8]>) -> bool {
        let Some(value) = value else {
            return matches!(self, Self::NotEqual(_));
        };
        match self {
            Self::Equal(text) => value == text,
            Self::NotEqual(text) => value != text,
            Self::Contains(text) => {
                text.is_empty() || value.windows(text.len()).any(|part| part == text)
            }
            Self::Matches(regex) => regex.is_match(value),
            Self::Exists => true,
        }
    }
}

pub(super) fn regex(text: &str) -> Result<Regex, ConditionError> {
    Regex::new(text).map_err(|error| ConditionError::Regex(error.to_string()))
}

/// Takes off one pair of quotes.
pub(super) fn unquote(value: &str) -> &str {
    unquoted(value).unwrap_or(value)
}

/// The text within one pair of quotes, if there is one.
pub(super) fn unquoted(value: &str) -> Option<&str> {
    ['\'', '"']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
}

/// The beginning of a text that may be long or not UTF-8.
pub(super) fn excerpt(value: &[u8]) -> String {
    const BYTES: usize = 120;

    match value.split_at_checked(BYTES) {
        Some((start, rest)) if !rest.is_empty() => {
            // A character that the cut went through is no part of it.
            let mut text = String::from_utf8_lossy(start).into_owned();
            while text.ends_with(char::REPLACEMENT_CHARACTER) {
                text.pop();
            }
            text + "…"
        }
        _ => String::from_utf8_lossy(value).into_owned(),
    }
}
