//! Uptime monitoring: scheduled probes, incidents, stores, notices.
//!
//! A [`config::Plan`] says what is monitored; an [`engine::Monitor`] runs it on its own thread, with a
//! [`store::Store`] behind it. Schedules, confirmation of outages, maintenance windows and uptime are pure: they take the time
//! as an argument. Notices ([`notify`]) are sent from an outbox in the store. The API, the admin pages and the status pages are
//! in `plimsoll-monitor-web`.
//!
//! ```ignore
//! let plan = config::load(Path::new("monitor.toml"), &|name| std::env::var(name).ok())?;
//! let store = plan.open_store()?;
//! let monitor = Monitor::start(plan, store, Arc::new(|notice| eprintln!("{notice}")), &[])?;
//! let views = monitor.handle().board.views();
//! ```
//!
//! # The way of a check
//!
//! 1. `Scheduler::pop` (`monitor/src/schedule/heap.rs`) yields a monitor that is due; `Gates::enter`
//!    (`schedule/gates.rs`) lets the check start or counts why not.
//! 2. A local task (`engine/running.rs`) calls `Probe::check` (`probe/`), which opens a connection of its own by the
//!    client's `Connector` and finds facts: a `Reading`.
//! 3. `Expectation::judge` (`probe/reading.rs`) makes a `CheckResult` of it, by conditions of `plimsoll check` or of
//!    Gatus.
//! 4. The loop (`engine/supervisor.rs`) hands the result to the store in a batch, and to the `Detector`
//!    (`detect/machine.rs`): `(state, input, now) → effects`.
//! 5. Effects become changes (`engine/supervisor/apply.rs`) and the state on the `Board` that the API reads. The
//!    changes of one step, with what the next process has to know (`engine/memory.rs`), are one group, which the
//!    `Recorder` (`engine/recorder.rs`) repeats until the store has taken all of it.
//! 6. `SqliteStore` (`store/sqlite/`) writes results twice a second and changes at once; every minute it completes
//!    rollups and deletes what is too old. `ServerStore` (`store/server/`) does the same in PostgreSQL and
//!    ClickHouse, whose views add up the rollups, or in PostgreSQL alone (`store/server/own_results.rs`); results wait
//!    on the disk (`store/server/spill.rs`) while the database is away. `LeasedMonitor` (`action/leased_monitor.rs` of
//!    the web part) starts the loop while this process has the lease of the checks (`engine/leadership.rs`, a state
//!    machine driven by the time); without it, a `Standby` (`engine/standby.rs`) reads what the other process writes,
//!    for its pages, and a `Helper` (`agent/helper.rs`) makes this process's share of the checks (`store/shards.rs`),
//!    whose results the loop of the other process fetches (`engine/supervisor/sharing.rs`).
//!
//! # The way of a notice
//!
//! 1. An effect of the detector becomes one `NewNotice` for each channel that wants it
//!    (`engine/supervisor/notices.rs`), which goes to the outbox in the transaction of the change that it reports
//!    (`Change::Notices`).
//! 2. `notify/deliver.rs` has one task for each channel: it reads what is due, drops what is no longer true, puts
//!    many of one kind together, and has the channel (`notify/channel/`, pure) make the request. After a failure
//!    that may pass, the notice is due again after `backoff` (`notify/message.rs`: 10 s, doubled, at most 1 h), up
//!    to 12 attempts.
//! 3. What became of it, and the reminder that follows, are written in one transaction (`Store::settle_notices`).

pub mod time;

mod ids;

pub mod stop;

mod yaml;

pub mod schedule;

pub mod detect;

pub mod probe;

pub mod store;

mod token;

pub mod notify;

pub mod config;

mod discovery;

pub mod engine;

pub mod agent;

pub mod manage;

pub use crate::config::import;
pub use crate::detect::status::{Health, Status};
pub use crate::detect::{budget, uptime, window};
pub use crate::discovery::DiscoveryView;
pub use crate::notify::oncall;
pub use crate::probe::reading::{CheckResult, Expectation, GatusDisplay, Judged, Reading, explain};
pub use crate::time::{Moment, Timestamp};
