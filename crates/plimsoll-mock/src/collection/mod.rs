//! Collections: the objects of a JSON file, to be listed, read, made, changed and deleted.

mod list;

mod persist;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::StatusCode;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use plimsoll_formats::json5_to_json;
use serde_json::{Map, Value};

use crate::asked::Asked;

pub(crate) use self::persist::Written;

use self::persist::Keeper;

/// More objects are not taken.
const MOST_OBJECTS: usize = 100_000;

/// The objects under one path.
#[derive(Debug)]
pub struct Collection {
    path: String,
    id: String,
    objects: Mutex<Objects>,
    keeper: Option<Keeper>,
    /// Where its objects came from.
    source: Option<PathBuf>,
}

#[derive(Debug)]
struct Objects {
    all: Vec<Map<String, Value>>,
    /// How often they have changed.
    version: u64,
}

/// What a collection answers.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: StatusCode,
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content: Bytes,
    /// What is to be on disk before the answer is sent.
    pub(crate) written: Option<Written>,
}

/// Why a text holds no collection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CollectionError {
    /// It is no JSON, or no array.
    #[error("must be an array of objects: {0}")]
    Array(String),
    /// An object without the key that tells it from others, or with another one's.
    #[error("object {0} has no `{1}` of its own")]
    Id(usize, String),
}

impl Collection {
    /// The objects of a JSON text.
    ///
    /// - `path`: normalised.
    /// - `id`: the key that tells objects from each other.
    /// - `file`: where changes are written; absent to keep them in memory.
    pub fn new(
        path: String,
        id: String,
        text: &str,
        file: Option<PathBuf>,
    ) -> Result<Self, CollectionError> {
        let all = objects(text, &id)?;
        Ok(Self {
            path,
            id,
            objects: Mutex::new(Objects { all, version: 0 }),
            keeper: file.map(Keeper::new),
            source: None,
        })
    }

    /// The same, whose objects came from a file.
    #[must_use]
    pub fn of_file(mut self, file: PathBuf) -> Self {
        self.source = Some(file);
        self
    }

    /// How many objects there are.
    pub fn count(&self) -> usize {
        self.lock().all.len()
    }

    /// Holds what its file has, as in the beginning; one that persists does so anyway. Blocks.
    pub fn reset(&self) -> Result<(), CollectionError> {
        let Some(file) = self.source.as_ref().filter(|_| self.keeper.is_none()) else {
            return Ok(());
        };
        let wrong = |error: &dyn std::fmt::Display| CollectionError::Array(error.to_string());
        let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
        let json = json5_to_json(&text).map_err(|error| wrong(&error))?;
        self.lock().all = objects(&json, &self.id)?;
        Ok(())
    }

    /// Where it is, normalised.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it answers such paths.
    pub fn covers(&self, path: &str) -> bool {
        self.inner(path).is_some()
    }

