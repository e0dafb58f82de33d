//! What WireMock's state extension keeps from one request to the next: changes that a mapping makes once it has answered, and
//! tests of what was kept.
//!
//! All texts may have places (Handlebars), in which `response.body` is the content of the response.

use serde_json::{Map, Value};

use super::{Notes, text};

/// A change of what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateChange {
    /// The name under which it is kept.
    pub context: String,
    /// The change.
    pub action: StateAction,
}

/// How something that is kept changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateAction {
    /// Properties get values.
    Record(Vec<(String, String)>),
    /// An element comes to the beginning of the list.
    AddFirst(Vec<(String, String)>),
    /// An element comes to the end of the list.
    AddLast(Vec<(String, String)>),
    /// All of it goes.
    Delete,
    /// The first element of the list goes.
    DeleteFirst,
    /// The last element of the list goes.
    DeleteLast,
    /// The element of the list at this place goes, counted from 0, or from -1 at the end.
    DeleteIndex(String),
    /// The first element of the list with this property and value goes.
    DeleteWhere(String, String),
}

/// A test of what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateMatch {
    /// The name under which it is kept.
    pub context: String,
    /// True if there must be nothing under that name.
    pub is_absent: bool,
    /// Tests of counts.
    pub counts: Vec<StateCount>,
}

/// A test of a count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateCount {
    /// `updateCount` or `listSize`.
    pub property: &'static str,
    /// `eq`, `lt` or `gt`.
    pub order: &'static str,
    /// The number.
    pub number: String,
}

/// The changes that a listener makes; nothing for another listener.
///
/// - `at`: the place of its parameters.
pub(super) fn changes(
    name: &str,
    parameters: &mut Map<String, Value>,
    at: &str,
    notes: &mut Notes,
) -> Option<Vec<StateChange>> {
    if !["recordState", "deleteState"].contains(&name) {
        return None;
    }
    let Some(context) = text(parameters, "context", at, notes) else {
        notes.wrong::<()>(&format!("{at}context"), "is missing");
        return Some(Vec::new());
    };
    let mut actions = Vec::new();
    let mut list = match parameters.remove("list") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(list)) => list,
        Some(_) => {
            notes.wrong::<()>(&format!("{at}list"), "must be an object");
            return Some(Vec::new());
        }
    };
    if name == "recordState" {
        let state = parameters.remove("state").map(properties);
        actions.extend(state.map(StateAction::Record));
        let first = list.remove("addFirst").map(properties);
        actions.extend(first.map(StateAction::AddFirst));
        let at_end = list.remove("addLast").map(properties);
        actions.extend(at_end.map(StateAction::AddLast));
    } else if list.is_empty() {
        actions.push(StateAction::Delete);
    } else {
        actions.extend(deleted(&mut list));
    }
    let unknown = parameters.keys().map(|key| format!("{at}{key}"));
    let unknown = unknown.chain(list.keys().map(|key| format!("{at}list.{key}")));
    for key in unknown.collect::<Vec<_>>() {
        notes.wrong::<()>(&key, "is not known here, so the mapping is left out");
    }
    let changes = actions.into_iter().map(|action| StateChange {
        context: context.clone(),
        action,
    });
    Some(changes.collect())
}

/// Of several the first counts.
fn deleted(list: &mut Map<String, Value>) -> Option<StateAction> {
    let is_set = |value: Option<Value>| value.is_some_and(|value| value == Value::Bool(true));
    let first = is_set(list.remove("deleteFirst")).then_some(StateAction::DeleteFirst);
    let at_end = is_set(list.remove("deleteLast")).then_some(StateAction::DeleteLast);
    let index = list.remove("deleteIndex").map(shown);
    let found = list.remove("deleteWhere").and_then(|mut found| {
        let mut part = |key: &str| found.get_mut(key).map(|value| shown(value.take()));
        Some(StateAction::DeleteWhere(part("property")?, part("value")?))
    });
    first
        .or(at_end)
        .or(index.map(StateAction::DeleteIndex))
        .or(found)
}

fn properties(value: Value) -> Vec<(String, String)> {
    match value {
        Value::Object(properties) => {
            let properties = properties.into_iter();
            properties
                .map(|(name, value)| (name, shown(value)))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Texts as they are, everything else as JSON.
fn shown(value: Value) -> String {
    match value {
        Value::String(text) => text,
        value => value.to_string(),
    }
}

/// The test that `customMatcher` of a request is, if it is one of the state extension.
pub(super) fn matcher(request: &mut Map<String, Value>, notes: &mut Notes) -> Option<StateMatch> {
    let is_one = request.get("customMatcher")?.get("name")? == "state-matcher";
    if !is_one {
        return None;
    }
    let mut matcher = request.remove("customMatcher")?;
    let at = "request.customMatcher.parameters";
    let Some(Value::Object(parameters)) = matcher.get_mut("parameters") else {
        return notes.wrong(at, "is missing");
    };
    let present = parameters.remove("hasContext").map(shown);
    let absent = parameters.remove("hasNotContext").map(shown);
    let is_absent = absent.is_some();
    let Some(context) = present.or(absent) else {
        return notes.wrong(at, "needs `hasContext` or `hasNotContext`");
    };
    let mut counts = Vec::new();
    for property in ["updateCount", "listSize"] {
        for (order, suffix) in [("eq", "EqualTo"), ("lt", "LessThan"), ("gt", "MoreThan")] {
            let number = parameters.remove(&format!("{property}{suffix}"));
            counts.extend(number.map(|number| StateCount {
                property,
                order,
                number: shown(number),
            }));
        }
    }
    for key in parameters.keys() {
        let key = format!("{at}.{key}");
        notes.wrong::<()>(&key, "is not known here, so the mapping is left out");
    }
    Some(StateMatch {
        context,
        is_absent,
        counts,
    })
}
