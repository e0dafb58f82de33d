//! The admin API of WireMock, for its client libraries, as far as there is the same here.
//!
//! It speaks of mappings: rules that came from WireMock's files or from here. Documents and refusals have the shapes that
//! WireMock 3 gives them. What a mapping says and no rule can do is refused as a whole, so that no test waits for what
//! will not come.

mod mappings;

mod near;

mod recordings;

mod requests;

mod server;

mod shape;

use http::StatusCode;
use plimsoll_formats::{Place, Remark};
use plimsoll_server::{Answer, Request};
use serde_json::{Value, json};

use super::AdminOfMock;
use super::call::{AdminResponse, Call};
use crate::import::mapping::is_uuid;
use crate::import::mapping_folder::SaveError;
use crate::import::wiremock::stub;
use crate::rules::condition::Condition;
use crate::store::states::States;

pub(crate) use self::recordings::Recordings;

/// Path that client libraries use.
pub(crate) const ROOT: &str = "/__admin";

/// The request body is malformed.
const INVALID: u32 = 10;
/// A scenario has no such state.
const NO_STATE: u32 = 11;
/// It is not done here.
const NOT_PERMITTED: u32 = 50;
/// Another mapping has the id.
const DUPLICATE: u32 = 109;

impl AdminOfMock {
    /// Answers a client of WireMock.
    ///
    /// - `rest`: what the path has behind [`ROOT`].
    pub(crate) fn answer_wiremock(&self, request: &Request<'_>, rest: &str) -> Answer {
        self.answer_by(request, rest, Self::respond_to_wiremock)
    }

    fn respond_to_wiremock(&self, call: &Call) -> AdminResponse {
        let segments: Vec<&str> = call.segments.iter().map(String::as_str).collect();
        let method = match call.method.as_str() {
            "HEAD" => "GET",
            method => method,
        };
        let response = match (method, segments.as_slice()) {
            ("GET", [] | ["mappings"]) => self.list_mappings(call),
            ("POST", ["mappings"]) => self.add_mapping(call),
            ("DELETE", ["mappings"]) => self.remove_mappings(|_| true),
            ("POST", ["mappings", "reset"]) => Ok(self.reset_mappings()),
            ("POST", ["mappings", "import"]) => self.import_mappings(call),
            ("POST", ["mappings", "remove"]) => self.remove_mapping(call),
            ("POST", ["mappings", "find-by-metadata"]) => self.find_by_metadata(call),
            ("POST", ["mappings", "remove-by-metadata"]) => self.remove_by_metadata(call),
            ("GET", ["mappings", "unmatched"]) => self.unmatched_mappings(),
            ("DELETE", ["mappings", "unmatched"]) => self.remove_unmatched_mappings(),
            ("POST", ["mappings", "save"]) => self.save_mappings(),
            ("GET" | "PUT" | "DELETE", ["mappings", id]) => self.mapping(call, id),
            ("GET", ["requests"]) => self.serve_events(call),
            ("DELETE", ["requests"]) | ("POST", ["requests", "reset"]) => {
                Ok(self.forget_requests())
            }
            ("POST", ["requests", "find"]) => self.find(call),
            ("POST", ["requests", "count"]) => self.count(call),
            ("POST", ["requests", "remove"]) => self.remove_found(call),
            ("POST", ["requests", "remove-by-metadata"]) => self.remove_of_metadata(call),
            ("GET", ["requests", "unmatched"]) => Ok(self.unmatched()),
            ("GET", ["requests", "unmatched", "near-misses"]) => Ok(self.near_of_unmatched()),
            ("GET" | "DELETE", ["requests", id]) => self.serve_event(call, id),
            ("POST", ["near-misses", "request"]) => self.near_to_request(call),
            ("POST", ["near-misses", "request-pattern"]) => self.near_to_pattern(call),
            ("GET", ["scenarios"]) => Ok(self.all_scenarios()),
            ("POST", ["scenarios", "reset"]) => Ok(self.begin_scenarios_anew()),
            ("PUT", ["scenarios", name, "state"]) => self.put_scenario(call, name),
            ("GET", ["settings"]) => Ok(self.settings()),
            ("PUT" | "POST", ["settings"]) => self.put_settings(call),
            ("GET", ["version"]) => Ok(server::version()),
            ("GET", ["health"]) => Ok(self.health()),
            ("POST", ["reset"]) => Ok(self.reset_all()),
            ("POST", ["shutdown"]) => Err(not_here("it is ended by a signal")),
            ("GET", ["recordings", "status"]) => Ok(self.recording_status()),
            ("POST", ["recordings", "start"]) => self.start_recording(call),
            ("POST", ["recordings", "stop"]) => self.stop_recording(),
            ("POST", ["recordings", "snapshot"]) => self.snapshot(call),
            (_, ["recorder", ..]) => Err(not_here(
                "there are /recordings/start, stop, status and snapshot",
            )),
            _ => Err(refused(
                StatusCode::NOT_FOUND,
                &json!({
                    "code": 404,
                    "title": "Not found",
                    "detail": "there are mappings, requests, near-misses, recordings, scenarios, settings, version, health and reset",
                }),
            )),
        };
        super::call::either(response)
    }

