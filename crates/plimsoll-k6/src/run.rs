//! A run from its script to its summary.

pub(crate) mod plan;

pub(crate) mod progress;

pub(crate) mod once;

pub(crate) mod exit_code;

pub(crate) mod control;

pub(crate) mod inspect;

pub(crate) mod invocation;

mod connections;

mod consumers;

mod ticks;

mod users;

use std::cell::RefCell;
use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use plimsoll_load::scenario::{
    Claims, Executor, RecordedRun, RecordingPlan, Registry, Scenario, ScenarioRun, ScenarioTick,
    Sinks, TestProgress, Workloads, record_scenarios, run_scenarios,
};
use plimsoll_model::{Clock as _, ExchangeKind, LoadModel, LoadShape, Protocol, Rate};
use plimsoll_script::{ErrorKind, Level, ScriptError, Stacks};
use plimsoll_wire::SystemClock;
use serde_json::Value;
use tokio::task::LocalSet;

pub(crate) use self::connections::{CallTls, SecuredCalls};
use self::connections::{Plans, share};
use self::consumers::Consumers;
use self::invocation::{Invocation, Outcome, Output};
use self::ticks::{JUDGING, Ticks};
use self::users::Users;
use crate::metrics::BuiltIn;
use crate::metrics::checks::Checks;
use crate::metrics::thresholds::Thresholds;
use crate::options::{Options, Overrides, SummaryMode};
use crate::output::samples::SampleWriter;
use crate::output::series::SeriesWriter;
use crate::run::control::{Phase, RunControl, STOPPED};
use crate::run::exit_code::ExitCode;
use crate::run::plan::RunNeeds;
use crate::script::{LIMITS, User, log_error};
use crate::source::required::RequiredModules;
use crate::summary::{self, Breakdown};
use crate::user::secrets::Secrets;
use crate::user::{
    Files, Log, RequestRate, RunState, SharedArrays, Stage, SystemTags, WorkerShare,
};

/// The interval at which `setup()` checks for a signal.
const LOOK: Duration = Duration::from_millis(50);

/// The interval between samples of processes, as by `plimsoll load URL`.
const SAMPLE: Duration = Duration::from_millis(100);

/// Runs a script.
pub fn run(invocation: &Invocation<'_>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Outcome::failed(ExitCode::Other, error.to_string()),
    };
    let local = LocalSet::new();
    match Preparation::new(invocation, &runtime, &local) {
        Ok(preparation) => preparation.run(),
        Err(outcome) => *outcome,
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

/// The state of a run before its first iteration.
struct Preparation<'a> {
    invocation: &'a Invocation<'a>,
    runtime: &'a tokio::runtime::Runtime,
    local: &'a LocalSet,
    shared: Arc<RunState>,
    thresholds: Thresholds,
    plans: Plans,
    /// Of the virtual users that run setup, teardown and the summary.
    worker: WorkerShare,
    stacks: Stacks,
    /// Which of the optional functions there are.
    has: Functions,
    /// The options of the script, as it exports them.
    written: Value,
}

#[derive(Debug, Clone, Copy)]
struct Functions {
    setup: bool,
    teardown: bool,
    summary: bool,
}

type Failed = Box<Outcome>;

