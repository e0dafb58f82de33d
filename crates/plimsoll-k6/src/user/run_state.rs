//! State that all virtual users of a run share.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_load::scenario::{Abort, Claims, Registry, TestProgress};

use super::Log;
use super::files::Files;
use super::request_rate::RequestRate;
use super::secrets::Secrets;
use super::shared_arrays::SharedArrays;
use super::system_tags::SystemTags;
use crate::metrics::BuiltIn;
use crate::metrics::checks::Checks;
use crate::options::Options;
use crate::source::required::RequiredModules;

/// State that all virtual users of a run share.
pub(crate) struct RunState {
    pub(crate) options: Options,
    pub(crate) registry: Registry,
    pub(crate) built_in: BuiltIn,
    pub(crate) system_tags: SystemTags,
    pub(crate) checks: Checks,
    pub(crate) shared_arrays: Arc<SharedArrays>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) files: Arc<Files>,
    /// The name of the first module.
    pub(crate) script: String,
    pub(crate) required: Arc<RequiredModules>,
    pub(crate) log: Log,
    pub(crate) secrets: Secrets,
    pub(crate) abort: Arc<Abort>,
    pub(crate) progress: Arc<TestProgress>,
    /// In the order of the options.
    pub(crate) claims: Vec<Arc<Claims>>,
    /// Why the script ended the run, or marked it as failed.
    pub(crate) verdict: Mutex<Verdict>,
    pub(crate) start: Instant,
    /// When `setup()` was called, or would have been: from then on the run takes its time.
    pub(crate) began: OnceLock<Instant>,
    /// The result of `setup()` as JSON, once it is there.
    pub(crate) setup_data: OnceLock<Arc<str>>,
    pub(crate) request_rate: RequestRate,
}

impl RunState {
    /// The time that the run has taken, with `setup()`, as summaries and thresholds count it; 0 before.
    pub(crate) fn duration(&self, now: Instant) -> Duration {
        let began = self.began.get();
        began.map_or(Duration::ZERO, |began| {
            now.saturating_duration_since(*began)
        })
    }

    /// Why the script ended the run so far, or marked it as failed.
    pub(crate) fn verdict(&self) -> Verdict {
        let verdict = self.verdict.lock();
        verdict.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A script's verdict on its run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict {
    pub(crate) aborted: Option<String>,
    pub(crate) failed: Option<String>,
    /// A promise was rejected while a virtual user was initialised.
    pub(crate) is_rejected: bool,
    /// The system has no memory for another stack.
    pub(crate) exhausted: Option<String>,
}
