//! One QuickJS runtime with one global scope.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_model::Clock;
use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Exception, Module, Object, Persistent, Runtime, Value, qjs};

use crate::console::{self, Level};
use crate::error::{ErrorKind, OWN, ScriptError, SourceLocation, Stop};
use crate::event_loop::{CallId, required};
use crate::fiber::{Fiber, Host, Resume, Step, Waiter};
use crate::globals::{AddedGlobals, Globals};
use crate::limits::Limits;
use crate::program::Program;
use crate::stack::Stacks;
use crate::timed_memory::TimedMemory;

/// A runtime that loads programs and runs one fiber at a time. Stays on its thread.
///
/// While a fiber is suspended, nothing else may run in the VM.
pub struct Vm<H: Host> {
    core: Rc<Core<H>>,
}

/// The parts of the standard library that every VM has.
type Always = (
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Promise,
);

/// The exports of a loaded program; belong to its VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exports(usize);

struct Core<H: Host> {
    // Values go before the context that they live in.
    namespaces: RefCell<Vec<Persistent<Object<'static>>>>,
    context: Context,
    globals: AddedGlobals,
    programs: Rc<RefCell<Vec<Program>>>,
    waiter: Waiter<H>,
    stacks: Stacks,
    limits: Limits,
}

impl<H: Host> Drop for Core<H> {
    fn drop(&mut self) {
        self.waiter.0.event_loop.clear();
    }
}

impl<H: Host> Vm<H> {
    /// A VM without modules.
    ///
    /// - `stacks`: of limits that are no smaller.
    ///
    /// Fails if there is not enough memory.
    pub fn new(limits: Limits, clock: Rc<dyn Clock>, stacks: &Stacks) -> Result<Self, ScriptError> {
        Self::with_globals(limits, clock, stacks, Globals::ALL)
    }

    /// A VM that adds typed arrays, dates, maps, proxies and weak references once a program names them.
    ///
    /// Native functions that make array buffers call [`ProgramLoader::need_buffers`] before.
    pub fn lean(
        limits: Limits,
        clock: Rc<dyn Clock>,
        stacks: &Stacks,
    ) -> Result<Self, ScriptError> {
        Self::with_globals(limits, clock, stacks, Globals::default())
    }

    fn with_globals(
        limits: Limits,
        clock: Rc<dyn Clock>,
        stacks: &Stacks,
        globals: Globals,
    ) -> Result<Self, ScriptError> {
        let failed =
            |error: rquickjs::Error| ScriptError::new(ErrorKind::Engine(error.to_string()));
        let waiter = Waiter::new(clock);
        let watching = waiter.clone();
        let memory = TimedMemory::new(stacks.memory(), move || watching.must_end().is_some());
        let runtime = Runtime::new_with_alloc(memory).map_err(failed)?;
        runtime.set_memory_limit(limits.memory);
        // The stack of a fiber is the limit, whatever is configured.
        let most = stacks.bytes().saturating_sub(Limits::HEADROOM);
        runtime.set_max_stack_size(limits.stack.min(most));
        let looking = waiter.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || looking.must_end().is_some())));
        let tracking = waiter.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, is_handled| {
                let event_loop = &tracking.0.event_loop;
                event_loop.track(&ctx, promise, reason, is_handled);
            },
        )));
        let programs = Rc::default();
        let finder = Finder(Rc::clone(&programs));
        runtime.set_loader(finder.clone(), finder);
        let context = Context::custom::<Always>(&runtime).map_err(failed)?;
        let added = AddedGlobals::new(Globals::default());
        context.with(|ctx| added.add(&ctx, globals));
        Ok(Self {
            core: Rc::new(Core {
                namespaces: RefCell::default(),
                context,
                globals: added,
                programs,
                waiter,
                stacks: stacks.clone(),
                limits,
            }),
        })
    }

    /// Lets native functions wait.
    pub fn waiter(&self) -> &Waiter<H> {
        &self.core.waiter
    }

    /// Prepares work that may wait.
    ///
    /// - `budget`: the longest that it may compute; waiting does not count.
    ///
    /// Fails if there is no stack for it.
    pub fn spawn<T: 'static>(
        &self,
        budget: Option<Duration>,
        work: impl for<'js> FnOnce(&Ctx<'js>) -> Result<T, Stop> + 'static,
    ) -> Result<Fiber<H, T>, ScriptError> {
        // Timers, calls and rejections of work that ended early are not those of the next one.
        self.core.waiter.0.event_loop.clear();
        let core = Rc::clone(&self.core);
        Fiber::new(&self.core.waiter, &self.core.stacks, budget, move || {
            core.context.with(|ctx| {
                // SAFETY: the runtime is that of the context. Its stack limit is that of the thread's stack until now;
                // from here on it counts from the top of this coroutine's stack, on which alone scripts run.
                unsafe { qjs::JS_UpdateStackTop(qjs::JS_GetRuntime(ctx.as_raw().as_ptr())) };
                work(&ctx).map_err(|stop| core.explain(&ctx, stop))
            })
        })
    }

    /// Does work that does not wait.
    ///
    /// Fails as the work does, and with [`ErrorKind::Pending`] if it waits after all.
    pub fn run<T: 'static>(
        &self,
        budget: Option<Duration>,
        work: impl for<'js> FnOnce(&Ctx<'js>) -> Result<T, Stop> + 'static,
    ) -> Result<T, ScriptError> {
        let mut fiber = self.spawn(budget, work)?;
        match fiber.resume(Resume::Continue) {
            Step::Done(result) => result,
            Step::Call(_) | Step::Idle { .. } => Err(ScriptError::new(ErrorKind::Pending)),
        }
    }

    /// Sets the global `console`, whose lines go to `print`.
    pub fn install_console(
        &self,
        print: impl Fn(Level, &str) + 'static,
    ) -> Result<(), ScriptError> {
        self.run(None, move |ctx| Ok(console::install(ctx, print)?))
    }

    /// Runs the modules of a program once. Belongs into the work of a fiber: modules may wait and await.
    pub fn load(&self, ctx: &Ctx<'_>, program: &Program) -> Result<Exports, Stop> {
        self.loader().load(ctx, program)
    }

    /// Loads programs from within the work of a fiber, which cannot hold its VM.
    pub fn loader(&self) -> ProgramLoader<H> {
        ProgramLoader {
            core: Rc::downgrade(&self.core),
        }
    }

    /// The next call that was started beside the script, for the driver to perform.
    pub fn take_started(&self) -> Option<(CallId, H::Call)> {
        self.core.waiter.0.event_loop.take_started()
    }

    /// Hands in a reply to a started call; the script gets it with the next [`Resume::Continue`] of [`Step::Idle`].
    pub fn complete(&self, id: CallId, reply: H::Reply) {
        self.core.waiter.0.event_loop.complete(id, reply);
    }

    /// Bytes that the engine has allocated.
    ///
    /// Panics while a fiber is suspended.
    pub fn memory(&self) -> usize {
        let usage = self.core.context.runtime().memory_usage();
        usage.malloc_size.try_into().unwrap_or_default()
    }
}

