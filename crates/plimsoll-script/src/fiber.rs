//! Work in a VM that can wait: on its stack, between a driver and native functions.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::{Duration, Instant};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use plimsoll_model::Clock;
use rquickjs::{Ctx, Error, Exception, qjs};

use crate::error::{ErrorKind, ScriptError};
use crate::event_loop::EventLoop;
use crate::stack::Stacks;

/// The program around a VM: what native functions wait for, and what they get.
pub trait Host: 'static {
    /// The calls that native functions wait for.
    type Call: 'static;
    /// The replies that the driver resumes it with.
    type Reply: 'static;
}

/// The input of a resumed fiber.
#[derive(Debug)]
pub enum Resume<R> {
    /// The start, a timer that is due, or a started call that is complete.
    Continue,
    /// The reply to [`Step::Call`].
    Reply(R),
    /// The end: the script stops as fast as it can, and none of its handlers can prevent that.
    Cancel,
}

/// The next step of a fiber.
pub enum Step<H: Host, T> {
    /// A native function waits for the reply to this call.
    Call(H::Call),
    /// The event loop waits for a started call, or until a timer is due.
    Idle {
        /// When the next timer is due, if there is one.
        until: Option<Instant>,
    },
    /// The work is done.
    Done(Result<T, ScriptError>),
}

impl<H: Host, T> fmt::Debug for Step<H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call(_) => "Call",
            Self::Idle { .. } => "Idle",
            Self::Done(_) => "Done",
        })
    }
}

type Yields<H> = Yielder<Resume<<H as Host>::Reply>, Waits<<H as Host>::Call>>;

type Stackful<H, T> = Coroutine<
    Resume<<H as Host>::Reply>,
    Waits<<H as Host>::Call>,
    Result<T, ScriptError>,
    DefaultStack,
>;

/// Why a coroutine is suspended.
enum Waits<C> {
    Call(C),
    Idle(Option<Instant>),
}

/// A piece of work in a VM, which has one at a time. Dropping it cancels it.
///
/// The stack of a suspended coroutine holds frames of C, which must not be unwound: the end of a fiber is always that
/// of the script, by an exception that it cannot catch.
pub struct Fiber<H: Host, T> {
    coroutine: Option<Stackful<H, T>>,
    waiter: Waiter<H>,
    stacks: Stacks,
}

impl<H: Host, T: 'static> Fiber<H, T> {
    pub(crate) fn new(
        waiter: &Waiter<H>,
        stacks: &Stacks,
        budget: Option<Duration>,
        work: impl FnOnce() -> Result<T, ScriptError> + 'static,
    ) -> Result<Self, ScriptError> {
        let stack = stacks.take_stack()?;
        waiter.0.budget.set(budget);
        let state = Rc::clone(&waiter.0);
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yields<H>, resume| {
            if let Resume::Cancel = resume {
                return Err(ScriptError::new(ErrorKind::Cancelled));
            }
            state.yielder.set(Some(NonNull::from(yielder)));
            let _running = Running(&state);
            work()
        });
        Ok(Self {
            coroutine: Some(coroutine),
            waiter: waiter.clone(),
            stacks: stacks.clone(),
        })
    }

    /// Runs until the work waits or is done.
    ///
    /// Panics if it is done already.
    pub fn resume(&mut self, resume: Resume<H::Reply>) -> Step<H, T> {
        let state = &self.waiter.0;
        if let Resume::Cancel = resume {
            state.is_cancelled.set(true);
        }
        let coroutine = self.coroutine.as_mut();
        let coroutine = coroutine.expect("a fiber that is done is not resumed");
        state.budget.start(state.clock.now());
        let result = coroutine.resume(resume);
        state.budget.stop(state.clock.now());
        match result {
            CoroutineResult::Yield(Waits::Call(call)) => Step::Call(call),
            CoroutineResult::Yield(Waits::Idle(until)) => Step::Idle { until },
            CoroutineResult::Return(result) => {
                if let Some(coroutine) = self.coroutine.take() {
                    self.stacks.give_back(coroutine.into_stack());
                }
                Step::Done(result)
            }
        }
    }

    /// Computing time so far.
    pub fn computed(&self) -> Duration {
        self.waiter.0.budget.spent.get()
    }
}

impl<H: Host, T> Drop for Fiber<H, T> {
    fn drop(&mut self) {
        let Some(mut coroutine) = self.coroutine.take() else {
            return;
        };
        // A coroutine that panicked is done, and one that never ran has nothing on its stack.
        if coroutine.started() && !coroutine.done() {
            let state = &self.waiter.0;
            state.is_cancelled.set(true);
            let result = coroutine.resume(Resume::Cancel);
            debug_assert!(
                matches!(result, CoroutineResult::Return(_)),
                "a cancelled fiber waits no more"
            );
        }
        if coroutine.done() {
            self.stacks.give_back(coroutine.into_stack());
        }
    }
}

impl<H: Host, T> fmt::Debug for Fiber<H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_done = self.coroutine.as_ref().is_none_or(Coroutine::done);
        f.debug_struct("Fiber")
            .field("is_done", &is_done)
            .finish_non_exhaustive()
    }
}

/// Lets native functions of a VM wait. Cheap to clone into them.
pub struct Waiter<H: Host>(pub(crate) Rc<State<H>>);

impl<H: Host> Clone for Waiter<H> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

/// Decides by the present time if a fiber has to end.
type Ends = Box<dyn Fn(Instant) -> bool>;

