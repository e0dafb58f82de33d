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
use crate::user::{Files, Log, RequestRate, RunState, SharedArrays, Stage, SystemTags};

/// The state of a run before its first iteration.
pub(super) struct Preparation<'a> {
    pub(super) calls: StageCalls<'a>,
    pub(super) thresholds: Thresholds,
    pub(super) plans: Plans,
    /// The options of the script, as it exports them.
    pub(super) written: Value,
}

type Failed = Box<Outcome>;

/// The log without values of secrets.
fn redacting(log: &Log, secrets: &Secrets) -> Log {
    if secrets.is_empty() {
        return Arc::clone(log);
    }
    let (log, secrets) = (Arc::clone(log), secrets.clone());
    Arc::new(move |level, text, source| log(level, &secrets.redact(text), source))
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
        let invalid = |text: String| Box::new(Outcome::failed(ExitCode::InvalidConfig, text));
        let registry = if invocation.exact_trends {
            Registry::exact()
        } else {
            Registry::default()
        };
        let built_in = BuiltIn::register(&registry).map_err(|error| invalid(error.to_string()))?;
        let arrays = Arc::new(SharedArrays::default());
        let files = Arc::new(Files::new(
            invocation.script.directory.clone(),
            invocation.script.root.clone(),
        ));
        let required = RequiredModules::new(Arc::clone(&invocation.script.sources));
        let required = Arc::new(required);
        let none = Options::compile(&Value::Null, &Overrides::default());
        let none = none.map_err(|error| invalid(error.to_string()))?;
        let state = |options: Options| {
            let scenarios = options.scenarios.iter();
            let claims = scenarios.map(|scenario| {
                let executor = scenario.executor.clone();
                Arc::new(match &options.segment {
                    Some(segment) => Claims::in_segment(executor, segment.clone()),
                    None => Claims::new(executor),
                })
            });
            Arc::new(RunState {
                registry: registry.clone(),
                built_in,
                system_tags: SystemTags::from_names(&options.system_tags),
                checks: Checks::default(),
                shared_arrays: Arc::clone(&arrays),
                environment: invocation.environment.clone(),
                files: Arc::clone(&files),
                script: invocation.script.program.entry().to_owned(),
                required: Arc::clone(&required),
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
        };
        // The options are known once the script has run for the first time.
        let first = state(none.clone());
        let plans = Plans::new(&none, invocation).map_err(|error| invalid(error.to_string()))?;
        let stacks = Stacks::new(LIMITS);
        let worker = share(&first, &plans);
        let program = &invocation.script.program;
        let user = User::new(program, &stacks, &first, &worker, (None, Stage::Setup));
        let exception = |error: ScriptError| {
            if let Some(message) = first.verdict().aborted {
                return Box::new(Outcome::failed(ExitCode::ScriptAborted, message));
            }
            log_error(&first, &error);
            let code = ExitCode::of_exception(error.is_rejection);
            Box::new(Outcome::failed(code, String::new()))
        };
        let user = in_set(runtime, local, user).map_err(exception)?;
        let json = user.exported_json("options").map_err(exception)?;
        let json = json.map_or(Value::Null, |text| {
            serde_json::from_str(&text).unwrap_or_default()
        });
        let json = invocation.script.options.clone().unwrap_or(json);
        let options = Options::compile(&json, &invocation.overrides);
        let options = options.map_err(|error| invalid(error.to_string()))?;
        if options.is_paused && invocation.control.is_none() {
            let message =
                "options.paused needs `--address`: a client of the REST API starts a paused run";
            return Err(invalid(message.to_owned()));
        }
        let warnings = invocation.script.sources.warnings();
        for warning in warnings.iter().chain(&options.warnings) {
            (invocation.log)(Level::Warning, warning, LineSource::Run);
        }
        let mut missing = Vec::new();
        for scenario in &options.scenarios {
            if !user.has_function(&scenario.exec).map_err(exception)? {
                missing.push(format!(
                    "the script exports no function `{}`, which scenario `{}` runs",
                    scenario.exec, scenario.name
                ));
            }
        }
        if !missing.is_empty() {
            return Err(invalid(missing.join("\n")));
        }
        let has = Functions {
            setup: options.has_setup && user.has_function("setup").map_err(exception)?,
            teardown: options.has_teardown && user.has_function("teardown").map_err(exception)?,
            summary: user.has_function("handleSummary").map_err(exception)?,
        };
        drop(user);
        let thresholds = Thresholds::compile(&options.thresholds, &registry);
        let thresholds = thresholds.map_err(|errors| invalid(errors.join("\n")))?;
        registry.sub_metric(
            built_in.http_req_duration,
            "http_req_duration{expected_response:true}",
            vec![("expected_response".to_owned(), "true".to_owned())],
        );
        let plans = Plans::new(&options, invocation);
        let plans = plans.map_err(|error| invalid(error.to_string()))?;
        let shared = state(options);
        let worker = share(&shared, &plans);
        let keeps_samples = !invocation.samples.is_empty()
            || invocation.series.is_some()
            || invocation.summary_mode == SummaryMode::Full;
        if keeps_samples {
            let sinks = Sinks::new(registry.clone()).with_points();
            worker.sinks.replace(sinks);
        }
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
            written: json,
        })
    }
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
