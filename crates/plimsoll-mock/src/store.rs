//! Values that scripts keep from one request to the next, shared by all workers.

pub mod states;

pub mod collection;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Number, Value};

/// Keys of the script store; tests use some hundreds, and a script in a loop must not fill memory.
const MOST_KEYS: usize = 100_000;

/// Bytes of all keys and values as JSON by default, beyond which writes fail: the same budget as a collection.
pub const MOST_BYTES: usize = 64 << 20;

/// Values by their keys, shared by all workers.
#[derive(Debug, Clone, Default)]
pub struct Store(Arc<Mutex<StoredValues>>);

#[derive(Debug)]
struct StoredValues {
    /// As JSON.
    values: HashMap<String, String>,
    bytes: usize,
    most: usize,
    /// Values that found no room.
    refused: u64,
}

impl Default for StoredValues {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            bytes: 0,
            most: MOST_BYTES,
            refused: 0,
        }
    }
}

/// Why a value is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There are too many.
    #[error("the store is full: it has {MOST_KEYS} keys")]
    Keys,
    /// They are too long.
    #[error("the store is full: it has {0} bytes (`limits.store`)")]
    Bytes(usize),
    /// The stored value is not a number.
    #[error("what `{0}` has is no number")]
    NoNumber(String),
}

impl Store {
    /// The value of a key, as JSON.
    pub fn value(&self, key: &str) -> Option<String> {
        self.lock().values.get(key).cloned()
    }

    /// Keys that begin so, in order.
    pub fn keys(&self, beginning: &str) -> Vec<String> {
        let kept = self.lock();
        let keys = kept.values.keys();
        let mut keys: Vec<_> = keys
            .filter(|key| key.starts_with(beginning))
            .cloned()
            .collect();
        keys.sort();
        keys
    }

    /// Keeps a value, as JSON, in place of the one before it.
    pub fn put(&self, key: &str, value: String) -> Result<(), StoreError> {
        self.lock().put(key, value)
    }

    /// Adds to a number, 0 if it is absent, and answers the sum; atomic.
    pub fn add(&self, key: &str, by: f64) -> Result<f64, StoreError> {
        let mut kept = self.lock();
        let number = match kept.values.get(key) {
            None => Some(0.0),
            Some(value) => serde_json::from_str::<f64>(value).ok(),
        };
        let sum = number.ok_or_else(|| StoreError::NoNumber(key.to_owned()))? + by;
        let value = Number::from_f64(sum).map_or(Value::Null, Value::Number);
        kept.put(key, value.to_string())?;
        Ok(sum)
    }

    /// Changes a value, as JSON; nothing stands for one that is absent, or is to go. Atomic.
    pub fn change(
        &self,
        key: &str,
        change: impl FnOnce(Option<&str>) -> Option<String>,
    ) -> Result<(), StoreError> {
        let mut kept = self.lock();
        if let Some(value) = change(kept.values.get(key).map(String::as_str)) {
            return kept.put(key, value);
        }
        kept.remove(key);
        Ok(())
    }

    /// Forgets a key; whether it was there.
    pub fn remove(&self, key: &str) -> bool {
        self.lock().remove(key)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut kept = self.lock();
        kept.values = HashMap::new();
        kept.bytes = 0;
    }

    /// Bounds what keys and values may take, in bytes.
    pub fn limit(&self, most: usize) {
        self.lock().most = most;
    }

    /// Bytes of keys and values, what they may be, and how often there was no room.
    pub fn usage(&self) -> (usize, usize, u64) {
        let kept = self.lock();
        (kept.bytes, kept.most, kept.refused)
    }

    fn lock(&self) -> MutexGuard<'_, StoredValues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoredValues {
    fn remove(&mut self, key: &str) -> bool {
        let removed = self.values.remove(key);
        self.bytes -= removed.as_ref().map_or(0, |value| key.len() + value.len());
        removed.is_some()
    }

    fn put(&mut self, key: &str, value: String) -> Result<(), StoreError> {
        let before = self.values.get(key).map(|value| key.len() + value.len());
        if before.is_none() && self.values.len() >= MOST_KEYS {
            self.refused += 1;
            return Err(StoreError::Keys);
        }
        let bytes = self.bytes - before.unwrap_or(0) + key.len() + value.len();
        if bytes > self.most && bytes > self.bytes {
            self.refused += 1;
            return Err(StoreError::Bytes(self.most));
        }
        self.bytes = bytes;
        self.values.insert(key.to_owned(), value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let store = Store::default();
        assert_eq!(store.add("n", 2.0), Ok(2.0));
        assert_eq!(store.add("n", 0.5), Ok(2.5));
        assert_eq!(store.value("n").as_deref(), Some("2.5"));
        store.put("t", "\"x\"".to_owned()).unwrap();
        assert_eq!(
            store.add("t", 1.0),
            Err(StoreError::NoNumber("t".to_owned()))
        );
        assert_eq!(store.keys(""), ["n", "t"]);
        assert_eq!(store.keys("t"), ["t"]);
        let half = "x".repeat(MOST_BYTES / 2);
        store.put("a", half.clone()).unwrap();
        assert_eq!(
            store.put("b", half.clone()),
            Err(StoreError::Bytes(MOST_BYTES))
        );
        store.put("a", half.clone()).unwrap();
        assert!(store.remove("a") && !store.remove("a"));
        store.put("b", half).unwrap();
        store.clear();
        assert_eq!(store.lock().bytes, 0);
        for number in 0..MOST_KEYS {
            store.put(&number.to_string(), "1".to_owned()).unwrap();
        }
        assert_eq!(store.put("x", "1".to_owned()), Err(StoreError::Keys));
        store.put("7", "2".to_owned()).unwrap();
    }
}
