//! Channels: each gives a message the form that its receiver documents. One file each; nothing here sends.

mod alertmanager;

mod discord;

mod email;

mod google_chat;

mod gotify;

mod matrix;

mod mattermost;

mod ntfy;

mod opsgenie;

mod pagerduty;

mod pushover;

mod slack;

mod teams;

mod telegram;

mod twilio;

mod webhook;

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_model::document::{ConfigProblem, Document};
use serde_json::Value;
use url::Url;

use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

pub use crate::notify::channel::email::{Mail, Mailer};

/// Gives messages the form of one receiver.
pub trait Notifier: Send + Sync + fmt::Debug {
    /// The request for a message.
    ///
    /// - `now`: for signatures.
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing;

    /// Whether messages of several monitors may be put together. Receivers that open an alert by one message and close it
    /// by another need each of them.
    fn groups(&self) -> bool {
        true
    }
}

/// The requests of channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    /// A request of HTTP; a status of 2xx means that it was received.
    Http(HttpRequest),
    /// A message by SMTP.
    Mail(Box<Mail>),
}

/// A request of HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `POST` or `PUT`.
    pub method: &'static str,
    /// Target URL.
    pub url: Url,
    /// Header fields.
    pub fields: Vec<(String, String)>,
    /// The content.
    pub content: String,
}

impl HttpRequest {
    fn json(url: Url, body: &Value) -> Outgoing {
        Self {
            method: "POST",
            url,
            fields: vec![("content-type".to_owned(), "application/json".to_owned())],
            content: body.to_string(),
        }
        .into()
    }

    fn form(url: Url, pairs: &[(&str, &str)]) -> Self {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        let content = form.extend_pairs(pairs).finish();
        let media_type = "application/x-www-form-urlencoded".to_owned();
        Self {
            method: "POST",
            url,
            fields: vec![("content-type".to_owned(), media_type)],
            content,
        }
    }

    fn with(mut self, name: &str, value: String) -> Self {
        self.fields.push((name.to_owned(), value));
        self
    }
}

impl From<HttpRequest> for Outgoing {
    fn from(request: HttpRequest) -> Self {
        Self::Http(request)
    }
}

impl Outgoing {
    fn with(self, name: &str, value: String) -> Self {
        match self {
            Self::Http(request) => Self::Http(request.with(name, value)),
            mail @ Self::Mail(_) => mail,
        }
    }
}

/// A URL below a base.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let whole = format!("{}/{path}", base.path().trim_end_matches('/'));
    url.set_path(&whole);
    url
}

/// A text as a segment of a path.
fn segment(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn basic(user: &str, password: &str) -> String {
    let credentials = base64::prelude::BASE64_STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {credentials}")
}

/// The first characters of a text, at most `most`.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Reads the settings of a channel; problems are noted there.
pub(crate) type Compile = fn(&mut Settings<'_>) -> Option<Arc<dyn Notifier>>;

/// Every channel by its key in `[[notify]]`.
pub(crate) const CHANNELS: [(&str, Compile); 16] = [
    ("alertmanager", alertmanager::compile),
    ("discord", discord::compile),
    ("email", email::compile),
    ("google_chat", google_chat::compile),
    ("gotify", gotify::compile),
    ("matrix", matrix::compile),
    ("mattermost", mattermost::compile),
    ("ntfy", ntfy::compile),
    ("opsgenie", opsgenie::compile),
    ("pagerduty", pagerduty::compile),
    ("pushover", pushover::compile),
    ("slack", slack::compile),
    ("teams", teams::compile),
    ("telegram", telegram::compile),
    ("twilio", twilio::compile),
    ("webhook", webhook::compile),
];

/// The keys of channels.
pub fn channel_kinds() -> impl Iterator<Item = &'static str> {
    CHANNELS.iter().map(|(kind, _)| *kind)
}

/// Why settings make no channel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    /// No channel is called so.
    #[error("there is no channel {0}")]
    Unknown(String),
    /// No channel is like that of another program.
    #[error("there is no channel like `{0}`")]
    NoneLike(String),
    /// A setting is wrong; the first of them.
    #[error("{0}")]
    Setting(ConfigProblem),
}

/// A channel of settings that come from elsewhere than our files; fails with the first problem.
pub(crate) fn notifier_of(
    kind: &str,
    table: &toml::Table,
) -> Result<Arc<dyn Notifier>, ChannelError> {
    let text = table.to_string();
    let mut document = Document::parse(&text);
    let mut settings = Settings::new(document.root(), &|_| None);
    let found = CHANNELS.iter().find(|(name, _)| *name == kind);
    let notifier = found.and_then(|(_, compile)| compile(&mut settings));
    settings.table.finish();
    let problem = document.into_problems().into_iter().next();
    match (notifier, problem) {
        (Some(notifier), None) => Ok(notifier),
        (_, Some(problem)) => Err(ChannelError::Setting(problem)),
        (None, None) => Err(ChannelError::Unknown(kind.to_owned())),
    }
}

#[cfg(test)]
mod tests;
