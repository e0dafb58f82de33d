//! Helpers of WireMock that change JSON: `{{jsonMerge base other}}`, `{{jsonRemove value '$.a'}}`.
//!
//! They take JSON as a value or as text. What stands in the block of a helper is its last argument.

use std::cmp::Ordering;

use serde_json::{Map, Value};
use serde_json_path::JsonPath;

use super::call::{Call, HelperError, number};
use super::helpers::{Block, Entry, shown};

/// Elements that are added to a list, at most.
const MOST: usize = 100_000;

pub(super) const HELPERS: [Entry; 7] = [
    ("jsonMerge", Block::Last, merge),
    ("jsonArrayAdd", Block::Last, array_add),
    ("jsonRemove", Block::None, remove),
    ("jsonSort", Block::None, sort),
    ("formatJson", Block::Text, |call| {
        let value = json(call, 0)?;
        let is_compact = call.option_text("format").as_deref() == Some("compact");
        Ok(if is_compact {
            value.to_string()
        } else {
            serde_json::to_string_pretty(&value).map_err(|error| error.to_string())?
        }
        .into())
    }),
    ("arrayAdd", Block::None, |call| {
        let mut list = list(call, 0)?;
        let item = call.argument(1).cloned().unwrap_or_default();
        let at = position(call, list.len(), list.len())?;
        list.insert(at, item);
        Ok(Value::Array(list))
    }),
    ("arrayRemove", Block::None, |call| {
        let mut list = list(call, 0)?;
        let last = list.len().saturating_sub(1);
        let at = position(call, last, last)?;
        if !list.is_empty() {
            list.remove(at);
        }
        Ok(Value::Array(list))
    }),
];

/// An argument as JSON, which a text may hold too.
fn json(call: &Call<'_>, at: usize) -> Result<Value, HelperError> {
    match call.argument(at) {
        Some(Value::String(text)) => serde_json::from_str(text)
            .map_err(|error| format!("argument {}: {error}", at + 1))
            .map_err(HelperError::from),
        Some(value) => Ok(value.clone()),
        None => Err(format!("argument {} is missing", at + 1).into()),
    }
}

fn list(call: &Call<'_>, at: usize) -> Result<Vec<Value>, HelperError> {
    match json(call, at)? {
        Value::Array(list) => Ok(list),
        _ => Err(format!("argument {} is no list", at + 1).into()),
    }
}

/// The option `position`: a number, `start` or `end`.
fn position(call: &Call<'_>, end: usize, usual: usize) -> Result<usize, HelperError> {
    let Some(given) = call.option("position") else {
        return Ok(usual);
    };
    match (shown(given).as_str(), number(given)) {
        ("start", _) => Ok(0),
        ("end", _) => Ok(end),
        (_, Some(at)) if at >= 0.0 && at <= end as f64 =>
        {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is within the list"
            )]
            Ok(at as usize)
        }
        (text, _) => Err(format!("there is no position `{text}`").into()),
    }
}

/// Objects are merged, everything else is replaced.
fn merge(call: &Call<'_>) -> Result<Value, HelperError> {
    let (mut base, other) = (json(call, 0)?, json(call, 1)?);
    if !(base.is_object() && other.is_object()) {
        return Err("merges objects only".into());
    }
    merge_into(&mut base, other, call.flag("removeNulls"));
    Ok(base.to_string().into())
}

fn merge_into(base: &mut Value, other: Value, removes_nulls: bool) {
    match (base, other) {
        (Value::Object(base), Value::Object(other)) => {
            for (key, value) in other {
                if value.is_null() && removes_nulls {
                    base.shift_remove(&key);
                } else {
                    let known = base.entry(key).or_insert(Value::Null);
                    merge_into(known, value, removes_nulls);
                }
            }
        }
        (base, other) => *base = other,
    }
}

