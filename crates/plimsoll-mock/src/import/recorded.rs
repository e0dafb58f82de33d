//! Recorded exchanges as rules: one for each method, path and query, with its responses one after the other.

use std::collections::HashMap;

use bytes::Bytes;

use super::body;
use super::entry::{Entry, Table};
use super::when::{When, bare_test};
use crate::proxy::record::redact::{REDACTED, Redaction};
use crate::request::{Pairs, RequestView};

/// A response that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedReply {
    /// From 200 to 599.
    pub(crate) status: u16,
    /// Fields, without those about the connection and its media type.
    pub(crate) headers: Vec<(String, FieldValue)>,
    /// Its media type.
    pub(crate) kind: Option<String>,
    /// Its content, decoded.
    pub(crate) body: Bytes,
    /// The length that a response to HEAD announces.
    pub(crate) announced: Option<u64>,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldValue {
    /// In UTF-8.
    Text(String),
    /// Bytes that are not, each as the character of Latin-1.
    Latin1(String),
}

impl FieldValue {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Latin1(bytes.iter().map(|byte| char::from(*byte)).collect()),
        }
    }
}

/// Puts content into a reply, its headers, or a file that it names: the reply, its headers, the media type, the bytes,
/// and the path of their request.
pub(crate) type WriteContent<'w> =
    dyn FnMut(&mut Table, &mut Table, Option<&str>, &[u8], &str) + 'w;

/// Exchanges by their request.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    order: Vec<RequestParts>,
    replies: HashMap<RequestParts, Vec<RecordedReply>>,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestParts {
    method: String,
    path: String,
    /// In their order; secret ones without their values.
    parameters: Vec<(String, Option<String>)>,
    content: AskedContent,
}

/// The content of a request, as far as rules can match it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum AskedContent {
    /// None, or one that cannot be compared.
    Any,
    /// JSON, with places where secrets stood.
    Json(String),
    /// The fields of a form; secret ones without their values.
    Form(Vec<(String, Option<String>)>),
    /// Another text.
    Text(String),
}

/// Longer content of requests, in bytes, is not compared.
const LONGEST_ASKED: usize = 16 << 10;

/// Replaces a secret of a request; equal to every value.
pub(crate) const ANYTHING: &str = "${json-unit.ignore}";

impl Exchanges {
    /// Adds an exchange behind those before it.
    ///
    pub(crate) fn push(&mut self, asking: RequestParts, reply: RecordedReply) {
        let replies = self.replies.entry(asking.clone()).or_default();
        if replies.is_empty() {
            self.order.push(asking);
        }
        replies.push(reply);
    }

    /// The rules, those that ask for more parameters first.
    ///
    /// - `written`: where contents go.
    pub(crate) fn rules(
        mut self,
        redaction: &Redaction,
        written: &mut WriteContent<'_>,
    ) -> Vec<Table> {
        self.order
            .sort_by_key(|asking| std::cmp::Reverse(asking.parameters()));
        let mut rules = Vec::new();
        for asking in self.order {
            let mut replies = self.replies.remove(&asking).unwrap_or_default();
            // A reply that never changed is written once.
            replies.dedup();
            let replies = replies
                .iter()
                .map(|it| reply(it, redaction, asking.path(), written));
            let replies = replies.collect();
            rules.push(asking.rule(replies));
        }
        rules
    }
}

impl RequestParts {
    /// The parts of a request that rules match.
    pub(crate) fn new(request: &RequestView<'_>, redaction: &Redaction) -> Self {
        let content = request.body;
        let shown = |pairs: &Pairs| {
            let mut shown = pairs.clone();
            shown.sort();
            let shown = shown.into_iter().map(|(name, value)| {
                let value = (!redaction.hides(&name)).then_some(value);
                (name, value)
            });
            shown.collect::<Vec<_>>()
        };
        Self {
            method: request.method.to_ascii_uppercase(),
            parameters: shown(request.parameters()),
            content: if content.is_empty() || content.len() > LONGEST_ASKED {
                AskedContent::Any
            } else if request.json().is_some() {
                let hidden = redaction.json(content, ANYTHING);
                let json = hidden.as_deref().unwrap_or(content);
                AskedContent::Json(String::from_utf8_lossy(json).into_owned())
            } else if !request.form().is_empty() {
                AskedContent::Form(shown(request.form()))
            } else {
                match std::str::from_utf8(content) {
                    Ok(text) => AskedContent::Text(text.to_owned()),
                    Err(_) => AskedContent::Any,
                }
            },
            path: request.path.clone().into_owned(),
        }
    }