    /// What remains of a path: nothing of the collection's own, the name of an object below it.
    fn inner<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.path.trim_end_matches('/'))?;
        match rest.strip_prefix('/') {
            None if rest.is_empty() => Some(""),
            None => None,
            Some(id) => Some(id).filter(|id| !id.contains('/')),
        }
    }

    /// What it answers to a request; nothing if the path is another one's.
    pub(crate) fn answer(&self, asked: &Asked<'_>) -> Option<Said> {
        let id = self.inner(&asked.path)?;
        if id.is_empty() {
            return Some(match asked.method {
                "GET" | "HEAD" => list::list(&self.lock().all, asked.parameters()),
                "POST" => self.make(asked),
                _ => not_allowed("GET, HEAD, POST"),
            });
        }
        Some(match asked.method {
            "GET" | "HEAD" => {
                let objects = self.lock();
                match objects.find(&self.id, id) {
                    Some(number) => Said::json(StatusCode::OK, &objects.all[number]),
                    None => missing(),
                }
            }
            "PUT" | "PATCH" => self.change(asked, id),
            "DELETE" => self.delete(id),
            _ => not_allowed("GET, HEAD, PUT, PATCH, DELETE"),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, asked: &Asked<'_>) -> Said {
        let Some(mut object) = asked.json().and_then(Value::as_object).cloned() else {
            return mistake(
                StatusCode::BAD_REQUEST,
                "the content must be an object of JSON",
            );
        };
        let mut objects = self.lock();
        if objects.all.len() >= MOST_OBJECTS {
            return mistake(StatusCode::INSUFFICIENT_STORAGE, "the collection is full");
        }
        match key(&object, &self.id) {
            None if object.contains_key(&self.id) => {
                let text = format!("`{}` must be a text or a number", self.id);
                return mistake(StatusCode::UNPROCESSABLE_ENTITY, &text);
            }
            None => {
                let id = objects.next_id(&self.id);
                object.insert(self.id.clone(), id);
            }
            Some(key) if objects.find(&self.id, &key).is_some() => {
                let text = format!("there is one whose `{}` is {key}", self.id);
                return mistake(StatusCode::CONFLICT, &text);
            }
            Some(_) => {}
        }
        let mut said = Said::json(StatusCode::CREATED, &object);
        let place = key(&object, &self.id).unwrap_or_default();
        let place = format!("{}/{place}", self.path.trim_end_matches('/'));
        if let Ok(value) = HeaderValue::from_str(&place) {
            said.fields.push((LOCATION, value));
        }
        objects.all.push(object);
        said.written = self.changed(&mut objects);
        said
    }

    fn change(&self, asked: &Asked<'_>, id: &str) -> Said {
        let Some(given) = asked.json().and_then(Value::as_object) else {
            return mistake(
                StatusCode::BAD_REQUEST,
                "the content must be an object of JSON",
            );
        };
        let mut objects = self.lock();
        let Some(number) = objects.find(&self.id, id) else {
            return missing();
        };
        let old = &objects.all[number];
        let own = old.get(&self.id).cloned().unwrap_or_default();
        let mut new = if asked.method == "PUT" {
            Value::Object(given.clone())
        } else {
            let mut merged = Value::Object(old.clone());
            merge(&mut merged, &Value::Object(given.clone()));
            merged
        };
        // What an object is called stays.
        new[&self.id] = own;
        let Value::Object(new) = new else {
            return missing();
        };
        let mut said = Said::json(StatusCode::OK, &new);
        objects.all[number] = new;
        said.written = self.changed(&mut objects);
        said
    }

    fn delete(&self, id: &str) -> Said {
        let mut objects = self.lock();
        let Some(number) = objects.find(&self.id, id) else {
            return missing();
        };
        objects.all.remove(number);
        let written = self.changed(&mut objects);
        Said {
            status: StatusCode::NO_CONTENT,
            fields: Vec::new(),
            content: Bytes::new(),
            written,
        }
    }

    /// Notes a change, and what is to be written of it.
    fn changed(&self, objects: &mut Objects) -> Option<Written> {
        objects.version += 1;
        let keeper = self.keeper.as_ref()?;
        let text = serde_json::to_string_pretty(&objects.all).ok()?;
        Some(keeper.written(objects.version, text))
    }
}

/// The objects of a text, each of which has a name of its own.
fn objects(text: &str, id: &str) -> Result<Vec<Map<String, Value>>, CollectionError> {
    let all: Vec<Map<String, Value>> =
        serde_json::from_str(text).map_err(|error| CollectionError::Array(error.to_string()))?;
    let mut keys = HashSet::new();
    for (number, object) in all.iter().enumerate() {
        let is_own = key(object, id).is_some_and(|key| keys.insert(key));
        if !is_own {
            return Err(CollectionError::Id(number + 1, id.to_owned()));
        }
    }
    Ok(all)
}

impl Objects {
    fn find(&self, id: &str, wanted: &str) -> Option<usize> {
        let mut objects = self.all.iter();
        objects.position(|object| key(object, id).is_some_and(|key| key == wanted))
    }

    /// One more than the greatest number.
    fn next_id(&self, id: &str) -> Value {
        let numbers = self.all.iter().filter_map(|object| match object.get(id)? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        });
        let next = numbers.max().unwrap_or(0).saturating_add(1);
        let are_texts = self
            .all
            .iter()
            .any(|object| object.get(id).is_some_and(Value::is_string));
        if are_texts {
            Value::from(next.to_string())
        } else {
            Value::from(next)
        }
    }
}

/// What an object is called, as it stands in a path.
fn key(object: &Map<String, Value>, id: &str) -> Option<String> {
    match object.get(id)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else {
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

impl Said {
    fn json(status: StatusCode, value: &impl serde::Serialize) -> Self {
        let content = serde_json::to_vec(value).unwrap_or_default();
        Self {
            status,
            fields: vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
            content: Bytes::from(content),
            written: None,
        }
    }
}

fn mistake(status: StatusCode, text: &str) -> Said {
    Said::json(status, &serde_json::json!({ "error": text }))
}

fn missing() -> Said {
    mistake(StatusCode::NOT_FOUND, "there is none of that name")
}

fn not_allowed(methods: &'static str) -> Said {
    let mut said = mistake(
        StatusCode::METHOD_NOT_ALLOWED,
        "this method means nothing here",
    );
    said.fields.push((ALLOW, HeaderValue::from_static(methods)));
    said
}

#[cfg(test)]
mod tests;
