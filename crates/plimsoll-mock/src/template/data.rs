//! Data that templates of other mock servers look up.

use serde_json::Value;

/// Values by their names, in the order of their file, and the parameters of one response.
#[derive(Debug, Default, Clone)]
pub struct DataBuckets {
    buckets: Vec<Bucket>,
    parameters: Value,
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
