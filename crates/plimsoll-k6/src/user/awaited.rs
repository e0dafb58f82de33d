//! Requests that wait for their response.

use plimsoll_load::scenario::ScenarioProgress;

use super::UserState;

/// A request under way. One that is dropped, as its iteration is interrupted, is counted: no metric of k6 has it.
#[derive(Debug)]
pub(crate) struct AwaitedResponse<'u> {
    /// Absent once the response is there, and for those of setup and teardown.
    scenario: Option<&'u ScenarioProgress>,
}

impl<'u> AwaitedResponse<'u> {
    pub(crate) fn new(user: &'u UserState) -> Self {
        let progress = &user.shared.progress;
        Self {
            scenario: user.id.map(|id| progress.scenario(id.scenario)),
        }
    }

    /// The request has ended, by a response or by a failure.
    pub(crate) fn end(mut self) {
        self.scenario = None;
    }
}

impl Drop for AwaitedResponse<'_> {
    fn drop(&mut self) {
        if let Some(scenario) = self.scenario {
            scenario.abort_request();
        }
    }
}
