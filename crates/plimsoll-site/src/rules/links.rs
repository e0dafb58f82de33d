//! Short links from a file or a URL, loaded by a background task and again from time to time.
//!
//! Requests only ever look at what was loaded: none of them causes a fetch. A list that cannot be had, or is
//! none, leaves the last good one in place.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use plimsoll_client::fetch::{Ask, FetchError, FetchLimits, Fetcher, FetcherError};
use plimsoll_formats::site::{Alias, Lenient, parse_aliases};
use plimsoll_server::Notices;
use plimsoll_wire::{Background, BackgroundTask};
use tokio::sync::Notify;
use tokio::time::timeout;
use url::Url;

use crate::events::SiteEvent;

/// Source of short links, and its refresh interval.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LinkSource {
    /// The file or URL.
    pub place: LinkPlace,
    /// Time after which a list from a URL is requested again; a file is checked every second.
    pub refresh: Duration,
}

/// A file or a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LinkPlace {
    /// Lines of aliases and URLs.
    File(PathBuf),
    /// The same behind `http://` or `https://`.
    Url(Url),
}

/// Limits of a fetch.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(10),
    bytes: 4 * 1024 * 1024,
    redirects: 5,
};

/// Interval at which a file is checked.
const LOOK: Duration = Duration::from_secs(1);

/// A list is not requested more often, whatever is configured.
const SHORTEST: Duration = Duration::from_millis(10);

/// Links that hold now.
#[derive(Debug, Default)]
pub(crate) struct Links {
    map: RwLock<Arc<HashMap<String, HeaderValue>>>,
    /// Has the list loaded again at once.
    wake: Arc<Notify>,
    /// The task that loads it, until it is dropped; nothing for a list that never changes.
    task: OnceLock<BackgroundTask>,
}

/// The lists that the sites of a server use: a reload of its configuration goes on with those that it has loaded.
#[derive(Debug, Default)]
pub(crate) struct LinkLists {
    in_use: Mutex<Vec<(LinkSource, Weak<Links>)>>,
    background: Arc<Background>,
}

impl LinkLists {
    /// One for all sites of a configuration.
    pub(crate) const IDENTITY: &str = "short links";

    /// The lists whose tasks run there.
    pub(crate) fn new(background: Arc<Background>) -> Self {
        Self {
            in_use: Mutex::default(),
            background,
        }
    }

    /// The links of `source`; if they are in use already, they are loaded again in a moment.
    ///
    /// - `notices`: receives what becomes of them, if they were not in use before.
    pub(crate) fn links(&self, source: &LinkSource, notices: &Notices) -> Arc<Links> {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|(_, links)| links.strong_count() > 0);
        let known = in_use.iter().find(|(known, _)| known == source);
        if let Some(links) = known.and_then(|(_, links)| links.upgrade()) {
            links.wake.notify_one();
            return links;
        }
        let links = Arc::new(Links::default());
        in_use.push((source.clone(), Arc::downgrade(&links)));
        drop(in_use);
        let (links_weak, wake) = (Arc::downgrade(&links), Arc::clone(&links.wake));
        let (source_of_task, notices_of_task) = (source.clone(), notices.clone());
        match self
            .background
            .spawn(move || Loader::new(source_of_task, notices_of_task).run(links_weak, wake))
        {
            Ok(task) => drop(links.task.set(task)),
            Err(error) => {
                let reason = format!("cannot start a task: {error}");
                let event = SiteEvent::LinksKept {
                    source: &source.place.to_string(),
                    reason: &reason,
                    links: 0,
                };
                notices.report(&event.into());
            }
        }
        links
    }

    /// Has every list in use loaded again in a moment; how many there are.
    ///
    /// A list that is being loaded is loaded once more, however often this is called meanwhile.
    pub(crate) fn refresh(&self) -> usize {
        let in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let lists = in_use.iter().filter_map(|(_, links)| links.upgrade());
        lists.map(|list| list.wake.notify_one()).count()
    }
}

impl Links {
    /// Those of a text; its mistakes were reported when it was packed.
    pub(crate) fn fixed(text: &str) -> Arc<Self> {
        Arc::new(Self {
            map: RwLock::new(Arc::new(map_of(parse_aliases(text)))),
            ..Self::default()
        })
    }

    /// The URL that an alias stands for.
    ///
    /// - `alias`: decoded, without slashes at either end.
    pub(crate) fn url(&self, alias: &str) -> Option<HeaderValue> {
        self.map().get(alias).cloned()
    }

    /// Number of links.
    pub(crate) fn count(&self) -> usize {
        self.map().len()
    }

    fn map(&self) -> Arc<HashMap<String, HeaderValue>> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Credentials of a URL are not shown.
impl std::fmt::Display for LinkPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url(url) if has_credentials(url) => {
                let mut shown = url.clone();
                // Both fail only for URLs that cannot have credentials.
                shown.set_username("***").ok();
                shown.set_password(None).ok();
                shown.fmt(f)
            }
            Self::Url(url) => url.fmt(f),
        }
    }
}

/// Why a list is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// The system gives no poller or no timers.
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    /// The file.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// TLS or the names of the system.
    #[error(transparent)]
    Fetcher(#[from] FetcherError),
    /// The server.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It is longer than any list of people.
    #[error("it is longer than {} bytes", LIMITS.bytes)]
    TooLong,
    /// A response that is neither the list nor that it is the same.
    #[error("its server answers {0}")]
    Status(u16),
    /// Shorteners answer so to those who are not signed in.
    #[error("it is a page, not a list")]
    Page,
    /// The text.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// No line of it is a redirect.
    #[error("it has no redirects")]
    Empty,
    /// It has not changed since it was loaded.
    #[error("it is what it was")]
    Same,
}

