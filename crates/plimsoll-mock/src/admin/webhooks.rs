//! Webhooks of OpenAPI documents: listed, and sent on demand.

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use url::Url;

use super::AdminOfMock;
use super::call::{AdminResponse, Call, either};
use crate::callback::OutgoingCallback;

impl AdminOfMock {
    pub(super) fn webhooks(&self, call: &Call) -> AdminResponse {
        if !["GET", "HEAD"].contains(&call.method.as_str()) {
            return AdminResponse::not_allowed("GET");
        }
        let plan = self.shared.plan().1;
        let webhooks = plan.openapi.iter().flat_map(|document| {
            let file = document.file().display().to_string();
            let webhooks = document.webhooks();
            webhooks.map(
                move |(name, method)| json!({ "name": name, "method": method, "openapi": file }),
            )
        });
        AdminResponse::fields(json!({ "webhooks": webhooks.collect::<Vec<_>>() }))
    }

    pub(super) fn send_webhook(&self, call: &Call, name: &str) -> AdminResponse {
        if call.method != "POST" {
            return AdminResponse::not_allowed("POST");
        }
        either(self.sent_webhook(call, name))
    }

    /// Sends a webhook; what becomes of it is reported as with other callbacks.
    fn sent_webhook(&self, call: &Call, name: &str) -> Result<AdminResponse, AdminResponse> {
        let wrong = |text: &str| AdminResponse::error(StatusCode::UNPROCESSABLE_ENTITY, text);
        let Value::Object(mut given) = call.json()? else {
            return Err(wrong("the content must be an object with a `url`"));
        };
        let url = given.remove("url");
        let url = url.as_ref().and_then(Value::as_str);
        let url = url.and_then(|url| Url::parse(url).ok());
        let url = url.filter(|url| ["http", "https"].contains(&url.scheme()));
        let url =
            url.ok_or_else(|| wrong("`url` must be a URL, such as http://127.0.0.1:9000/hook"))?;
        let body = given.remove("body").filter(|body| !body.is_null());
        let headers = given.remove("headers");
        if let Some(key) = given.keys().next() {
            return Err(wrong(&format!(
                "there is no `{key}`, only url, headers and body"
            )));
        }
        let plan = self.shared.plan().1;
        let mut documents = plan.openapi.iter();
        let webhook = documents.find_map(|document| document.webhook(name, url.clone()));
        let webhook = webhook.ok_or_else(|| {
            let text = format!("there is no webhook `{name}`");
            AdminResponse::error(StatusCode::NOT_FOUND, &text)
        })?;
        let mut webhook = webhook.map_err(|error| wrong(&error.to_string()))?;
        if let Some(body) = body {
            replace_content(&mut webhook, &body);
        }
        match headers {
            None | Some(Value::Null) => {}
            Some(Value::Object(headers)) => {
                for (name, value) in headers {
                    let field = field(&name, &value);
                    let field =
                        field.ok_or_else(|| wrong(&format!("`headers.{name}` is no field")))?;
                    webhook.fields.retain(|(known, _)| *known != field.0);
                    webhook.fields.push(field);
                }
            }
            Some(_) => return Err(wrong("`headers` must be an object of texts")),
        }
        self.shared.callbacks().send_made(webhook);
        Ok(AdminResponse::bare(StatusCode::ACCEPTED))
    }
}

/// Texts are sent as they are, everything else as JSON.
fn replace_content(webhook: &mut OutgoingCallback, body: &Value) {
    webhook.content = match body {
        Value::String(text) => text.clone().into(),
        body => body.to_string().into(),
    };
    let has_kind = webhook
        .fields
        .iter()
        .any(|(name, _)| name == "content-type");
    if !has_kind {
        let kind = match body {
            Value::String(_) => "text/plain; charset=utf-8",
            _ => "application/json",
        };
        webhook
            .fields
            .push(("content-type".to_owned(), kind.to_owned()));
    }
}

/// A field that can be sent, its name in lower case.
fn field(name: &str, value: &Value) -> Option<(String, String)> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let value = value.as_str()?;
    HeaderValue::from_str(value).ok()?;
    Some((name.as_str().to_owned(), value.to_owned()))
}
