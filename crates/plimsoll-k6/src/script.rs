//! A script: compiled, with what its first run says; and virtual users that run it.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_load::scenario::{Iteration, IterationEnd, LocalFuture, UserId, Workload};
use plimsoll_model::Clock as _;
use plimsoll_script::js::function::Rest;
use plimsoll_script::js::{self, Ctx, Function, Value};
use plimsoll_script::{
    ErrorKind, Exports, Level, Program, ProgramLoader, ScriptError, Stacks, Stop, Vm,
};
use plimsoll_wire::SystemClock;

use crate::line_source::LineSource;
use crate::modules::{Natives, install};
use crate::source::archive::UnpackedArchive;
use crate::source::commonjs::EXPORTS;
use crate::source::remote::RemoteModules;
use crate::source::root::FileRoot;
use crate::source::{LIMITS, ScriptSources};
use crate::user::drive::drive;
use crate::user::{RunState, Stage, UserState, WorkerShare};

/// The text of a script.
#[derive(Debug, Clone)]
pub enum ScriptText {
    /// In a file.
    File(PathBuf),
    /// Read from standard input already; imports and files are relative to the directory.
    Given {
        /// The text.
        text: String,
        /// Absolute.
        directory: PathBuf,
    },
    /// Of an archive.
    Archived(Box<UnpackedArchive>),
}

/// Why a script cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// There is no such file.
    #[error("cannot read {path}: {message}")]
    File {
        /// The path as it was given.
        path: String,
        /// The system's message.
        message: String,
    },
    /// It is not valid, or a module of it cannot be found.
    #[error("{0}")]
    Script(#[from] ScriptError),
}

/// A compiled script.
#[derive(Debug, Clone)]
pub struct Script {
    pub(crate) program: Program,
    /// As it was written.
    pub(crate) text: Arc<str>,
    /// The folder that `open()` is relative to.
    pub(crate) directory: PathBuf,
    /// Where absolute paths begin.
    pub(crate) root: FileRoot,
    /// Options in place of those that the script exports: an archive has them as they were consolidated.
    pub(crate) options: Option<serde_json::Value>,
    /// The name of its main module.
    pub(crate) name: String,
    /// Its modules: also those that it requires while it runs.
    pub(crate) sources: Arc<ScriptSources>,
}

impl Script {
    /// Compiles a script with everything that it imports. Nothing is run, and nothing is fetched.
    pub fn load(text: &ScriptText) -> Result<Self, LoadError> {
        Self::load_with(text, None)
    }

    /// The same, with modules of other servers.
    pub fn load_with(text: &ScriptText, remote: Option<RemoteModules>) -> Result<Self, LoadError> {
        let mut root = FileRoot::default();
        let mut options = None;
        let (name, directory, given) = match text {
            ScriptText::File(path) => {
                let failed = |message: String| LoadError::File {
                    path: path.display().to_string(),
                    message,
                };
                let found = path
                    .canonicalize()
                    .map_err(|error| failed(error.to_string()))?;
                let directory = found.parent().unwrap_or(Path::new("/")).to_owned();
                let name = found
                    .to_str()
                    .ok_or_else(|| failed("its name is not UTF-8".to_owned()))?;
                (name.to_owned(), directory, None)
            }
            ScriptText::Given { text, directory } => {
                let name = directory.join("-").to_string_lossy().into_owned();
                let given = Some((name.clone(), Arc::from(text.as_str())));
                (name, directory.clone(), given)
            }
            ScriptText::Archived(archive) => {
                root = FileRoot::of_archive(archive.root.clone());
                options = Some(serde_json::Value::Object(archive.options.clone()));
                let file = archive.script.as_ref();
                let file = file.map(|path| path.to_string_lossy().into_owned());
                let given = match &file {
                    Some(_) => None,
                    None => Some((archive.main.clone(), Arc::from(archive.text.as_str()))),
                };
                let name = file.unwrap_or_else(|| archive.main.clone());
                (name, archive.directory.clone(), given)
            }
        };
        let sources = Arc::new(ScriptSources::new(given, remote, root.clone()));
        let program = Program::compile(Rc::new(Arc::clone(&sources)), &name, LIMITS)?;
        let text = match text {
            // It has just been read, so it is there and not too long.
            ScriptText::File(_) => std::fs::read_to_string(&name).unwrap_or_default().into(),
            ScriptText::Given { text, .. } => Arc::from(text.as_str()),
            ScriptText::Archived(archive) => Arc::from(archive.text.as_str()),
        };
        Ok(Self {
            program,
            text,
            directory,
            root,
            options,
            name,
            sources,
        })
    }
}

