//! The monitor over HTTP: its API, its admin pages and its status pages.
//!
//! A [`Monitor`] runs in `plimsoll-monitor`; this crate serves it. [`start`] starts one with the tasks that its status pages
//! need, and [`router`] has all routes. The action `monitor` of a route ([`action`]) does both, and follows changes of
//! the file and of the lease of the store.
//!
//! ```ignore
//! let plan = config::load(Path::new("monitor.toml"), &|name| std::env::var(name).ok())?;
//! let store = plan.open_store()?;
//! let monitor = plimsoll_monitor_web::start(plan, store, Arc::new(|notice| eprintln!("{notice}")))?;
//! let router = plimsoll_monitor_web::router(monitor.handle().clone());
//! ```
//!
//! # The way of a status page
//!
//! 1. `visit.rs` finds the page by slug or host, checks its password (`visit/guard.rs`) and gets the snapshot
//!    from `Pages::current` (`page/cache.rs`).
//! 2. That is the kept one unless the board's version has changed or it is older than 30 s; then one reader reads
//!    the store (`Store::histories`, `timelines`, `declared`) and the others wait. If the store fails, the last
//!    snapshot is shown, with a note of its age.
//! 3. `Snapshot::from_rows` (`page/snapshot.rs`, pure) makes states, days and public incidents of the rows; `page/html.rs`,
//!    `page/feed.rs` and `page/statuspage.rs` render it in the reader's language. What was rendered is kept with its entity
//!    tag and its compressed form until the next snapshot.
//! 4. `page/live.rs` sends an event when the board's version changes; the script of the page fetches the page again
//!    and replaces its content.
//!
//! # The way of a change
//!
//! 1. Each route has an audience (`access.rs`), whose guard runs before the handler: a token with a scope, or a session
//!    with a role and the CSRF token of its form (`admin/guard.rs`).
//! 2. The handler makes the change by the same method of the `Handle` whether it came by the API or by a form: commands of the
//!    engine, or changes of definitions (`manage` in `plimsoll-monitor`).

mod random;

mod language;

mod limits;

mod cookies;

mod request;

mod answer;

mod badge;

mod oidc;

pub mod page;

mod state;

mod access;

mod visit;

mod api;

mod admin;

mod router;

pub mod action;

use std::sync::Arc;

use plimsoll_monitor::config::Plan;
use plimsoll_monitor::engine::{Monitor, StartError};
use plimsoll_monitor::store::Store;

pub use crate::admin::setup;
pub use crate::page::subscribe;
pub use crate::router::router;

/// Starts to monitor what the plan says, with the tasks of its status pages; returns once the state of the last run is
/// restored.
///
/// - `notice`: receives what an operator should see, such as a store that does not take data.
///
/// Fails if the store fails or the system has no thread for it.
pub fn start(
    plan: Plan,
    store: Arc<dyn Store>,
    notice: Arc<dyn Fn(&str) + Send + Sync>,
) -> Result<Monitor, StartError> {
    Monitor::start(plan, store, notice, &subscribe::TASKS)
}
