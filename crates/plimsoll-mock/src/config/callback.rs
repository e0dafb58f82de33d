//! `callbacks` of a rule: requests that it sends once it has answered.

use plimsoll_model::document::{Value, as_text};

use super::respond::{self, Making, written};
use super::set::Context;
use crate::callback::{Callback, CallbackText};
use crate::template::Form;
use crate::template::content::Content;

/// - `names`: of segments of the path, with their numbers.
pub(super) fn compile(
    value: Value<'_>,
    context: &Context,
    names: &[(String, usize)],
) -> Option<Vec<Callback>> {
    let callbacks = value.elements().into_iter();
    let callbacks = callbacks.map(|value| one(value, context, names));
    // Every mistake is noted before it is known that there was one.
    callbacks.collect::<Vec<_>>().into_iter().collect()
}

fn one(value: Value<'_>, context: &Context, names: &[(String, usize)]) -> Option<Callback> {
    let mut table = value.table()?;
    let making = Making::new(&mut table, context, names, None);
    let field = |value: &Value<'_>| {
        let text = as_text(value)?;
        if making.has_places(text) {
            return written(value, text, Form::Field, &making).map(CallbackText::TextTemplate);
        }
        Some(CallbackText::Always(text.to_owned()))
    };
    let url = table.take_value("url");
    if url.is_none() {
        table.missing("url", "such as url = \"http://127.0.0.1:9000/hook\"");
    }
    let url = url.and_then(|value| field(&value));
    let method = table.take_value("method");
    let method = match &method {
        None => Some("POST"),
        Some(value) => as_text(value).filter(|method| {
            let is_token = !method.is_empty() && method.bytes().all(|it| it.is_ascii_alphabetic());
            is_token || value.wrong::<()>("is no method").is_some()
        }),
    };
    let mut fields = Vec::new();
    let mut is_whole = true;
    if let Some(mut headers) = table.table("headers") {
        for (name, value) in headers.rest_of_fields() {
            match field(&value) {
                Some(text) => fields.push((name, text)),
                None => is_whole = false,
            }
        }
    }
    let mut given = Vec::new();
    if let Some(value) = table.take_value("text") {
        given.push(respond::text(&value, &making));
    }
    if let Some(value) = table.take_value("json") {
        given.push(respond::json(&value, &making));
    }
    if let Some(value) = table.take_value("base64") {
        given.push(respond::base64(&value));
    }
    if given.len() > 1 {
        table.wrong("more than one of text, json and base64", None);
    }
    let delay = respond::delay(&mut table, None);
    let body = given.pop().unwrap_or(Some(Content::Empty));
    let method = method.map(str::to_ascii_uppercase);
    let chance = making.chance.clone();
    table.finish();
    is_whole.then_some(())?;
    Some(Callback {
        method: method?,
        url: url?,
        fields,
        content: body?,
        delay: delay?,
        chance,
    })
}