impl<'a> Preparation<'a> {
    fn new(
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
                system_tags: SystemTags::of(&options.system_tags),
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
                request_rate: RequestRate::new(options.network.rps, SystemClock.now()),
                options,
            })
        };
        // The first run of the script says what its options are.
        let first = state(none.clone());
        let plans = Plans::new(&none, invocation).map_err(invalid)?;
        let stacks = Stacks::new(LIMITS);
        let worker = share(&first, &plans);
        let program = &invocation.script.program;
        let user = User::new(
            program,
            &stacks,
            &first,
            &worker,
            (None, Stage::Setup),
            None,
        );
        let exception = |error: ScriptError| {
            let verdict = first.verdict.lock();
            let verdict = verdict.unwrap_or_else(PoisonError::into_inner);
            if let Some(message) = &verdict.aborted {
                let message = message.clone();
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
            (invocation.log)(Level::Warning, warning, "");
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
        let plans = Plans::new(&options, invocation).map_err(invalid)?;
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
            invocation,
            runtime,
            local,
            shared,
            thresholds,
            plans,
            worker,
            stacks,
            has,
            written: json,
        })
    }

    fn run(mut self) -> Outcome {
        if let Some(show) = self.invocation.on_plan {
            show(&RunNeeds::new(&self.shared.options));
        }
        let registry = &self.shared.registry;
        let outputs = self.invocation.samples.iter();
        let writers =
            outputs.map(|output| SampleWriter::new(output, &self.shared.options, registry));
        let writers = match writers.collect::<Result<Vec<_>, _>>() {
            Ok(writers) => writers,
            Err(message) => return Outcome::failed(ExitCode::InvalidConfig, message),
        };
        let mut series = self.invocation.series.as_ref().map(RefCell::borrow_mut);
        let series = series.as_deref_mut();
        let is_full = self.invocation.summary_mode == SummaryMode::Full;
        let mut consumers = Consumers {
            writers,
            series: series.map(|output| SeriesWriter::new(output, registry)),
            breakdown: is_full.then(|| Breakdown::new(registry, &self.shared.built_in)),
            dropped: 0,
        };
        let control = self.invocation.control.as_ref();
        if let Some(control) = control {
            control.attach(&self.shared, self.shared.options.is_paused);
            self.resumed(control);
        }
        let enter = |phase| {
            if let Some(control) = control {
                control.enter(phase);
            }
        };
        enter(Phase::Setup);
        let (data, failed) = match self.setup() {
            Ok(data) => (data, None),
            Err(exit) => (None, Some(exit)),
        };
        let data = match (control, data) {
            (Some(control), Some(data)) => {
                control.keep_setup_data(&data);
                Some(data)
            }
            (Some(control), None) if !self.has.setup => control.setup_data(),
            (_, data) => data,
        };
        enter(Phase::Running);
        let began = SystemClock.now();
        let mut recorded = None;
        let (mut total, mut error) = match failed {
            None => self.iterations(data.clone(), &mut consumers, &mut recorded),
            // Without iterations there is a summary all the same.
            Some(_) => (Sinks::new(self.shared.registry.clone()), None),
        };
        let took = match self.shared.progress.start() {
            Some(start) => SystemClock.now().saturating_duration_since(start),
            None => SystemClock.now().saturating_duration_since(began),
        };
        let verdict = self.shared.verdict.lock();
        let verdict = verdict.unwrap_or_else(PoisonError::into_inner).clone();
        let has_aborted = verdict.aborted.is_some();
        if has_aborted || self.is_stopped() {
            // A virtual user that aborts the run while it is initialised has a summary too, as any that does. So has a run that ends
            // while it is paused.
            error = None;
        }
        enter(Phase::Teardown);
        let of_users = ExitCode::of_exception(verdict.is_rejected);
        let mut exit = failed.or(error.as_ref().map(|_| of_users));
        if self.has.teardown
            && failed.is_none()
            && let Err(failed) = self.teardown(data.as_deref())
        {
            exit.get_or_insert(failed);
        }
        enter(Phase::Ended);
        total.merge(&self.worker.sinks.borrow());
        let rest = self.worker.sinks.borrow_mut().take_points();
        consumers.take(&rest, started(&self.shared));
        let (breakdown, has_failed) = consumers.finish(&self.shared.log);
        if has_failed {
            exit.get_or_insert(ExitCode::Other);
        }
        self.thresholds.judge_at_end(&total, took);
        let facts = summary::Facts {
            options: &self.shared.options,
            checks: &self.shared.checks.root(),
            sinks: &total,
            thresholds: &self.thresholds,
            took,
            has_colors: self.invocation.has_colors,
            terminals: self.invocation.terminals,
            setup_data: data.as_deref(),
        };
        let summary = summary::data(&facts);
        let is_full = !matches!(self.invocation.summary_mode, SummaryMode::Compact);
        let script = &self.invocation.script.text;
        let new_summary = self.invocation.has_new_summary.then(|| {
            summary::machine_readable(&summary, script, took, SystemClock.wall(), is_full)
        });
        let is_disabled = self.invocation.summary_mode == SummaryMode::Disabled;
        let export = (!is_disabled).then(|| match &new_summary {
            Some(new_summary) => new_summary.to_string(),
            None => summary::export(&summary).to_string(),
        });
        let breakdown = breakdown.map(|breakdown| summary::parts(&facts, &breakdown));
        let breakdown = breakdown.unwrap_or_default();
        let mut outputs = Vec::new();
        if error.is_none() && !is_disabled {
            let argument = new_summary.as_ref().unwrap_or(&summary);
            match self.outputs(argument, &summary, &breakdown) {
                Ok(made) => outputs = made,
                Err(failed) => {
                    exit.get_or_insert(failed);
                    outputs.push(self.default_summary(&summary, &breakdown));
                }
            }
        }
        let verdict = self.shared.verdict.lock();
        let verdict = verdict.unwrap_or_else(PoisonError::into_inner).clone();
        let reason = self.shared.abort.reason();
        let code = exit.unwrap_or(if let Some(message) = verdict.exhausted {
            error = Some(message);
            ExitCode::Other
        } else if let Some(message) = verdict.aborted {
            error = Some(message);
            ExitCode::ScriptAborted
        } else if reason.as_deref() == Some(STOPPED) {
            error = Some("a client of the REST API stopped the run".to_owned());
            ExitCode::StoppedByApi
        } else if reason.as_deref() == Some(SIGNAL) {
            error = Some("the run was stopped by a signal".to_owned());
            ExitCode::ExternalAbort
        } else if let Some(message) = verdict.failed {
            error = Some(format!("test failed: {message}"));
            ExitCode::MarkedAsFailed
        } else if !self.thresholds.are_met() {
            error = Some(crossed(&self.thresholds));
            ExitCode::ThresholdsFailed
        } else {
            ExitCode::Fine
        });
        Outcome {
            exit: code,
            outputs,
            export,
            data: Some(summary),
            recorded,
            message: error.unwrap_or_default(),
        }
    }

    /// Returns once a client of the REST API starts a paused run, or once the run is ended before.
    fn resumed(&self, control: &RunControl) {
        control.enter(Phase::Paused);
        let waiting = async {
            let mut looks = tokio::time::interval(LOOK);
            while control.is_paused() && !(self.invocation.is_interrupted)() && !self.is_stopped() {
                looks.tick().await;
            }
        };
        in_set(self.runtime, self.local, waiting);
    }

    /// Whether a client of the REST API has ended the run.
    fn is_stopped(&self) -> bool {
        self.shared.abort.reason().as_deref() == Some(STOPPED)
    }

    /// The result of `setup()` as JSON.
    fn setup(&self) -> Result<Option<Arc<str>>, ExitCode> {
        // A run that ends while it is paused has no data.
        if !self.has.setup || self.is_stopped() {
            return Ok(None);
        }
        let timeout = self.shared.options.setup_timeout;
        let json = self.call(Stage::Setup, "setup", Vec::new(), timeout, |ctx, value| {
            let text = ctx.json_stringify(value)?;
            text.map(|text| text.to_string()).transpose()
        });
        match json {
            Ok(json) => Ok(json.map(Arc::from)),
            Err(None) if (self.invocation.is_interrupted)() => Err(ExitCode::ExternalAbort),
            Err(None) if self.is_stopped() => Err(ExitCode::StoppedByApi),
            Err(None) => {
                (self.shared.log)(
                    Level::Error,
                    &format!("setup() took longer than {timeout:?}"),
                    "",
                );
                Err(ExitCode::SetupTimeout)
            }
            Err(Some(error)) => Err(self.exit_code_of(&error)),
        }
    }

    fn teardown(&self, data: Option<&str>) -> Result<(), ExitCode> {
        let timeout = self.shared.options.teardown_timeout;
        let arguments = data.iter().map(|data| (*data).to_owned()).collect();
        let done = self.call(Stage::Teardown, "teardown", arguments, timeout, |_, _| {
            Ok(())
        });
        match done {
            Ok(()) => Ok(()),
            Err(None) => {
                (self.shared.log)(
                    Level::Error,
                    &format!("teardown() took longer than {timeout:?}"),
                    "",
                );
                Err(ExitCode::TeardownTimeout)
            }
            Err(Some(error)) => Err(self.exit_code_of(&error)),
        }
    }

    /// Returns once a signal asks for the end.
    async fn interrupted(&self) {
        let mut looks = tokio::time::interval(LOOK);
        while !(self.invocation.is_interrupted)() && !self.is_stopped() {
            looks.tick().await;
        }
    }

    /// The exit code of a run whose `setup()` or `teardown()` ended by an error.
    fn exit_code_of(&self, error: &ScriptError) -> ExitCode {
        let verdict = self.shared.verdict.lock();
        let verdict = verdict.unwrap_or_else(PoisonError::into_inner);
        if error.kind == ErrorKind::Cancelled && verdict.aborted.is_some() {
            return ExitCode::ScriptAborted;
        }
        ExitCode::of_exception(error.is_rejection)
    }

    /// Makes a virtual user that calls nothing. An exception is logged.
    fn initialised(&self, stage: Stage) {
        let made = async {
            let user = User::new(
                &self.invocation.script.program,
                &self.stacks,
                &self.shared,
                &self.worker,
                (None, stage),
                None,
            );
            user.await.map(drop)
        };
        if let Err(error) = in_set(self.runtime, self.local, made) {
            log_error(&self.shared, &error);
        }
    }

    /// Calls a function in a virtual user made for that. An exception is logged; `None` is the error of a timeout.
    fn call<T: 'static>(
        &self,
        stage: Stage,
        name: &'static str,
        arguments: Vec<String>,
        timeout: Duration,
        take: impl for<'js> FnOnce(
            &plimsoll_script::js::Ctx<'js>,
            plimsoll_script::js::Value<'js>,
        ) -> plimsoll_script::js::Result<T>
        + 'static,
    ) -> Result<T, Option<ScriptError>> {
        let deadline = SystemClock.now() + timeout;
        let work = async {
            let program = &self.invocation.script.program;
            let user = User::new(
                program,
                &self.stacks,
                &self.shared,
                &self.worker,
                (None, stage),
                None,
            );
            let user = user.await?;
            user.set_deadline(Some(deadline));
            let result = user.call(name, arguments, take).await;
            user.state.end_iteration(None);
            result
        };
        let work = async {
            let work = tokio::time::timeout_at(deadline.into(), Box::pin(work));
            tokio::select! {
                result = work => result.map_err(|_| None)?.map_err(Some),
                // What comes after the iterations is run in spite of a signal.
                () = self.interrupted(), if stage == Stage::Setup => Err(None),
            }
        };
        let result = in_set(self.runtime, self.local, work);
        if let Err(None) = result {
            // Its virtual user is gone, and with it what it had counted.
            let mut sinks = self.worker.sinks.borrow_mut();
            let metrics = &self.shared.built_in;
            for id in [metrics.data_sent, metrics.data_received] {
                sinks.add(id, 0.0, &[], Duration::ZERO);
            }
        }
        match result {
            Err(Some(error)) if SystemClock.now() >= deadline && error.spoils() => Err(None),
            Err(Some(error)) => {
                // The script that ends its own run is reported by its words.
                if error.kind != ErrorKind::Cancelled {
                    log_error(&self.shared, &error);
                }
                Err(Some(error))
            }
            result => result,
        }
    }

    /// Runs all iterations; returns the samples, and why virtual users could not be made.
    fn iterations(
        &mut self,
        data: Option<Arc<str>>,
        consumers: &mut Consumers<'_>,
        recorded: &mut Option<Box<RecordedRun>>,
    ) -> (Sinks, Option<String>) {
        let shared = Arc::clone(&self.shared);
        let options = &shared.options;
        let scenarios = options.scenarios.iter().zip(&shared.claims);
        let scenarios: Vec<_> = scenarios
            .map(|(scenario, claims)| Scenario {
                name: scenario.name.clone(),
                claims: Arc::clone(claims),
                start_time: scenario.start_time,
                graceful_stop: scenario.graceful_stop,
            })
            .collect();
        let users = shared
            .claims
            .iter()
            .map(|claims| claims.executor().most_vus() as usize);
        let users: usize = users.sum();
        let workers = self.invocation.workers.min(users).max(1);
        let run = ScenarioRun {
            scenarios,
            workers,
            registry: shared.registry.clone(),
            progress: Arc::clone(&shared.progress),
            abort: Arc::clone(&shared.abort),
            keeps_points: !consumers.is_empty(),
            keeps_recent: self.invocation.on_progress.is_some(),
        };
        let workloads: Arc<dyn Workloads> = Arc::new(Users {
            program: self.invocation.script.program.clone(),
            shared: Arc::clone(&shared),
            plans: self.plans.clone(),
            data,
        });
        let mut ticks = Ticks {
            shared: &shared,
            sinks: Rc::clone(&self.worker.sinks),
            thresholds: &mut self.thresholds,
            dropped: vec![0; options.scenarios.len()],
            judge_at: JUDGING,
            consumers,
            on_progress: self.invocation.on_progress,
            control: self.invocation.control.as_ref(),
        };
        let is_interrupted = self.invocation.is_interrupted;
        let abort = Arc::clone(&shared.abort);
        let mut look = || {
            if is_interrupted() && !abort.is_aborted() {
                abort.abort(SIGNAL);
            }
        };
        let mut on_tick = |tick: &ScenarioTick<'_>| ticks.tick(tick);
        let result = match &self.invocation.recording {
            None => run_scenarios(&run, &workloads, &mut on_tick, &mut look),
            Some(recording) => {
                let recording = RecordingPlan {
                    load: load_shape(options, users, workers),
                    target: recording.target,
                    facts: recording.facts.clone(),
                    sample_every: SAMPLE,
                };
                let made = record_scenarios(&run, &workloads, &mut on_tick, &mut look, recording);
                made.map(|(sinks, made)| {
                    *recorded = made.map(|made| Box::new(with_model(made)));
                    sinks
                })
            }
        };
        match result {
            Ok(total) => (total, None),
            Err(message) => (Sinks::new(shared.registry.clone()), Some(message)),
        }
    }

    /// The outputs of `handleSummary()`, or the text.
    ///
    /// - `parts`: the summary by groups and scenarios, if it is shown.
    /// - `argument`: of `handleSummary()`.
    fn outputs(
        &self,
        argument: &Value,
        summary: &Value,
        parts: &Value,
    ) -> Result<Vec<Output>, ExitCode> {
        if !self.has.summary {
            // Its module code runs all the same.
            self.initialised(Stage::Summary);
            return Ok(vec![self.default_summary(summary, parts)]);
        }
        let timeout = self.shared.options.summary_timeout;
        let arguments = vec![argument.to_string()];
        let outputs = self.call(
            Stage::Summary,
            "handleSummary",
            arguments,
            timeout,
            |ctx, value| {
                if value.is_undefined() || value.is_null() {
                    return Ok(None);
                }
                let Some(object) = value.as_object() else {
                    let message =
                        "handleSummary() must return an object of file names and contents";
                    return Err(plimsoll_script::js::Exception::throw_type(ctx, message));
                };
                let mut outputs = Vec::new();
                for entry in object.props::<String, plimsoll_script::js::Value<'_>>() {
                    let (name, content) = entry?;
                    let Some(content) = crate::protocol::http::bytes_of(&content) else {
                        let message = format!(
                            "handleSummary() must return a string or an ArrayBuffer for {name}"
                        );
                        return Err(plimsoll_script::js::Exception::throw_type(ctx, &message));
                    };
                    let content = content.to_vec();
                    outputs.push(match name.as_str() {
                        "stdout" => Output::Stdout(content),
                        "stderr" => Output::Stderr(content),
                        path => Output::File(PathBuf::from(path), content),
                    });
                }
                Ok(Some(outputs))
            },
        );
        match outputs {
            Ok(Some(outputs)) => Ok(outputs),
            // k6 goes on with nothing then.
            Err(Some(error)) if error.is_rejection => Ok(Vec::new()),
            // k6 logs an exception and goes on with its own text.
            Ok(None) | Err(Some(_)) => Ok(vec![self.default_summary(summary, parts)]),
            Err(None) => {
                let text = format!("handleSummary() took longer than {timeout:?}");
                (self.shared.log)(Level::Error, &text, "");
                Err(ExitCode::GenericTimeout)
            }
        }
    }

    fn default_summary(&self, summary: &Value, parts: &Value) -> Output {
        let judged = summary::judged(&self.thresholds);
        let has_colors = self.invocation.has_colors;
        let text = match self.invocation.summary_mode {
            SummaryMode::Disabled => None,
            SummaryMode::Compact => Some(summary::text_of(summary, &judged, has_colors, "  ")),
            SummaryMode::Full => {
                let text = summary::full_text_of(summary, &judged, parts, has_colors, "  ");
                Some(text)
            }
            SummaryMode::Legacy => {
                let look = summary::LegacyLook::of_data(summary, has_colors);
                Some(summary::legacy_text_of(summary, &look))
            }
        };
        let text = text.map_or_else(String::new, |text| format!("\n\n{text}\n\n"));
        Output::Stdout(text.into_bytes())
    }
}