/// A virtual user with its VM.
pub(crate) struct User {
    pub(crate) state: Rc<UserState>,
    vm: Vm<UserState>,
    loader: ProgramLoader<UserState>,
    exports: Exports,
    /// When the iteration under way is interrupted.
    deadline: Rc<Cell<Option<Instant>>>,
    /// Before its first iteration.
    is_new: bool,
}

impl User {
    /// Runs the initialisation of the script.
    pub(crate) async fn new(
        program: &Program,
        stacks: &Stacks,
        shared: &Arc<RunState>,
        worker: &WorkerShare,
        (id, role): (Option<UserId>, Stage),
    ) -> Result<Self, ScriptError> {
        let vm = Vm::lean(LIMITS, Rc::new(SystemClock), stacks)?;
        let state = UserState::new(shared, worker, id, role);
        let natives = Natives {
            user: Rc::clone(&state),
            waiter: vm.waiter().clone(),
            loader: vm.loader(),
        };
        vm.run(None, move |ctx| install(ctx, &natives))?;
        let deadline: Rc<Cell<Option<Instant>>> = Rc::default();
        let looked_at = Rc::clone(&deadline);
        let abort = Arc::clone(&shared.abort);
        let is_iterating = role == Stage::Iteration;
        vm.waiter().end_when(move |now| {
            looked_at.get().is_some_and(|deadline| now >= deadline)
                || (is_iterating && abort.is_aborted())
        });
        let loader = vm.loader();
        let program = program.clone();
        let loading = loader.clone();
        let fiber = vm.spawn(None, move |ctx| loading.load(ctx, &program))?;
        let exports = drive(&vm, &state, fiber).await?;
        state.stage.set(role);
        Ok(Self {
            state,
            vm,
            loader,
            exports,
            deadline,
            is_new: true,
        })
    }