impl<H: Host> fmt::Debug for Vm<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vm")
            .field("programs", &self.core.programs.borrow().len())
            .field("limits", &self.core.limits)
            .finish_non_exhaustive()
    }
}

/// Loads programs and finds what they export, from within the work of a fiber.
pub struct ProgramLoader<H: Host> {
    core: std::rc::Weak<Core<H>>,
}

impl<H: Host> Clone for ProgramLoader<H> {
    fn clone(&self) -> Self {
        Self {
            core: std::rc::Weak::clone(&self.core),
        }
    }
}

impl<H: Host> ProgramLoader<H> {
    /// Runs the modules of a program once.
    pub fn load(&self, ctx: &Ctx<'_>, program: &Program) -> Result<Exports, Stop> {
        let core = self.core()?;
        core.globals.add(ctx, program.globals());
        core.programs.borrow_mut().push(program.clone());
        let module = program.declare(ctx, program.entry());
        let module = module.expect("a program has its first module")?;
        let (module, promise) = module.eval()?;
        let settled = core.waiter.settle(ctx, promise.clone().into_value());
        let settled = settled.map_err(|stop| match stop {
            // An exception of a module reaches its importer at once.
            Stop::Rejected(error) if matches!(promise.state(), PromiseState::Rejected) => {
                Stop::Failed(error)
            }
            stop => stop,
        });
        required(settled?)?;
        Ok(core.keep(ctx, module.namespace()?))
    }

