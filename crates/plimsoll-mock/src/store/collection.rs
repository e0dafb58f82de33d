//! Collections: the objects of a JSON file, to be listed, read, made, changed and deleted.

mod database;

mod list;

mod persist;

mod related;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use plimsoll_formats::json5_to_json;
use serde_json::{Map, Value};

use crate::request::RequestView;

pub use self::database::CollectionError;
pub(crate) use self::database::{MOST_BYTES, nameless};
pub(crate) use self::persist::DatabaseVersion;

use self::database::{
    Database, Full, MOST_OBJECTS, Object, Snapshot, Table, Tables, find, key, length, next_id,
};

/// The objects under one path.
#[derive(Debug)]
pub struct Collection {
    path: String,
    /// Which table of the database it is, and what that is called.
    number: usize,
    name: String,
    database: Arc<Database>,
}

/// Settings of a database.
#[derive(Debug)]
pub(crate) struct CollectionOptions {
    /// Path, normalised; for a file with several lists, the prefix of their names.
    pub(crate) path: String,
    /// The key that identifies objects.
    pub(crate) id: String,
    /// Bytes of the JSON of its objects.
    pub(crate) most_bytes: u64,
    /// File to which changes are written; absent to keep them in memory.
    pub(crate) kept: Option<PathBuf>,
    /// Source of its objects.
    pub(crate) source: Option<PathBuf>,
}

/// The response of a collection.
#[derive(Debug)]
pub(crate) struct StoredResponse {
    pub(crate) status: StatusCode,
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content: Bytes,
    /// The change to write to disk before the response is sent.
    pub(crate) written: Option<DatabaseVersion>,
}

/// The part of a collection that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inner<'p> {
    /// All objects, or the one that stands alone.
    Whole,
    /// The object of that name.
    One(&'p str),
    /// Objects of another name that belong to it.
    Children(&'p str, &'p str),
}

impl Collection {
    /// The collections of a JSON text: one of an array, several of an object.
    pub(crate) fn all_of(
        options: CollectionOptions,
        text: &str,
    ) -> Result<Vec<Self>, CollectionError> {
        let base = options.path.trim_end_matches('/').to_owned();
        let name = base.rsplit('/').next().unwrap_or_default().to_owned();
        let mut database =
            Database::new(&name, options.id, text, options.most_bytes, options.kept)?;
        database.source = options.source;
        let database = Arc::new(database);
        let is_array = text.trim_start().starts_with('[');
        let tables = Arc::clone(&database.snapshot().tables);
        let collections = tables.iter().enumerate().map(|(number, (name, _))| Self {
            path: if is_array {
                options.path.clone()
            } else {
                format!("{base}/{name}")
            },
            number,
            name: name.clone(),
            database: Arc::clone(&database),
        });
        Ok(collections.collect())
    }

    /// Number of objects.
    pub fn count(&self) -> usize {
        match self.database.lock().table(self.number) {
            Some(Table::List(list)) => list.len(),
            Some(Table::Single(_)) => 1,
            None => 0,
        }
    }

    /// Bytes of the JSON of all objects of its file, and what they may be.
    pub fn bytes(&self) -> (u64, u64) {
        (self.database.bytes(), self.database.most_bytes)
    }

    /// Changes of its file that were refused because there was no room.
    pub fn refused(&self) -> u64 {
        self.database.refused()
    }

    /// Holds what its file has, as in the beginning; one that persists does so anyway. Blocks.
    pub fn reset(&self) -> Result<(), CollectionError> {
        let database = &self.database;
        let Some(file) = database.source.as_ref().filter(|_| !database.is_kept()) else {
            return Ok(());
        };
        let wrong = |error: &dyn std::fmt::Display| CollectionError::Array(error.to_string());
        let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
        let json = json5_to_json(&text).map_err(|error| wrong(&error))?;
        database.reset(&self.name, &json)
    }

