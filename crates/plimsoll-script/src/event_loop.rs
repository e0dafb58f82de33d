//! Promises, timers and calls that run beside the script.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rquickjs::function::{Opt, Rest};
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Error, Function, Persistent, Promise, Value};

use crate::error::{ErrorKind, Stop};
use crate::fiber::{Host, Waiter};
use crate::timers::Timers;

/// Names a call that runs beside the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(u64);

/// True if more replies follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The call is complete.
    Done,
    /// There may be another reply, such as the next message of a socket.
    More,
}

type Deliver<R> = Box<dyn for<'js> FnMut(&Ctx<'js>, R) -> rquickjs::Result<Delivery>>;

/// A function with its arguments, kept for later.
#[derive(Clone)]
struct Callback {
    function: Persistent<Function<'static>>,
    arguments: Vec<Persistent<Value<'static>>>,
}

/// The work of an event loop.
pub(crate) struct EventLoop<H: Host> {
    timers: RefCell<Timers<Callback>>,
    /// Receivers of the replies to started calls.
    open: RefCell<HashMap<CallId, Deliver<H::Reply>>>,
    /// Calls that the driver has not taken yet.
    started: RefCell<VecDeque<(CallId, H::Call)>>,
    replies: RefCell<VecDeque<(CallId, H::Reply)>>,
    next_id: Cell<u64>,
    /// Promises that were rejected and that nothing handles, with the reasons.
    rejections: RefCell<Vec<Rejection>>,
}

struct Rejection {
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

impl<H: Host> Default for EventLoop<H> {
    fn default() -> Self {
        Self {
            timers: RefCell::default(),
            open: RefCell::default(),
            started: RefCell::default(),
            replies: RefCell::default(),
            next_id: Cell::new(1),
            rejections: RefCell::default(),
        }
    }
}

impl<H: Host> EventLoop<H> {
    /// Forgets everything, so that no value outlives its runtime.
    pub(crate) fn clear(&self) {
        self.timers.borrow_mut().clear();
        self.open.borrow_mut().clear();
        self.started.borrow_mut().clear();
        self.replies.borrow_mut().clear();
        self.rejections.borrow_mut().clear();
    }

    pub(crate) fn take_started(&self) -> Option<(CallId, H::Call)> {
        self.started.borrow_mut().pop_front()
    }

    pub(crate) fn complete(&self, id: CallId, reply: H::Reply) {
        self.replies.borrow_mut().push_back((id, reply));
    }

    /// Rejections that nothing has handled so far.
    pub(crate) fn rejected(&self) -> usize {
        self.rejections.borrow().len()
    }

    /// Forgets rejections but the first ones: their reason was reported already.
    pub(crate) fn forget_rejections(&self, kept: usize) {
        self.rejections.borrow_mut().truncate(kept);
    }

    /// Called by the engine when a promise is rejected without a handler, or gets one after that.
    pub(crate) fn track<'js>(
        &self,
        ctx: &Ctx<'js>,
        promise: Value<'js>,
        reason: Value<'js>,
        is_handled: bool,
    ) {
        let promise = Persistent::save(ctx, promise);
        let mut rejections = self.rejections.borrow_mut();
        if is_handled {
            rejections.retain(|rejection| rejection.promise != promise);
        } else {
            let reason = Persistent::save(ctx, reason);
            rejections.push(Rejection { promise, reason });
        }
    }
}

