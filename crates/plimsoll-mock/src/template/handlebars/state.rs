//! Helpers of WireMock's state extension: what was kept under a name, and changes of it.
//!
//! The values lie in the store that scripts have too, as JSON. An import writes `recordState`, `deleteState` and `hasState`;
//! templates call `state`.

use serde_json::{Map, Value, json};
use serde_json_path::JsonPath;

use super::call::{Call, HelperError};
use super::helpers::{Block, Entry, shown};
use crate::store::Store;

pub(super) const HELPERS: [Entry; 4] = [
    ("state", Block::None, state),
    ("hasState", Block::None, |call| {
        Ok(kept(call.data.store(), &call.text(0)).is_some().into())
    }),
    ("recordState", Block::None, record),
    ("deleteState", Block::None, delete),
];

/// The beginning of keys in the store.
const KEYS: &str = "wiremock/";

/// Elements of a list, at most.
const MOST_ELEMENTS: usize = 10_000;

/// What is kept under one name.
#[derive(Debug, Clone, Default, PartialEq)]
struct Kept {
    state: Map<String, Value>,
    list: Vec<Value>,
    updates: u64,
}

impl Kept {
    fn parse(text: &str) -> Option<Self> {
        let mut value: Value = serde_json::from_str(text).ok()?;
        let (state, list) = (value["state"].take(), value["list"].take());
        Some(Self {
            state: state.as_object()?.clone(),
            list: list.as_array()?.clone(),
            updates: value["updates"].as_u64()?,
        })
    }

    fn text(&self) -> String {
        let Self {
            state,
            list,
            updates,
        } = self;
        json!({ "state": state, "list": list, "updates": updates }).to_string()
    }
}

fn key(context: &str) -> String {
    format!("{KEYS}{context}")
}

fn kept(store: &Store, context: &str) -> Option<Kept> {
    Kept::parse(&store.value(&key(context))?)
}

/// `{{state context='a' property='b' default='c'}}`, or with `list='[-1].b'`.
fn state(call: &Call<'_>) -> Result<Value, HelperError> {
    let context = call.option_text("context").ok_or("needs a `context`")?;
    let kept = kept(call.data.store(), &context);
    let default = call.option("default").cloned();
    let (what, found) = match (call.option_text("property"), call.option_text("list")) {
        (Some(property), None) => {
            let found = match property.as_str() {
                "updateCount" => kept.map(|kept| json!(kept.updates)),
                "listSize" => kept.map(|kept| json!(kept.list.len())),
                "list" => {
                    let given = default.as_ref().map(shown).unwrap_or_default();
                    let given = serde_json::from_str(&given).ok().filter(Value::is_array);
                    let list = kept.map(|kept| Value::Array(kept.list));
                    return Ok(list.or(given).unwrap_or(json!([])));
                }
                name => kept.and_then(|kept| kept.state.get(name).cloned()),
            };
            (format!("property {property}"), found)
        }
        (None, Some(path)) => {
            let parsed = JsonPath::parse(&format!("${path}"));
            let parsed = parsed.map_err(|error| format!("`{path}`: {error}"))?;
            let list = kept.map(|kept| Value::Array(kept.list));
            let found = list.and_then(|list| parsed.query(&list).first().cloned());
            (format!("list {path}"), found)
        }
        _ => return Err("needs either `property` or `list`".into()),
    };
    Ok(found.or(default).unwrap_or_else(|| {
        let error = format!("[ERROR: No state for context {context}, {what} found]");
        Value::from(error)
    }))
}

/// `{{recordState context 'state' 'name' value …}}`; `addFirst` and `addLast` in place of `state` add an element to the list.
fn record(call: &Call<'_>) -> Result<Value, HelperError> {
    let pairs = call.arguments.get(2..).unwrap_or_default().chunks(2);
    let pairs = pairs.map(|pair| {
        let value = pair.get(1).copied().cloned().unwrap_or_default();
        (shown(pair[0]), value)
    });
    let properties: Map<String, Value> = pairs.collect();
    let place = call.text(1);
    change(call, |kept| {
        let mut kept = kept.unwrap_or_default();
        kept.updates += 1;
        match place.as_str() {
            "addFirst" => kept.list.insert(0, Value::Object(properties)),
            "addLast" => kept.list.push(Value::Object(properties)),
            _ => kept.state.extend(properties),
        }
        Some(kept)
    })
}

/// `{{deleteState context}}`, or with the element of the list that goes.
fn delete(call: &Call<'_>) -> Result<Value, HelperError> {
    let what = call.text(1);
    if what.is_empty() {
        return change(call, |_| None);
    }
    let (first, second) = (call.text(2), call.text(3));
    change(call, |kept| {
        let mut kept = kept?;
        let length = kept.list.len();
        let at = match what.as_str() {
            "deleteFirst" => Some(0),
            "deleteLast" => length.checked_sub(1),
            "deleteIndex" => index(&first, length),
            _ => {
                let mut elements = kept.list.iter();
                elements.position(|it| it.get(&first).map(shown).as_ref() == Some(&second))
            }
        };
        if let Some(at) = at.filter(|at| *at < length) {
            kept.list.remove(at);
        }
        Some(kept)
    })
}

/// - `text`: a place from 0, or from -1 at the end.
fn index(text: &str, length: usize) -> Option<usize> {
    let at: i64 = text.trim().parse().ok()?;
    let length = i64::try_from(length).ok()?;
    usize::try_from(if at < 0 { at + length } else { at }).ok()
}

fn change(
    call: &Call<'_>,
    change: impl FnOnce(Option<Kept>) -> Option<Kept>,
) -> Result<Value, HelperError> {
    let mut is_too_long = false;
    let changed = call.data.store().change(&key(&call.text(0)), |before| {
        let changed = change(before.and_then(Kept::parse))?;
        is_too_long = changed.list.len() > MOST_ELEMENTS;
        match before {
            // The list stays as it was.
            Some(before) if is_too_long => Some(before.to_owned()),
            _ => Some(changed.text()),
        }
    });
    changed.map_err(|error| error.to_string())?;
    if is_too_long {
        return Err(format!("the list has {MOST_ELEMENTS} elements already").into());
    }
    Ok(Value::from(""))
}
