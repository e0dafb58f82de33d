//! Subscriptions to status pages: who receives a message when an incident begins, changes and ends.
//!
//! A reader leaves an address: of a mailbox, a webhook or a channel of Slack. A message with a link goes there, and only
//! who follows it within a day gets more. What is sent are the updates that the page shows, each once to each subscriber,
//! from the outbox of the store. Addresses come from the public: requests to them reach public addresses alone.

mod config;

mod record;

mod desk;

mod publish;

mod courier;

pub(crate) use crate::notify::SUBSCRIBERS as CHANNEL;
pub use crate::page::subscribe::config::SubscriptionPlan;
pub(crate) use crate::page::subscribe::config::compile;
pub(crate) use crate::page::subscribe::courier::run as deliver;
pub(crate) use crate::page::subscribe::desk::{
    OF_SOURCE, SubscribeError, change, components, confirm, list, remove, stop, subscribe,
};
pub(crate) use crate::page::subscribe::publish::run as publish;
pub(crate) use crate::page::subscribe::record::{Means, Subscriber};
