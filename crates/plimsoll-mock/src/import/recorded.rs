//! What was recorded as rules: one for each method, path and query, with its responses one after the other.

use std::collections::HashMap;

use bytes::Bytes;

use super::body;
use super::entry::{Entry, Table};
use super::redact::Redaction;
use super::when::When;
use crate::asked::KeptRequest;

/// A response that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedReply {
    /// From 200 to 599.
    pub(crate) status: u16,
    /// Fields, without those about the connection and its media type.
    pub(crate) headers: Vec<(String, String)>,
    /// Its media type.
    pub(crate) kind: Option<String>,
    /// Its content, decoded.
    pub(crate) body: Bytes,
}

/// Puts content into a reply, its headers, or a file that it names: the reply, its headers, the media type, the bytes,
/// and the path that they were asked for by.
pub(crate) type WriteContent<'w> =
    dyn FnMut(&mut Table, &mut Table, Option<&str>, &[u8], &str) + 'w;

/// Exchanges by what was asked.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    order: Vec<Asking>,
    replies: HashMap<Asking, Vec<RecordedReply>>,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Asking {
    method: String,
    path: String,
    /// In their order.
    parameters: Vec<(String, String)>,
}

impl Exchanges {
    /// Adds an exchange behind those before it.
    ///
    /// - `target`: path and query, as they were sent.
    pub(crate) fn push(&mut self, method: &str, target: &str, reply: RecordedReply) {
        let asking = Asking::of(method, target);
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
            .sort_by_key(|asking| std::cmp::Reverse(asking.parameters.len()));
        let mut rules = Vec::new();
        for asking in self.order {
            let mut replies = self.replies.remove(&asking).unwrap_or_default();
            // What was always the same need not be told twice.
            replies.dedup();
            let replies = replies
                .iter()
                .map(|it| reply(it, redaction, asking.path(), written));
            let replies = replies.collect();
            rules.push(asking.rule(replies, redaction));
        }
        rules
    }
}

impl Asking {
    /// - `target`: path and query, as they were sent.
    pub(crate) fn of(method: &str, target: &str) -> Self {
        let request = KeptRequest::made(method, target);
        let asked = request.asked();
        let mut parameters = asked.parameters().clone();
        parameters.sort();
        Self {
            method: method.to_ascii_uppercase(),
            path: asked.path.into_owned(),
            parameters,
        }
    }

    /// Decoded and normalised.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// How many parameters it asks for: of two rules the one with more of them comes first.
    pub(crate) fn parameters(&self) -> usize {
        self.parameters.len()
    }

    /// The rule that answers it.
    ///
    /// - `replies`: one or more.
    pub(crate) fn rule(&self, mut replies: Vec<Table>, redaction: &Redaction) -> Table {
        let mut rule = Table::new();
        rule.push("when", Entry::Table(when(self, redaction).table()));
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

fn when(asking: &Asking, redaction: &Redaction) -> When {
    let mut when = When::new();
    when.ask(&["url_path"], asking.path.as_str());
    when.ask(&["method"], asking.method.as_str());
    for (name, value) in &asking.parameters {
        when.ask(&["query", name], redaction.condition(name, value));
    }
    when
}

/// What a rule says of a response.
pub(crate) fn reply(
    reply: &RecordedReply,
    redaction: &Redaction,
    path: &str,
    written: &mut WriteContent<'_>,
) -> Table {
    let mut respond = Table::new();
    // What a cache had still was content all the same.
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
        let value = Entry::Text(redaction.field(name, value));
        match headers.value_mut(name) {
            None => headers.push(name.as_str(), value),
            Some(Entry::List(values)) => values.push(value),
            Some(first) => *first = Entry::List(vec![first.clone(), value]),
        }
    }
    if has_content && may_have_content {
        let kind = reply.kind.as_deref();
        let hidden = if kind.is_none_or(body::is_json) {
            redaction.json(&reply.body)
        } else {
            None
        };
        let bytes = hidden.as_deref().unwrap_or(&reply.body);
        written(&mut respond, &mut headers, kind, bytes, path);
    }
    if !headers.is_empty() {
        respond.push("headers", Entry::Table(headers));
    }
    respond
}
