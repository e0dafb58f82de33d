//! The scripts of one worker.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::oneshot::{self, Receiver};
use tokio::time::timeout;

use super::input::Input;
use super::lane::{Job, Lane, WAITING};
use super::{Refusal, Script, ScriptAnswer};
use crate::request::RequestView;
use crate::script::notice_limiter::NoticeLimiter;
use crate::store::Store;
use crate::template::Chance;

/// Threads that may be lost before no more scripts are run.
const MOST_LOST: u32 = 3;

/// Interval at which a thread without an answer is checked.
const LOOK: Duration = Duration::from_millis(250);

/// Hands requests to a thread, which begins with the first one.
#[derive(Debug)]
pub(crate) struct Scripts {
    store: Store,
    notices: Arc<NoticeLimiter>,
    lane: RefCell<Option<Rc<Lane>>>,
    lost: Cell<u32>,
}

/// A request that a thread has been handed.
#[derive(Debug)]
pub(crate) struct ScriptCall {
    lane: Rc<Lane>,
    reply: Receiver<Result<ScriptAnswer, Refusal>>,
    script: Arc<Script>,
}

impl Scripts {
    pub(crate) fn new(store: Store, notices: Arc<NoticeLimiter>) -> Self {
        Self {
            store,
            notices,
            lane: RefCell::default(),
            lost: Cell::new(0),
        }
    }

    /// Hands a request to a script, to be answered later.
    ///
    /// - `state`: that of the scenario of its rule.
    pub(crate) fn ask(
        &self,
        script: &Arc<Script>,
        request: &RequestView<'_>,
        chance: &Chance,
        state: Option<String>,
    ) -> Result<ScriptCall, Refusal> {
        let lane = self.lane()?;
        let (sender, reply) = oneshot::channel();
        let job = Job {
            input: Some(Box::new(Input::new(script, request, state))),
            script: Arc::clone(script),
            chance: chance.clone(),
            reply: sender,
        };
        lane.offer(job).map_err(|_| {
            let text = format!("{WAITING} requests wait for scripts already\n");
            (StatusCode::SERVICE_UNAVAILABLE, text)
        })?;
        Ok(ScriptCall {
            lane,
            reply,
            script: Arc::clone(script),
        })
    }

    /// The answer, or why there is none.
    pub(crate) async fn answer(&self, mut asking: ScriptCall) -> Result<ScriptAnswer, Refusal> {
        loop {
            match timeout(LOOK, &mut asking.reply).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) => {
                    let text = "the thread of scripts has ended\n".to_owned();
                    return Err((StatusCode::INTERNAL_SERVER_ERROR, text));
                }
                Err(_) if asking.lane.is_lost() => {
                    self.leave(&asking.lane);
                    let name = asking.script.shown();
                    let text = format!("{name}: a script does not end and cannot be ended\n");
                    return Err((StatusCode::INTERNAL_SERVER_ERROR, text));
                }
                Err(_) => {}
            }
        }
    }

    /// The thread that answers now.
    fn lane(&self) -> Result<Rc<Lane>, Refusal> {
        let mut lane = self.lane.borrow_mut();
        if let Some(lane) = &*lane {
            return Ok(Rc::clone(lane));
        }
        if self.lost.get() >= MOST_LOST {
            let text = format!(
                "{MOST_LOST} scripts did not end and could not be ended: none is run until the rules are loaded again\n"
            );
            return Err((StatusCode::SERVICE_UNAVAILABLE, text));
        }
        let started = Lane::start(self.store.clone(), Arc::clone(&self.notices));
        let started = started.map_err(|error| {
            let text = format!("there is no thread for scripts: {error}\n");
            (StatusCode::SERVICE_UNAVAILABLE, text)
        })?;
        Ok(Rc::clone(lane.insert(Rc::new(started))))
    }

    /// Goes on without a thread that is lost.
    fn leave(&self, lost: &Rc<Lane>) {
        let mut lane = self.lane.borrow_mut();
        if lane.as_ref().is_some_and(|it| Rc::ptr_eq(it, lost)) {
            *lane = None;
            self.lost.set(self.lost.get() + 1);
        }
    }
}
