//! The admin API: the requests that a mock got, and its rules, scenarios and collections while it is served.
//!
//! It answers on the admin port only, below `/mock`. Documents are JSON with a `version`; `schemas/mock-admin.v1.json`
//! describes them. A call may take a while, so it runs on a blocking thread.

pub mod journal;

mod call;

mod page;

mod requests;

mod rules;

mod scenarios;

mod state;

mod webhooks;

mod wiremock;

use std::sync::Arc;
use std::time::SystemTime;

use http::StatusCode;
use plimsoll_model::Clock as _;
use plimsoll_server::{Answer, Request, Response};
use plimsoll_wire::SystemClock;
use serde_json::{Value, json};

use crate::worker::action::collected;
use crate::worker::shared::SharedMock;

use self::call::{AdminResponse, Call};

use self::wiremock::Recordings;

pub(crate) use self::page::PATHS as PAGE;
pub(crate) use self::wiremock::ROOT as WIREMOCK;

/// The JSON Schema of its documents.
pub const SCHEMA: &str = include_str!("../../../schemas/mock-admin.v1.json");

/// The version of its documents.
const VERSION: u64 = 1;

/// Content of a request to it beyond this is refused.
const MOST_CONTENT: u64 = 8 << 20;

/// The admin API of one mock.
#[derive(Debug, Clone)]
pub(crate) struct AdminOfMock {
    shared: Arc<SharedMock>,
    started: SystemTime,
    recordings: Arc<Recordings>,
}

impl AdminOfMock {
    pub(crate) fn new(shared: Arc<SharedMock>) -> Self {
        Self {
            shared,
            started: SystemClock.wall(),
            recordings: Arc::default(),
        }
    }

    /// Answers a request.
    ///
    /// - `rest`: what its path has behind the root of the API.
    pub(crate) fn answer(&self, request: &Request<'_>, rest: &str) -> Answer {
        let of_wiremock = rest.strip_prefix(WIREMOCK);
        if let Some(rest) = of_wiremock.filter(|it| it.is_empty() || it.starts_with('/')) {
            return self.answer_wiremock(request, rest);
        }
        match page::answer(request, rest) {
            Some(page) => page,
            None => self.answer_by(request, rest, Self::respond),
        }
    }

    /// The same by another function.
    fn answer_by(
        &self,
        request: &Request<'_>,
        rest: &str,
        response: fn(&Self, &Call) -> AdminResponse,
    ) -> Answer {
        let mut call = Call::from_request(request, rest);
        let body = request.take_body();
        let admin = self.clone();
        Answer::later(async move {
            match collected(body, MOST_CONTENT).await {
                Ok(Some(content)) => call.content = content,
                Ok(None) => {
                    let text = format!("the content is longer than {MOST_CONTENT} bytes");
                    return AdminResponse::error(StatusCode::PAYLOAD_TOO_LARGE, &text)
                        .into_response();
                }
                Err(error) => {
                    let text = error.to_string();
                    return AdminResponse::error(StatusCode::BAD_REQUEST, &text).into_response();
                }
            }
            let response = tokio::task::spawn_blocking(move || response(&admin, &call)).await;
            response.map_or_else(|_| failed(), AdminResponse::into_response)
        })
    }

    fn respond(&self, call: &Call) -> AdminResponse {
        let segments: Vec<&str> = call.segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["status"] => self.status(call),
            ["reset"] => self.reset(call),
            ["match"] => self.try_match(call),
            ["requests"] => self.requests(call),
            ["requests", "find"] => self.find_requests(call),
            ["requests", "count"] => self.count_requests(call),
            ["requests", number] => self.request(call, number),
            ["near-misses"] => self.near_misses(call),
            ["rules"] => self.rules(call),
            ["rules", "reset"] => self.reset_rules(call),
            ["rules", key] => self.rule(call, key),
            ["scenarios"] => self.scenarios(call),
            ["scenarios", "reset"] => self.reset_scenarios(call),
            ["scenarios", name] => self.scenario(call, name),
            ["webhooks"] => self.webhooks(call),
            ["webhooks", name] => self.send_webhook(call, name),
            ["collections"] => self.collections(call),
            ["collections", "reset"] => self.reset_collections(call),
            _ => AdminResponse::error(
                StatusCode::NOT_FOUND,
                "there are status, requests, near-misses, rules, scenarios, collections, webhooks, match and reset",
            ),
        }
    }
}

fn failed() -> Response {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    AdminResponse::error(status, "it could not be done").into_response()
}

/// A document of the API.
fn document(mut fields: Value) -> Value {
    if let Value::Object(fields) = &mut fields {
        fields.insert("version".to_owned(), json!(VERSION));
    }
    fields
}
