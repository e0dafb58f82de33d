//! Subscriptions to status pages: who receives a message when an incident begins, changes and ends.
//!
//! A reader leaves an address: of a mailbox, a webhook or a channel of Slack. A message with a link goes there, and only
//! who follows it within a day gets more. What is sent are the updates that the page shows, each once to each subscriber,
//! from the outbox of the store. Addresses come from the public: requests to them reach public addresses alone.

mod record;

mod sign_up;

mod publish;

mod delivery;

use plimsoll_monitor::engine::Beside;

pub(crate) use crate::page::subscribe::record::Subscriber;
pub(crate) use crate::page::subscribe::sign_up::{
    OF_SITE, OF_SOURCE, SubscribeError, change, components, confirm, list, remove, stop, subscribe,
};
pub use plimsoll_monitor::config::SubscriptionPlan;
pub(crate) use plimsoll_monitor::config::subscriptions::Means;
pub(crate) use plimsoll_monitor::notify::SUBSCRIBERS as CHANNEL;

/// What runs beside the checks of a monitor: updates are written for subscribers, and sent to them.
pub(crate) const TASKS: [Beside; 2] = [
    |parts| Box::pin(publish::run(parts)),
    |parts| Box::pin(delivery::run(parts)),
];
