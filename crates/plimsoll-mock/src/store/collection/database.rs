//! The objects of one file, which is one array of them or an object of several arrays.
//!
//! Lists and objects are shared, not copied: readers and writers take a snapshot, and nothing is serialised
//! under the lock. What a database holds is bounded in objects and in bytes of their JSON.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::persist::{DatabaseVersion, Keeper};

/// Objects of one list: filters and sorting read all of them for each request.
pub(super) const MOST_OBJECTS: usize = 100_000;

/// Bytes of the JSON of all objects by default: a large fixture has a few MiB, and a client that posts without end
/// must not fill memory.
pub(crate) const MOST_BYTES: u64 = 64 << 20;

/// An object.
pub(super) type Object = Map<String, Value>;

/// The objects of one file.
#[derive(Debug)]
pub(super) struct Database {
    /// The key that identifies objects.
    pub(super) id: String,
    pub(super) most_bytes: u64,
    /// Changes that were refused because there was no room.
    refused: AtomicU64,
    tables: Mutex<Tables>,
    keeper: Option<Keeper>,
    /// Source of its objects.
    pub(super) source: Option<PathBuf>,
}

/// The content of a database.
#[derive(Debug)]
pub(super) struct Tables {
    all: Arc<Vec<(String, Table)>>,
    is_array: bool,
    /// Of the JSON of all objects.
    bytes: u64,
    /// Number of changes.
    version: u64,
}

/// Objects of one name.
#[derive(Debug, Clone)]
pub(super) enum Table {
    /// An array of them.
    List(Arc<Vec<Arc<Object>>>),
    /// One, without a name.
    Single(Arc<Object>),
}

/// The content of a database at one moment.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) version: u64,
    pub(super) tables: Arc<Vec<(String, Table)>>,
    is_array: bool,
}

/// Why a text holds no objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CollectionError {
    /// It is no JSON, or neither an array nor an object of arrays.
    #[error("must be an array of objects, or an object of such arrays: {0}")]
    Array(String),
    /// An object without its identifying key, or with the value of another one.
    #[error("object {0} of {1} has no `{2}` of its own")]
    Id(usize, String, String),
    /// There is more than the budget.
    #[error("holds {0} bytes of objects, more than `max_size` ({1} bytes)")]
    Bytes(u64, u64),
    /// A list has more objects than it may.
    #[error("`{0}` has more than {MOST_OBJECTS} objects")]
    Objects(String),
}

/// There is no room for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Full(pub(super) String);

impl Database {
    /// - `name`: of the list, if the text is an array.
    /// - `file`: where changes are written; absent to keep them in memory.
    pub(super) fn new(
        name: &str,
        id: String,
        text: &str,
        most_bytes: u64,
        file: Option<PathBuf>,
    ) -> Result<Self, CollectionError> {
        let tables = Tables::parse(name, &id, text, most_bytes)?;
        Ok(Self {
            id,
            most_bytes,
            refused: AtomicU64::new(0),
            tables: Mutex::new(tables),
            keeper: file.map(Keeper::new),
            source: None,
        })
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let tables = self.lock();
        Snapshot {
            version: tables.version,
            tables: Arc::clone(&tables.all),
            is_array: tables.is_array,
        }
    }

    /// Bytes of the JSON of all objects.
    pub(super) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Changes that were refused because there was no room.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }

    /// Holds what a text has.
    pub(super) fn reset(&self, name: &str, text: &str) -> Result<(), CollectionError> {
        let mut new = Tables::parse(name, &self.id, text, self.most_bytes)?;
        let mut tables = self.lock();
        new.version = tables.version + 1;
        *tables = new;
        Ok(())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for an object of so many bytes in place of one of `before`; fails if there is no room.
    pub(super) fn reserve(&self, tables: &mut Tables, before: u64, after: u64) -> Result<(), Full> {
        let bytes = (tables.bytes - before).saturating_add(after);
        if after > before && bytes > self.most_bytes {
            return Err(self.full(&format!("{} bytes (`max_size`)", self.most_bytes)));
        }
        tables.bytes = bytes;
        Ok(())
    }

    /// Counts a change that was refused.
    pub(super) fn full(&self, limit: &str) -> Full {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Full(format!("the collection is full: it may hold {limit}"))
    }

    /// Notes a change, and what is to be written of it.
    pub(super) fn changed(&self, tables: &mut Tables) -> Option<DatabaseVersion> {
        tables.version += 1;
        let keeper = self.keeper.as_ref()?;
        Some(keeper.written(Snapshot {
            version: tables.version,
            tables: Arc::clone(&tables.all),
            is_array: tables.is_array,
        }))
    }
}