/// `{{jsonArrayAdd list item jsonPath='$.items' maxItems=5 flatten=true}}`
fn array_add(call: &Call<'_>) -> Result<Value, HelperError> {
    let (mut root, item) = (json(call, 0)?, json(call, 1)?);
    let pointer = match call.option_text("jsonPath") {
        None => String::new(),
        Some(path) => {
            let mut pointers = pointers(&root, &path)?;
            pointers.pop().ok_or(format!("`{path}` leads to nothing"))?
        }
    };
    let Some(Value::Array(list)) = root.pointer_mut(&pointer) else {
        return Err("what is added to is no list".into());
    };
    match item {
        Value::Array(items) if call.flag("flatten") => list.extend(items),
        item => list.push(item),
    }
    let most = match call.option("maxItems").and_then(number) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is within bounds"
        )]
        Some(most) => most.clamp(0.0, MOST as f64) as usize,
        None => MOST,
    };
    // The oldest go first.
    let surplus = list.len().saturating_sub(most);
    list.drain(..surplus);
    Ok(root.to_string().into())
}

fn remove(call: &Call<'_>) -> Result<Value, HelperError> {
    let mut root = json(call, 0)?;
    let mut pointers = pointers(&root, &call.text(1))?;
    // Later elements first, so that those before them keep their places.
    pointers.reverse();
    for pointer in pointers {
        let Some((parent, key)) = pointer.rsplit_once('/') else {
            continue;
        };
        match root.pointer_mut(parent) {
            Some(Value::Object(object)) => {
                object.shift_remove(&key.replace("~1", "/").replace("~0", "~"));
            }
            Some(Value::Array(list)) => {
                if let Ok(at) = key.parse::<usize>()
                    && at < list.len()
                {
                    list.remove(at);
                }
            }
            _ => {}
        }
    }
    Ok(root.to_string().into())
}

/// `{{jsonSort list '$[*].name' order='desc'}}`: the path leads to a list, and on to what it is sorted by.
fn sort(call: &Call<'_>) -> Result<Value, HelperError> {
    let (mut root, path) = (json(call, 0)?, call.text(1));
    let Some((list, key)) = path.rsplit_once("[*]") else {
        return Err(format!("`{path}` does not say of which elements: it needs `[*]`").into());
    };
    let key = JsonPath::parse(&format!("${key}")).map_err(|error| format!("`{path}`: {error}"))?;
    let pointer = pointers(&root, list)?.pop();
    let pointer = pointer.ok_or(format!("`{list}` leads to nothing"))?;
    let Some(Value::Array(list)) = root.pointer_mut(&pointer) else {
        return Err("what is sorted is no list".into());
    };
    let is_descending = call.option_text("order").as_deref() == Some("desc");
    list.sort_by(|one, other| {
        let value = |of: &Value| key.query(of).first().cloned();
        let order = compare(value(one).as_ref(), value(other).as_ref());
        if is_descending {
            order.reverse()
        } else {
            order
        }
    });
    Ok(root.to_string().into())
}

/// Numbers by their values, everything else by its text; what is missing comes last.
fn compare(one: Option<&Value>, other: Option<&Value>) -> Ordering {
    match (one, other) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(one), Some(other)) => match (one.as_f64(), other.as_f64()) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            _ => shown(one).cmp(&shown(other)),
        },
    }
}

/// Where a path leads, as pointers (RFC 6901) in the order of the document.
fn pointers(root: &Value, path: &str) -> Result<Vec<String>, HelperError> {
    let parsed = JsonPath::parse(path);
    let parsed = parsed.map_err(|error| format!("`{path}` is no JSONPath: {error}"))?;
    let located = parsed.query_located(root);
    Ok(located
        .locations()
        .map(serde_json_path::NormalizedPath::to_json_pointer)
        .collect())
}

/// An object of texts, from the options of a call.
pub(super) fn of_options(call: &Call<'_>, without: &[&str]) -> Map<String, Value> {
    let options = call.options.iter();
    let options = options.filter(|(name, _)| !without.contains(name));
    options
        .map(|(name, value)| ((*name).to_owned(), (*value).clone()))
        .collect()
}