    /// Runs the modules of a program while a script runs, such as a library at its first use.
    ///
    /// Fails with [`ErrorKind::Pending`] if a module awaits.
    pub fn load_at_once(&self, ctx: &Ctx<'_>, program: &Program) -> Result<Exports, Stop> {
        let core = self.core()?;
        core.globals.add(ctx, program.globals());
        core.programs.borrow_mut().push(program.clone());
        let module = program.declare(ctx, program.entry());
        let (module, promise) = module.expect("a program has its first module")?.eval()?;
        match promise.result::<Value<'_>>() {
            Some(result) => drop(result?),
            None => return Err(Stop::Kind(ErrorKind::Pending)),
        }
        Ok(core.keep(ctx, module.namespace()?))
    }

    /// The names of a program's first module, which runs unless the VM has it already, be it a module of another program.
    ///
    /// Fails with [`ErrorKind::Pending`] if a module awaits.
    pub fn import_at_once<'js>(
        &self,
        ctx: &Ctx<'js>,
        program: &Program,
    ) -> Result<Object<'js>, Stop> {
        let core = self.core()?;
        core.globals.add(ctx, program.globals());
        let entry = program.entry();
        let is_known = |known: &Program| known.entry() == entry;
        if !core.programs.borrow().iter().any(is_known) {
            core.programs.borrow_mut().push(program.clone());
        }
        let quoted = serde_json::Value::from(entry);
        let source = format!("export * as all from {quoted};");
        let importer = format!("{IMPORTER}{entry}");
        let event_loop = &core.waiter.0.event_loop;
        let before = event_loop.rejected();
        let (importer, promise) = Module::declare(ctx.clone(), importer, source)?.eval()?;
        match promise.result::<Value<'_>>() {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                // It is the error of this call, which the promises of the modules have too.
                event_loop.forget_rejections(before);
                return Err(Stop::Failed(error));
            }
            None => return Err(Stop::Kind(ErrorKind::Pending)),
        }
        Ok(importer.namespace()?.get("all")?)
    }

    /// The value that a program exports under a name; `undefined` if it exports none.
    pub fn exported<'js>(
        &self,
        ctx: &Ctx<'js>,
        exports: Exports,
        name: &str,
    ) -> Result<Value<'js>, Stop> {
        let core = self.core()?;
        let namespace = core.namespaces.borrow()[exports.0].clone();
        Ok(namespace.restore(ctx)?.get(name)?)
    }

    /// Adds array buffers and typed arrays to a lean VM; native functions that make some call it before.
    pub fn need_buffers(&self, ctx: &Ctx<'_>) {
        if let Some(core) = self.core.upgrade() {
            core.globals.add(ctx, Globals::BUFFERS);
        }
    }

    fn core(&self) -> Result<Rc<Core<H>>, Stop> {
        let core = self.core.upgrade();
        core.ok_or_else(|| Stop::Kind(ErrorKind::Engine("the VM is gone".to_owned())))
    }
}

impl<H: Host> fmt::Debug for ProgramLoader<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramLoader")
    }
}

impl<H: Host> Core<H> {
    fn keep<'js>(&self, ctx: &Ctx<'js>, namespace: Object<'js>) -> Exports {
        let mut namespaces = self.namespaces.borrow_mut();
        namespaces.push(Persistent::save(ctx, namespace));
        Exports(namespaces.len() - 1)
    }

    /// Why work ended early. Reading an exception may run script, which has to end in time too.
    fn explain(&self, ctx: &Ctx<'_>, stop: Stop) -> ScriptError {
        if let Some(kind) = self.waiter.must_end() {
            // The exception that says so is of no further use.
            ctx.catch();
            return ScriptError::new(kind);
        }
        let error = match stop {
            Stop::Kind(kind) => ScriptError::new(kind),
            Stop::Failed(error) => ScriptError::caught(ctx, error, self.limits.memory),
            Stop::Rejected(error) => ScriptError {
                is_rejection: true,
                ..ScriptError::caught(ctx, error, self.limits.memory)
            },
        };
        match self.waiter.must_end() {
            Some(kind) => ScriptError::new(kind),
            None => error,
        }
    }
}

impl ScriptError {
    /// The same about the first line of a module.
    #[must_use]
    pub fn in_module(self, name: &str) -> Self {
        Self {
            location: Some(SourceLocation {
                file: name.to_owned(),
                line: 1,
                column: 1,
            }),
            ..self
        }
    }
}

/// Reads the bytes of an array buffer; `None` if it is detached.
pub fn read_buffer<T>(
    buffer: &rquickjs::ArrayBuffer<'_>,
    read: impl FnOnce(&[u8]) -> T,
) -> Option<T> {
    // `read` has no context, so no script runs that could change or detach the buffer meanwhile.
    buffer.as_bytes().map(read)
}

/// Evaluation options of a text of plimsoll's own.
pub(crate) fn own(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some(format!("{OWN}{name}"));
    options
}

/// Before the names of modules that import one module each, by its name.
const IMPORTER: &str = "plimsoll:importer of ";

/// The modules of loaded programs; those of later ones come first.
#[derive(Clone)]
struct Finder(Rc<RefCell<Vec<Program>>>);

impl Resolver for Finder {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        if base.starts_with(IMPORTER) {
            return Ok(name.to_owned());
        }
        let programs = self.0.borrow();
        let mut programs = programs.iter().rev();
        let found = programs.find_map(|program| program.resolve(base, name));
        found.map(str::to_owned).ok_or_else(|| {
            let message = format!("`{name}` was not imported when {base} was loaded");
            Exception::throw_message(ctx, &message)
        })
    }
}

impl Loader for Finder {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let programs = self.0.borrow();
        let mut programs = programs.iter().rev();
        let module = programs.find_map(|program| program.declare(ctx, name));
        module.unwrap_or_else(|| {
            let message = format!("there is no module {name}");
            Err(Exception::throw_message(ctx, &message))
        })
    }
}
