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

mod random;

mod calendar;

mod language;

mod limits;

mod cookies;

pub mod config;

pub mod gatus;

pub mod probe;

pub mod schedule;

pub mod detect;

pub mod store;

pub mod engine;

pub mod agent;

pub mod page;

pub mod notify;

pub mod oidc;

mod admin;

pub mod api;

mod assembly;

pub use crate::admin::setup;
pub use crate::api::action;
pub use crate::config::import;
pub use crate::detect::status::{Health, Status};
pub use crate::detect::{budget, uptime, window};
pub use crate::notify::oncall;
pub use crate::page::subscribe;
pub use crate::probe::reading::{CheckResult, Expectation, GatusDisplay, Judged, Reading, explain};
pub use crate::store::timestamp::{Moment, Timestamp};
