//! k6 scripts: the modules that they import, their options, thresholds and summaries.
//!
//! [`Script::load`] compiles a script once and runs its initialisation to read its options. [`run`] makes virtual users
//! of it and drives their iterations by `plimsoll_load`'s scenarios: each has its VM, whose blocking calls
//! suspend a fiber while the worker's runtime makes the requests. [`Outcome`] has what k6 prints and returns.
//!
//! Nothing here reads the environment, prints or exits: that is the binary's.

mod duration;

mod exit_code;

mod options;

mod commonjs;

mod source;

mod remote;

mod recorded;

mod thresholds;

mod checks;

mod metrics;

mod http;

mod grpc;

mod secrets;

mod socket;

mod event_stream;

mod html;

mod user;

mod modules;

mod drive;

mod script;

mod run;

mod summary;

mod samples;

mod series;

mod progress;

mod once;

pub use crate::exit_code::ExitCode;
pub use crate::once::{LINES, OnceVerdict, run_once};
pub use crate::options::{Options, OptionsError, Overrides, SummaryMode};
pub use crate::progress::{RunProgress, ScenarioStatus};
pub use crate::recorded::script_of;
pub use crate::remote::{Fetch, RemoteModules};
pub use crate::run::{ExchangeRecording, Invocation, Outcome, Output, run};
pub use crate::samples::{SampleFormat, SampleOutput};
pub use crate::script::{LoadError, Script, ScriptText};
pub use crate::secrets::Secrets;
pub use crate::series::{SeriesOutput, SeriesValue};
