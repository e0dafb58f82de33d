//! What the workers of a mock have in common: the plan, and what is done when its files change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::config::{self, FileProblem};
use crate::plan::MockPlan;

/// One mock, whoever serves it.
#[derive(Debug)]
pub struct Shared {
    plan: Mutex<Arc<MockPlan>>,
    epoch: AtomicU64,
}

/// What has happened to the files of a mock that is served.
#[derive(Debug, Clone)]
pub enum Notice {
    /// They have changed and were loaded.
    Reloaded(PathBuf),
    /// They have changed, but have mistakes: what was loaded before still answers.
    Refused(PathBuf, Vec<FileProblem>),
}

static LISTENER: OnceLock<fn(&Notice)> = OnceLock::new();

/// Has `listener` told what happens to the files of mocks; the first one that is given holds.
pub fn notify(listener: fn(&Notice)) {
    LISTENER.get_or_init(|| listener);
}

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(200);

impl Shared {
    /// A mock whose plan does not change.
    pub fn fixed(plan: MockPlan) -> Arc<Self> {
        Arc::new(Self {
            plan: Mutex::new(Arc::new(plan)),
            epoch: AtomicU64::new(0),
        })
    }

    /// A mock of a file, loaded again when it or one that it names changes, as long as somebody has it.
    pub fn of_file(file: &Path, plan: MockPlan) -> Arc<Self> {
        let files = plan.files.clone();
        let shared = Self::fixed(plan);
        let (weak, file) = (Arc::downgrade(&shared), file.to_owned());
        let looking = thread::Builder::new().name("mock-rules".to_owned());
        // Without a thread it answers as it was loaded.
        looking.spawn(move || look(&weak, &file, files)).ok();
        shared
    }

    /// The plan, and how many there were before it.
    pub fn plan(&self) -> (u64, Arc<MockPlan>) {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        (self.epoch(), Arc::clone(&plan))
    }

    /// How many plans there were before this one.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// From now on this one answers.
    pub fn replace(&self, new: MockPlan) {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        *plan = Arc::new(new);
        self.epoch.fetch_add(1, Ordering::Release);
    }
}

/// By what a file is known to be another.
type Stamp = Option<(u64, SystemTime)>;

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |file: &PathBuf| {
        let metadata = fs::metadata(file).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    };
    files.iter().map(stamp).collect()
}

/// Loads the file again when it has changed and settled, until nobody has the mock any more.
fn look(shared: &Weak<Shared>, file: &Path, mut files: Vec<PathBuf>) {
    let mut loaded = stamps(&files);
    let mut seen = loaded.clone();
    loop {
        thread::park_timeout(LOOK);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let now = stamps(&files);
        let has_settled = now == seen;
        seen = now;
        if !has_settled || seen == loaded {
            continue;
        }
        loaded.clone_from(&seen);
        let notice = match config::load(file) {
            Ok(plan) => {
                files.clone_from(&plan.files);
                loaded = stamps(&files);
                seen.clone_from(&loaded);
                shared.replace(plan);
                Notice::Reloaded(file.to_owned())
            }
            Err(problems) => Notice::Refused(file.to_owned(), problems),
        };
        if let Some(listener) = LISTENER.get() {
            listener(&notice);
        }
    }
}
