//! Mappings of WireMock: what requests must have, and what is answered.
//!
//! A mapping with a condition that cannot be kept is left out: without it, it would answer what it is not for. Of a
//! response, what cannot be kept is left out alone.
//!
//! Source: the JSON schema of WireMock 4, of which that of 3 is a part.

mod pattern;

mod request;

mod response;

mod state;

mod webhook;

use serde_json::{Map, Value};

use crate::{Place, Remark};

pub use self::pattern::{NumberOrder, Pattern, TimeOptions, TimeOrder};
pub use self::request::{FieldPlace, MappingField, MappingPart, MappingUrl};
pub use self::response::{
    MappingBody, MappingDelay, MappingProxy, MappingResponse, SettingsError, parse_settings,
};
pub use self::state::{StateAction, StateChange, StateCount, StateMatch};
pub use self::webhook::Webhook;

/// The content of a file of mappings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mappings {
    /// In the order of the file, each with its number in it, from 1.
    pub mappings: Vec<(usize, Mapping)>,
    /// Parts of the file that are left out.
    pub left_out: Vec<Remark>,
}

/// One mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    /// Its id or, without one, its name.
    pub name: Option<String>,
    /// 1 is the highest.
    pub priority: i64,
    /// Methods; empty for any.
    pub methods: Vec<String>,
    /// Methods that it is not for.
    pub methods_not: Vec<String>,
    /// The matcher of the URL.
    pub url: MappingUrl,
    /// Matchers of fields, parameters and cookies.
    pub fields: Vec<MappingField>,
    /// Matchers of the content.
    pub bodies: Vec<Pattern>,
    /// Matchers of the parts of multipart content.
    pub parts: Vec<MappingPart>,
    /// A scenario with the state that it must be in and the one that it goes to.
    pub scenario: Option<(String, Option<String>, Option<String>)>,
    /// The response.
    pub response: MappingResponse,
    /// Requests that are sent once it has answered.
    pub webhooks: Vec<Webhook>,
    /// A test of what was kept before.
    pub state_match: Option<StateMatch>,
    /// Changes of what is kept, once it has answered.
    pub state_changes: Vec<StateChange>,
    /// The whole of it as it was written.
    pub source: Value,
}

/// Reads a file: one mapping, or several under `mappings`.
///
/// Fails if it is no JSON or no object; what is wrong with one mapping leaves out that one.
pub fn parse_mappings(text: &str) -> Result<Mappings, Remark> {
    let text = text.trim_start_matches('\u{feff}');
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Remark::line(error.line(), format!("is not JSON: {error}")))?;
    let Value::Object(mut root) = value else {
        return Err(Remark::whole("is not an object"));
    };
    let all = match root.remove("mappings") {
        Some(Value::Array(all)) => all,
        Some(_) => return Err(Remark::whole("`mappings` is not an array")),
        None => vec![Value::Object(root)],
    };
    let is_single = all.len() == 1;
    let mut parsed = Mappings::default();
    for (number, mapping) in (1..).zip(all) {
        let notes = match parse_mapping(mapping) {
            Ok((mapping, left_out)) => {
                parsed.mappings.push((number, mapping));
                left_out
            }
            Err(wrong) => wrong,
        };
        let of_file = notes.into_iter().map(|remark| match remark.place {
            Place::Key(key) if !is_single => {
                let place = Place::Key(format!("mappings[{number}].{key}"));
                Remark { place, ..remark }
            }
            Place::Whole if !is_single => {
                let place = Place::Key(format!("mappings[{number}]"));
                Remark { place, ..remark }
            }
            _ => remark,
        });
        parsed.left_out.extend(of_file);
    }
    Ok(parsed)
}

/// Reads one mapping, and what of it is not carried over; fails with all that keeps it from being one here.
pub fn parse_mapping(value: Value) -> Result<(Mapping, Vec<Remark>), Vec<Remark>> {
    let mut notes = Notes::default();
    let mapping = mapping_of(value, &mut notes);
    match mapping {
        Some(mapping) if notes.wrong.is_empty() => Ok((mapping, notes.left_out)),
        _ => Err(notes.wrong),
    }
}

