//! Answers late.

use std::rc::Rc;
use std::time::Duration;

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::worker::alarms::Alarms;

/// Lets another action answer, and holds its answer back.
pub struct Delay {
    time: Duration,
    inner: Rc<dyn Action>,
    alarms: Alarms,
}

impl Delay {
    /// Holds the answers of `inner` back for `time`, as exactly as [`Alarms`] are.
    pub fn new(time: Duration, inner: Rc<dyn Action>) -> Self {
        Self {
            time,
            inner,
            alarms: Alarms::default(),
        }
    }

    /// The same by `alarms`, such as those that everything on a worker shares.
    #[must_use]
    pub fn with_alarms(self, alarms: Alarms) -> Self {
        Self { alarms, ..self }
    }
}

impl Action for Delay {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let answer = self.inner.handle(request);
        let wait = self.alarms.wait(self.time);
        Answer::Later(Box::pin(async move {
            wait.await;
            match answer {
                Answer::Now(outcome) => outcome,
                Answer::Later(later) => later.await,
            }
        }))
    }
}

impl std::fmt::Debug for Delay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delay")
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}
