//! Data that templates of other mock servers look up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::store::Store;

/// Values by their names, in the order of their file, and the parameters of one response.
#[derive(Debug, Default, Clone)]
pub struct DataBuckets {
    buckets: Vec<Bucket>,
    parameters: Value,
    globals: Arc<Globals>,
    store: Store,
}

/// Values that templates set for all later requests.
#[derive(Debug, Default)]
pub(crate) struct Globals(Mutex<HashMap<String, Value>>);

/// Names of such values, at most; templates may make them of requests.
const MOST_GLOBALS: usize = 10_000;

/// Bytes of the JSON of one such value, at most.
const LONGEST_GLOBAL: usize = 64 * 1024;

/// Why a value is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GlobalsError {
    #[error("the value of `{0}` has more than {LONGEST_GLOBAL} bytes")]
    TooLong(String),
    #[error("there are {MOST_GLOBALS} variables already")]
    TooMany,
}

impl Globals {
    /// Sets a value; fails if it is too long, or there are too many.
    pub(crate) fn set(&self, name: &str, value: Value) -> Result<(), GlobalsError> {
        if value.to_string().len() > LONGEST_GLOBAL {
            return Err(GlobalsError::TooLong(name.to_owned()));
        }
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if values.len() >= MOST_GLOBALS && !values.contains_key(name) {
            return Err(GlobalsError::TooMany);
        }
        values.insert(name.to_owned(), value);
        Ok(())
    }

    /// The value of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(name).cloned()
    }
}

#[derive(Debug, Clone)]
struct Bucket {
    id: String,
    name: String,
    value: Value,
}

impl DataBuckets {
    /// Adds a value.
    ///
    /// - `text`: JSON; what is not JSON is a text itself.
    pub fn push(&mut self, id: String, name: String, text: String) {
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        self.buckets.push(Bucket { id, name, value });
    }

    /// The same with the parameters of a response.
    #[must_use]
    pub fn with_parameters(&self, parameters: Value) -> Self {
        Self {
            parameters,
            ..self.clone()
        }
    }

    /// The same with the store that scripts have too.
    #[must_use]
    pub(crate) fn with_store(self, store: Store) -> Self {
        Self { store, ..self }
    }

    /// Values that last from one request to the next.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Values that templates set.
    pub(crate) fn globals(&self) -> &Globals {
        &self.globals
    }

    /// The values of `parameters` in WireMock's templates.
    pub(crate) fn parameters(&self) -> &Value {
        &self.parameters
    }

    /// The value of that id, or whose name contains the text in any case, as Mockoon finds it.
    pub(crate) fn find(&self, wanted: &str) -> Option<&Value> {
        let lower = wanted.to_lowercase();
        let mut buckets = self.buckets.iter();
        let found = buckets.find(|bucket| {
            let is_named = !bucket.name.is_empty() && bucket.name.to_lowercase().contains(&lower);
            bucket.id == wanted || is_named
        });
        found.map(|bucket| &bucket.value)
    }
}