/// Errors and omissions.
#[derive(Debug, Default)]
struct Notes {
    wrong: Vec<Remark>,
    left_out: Vec<Remark>,
}

impl Notes {
    /// Something keeps the mapping from being one here.
    fn wrong<T>(&mut self, key: &str, message: impl Into<String>) -> Option<T> {
        let place = Place::Key(key.to_owned());
        self.wrong.push(Remark::new(place, message));
        None
    }

    /// Something of a mapping is not carried over.
    fn left_out(&mut self, key: &str, message: impl Into<String>) {
        let place = Place::Key(key.to_owned());
        self.left_out.push(Remark::new(place, message));
    }
}

/// A text, or nothing if there is none.
fn text(object: &mut Map<String, Value>, key: &str, at: &str, notes: &mut Notes) -> Option<String> {
    match object.remove(key)? {
        Value::String(text) => Some(text),
        Value::Null => None,
        _ => notes.wrong(&format!("{at}{key}"), "must be a text"),
    }
}

/// A table, empty if there is none.
fn table(
    object: &mut Map<String, Value>,
    key: &str,
    at: &str,
    notes: &mut Notes,
) -> Map<String, Value> {
    match object.remove(key) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(table)) => table,
        Some(_) => notes
            .wrong(&format!("{at}{key}"), "must be an object")
            .unwrap_or_default(),
    }
}

/// True if a value says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        _ => false,
    }
}

fn mapping_of(value: Value, notes: &mut Notes) -> Option<Mapping> {
    let source = value.clone();
    let Value::Object(mut mapping) = value else {
        notes.wrong.push(Remark::whole("is not an object"));
        return None;
    };
    // What says nothing about answers.
    for key in [
        "uuid",
        "metadata",
        "persistent",
        "insertionIndex",
        "$schema",
    ] {
        mapping.remove(key);
    }
    let id = text(&mut mapping, "id", "", notes);
    let name = text(&mut mapping, "name", "", notes);
    let priority = match mapping.remove("priority") {
        None | Some(Value::Null) => 5,
        Some(value) => {
            let priority = value.as_i64().filter(|it| (1..=1 << 30).contains(it));
            priority
                .or_else(|| notes.wrong("priority", "must be a whole number from 1"))
                .unwrap_or(5)
        }
    };
    let scenario = text(&mut mapping, "scenarioName", "", notes);
    let state = text(&mut mapping, "requiredScenarioState", "", notes);
    let next = text(&mut mapping, "newScenarioState", "", notes);
    let mut request = table(&mut mapping, "request", "", notes);
    let (methods, methods_not) = request::methods(&mut request, notes);
    let url = request::url(&mut request, notes);
    let fields = request::fields(&mut request, notes);
    let bodies = request::bodies(&mut request, "request.bodyPatterns", notes);
    let parts = request::parts(&mut request, notes);
    let state_match = state::matcher(&mut request, notes);
    for key in request.keys() {
        notes.wrong::<()>(
            &format!("request.{key}"),
            "this condition is not known here, so the mapping is left out",
        );
    }
    let response = response::response(table(&mut mapping, "response", "", notes), notes);
    let (webhooks, state_changes) = webhook::listeners(&mut mapping, notes);
    for (key, value) in &mapping {
        if !is_empty(value) {
            notes.left_out(key, "is not carried over");
        }
    }
    Some(Mapping {
        name: id.or(name),
        priority,
        methods,
        methods_not,
        url,
        fields,
        bodies,
        parts,
        // Without a state it says nothing.
        scenario: scenario
            .filter(|_| state.is_some() || next.is_some())
            .map(|name| (name, state, next)),
        response: response?,
        webhooks,
        state_match,
        state_changes,
        source,
    })
}

#[cfg(test)]
mod tests;
