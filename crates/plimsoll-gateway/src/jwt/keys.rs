//! The keys that verify tokens: fixed, of a file, or fetched from their issuer.
//!
//! One source is shared by all workers and all guards with the same settings, and survives reloads. Each worker has a keeper,
//! a task that reads the keys when that is due; only one of them does. While the issuer is away the keys stay.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_client::fetch::{Ask, FetchError, FetchLimits, Fetcher, FetcherError};
use plimsoll_client::jwt::{JwtKeySet, JwtKeySetError};
use plimsoll_client::oidc::{OidcError, discover};
use plimsoll_model::Clock as _;
use plimsoll_server::{Notice, Notices, Severity, WorkerContext};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::Trust;
use tokio::sync::{Notify, watch};
use url::Url;

/// Limits of what an issuer sends.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(10),
    bytes: 512 * 1024,
    redirects: 0,
};

/// How long a request waits for keys: longer than both fetches that it may take.
const PATIENCE: Duration = Duration::from_secs(21);

/// How often a file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Between which times keys are read again after a failure.
const SOONEST_RETRY: Duration = Duration::from_secs(1);
const LATEST_RETRY: Duration = Duration::from_mins(1);

/// Where keys come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyOrigin {
    /// They are in the configuration.
    Fixed,
    /// A file, which is read again when it changes.
    File(PathBuf),
    /// A JSON Web Key Set at this URL.
    Url(Url),
    /// The one that the issuer names in its metadata (`OpenID` Connect Discovery 1.0, section 4).
    Issuer(String),
}

/// Settings of a source of keys.
#[derive(Debug, Clone)]
pub(crate) struct KeyPlan {
    pub(crate) origin: KeyOrigin,
    pub(crate) trust: Trust,
    /// How long keys are used before they are fetched again.
    pub(crate) refresh: Duration,
    /// How often unknown keys lead to another fetch at most.
    pub(crate) refetch: Duration,
    pub(crate) notices: Notices,
}

/// Keys with their age; shared by all workers.
#[derive(Debug)]
pub(crate) struct KeySource {
    plan: KeyPlan,
    state: Mutex<State>,
    /// Of the keys; 0 without any. It grows when they change.
    version: AtomicU64,
    /// Held by the keeper that reads.
    reading: tokio::sync::Mutex<()>,
    /// Changes whenever a read has ended.
    ended: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    keys: Option<Arc<JwtKeySet>>,
    read_at: Option<Instant>,
    attempted: Option<Instant>,
    is_reading: bool,
    /// A request waits for other keys.
    is_wanted: bool,
    /// In a row.
    failed: u32,
    reads: u64,
    failures: u64,
}

/// Why keys cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is something else.
    #[error("{} {error}", path.display())]
    FileContent {
        /// The file.
        path: PathBuf,
        /// What it is not.
        error: JwtKeySetError,
    },
    /// Nothing can be fetched.
    #[error("{0}")]
    Fetcher(#[from] FetcherError),
    /// The metadata of the issuer cannot be read.
    #[error("{0}")]
    Metadata(#[from] OidcError),
    /// Nothing was fetched from the URL.
    #[error("{url}: {error}")]
    Fetch {
        /// Where from.
        url: Url,
        /// Why.
        error: FetchError,
    },
    /// The URL responds with another status than 200.
    #[error("{url} responds with {status}")]
    Status {
        /// Where from.
        url: Url,
        /// The status.
        status: u16,
    },
    /// The response is something else.
    #[error("{url} {error}")]
    Content {
        /// Where from.
        url: Url,
        /// What it is not.
        error: JwtKeySetError,
    },
}

/// A source as metrics show it.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyStatus {
    pub(super) keys: usize,
    pub(super) age: Option<Duration>,
    pub(super) reads: u64,
    pub(super) failures: u64,
}

