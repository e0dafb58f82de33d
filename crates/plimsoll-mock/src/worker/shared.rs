//! State that the workers of a mock share: the plan, and its reload when files change.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use plimsoll_server::config::NamedPath;
use plimsoll_server::{Notice, Notices, Severity};
use plimsoll_wire::WatchedFiles;

use crate::admin::journal::Journal;
use crate::callback::Callbacks;
use crate::config::plan::MockPlan;
use crate::config::{self, FileProblem};
use crate::fault::delay::CommonDelays;
use crate::openapi::DocumentSettings;
use crate::proxy::record::proxied::ProxiedExchanges;
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
    /// What it was loaded of; absent if that does not change.
    source: OnceLock<(PathBuf, DocumentSettings)>,
    journal: OnceLock<Arc<Journal>>,
    /// Exchanges with real servers, where the journal is kept too.
    proxied: OnceLock<Arc<ProxiedExchanges>>,
    /// The delays of all responses.
    delays: Mutex<CommonDelays>,
    callbacks: OnceLock<Arc<Callbacks>>,
    notices: OnceLock<Arc<NoticeLimiter>>,
    /// The files to follow once it is served.
    unfollowed: Mutex<Option<(WatchedFiles, Notices)>>,
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
            source: OnceLock::new(),
            journal: OnceLock::new(),
            proxied: OnceLock::new(),
            delays: Mutex::default(),
            callbacks: OnceLock::new(),
            notices: OnceLock::new(),
            unfollowed: Mutex::default(),
        })
    }

    /// A mock of a file, loaded again when it or one that it names changes, as long as it is in use.
    ///
    /// - `notices`: receives a notice each time it is loaded again, or refused.
    pub fn of_file(file: &Path, notices: &Notices) -> Result<Arc<Self>, Vec<FileProblem>> {
        let settings = DocumentSettings::default();
        let shared = Self::of_file_with(file, notices, Arc::default(), settings)?;
        shared.follow_files();
        Ok(shared)
    }

    /// The same with the states of one that was there before, which is loaded again only once
    /// [`follow_files`](Self::follow_files) was called: what compiles a configuration starts no thread.
    ///
    /// - `settings`: of OpenAPI documents, in place of those of the file.
    pub(crate) fn of_file_with(
        file: &Path,
        notices: &Notices,
        states: Arc<States>,
        settings: DocumentSettings,
    ) -> Result<Arc<Self>, Vec<FileProblem>> {
        let (plan, watched) = load(file, &states, &settings)?;
        let shared = Self::with_states(plan, states);
        shared
            .notices
            .get_or_init(|| Arc::new(NoticeLimiter::new(notices)));
        shared.source.get_or_init(|| (file.to_owned(), settings));
        *shared.unfollowed() = Some((watched, notices.clone()));
        Ok(shared)
    }

    /// From now on it is loaded again when one of its files changes, if it is of a file.
    pub(crate) fn follow_files(self: &Arc<Self>) {
        let unfollowed = self.unfollowed().take();
        let source = self.source.get().cloned();
        let Some(((watched, notices), (file, settings))) = unfollowed.zip(source) else {
            return;
        };
        let weak = Arc::downgrade(self);
        let looking = thread::Builder::new().name("mock-rules".to_owned());
        // Without a thread it answers as it was loaded.
        looking
            .spawn(move || look(&weak, &file, &notices, watched, &settings))
            .ok();
    }

    fn unfollowed(&self) -> MutexGuard<'_, Option<(WatchedFiles, Notices)>> {
        self.unfollowed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Every file and folder that it reads or writes.
    pub(crate) fn named_paths(&self) -> Vec<NamedPath> {
        self.plan().1.named_paths()
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

    /// Forgets every change at run time: only the rules of the files, as they are there.
    pub(crate) fn reset_rules(&self) {
        // Files that were saved a moment ago may not have been read again.
        let is_outdated = self
            .plan()
            .1
            .mappings
            .as_ref()
            .is_some_and(|it| it.is_changed());
        if let Some((file, settings)) = self.source.get().filter(|_| is_outdated)
            && let Ok((plan, _)) = load(file, &self.states, settings)
        {
            self.replace(plan);
        }
        self.change(Layers::reset);
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

    /// Reports something that is not as a user expects it.
    pub(crate) fn warn(&self, message: impl Into<String>) {
        let notice = Notice::new(Severity::Warning, message);
        self.notices().report(&notice);
    }

    /// Sends what rules send once they have answered.
    pub(crate) fn callbacks(&self) -> Arc<Callbacks> {
        let new = || Arc::new(Callbacks::new(self.notices()));
        Arc::clone(self.callbacks.get_or_init(new))
    }

    /// From now on requests are kept there, and exchanges with real servers beside it; what was given first holds.
    pub(crate) fn keep_journal(&self, journal: Arc<Journal>) {
        self.journal.get_or_init(|| journal);
        self.proxied.get_or_init(Arc::default);
    }

    /// Exchanges with real servers, if they are kept.
    pub(crate) fn proxied(&self) -> Option<&Arc<ProxiedExchanges>> {
        self.proxied.get()
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
    settings: &DocumentSettings,
) -> Result<(MockPlan, WatchedFiles), Vec<FileProblem>> {
    let mut files = vec![file.to_owned()];
    loop {
        let watched = WatchedFiles::new(files.clone());
        let mut plan = config::open_with(file, states)?.plan;
        plan.override_settings(settings);
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
    settings: &DocumentSettings,
) {
    loop {
        thread::park_timeout(LOOK);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if !watched.has_changed() {
            continue;
        }
        match load(file, &shared.states, settings) {
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