    /// The conditions of a request pattern.
    fn conditions_of(&self, pattern: &Value) -> Result<Vec<Condition>, AdminResponse> {
        let mapping = json!({ "request": pattern, "response": {} });
        let (files, _) = self.place_of_mappings();
        // Scenarios are none of a request's business.
        match stub(mapping, &files, &States::default()) {
            Ok(stub) => Ok(stub.rule.conditions),
            Err(remarks) => Err(wrong(&remarks, "/request", "")),
        }
    }
}

/// The request body as JSON.
fn json_of(call: &Call) -> Result<Value, AdminResponse> {
    serde_json::from_slice(&call.content).map_err(|error| unreadable(&error.to_string()))
}

/// The JSON that was sent cannot be read.
fn unreadable(detail: &str) -> AdminResponse {
    let error = json!({
        "code": INVALID, "source": {}, "title": "Error parsing JSON", "detail": detail,
    });
    refused(StatusCode::UNPROCESSABLE_ENTITY, &error)
}

/// One mistake.
fn refused(status: StatusCode, error: &Value) -> AdminResponse {
    AdminResponse::json(status, json!({ "errors": [error] }))
}

/// It is not done here.
fn not_here(detail: &str) -> AdminResponse {
    let error = json!({ "code": NOT_PERMITTED, "title": "Not permitted", "detail": detail });
    refused(StatusCode::UNPROCESSABLE_ENTITY, &error)
}

/// A mapping cannot be written to a file.
fn not_saved(error: &SaveError) -> AdminResponse {
    match error {
        SaveError::Shared(_) => not_here(&error.to_string()),
        SaveError::Write(..) => {
            let error = json!({ "code": 500, "title": "Not written", "detail": error.to_string() });
            refused(StatusCode::INTERNAL_SERVER_ERROR, &error)
        }
    }
}

/// All mistakes of a mapping.
///
/// - `below`: the beginning of pointers to replace with `above` in those of the mistakes.
fn wrong(remarks: &[Remark], below: &str, above: &str) -> AdminResponse {
    let errors = remarks.iter().map(|remark| {
        let pointer = pointer(&remark.place);
        let rest = pointer.strip_prefix(below).unwrap_or(&pointer);
        json!({
            "code": INVALID,
            "source": { "pointer": format!("{above}{rest}") },
            "title": "Error parsing JSON",
            "detail": remark.message,
        })
    });
    let errors: Vec<_> = errors.collect();
    AdminResponse::json(
        StatusCode::UNPROCESSABLE_ENTITY,
        json!({ "errors": errors }),
    )
}

/// A place as a JSON pointer, whose elements are counted from 0.
fn pointer(place: &Place) -> String {
    let Place::Key(key) = place else {
        return String::new();
    };
    let mut pointer = String::new();
    for part in key.split('.') {
        let (name, number) = match part.strip_suffix(']').and_then(|it| it.split_once('[')) {
            Some((name, number)) => (name, number.parse::<usize>().ok()),
            None => (part, None),
        };
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        if let Some(number) = number {
            pointer.push('/');
            pointer.push_str(&number.saturating_sub(1).to_string());
        }
    }
    pointer
}

/// An id from the request, in small letters.
fn uuid(id: &str) -> Result<String, AdminResponse> {
    if is_uuid(id) {
        return Ok(id.to_ascii_lowercase());
    }
    Err(bad_request(&format!("{id} is not a valid UUID")))
}

fn bad_request(title: &str) -> AdminResponse {
    let error = json!({ "code": INVALID, "title": title });
    refused(StatusCode::BAD_REQUEST, &error)
}

/// There is nothing of that id.
fn missing() -> AdminResponse {
    AdminResponse::bare(StatusCode::NOT_FOUND)
}

/// It is done, and there is nothing more to say.
fn done() -> AdminResponse {
    AdminResponse::json(StatusCode::OK, json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_reported_as_pointers() {
        for (place, expected) in [
            (Place::Whole, ""),
            (
                Place::Key("request.headers.x/y".to_owned()),
                "/request/headers/x~1y",
            ),
            (
                Place::Key("request.bodyPatterns[2]".to_owned()),
                "/request/bodyPatterns/1",
            ),
        ] {
            assert_eq!(pointer(&place), expected);
        }
    }
}
