//! A runtime of QuickJS with its modules.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use rquickjs::context::EvalOptions;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::promise::PromiseState;
use rquickjs::{
    CaughtError, Coerced, Context, Ctx, Error, Exception, Function, Module, Persistent, Value,
};

use crate::error::{ErrorKind, OWN, ScriptError, place_of};
use crate::host::{Host, Level};
use crate::limits::Limits;
use crate::modules::{Sources, as_script};

/// Modules, and functions of theirs to be called. Stays on the thread that it was made on.
pub struct Runtime {
    // Values go before what they live in.
    handlers: RefCell<Vec<Persistent<Function<'static>>>>,
    prelude: RefCell<Option<Persistent<Function<'static>>>>,
    context: Context,
    sources: Rc<dyn Sources>,
    host: Rc<dyn Host>,
    watch: Rc<Watch>,
    limits: Limits,
}

/// A function of a runtime, to be called there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handler(usize);

/// When what runs has to end.
struct Watch {
    clock: Rc<dyn Clock>,
    deadline: Cell<Option<Instant>>,
}

impl Watch {
    fn is_over(&self) -> bool {
        self.deadline
            .get()
            .is_some_and(|deadline| self.clock.now() >= deadline)
    }
}

/// Why something has ended without an answer.
enum Stop {
    /// By an exception, or by the engine.
    Failed(Error),
    OutOfTime,
    Pending,
    NoFunction,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Runtime {
    /// A runtime without modules, with `console`.
    ///
    /// Fails if there is not enough memory.
    pub fn new(
        limits: Limits,
        clock: Rc<dyn Clock>,
        sources: Rc<dyn Sources>,
        host: Rc<dyn Host>,
    ) -> Result<Self, ScriptError> {
        let failed = |error: Error| ScriptError::of(ErrorKind::Engine(error.to_string()));
        let runtime = rquickjs::Runtime::new().map_err(failed)?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(limits.stack);
        let watch = Rc::new(Watch {
            clock,
            deadline: Cell::new(None),
        });
        let looking = Rc::clone(&watch);
        runtime.set_interrupt_handler(Some(Box::new(move || looking.is_over())));
        runtime.set_loader(Finding(Rc::clone(&sources)), Finding(Rc::clone(&sources)));
        let context = Context::full(&runtime).map_err(failed)?;
        let made = Self {
            handlers: RefCell::default(),
            prelude: RefCell::default(),
            context,
            sources,
            host,
            watch,
            limits,
        };
        made.console()?;
        Ok(made)
    }

    fn console(&self) -> Result<(), ScriptError> {
        let host = Rc::clone(&self.host);
        self.run(Duration::MAX, |ctx| {
            let install: Function<'_> =
                ctx.eval_with_options(include_str!("console.js"), own("console"))?;
            let say = move |level: String, text: String| host.say(Level::named(&level), &text);
            install.call::<_, ()>((Function::new(ctx.clone(), say)?,))?;
            Ok(())
        })
    }

    /// Has every call go through a function: the value of `text`, called with `ask`, must be a function that takes the
    /// handler and the input. `ask(name, ...arguments)` is answered by the host.
    pub fn prelude(&self, text: &str) -> Result<(), ScriptError> {
        let host = Rc::clone(&self.host);
        let made = self.run(Duration::MAX, |ctx| {
            let make: Function<'_> = ctx.eval_with_options(text, own("prelude"))?;
            let ask = move |ctx: Ctx<'_>, name: String, arguments: String| {
                host.ask(&name, &arguments)
                    .map_err(|message| Exception::throw_message(&ctx, &message))
            };
            let ask = Function::new(ctx.clone(), ask)?;
            let around: Function<'_> = ctx.eval_with_options(
                "(ask) => (name, ...values) => JSON.parse(ask(name, JSON.stringify(values)))",
                own("ask"),
            )?;
            let ask: Function<'_> = around.call((ask,))?;
            let function: Function<'_> = make.call((ask,))?;
            Ok(Persistent::save(ctx, function))
        })?;
        *self.prelude.borrow_mut() = Some(made);
        Ok(())
    }

    /// Loads a module with all that it imports, runs them once, and answers its default export, which must be a
    /// function.
    ///
    /// - `time`: that this may take.
    pub fn load(&self, name: &str, time: Duration) -> Result<Handler, ScriptError> {
        let text = self.sources.text(name);
        let text = text.and_then(|text| as_script(name, &text));
        let text = text.map_err(|message| ScriptError::of(ErrorKind::Thrown(message)))?;
        let function = self.run(time, |ctx| {
            let module = Module::declare(ctx.clone(), name, text)?;
            let (module, promise) = module.eval()?;
            self.settled(ctx, promise.into_value())?;
            let default: Value<'_> = module.get("default")?;
            let function = default.into_function().ok_or(Stop::NoFunction)?;
            Ok(Persistent::save(ctx, function))
        });
        let function = function.map_err(|error| match error.kind {
            ErrorKind::NoFunction => ScriptError {
                place: Some(crate::error::Place {
                    file: name.to_owned(),
                    line: 1,
                    column: 1,
                }),
                ..error
            },
            _ => error,
        })?;
        let mut handlers = self.handlers.borrow_mut();
        handlers.push(function);
        Ok(Handler(handlers.len() - 1))
    }

    /// Calls a function through the prelude, if there is one, and awaits its answer and everything else that it has
    /// begun.
    ///
    /// - `input`: JSON.
    /// - `time`: that this may take.
    ///
    /// The answer is JSON; absent for `undefined` and what JSON has no words for.
    pub fn call(
        &self,
        handler: Handler,
        input: &str,
        time: Duration,
    ) -> Result<Option<String>, ScriptError> {
        let function = self.handlers.borrow()[handler.0].clone();
        let prelude = self.prelude.borrow().clone();
        self.run(time, |ctx| {
            let function = function.restore(ctx)?;
            let input = ctx.json_parse(input)?;
            let answer: Value<'_> = match prelude {
                Some(prelude) => prelude.restore(ctx)?.call((function, input))?,
                None => function.call((input,))?,
            };
            let answer = self.settled(ctx, answer)?;
            match ctx.json_stringify(answer)? {
                Some(text) => Ok(Some(text.to_string()?)),
                None => Ok(None),
            }
        })
    }

    /// Runs what is to be done until there is nothing left, and answers what a promise has come to.
    fn settled<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<Value<'js>, Stop> {
        loop {
            if self.watch.is_over() {
                return Err(Stop::OutOfTime);
            }
            if !ctx.execute_pending_job() {
                break;
            }
        }
        let Some(promise) = value.as_promise() else {
            return Ok(value);
        };
        match promise.state() {
            PromiseState::Pending => Err(Stop::Pending),
            PromiseState::Resolved | PromiseState::Rejected => {
                Ok(promise.result().ok_or(Stop::Pending)??)
            }
        }
    }

    /// Does something that has to end in time.
    fn run<T>(
        &self,
        time: Duration,
        work: impl for<'js> FnOnce(&Ctx<'js>) -> Result<T, Stop>,
    ) -> Result<T, ScriptError> {
        let now = self.watch.clock.now();
        self.watch.deadline.set(now.checked_add(time));
        let done = self.context.with(|ctx| {
            work(&ctx).map_err(|stop| match stop {
                _ if self.watch.is_over() => {
                    // The exception that says so is of no further use.
                    ctx.catch();
                    ScriptError::of(ErrorKind::Time(time))
                }
                Stop::OutOfTime => ScriptError::of(ErrorKind::Time(time)),
                Stop::Pending => ScriptError::of(ErrorKind::Pending),
                Stop::NoFunction => ScriptError::of(ErrorKind::NoFunction),
                Stop::Failed(error) => self.told(CaughtError::from_error(&ctx, error), time),
            })
        });
        self.watch.deadline.set(None);
        done
    }

    /// What was thrown, as text. Looking at it may run a script, which has to end in time too.
    fn told(&self, caught: CaughtError<'_>, time: Duration) -> ScriptError {
        let exception = match caught {
            CaughtError::Error(error) => {
                return ScriptError::of(ErrorKind::Engine(error.to_string()));
            }
            CaughtError::Value(value) => {
                let shown = value.ctx().json_stringify(value.clone());
                let shown = shown.ok().flatten().and_then(|it| it.to_string().ok());
                if self.watch.is_over() {
                    return ScriptError::of(ErrorKind::Time(time));
                }
                let shown = shown.unwrap_or_else(|| "something".to_owned());
                return ScriptError::of(ErrorKind::Thrown(format!("{shown} was thrown")));
            }
            CaughtError::Exception(exception) => exception,
        };
        let name: Option<Coerced<String>> = exception.as_object().get("name").ok();
        let message = exception.message().unwrap_or_default();
        let place = exception.stack().as_deref().and_then(place_of);
        if self.watch.is_over() {
            return ScriptError::of(ErrorKind::Time(time));
        }
        let kind = match name.map(|name| name.0) {
            Some(name) if name == "InternalError" && message == "out of memory" => {
                ErrorKind::Memory(self.limits.memory)
            }
            Some(name) => ErrorKind::Thrown(format!("{name}: {message}")),
            None => ErrorKind::Thrown(message),
        };
        ScriptError { kind, place }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("handlers", &self.handlers.borrow().len())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// How a text of the program's own is evaluated.
fn own(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some(format!("{OWN}{name}"));
    options
}

/// Sources as the engine asks them.
struct Finding(Rc<dyn Sources>);

impl Resolver for Finding {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        self.0
            .resolve(base, name)
            .map_err(|message| Exception::throw_message(ctx, &format!("{base}: {message}")))
    }
}

impl Loader for Finding {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let text = self.0.text(name).and_then(|text| as_script(name, &text));
        let text = text.map_err(|message| Exception::throw_message(ctx, &message))?;
        Module::declare(ctx.clone(), name, text)
    }
}

#[cfg(test)]
mod tests;
