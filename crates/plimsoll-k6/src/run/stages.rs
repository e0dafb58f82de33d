//! The functions of a script that are no iterations: `setup()`, `teardown()` and `handleSummary()`, each in a virtual user of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_model::Clock as _;
use plimsoll_script::{ErrorKind, Level, ScriptError, Stacks};
use plimsoll_wire::SystemClock;
use tokio::task::LocalSet;

use super::in_set;
use super::invocation::Invocation;
use crate::line_source::LineSource;
use crate::run::control::{Phase, RunControl, STOPPED};
use crate::run::exit_code::ExitCode;
use crate::script::{User, log_error};
use crate::user::{RunState, Stage, WorkerShare};

/// The interval at which `setup()` checks for a signal.
const LOOK: Duration = Duration::from_millis(50);

/// Calls these functions.
pub(super) struct StageCalls<'a> {
    pub(super) invocation: &'a Invocation<'a>,
    pub(super) runtime: &'a tokio::runtime::Runtime,
    pub(super) local: &'a LocalSet,
    pub(super) shared: Arc<RunState>,
    /// Of their virtual users.
    pub(super) worker: WorkerShare,
    pub(super) stacks: Stacks,
    pub(super) has: Functions,
}

/// Which of them there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Functions {
    pub(super) setup: bool,
    pub(super) teardown: bool,
    pub(super) summary: bool,
}

impl StageCalls<'_> {
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
    pub(super) fn is_stopped(&self) -> bool {
        self.shared.abort.reason().as_deref() == Some(STOPPED)
    }

    /// Calls `setup()`, whose result virtual users get, once a client of the REST API has started a paused run; `None` if the run ended
    /// before that.
    pub(super) fn prepare(&self) -> Option<Result<(), ExitCode>> {
        let control = self.invocation.control.as_ref();
        if let Some(control) = control {
            self.resumed(control);
            if self.is_stopped() || (self.invocation.is_interrupted)() {
                return None;
            }
            control.enter(Phase::Setup);
        }
        let began = SystemClock.now();
        // The run begins once.
        self.shared.began.set(began).ok();
        let data = if self.has.setup {
            let data = self.setup();
            self.count_users(SystemClock.now().saturating_duration_since(began));
            match data {
                Ok(data) => data,
                Err(exit) => return Some(Err(exit)),
            }
        } else {
            control.and_then(RunControl::setup_data)
        };
        if let Some(data) = data {
            if let Some(control) = control {
                control.keep_setup_data(&data);
            }
            // It is called once.
            self.shared.setup_data.set(data).ok();
        }
        if let Some(control) = control {
            control.enter(Phase::Running);
        }
        Some(Ok(()))
    }

    /// The run begins with the result of a `setup()` that another process has called.
    pub(super) fn take_over(&self, data: Option<String>, began: Instant) {
        self.shared.began.set(began).ok();
        if let Some(data) = data {
            self.shared.setup_data.set(Arc::from(data)).ok();
        }
    }

    /// Adds the gauges of virtual users for each second that `setup()` took: they exist and wait.
    fn count_users(&self, took: Duration) {
        let metrics = &self.shared.built_in;
        let initialised = self.shared.progress.initialised() as f64;
        let mut sinks = self.worker.sinks.borrow_mut();
        for _ in 0..took.as_secs() {
            sinks.add(metrics.vus, 0.0, &[], Duration::ZERO);
            sinks.add(metrics.vus_max, initialised, &[], Duration::ZERO);
        }
    }

    /// The result of `setup()` as JSON.
    fn setup(&self) -> Result<Option<Arc<str>>, ExitCode> {
        let timeout = self.shared.options.setup_timeout;
        let json = self.call(
            Stage::Setup,
            "setup",
            Vec::new(),
            timeout,
            |ctx, value, _| {
                let text = ctx.json_stringify(value)?;
                text.map(|text| text.to_string()).transpose()
            },
        );
        match json {
            Ok(json) => Ok(json.map(Arc::from)),
            Err(None) if (self.invocation.is_interrupted)() => Err(ExitCode::ExternalAbort),
            Err(None) if self.is_stopped() => Err(ExitCode::StoppedByApi),
            Err(None) => {
                self.log_timeout("setup", timeout);
                Err(ExitCode::SetupTimeout)
            }
            Err(Some(error)) => Err(self.exit_code_of(&error)),
        }
    }

    fn log_timeout(&self, name: &str, timeout: Duration) {
        let text = format!("{name}() took longer than {timeout:?}");
        (self.shared.log)(Level::Error, &text, LineSource::Run);
    }

    /// Calls `teardown()`, if the script has it.
    pub(super) fn teardown(&self) -> Result<(), ExitCode> {
        if !self.has.teardown {
            return Ok(());
        }
        let timeout = self.shared.options.teardown_timeout;
        let data = self.shared.setup_data.get();
        let arguments = data.into_iter().map(ToString::to_string).collect();
        let done = self.call(
            Stage::Teardown,
            "teardown",
            arguments,
            timeout,
            |_, _, _| Ok(()),
        );
        match done {
            Ok(()) => Ok(()),
            Err(None) => {
                self.log_timeout("teardown", timeout);
                Err(ExitCode::TeardownTimeout)
            }
            Err(Some(error)) => Err(self.exit_code_of(&error)),
        }
    }

    /// Returns once a signal is to end it.
    async fn interrupted(&self) {
        let mut looks = tokio::time::interval(LOOK);
        while !(self.invocation.is_interrupted)() && !self.is_stopped() {
            looks.tick().await;
        }
    }

    /// The exit code of a run whose `setup()` or `teardown()` ended by an error.
    fn exit_code_of(&self, error: &ScriptError) -> ExitCode {
        if error.kind == ErrorKind::Cancelled && self.shared.verdict().aborted.is_some() {
            return ExitCode::ScriptAborted;
        }
        ExitCode::of_exception(error.is_rejection)
    }

    /// Makes a virtual user that calls nothing. An exception is logged.
    pub(super) fn initialised(&self, stage: Stage) {
        let made = async {
            let user = User::new(
                &self.invocation.script.program,
                &self.stacks,
                &self.shared,
                &self.worker,
                (None, stage),
            );
            user.await.map(drop)
        };
        if let Err(error) = in_set(self.runtime, self.local, made) {
            log_error(&self.shared, &error);
        }
    }

    /// Calls a function in a virtual user made for that. An exception is logged; `None` is the error of a timeout.
    pub(super) fn call<T: 'static>(
        &self,
        stage: Stage,
        name: &'static str,
        arguments: Vec<String>,
        timeout: Duration,
        take: impl for<'js> FnOnce(
            &plimsoll_script::js::Ctx<'js>,
            plimsoll_script::js::Value<'js>,
            &[plimsoll_script::js::Value<'js>],
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
}
