//! The thread that runs the scripts of one worker.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use http::StatusCode;
use plimsoll_script::{ScriptError, Stacks};
use plimsoll_server::Severity;
use plimsoll_wire::SystemClock;
use tokio::sync::oneshot;

use super::answer::Answered;
use super::engine::Engine;
use super::host::MockHost;
use super::input::Input;
use super::load::LIMITS;
use super::{Refusal, Script, ScriptAnswer, answer};
use crate::script::notice_limiter::NoticeLimiter;
use crate::store::Store;
use crate::template::Chance;

/// Requests that may wait for the scripts of a worker; more are refused.
pub(super) const WAITING: usize = 256;

/// Scripts run on stacks of their fibers.
const STACK: usize = 1 << 20;

/// Time beyond its limit after which a script counts as lost: some functions of the engine, such as
/// looking for a long text within a longer one, cannot be interrupted.
const BEYOND: Duration = Duration::from_secs(1);

/// A request for a script.
pub(super) struct Job {
    pub(super) script: Arc<Script>,
    /// Taken when it is run.
    pub(super) input: Option<Box<Input>>,
    pub(super) chance: Chance,
    pub(super) reply: oneshot::Sender<Result<ScriptAnswer, Refusal>>,
}

/// A thread that answers jobs one after the other, until the last handle of its lane is gone.
#[derive(Debug)]
pub(super) struct Lane {
    jobs: SyncSender<Job>,
    ends: Arc<AtomicU64>,
}

impl Lane {
    /// Fails if there cannot be another thread.
    pub(super) fn start(store: Store, notices: Arc<NoticeLimiter>) -> std::io::Result<Self> {
        let (jobs, received) = sync_channel(WAITING);
        let ends = Arc::new(AtomicU64::new(u64::MAX));
        let ending = Arc::clone(&ends);
        let thread = thread::Builder::new()
            .name("mock-script".to_owned())
            .stack_size(STACK);
        thread.spawn(move || Running::new(store, notices).run(&received, &ending))?;
        Ok(Self { jobs, ends })
    }

    /// Whether the job waits now; otherwise it comes back.
    pub(super) fn offer(&self, job: Job) -> Result<(), Job> {
        match self.jobs.try_send(job) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => Err(job),
        }
    }

    /// Whether what runs there should have ended long ago.
    pub(super) fn is_lost(&self) -> bool {
        now() > self.ends.load(Ordering::Relaxed)
    }
}

/// Milliseconds on the system's clock.
fn now() -> u64 {
    u64::try_from(SystemClock.monotonic().as_millis()).unwrap_or(u64::MAX)
}

/// State of the thread.
struct Running {
    host: Rc<MockHost>,
    stacks: Stacks,
    /// Made anew when a script has spoilt it.
    engine: Option<Engine>,
}

impl Running {
    fn new(store: Store, notices: Arc<NoticeLimiter>) -> Self {
        Self {
            host: Rc::new(MockHost::new(store, notices)),
            stacks: Stacks::new(LIMITS),
            engine: None,
        }
    }

    /// - `ends`: when what runs is held to be lost, or never.
    fn run(mut self, jobs: &Receiver<Job>, ends: &AtomicU64) {
        while let Ok(mut job) = jobs.recv() {
            if job.reply.is_closed() {
                continue;
            }
            let beyond = job.script.time + BEYOND;
            let beyond = u64::try_from(beyond.as_millis()).unwrap_or(u64::MAX);
            ends.store(now().saturating_add(beyond), Ordering::Relaxed);
            let answer = self.answer(&mut job);
            ends.store(u64::MAX, Ordering::Relaxed);
            // The client may have gone.
            job.reply.send(answer).ok();
        }
    }

    fn answer(&mut self, job: &mut Job) -> Result<ScriptAnswer, Refusal> {
        self.host.begin(&job.chance, job.script.shown());
        let message = match self.called(job) {
            Ok(answered) => match answer::read(answered) {
                Ok(answer) => return Ok(answer),
                Err(error) => format!("{}: {error}", job.script.shown()),
            },
            Err(error) => {
                if error.spoils() {
                    self.engine = None;
                }
                match &error.location {
                    Some(_) => job.script.describe(&error),
                    None => format!("{}: {error}", job.script.shown()),
                }
            }
        };
        self.host.report(Severity::Error, "", &message);
        Err((StatusCode::INTERNAL_SERVER_ERROR, format!("{message}\n")))
    }

    fn called(&mut self, job: &mut Job) -> Result<Answered, ScriptError> {
        let engine = match &mut self.engine {
            Some(engine) => engine,
            none => none.insert(Engine::new(&self.stacks, &self.host)?),
        };
        let input = job.input.take().expect("a job is run once");
        engine.call(&job.script, *input)
    }
}