    /// An exported value: that of a module, or of `module.exports`.
    fn exported<'js>(
        loader: &ProgramLoader<UserState>,
        ctx: &Ctx<'js>,
        exports: Exports,
        name: &str,
    ) -> Result<Value<'js>, Stop> {
        let value = loader.exported(ctx, exports, name)?;
        if !value.is_undefined() {
            return Ok(value);
        }
        match loader.exported(ctx, exports, EXPORTS)?.as_object() {
            Some(exports) => Ok(exports.get(name)?),
            None => Ok(value),
        }
    }

    /// True if the script exports a function of that name.
    pub(crate) fn has_function(&self, name: &str) -> Result<bool, ScriptError> {
        let (loader, exports, name) = (self.loader.clone(), self.exports, name.to_owned());
        self.vm.run(None, move |ctx| {
            let value = Self::exported(&loader, ctx, exports, &name)?;
            Ok(value.is_function())
        })
    }

    /// An exported value as JSON; `None` if there is none.
    pub(crate) fn exported_json(&self, name: &str) -> Result<Option<String>, ScriptError> {
        let (loader, exports, name) = (self.loader.clone(), self.exports, name.to_owned());
        self.vm.run(None, move |ctx| {
            let value = Self::exported(&loader, ctx, exports, &name)?;
            let text = ctx.json_stringify(value)?;
            Ok(text.map(|text| text.to_string()).transpose()?)
        })
    }

    /// Calls an exported function and waits for everything that it has begun.
    ///
    /// - `arguments`: JSON.
    /// - `take`: makes something of the result and of the arguments, which the function may have changed.
    pub(crate) async fn call<T: 'static>(
        &self,
        name: &str,
        arguments: Vec<String>,
        take: impl for<'js> FnOnce(&Ctx<'js>, Value<'js>, &[Value<'js>]) -> js::Result<T> + 'static,
    ) -> Result<T, ScriptError> {
        let (loader, exports, name) = (self.loader.clone(), self.exports, name.to_owned());
        let waiter = self.vm.waiter().clone();
        let fiber = self.vm.spawn(None, move |ctx| {
            let function: Function<'_> = Self::exported(&loader, ctx, exports, &name)?.get()?;
            let arguments = arguments.into_iter().map(|json| ctx.json_parse(json));
            let arguments: Vec<Value<'_>> = arguments.collect::<js::Result<_>>()?;
            let value: Value<'_> = function.call((Rest(arguments.clone()),))?;
            let value = waiter.settle(ctx, value)?;
            let value = value.ok_or(Stop::Kind(ErrorKind::Pending))?;
            Ok(take(ctx, value, &arguments)?)
        })?;
        drive(&self.vm, &self.state, fiber).await
    }

    /// Interrupts what it does at that time.
    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) {
        self.deadline.set(deadline);
    }

    async fn iteration(&mut self, iteration: Iteration) -> IterationEnd {
        let state = Rc::clone(&self.state);
        state.begin_iteration(iteration.in_scenario, iteration.of_user);
        self.deadline.set(Some(iteration.deadline));
        let began = SystemClock.now();
        let late = began.saturating_duration_since(iteration.intended);
        state.lateness.set(late);
        let under_way = UnderWay(Some(Rc::clone(&state)));
        let result = self.run_once(iteration.of_user).await;
        self.deadline.set(None);
        let mut end = IterationEnd::Complete;
        if let Err(error) = result {
            if error.kind == ErrorKind::Cancelled {
                let took = SystemClock.now().saturating_duration_since(began);
                under_way.end(state.has_aborted.get().then_some(took));
                return IterationEnd::Broken;
            }
            if let ErrorKind::Stack(_) = error.kind {
                // It did not start. Otherwise every user would retry immediately and count an iteration each time.
                under_way.end(None);
                end_exhausted(&state.shared, &error);
                return IterationEnd::Broken;
            }
            log_error(&state.shared, &error);
            if error.spoils() {
                end = IterationEnd::Broken;
            }
        }
        let took = SystemClock.now().saturating_duration_since(began);
        under_way.end(Some(took));
        if let Some(rest) = state.shared.options.min_iteration.checked_sub(took)
            && !rest.is_zero()
        {
            tokio::time::sleep(rest).await;
        }
        end
    }

    async fn run_once(&mut self, number: u64) -> Result<(), ScriptError> {
        let scenario = self.state.id.map_or(0, |id| id.scenario);
        let name = self.state.shared.options.scenarios[scenario].exec.clone();
        let (loader, exports) = (self.loader.clone(), self.exports);
        let waiter = self.vm.waiter().clone();
        // What `setup()` returned is parsed once. A virtual user is made before it, or later.
        let data = std::mem::take(&mut self.is_new)
            .then(|| self.state.shared.setup_data.get().cloned())
            .flatten();
        let fiber = self.vm.spawn(None, move |ctx| {
            let globals = ctx.globals();
            globals.set("__ITER", number as f64)?;
            if let Some(data) = data {
                globals.set(DATA, ctx.json_parse(&*data)?)?;
            }
            let data: Value<'_> = globals.get(DATA)?;
            let function: Function<'_> = Self::exported(&loader, ctx, exports, &name)?.get()?;
            let value: Value<'_> = function.call((data,))?;
            waiter.settle(ctx, value)?;
            Ok(())
        })?;
        drive(&self.vm, &self.state, fiber).await
    }
}

/// An iteration that has begun. One that is interrupted counts what it has sent and received.
struct UnderWay(Option<Rc<UserState>>);

impl UnderWay {
    fn end(mut self, took: Option<Duration>) {
        if let Some(state) = self.0.take() {
            state.end_iteration(took);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(state) = self.0.take() {
            state.end_iteration(None);
        }
    }
}

/// The global that has the result of `setup()`; no script writes such a name.
const DATA: &str = "plimsoll data of setup()";

impl Workload for User {
    fn iterate(&mut self, iteration: Iteration) -> LocalFuture<'_, IterationEnd> {
        Box::pin(self.iteration(iteration))
    }
}

/// Ends the run for lack of memory.
fn end_exhausted(shared: &RunState, error: &ScriptError) {
    let message = error.kind.to_string();
    shared.abort.abort(message.clone());
    let verdict = shared.verdict.lock();
    let mut verdict = verdict.unwrap_or_else(PoisonError::into_inner);
    verdict.exhausted.get_or_insert(message);
}

/// Prints an exception as k6 does: with its stack.
pub(crate) fn log_error(shared: &RunState, error: &ScriptError) {
    let mut text = error.kind.to_string();
    if error.is_rejection {
        text.insert_str(0, "Uncaught (in promise) ");
    }
    for line in error.stack.lines() {
        text.push_str("\n\t");
        text.push_str(line);
    }
    (shared.log)(Level::Error, &text, LineSource::StackTrace);
}
