//! The mock server: folders and rules that answer requests.
//!
//! A [`MockPlan`] says what is answered: [`RuleSet`]s, which are tried in order, and a [`Folder`] for what no rule
//! answers. [`config::load`] makes one of files, [`SharedMock`] holds the one that answers now, and [`Mock`] is the
//! action of one worker over it. [`KIND`] is how `plimsoll up` knows it.
//!
//! Nothing here listens or prints; problems and changes are values.

#![forbid(unsafe_code)]

pub mod request;

pub mod path;

pub mod condition;

pub mod rules;

pub mod proxy;

pub mod reply;

pub mod content;

pub mod template;

#[cfg(feature = "mock-import")]
mod handlebars;

#[cfg(not(feature = "mock-import"))]
#[path = "handlebars/none.rs"]
mod handlebars;

#[cfg(feature = "mock-import")]
mod dates;

#[cfg(not(feature = "mock-import"))]
#[path = "dates/none.rs"]
mod dates;

#[cfg_attr(
    not(feature = "mock-import"),
    expect(dead_code, reason = "only templates of other mock servers look it up")
)]
pub mod data;

pub mod fake;

pub mod delay;

pub mod pace;

mod patience;

pub mod fault;

pub mod events;

pub mod websocket;

pub mod grpc;

pub mod store;

pub mod states;

pub mod script;

pub mod collection;

pub mod openapi;

pub mod folder;

pub mod plan;

pub mod config;

pub mod edit;

pub mod import;

pub mod sharing;

mod ready;

mod files;

pub mod replace;

mod worker;

pub mod journal;

#[cfg_attr(
    not(feature = "script"),
    expect(dead_code, reason = "only scripts report so much")
)]
mod notice_limiter;

mod layers;

pub mod shared;

pub mod record;

mod action;

pub mod explain;

mod nearness;

mod admin;

mod kind;

pub use crate::action::Mock;
pub use crate::admin::SCHEMA as ADMIN_SCHEMA;
pub use crate::folder::Folder;
pub use crate::kind::KIND;
pub use crate::plan::MockPlan;
pub use crate::request::{KeptRequest, RequestView};
pub use crate::rules::{Rule, RuleSet, RuleState};
pub use crate::shared::SharedMock;
