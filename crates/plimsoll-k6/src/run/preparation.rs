//! What a run needs before its first virtual user: the options of the script, thresholds, connections.

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

use plimsoll_load::scenario::{Claims, Registry, Sinks, TestProgress};
use plimsoll_model::Clock as _;
use plimsoll_script::{Level, ScriptError, Stacks};
use plimsoll_wire::SystemClock;
use serde_json::Value;
use tokio::task::LocalSet;

use super::connections::{Plans, share};
use super::in_set;
use super::invocation::{Invocation, Outcome};
use super::stages::{Functions, StageCalls};
use crate::line_source::LineSource;
use crate::metrics::BuiltIn;
use crate::metrics::checks::Checks;
use crate::metrics::thresholds::Thresholds;
use crate::options::{Options, Overrides, SummaryMode};
use crate::run::exit_code::ExitCode;
use crate::script::{User, log_error};
use crate::source::LIMITS;
use crate::source::required::RequiredModules;
use crate::user::secrets::Secrets;
use crate::user::{
    Files, Log, RequestRate, RunState, SharedArrays, Stage, SystemTags, WorkerShare,
};

/// The state of a run before its first iteration.
pub(super) struct Preparation<'a> {
    pub(super) calls: StageCalls<'a>,
    pub(super) thresholds: Thresholds,
    pub(super) plans: Plans,
    /// The options of the script, as it exports them.
    pub(super) written: Value,
}

type Failed = Box<Outcome>;

fn invalid(text: &impl ToString) -> Failed {
    Box::new(Outcome::failed(ExitCode::InvalidConfig, text.to_string()))
}

impl<'a> Preparation<'a> {
    /// Runs the script once.
    ///
    /// Fails with the outcome of the run, which has no iterations then.
    pub(super) fn new(
        invocation: &'a Invocation<'a>,
        runtime: &'a tokio::runtime::Runtime,
        local: &'a LocalSet,
    ) -> Result<Self, Failed> {
        let common = CommonState::new(invocation)?;
        let stacks = Stacks::new(LIMITS);
        let loaded = LoadedScript::new(&common, &stacks, runtime, local)?;
        let written = loaded.written_options(invocation)?;
        let options = compile_options(invocation, &written)?;
        log_warnings(invocation, &options);
        loaded.find_scenario_functions(&options)?;
        let has = loaded.find_functions(&options)?;
        drop(loaded);
        let thresholds = common.compile_thresholds(&options)?;
        let plans = Plans::new(&options, invocation).map_err(|error| invalid(&error))?;
        let shared = common.run_state(options);
        let worker = share_of_stages(invocation, &shared, &plans);
        Ok(Self {
            calls: StageCalls {
                invocation,
                runtime,
                local,
                shared,
                worker,
                stacks,
                has,
            },
            thresholds,
            plans,
            written,
        })
    }
}

/// What a run has with any options.
struct CommonState<'a> {
    invocation: &'a Invocation<'a>,
    registry: Registry,
    built_in: BuiltIn,
    arrays: Arc<SharedArrays>,
    files: Arc<Files>,
    required: Arc<RequiredModules>,
}

impl<'a> CommonState<'a> {
    fn new(invocation: &'a Invocation<'a>) -> Result<Self, Failed> {
        let registry = if invocation.exact_trends {
            Registry::exact()
        } else {
            Registry::default()
        };
        let built_in = BuiltIn::register(&registry).map_err(|error| invalid(&error))?;
        let script = &invocation.script;
        let files = Files::new(script.directory.clone(), script.root.clone());
        Ok(Self {
            invocation,
            registry,
            built_in,
            arrays: Arc::default(),
            files: Arc::new(files),
            required: Arc::new(RequiredModules::new(Arc::clone(&script.sources))),
        })
    }

    /// The state of a run by these options.
    fn run_state(&self, options: Options) -> Arc<RunState> {
        let invocation = self.invocation;
        let scenarios = options.scenarios.iter();
        let claims = scenarios.map(|scenario| {
            let executor = scenario.executor.clone();
            Arc::new(match &options.segment {
                Some(segment) => Claims::in_segment(executor, segment.clone()),
                None => Claims::new(executor),
            })
        });
        Arc::new(RunState {
            registry: self.registry.clone(),
            built_in: self.built_in,
            system_tags: SystemTags::from_names(&options.system_tags),
            checks: Checks::default(),
            shared_arrays: Arc::clone(&self.arrays),
            environment: invocation.environment.clone(),
            files: Arc::clone(&self.files),
            script: invocation.script.program.entry().to_owned(),
            required: Arc::clone(&self.required),
            log: redacting(&invocation.log, &invocation.secrets),
            secrets: invocation.secrets.clone(),
            abort: Arc::default(),
            progress: Arc::new(TestProgress::new(options.scenarios.len())),
            claims: claims.collect(),
            verdict: std::sync::Mutex::default(),
            start: SystemClock.now(),
            began: OnceLock::new(),
            setup_data: OnceLock::new(),
            request_rate: RequestRate::new(
                lower_rate(options.network.rps, invocation.most_requests_per_second),
                SystemClock.now(),
            ),
            options,
        })
    }

    /// The thresholds, with the sub-metrics that they and the summary need.
    fn compile_thresholds(&self, options: &Options) -> Result<Thresholds, Failed> {
        let servers = self.invocation.servers.names();
        let thresholds =
            Thresholds::compile(&options.thresholds, &self.registry, servers.as_deref());
        let thresholds = thresholds.map_err(|errors| invalid(&errors.join("\n")))?;
        self.registry.sub_metric(
            self.built_in.http_req_duration,
            "http_req_duration{expected_response:true}",
            vec![("expected_response".to_owned(), "true".to_owned())],
        );
        Ok(thresholds)
    }
}