/// The load as result files describe it.
fn load_shape(options: &Options, users: usize, workers: usize) -> LoadShape {
    let scenarios = options.scenarios.iter();
    // The others end with their iterations, long before their limit.
    let ends = scenarios.map(|scenario| match scenario.executor {
        Executor::SharedIterations(_) | Executor::PerVuIterations(_) => None,
        _ => Some(scenario.start_time + scenario.executor.end()),
    });
    let ends = ends.collect::<Option<Vec<_>>>();
    LoadShape {
        url: String::new(),
        urls: 0,
        method: String::new(),
        expectations: Vec::new(),
        fail_status: Some("not expected by the script".to_owned()),
        model: LoadModel::Closed,
        protocol: Protocol::Http1,
        connections: users,
        exchanges: ExchangeKind::Request,
        streams: 1,
        udp_payload: None,
        workers,
        duration: ends.and_then(|ends| ends.into_iter().max()),
        requests: None,
        warm_up: Duration::ZERO,
    }
}

/// Adds the arrival rate of requests if iterations have a schedule: the rate at which they began or were dropped. The
/// script decides how many an iteration makes; one that was dropped counts as one request.
fn with_model(mut recorded: RecordedRun) -> RecordedRun {
    let summary = &mut recorded.summary;
    if summary.latency.from_intended.is_some() && !summary.window.is_zero() {
        let per_second = summary.counts.intended() as f64 / summary.window.as_secs_f64();
        if let Some(rate) = Rate::new(per_second) {
            summary.load.model = LoadModel::Open { rate };
        }
    }
    recorded
}

/// When the run started, on the clock of the wall.
fn started(shared: &RunState) -> std::time::SystemTime {
    let passed = shared.progress.elapsed(SystemClock.now());
    let now = SystemClock.wall();
    now.checked_sub(passed).unwrap_or(now)
}

/// Why a run is aborted.
const SIGNAL: &str = "signal";
const THRESHOLDS: &str = "thresholds";

/// Runs a future that may need tasks of its thread.
fn in_set<F: Future>(runtime: &tokio::runtime::Runtime, local: &LocalSet, future: F) -> F::Output {
    runtime.block_on(local.run_until(Box::pin(future)))
}

fn crossed(thresholds: &Thresholds) -> String {
    let crossed = thresholds.judged.iter().filter(|judged| {
        let mut thresholds = judged.thresholds.iter();
        thresholds.any(|threshold| !threshold.is_met)
    });
    let names: Vec<_> = crossed.map(|judged| judged.metric.as_str()).collect();
    format!(
        "thresholds on metrics '{}' have been crossed",
        names.join(", ")
    )
}
