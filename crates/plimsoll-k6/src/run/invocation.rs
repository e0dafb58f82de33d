//! What a run is started with, and what it comes to.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;

use plimsoll_client::forward::Speaks;
use plimsoll_client::{AddressFilter, ProxyRules};
use plimsoll_load::PartReport;
use plimsoll_load::conditions::RunFacts;
use plimsoll_load::scenario::RecordedRun;
use plimsoll_observe::{NamedTarget, Target};
use serde_json::Value;

use super::control::RunControl;
use super::exit_code::ExitCode;
use super::parts::{ScriptPart, ScriptParts};
use super::plan::RunNeeds;
use super::progress::RunProgress;
use crate::metrics::servers::RunServers;
use crate::options::{Overrides, SummaryMode};
use crate::output::samples::SampleOutput;
use crate::output::series::SeriesOutput;
use crate::script::Script;
use crate::user::Log;
use crate::user::secrets::Secrets;

/// The run as the command line describes it.
pub struct Invocation<'a> {
    /// The script.
    pub script: Script,
    /// Options in place of the script's.
    pub overrides: Overrides,
    /// The variables of `__ENV`.
    pub environment: Vec<(String, String)>,
    /// The detail of the summary.
    pub summary_mode: SummaryMode,
    /// True if `handleSummary()` and [`Outcome::export`] have the format of `--new-machine-readable-summary`.
    pub has_new_summary: bool,
    /// True if the summary is coloured.
    pub has_colors: bool,
    /// For standard output and standard error: true if it is a terminal.
    pub terminals: (bool, bool),
    /// True if trends keep every value, for exact percentiles.
    pub exact_trends: bool,
    /// Worker threads at most.
    pub workers: usize,
    /// The proxies.
    pub proxies: ProxyRules,
    /// Which addresses may be connected to, besides what the script itself blocks; absent for all.
    pub address_filter: Option<AddressFilter>,
    /// Requests per second at most, besides the script's own `rps`; absent for no limit.
    pub most_requests_per_second: Option<NonZeroU32>,
    /// Secrets of TLS sessions are appended to this file.
    pub key_log: Option<PathBuf>,
    /// The version of HTTP that requests of `k6/http` are sent over; WebSockets and gRPC have their own.
    pub speaks: Speaks,
    /// The secrets of `k6/secrets`; log lines do not show the values.
    pub secrets: Secrets,
    /// Gets lines of the script and messages: the level, the text, and where it comes from, or nothing.
    pub log: Log,
    /// The outputs of single samples.
    pub samples: Vec<SampleOutput>,
    /// The output of series for databases.
    pub series: Option<RefCell<SeriesOutput>>,
    /// The record for result files; none if absent.
    pub recording: Option<ExchangeRecording<'a>>,
    /// Servers that are observed meanwhile, for thresholds on what they spend.
    pub servers: RunServers<'a>,
    /// Gets what the run needs at most, once its options are known and before its virtual users are made. An error ends the run.
    pub on_plan: Option<&'a OnPlan<'a>>,
    /// Gets how far the run is, once a second.
    pub on_progress: Option<&'a dyn Fn(&RunProgress)>,
    /// Answers requests of the REST API; without it no run can be paused.
    pub control: Option<RunControl>,
    /// Makes a part of the run only; another process has the rest, and calls `setup()`, `teardown()` and `handleSummary()`.
    pub part: Option<ScriptPart<'a>>,
    /// Has other processes make the iterations.
    pub parts: Option<&'a dyn ScriptParts>,
    /// True if a signal has come that ends the run.
    pub is_interrupted: &'a dyn Fn() -> bool,
}

/// Gets what a run needs at most, and may refuse it.
pub type OnPlan<'a> = dyn Fn(&RunNeeds) -> Result<(), Box<dyn Error>> + 'a;

impl<'a> Invocation<'a> {
    /// A run on one worker thread by the options of the script alone, with the compact summary and no other output.
    pub fn new(script: Script, log: Log, is_interrupted: &'a dyn Fn() -> bool) -> Self {
        Self {
            script,
            overrides: Overrides::default(),
            environment: Vec::new(),
            summary_mode: SummaryMode::Compact,
            has_new_summary: false,
            has_colors: false,
            terminals: (false, false),
            exact_trends: false,
            workers: 1,
            proxies: ProxyRules::none(),
            address_filter: None,
            most_requests_per_second: None,
            key_log: None,
            speaks: Speaks::Negotiated,
            secrets: Secrets::default(),
            log,
            samples: Vec::new(),
            series: None,
            recording: None,
            servers: RunServers::None,
            on_plan: None,
            on_progress: None,
            control: None,
            part: None,
            parts: None,
            is_interrupted,
        }
    }
}

impl fmt::Debug for Invocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation")
            .field("script", &self.script)
            .field("overrides", &self.overrides)
            .finish_non_exhaustive()
    }
}

/// Settings of the record of a run.
#[derive(Debug, Clone)]
pub struct ExchangeRecording<'a> {
    /// The processes that answer, if they are on this machine.
    pub target: Option<&'a dyn Target>,
    /// Servers that are observed by name; without `target` the first one is the target of the run.
    pub observed: &'a [NamedTarget],
    /// Facts that the caller supplies.
    pub facts: RunFacts,
}

/// Something to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// To standard output.
    Stdout(Vec<u8>),
    /// To standard error.
    Stderr(Vec<u8>),
    /// To a file.
    File(PathBuf, Vec<u8>),
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code of the process.
    pub exit: ExitCode,
    /// To be written, in this order.
    pub outputs: Vec<Output>,
    /// The summary in the shape of `--summary-export`, as JSON; `None` if there was no run, or if it is disabled.
    pub export: Option<String>,
    /// The summary in the shape that `handleSummary()` has by default, as JSON; `None` if there was no run.
    pub data: Option<Value>,
    /// Figures for result files, if there was a record.
    pub recorded: Option<Box<RecordedRun>>,
    /// What readers of the metrics should know, if there was no record: its summary has it.
    pub cautions: Vec<String>,
    /// What a part has to say to the process that merges the parts, beside its ticks; `None` if it made no iterations.
    pub report: Option<Box<PartReport>>,
    /// Errors for the user; empty if there are none.
    pub message: String,
}

impl Outcome {
    pub(super) fn failed(exit: ExitCode, message: impl Into<String>) -> Self {
        Self {
            exit,
            outputs: Vec::new(),
            export: None,
            data: None,
            recorded: None,
            cautions: Vec::new(),
            report: None,
            message: message.into(),
        }
    }
}
