//! k6 scripts: the modules that they import, their options, thresholds and summaries.
//!
//! [`Script::load`] compiles a script once and runs its initialisation to read its options. [`run`] makes virtual users
//! of it and drives their iterations by `plimsoll_load`'s scenarios: each has its VM, whose blocking calls
//! suspend a fiber while the worker's runtime makes the requests. [`Outcome`] has what k6 prints and returns.
//!
//! Nothing here reads the environment, prints or exits: that is the binary's.
//!
//! # The way of an iteration
//!
//! 1. `script.rs`, `Script::load`: `Program::compile` finds the modules by `ScriptSources` and
//!    compiles each to bytecode, once.
//! 2. `run.rs`: a first virtual user runs the modules and exports the options. `run_scenarios`
//!    (`load/src/scenario/run.rs`) starts the workers; each makes its virtual users, one VM with the bytecode loaded
//!    each, and waits for the common start.
//! 3. `load/src/scenario/worker.rs`, `UserTask`: a free virtual user claims its next iteration (`claims.rs` beside it: two counters for
//!    all workers, `executor.rs` for the times) and waits for its start.
//! 4. `script.rs`, `User::iteration`: spawns a fiber, which runs the exported function on a stack of its own
//!    (`script/src/fiber.rs`).
//! 5. `http.get` in the script calls `js/http.js`, then a native function (`modules/http.rs`), which reads the
//!    arguments and suspends the fiber by `Waiter::wait`.
//! 6. `user/drive.rs` gets the call from `Fiber::resume`, makes the request on the worker's runtime over the connections
//!    of the virtual user (`protocol/http/execute.rs`, `client::forward`), measures each exchange (`user.rs`, `Sinks::add`),
//!    and resumes the fiber with the response.
//! 7. When the function returns, the event loop runs until nothing is left; then the iteration is counted. A
//!    deadline or an abort drops the future, which cancels the fiber: the script ends by an exception that it cannot
//!    catch, and the virtual user is made anew.
//! 8. Twice a second a worker hands its samples over; `run/ticks.rs` merges them and judges the thresholds
//!    (`metrics/thresholds.rs`). If one with `abortOnFail` (`aborts` in our code) is breached, it calls `Abort::abort`
//!    (`load/src/scenario/run.rs`), for which its `worker.rs` waits beside each iteration. At the end
//!    `summary/` makes the data, which `handleSummary()` or the text gets.

mod crypto;

mod go_error;

mod line_source;

mod output;

mod protocol;

mod options;

mod source;

mod metrics;

mod html;

mod user;

mod modules;

mod script;

mod run;

mod summary;

pub use crate::line_source::LineSource;
pub use crate::metrics::checks::PartCheck;
pub use crate::metrics::servers::{ObservedServers, RunServers};
pub use crate::options::duration::parse as parse_script_duration;
pub use crate::options::go_duration;
pub use crate::options::{Options, OptionsError, Overrides, SummaryMode};
pub use crate::output::samples::{CsvTime, OpenSamples, SampleFile, SampleFormat, SampleOutput};
pub use crate::output::series::{SeriesOutput, SeriesValue};
pub use crate::run::control::{ControlResponse, RunControl};
pub use crate::run::exit_code::ExitCode;
pub use crate::run::inspect::{InspectedScript, inspect};
pub use crate::run::invocation::{ExchangeRecording, Invocation, OnPlan, Outcome, Output};
pub use crate::run::once::{LINES, OnceVerdict, run_once};
pub use crate::run::parts::{
    PartFigures, PartsEnd, PreparedParts, ScriptPart, ScriptParts, ScriptUnion,
};
pub use crate::run::plan::{RunNeeds, ScenarioNeeds};
pub use crate::run::progress::{RecentFigures, RunProgress, ScenarioStatus, TrendFigures};
pub use crate::run::run;
pub use crate::script::{LoadError, Script, ScriptText};
pub use crate::source::archive::{Archive, ArchiveError, UnpackedArchive};
pub use crate::source::recorded::script_of;
pub use crate::source::remote::{Fetch, ModuleFetchError, ModuleLockError, RemoteModules};
pub use crate::summary::K6_VERSION;
pub use crate::user::secrets::{SecretSourceError, Secrets};
