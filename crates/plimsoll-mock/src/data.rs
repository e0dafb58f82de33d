//! Data that templates of Mockoon look up by name.

use serde_json::Value;

/// Values by their names, in the order of their file.
#[derive(Debug, Default)]
pub struct DataBuckets(Vec<Bucket>);

#[derive(Debug)]
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
        self.0.push(Bucket { id, name, value });
    }

    /// The value of that id, or whose name contains the text in any case, as Mockoon finds it.
    pub(crate) fn find(&self, wanted: &str) -> Option<&Value> {
        let lower = wanted.to_lowercase();
        let mut buckets = self.0.iter();
        let found = buckets.find(|bucket| {
            let is_named = !bucket.name.is_empty() && bucket.name.to_lowercase().contains(&lower);
            bucket.id == wanted || is_named
        });
        found.map(|bucket| &bucket.value)
    }
}
