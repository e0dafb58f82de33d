//! Channels: which notices go where, and in whose templates.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::AddressFilter;

use crate::notify::channel::Notifier;
use crate::notify::message::{Message, NoticeKind};
use crate::notify::oncall::OnCallPlan;
use crate::notify::words::{self, Facts, Template};
use crate::store::Source;
use crate::time::Timestamp;

/// A channel with the notices that it gets.
#[derive(Debug, Clone)]
pub struct NotifyPlan {
    /// In the outbox and the log.
    pub name: String,
    /// Source of the definition.
    pub source: Source,
    /// Which addresses it may reach; absent for all.
    pub(crate) filter: Option<AddressFilter>,
    /// The rotations that it is a member of; while it is on call in none of them, what opens goes to others.
    pub rotations: Vec<Arc<OnCallPlan>>,
    /// The kind of its receiver, as configurations name it.
    pub channel: String,
    /// The form of its messages.
    pub notifier: Arc<dyn Notifier>,
    /// The notices that it receives.
    pub kinds: Vec<NoticeKind>,
    /// The keys of its monitors; all if it is absent.
    pub monitors: Option<HashSet<String>>,
    /// An incident is reported once it has been open for so long and is not acknowledged.
    pub after: Duration,
    /// Between two reminders of an open incident that is not acknowledged.
    pub remind: Option<Duration>,
    /// The title of messages.
    pub title: Option<Template>,
    /// The text of messages.
    pub text: Option<Template>,
}

impl NotifyPlan {
    /// Whether it is sent notices of a kind about a monitor.
    pub(crate) fn wants(&self, kind: NoticeKind, key: &str) -> bool {
        let is_of = self.monitors.as_ref();
        self.kinds.contains(&kind) && is_of.is_none_or(|monitors| monitors.contains(key))
    }

    /// A message about a monitor that is not there, by its templates.
    pub(crate) fn sample(&self, kind: NoticeKind) -> Message {
        let sample = Message::sample(kind);
        self.message(&Facts {
            kind,
            ended: None,
            key: &sample.monitor,
            name: &sample.name,
            group: &sample.group,
            reason: &sample.text,
            incident: sample.incident,
            at: sample.at,
            since: sample.since,
            link: sample.link,
        })
    }

    /// Whether it is on call, if it takes turns at all.
    pub(crate) fn is_on_call(&self, at: Timestamp) -> bool {
        let mut rotations = self.rotations.iter();
        self.rotations.is_empty() || rotations.any(|rotation| rotation.who(at) == self.name)
    }

    /// The message of its templates.
    pub(crate) fn message(&self, facts: &Facts<'_>) -> Message {
        words::message(facts, self.title.as_ref(), self.text.as_ref())
    }
}
