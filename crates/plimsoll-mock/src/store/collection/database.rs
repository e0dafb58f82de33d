//! The objects of one file, which is one array of them or an object of several arrays.
//!
//! As in json-server, rows may be anything: those that are no objects, or have no key of their own, are listed and cannot be
//! named.
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
    /// An array of rows.
    List(Arc<Vec<Arc<Value>>>),
    /// A value alone, usually an object.
    Single(Arc<Value>),
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
        let tables = Tables::parse(name, text, most_bytes)?;
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
        let mut new = Tables::parse(name, text, self.most_bytes)?;
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
    fn parse(name: &str, text: &str, most_bytes: u64) -> Result<Self, CollectionError> {
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
                Value::Array(list) if list.len() > MOST_OBJECTS => {
                    return Err(CollectionError::Objects(name));
                }
                Value::Array(list) => {
                    bytes += list.iter().map(length).sum::<u64>();
                    Table::List(Arc::new(list.into_iter().map(Arc::new).collect()))
                }
                value => {
                    bytes += length(&value);
                    Table::Single(Arc::new(value))
                }
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

    /// Number of tables.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// The list at a place, to be changed.
    pub(super) fn list_mut(&mut self, number: usize) -> Option<&mut Vec<Arc<Value>>> {
        match Arc::make_mut(&mut self.all).get_mut(number) {
            Some((_, Table::List(list))) => Some(Arc::make_mut(list)),
            _ => None,
        }
    }

    /// Puts another object in place of one that stands alone.
    pub(super) fn put_single(&mut self, number: usize, value: Arc<Value>) {
        if let Some((_, table)) = Arc::make_mut(&mut self.all).get_mut(number) {
            *table = Table::Single(value);
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
            Self::List(list) => serializer.collect_seq(list.iter().map(|row| &**row)),
            Self::Single(value) => value.serialize(serializer),
        }
    }
}

/// Numbers, counted from 1, of the rows that no path names: no objects, without a key, or with the key of one before.
pub(crate) fn nameless(list: &[Value], id: &str) -> Vec<usize> {
    let mut keys = HashSet::new();
    let rows = (1..).zip(list);
    let nameless = rows.filter(|(_, row)| !key(row, id).is_some_and(|key| keys.insert(key)));
    nameless.map(|(number, _)| number).collect()
}

/// Position of the first object of that name.
pub(super) fn find(list: &[Arc<Value>], id: &str, wanted: &str) -> Option<usize> {
    let mut rows = list.iter();
    rows.position(|row| key(row, id).is_some_and(|key| key == wanted))
}

/// The key of an object, as it is written in a path.
pub(super) fn key(row: &Value, id: &str) -> Option<String> {
    match row.get(id)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// One more than the greatest number; a text if all names are texts.
pub(super) fn next_id(list: &[Arc<Value>], id: &str) -> Value {
    let ids = || list.iter().filter_map(|row| row.get(id));
    let numbers = ids().filter_map(|id| match id {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    });
    let next = numbers.max().unwrap_or(0).saturating_add(1);
    if ids().next().is_some() && ids().all(Value::is_string) {
        Value::from(next.to_string())
    } else {
        Value::from(next)
    }
}

/// Bytes of the JSON of a row.
pub(super) fn length(row: &Value) -> u64 {
    let mut counter = Counter(0);
    // A counter takes everything.
    serde_json::to_writer(&mut counter, row).ok();
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
