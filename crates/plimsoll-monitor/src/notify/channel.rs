//! Channels: each gives a message the form that its receiver documents. One file each; nothing here sends.
//!
//! A channel is its settings, its request and what other monitors call it, in one file, and a line in [`CHANNELS`] (`all`). The
//! configuration, its schema, the admin pages, the importers and the documentation are made of that table.

mod foreign;

mod request;

mod template;

mod settings_error;

mod issue;

mod aws;

pub(super) mod all;

mod alertmanager;

mod aws_sns;

mod bark;

mod dingtalk;

mod discord;

mod email;

mod feishu;

mod github;

mod gitlab;

mod google_chat;

mod gotify;

mod home_assistant;

mod incident_io;

mod jira;

mod line;

mod mailgun;

mod matrix;

mod mattermost;

mod n8n;

mod ntfy;

mod opsgenie;

mod pagerduty;

mod pushbullet;

mod pushover;

mod rocket_chat;

mod sendgrid;

mod ses;

mod signal;

mod signl4;

mod slack;

mod splunk_on_call;

mod teams;

mod telegram;

mod twilio;

mod twilio_voice;

mod webex;

mod webhook;

mod wecom;

mod zapier;

mod zulip;

use std::fmt;
use std::sync::Arc;

use plimsoll_model::Secret;
use plimsoll_model::document::ConfigProblem;

use crate::notify::channel::settings_error::SettingsError;
use crate::notify::field::{Field, Values};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

pub use crate::notify::channel::email::{Mail, Mailer};
pub(crate) use crate::notify::channel::foreign::{Foreign, Theirs};
pub use crate::notify::channel::request::{Answers, HttpRequest, Outgoing, Question};
pub use crate::notify::channel::template::placeholders;

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

    /// The credentials of its settings: a receiver may echo them in its answer, which people see.
    fn secrets(&self) -> &[Secret] {
        &[]
    }
}

/// A notifier with the credentials that it was made of.
#[derive(Debug)]
struct Knowing {
    notifier: Arc<dyn Notifier>,
    secrets: Vec<Secret>,
}

impl Notifier for Knowing {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        self.notifier.outgoing(message, now)
    }

    fn groups(&self) -> bool {
        self.notifier.groups()
    }

    fn secrets(&self) -> &[Secret] {
        &self.secrets
    }
}

/// A kind of channel.
#[derive(Debug)]
pub struct Channel {
    /// Its key in `[[notify]]`.
    pub key: &'static str,
    /// The vendor's name for it.
    pub name: &'static str,
    /// What it sends, in sentences.
    pub about: &'static str,
    /// Its settings.
    pub fields: &'static [Field],
    /// Providers of Gatus that are like it.
    pub(crate) gatus: &'static [Foreign],
    /// Notifications of Uptime Kuma that are like it.
    pub(crate) kuma: &'static [Foreign],
    /// Makes it of its settings; fails with what is wrong with them as a whole.
    compile: fn(&Values) -> Compiled,
}

/// A channel that is made, or what is wrong with its settings.
pub(crate) type Compiled = Result<Arc<dyn Notifier>, SettingsError>;

#[expect(
    clippy::unnecessary_wraps,
    reason = "it is the end of functions that may fail"
)]
fn made(notifier: impl Notifier + 'static) -> Compiled {
    Ok(Arc::new(notifier))
}

impl Channel {
    /// Reads the settings; problems are noted there.
    pub(crate) fn compile(&self, settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
        let values = Values::read(self.fields, settings)?;
        match (self.compile)(&values) {
            Ok(notifier) => Some(Arc::new(Knowing {
                notifier,
                secrets: values.secrets(),
            })),
            Err(problem) => {
                settings.table.wrong(problem, None);
                None
            }
        }
    }
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

#[cfg(test)]
mod snapshot;

#[cfg(test)]
mod derived;

#[cfg(test)]
mod tests;
