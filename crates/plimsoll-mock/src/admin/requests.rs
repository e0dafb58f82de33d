//! Requests: listed, found, counted, forgotten, and the rules that came nearest.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::{Value, json};

use super::AdminOfMock;
use super::call::{AdminResponse, Call, either};
use super::rules::shown_findings;
use crate::admin::journal::{AnsweredBy, Entry, Journal};
use crate::config::plan::MockPlan;
use crate::rules::condition::Condition;
use crate::rules::nearness::{findings, near_misses};

/// Requests that are listed by default.
const USUAL: u64 = 100;

/// Near misses that are listed by default.
const NEAR: u64 = 3;

/// Unmatched requests whose near misses are listed at once.
const MOST_UNMATCHED: usize = 20;

impl AdminOfMock {
    pub(super) fn requests(&self, call: &Call) -> AdminResponse {
        match call.method.as_str() {
            "GET" | "HEAD" => either(self.list_requests(call)),
            "DELETE" if self.shared.journal().is_none() => no_journal(),
            "DELETE" => {
                self.forget_all_requests();
                AdminResponse::done()
            }
            _ => AdminResponse::not_allowed("GET, DELETE"),
        }
    }

    /// Empties the journal, and what is kept beside it; rules begin to count anew.
    pub(super) fn forget_all_requests(&self) {
        if let Some(journal) = self.shared.journal() {
            journal.clear();
        }
        if let Some(proxied) = self.shared.proxied() {
            proxied.clear();
        }
        let (_, plan) = self.shared.plan();
        for rule in plan.sets.iter().flat_map(|set| set.rules()) {
            rule.state.forget_hits();
        }
    }

    fn list_requests(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let limit = call.number("limit")?.unwrap_or(USUAL);
        let since = call.number("since")?.unwrap_or(0);
        let unmatched = call.flag("unmatched")?;
        let rule = call.parameter("rule");
        self.listed(limit, |entry| {
            let is_of_rule = |wanted| entry.rule().is_some_and(|rule| rule.key == wanted);
            entry.number > since
                && unmatched.is_none_or(|wanted| entry.is_unmatched() == wanted)
                && rule.is_none_or(is_of_rule)
        })
    }

    /// The last ones that are wanted, the latest first.
    fn listed(
        &self,
        limit: u64,
        is_wanted: impl Fn(&Entry) -> bool,
    ) -> Result<AdminResponse, AdminResponse> {
        let journal = self.journal()?;
        let plan = self.shared.plan().1;
        let (entries, dropped) = journal.entries();
        let mut count = 0_u64;
        let mut shown = Vec::new();
        for entry in entries.iter().rev().filter(|entry| is_wanted(entry)) {
            count += 1;
            if count <= limit {
                shown.push(self::shown(entry, &plan));
            }
        }
        Ok(AdminResponse::fields(json!({
            "requests": shown,
            "count": count,
            "dropped": dropped,
        })))
    }

    pub(super) fn find_requests(&self, call: &Call) -> AdminResponse {
        if call.method != "POST" {
            return AdminResponse::not_allowed("POST");
        }
        either(self.wanted(call).and_then(|conditions| {
            let limit = call.number("limit")?.unwrap_or(USUAL);
            self.listed(limit, |entry| are_met(&conditions, entry))
        }))
    }

    pub(super) fn count_requests(&self, call: &Call) -> AdminResponse {
        if call.method != "POST" {
            return AdminResponse::not_allowed("POST");
        }
        either(self.wanted(call).and_then(|conditions| {
            let (entries, dropped) = self.journal()?.entries();
            let met = entries.iter().filter(|entry| are_met(&conditions, entry));
            let fields = json!({ "count": met.count(), "dropped": dropped });
            Ok(AdminResponse::fields(fields))
        }))
    }

    /// The conditions of a call; without any, every request meets them.
    fn wanted(&self, call: &Call) -> Result<Vec<Condition>, AdminResponse> {
        if call.content.is_empty() {
            return Ok(Vec::new());
        }
        let json = call.json()?;
        let place = self.shared.look(|_, layers| layers.place());
        place.conditions(&json).map_err(|problems| {
            AdminResponse::problems("the conditions have mistakes", &problems, false)
        })
    }

    pub(super) fn request(&self, call: &Call, number: &str) -> AdminResponse {
        either(self.one_request(call, number))
    }

