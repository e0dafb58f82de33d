//! The thread that runs the scripts of one worker.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use http::StatusCode;
use plimsoll_script::{Handler, Modules, Runtime};
use plimsoll_server::Severity;
use plimsoll_wire::SystemClock;
use tokio::sync::oneshot;

use super::host::MockHost;
use super::load::runtime_of;
use super::{Refusal, Script, ScriptAnswer, answer};
use crate::store::Store;
use crate::teller::Teller;
use crate::template::Chance;

/// Requests that may wait for the scripts of a worker; more are refused.
pub(super) const WAITING: usize = 256;

/// The engine may use half a mebibyte of it.
const STACK: usize = 2 << 20;

/// What a script may take beyond its time until it is held to be lost: some functions of the engine, such as
/// looking for a long text within a longer one, cannot be interrupted.
const BEYOND: Duration = Duration::from_secs(1);

/// A request for a script.
pub(super) struct Job {
    pub(super) script: Arc<Script>,
    /// In JSON.
    pub(super) input: String,
    pub(super) chance: Chance,
    pub(super) reply: oneshot::Sender<Result<ScriptAnswer, Refusal>>,
}

/// A thread that answers jobs one after the other, until nobody has its lane any more.
#[derive(Debug)]
pub(super) struct Lane {
    jobs: SyncSender<Job>,
    ends: Arc<AtomicU64>,
}

impl Lane {
    /// Fails if there cannot be another thread.
    pub(super) fn start(store: Store, teller: Arc<Teller>) -> std::io::Result<Self> {
        let (jobs, received) = sync_channel(WAITING);
        let ends = Arc::new(AtomicU64::new(u64::MAX));
        let ending = Arc::clone(&ends);
        let thread = thread::Builder::new()
            .name("mock-script".to_owned())
            .stack_size(STACK);
        thread.spawn(move || Running::new(store, teller).run(&received, &ending))?;
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

/// What the thread has.
struct Running {
    host: Rc<MockHost>,
    modules: Rc<RefCell<Modules>>,
    /// With the functions of scripts, by the names of their modules. Made anew when a script has spoilt it.
    runtime: Option<(Runtime, HashMap<String, Handler>)>,
}

impl Running {
    fn new(store: Store, teller: Arc<Teller>) -> Self {
        Self {
            host: Rc::new(MockHost::new(store, teller)),
            modules: Rc::default(),
            runtime: None,
        }
    }

    /// - `ends`: when what runs is held to be lost, or never.
    fn run(mut self, jobs: &Receiver<Job>, ends: &AtomicU64) {
        while let Ok(job) = jobs.recv() {
            if job.reply.is_closed() {
                continue;
            }
            let beyond = job.script.time + BEYOND;
            let beyond = u64::try_from(beyond.as_millis()).unwrap_or(u64::MAX);
            ends.store(now().saturating_add(beyond), Ordering::Relaxed);
            let answer = self.answer(&job);
            ends.store(u64::MAX, Ordering::Relaxed);
            // The client may have gone.
            job.reply.send(answer).ok();
        }
    }

    fn answer(&mut self, job: &Job) -> Result<ScriptAnswer, Refusal> {
        self.host.begin(&job.chance, job.script.shown());
        let told = match self.called(job) {
            Ok(json) => match answer::read(json.as_deref()) {
                Ok(answer) => return Ok(answer),
                Err(message) => format!("{}: {message}", job.script.shown()),
            },
            Err(error) => {
                if error.spoils() {
                    self.runtime = None;
                }
                match &error.place {
                    Some(_) => job.script.told(&error),
                    None => format!("{}: {error}", job.script.shown()),
                }
            }
        };
        self.host.tell(Severity::Error, "", &told);
        Err((StatusCode::INTERNAL_SERVER_ERROR, format!("{told}\n")))
    }

    fn called(&mut self, job: &Job) -> Result<Option<String>, plimsoll_script::ScriptError> {
        let script = &job.script;
        let (runtime, handlers) = match &mut self.runtime {
            Some(runtime) => runtime,
            none => none.insert((runtime_of(&self.modules, &self.host)?, HashMap::new())),
        };
        let handler = if let Some(handler) = handlers.get(&script.name) {
            *handler
        } else {
            self.modules.borrow_mut().add(&script.modules);
            let handler = script.load_into(runtime)?;
            handlers.insert(script.name.clone(), handler);
            handler
        };
        runtime.call(handler, &job.input, script.time)
    }
}
