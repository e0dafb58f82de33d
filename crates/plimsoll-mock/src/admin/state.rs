//! The mock as a whole: what there is, what would answer a request, and everything as it was in the beginning.

use http::StatusCode;
use serde_json::{Value, json};

use super::AdminOfMock;
use super::call::{AdminResponse, Call, either};
use crate::fault::delay::CommonDelays;
use crate::request::KeptRequest;

impl AdminOfMock {
    pub(super) fn status(&self, call: &Call) -> AdminResponse {
        if !["GET", "HEAD"].contains(&call.method.as_str()) {
            return AdminResponse::not_allowed("GET");
        }
        let plan = self.shared.plan().1;
        let rules: usize = plan.sets.iter().map(|set| set.rules().len()).sum();
        let journal = self.shared.journal().map(|journal| {
            let (entries, dropped) = journal.entries();
            json!({ "requests": entries.len(), "dropped": dropped })
        });
        let (sessions, store) = (plan.states.usage(), plan.states.store.usage());
        let files = plan.files.iter().map(|file| file.display().to_string());
        AdminResponse::fields(json!({
            "files": files.collect::<Vec<_>>(),
            "folder": plan.folder.as_ref().map(|folder| folder.root().display().to_string()),
            "rules": rules,
            "collections": plan.collections.len(),
            "journal": journal,
            "sessions": { "bytes": sessions.bytes, "max_bytes": sessions.most, "refused": sessions.refused },
            "store": { "bytes": store.0, "max_bytes": store.1, "refused": store.2 },
        }))
    }

    pub(super) fn reset(&self, call: &Call) -> AdminResponse {
        if call.method != "POST" {
            return AdminResponse::not_allowed("POST");
        }
        self.reset_everything()
    }

    /// Requests, rules, scenarios and collections are as in the beginning.
    pub(super) fn reset_everything(&self) -> AdminResponse {
        self.shared.reset_rules();
        self.shared.set_delays(CommonDelays::default());
        let plan = self.shared.plan().1;
        plan.states.reset();
        self.forget_all_requests();
        self.reload_collections()
    }

    pub(super) fn collections(&self, call: &Call) -> AdminResponse {
        if !["GET", "HEAD"].contains(&call.method.as_str()) {
            return AdminResponse::not_allowed("GET");
        }
        let plan = self.shared.plan().1;
        let shown = plan.collections.iter().map(|collection| {
            let (bytes, most) = collection.bytes();
            json!({
                "path": collection.path(),
                "objects": collection.count(),
                "bytes": bytes,
                "max_bytes": most,
                "refused": collection.refused(),
            })
        });
        AdminResponse::fields(json!({ "collections": shown.collect::<Vec<_>>() }))
    }

    pub(super) fn reset_collections(&self, call: &Call) -> AdminResponse {
        if call.method != "POST" {
            return AdminResponse::not_allowed("POST");
        }
        self.reload_collections()
    }

    fn reload_collections(&self) -> AdminResponse {
        let plan = self.shared.plan().1;
        let reset = plan.collections.iter().map(|collection| {
            let reset = collection.reset();
            reset.map_err(|error| format!("{}: {error}", collection.path()))
        });
        let failed: Vec<_> = reset.filter_map(Result::err).collect();
        if failed.is_empty() {
            return AdminResponse::done();
        }
        let text = format!("not all is as it was: {}", failed.join("; "));
        AdminResponse::error(StatusCode::INTERNAL_SERVER_ERROR, &text)
    }

    /// The rule that would answer a described request.
    pub(super) fn try_match(&self, call: &Call) -> AdminResponse {
        if call.method != "POST" {
            return AdminResponse::not_allowed("POST");
        }
        either(call.json().and_then(|json| {
            let request = request(&json)?;
            let plan = self.shared.plan().1;
            let explanation = plan.explain(&request.view());
            Ok(AdminResponse::json(StatusCode::OK, explanation.document()))
        }))
    }
}

/// `{ method, path, headers, body }`
fn request(json: &Value) -> Result<KeptRequest, AdminResponse> {
    let wrong = |text: &str| AdminResponse::error(StatusCode::UNPROCESSABLE_ENTITY, text);
    let text = |name: &str| match json.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(wrong(&format!("`{name}` must be text"))),
    };
    let path = text("path")?.ok_or_else(|| wrong("`path` is missing: path and query"))?;
    let body = text("body")?.unwrap_or_default();
    let usual = if body.is_empty() { "GET" } else { "POST" };
    let mut request = KeptRequest::made(text("method")?.unwrap_or(usual), path);
    request.body = body.as_bytes().to_vec().into();
    match json.get("headers") {
        None | Some(Value::Null) => {}
        Some(Value::Object(fields)) => {
            for (name, value) in fields {
                let value = value
                    .as_str()
                    .ok_or_else(|| wrong("the values of `headers` must be texts"))?;
                request
                    .fields
                    .push((name.clone(), value.as_bytes().to_vec()));
            }
        }
        Some(_) => {
            return Err(wrong(
                "`headers` must be an object: names with their values",
            ));
        }
    }
    Ok(request)
}