impl<H: Host> Waiter<H> {
    /// Starts a call that runs beside the script.
    ///
    /// - `deliver`: gets each reply, on the event loop.
    pub fn start(
        &self,
        call: H::Call,
        deliver: impl for<'js> FnMut(&Ctx<'js>, H::Reply) -> rquickjs::Result<Delivery> + 'static,
    ) -> CallId {
        let event_loop = &self.0.event_loop;
        let id = CallId(event_loop.next_id.get());
        event_loop.next_id.set(id.0 + 1);
        let mut open = event_loop.open.borrow_mut();
        open.insert(id, Box::new(deliver));
        event_loop.started.borrow_mut().push_back((id, call));
        id
    }

    /// Starts a call and returns a promise of its result.
    ///
    /// - `convert`: makes a value of the reply; what it throws rejects the promise.
    pub fn start_promise<'js>(
        &self,
        ctx: &Ctx<'js>,
        call: H::Call,
        convert: impl for<'a> FnOnce(&Ctx<'a>, H::Reply) -> rquickjs::Result<Value<'a>> + 'static,
    ) -> rquickjs::Result<Promise<'js>> {
        let (promise, resolve, reject) = Promise::new(ctx)?;
        let resolve = Persistent::save(ctx, resolve);
        let reject = Persistent::save(ctx, reject);
        let mut once = Some((convert, resolve, reject));
        self.start(call, move |ctx, reply| {
            if let Some((convert, resolve, reject)) = once.take() {
                match convert(ctx, reply) {
                    Ok(value) => resolve.restore(ctx)?.call::<_, ()>((value,))?,
                    Err(Error::Exception) => {
                        reject.restore(ctx)?.call::<_, ()>((ctx.catch(),))?;
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(Delivery::Done)
        });
        Ok(promise)
    }

    /// Forgets a started call: its replies are dropped, and the event loop waits for it no more.
    pub fn forget(&self, id: CallId) {
        let event_loop = &self.0.event_loop;
        event_loop.open.borrow_mut().remove(&id);
        let mut started = event_loop.started.borrow_mut();
        started.retain(|(other, _)| *other != id);
    }

    /// Runs jobs of promises, due timers and replies until nothing is left, waiting where it has to.
    ///
    /// Fails with the first exception of a timer or a delivery, or with the reason of a promise that was rejected and
    /// that nothing has handled.
    pub fn run_event_loop(&self, ctx: &Ctx<'_>) -> Result<(), Stop> {
        let event_loop = &self.0.event_loop;
        loop {
            self.run_jobs(ctx)?;
            let reply = event_loop.replies.borrow_mut().pop_front();
            if let Some((id, reply)) = reply {
                self.deliver(ctx, id, reply)?;
                continue;
            }
            let now = self.0.clock.now();
            let due = event_loop.timers.borrow_mut().pop_due(now);
            if let Some(callback) = due {
                callback.call(ctx)?;
                continue;
            }
            let until = event_loop.timers.borrow().next();
            if until.is_none() && event_loop.open.borrow().is_empty() {
                break;
            }
            self.idle(ctx, until)?;
        }
        let rejection = event_loop.rejections.borrow_mut().pop();
        match rejection {
            Some(rejection) => {
                event_loop.rejections.borrow_mut().clear();
                let reason = rejection.reason.restore(ctx)?;
                Err(Stop::Rejected(ctx.throw(reason)))
            }
            None => Ok(()),
        }
    }

    /// Runs the event loop and returns the result of `value`: its own, or that of the promise that it is. `None` if the
    /// promise is still pending when nothing is left to do.
    pub fn settle<'js>(
        &self,
        ctx: &Ctx<'js>,
        value: Value<'js>,
    ) -> Result<Option<Value<'js>>, Stop> {
        let Some(promise) = value.as_promise() else {
            self.run_event_loop(ctx)?;
            return Ok(Some(value));
        };
        // The caller looks at it, so its rejection is handled.
        let handler = Function::new(ctx.clone(), || ())?;
        promise
            .catch()?
            .call::<_, ()>((rquickjs::function::This(promise.clone()), handler))?;
        self.run_event_loop(ctx)?;
        match promise.state() {
            PromiseState::Pending => Ok(None),
            PromiseState::Resolved | PromiseState::Rejected => match promise.result() {
                Some(result) => result.map(Some).map_err(Stop::Rejected),
                None => Ok(None),
            },
        }
    }

    /// Sets the globals `setTimeout`, `setInterval`, `clearTimeout` and `clearInterval`.
    pub fn install_timers(&self, ctx: &Ctx<'_>) -> rquickjs::Result<()> {
        let globals = ctx.globals();
        for (name, repeats) in [("setTimeout", false), ("setInterval", true)] {
            let waiter = self.clone();
            let set = move |ctx: Ctx<'_>,
                            function: Persistent<Function<'static>>,
                            delay: Opt<f64>,
                            arguments: Rest<Persistent<Value<'static>>>| {
                let delay = delay.0.filter(|delay| *delay > 0.0).unwrap_or(0.0);
                let delay = Duration::try_from_secs_f64(delay / 1000.0)
                    .map_err(|_| rquickjs::Exception::throw_range(&ctx, "the delay is too long"))?;
                let callback = Callback {
                    function,
                    arguments: arguments.0,
                };
                let mut timers = waiter.0.event_loop.timers.borrow_mut();
                let id = timers.add(waiter.0.clock.now(), delay, repeats, callback);
                Ok::<_, Error>(id as f64)
            };
            globals.set(name, Function::new(ctx.clone(), set)?.with_name(name)?)?;
        }
        for name in ["clearTimeout", "clearInterval"] {
            let waiter = self.clone();
            let clear = move |id: Opt<Value<'_>>| {
                let id = id.0.and_then(|id| id.as_number());
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "ids are small whole numbers; any other names no timer"
                )]
                if let Some(id) = id {
                    let mut timers = waiter.0.event_loop.timers.borrow_mut();
                    timers.remove(id as u64);
                }
            };
            globals.set(name, Function::new(ctx.clone(), clear)?.with_name(name)?)?;
        }
        Ok(())
    }

    fn run_jobs(&self, ctx: &Ctx<'_>) -> Result<(), Stop> {
        loop {
            if let Some(kind) = self.must_end() {
                return Err(Stop::Kind(kind));
            }
            if !ctx.execute_pending_job() {
                return Ok(());
            }
            // A job that threw leaves its exception behind.
            ctx.catch();
        }
    }

    fn deliver(&self, ctx: &Ctx<'_>, id: CallId, reply: H::Reply) -> Result<(), Stop> {
        // Taken out, because it may start and forget calls.
        let deliver = self.0.event_loop.open.borrow_mut().remove(&id);
        let Some(mut deliver) = deliver else {
            return Ok(());
        };
        if deliver(ctx, reply)? == Delivery::More {
            let mut open = self.0.event_loop.open.borrow_mut();
            open.insert(id, deliver);
        }
        Ok(())
    }
}

impl Callback {
    fn call(self, ctx: &Ctx<'_>) -> Result<(), Stop> {
        let function = self.function.restore(ctx)?;
        let mut arguments = rquickjs::function::Args::new(ctx.clone(), self.arguments.len());
        for argument in self.arguments {
            arguments.push_arg(argument.restore(ctx)?)?;
        }
        function.call_arg::<Value<'_>>(arguments)?;
        Ok(())
    }
}

/// The result that has to be there, such as that of a function that answers.
pub(crate) fn required<T>(settled: Option<T>) -> Result<T, Stop> {
    settled.ok_or(Stop::Kind(ErrorKind::Pending))
}
