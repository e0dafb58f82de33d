//! `grpc` of a file of rules, `when.grpc` and `respond.grpc`.

use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use plimsoll_formats::grpc::{Descriptors, MethodName};
use plimsoll_model::GrpcStatus;
use plimsoll_model::document::{Table, Value, as_text};

use super::respond::{self, Making};
use super::set::Context;
use super::when;
use crate::rules::condition::Condition;
use crate::rules::condition::call::CallTest;
use crate::rules::condition::text::{TextOperator, TextTest};
use crate::streaming::grpc::GrpcReply;
use crate::template::content::Content;

/// `{ descriptors = "api.binpb" }`
pub(super) fn descriptors(mut table: Table<'_>, context: &Context) -> Option<Arc<Descriptors>> {
    let value = table.take_value("descriptors");
    if value.is_none() {
        table.missing(
            "descriptors",
            "a `.proto` file, or what `protoc --include_imports --descriptor_set_out` has written",
        );
    }
    table.finish();
    let value = value?;
    let path = context.root.as_deref()?.join(as_text(&value)?);
    let descriptors = Descriptors::open(&path);
    let descriptors = descriptors.map_err(|error| format!("{}: {error}", path.display()));
    context.files.borrow_mut().insert(path);
    value.check(descriptors).map(Arc::new)
}

/// `when.grpc`: a method, or `{ method }` with conditions on the message.
pub(super) fn call(value: Value<'_>, context: &Context) -> Option<Vec<Condition>> {
    if !value.is_table() {
        return method(&value, Vec::new(), context);
    }
    let mut table = value.table()?;
    let name = table.take_value("method");
    if name.is_none() {
        table.missing("method", "such as method = \"shop.Cart/Get\"");
    }
    // The rest are conditions on the message.
    let conditions = when::body(table, context);
    method(&name?, conditions?, context)
}

/// The conditions of a call of that method.
fn method(
    value: &Value<'_>,
    conditions: Vec<Condition>,
    context: &Context,
) -> Option<Vec<Condition>> {
    let name: MethodName = value.check(as_text(value)?.parse())?;
    let Some(descriptors) = &context.grpc else {
        let hint = "give them at the beginning of the file: grpc = { descriptors = \"api.binpb\" }";
        return value.wrong_with("there are no descriptors", Some(hint.to_owned()));
    };
    let method = match descriptors.method(&name) {
        Ok(method) => method,
        Err(unknown) => return value.wrong_with(&unknown, Some(unknown.hint())),
    };
    if method.is_client_streaming() {
        return value.wrong(format!(
            "{name} takes a stream of messages, which no rule can be matched against"
        ));
    }
    let path = context.behind_prefix(&format!("/{name}"));
    let path = TextTest::new(TextOperator::Equal, path).ok()?;
    let test = CallTest {
        name: name.to_string(),
        method: Arc::new(method),
        conditions,
    };
    Some(vec![Condition::Path(path), Condition::Call(Box::new(test))])
}

/// `respond.grpc`: `{ json, status, message, trailers }`
pub(super) fn reply(value: Value<'_>, making: &Making<'_>) -> Option<GrpcReply> {
    let Some(method) = making.called.clone() else {
        let hint = "such as when.grpc = \"shop.Cart/Get\"";
        return value.wrong_with("the rule asks for no call", Some(hint.to_owned()));
    };
    let mut table = value.table()?;
    let status = match table.take_value("status") {
        None => Some(GrpcStatus::OK),
        Some(value) => as_text(&value).and_then(|name| {
            let mut known = GrpcStatus::all();
            let status = known.find(|status| status.name() == name);
            if status.is_none() {
                let names: Vec<_> = GrpcStatus::all().map(GrpcStatus::name).collect();
                let hint = format!("known are {}", names.join(", "));
                value.wrong_with::<()>(format!("`{name}` is no status of gRPC"), Some(hint));
            }
            status
        }),
    };
    let json = table.take_value("json");
    let has_messages = json.is_some();
    let mut are_right = true;
    let mut messages = Vec::new();
    for value in json.into_iter().flat_map(Value::elements) {
        let content = respond::json(&value, making);
        if let Some(Content::Bytes(_, json)) = &content {
            let encoded = method.answer(json).map_err(|error| {
                let cause = std::error::Error::source(&error);
                let cause = cause.map_or_else(String::new, |it| format!(": {it}"));
                format!("{error}{cause}")
            });
            are_right &= value.check(encoded).is_some();
        }
        are_right &= content.is_some();
        messages.extend(content);
    }
    if !method.is_server_streaming() && messages.len() > 1 {
        table.wrong(
            "the method answers with one message, not with several",
            None,
        );
    }
    let is_ok = status.is_none_or(GrpcStatus::is_ok);
    if !method.is_server_streaming() && !has_messages && is_ok {
        table.missing("json", "the message that it answers with, or a `status`");
    }
    let message = table
        .take_value("message")
        .map(|value| respond::text(&value, making));
    let mut trailers = Vec::new();
    if let Some(mut table) = table.table("trailers") {
        for (name, value) in table.rest_of_fields() {
            let trailer = trailer(&name, &value);
            are_right &= trailer.is_some();
            trailers.extend(trailer);
        }
    }
    table.finish();
    are_right.then_some(())?;
    Some(GrpcReply {
        method,
        messages,
        status: status?,
        message: match message {
            None => None,
            Some(message) => Some(message?),
        },
        trailers,
    })
}

fn trailer(name: &str, value: &Value<'_>) -> Option<(HeaderName, HeaderValue)> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` contains a character that names may not have"));
    let parsed = value.check(parsed)?;
    if parsed.as_str().starts_with("grpc-") {
        return value.wrong("is set by `status` and `message`");
    }
    let text = HeaderValue::from_str(as_text(value)?).map_err(|_| "contains a control character");
    Some((parsed, value.check(text)?))
}
