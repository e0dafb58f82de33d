//! The requests of channels, and how their vendors answer.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use url::Url;

use crate::notify::channel::email::Mail;
use crate::notify::deliver::SendFailure;

/// What a channel sends.
#[derive(Debug, Clone)]
pub enum Outgoing {
    /// A request of HTTP.
    Http(HttpRequest),
    /// A message by SMTP.
    Mail(Box<Mail>),
    /// A request whose answer says what is sent next.
    Question(Box<Question>),
}

/// A request of HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Such as `POST`.
    pub method: &'static str,
    /// Target URL.
    pub url: Url,
    /// Header fields.
    pub fields: Vec<(String, String)>,
    /// The content.
    pub content: String,
    /// What the answers of its receiver mean.
    pub answers: &'static Answers,
}

/// What answers of a vendor mean besides their status: 2xx is received, 408, 429 and 5xx are tried again.
#[derive(Debug, PartialEq, Eq)]
pub struct Answers {
    /// A member of the JSON in answers with 2xx, and what it is if the message was received. Answers without it count as
    /// received.
    pub expected: Option<(&'static str, &'static str)>,
    /// Other values of that member with which the vendor asks for another attempt.
    pub busy: &'static [&'static str],
    /// Parts of refusals with which the vendor asks for another attempt.
    pub busy_texts: &'static [&'static str],
    /// Further statuses of what was received.
    pub received: &'static [u16],
}

impl Answers {
    /// The status says everything.
    pub const PLAIN: Self = Self {
        expected: None,
        busy: &[],
        busy_texts: &[],
        received: &[],
    };
}

/// What follows an answer: the next request, or nothing if all is done; or why it does not go on.
pub(super) type Next = Result<Option<Outgoing>, SendFailure>;

/// A request whose answer says what is sent next.
#[derive(Clone)]
pub struct Question {
    /// The request.
    pub request: HttpRequest,
    next: Arc<dyn Fn(&Value) -> Next + Send + Sync>,
}

impl Question {
    /// What follows the answer.
    ///
    /// - `answer`: its JSON; null if it has none.
    ///
    /// Fails with why nothing follows.
    pub fn next(&self, answer: &Value) -> Result<Option<Outgoing>, SendFailure> {
        (self.next)(answer)
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl HttpRequest {
    /// A request without fields and content.
    pub fn new(method: &'static str, url: Url) -> Self {
        Self {
            method,
            url,
            fields: Vec::new(),
            content: String::new(),
            answers: &Answers::PLAIN,
        }
    }

    pub(crate) fn json(url: Url, body: &Value) -> Self {
        Self::new("POST", url).with_json(body)
    }

    pub(super) fn form(url: Url, pairs: &[(&str, &str)]) -> Self {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        let content = form.extend_pairs(pairs).finish();
        Self {
            content,
            ..Self::new("POST", url)
        }
        .with("content-type", "application/x-www-form-urlencoded")
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    pub(super) fn with_json(self, body: &Value) -> Self {
        Self {
            content: body.to_string(),
            ..self
        }
        .with("content-type", "application/json")
    }

    pub(super) fn bearer(self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }

    pub(super) fn basic(self, user: &str, password: &str) -> Self {
        let credentials = base64::prelude::BASE64_STANDARD.encode(format!("{user}:{password}"));
        self.with("authorization", format!("Basic {credentials}"))
    }

    pub(super) fn answered(self, answers: &'static Answers) -> Self {
        Self { answers, ..self }
    }

    /// The request as a question.
    pub(super) fn then(self, next: impl Fn(&Value) -> Next + Send + Sync + 'static) -> Outgoing {
        Outgoing::Question(Box::new(Question {
            request: self,
            next: Arc::new(next),
        }))
    }
}

impl From<HttpRequest> for Outgoing {
    fn from(request: HttpRequest) -> Self {
        Self::Http(request)
    }
}

/// A URL below a base.
pub(super) fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let whole = format!("{}/{path}", base.path().trim_end_matches('/'));
    url.set_path(&whole);
    url
}

/// A text as a segment of a path.
pub(super) fn segment(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The first characters of a text, at most `most`.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// The first characters of a text, at most `most` bytes of UTF-8.
pub(super) fn shortened_bytes(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    format!("{}…", text.get(..end).unwrap_or_default())
}
