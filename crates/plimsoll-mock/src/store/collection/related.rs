//! Objects of other lists of the same file: those that belong to an object, and the one that it belongs to.
//!
//! As json-server has it, `postId` of a comment names the post that it belongs to.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::database::{Snapshot, Table};
use crate::request::{Pairs, values};

/// The lists of a file, seen from one of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Related<'s> {
    pub(super) snapshot: &'s Snapshot,
    /// Of the list that is seen from.
    pub(super) name: &'s str,
    /// The key that identifies objects.
    pub(super) id: &'s str,
}

impl Related<'_> {
    /// An object with those that `_embed` and `_expand` ask for.
    pub(super) fn with<'o>(self, row: &'o Arc<Value>, parameters: &Pairs) -> Cow<'o, Value> {
        let mut whole = Cow::Borrowed(&**row);
        for key in ["_embed", "_expand"] {
            let names = values(parameters, key).flat_map(|names| names.split(','));
            for name in names.filter(|name| !name.is_empty()) {
                if let Some(value) = self.found(row, name)
                    && let Value::Object(whole) = whole.to_mut()
                {
                    whole.insert(name.to_owned(), value);
                }
            }
        }
        whole
    }

    /// The related objects under a name: children as an array, or the parent.
    fn found(self, object: &Value, name: &str) -> Option<Value> {
        if let Some(Table::List(children)) = self.snapshot.named(name) {
            let key = foreign_key(self.name);
            let own = object.get(self.id);
            let children = children.iter().filter(|it| is_same(it.get(&key), own));
            let children = children.map(|it| (**it).clone());
            return Some(Value::Array(children.collect()));
        }
        let wanted = object.get(format!("{name}Id"));
        let tables = self.snapshot.tables.iter();
        let mut parents = tables.filter_map(|(known, table)| match table {
            Table::List(list) if singular(known) == name => Some(list),
            _ => None,
        });
        let mut parents = parents.next()?.iter();
        let parent = parents.find(|it| is_same(it.get(self.id), wanted))?;
        Some((**parent).clone())
    }
}

/// The key by which objects of other lists name one of this list: `postId` for `posts`.
pub(super) fn foreign_key(name: &str) -> String {
    format!("{}Id", singular(name))
}

/// Whether two names are the same, be they texts or numbers.
pub(super) fn is_same(one: Option<&Value>, other: Option<&Value>) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match (one.and_then(text), other.and_then(text)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

fn singular(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies") {
        return format!("{stem}y");
    }
    for ending in ["ses", "xes", "ches", "shes"] {
        if name.ends_with(ending) {
            return name.strip_suffix("es").unwrap_or(name).to_owned();
        }
    }
    let is_plural = !name.ends_with("ss");
    let stem = name.strip_suffix('s').filter(|_| is_plural);
    stem.unwrap_or(name).to_owned()
}
