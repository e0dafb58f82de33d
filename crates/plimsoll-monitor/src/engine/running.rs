//! One check as a task: attempts until one succeeds.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_model::{Clock, Phase};

use crate::config::{MonitorPlan, What};
use crate::detect::status::Status;
use crate::probe::ProbeContext;
use crate::probe::reading::CheckResult;
use crate::schedule::Pass;
use crate::store::MonitorId;
use crate::time::Timestamp;

/// The outcome of a check, for the loop.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) pass: Pass<MonitorId>,
    pub(crate) result: CheckResult,
    /// Whether the host could be reached.
    pub(crate) connected: bool,
}

/// One check with all its attempts, of any monitor with a probe.
pub(crate) async fn result(plan: &MonitorPlan, context: &ProbeContext) -> (CheckResult, bool) {
    let mut attempt = 0;
    loop {
        let at = Timestamp::from_system(context.clock.wall());
        let What::Probe(probe) = &plan.what else {
            let reason = Some("this kind is not probed".to_owned());
            let result = CheckResult::plain(at, Status::Error, std::time::Duration::ZERO, reason);
            return (result, true);
        };
        let reading = probe.check(context).await;
        let is_unreachable = reading
            .failure
            .as_ref()
            .is_some_and(|failure| matches!(failure.phase, Phase::Connect | Phase::Dns));
        let connected = reading.connected || !is_unreachable;
        let result = plan.expectation.judge(&reading, at, &plan.secrets);
        if result.status != Status::Down || attempt >= plan.retries.most {
            return (result, connected);
        }
        attempt += 1;
        tokio::time::sleep(plan.retries.pause).await;
    }
}

/// Makes the check; a result that is not down ends its attempts.
pub(crate) async fn check(
    plan: Arc<MonitorPlan>,
    pass: Pass<MonitorId>,
    context: Rc<ProbeContext>,
) -> Finished {
    let (result, connected) = result(&plan, &context).await;
    Finished {
        pass,
        result,
        connected,
    }
}