impl Tables {
    fn parse(name: &str, id: &str, text: &str, most_bytes: u64) -> Result<Self, CollectionError> {
        let wrong = |error: &dyn std::fmt::Display| CollectionError::Array(error.to_string());
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(&error))?;
        let is_array = value.is_array();
        let named = match value {
            list @ Value::Array(_) => vec![(name.to_owned(), list)],
            Value::Object(all) if !all.is_empty() => all.into_iter().collect(),
            _ => return Err(wrong(&"it holds neither")),
        };
        let mut bytes = 0;
        let mut all = Vec::with_capacity(named.len());
        for (name, value) in named {
            let table = match value {
                Value::Array(list) => {
                    let list = objects(&name, id, list)?;
                    bytes += list.iter().map(|object| length(object)).sum::<u64>();
                    Table::List(Arc::new(list))
                }
                Value::Object(object) => {
                    bytes += length(&object);
                    Table::Single(Arc::new(object))
                }
                _ => return Err(wrong(&format!("`{name}` is neither"))),
            };
            all.push((name, table));
        }
        if bytes > most_bytes {
            return Err(CollectionError::Bytes(bytes, most_bytes));
        }
        Ok(Self {
            all: Arc::new(all),
            is_array,
            bytes,
            version: 0,
        })
    }

    pub(super) fn table(&self, number: usize) -> Option<&Table> {
        self.all.get(number).map(|(_, table)| table)
    }

    /// The list at a place, to be changed.
    pub(super) fn list_mut(&mut self, number: usize) -> Option<&mut Vec<Arc<Object>>> {
        match Arc::make_mut(&mut self.all).get_mut(number) {
            Some((_, Table::List(list))) => Some(Arc::make_mut(list)),
            _ => None,
        }
    }

    /// Puts another object in place of one that stands alone.
    pub(super) fn put_single(&mut self, number: usize, object: Object) {
        if let Some((_, table)) = Arc::make_mut(&mut self.all).get_mut(number) {
            *table = Table::Single(Arc::new(object));
        }
    }
}

impl Snapshot {
    /// The table of that name.
    pub(super) fn named(&self, name: &str) -> Option<&Table> {
        let mut tables = self.tables.iter();
        tables.find(|(known, _)| known == name).map(|(_, it)| it)
    }

    /// Its JSON, as its file has it.
    pub(super) fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        let written = match self.tables.first() {
            Some((_, table)) if self.is_array => serde_json::to_writer_pretty(writer, table),
            _ => serde_json::to_writer_pretty(writer, self),
        };
        written.map_err(io::Error::from)
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.tables.len()))?;
        for (name, table) in &*self.tables {
            map.serialize_entry(name, table)?;
        }
        map.end()
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::List(list) => serializer.collect_seq(list.iter().map(|object| &**object)),
            Self::Single(object) => object.serialize(serializer),
        }
    }
}

/// The objects of an array, each with a unique key.
fn objects(name: &str, id: &str, list: Vec<Value>) -> Result<Vec<Arc<Object>>, CollectionError> {
    if list.len() > MOST_OBJECTS {
        return Err(CollectionError::Objects(name.to_owned()));
    }
    let mut keys = HashSet::new();
    let mut objects = Vec::with_capacity(list.len());
    for (number, value) in (1..).zip(list) {
        let Value::Object(object) = value else {
            let error = format!("element {number} of `{name}` is no object");
            return Err(CollectionError::Array(error));
        };
        if !key(&object, id).is_some_and(|key| keys.insert(key)) {
            return Err(CollectionError::Id(number, name.to_owned(), id.to_owned()));
        }
        objects.push(Arc::new(object));
    }
    Ok(objects)
}

/// Position of the object of that name.
pub(super) fn find(list: &[Arc<Object>], id: &str, wanted: &str) -> Option<usize> {
    let mut objects = list.iter();
    objects.position(|object| key(object, id).is_some_and(|key| key == wanted))
}

/// The key of an object, as it is written in a path.
pub(super) fn key(object: &Object, id: &str) -> Option<String> {
    match object.get(id)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// One more than the greatest number; a text if all names are texts.
pub(super) fn next_id(list: &[Arc<Object>], id: &str) -> Value {
    let ids = || list.iter().filter_map(|object| object.get(id));
    let numbers = ids().filter_map(|id| match id {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    });
    let next = numbers.max().unwrap_or(0).saturating_add(1);
    if !list.is_empty() && ids().all(Value::is_string) {
        Value::from(next.to_string())
    } else {
        Value::from(next)
    }
}

/// Bytes of the JSON of an object.
pub(super) fn length(object: &Object) -> u64 {
    let mut counter = Counter(0);
    // A counter takes everything.
    serde_json::to_writer(&mut counter, object).ok();
    counter.0
}

struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