/// The log without values of secrets.
fn redacting(log: &Log, secrets: &Secrets) -> Log {
    if secrets.is_empty() {
        return Arc::clone(log);
    }
    let (log, secrets) = (Arc::clone(log), secrets.clone());
    Arc::new(move |level, text, source| log(level, &secrets.redact(text), source))
}

/// The script, run for the first time, by the default options: its own are known then.
struct LoadedScript {
    user: User,
    state: Arc<RunState>,
}

impl LoadedScript {
    fn new(
        common: &CommonState<'_>,
        stacks: &Stacks,
        runtime: &tokio::runtime::Runtime,
        local: &LocalSet,
    ) -> Result<Self, Failed> {
        let invocation = common.invocation;
        let options = Options::compile(&Value::Null, &Overrides::default())
            .map_err(|error| invalid(&error))?;
        let plans = Plans::new(&options, invocation).map_err(|error| invalid(&error))?;
        let state = common.run_state(options);
        let worker = share(&state, &plans);
        let program = &invocation.script.program;
        let user = User::new(program, stacks, &state, &worker, (None, Stage::Setup));
        match in_set(runtime, local, user) {
            Ok(user) => Ok(Self { user, state }),
            Err(error) => Err(failed_by_exception(&state, &error)),
        }
    }

    /// The options of the script as it exports them, or as its archive has them.
    fn written_options(&self, invocation: &Invocation<'_>) -> Result<Value, Failed> {
        let json = self.user.exported_json("options");
        let json = json.map_err(|error| failed_by_exception(&self.state, &error))?;
        let json = json.map_or(Value::Null, |text| {
            serde_json::from_str(&text).unwrap_or_default()
        });
        Ok(invocation.script.options.clone().unwrap_or(json))
    }

    fn has_function(&self, name: &str) -> Result<bool, Failed> {
        let found = self.user.has_function(name);
        found.map_err(|error| failed_by_exception(&self.state, &error))
    }

    /// Fails with every scenario whose function the script does not export.
    fn find_scenario_functions(&self, options: &Options) -> Result<(), Failed> {
        let mut missing = Vec::new();
        for scenario in &options.scenarios {
            if !self.has_function(&scenario.exec)? {
                missing.push(format!(
                    "the script exports no function `{}`, which scenario `{}` runs",
                    scenario.exec, scenario.name
                ));
            }
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(invalid(&missing.join("\n")))
        }
    }

    /// The functions that are called once.
    fn find_functions(&self, options: &Options) -> Result<Functions, Failed> {
        Ok(Functions {
            setup: options.has_setup && self.has_function("setup")?,
            teardown: options.has_teardown && self.has_function("teardown")?,
            summary: self.has_function("handleSummary")?,
        })
    }
}

/// The outcome of a script that throws before its run, or that ends it by `test.abort()`.
fn failed_by_exception(state: &RunState, error: &ScriptError) -> Failed {
    if let Some(message) = state.verdict().aborted {
        return Box::new(Outcome::failed(ExitCode::ScriptAborted, message));
    }
    log_error(state, error);
    let code = ExitCode::of_exception(error.is_rejection);
    Box::new(Outcome::failed(code, String::new()))
}

/// - `written`: by the script.
fn compile_options(invocation: &Invocation<'_>, written: &Value) -> Result<Options, Failed> {
    let options =
        Options::compile(written, &invocation.overrides).map_err(|error| invalid(&error))?;
    if options.is_paused && invocation.control.is_none() {
        let message =
            "options.paused needs `--address`: a client of the REST API starts a paused run";
        return Err(invalid(&message));
    }
    Ok(options)
}

fn log_warnings(invocation: &Invocation<'_>, options: &Options) {
    let warnings = invocation.script.sources.warnings();
    for warning in warnings.iter().chain(&options.warnings) {
        (invocation.log)(Level::Warning, warning, LineSource::Run);
    }
}

/// What the virtual users of setup, teardown and the summary share. Samples are kept where an output or the full summary has
/// them.
fn share_of_stages(
    invocation: &Invocation<'_>,
    shared: &Arc<RunState>,
    plans: &Plans,
) -> WorkerShare {
    let worker = share(shared, plans);
    let keeps_samples = !invocation.samples.is_empty()
        || invocation.series.is_some()
        || invocation.summary_mode == SummaryMode::Full;
    if keeps_samples {
        let sinks = Sinks::new(shared.registry.clone()).with_points();
        worker.sinks.replace(sinks);
    }
    worker
}

/// The lower of two limits on requests per second.
///
/// - `rps`: the option of the script, 0 for none.
fn lower_rate(rps: u32, most: Option<NonZeroU32>) -> u32 {
    let most = most.map(NonZeroU32::get);
    let limits = [NonZeroU32::new(rps).map(NonZeroU32::get), most];
    limits.into_iter().flatten().min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_cannot_raise_the_rate_that_it_is_given() {
        for (rps, most, rate) in [(0, 0, 0), (5, 0, 5), (0, 7, 7), (5, 7, 5), (9, 7, 7)] {
            assert_eq!(lower_rate(rps, NonZeroU32::new(most)), rate, "{rps} {most}");
        }
    }
}