    /// Decoded and normalised.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Number of parameters in its condition: of two rules the one with more comes first.
    pub(crate) fn parameters(&self) -> usize {
        self.parameters.len()
            + match &self.content {
                AskedContent::Any => 0,
                AskedContent::Form(fields) => fields.len(),
                AskedContent::Json(_) | AskedContent::Text(_) => 1,
            }
    }

    /// The rule that answers it.
    ///
    /// - `replies`: one or more.
    pub(crate) fn rule(&self, mut replies: Vec<Table>) -> Table {
        let mut rule = Table::new();
        rule.push("when", Entry::Table(when(self).table()));
        if replies.len() == 1 {
            rule.push("respond", Entry::Table(replies.remove(0)));
        } else {
            let replies = replies.into_iter().map(Entry::Braces).collect();
            let mut respond = Table::new();
            respond.push("sequence", Entry::List(replies));
            rule.push("respond", Entry::Table(respond));
        }
        rule
    }
}

fn when(asking: &RequestParts) -> When {
    let mut when = When::new();
    when.ask(&["url_path"], asking.path.as_str());
    when.ask(&["method"], asking.method.as_str());
    let condition = |value: &Option<String>| match value {
        Some(value) => value.as_str().into(),
        None => bare_test("exists"),
    };
    for (name, value) in &asking.parameters {
        when.ask(&["query", name], condition(value));
    }
    match &asking.content {
        AskedContent::Any => {}
        AskedContent::Json(json) => when.ask(&["body", "equal_json"], json.as_str()),
        AskedContent::Form(fields) => {
            for (name, value) in fields {
                when.ask(&["form", name], condition(value));
            }
        }
        AskedContent::Text(text) => when.ask(&["body", "text"], text.as_str()),
    }
    when
}

/// The table of a response.
pub(crate) fn reply(
    reply: &RecordedReply,
    redaction: &Redaction,
    path: &str,
    written: &mut WriteContent<'_>,
) -> Table {
    let mut respond = Table::new();
    // A response that a cache still had did have content.
    let has_content = !reply.body.is_empty();
    let status = match reply.status {
        304 if has_content => 200,
        status => status,
    };
    let may_have_content = !matches!(status, 204 | 205 | 304);
    if status != 200 || !has_content {
        respond.push("status", Entry::Whole(i64::from(status)));
    }
    let mut headers = Table::new();
    for (name, value) in &reply.headers {
        if super::is_about_connection(name) {
            continue;
        }
        let value = match value {
            FieldValue::Text(text) => Entry::Text(redaction.field(name, text)),
            FieldValue::Latin1(text) => {
                Entry::braces([("latin1", redaction.field(name, text).into())])
            }
        };
        headers.push_field(name, value);
    }
    if has_content && may_have_content {
        let kind = reply.kind.as_deref();
        let hidden = if kind.is_none_or(body::is_json) {
            redaction.json(&reply.body, REDACTED)
        } else {
            None
        };
        let bytes = hidden.as_deref().unwrap_or(&reply.body);
        written(&mut respond, &mut headers, kind, bytes, path);
    }
    let announced = reply.announced.filter(|_| !has_content && may_have_content);
    if let Some(length) = announced.and_then(|length| i64::try_from(length).ok()) {
        respond.push("content_length", Entry::Whole(length));
    }
    // That of HEAD says what GET would answer.
    if !has_content && let Some(kind) = &reply.kind {
        headers.push("content-type", kind.as_str());
    }
    if !headers.is_empty() {
        respond.push("headers", Entry::Table(headers));
    }
    respond
}