    fn one_request(&self, call: &Call, number: &str) -> Result<AdminResponse, AdminResponse> {
        let journal = self.journal()?;
        let missing = || {
            let text = format!("there is no request {number}, or not any more");
            AdminResponse::error(StatusCode::NOT_FOUND, &text)
        };
        let parsed = number.parse().map_err(|_| missing())?;
        if call.method == "DELETE" {
            return journal
                .remove(parsed)
                .then(AdminResponse::done)
                .ok_or_else(missing);
        }
        if !["GET", "HEAD"].contains(&call.method.as_str()) {
            return Ok(AdminResponse::not_allowed("GET, DELETE"));
        }
        let entry = journal.entry(parsed).ok_or_else(missing)?;
        let plan = self.shared.plan().1;
        let mut shown = shown(&entry, &plan);
        let body = &entry.request.body;
        match std::str::from_utf8(body) {
            Ok(text) => shown["body"] = json!(text),
            // A cut text may end within a character.
            Err(_) => shown["body_base64"] = json!(STANDARD.encode(body)),
        }
        shown["body_is_cut"] = json!(entry.length > body.len());
        if let Some(rule) = entry.rule() {
            // The set that it is of now may be another one, or none.
            let set = plan
                .sets
                .iter()
                .find(|set| set.rules().iter().any(|it| Arc::ptr_eq(it, rule)));
            let findings = set.map(|set| findings(set, rule, &entry.view()));
            shown["conditions"] = findings.map_or(Value::Null, |it| shown_findings(&it));
        }
        if let Some(session) = entry.session() {
            shown["session"] = session.shown();
        }
        if entry.is_unmatched() {
            shown["near_misses"] = near(&entry, &plan, NEAR);
        }
        Ok(AdminResponse::fields(json!({ "request": shown })))
    }

    pub(super) fn near_misses(&self, call: &Call) -> AdminResponse {
        if !["GET", "HEAD"].contains(&call.method.as_str()) {
            return AdminResponse::not_allowed("GET");
        }
        either(self.all_near_misses(call))
    }

    fn all_near_misses(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let limit = call.number("limit")?.unwrap_or(NEAR);
        let (entries, dropped) = self.journal()?.entries();
        let plan = self.shared.plan().1;
        let unmatched = entries.iter().rev().filter(|entry| entry.is_unmatched());
        let requests = unmatched.take(MOST_UNMATCHED).map(|entry| {
            let mut shown = shown(entry, &plan);
            shown["near_misses"] = near(entry, &plan, limit);
            shown
        });
        let requests: Vec<_> = requests.collect();
        Ok(AdminResponse::fields(json!({
            "requests": requests,
            "dropped": dropped,
        })))
    }

    pub(super) fn journal(&self) -> Result<&Arc<Journal>, AdminResponse> {
        self.shared.journal().ok_or_else(no_journal)
    }
}

fn no_journal() -> AdminResponse {
    let text = "requests are not kept: `journal` of the mock is 0";
    AdminResponse::error(StatusCode::CONFLICT, text)
}

pub(super) fn are_met(conditions: &[Condition], entry: &Entry) -> bool {
    let request = entry.view();
    conditions.iter().all(|it| it.is_met_by(&request))
}

/// The rules that came nearest to a request.
fn near(entry: &Entry, plan: &MockPlan, limit: u64) -> Value {
    let request = entry.view();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let misses = near_misses(plan, &request, limit);
    let shown = misses.iter().map(|miss| {
        json!({
            "rule": miss.rule.key,
            "file": miss.set.file.display().to_string(),
            "distance": (miss.distance * 1000.0).round() / 1000.0,
            "conditions": shown_findings(&findings(miss.set, miss.rule, &request)),
        })
    });
    shown.collect()
}

/// A request without its content. Looks for the file of a folder, so it may wait for it.
fn shown(entry: &Entry, plan: &MockPlan) -> Value {
    let request = &entry.request;
    let fields = request.fields.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value);
        json!([name, value])
    });
    json!({
        "number": entry.number,
        "time": humantime::format_rfc3339_millis(entry.at).to_string(),
        "peer": request.peer.to_string(),
        "scheme": if request.is_tls { "https" } else { "http" },
        "host": request.authority,
        "method": request.method,
        "path": request.target_path,
        "query": request.query,
        "headers": fields.collect::<Vec<_>>(),
        "body_bytes": entry.length,
        "status": entry.status(),
        "answered_by": answered_by(entry, plan),
    })
}

fn answered_by(entry: &Entry, plan: &MockPlan) -> Value {
    match &entry.by {
        AnsweredBy::Rule(rule) | AnsweredBy::Session(rule, _) => json!({ "rule": rule.key }),
        AnsweredBy::Middleware(name) => json!({ "middleware": name }),
        AnsweredBy::Collection(path) => json!({ "collection": path }),
        AnsweredBy::Document(document) => {
            json!({ "openapi": document.file().display().to_string() })
        }
        AnsweredBy::Preflight => json!({ "preflight": true }),
        AnsweredBy::Refusal => json!({ "refusal": true }),
        AnsweredBy::Nothing => Value::Null,
        AnsweredBy::Folder if entry.is_unmatched() => Value::Null,
        AnsweredBy::Folder => {
            let folder = plan.folder.as_ref();
            let file = folder.and_then(|folder| folder.find(&entry.view().path));
            json!({ "file": file.map(|file| file.display().to_string()) })
        }
    }
}
