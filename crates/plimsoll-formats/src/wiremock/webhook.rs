//! What a mapping does once it has answered: webhooks, and changes of states.

use serde_json::{Map, Value};

use super::response::{MappingBody, MappingDelay, delay, fields};
use super::state::{self, StateChange};
use super::{Notes, is_empty, table, text};

/// A request that is sent once a mapping has answered. All its texts may have places (Handlebars).
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    /// Its method.
    pub method: String,
    /// Its URL.
    pub url: String,
    /// Fields of its header.
    pub fields: Vec<(String, String)>,
    /// Its content.
    pub body: MappingBody,
    /// Time after which it is sent.
    pub delay: Option<MappingDelay>,
    /// What templates know as `parameters` besides.
    pub parameters: Map<String, Value>,
}

/// The webhooks of a mapping, and its changes of states; what else is to happen then is noted.
pub(super) fn listeners(
    mapping: &mut Map<String, Value>,
    notes: &mut Notes,
) -> (Vec<Webhook>, Vec<StateChange>) {
    let (mut webhooks, mut changes) = (Vec::new(), Vec::new());
    for key in ["serveEventListeners", "postServeActions"] {
        let listeners = match mapping.remove(key) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(listeners)) => listeners,
            // The older form has them by their names.
            Some(Value::Object(named)) => named
                .into_iter()
                .map(|(name, parameters)| serde_json::json!({ "name": name, "parameters": parameters }))
                .collect(),
            Some(_) => {
                notes.left_out(key, "is no list");
                continue;
            }
        };
        for (number, listener) in (1..).zip(listeners) {
            let at = format!("{key}[{number}]");
            let Value::Object(mut listener) = listener else {
                notes.left_out(&at, "is no object");
                continue;
            };
            let name = listener.get("name").and_then(Value::as_str).unwrap_or("?");
            let name = name.to_owned();
            let mut parameters = table(&mut listener, "parameters", &format!("{at}."), notes);
            let inner = format!("{at}.parameters.");
            if name == "webhook" {
                webhooks.extend(webhook(parameters, &inner, notes));
            } else if let Some(made) = state::changes(&name, &mut parameters, &inner, notes) {
                changes.extend(made);
            } else {
                notes.left_out(&at, format!("`{name}` is not known here"));
            }
        }
    }
    (webhooks, changes)
}

fn webhook(mut given: Map<String, Value>, at: &str, notes: &mut Notes) -> Option<Webhook> {
    let method = text(&mut given, "method", at, notes);
    let Some(url) = text(&mut given, "url", at, notes) else {
        notes.left_out(&format!("{at}url"), "is missing, so nothing is sent");
        return None;
    };
    let fields = fields(&mut given, "headers", notes);
    let json = given.remove("jsonBody").filter(|it| !is_empty(it));
    let base64 = text(&mut given, "base64Body", at, notes);
    let plain = text(&mut given, "body", at, notes);
    let body = match (json, base64, plain) {
        (Some(value), ..) => MappingBody::Json(value),
        (None, Some(text), _) => MappingBody::Base64(text),
        (None, None, Some(text)) => MappingBody::Text(text),
        (None, None, None) => MappingBody::Empty,
    };
    let distribution = table(&mut given, "delay", at, notes);
    let delay = (!distribution.is_empty()).then(|| delay(&distribution));
    if delay == Some(None) {
        let message = "is none of fixed, uniform and lognormal with what they need";
        notes.left_out(&format!("{at}delay"), message);
    }
    if given.remove("bodyFileName").is_some() {
        notes.left_out(&format!("{at}bodyFileName"), "is not carried over");
    }
    Some(Webhook {
        method: method.unwrap_or_else(|| "GET".to_owned()),
        url,
        fields,
        body,
        delay: delay.flatten(),
        parameters: given,
    })
}
