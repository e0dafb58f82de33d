//! The call of a helper, and its result.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fastrand::Rng;
use handlebars::JsonRender;
use serde_json::Value;

use crate::rules::java_regex::JavaRegexError;
use crate::template::Chance;
use crate::template::data::{DataBuckets, GlobalsError};
use crate::template::dates::{DateError, TruncationError};

/// One call of a helper.
pub(super) struct Call<'c> {
    /// The helper's name.
    pub(super) name: &'c str,
    /// Its arguments; of a block without any, what stands in the block.
    pub(super) arguments: Vec<&'c Value>,
    pub(super) options: BTreeMap<&'c str, &'c Value>,
    /// The values of the template.
    pub(super) model: &'c Value,
    pub(super) chance: &'c Chance,
    pub(super) data: &'c DataBuckets,
}

/// Why a helper gives no value: what is wrong with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HelperError {
    #[error("a number is missing")]
    NumberMissing,
    #[error("`{0}` is no number")]
    NotANumber(String),
    #[error(transparent)]
    Globals(#[from] GlobalsError),
    #[error(transparent)]
    Date(#[from] DateError),
    #[error(transparent)]
    Truncation(#[from] TruncationError),
    #[error(transparent)]
    Regex(#[from] JavaRegexError),
    /// What only one helper asks of its arguments.
    #[error("{0}")]
    Argument(Cow<'static, str>),
}

impl From<&'static str> for HelperError {
    fn from(problem: &'static str) -> Self {
        Self::Argument(problem.into())
    }
}

impl From<String> for HelperError {
    fn from(problem: String) -> Self {
        Self::Argument(problem.into())
    }
}

/// A helper; fails with the error in its arguments.
pub(super) type Run = fn(&Call<'_>) -> Result<Value, HelperError>;

impl<'c> Call<'c> {
    /// An argument, unless it is missing or null.
    pub(super) fn argument(&self, at: usize) -> Option<&'c Value> {
        self.arguments.get(at).copied().filter(|it| !it.is_null())
    }

    /// An argument as text; empty if it is missing.
    pub(super) fn text(&self, at: usize) -> String {
        self.argument(at)
            .map(JsonRender::render)
            .unwrap_or_default()
    }

    /// An argument as a number, which a text may hold too.
    pub(super) fn number(&self, at: usize) -> Result<f64, HelperError> {
        let value = self.argument(at).ok_or(HelperError::NumberMissing)?;
        number(value).ok_or_else(|| HelperError::NotANumber(value.render()))
    }

    pub(super) fn option(&self, name: &str) -> Option<&'c Value> {
        self.options.get(name).copied().filter(|it| !it.is_null())
    }

    pub(super) fn option_text(&self, name: &str) -> Option<String> {
        self.option(name).map(JsonRender::render)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.option(name)
            .is_some_and(|it| *it == Value::Bool(true) || *it == "true")
    }

    /// All arguments, of which a list alone is its elements.
    pub(super) fn items(&self) -> Vec<Value> {
        match self.arguments.as_slice() {
            [Value::Array(items)] => items.clone(),
            all => all.iter().map(|it| (*it).clone()).collect(),
        }
    }

    pub(super) fn with<T>(&self, take: impl FnOnce(&mut Rng) -> T) -> T {
        self.chance.with(take)
    }

    /// The part of the request under a name.
    pub(super) fn request(&self, name: &str) -> &'c Value {
        &self.model["request"][name]
    }
}

pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A number, whole if it is.
pub(super) fn of_number(number: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole and within the bounds"
    )]
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return Value::from(number as i64);
    }
    serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)
}
