//! An exchange with a real server, as recordings keep it.

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http_body::Body as _;

use crate::import::recorded::{FieldValue, RecordedReply};
use crate::proxy::Passed;
use crate::request::KeptRequest;

/// An exchange whose content is still on its way.
#[derive(Debug)]
pub(crate) struct ExchangeHead {
    request: KeptRequest,
    status: StatusCode,
    fields: Vec<(HeaderName, HeaderValue)>,
    /// The length that the response to HEAD announces.
    announced: Option<u64>,
    /// Scheme, host and port of the server.
    origin: String,
}

/// A request with its whole response.
#[derive(Debug, Clone)]
pub(crate) struct KeptExchange {
    /// Below the prefix of the mock, with its content.
    pub(crate) request: KeptRequest,
    pub(crate) reply: RecordedReply,
}

impl ExchangeHead {
    /// - `request`: below the prefix of the mock, with its content.
    /// - `origin`: scheme, host and port of the server.
    pub(crate) fn new(request: KeptRequest, passed: &Passed, origin: String) -> Self {
        let is_head = request.method == "HEAD";
        let length = passed.content.size_hint().exact();
        Self {
            status: passed.status,
            fields: passed.fields.clone(),
            announced: length.filter(|_| is_head),
            request,
            origin,
        }
    }

    /// An exchange without fields.
    #[cfg(test)]
    pub(crate) fn made(request: KeptRequest, status: StatusCode) -> Self {
        Self {
            request,
            status,
            fields: Vec::new(),
            announced: None,
            origin: String::new(),
        }
    }

    /// The request, such as `GET /a?b=c`.
    pub(crate) fn line(&self) -> String {
        let target = self.request.target();
        format!("{} {target}", self.request.method)
    }

    /// The exchange with its content; nothing for a status that no rule can have.
    pub(crate) fn with_content(self, content: Bytes) -> Option<KeptExchange> {
        if !(200..=599).contains(&self.status.as_u16()) {
            return None;
        }
        // Fields that every response of a mock has, or that belong to this moment, are not recorded.
        let is_kept = |name: &str| !matches!(name, "content-type" | "date");
        let kind = self.fields.iter().find(|(name, _)| name == CONTENT_TYPE);
        let kind = kind.and_then(|(_, value)| value.to_str().ok());
        let headers = self
            .fields
            .iter()
            .filter(|(name, _)| is_kept(name.as_str()))
            .map(|(name, value)| {
                (
                    name.as_str().to_owned(),
                    FieldValue::from_bytes(value.as_bytes()),
                )
            });
        let headers = headers.map(|(name, value)| {
            // A redirect within that server becomes one within the mock.
            let own = match &value {
                FieldValue::Text(text) if name == "location" => text.strip_prefix(&self.origin),
                _ => None,
            };
            let own = own.filter(|rest| rest.starts_with('/')).map(str::to_owned);
            (name, own.map_or(value, FieldValue::Text))
        });
        let reply = RecordedReply {
            status: self.status.as_u16(),
            headers: headers.collect(),
            kind: kind.map(str::to_owned),
            body: content,
            announced: self.announced,
        };
        Some(KeptExchange {
            request: self.request,
            reply,
        })
    }
}

impl KeptExchange {
    /// Bytes of its contents.
    pub(crate) fn bytes(&self) -> usize {
        self.request.body.len() + self.reply.body.len()
    }
}
