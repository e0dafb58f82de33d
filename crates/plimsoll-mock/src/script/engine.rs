//! A VM with the handlers of scripts.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_script::js::context::EvalOptions;
use plimsoll_script::js::function::Args;
use plimsoll_script::js::{FromJs as _, Function, Persistent, Value};
use plimsoll_script::{ErrorKind, Exports, ScriptError, Stacks, Stop, Vm};
use plimsoll_wire::SystemClock;

use super::Script;
use super::answer::Answered;
use super::host::{MockHost, functions};
use super::input::Input;
use super::load::LIMITS;

/// Computing time for the modules of a script while they are evaluated once: large bundles take some tenths of a second.
const LOADING: Duration = Duration::from_secs(2);

/// Goes around every handler: makes the request and the context of what came, and an answer of what it returns.
const PRELUDE: &str = include_str!("prelude.js");

/// Runs scripts, whose modules are loaded when they are first called.
#[derive(Debug)]
pub(super) struct Engine {
    // Goes before the VM that it lives in.
    prelude: Persistent<Function<'static>>,
    /// By the names of their modules.
    handlers: HashMap<String, Exports>,
    vm: Vm<MockHost>,
}

impl Engine {
    pub(super) fn new(stacks: &Stacks, host: &Rc<MockHost>) -> Result<Self, ScriptError> {
        let vm = Vm::new(LIMITS, Rc::new(SystemClock), stacks)?;
        let printing = Rc::clone(host);
        vm.install_console(move |level, text| printing.print(level, text))?;
        let host = Rc::clone(host);
        let prelude = vm.run(None, move |ctx| {
            let mut options = EvalOptions::default();
            options.filename = Some("plimsoll:prelude".to_owned());
            let make: Function<'_> = ctx.eval_with_options(PRELUDE, options)?;
            let prelude: Function<'_> = make.call((functions(&host, ctx)?,))?;
            Ok(Persistent::save(ctx, prelude))
        })?;
        Ok(Self {
            prelude,
            handlers: HashMap::new(),
            vm,
        })
    }

    /// The exports of a script, whose default is a function.
    pub(super) fn handler(&mut self, script: &Script) -> Result<Exports, ScriptError> {
        let name = script.program.entry();
        if let Some(exports) = self.handlers.get(name) {
            return Ok(*exports);
        }
        let loader = self.vm.loader();
        let program = script.program.clone();
        let exports = self.vm.run(Some(LOADING), move |ctx| {
            let exports = loader.load(ctx, &program)?;
            let default = loader.exported(ctx, exports, "default")?;
            if default.is_function() {
                Ok(exports)
            } else {
                Err(Stop::Kind(ErrorKind::NoFunction))
            }
        });
        let exports = exports.map_err(|error| match error.kind {
            ErrorKind::NoFunction => error.in_module(name),
            _ => error,
        })?;
        self.handlers.insert(name.to_owned(), exports);
        Ok(exports)
    }

    /// Calls the handler of a script through the prelude, and waits for its promise and everything that it has begun.
    pub(super) fn call(&mut self, script: &Script, input: Input) -> Result<Answered, ScriptError> {
        let exports = self.handler(script)?;
        let loader = self.vm.loader();
        let waiter = self.vm.waiter().clone();
        let prelude = self.prelude.clone();
        self.vm.run(Some(script.time), move |ctx| {
            let prelude = prelude.restore(ctx)?;
            let handler = loader.exported(ctx, exports, "default")?;
            let mut arguments = Args::new(ctx.clone(), 1 + Input::ARGUMENTS);
            arguments.push_arg(handler)?;
            input.push_to(ctx, &mut arguments)?;
            let answered: Value<'_> = prelude.call_arg(arguments)?;
            let answered = waiter.settle(ctx, answered)?;
            let answered = answered.ok_or(Stop::Kind(ErrorKind::Pending))?;
            Ok(Answered::from_js(ctx, answered)?)
        })
    }
}