/// State that a VM, its fiber and its native functions share.
pub(crate) struct State<H: Host> {
    pub(crate) clock: Rc<dyn Clock>,
    /// That of the running coroutine; valid while it is set.
    yielder: Cell<Option<NonNull<Yields<H>>>>,
    is_cancelled: Cell<bool>,
    budget: Budget,
    /// Looked at while a script computes.
    ends: RefCell<Option<Ends>>,
    pub(crate) event_loop: EventLoop<H>,
}

/// Clears the yielder when the coroutine ends, also by a panic.
struct Running<'s, H: Host>(&'s State<H>);

impl<H: Host> Drop for Running<'_, H> {
    fn drop(&mut self) {
        self.0.yielder.set(None);
    }
}

impl<H: Host> Waiter<H> {
    pub(crate) fn new(clock: Rc<dyn Clock>) -> Self {
        Self(Rc::new(State {
            clock,
            yielder: Cell::new(None),
            is_cancelled: Cell::new(false),
            budget: Budget::default(),
            ends: RefCell::default(),
            event_loop: EventLoop::default(),
        }))
    }

    /// Suspends the fiber until its driver has the reply.
    ///
    /// Fails if the fiber is cancelled, by an exception that no script catches: the native function has to return it.
    pub fn wait(&self, ctx: &Ctx<'_>, call: H::Call) -> rquickjs::Result<H::Reply> {
        match self.suspend(ctx, Waits::Call(call))? {
            Resume::Reply(reply) => Ok(reply),
            Resume::Continue | Resume::Cancel => {
                Err(Exception::throw_internal(ctx, "resumed without a reply"))
            }
        }
    }

    /// Cancels the fiber from within: throws an exception that no script catches. The native function has to return it.
    pub fn cancel(&self, ctx: &Ctx<'_>) -> rquickjs::Result<()> {
        self.0.is_cancelled.set(true);
        Err(interrupted(ctx))
    }

    /// The time on the clock of the VM.
    pub fn now(&self) -> Instant {
        self.0.clock.now()
    }

    /// True if a fiber of the VM was cancelled, so that the VM may hold half-finished state.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.get()
    }

    /// Cancels the running fiber as soon as `ends` holds for the present time, also while the script computes and its
    /// driver cannot. It takes the place of an earlier condition.
    pub fn end_when(&self, ends: impl Fn(Instant) -> bool + 'static) {
        *self.0.ends.borrow_mut() = Some(Box::new(ends));
    }

    /// Suspends the fiber until a started call is complete, or until then.
    pub(crate) fn idle(&self, ctx: &Ctx<'_>, until: Option<Instant>) -> rquickjs::Result<()> {
        self.suspend(ctx, Waits::Idle(until)).map(drop)
    }

    fn suspend(&self, ctx: &Ctx<'_>, waits: Waits<H::Call>) -> rquickjs::Result<Resume<H::Reply>> {
        if self.is_cancelled() {
            return Err(interrupted(ctx));
        }
        let yielder = self.0.yielder.get();
        let yielder =
            yielder.ok_or_else(|| Exception::throw_internal(ctx, "nothing can wait here"))?;
        // SAFETY: the yielder lives as long as its coroutine runs, which clears the pointer at its end. A VM has one
        // coroutine at a time, so the code that runs here is on its stack.
        let resume = unsafe { yielder.as_ref() }.suspend(waits);
        match resume {
            Resume::Cancel => Err(interrupted(ctx)),
            resume => Ok(resume),
        }
    }

    /// True if the running script has to end: it is cancelled, or out of time.
    pub(crate) fn must_end(&self) -> Option<ErrorKind> {
        if self.is_cancelled() {
            return Some(ErrorKind::Cancelled);
        }
        let now = self.0.clock.now();
        if self.0.ends.borrow().as_ref().is_some_and(|ends| ends(now)) {
            self.0.is_cancelled.set(true);
            return Some(ErrorKind::Cancelled);
        }
        let limit = self.0.budget.limit.get()?;
        let is_over = self.0.budget.spent_at(now) >= limit;
        is_over.then_some(ErrorKind::Time(limit))
    }
}

impl<H: Host> fmt::Debug for Waiter<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter")
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// Throws an exception that scripts cannot catch.
fn interrupted(ctx: &Ctx<'_>) -> Error {
    match Exception::from_message(ctx.clone(), "interrupted") {
        Ok(exception) => {
            let value = exception.into_object().into_value();
            // SAFETY: both belong to this context; the call sets a flag of the error object.
            unsafe { qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), value.as_raw()) };
            ctx.throw(value)
        }
        Err(error) => error,
    }
}

/// Computing time: that between a resume and the next wait.
#[derive(Debug, Default)]
struct Budget {
    limit: Cell<Option<Duration>>,
    spent: Cell<Duration>,
    since: Cell<Option<Instant>>,
}

impl Budget {
    fn set(&self, limit: Option<Duration>) {
        self.limit.set(limit);
        self.spent.set(Duration::ZERO);
        self.since.set(None);
    }

    fn start(&self, now: Instant) {
        self.since.set(Some(now));
    }

    fn stop(&self, now: Instant) {
        self.spent.set(self.spent_at(now));
        self.since.set(None);
    }

    fn spent_at(&self, now: Instant) -> Duration {
        let running = self.since.get();
        let running = running.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.spent.get() + running
    }
}