/// Loads a list once, waiting for it.
pub fn load_links(place: &LinkPlace) -> Result<Lenient<Alias>, LinksError> {
    let source = LinkSource {
        place: place.clone(),
        refresh: Duration::MAX,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LinksError::Runtime)?;
    let mut loader = Loader::new(source, Notices::default());
    match runtime.block_on(loader.load())? {
        Some(links) => Ok(links),
        None => Err(LinksError::Same),
    }
}

/// Loads one list.
struct Loader {
    source: LinkSource,
    notices: Notices,
    /// Of the list that was loaded last.
    tag: Option<String>,
    stamp: Option<(SystemTime, u64)>,
    fetcher: Option<Fetcher>,
    /// The error of the last attempt; the same is not reported twice.
    last_error: Option<String>,
}

/// The outcome of an attempt to load.
enum LoadOutcome {
    Same,
    Text(String),
}

impl Loader {
    fn new(source: LinkSource, notices: Notices) -> Self {
        Self {
            source,
            notices,
            tag: None,
            stamp: None,
            fetcher: None,
            last_error: None,
        }
    }

    /// Loads the list when it is due, and when it is woken. The links are not kept by what loads them.
    async fn run(mut self, links: Weak<Links>, wake: Arc<Notify>) {
        let patience = match self.source.place {
            LinkPlace::File(_) => LOOK.min(self.source.refresh.max(SHORTEST)),
            LinkPlace::Url(_) => self.source.refresh.max(SHORTEST),
        };
        loop {
            let loaded = self.load().await;
            let Some(links) = links.upgrade() else {
                return;
            };
            self.adopt(loaded, &links);
            drop(links);
            // Both ways it is time.
            timeout(patience, wake.notified()).await.ok();
        }
    }

    /// The list, unless it is what it was.
    async fn load(&mut self) -> Result<Option<Lenient<Alias>>, LinksError> {
        let loaded = match self.source.place.clone() {
            LinkPlace::File(path) => self.read(&path),
            LinkPlace::Url(url) => self.fetch(&url).await,
        };
        match loaded? {
            LoadOutcome::Same => Ok(None),
            LoadOutcome::Text(text) => {
                let parsed = parse_aliases(&text);
                if parsed.entries.is_empty() {
                    return Err(LinksError::Empty);
                }
                Ok(Some(parsed))
            }
        }
    }

    /// Puts a loaded list in place, and reports it.
    fn adopt(&mut self, loaded: Result<Option<Lenient<Alias>>, LinksError>, links: &Links) {
        let shown = self.source.place.to_string();
        let parsed = match loaded {
            Ok(None) => return,
            Ok(Some(parsed)) => parsed,
            Err(error) => {
                let reason = error.to_string();
                if self.last_error.as_ref() != Some(&reason) {
                    self.report(SiteEvent::LinksKept {
                        source: &shown,
                        reason: &reason,
                        links: links.count(),
                    });
                    self.last_error = Some(reason);
                }
                return;
            }
        };
        self.last_error = None;
        for remark in &parsed.remarks {
            self.report(SiteEvent::Remark {
                source: &shown,
                remark,
            });
        }
        let map = map_of(parsed);
        self.report(SiteEvent::LinksLoaded {
            source: &shown,
            links: map.len(),
        });
        *links.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
    }

    fn report(&self, event: SiteEvent<'_>) {
        self.notices.report(&event.into());
    }

    fn read(&mut self, path: &Path) -> Result<LoadOutcome, LinksError> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let stamp = metadata.modified().ok().map(|time| (time, metadata.len()));
        if stamp.is_some() && stamp == self.stamp {
            return Ok(LoadOutcome::Same);
        }
        let mut bytes = Vec::new();
        file.take(LIMITS.bytes + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LIMITS.bytes {
            return Err(LinksError::TooLong);
        }
        self.stamp = stamp;
        text(bytes)
    }

    async fn fetch(&mut self, url: &Url) -> Result<LoadOutcome, LinksError> {
        let fetcher = match self.fetcher.take() {
            Some(fetcher) => fetcher,
            None => Fetcher::new(LIMITS)?,
        };
        let ask = Ask {
            known: self.tag.as_deref(),
            wants: None,
        };
        let answer = fetcher.get(url, ask).await;
        self.fetcher = Some(fetcher);
        let answer = answer?;
        match answer.status {
            200 => {}
            304 if self.tag.is_some() => return Ok(LoadOutcome::Same),
            status => return Err(LinksError::Status(status)),
        }
        if answer.content_type().to_ascii_lowercase().contains("html") {
            return Err(LinksError::Page);
        }
        let tag = answer.field("etag").map(Cow::into_owned);
        let loaded = text(answer.content)?;
        self.tag = tag;
        Ok(loaded)
    }
}

fn map_of(parsed: Lenient<Alias>) -> HashMap<String, HeaderValue> {
    let entries = parsed.entries.into_iter().filter_map(|alias| {
        let url = HeaderValue::from_str(&alias.url).ok()?;
        Some((alias.name, url))
    });
    entries.collect()
}

fn text(bytes: Vec<u8>) -> Result<LoadOutcome, LinksError> {
    String::from_utf8(bytes)
        .map(LoadOutcome::Text)
        .map_err(|_| LinksError::NotUtf8)
}
