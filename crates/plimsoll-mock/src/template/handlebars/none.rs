//! Handlebars in a build without the feature `mock-import`: none.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::request::RequestView;
use crate::template::data::DataBuckets;
use crate::template::{Chance, Dialect};

/// Nothing is added to the settings either.
pub(crate) fn settings() -> Value {
    json!({})
}

/// No name is known, since there are no templates.
pub(crate) fn without_unknown_names(text: &str, _: Dialect) -> (String, Vec<String>) {
    (text.to_owned(), Vec::new())
}

/// There are no such templates in this build.
#[derive(Debug, thiserror::Error)]
#[error("this build has no templates of Handlebars (feature `mock-import`)")]
pub(crate) struct ProgramError;

/// Uninhabited: Handlebars is compiled out.
#[derive(Debug, Clone)]
pub(crate) struct Program(Infallible);

impl Program {
    pub(crate) fn new(
        _: &str,
        _: Dialect,
        _: &Chance,
        _: &[(String, usize)],
        _: &Arc<DataBuckets>,
    ) -> Result<Self, ProgramError> {
        Err(ProgramError)
    }

    pub(crate) fn fill(&self, _: &RequestView<'_>) -> Result<String, Infallible> {
        match self.0 {}
    }
}

impl fmt::Display for Program {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}
