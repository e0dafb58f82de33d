//! Answers that depend on the request, the same over each version of HTTP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Uri};

/// A request without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lowercase, and values.
    pub fields: Vec<(String, String)>,
}

impl Question {
    /// The value of the first field of that lowercase name.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(candidate, _)| candidate == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The values of all fields of that lowercase name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.fields.iter();
        let same = fields.filter(|(candidate, _)| candidate == name);
        same.map(|(_, value)| value.as_str()).collect()
    }

    /// Of the head of a request of HTTP/2 or HTTP/3.
    pub(crate) fn from_request(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let target = uri.path_and_query();
        let fields = headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        });
        Self {
            method: method.to_string(),
            target: target.map(ToString::to_string).unwrap_or_default(),
            fields: fields.collect(),
        }
    }

    /// Of the head of a request of HTTP/1.
    pub(crate) fn parse(head: &str) -> Self {
        let mut lines = head.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        let fields = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        Self {
            method: word(),
            target: word(),
            fields: fields.collect(),
        }
    }
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Names and values.
    pub fields: Vec<(String, String)>,
    /// The content.
    pub content: Vec<u8>,
    /// Its delay; only over HTTP/1.
    pub after: Duration,
}

impl Reply {
    /// A response with `fields`, whose content is `hello`.
    pub fn new(status: u16, fields: &[(&str, &str)]) -> Self {
        let fields = fields.iter();
        let fields = fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self {
            status,
            fields: fields.collect(),
            content: b"hello".to_vec(),
            after: Duration::ZERO,
        }
    }

    /// The same with another content.
    #[must_use]
    pub fn content(self, content: impl Into<Vec<u8>>) -> Self {
        Self {
            content: content.into(),
            ..self
        }
    }

    /// The same, held back for `after`.
    #[must_use]
    pub fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }

    /// As it goes over HTTP/1.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!(
            "HTTP/1.1 {} Reply\r\ncontent-length: {}\r\n",
            self.status,
            self.content.len()
        );
        for (name, value) in &self.fields {
            for part in [name, ": ", value, "\r\n"] {
                text.push_str(part);
            }
        }
        [(text + "\r\n").into_bytes(), self.content.clone()].concat()
    }
}

/// Decides on the answers; clones share it.
#[derive(Clone)]
pub struct Logic(Arc<dyn Fn(&Question) -> Reply + Send + Sync>);

impl Logic {
    /// Answers what `reply` says.
    pub fn new(reply: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Self {
        Self(Arc::new(reply))
    }

    pub(crate) fn reply(&self, question: &Question) -> Reply {
        (self.0)(question)
    }
}

impl fmt::Debug for Logic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logic")
    }
}

impl PartialEq for Logic {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Logic {}
