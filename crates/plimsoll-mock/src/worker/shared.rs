//! State that the workers of a mock share: the plan, and its reload when files change.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use plimsoll_server::{Notice, Notices, Severity};
use plimsoll_wire::WatchedFiles;

use crate::admin::journal::Journal;
use crate::callback::Callbacks;
use crate::config::plan::MockPlan;
use crate::config::{self, FileProblem};
use crate::fault::delay::CommonDelays;
use crate::script::notice_limiter::NoticeLimiter;
use crate::store::states::States;
use crate::worker::layers::Layers;

/// One mock, shared by all that serve it.
#[derive(Debug)]
pub struct SharedMock {
    plan: Mutex<Arc<MockPlan>>,
    epoch: AtomicU64,
    /// The parts of the plan; locked before `plan`.
    layers: Mutex<Layers>,
    /// State that outlives plans.
    states: Arc<States>,
    journal: OnceLock<Arc<Journal>>,
    /// The delays of all responses.
    delays: Mutex<CommonDelays>,
    callbacks: OnceLock<Arc<Callbacks>>,
    notices: OnceLock<Arc<NoticeLimiter>>,
}

/// How often files are checked where the kernel reports no changes (network file systems): a saved file is served
/// before a user has switched windows.
const LOOK: Duration = Duration::from_millis(200);

impl SharedMock {
    /// A mock whose plan does not change.
    pub fn fixed(plan: MockPlan) -> Arc<Self> {
        let states = Arc::new(plan.states.clone());
        Self::with_states(plan, states)
    }

    fn with_states(mut plan: MockPlan, states: Arc<States>) -> Arc<Self> {
        plan.name_rules();
        let plan = Arc::new(plan);
        Arc::new(Self {
            layers: Mutex::new(Layers::new(Arc::clone(&plan))),
            plan: Mutex::new(plan),
            epoch: AtomicU64::new(0),
            states,
            journal: OnceLock::new(),
            delays: Mutex::default(),
            callbacks: OnceLock::new(),
            notices: OnceLock::new(),
        })
    }

    /// A mock of a file, loaded again when it or one that it names changes, as long as it is in use.
    ///
    /// - `notices`: receives a notice each time it is loaded again, or refused.
    pub fn of_file(file: &Path, notices: &Notices) -> Result<Arc<Self>, Vec<FileProblem>> {
        Self::of_file_with(file, notices, Arc::default(), None)
    }

    /// The same with the states of one that was there before.
    ///
    /// - `validates`: whether OpenAPI documents refuse what they do not allow, whatever the file says.
    pub(crate) fn of_file_with(
        file: &Path,
        notices: &Notices,
        states: Arc<States>,
        validates: Option<bool>,
    ) -> Result<Arc<Self>, Vec<FileProblem>> {
        let (plan, watched) = load(file, &states, validates)?;
        let shared = Self::with_states(plan, states);
        shared
            .notices
            .get_or_init(|| Arc::new(NoticeLimiter::new(notices)));
        let (weak, file, notices) = (Arc::downgrade(&shared), file.to_owned(), notices.clone());
        let looking = thread::Builder::new().name("mock-rules".to_owned());
        // Without a thread it answers as it was loaded.
        looking
            .spawn(move || look(&weak, &file, &notices, watched, validates))
            .ok();
        Ok(shared)
    }

    /// The plan, and how many there were before it.
    pub fn plan(&self) -> (u64, Arc<MockPlan>) {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        (self.epoch(), Arc::clone(&plan))
    }

    /// Number of plans before this one.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// From now on this one answers, and over it the rules that were added.
    pub fn replace(&self, mut new: MockPlan) {
        new.name_rules();
        self.change(|layers| layers.replace(Arc::new(new)));
    }

    /// Changes what the plan is made of.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Layers) -> T) -> T {
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut layers);
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        *plan = layers.plan();
        self.epoch.fetch_add(1, Ordering::Release);
        changed
    }

    /// The plan and whether rules of it are as their files have them.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&MockPlan, &Layers) -> T) -> T {
        let layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = self.plan().1;
        look(&plan, &layers)
    }

    /// The delays of all responses.
    pub(crate) fn delays(&self) -> CommonDelays {
        *self.delays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delays all responses from now on.
    pub(crate) fn set_delays(&self, delays: CommonDelays) {
        *self.delays.lock().unwrap_or_else(PoisonError::into_inner) = delays;
        // Workers take them over with the next plan.
        self.change(|_| ());
    }

    /// Receives notices about what happens while requests are answered.
    pub(crate) fn notices(&self) -> Arc<NoticeLimiter> {
        Arc::clone(self.notices.get_or_init(Arc::default))
    }

    /// Sends what rules send once they have answered.
    pub(crate) fn callbacks(&self) -> Arc<Callbacks> {
        let new = || Arc::new(Callbacks::new(self.notices()));
        Arc::clone(self.callbacks.get_or_init(new))
    }

    /// From now on requests are kept there; what was given first holds.
    pub(crate) fn keep_journal(&self, journal: Arc<Journal>) {
        self.journal.get_or_init(|| journal);
    }

    /// Journal of requests, if there is one.
    #[inline]
    pub(crate) fn journal(&self) -> Option<&Arc<Journal>> {
        self.journal.get()
    }
}

/// Loads a file, and what its files were before they were read, so that no change is missed.
fn load(
    file: &Path,
    states: &States,
    validates: Option<bool>,
) -> Result<(MockPlan, WatchedFiles), Vec<FileProblem>> {
    let mut files = vec![file.to_owned()];
    loop {
        let watched = WatchedFiles::new(files.clone());
        let mut plan = config::open_with(file, states)?.plan;
        if let Some(validates) = validates {
            plan.set_validates(validates);
        }
        if plan.files == files {
            return Ok((plan, watched));
        }
        // Only now is it known which files there are.
        files.clone_from(&plan.files);
    }
}

/// Loads the file again when it has changed and settled, until nothing uses the mock any more.
fn look(
    shared: &Weak<SharedMock>,
    file: &Path,
    notices: &Notices,
    mut watched: WatchedFiles,
    validates: Option<bool>,
) {
    loop {
        thread::park_timeout(LOOK);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if !watched.has_changed() {
            continue;
        }
        match load(file, &shared.states, validates) {
            Ok((plan, loaded)) => {
                watched = loaded;
                shared.replace(plan);
                let message = "has changed and was loaded";
                report(notices, Severity::Note, file, message);
            }
            Err(problems) => {
                for problem in &problems {
                    notices.report(&problem.notice());
                }
                let message = "has changed, but has mistakes: its old rules answer";
                report(notices, Severity::Warning, file, message);
            }
        }
    }
}

fn report(notices: &Notices, severity: Severity, file: &Path, message: &str) {
    let notice = Notice::new(severity, message);
    notices.report(&notice.about(file.display().to_string()));
}
