//! The mock server: folders and rules that answer requests.
//!
//! A [`MockPlan`] says what is answered: [`RuleSet`]s, which are tried in order, and a [`Folder`] for what no rule
//! answers. [`config::load`] makes one of files, [`SharedMock`] holds the one that answers now, and [`Mock`] is the
//! action of one worker over it. [`KIND`] is how `plimsoll up` knows it.
//!
//! Nothing here listens or prints; problems and changes are values.
//!
//! # The way of a request
//!
//! 1. The action of the worker (`worker/action.rs`) makes a `RequestView` ([`request`]) of the head, and of the content
//!    where a rule asks for it.
//! 2. `MockPlan::find` (`config/plan.rs`) asks each [`RuleSet`] in order; the first one with an answer decides. Rules that were
//!    added at run time are a set before all others (`worker/layers.rs`).
//! 3. Within a set `RuleSet::choose` takes one of the rules whose conditions hold, by the set's strategy (`rules/`).
//! 4. The reply of the rule is rendered (`reply/`, `template/`, `script/`), fetched from a server behind it (`proxy/`), or
//!    streamed (`streaming/`); faults and delays are added to it (`fault/`), and callbacks are begun (`callback.rs`).
//! 5. Where no rule answers, the [`Folder`] does (`folder/`); else the response is a 404 that names what came near
//!    (`rules/nearness.rs`).

#![forbid(unsafe_code)]

mod streaming;

pub mod request;

pub mod rules;

pub mod proxy;

pub mod reply;

pub mod template;

pub mod fault;

pub mod callback;

pub mod store;

pub mod script;

pub mod middleware;

pub mod openapi;

pub mod folder;

pub mod config;

pub mod import;

mod worker;

mod admin;

#[cfg(feature = "mock-import")]
mod environment;

pub use crate::admin::SCHEMA as ADMIN_SCHEMA;
pub use crate::admin::journal;
pub use crate::config::kind::KIND;
pub use crate::config::plan::MockPlan;
pub use crate::config::{edit, plan};
pub use crate::fault::{delay, pace};
pub use crate::folder::Folder;
pub use crate::proxy::record;
pub use crate::request::{KeptRequest, RequestView};
pub use crate::rules::{Rule, RuleSet, RuleState};
pub use crate::rules::{condition, explain, path};
pub use crate::store::{collection, states};
pub use crate::streaming::{events, grpc, websocket};
pub use crate::template::{content, data, fake};
pub use crate::worker::action::Mock;
pub use crate::worker::shared::SharedMock;
pub use crate::worker::{shared, sharing};