impl State {
    /// When the keys are to be read.
    fn due(&self, plan: &KeyPlan) -> Instant {
        let Some(attempted) = self.attempted else {
            return SystemClock.now();
        };
        if self.is_wanted {
            return self.earliest(plan).unwrap_or(attempted);
        }
        match self.read_at {
            _ if self.failed > 0 => attempted + retry(self.failed),
            Some(read_at) => read_at + plan.refresh,
            None => attempted,
        }
    }

    /// When a request may have keys read.
    fn earliest(&self, plan: &KeyPlan) -> Option<Instant> {
        let gap = if self.failed > 0 {
            retry(self.failed)
        } else {
            plan.refetch
        };
        Some(self.attempted? + gap)
    }
}

fn retry(failed: u32) -> Duration {
    let times = 2_u32.saturating_pow(failed.saturating_sub(1));
    SOONEST_RETRY.saturating_mul(times).min(LATEST_RETRY)
}

impl KeySource {
    /// - `keys`: what is there already, from the configuration or a file.
    pub(crate) fn new(plan: KeyPlan, keys: Option<JwtKeySet>) -> Self {
        let read_at = keys.is_some().then(|| SystemClock.now());
        Self {
            plan,
            version: AtomicU64::new(u64::from(keys.is_some())),
            state: Mutex::new(State {
                reads: u64::from(keys.is_some()),
                keys: keys.map(Arc::new),
                read_at,
                attempted: read_at,
                ..State::default()
            }),
            reading: tokio::sync::Mutex::default(),
            ended: watch::Sender::default(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name in metrics.
    pub(super) fn name(&self) -> &str {
        match &self.plan.origin {
            KeyOrigin::Fixed => "configuration",
            KeyOrigin::File(path) => path.to_str().unwrap_or("file"),
            KeyOrigin::Url(url) => url.as_str(),
            KeyOrigin::Issuer(issuer) => issuer,
        }
    }

    pub(super) fn status(&self, now: Instant) -> KeyStatus {
        let state = self.state();
        KeyStatus {
            keys: state.keys.as_ref().map_or(0, |keys| keys.count()),
            age: state.read_at.map(|at| now.saturating_duration_since(at)),
            reads: state.reads,
            failures: state.failures,
        }
    }

    /// The version of the keys; 0 without any.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The keys with their version.
    pub(super) fn current(&self) -> (Option<Arc<JwtKeySet>>, u64) {
        let state = self.state();
        (state.keys.clone(), self.version())
    }

    /// Reads the keys, if that is due and no other keeper has just done it.
    async fn read(&self, fetcher: &mut Option<Fetcher>) {
        let _only = self.reading.lock().await;
        let due = self.state().due(&self.plan);
        if due > SystemClock.now() {
            return;
        }
        let attempt = Attempt::begin(self);
        if let Some(read) = self.fetch(fetcher).await {
            self.finish(read);
        }
        drop(attempt);
    }

    /// The keys; nothing for a source that is not fetched.
    async fn fetch(&self, fetcher: &mut Option<Fetcher>) -> Option<Result<JwtKeySet, KeysError>> {
        Some(match &self.plan.origin {
            KeyOrigin::Url(url) => self.fetch_keys(fetcher, Some(url), "").await,
            KeyOrigin::Issuer(issuer) => self.fetch_keys(fetcher, None, issuer).await,
            KeyOrigin::Fixed | KeyOrigin::File(_) => return None,
        })
    }

    /// - `url`: of the keys; without it the one that the issuer names.
    async fn fetch_keys(
        &self,
        fetcher: &mut Option<Fetcher>,
        url: Option<&Url>,
        issuer: &str,
    ) -> Result<JwtKeySet, KeysError> {
        let fetcher = match fetcher {
            Some(fetcher) => fetcher,
            None => fetcher.insert(Fetcher::believing(self.plan.trust.clone(), LIMITS)?),
        };
        let url = match url {
            Some(url) => url.clone(),
            None => discover(fetcher, issuer).await?.jwks_uri.as_url().clone(),
        };
        let response = fetcher.get(&url, Ask::default()).await;
        let response = match response {
            Ok(response) if response.status == 200 => response,
            Ok(response) => {
                let status = response.status;
                return Err(KeysError::Status { url, status });
            }
            Err(error) => return Err(KeysError::Fetch { url, error }),
        };
        JwtKeySet::parse(&response.content).map_err(|error| KeysError::Content { url, error })
    }

    /// Takes what was read; what could not be read leaves the keys as they are.
    fn finish(&self, read: Result<JwtKeySet, KeysError>) {
        let mut state = self.state();
        let notice = match read {
            Ok(keys) => {
                let has_recovered = state.failed > 0;
                state.failed = 0;
                state.reads += 1;
                state.read_at = Some(SystemClock.now());
                if state.keys.as_deref() != Some(&keys) {
                    state.keys = Some(Arc::new(keys));
                    self.version.fetch_add(1, Ordering::Release);
                }
                has_recovered.then(|| Notice::new(Severity::Note, "the keys are current again"))
            }
            Err(error) => {
                state.failures += 1;
                state.failed = state.failed.saturating_add(1);
                let consequence = match &state.keys {
                    Some(_) => "the keys stay as they were",
                    None => "requests with tokens get a 503",
                };
                // Once, not at every attempt.
                (state.failed == 1).then(|| {
                    let message = format!("cannot read the keys of tokens: {error}; {consequence}");
                    Notice::new(Severity::Warning, message)
                })
            }
        };
        drop(state);
        if let Some(notice) = notice {
            self.plan.notices.report(&notice.about(self.name()));
        }
    }

    /// Follows a file as long as the task runs.
    async fn follow_file(&self, path: &Path) {
        let mut watched = plimsoll_wire::WatchedFiles::new(vec![path.to_owned()]);
        // It may have changed since the configuration was compiled.
        let mut is_due = true;
        loop {
            if is_due || watched.has_changed() {
                self.finish(read_file(path));
                self.ended.send_replace(());
            }
            is_due = false;
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// The keys of a file.
pub(crate) fn read_file(path: &Path) -> Result<JwtKeySet, KeysError> {
    let content = std::fs::read(path).map_err(|error| KeysError::File {
        path: path.to_owned(),
        error,
    })?;
    JwtKeySet::parse(&content).map_err(|error| KeysError::FileContent {
        path: path.to_owned(),
        error,
    })
}

/// A read under way; those who wait for its end learn of it, also if the task is dropped.
struct Attempt<'s>(&'s KeySource);

impl<'s> Attempt<'s> {
    fn begin(source: &'s KeySource) -> Self {
        let mut state = source.state();
        state.attempted = Some(SystemClock.now());
        (state.is_reading, state.is_wanted) = (true, false);
        Self(source)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.0.state().is_reading = false;
        self.0.ended.send_replace(());
    }
}

/// Keeps the keys of a guard current on a worker.
#[derive(Debug, Clone)]
pub(super) struct Keeper {
    source: Arc<KeySource>,
    wake: Rc<Notify>,
}

/// Whether other keys may come.
#[derive(Debug)]
pub(super) enum KeyWait {
    /// They have come meanwhile.
    Now,
    /// They are being read.
    Soon(watch::Receiver<()>),
    /// They were read just before.
    NotNow,
}

impl KeyWait {
    /// Waits until keys have been read, with success or not.
    pub(super) async fn end(self) {
        if let Self::Soon(mut ended) = self {
            // Its result shows in the keys.
            tokio::time::timeout(PATIENCE, ended.changed()).await.ok();
        }
    }
}

impl Keeper {
    /// Begins to keep them, for as long as the configuration is served.
    pub(super) fn start(source: &Arc<KeySource>, worker: &WorkerContext) -> Self {
        let keeper = Self {
            source: Arc::clone(source),
            wake: Rc::new(Notify::new()),
        };
        let kept = keeper.clone();
        match &source.plan.origin {
            KeyOrigin::Fixed => {}
            // One worker looks at it.
            KeyOrigin::File(_) if worker.worker() != 0 => {}
            KeyOrigin::File(path) => {
                let path = path.clone();
                worker.spawn(async move { kept.source.follow_file(&path).await });
            }
            KeyOrigin::Url(_) | KeyOrigin::Issuer(_) => {
                worker.spawn(async move { kept.fetch_when_due().await });
            }
        }
        keeper
    }

    async fn fetch_when_due(self) {
        let mut fetcher = None;
        loop {
            let due = self.source.state().due(&self.source.plan);
            tokio::select! {
                () = tokio::time::sleep_until(due.into()) => {}
                () = self.wake.notified() => {}
            }
            self.source.read(&mut fetcher).await;
        }
    }

    /// Has the keys read again, if those of this version are the last and were not read just before.
    pub(super) fn want(&self, version: u64) -> KeyWait {
        let source = &self.source;
        // Before the look at the state, so that no end is missed.
        let ended = source.ended.subscribe();
        let mut state = source.state();
        if source.version() != version {
            return KeyWait::Now;
        }
        if state.is_reading || state.is_wanted {
            return KeyWait::Soon(ended);
        }
        let is_fetched = matches!(source.plan.origin, KeyOrigin::Url(_) | KeyOrigin::Issuer(_));
        let earliest = state.earliest(&source.plan);
        if !is_fetched || earliest.is_some_and(|it| it > SystemClock.now()) {
            return KeyWait::NotNow;
        }
        state.is_wanted = true;
        drop(state);
        self.wake.notify_one();
        KeyWait::Soon(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(refetch: Duration, keys: Option<JwtKeySet>) -> KeySource {
        let plan = KeyPlan {
            origin: KeyOrigin::Issuer("https://id.test".to_owned()),
            trust: Trust::PublicRoots,
            refresh: Duration::from_mins(10),
            refetch,
            notices: Notices::default(),
        };
        KeySource::new(plan, keys)
    }

    fn keys(id: &str) -> JwtKeySet {
        let key = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let set = format!(
            "{{\"keys\": [{{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"kid\": \"{id}\", \"x\": \"{key}\"}}]}}"
        );
        JwtKeySet::parse(set.as_bytes()).unwrap()
    }

    fn away() -> KeysError {
        let url = Url::parse("https://id.test/keys").unwrap();
        KeysError::Status { url, status: 503 }
    }

    #[test]
    fn keys_stay_while_their_source_is_away_and_versions_grow_with_changes_alone() {
        let source = source(Duration::ZERO, None);
        assert_eq!(source.version(), 0);
        source.finish(Ok(keys("a")));
        source.finish(Ok(keys("a")));
        assert_eq!(source.version(), 1);
        source.finish(Err(away()));
        assert!(source.current().0.is_some());
        source.finish(Ok(keys("b")));
        assert_eq!(source.version(), 2);
        let status = source.status(SystemClock.now());
        assert_eq!((status.keys, status.reads, status.failures), (1, 3, 1));
    }

    #[test]
    fn reads_are_due_after_the_refresh_and_sooner_after_failures() {
        let source = source(Duration::from_secs(30), Some(keys("a")));
        let due = |source: &KeySource| {
            let state = source.state();
            state.due(&source.plan) - state.attempted.unwrap()
        };
        assert_eq!(due(&source), Duration::from_mins(10));
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            source.finish(Err(away()));
            assert_eq!(due(&source), Duration::from_secs(expected));
        }
        source.state().failed = 0;
        // A wanted read is due once an unknown key may lead to one.
        source.state().is_wanted = true;
        assert_eq!(due(&source), Duration::from_secs(30));
    }
}
