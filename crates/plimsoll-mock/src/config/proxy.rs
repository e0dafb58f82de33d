//! `respond.proxy`: a real server that answers.

use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use plimsoll_model::document::{Value, as_text};
use plimsoll_wire::tls::Trust;

use super::set::Context;
use crate::proxy::{TIMEOUT, Upstream, UpstreamOptions};

/// A URL, or `{ to, timeout, headers, without, strip, keep_host, ca, insecure }`.
pub(super) fn compile(value: Value<'_>, context: &Context) -> Option<Arc<Upstream>> {
    if !value.is_table() {
        return upstream(&value, UpstreamOptions::default());
    }
    let mut table = value.table()?;
    let to = table.take_value("to");
    if to.is_none() {
        table.missing("to", "such as to = \"https://api.example\"");
    }
    let timeout = table.duration("timeout");
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        table.wrong("a `timeout` of nothing leaves no time to answer", None);
    }
    let keeps_host = table.boolean("keep_host");
    let insecure = table.boolean("insecure").unwrap_or(false);
    let trust = match table.text("ca") {
        Some(_) if insecure => {
            table.wrong("both `ca` and `insecure` are given", None);
            None
        }
        Some(file) => {
            let root = context.root.clone().unwrap_or_default();
            let file = root.join(file);
            context.others.borrow_mut().insert(file.clone());
            Some(Trust::Only(file))
        }
        None if insecure => Some(Trust::Anyone),
        None => Some(Trust::PublicRoots),
    };
    let mut fields = Vec::new();
    let mut is_whole = true;
    if let Some(mut headers) = table.table("headers") {
        for (name, value) in headers.rest_of_fields() {
            match field(&name, &value) {
                Some(field) => fields.push(field),
                None => is_whole = false,
            }
        }
    }
    let without = table.take_value("without").map(|value| {
        value.texts_with(|name| {
            let parsed = HeaderName::from_bytes(name.as_bytes());
            parsed
                .err()
                .map(|_| format!("`{name}` is no name of a field"))
        })
    });
    is_whole &= !matches!(without, Some(None));
    let without = without.flatten().unwrap_or_default().into_iter();
    let without = without.filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok());
    let strip = table.take_value("strip").map(|value| {
        let prefix = as_text(&value)?.to_owned();
        if prefix.starts_with('/') {
            Some(prefix)
        } else {
            value.wrong("must begin with a slash")
        }
    });
    is_whole &= !matches!(strip, Some(None));
    table.finish();
    is_whole.then_some(())?;
    let options = UpstreamOptions {
        timeout: timeout.unwrap_or(TIMEOUT),
        trust: trust?,
        keeps_host: keeps_host.unwrap_or(false),
        fields,
        strip: strip.flatten(),
        without: without.collect(),
    };
    upstream(&to?, options)
}

fn upstream(value: &Value<'_>, options: UpstreamOptions) -> Option<Arc<Upstream>> {
    let url = as_text(value)?;
    value.check(Upstream::new(url, options)).map(Arc::new)
}

fn field(name: &str, value: &Value<'_>) -> Option<(HeaderName, HeaderValue)> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` contains a character that header names may not have"));
    let parsed = value.check(parsed)?;
    if ["host", "content-length", "transfer-encoding", "connection"].contains(&parsed.as_str()) {
        return value.wrong("is set by the proxy and cannot be given");
    }
    let text = HeaderValue::from_str(as_text(value)?).map_err(|_| "contains a control character");
    Some((parsed, value.check(text)?))
}
