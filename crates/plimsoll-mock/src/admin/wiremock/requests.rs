//! Requests: listed, found, counted, forgotten.

use std::sync::Arc;
use std::time::SystemTime;

use http::StatusCode;
use serde_json::{Value, json};

use super::mappings::has_metadata;
use super::shape::{logged, number_of, serve_event};
use super::{bad_request, done, json_of, missing, uuid};
use crate::admin::AdminOfMock;
use crate::admin::call::{AdminResponse, Call};
use crate::admin::journal::Entry;
use crate::admin::requests::are_met;

impl AdminOfMock {
    /// All requests, the oldest first; none if they are not kept.
    pub(super) fn entries(&self) -> Vec<Arc<Entry>> {
        let journal = self.shared.journal();
        journal
            .map(|journal| journal.entries().0)
            .unwrap_or_default()
    }

    /// A document about requests.
    fn about_requests(&self, mut document: Value) -> AdminResponse {
        document["requestJournalDisabled"] = json!(self.shared.journal().is_none());
        AdminResponse::json(StatusCode::OK, document)
    }

    /// The latest first.
    pub(super) fn serve_events(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let limit = match call.parameter("limit") {
            None | Some("") => usize::MAX,
            Some(text) => text
                .parse()
                .map_err(|_| bad_request(&format!("{text} is not a valid integer")))?,
        };
        let since = match call.parameter("since") {
            None | Some("") => SystemTime::UNIX_EPOCH,
            Some(text) => humantime::parse_rfc3339_weak(text.trim_end_matches('Z'))
                .map_err(|_| bad_request(&format!("{text} is not a valid ISO8601 date")))?,
        };
        let unmatched = call.parameter("unmatched") == Some("true");
        let of_mapping = call.parameter("matchingStub").map(|id| {
            let title = format!("Query parameter matchingStub value '{id}' is not a valid UUID");
            uuid(id).map_err(|_| bad_request(&title))
        });
        let of_mapping = of_mapping.transpose()?;
        let entries = self.entries();
        let wanted = |entry: &&Arc<Entry>| {
            let mapping = entry.rule().and_then(|rule| rule.mapping.as_ref());
            entry.at >= since
                && (!unmatched || entry.is_unmatched())
                && of_mapping
                    .as_ref()
                    .is_none_or(|id| mapping.is_some_and(|it| it["id"] == id.as_str()))
        };
        let found: Vec<_> = entries.iter().rev().filter(wanted).collect();
        let shown = found.iter().take(limit).map(|entry| serve_event(entry));
        let shown: Vec<_> = shown.collect();
        Ok(self.about_requests(json!({ "requests": shown, "meta": { "total": found.len() } })))
    }

    pub(super) fn serve_event(
        &self,
        call: &Call,
        id: &str,
    ) -> Result<AdminResponse, AdminResponse> {
        let number = number_of(&uuid(id)?);
        let found = number.zip(self.shared.journal());
        if call.method == "DELETE" {
            // One that is not there is no error in WireMock.
            if let Some((number, journal)) = found {
                journal.remove(number);
            }
            return Ok(done());
        }
        let (number, journal) = found.ok_or_else(missing)?;
        let entry = journal.entry(number).ok_or_else(missing)?;
        Ok(AdminResponse::json(StatusCode::OK, serve_event(&entry)))
    }

    pub(super) fn forget_requests(&self) -> AdminResponse {
        self.forget_all_requests();
        done()
    }

    /// Those that meet a pattern.
    fn found(&self, call: &Call) -> Result<Vec<Arc<Entry>>, AdminResponse> {
        let conditions = self.conditions_of(&json_of(call)?)?;
        let mut entries = self.entries();
        entries.retain(|entry| are_met(&conditions, entry));
        Ok(entries)
    }

    pub(super) fn find(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let shown: Vec<_> = self.found(call)?.iter().map(|it| logged(it)).collect();
        Ok(self.about_requests(json!({ "requests": shown })))
    }

    pub(super) fn count(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let found = self.found(call)?.len();
        let count = match self.shared.journal() {
            Some(_) => json!(found),
            None => json!(-1),
        };
        Ok(self.about_requests(json!({ "count": count })))
    }

    pub(super) fn remove_found(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let found = self.found(call)?;
        Ok(self.removed(&found))
    }

    /// Requests that were answered by mappings with such metadata.
    pub(super) fn remove_of_metadata(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let conditions = self.conditions_on_metadata(call)?;
        let mut entries = self.entries();
        entries.retain(|entry| {
            let mapping = entry.rule().and_then(|rule| rule.mapping.as_ref());
            mapping.is_some_and(|mapping| has_metadata(mapping, &conditions))
        });
        Ok(self.removed(&entries))
    }

    fn removed(&self, entries: &[Arc<Entry>]) -> AdminResponse {
        if let Some(journal) = self.shared.journal() {
            for entry in entries {
                journal.remove(entry.number);
            }
        }
        let shown: Vec<_> = entries.iter().map(|entry| serve_event(entry)).collect();
        AdminResponse::json(StatusCode::OK, json!({ "serveEvents": shown }))
    }

    pub(super) fn unmatched(&self) -> AdminResponse {
        let entries = self.entries();
        let unmatched = entries.iter().rev().filter(|entry| entry.is_unmatched());
        let shown: Vec<_> = unmatched.map(|entry| logged(entry)).collect();
        self.about_requests(json!({ "requests": shown }))
    }
}
