//! Uptime monitoring: scheduled probes, incidents, stores, their API.
//!
//! A [`config::Plan`] says what is monitored; an [`engine::Monitor`] runs it on its own thread, with a
//! [`store::Store`] behind it and [`api::router`] in front. Schedules, confirmation of outages, maintenance windows and
//! uptime are pure: they take the time as an argument. Status pages ([`page`]) are rendered from snapshots of them, and notices
//! ([`notify`]) are sent from an outbox in the store.
//!
//! ```ignore
//! let plan = config::load(Path::new("monitor.toml"), &|name| std::env::var(name).ok())?;
//! let store = action::open(&plan.store)?;
//! let monitor = Monitor::start(plan, store, Arc::new(|notice| eprintln!("{notice}")))?;
//! let router = api::router(monitor.handle().clone());
//! ```

mod timestamp;

mod random;

mod limits;

mod status;

pub mod config;

pub mod gatus;

pub mod probe;

mod reading;

pub mod schedule;

pub mod detect;

pub mod window;

pub mod uptime;

pub mod store;

pub mod budget;

pub mod engine;

pub mod agent;

pub mod page;

pub mod notify;

pub mod subscribe;

pub mod oncall;

pub mod oidc;

mod manage;

mod admin;

pub mod setup;

pub mod api;

pub mod action;

pub mod import;

pub use crate::reading::{CheckResult, Expectation, GatusDisplay, Judged, Reading, explain};
pub use crate::status::{Health, Status};
pub use crate::timestamp::{Moment, Timestamp};
