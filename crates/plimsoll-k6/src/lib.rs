//! k6 scripts: the modules that they import, their options, thresholds and summaries.
//!
//! [`Script::load`] compiles a script once and runs its initialisation to read its options. [`run`] makes virtual users
//! of it and drives their iterations by `plimsoll_load`'s scenarios: each has its VM, whose blocking calls
//! suspend a fiber while the worker's runtime makes the requests. [`Outcome`] has what k6 prints and returns.
//!
//! Nothing here reads the environment, prints or exits: that is the binary's.

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

pub use crate::options::duration::parse as parse_script_duration;
pub use crate::options::go_duration;
pub use crate::options::{Options, OptionsError, Overrides, SummaryMode};
pub use crate::output::samples::{CsvTime, OpenWriter, SampleFormat, SampleOutput};
pub use crate::output::series::{SeriesOutput, SeriesValue};
pub use crate::run::control::{ControlResponse, RunControl};
pub use crate::run::exit_code::ExitCode;
pub use crate::run::inspect::{InspectedScript, inspect};
pub use crate::run::invocation::{ExchangeRecording, Invocation, Outcome, Output};
pub use crate::run::once::{LINES, OnceVerdict, run_once};
pub use crate::run::plan::{RunNeeds, ScenarioNeeds};
pub use crate::run::progress::{RecentFigures, RunProgress, ScenarioStatus, TrendFigures};
pub use crate::run::run;
pub use crate::script::{LoadError, Script, ScriptText};
pub use crate::source::archive::{Archive, ArchiveError, UnpackedArchive};
pub use crate::source::recorded::script_of;
pub use crate::source::remote::{Fetch, RemoteModules};
pub use crate::summary::K6_VERSION;
pub use crate::user::secrets::Secrets;