    /// The file that its changes are written to, if they are.
    pub(crate) fn kept_file(&self) -> Option<PathBuf> {
        let database = &self.database;
        database.source.clone().filter(|_| database.is_kept())
    }

    /// Path, normalised.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it answers such paths.
    pub fn covers(&self, path: &str) -> bool {
        let snapshot = self.database.snapshot();
        let is_list = matches!(snapshot.tables.get(self.number), Some((_, Table::List(_))));
        match self.inner(path) {
            None => false,
            Some(Inner::Whole) => true,
            Some(Inner::One(_)) => is_list,
            Some(Inner::Children(_, name)) => {
                is_list && matches!(snapshot.named(name), Some(Table::List(_)))
            }
        }
    }

    /// The part that a path names; `None` if it is not of this collection.
    fn inner<'p>(&self, path: &'p str) -> Option<Inner<'p>> {
        let rest = path.strip_prefix(self.path.trim_end_matches('/'))?;
        let Some(rest) = rest.strip_prefix('/') else {
            return rest.is_empty().then_some(Inner::Whole);
        };
        match rest.split_once('/') {
            None if rest.is_empty() => Some(Inner::Whole),
            None => Some(Inner::One(rest)),
            Some((id, name)) if !name.contains('/') => Some(Inner::Children(id, name)),
            Some(_) => None,
        }
    }

    /// The response to a request; `None` if the path is not of this collection.
    pub(crate) fn answer(&self, request: &RequestView<'_>) -> Option<StoredResponse> {
        let inner = self.inner(&request.path)?;
        let snapshot = self.database.snapshot();
        let (_, table) = snapshot.tables.get(self.number)?;
        match (table, inner) {
            (Table::List(list), Inner::Whole) => Some(match request.method {
                "GET" | "HEAD" => self.list(&snapshot, &self.name, list, request),
                "POST" => self.make(request, self.number, None),
                _ => not_allowed("GET, HEAD, POST"),
            }),
            (Table::List(list), Inner::One(id)) => Some(match request.method {
                "GET" | "HEAD" => match find(list, &self.database.id, id) {
                    Some(at) => {
                        let related = self.related(&snapshot, &self.name);
                        let object = related.with(&list[at], request.parameters());
                        StoredResponse::json(StatusCode::OK, &object)
                    }
                    None => missing(),
                },
                "PUT" | "PATCH" => self.change(request, id),
                "DELETE" => self.delete(id),
                _ => not_allowed("GET, HEAD, PUT, PATCH, DELETE"),
            }),
            (Table::List(list), Inner::Children(id, name)) => {
                let number = snapshot
                    .tables
                    .iter()
                    .position(|(known, _)| known == name)?;
                let (_, Table::List(children)) = &snapshot.tables[number] else {
                    return None;
                };
                let Some(at) = find(list, &self.database.id, id) else {
                    return Some(missing());
                };
                let foreign = related::foreign_key(&self.name);
                let own = list[at].get(&self.database.id);
                Some(match request.method {
                    "GET" | "HEAD" => {
                        let belongs =
                            |child: &&Arc<Value>| related::is_same(child.get(&foreign), own);
                        let children: Vec<_> = children.iter().filter(belongs).cloned().collect();
                        self.list(&snapshot, name, &children, request)
                    }
                    "POST" => self.make(request, number, own.cloned().map(|own| (foreign, own))),
                    _ => not_allowed("GET, HEAD, POST"),
                })
            }
            (Table::Single(value), Inner::Whole) => Some(match request.method {
                "GET" | "HEAD" => StoredResponse::json(StatusCode::OK, &**value),
                "PUT" | "PATCH" => self.change_single(request),
                _ => not_allowed("GET, HEAD, PUT, PATCH"),
            }),
            (Table::Single(_), _) => None,
        }
    }

    fn related<'s>(&'s self, snapshot: &'s Snapshot, name: &'s str) -> related::Related<'s> {
        related::Related {
            snapshot,
            name,
            id: &self.database.id,
        }
    }

    fn list(
        &self,
        snapshot: &Snapshot,
        name: &str,
        all: &[Arc<Value>],
        request: &RequestView<'_>,
    ) -> StoredResponse {
        let parameters = request.parameters();
        let page = match list::page_of(all, parameters) {
            Ok(page) => page,
            Err(error) => return mistake(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        let related = self.related(snapshot, name);
        let objects = page.objects.iter();
        let objects: Vec<_> = objects.map(|it| related.with(it, parameters)).collect();
        let mut response = StoredResponse::json(StatusCode::OK, &objects);
        let name = HeaderName::from_static("x-total-count");
        response.fields.push((name, HeaderValue::from(page.total)));
        if let Some(link) = page.link(request) {
            response.fields.push((http::header::LINK, link));
        }
        response
    }

    /// - `belongs`: the key that says which object it belongs to, with its value.
    fn make(
        &self,
        request: &RequestView<'_>,
        number: usize,
        belongs: Option<(String, Value)>,
    ) -> StoredResponse {
        let Some(mut object) = request.json().and_then(Value::as_object).cloned() else {
            return mistake(
                StatusCode::BAD_REQUEST,
                "the content must be an object of JSON",
            );
        };
        object.extend(belongs);
        let database = &self.database;
        let id = &database.id;
        let mut tables = database.lock();
        let Some(Table::List(list)) = tables.table(number) else {
            return missing();
        };
        if list.len() >= MOST_OBJECTS {
            return full(database.full(&format!("{MOST_OBJECTS} objects")));
        }
        if !object.contains_key(id) {
            object.shift_insert(0, id.clone(), next_id(list, id));
        }
        let object = Value::Object(object);
        match key(&object, id) {
            None => {
                let text = format!("`{id}` must be a text or a number");
                return mistake(StatusCode::UNPROCESSABLE_ENTITY, &text);
            }
            Some(key) if find(list, id, &key).is_some() => {
                let text = format!("there is one whose `{id}` is {key}");
                return mistake(StatusCode::CONFLICT, &text);
            }
            Some(_) => {}
        }
        if let Err(error) = database.reserve(&mut tables, 0, length(&object)) {
            return full(error);
        }
        let object = Arc::new(object);
        if let Some(list) = tables.list_mut(number) {
            list.push(Arc::clone(&object));
        }
        let written = database.changed(&mut tables);
        drop(tables);
        let mut response = StoredResponse::json(StatusCode::CREATED, &*object);
        let place = key(&object, id).unwrap_or_default();
        let own = self.path.trim_end_matches('/');
        let place = if number == self.number {
            format!("{own}/{place}")
        } else {
            format!("{}/{place}", request.path.trim_end_matches('/'))
        };
        if let Ok(value) = HeaderValue::from_str(&place) {
            response.fields.push((LOCATION, value));
        }
        response.written = written;
        response
    }

    fn change(&self, request: &RequestView<'_>, id: &str) -> StoredResponse {
        let changed = self.put(request, |tables, given| {
            let Some(Table::List(list)) = tables.table(self.number) else {
                return Err(missing());
            };
            let key = &self.database.id;
            let at = find(list, key, id).ok_or_else(missing)?;
            let old = Arc::clone(&list[at]);
            // The key of an object never changes.
            let own = old.get(key).cloned().unwrap_or_default();
            let mut new = changed(&old, given, request.method);
            if new.insert(key.clone(), own.clone()).is_none() {
                new.shift_insert(0, key.clone(), own);
            }
            let new = Arc::new(Value::Object(new));
            let room = self.database.reserve(tables, length(&old), length(&new));
            room.map_err(full)?;
            if let Some(list) = tables.list_mut(self.number) {
                list[at] = Arc::clone(&new);
            }
            Ok(new)
        });
        changed.unwrap_or_else(|response| response)
    }

    fn change_single(&self, request: &RequestView<'_>) -> StoredResponse {
        let changed = self.put(request, |tables, given| {
            let Some(Table::Single(old)) = tables.table(self.number) else {
                return Err(missing());
            };
            let old = Arc::clone(old);
            let new = Arc::new(Value::Object(changed(&old, given, request.method)));
            let room = self.database.reserve(tables, length(&old), length(&new));
            room.map_err(full)?;
            tables.put_single(self.number, Arc::clone(&new));
            Ok(new)
        });
        changed.unwrap_or_else(|response| response)
    }

    /// Changes an object by the one that was sent.
    fn put(
        &self,
        request: &RequestView<'_>,
        change: impl FnOnce(&mut Tables, &Object) -> Result<Arc<Value>, StoredResponse>,
    ) -> Result<StoredResponse, StoredResponse> {
        let given = request.json().and_then(Value::as_object).ok_or_else(|| {
            mistake(
                StatusCode::BAD_REQUEST,
                "the content must be an object of JSON",
            )
        })?;
        let mut tables = self.database.lock();
        let new = change(&mut tables, given)?;
        let written = self.database.changed(&mut tables);
        drop(tables);
        let mut response = StoredResponse::json(StatusCode::OK, &*new);
        response.written = written;
        Ok(response)
    }

    fn delete(&self, id: &str) -> StoredResponse {
        let database = &self.database;
        let mut tables = database.lock();
        let at = match tables.table(self.number) {
            Some(Table::List(list)) => find(list, &database.id, id),
            _ => None,
        };
        let removed = at.and_then(|at| Some(tables.list_mut(self.number)?.remove(at)));
        let Some(removed) = removed else {
            return missing();
        };
        // To hold less is always possible.
        database.reserve(&mut tables, length(&removed), 0).ok();
        self.delete_children(&mut tables, &removed);
        let written = database.changed(&mut tables);
        StoredResponse {
            status: StatusCode::NO_CONTENT,
            fields: Vec::new(),
            content: Bytes::new(),
            written,
        }
    }

    /// Deletes what belongs to an object that was deleted: objects of other lists that name it.
    fn delete_children(&self, tables: &mut Tables, removed: &Value) {
        let database = &self.database;
        let foreign = related::foreign_key(&self.name);
        let own = removed.get(&database.id);
        for number in 0..tables.count() {
            let is_child = |row: &Arc<Value>| related::is_same(row.get(&foreign), own);
            let has_children = match tables.table(number) {
                Some(Table::List(list)) => number != self.number && list.iter().any(is_child),
                _ => false,
            };
            if !has_children {
                continue;
            }
            let Some(list) = tables.list_mut(number) else {
                continue;
            };
            let mut bytes = 0;
            list.retain(|row| {
                let is_child = is_child(row);
                bytes += if is_child { length(row) } else { 0 };
                !is_child
            });
            // To hold less is always possible.
            database.reserve(tables, bytes, 0).ok();
        }
    }
}

/// An object as it is after a request.
fn changed(old: &Value, given: &Object, method: &str) -> Object {
    if method == "PUT" {
        return given.clone();
    }
    let mut merged = old.clone();
    merge(&mut merged, &Value::Object(given.clone()));
    match merged {
        Value::Object(merged) => merged,
        _ => given.clone(),
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

impl StoredResponse {
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

fn mistake(status: StatusCode, text: &str) -> StoredResponse {
    StoredResponse::json(status, &serde_json::json!({ "error": text }))
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over results")]
fn full(full: Full) -> StoredResponse {
    mistake(StatusCode::INSUFFICIENT_STORAGE, &full.0)
}

fn missing() -> StoredResponse {
    mistake(StatusCode::NOT_FOUND, "there is none of that name")
}

fn not_allowed(methods: &'static str) -> StoredResponse {
    let mut response = mistake(
        StatusCode::METHOD_NOT_ALLOWED,
        "this method means nothing here",
    );
    response
        .fields
        .push((ALLOW, HeaderValue::from_static(methods)));
    response
}

#[cfg(test)]
mod tests;
