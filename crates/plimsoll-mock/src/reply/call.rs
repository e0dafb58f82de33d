//! One request that a reply responds to.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_server::{Answer, Outcome, Response};

use super::{Reply, ReplyContext};
use crate::request::RequestView;
use crate::store::states::Scenario;
use crate::worker::sharing::Allowed;

/// A request with the reply that was chosen for it.
#[derive(Debug)]
pub(crate) struct ReplyCall<'a, 'r> {
    pub(crate) context: &'a Rc<ReplyContext>,
    pub(crate) reply: &'a Arc<Reply>,
    /// The scenario of the rule.
    pub(crate) scenario: Option<&'a Scenario>,
    pub(crate) request: &'a RequestView<'r>,
    /// Which pages may read the response.
    pub(crate) allowed: Allowed,
    /// Delay of the response.
    pub(crate) delay: Duration,
}

impl ReplyCall<'_, '_> {
    /// A response that is complete, after the delay.
    pub(crate) fn after(&self, response: Response) -> Answer {
        self.outcome_after(Outcome::Respond(response))
    }

    /// An outcome that is complete, after the delay.
    pub(super) fn outcome_after(&self, outcome: Outcome) -> Answer {
        if self.delay.is_zero() {
            return Answer::Now(outcome);
        }
        self.then(async move { outcome })
    }

    /// An outcome that is made after the delay. What it needs of the request has to be taken before.
    pub(super) fn then(&self, outcome: impl Future<Output = Outcome> + 'static) -> Answer {
        let is_delayed = !self.delay.is_zero();
        let wait = is_delayed.then(|| self.context.alarms.wait(self.delay));
        Answer::Later(Box::pin(async move {
            if let Some(wait) = wait {
                wait.await;
            }
            outcome.await
        }))
    }
}
