//! Programs, VMs and fibers in virtual time.

mod fibers;

mod lazy_objects;

mod limits;

mod loading;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use plimsoll_model::Clock;
use rquickjs::{Ctx, Exception, Function, Value};

use crate::{Folder, Host, Level, Limits, Program, ScriptError, Stacks, Stop, Vm};

/// A clock that a test sets, and that passes by itself each time that it is read.
pub(crate) struct TestClock {
    start: Instant,
    passed: Cell<Duration>,
    per_look: Cell<Duration>,
}

impl TestClock {
    #[expect(clippy::disallowed_methods, reason = "it is where the clock begins")]
    fn new(per_look: Duration) -> Rc<Self> {
        Rc::new(Self {
            start: Instant::now(),
            passed: Cell::default(),
            per_look: Cell::new(per_look),
        })
    }

    fn advance(&self, by: Duration) {
        self.passed.set(self.passed.get() + by);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Instant {
        self.advance(self.per_look.get());
        self.start + self.passed.get()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Calls and replies are texts.
#[derive(Debug)]
pub(crate) struct TextHost;

impl Host for TextHost {
    type Call = String;
    type Reply = String;
}

pub(crate) const TIME: Duration = Duration::from_secs(1);

pub(crate) const LIMITS: Limits = Limits {
    memory: 8 << 20,
    stack: 256 << 10,
};

/// A VM on a clock that passes a millisecond each time that it is read.
pub(crate) fn vm() -> Vm<TextHost> {
    vm_on(TestClock::new(Duration::from_millis(1)))
}

pub(crate) fn vm_on(clock: Rc<TestClock>) -> Vm<TextHost> {
    let vm = Vm::new(LIMITS, clock, &Stacks::new(LIMITS)).unwrap();
    let waiter = vm.waiter().clone();
    vm.run(None, move |ctx| {
        let blocking = waiter.clone();
        let wait = move |ctx: Ctx<'_>, call: String| {
            let reply: String = blocking.wait(&ctx, call)?;
            match reply.strip_prefix("error: ") {
                Some(message) => Err(Exception::throw_message(&ctx, message)),
                None => Ok::<_, rquickjs::Error>(reply),
            }
        };
        ctx.globals()
            .set("wait", Function::new(ctx.clone(), wait)?)?;
        let starting = waiter.clone();
        let start = returning_promise(move |ctx, call| {
            starting.start_promise(ctx, call, |ctx, reply: String| {
                match reply.strip_prefix("error: ") {
                    Some(message) => Err(Exception::throw_message(ctx, message)),
                    None => rquickjs::IntoJs::into_js(reply, ctx),
                }
            })
        });
        ctx.globals()
            .set("start", Function::new(ctx.clone(), start)?)?;
        waiter.install_timers(ctx)?;
        Ok(())
    })
    .unwrap();
    vm
}

/// A closure whose result borrows from its argument needs its signature spelled out.
fn returning_promise<F>(
    start: F,
) -> impl for<'js> Fn(Ctx<'js>, String) -> rquickjs::Result<Value<'js>>
where
    F: for<'js> Fn(&Ctx<'js>, String) -> rquickjs::Result<rquickjs::Promise<'js>>,
{
    move |ctx, call| Ok(start(&ctx, call)?.into_value())
}

/// Compiles a text as the module `/nowhere/main.js`.
pub(crate) fn program(text: &str) -> Result<Program, ScriptError> {
    let folder = Folder::new("/nowhere");
    let name = folder.with_text("main.js", text);
    Program::compile(Rc::new(folder), &name, LIMITS)
}

/// The work of loading a program, calling its default export, and returning the result as JSON.
pub(crate) fn call(
    vm: &Vm<TextHost>,
    program: &Program,
    input: &str,
) -> impl for<'js> FnOnce(&Ctx<'js>) -> Result<Option<String>, Stop> + 'static {
    let loader = vm.loader();
    let waiter = vm.waiter().clone();
    let program = program.clone();
    let input = input.to_owned();
    move |ctx| {
        let exports = loader.load(ctx, &program)?;
        let default = loader.exported(ctx, exports, "default")?;
        let Some(function) = default.into_function() else {
            return Err(Stop::Kind(crate::ErrorKind::NoFunction));
        };
        let value: Value<'_> = function.call((ctx.json_parse(input)?,))?;
        let value = waiter.settle(ctx, value)?;
        let value = value.ok_or(Stop::Kind(crate::ErrorKind::Pending))?;
        let text = ctx.json_stringify(value)?;
        Ok(text.map(|text| text.to_string()).transpose()?)
    }
}

/// The result of a text's default export.
pub(crate) fn answer(text: &str, input: &str) -> Result<Option<String>, String> {
    let program = program(text).map_err(|error| error.to_string())?;
    let vm = vm();
    let work = call(&vm, &program, input);
    vm.run(Some(TIME), work).map_err(|error| error.to_string())
}

#[test]
fn the_console_prints_values() {
    let lines: Rc<RefCell<Vec<(Level, String)>>> = Rc::default();
    let vm = vm();
    let printed = Rc::clone(&lines);
    vm.install_console(move |level, text| printed.borrow_mut().push((level, text.to_owned())))
        .unwrap();
    vm.run(None, |ctx| {
        Ok(ctx.eval::<(), _>(
            "console.log('a', 1, { b: [2] }, undefined); console.error(new TypeError('x'))",
        )?)
    })
    .unwrap();
    assert_eq!(
        *lines.borrow(),
        [
            (Level::Info, "a 1 {\"b\":[2]} undefined".to_owned()),
            (Level::Error, "TypeError: x".to_owned()),
        ]
    );
}
