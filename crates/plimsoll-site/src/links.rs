//! Short links from a file or a URL, loaded by a thread of their own and again from time to time.
//!
//! Requests only ever look at what was loaded: none of them causes a fetch. A list that cannot be had, or is
//! none, leaves the last good one in place.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::thread;
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use plimsoll_client::fetch::{Ask, FetchLimits, Fetcher};
use plimsoll_formats::site::{Alias, Lenient, parse_aliases};
use plimsoll_model::Clock;
use plimsoll_server::Notices;
use plimsoll_wire::SystemClock;
use tokio::runtime::Runtime;
use url::Url;

use crate::events::SiteEvent;

/// Where links come from, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LinkSource {
    /// The file or URL.
    pub place: LinkPlace,
    /// How long a list from a URL holds before it is requested again; a file is looked at every second.
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

/// How often the thread looks whether it is still wanted, and whether a file has changed.
const LOOK: Duration = Duration::from_secs(1);

/// A list is not requested more often, whatever is configured.
const SHORTEST: Duration = Duration::from_millis(10);

/// Links that hold now.
#[derive(Debug)]
pub(crate) struct Links {
    map: RwLock<Arc<HashMap<String, HeaderValue>>>,
    wake: SyncSender<()>,
}

/// Lists that are in use, so that a reload of the configuration goes on with what it has.
static IN_USE: Mutex<Vec<(LinkSource, Weak<Links>)>> = Mutex::new(Vec::new());

impl Links {
    /// The links of `source`; if they are in use already, they are loaded again in a moment.
    ///
    /// - `notices`: receives what becomes of them, if they were not in use before.
    pub(crate) fn of(source: &LinkSource, notices: &Notices) -> Arc<Self> {
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|(_, links)| links.strong_count() > 0);
        let known = in_use.iter().find(|(known, _)| known == source);
        if let Some(links) = known.and_then(|(_, links)| links.upgrade()) {
            // If one is waiting to be heard already, that is enough.
            links.wake.try_send(()).ok();
            return links;
        }
        let (wake, woken) = sync_channel(1);
        let links = Arc::new(Self {
            map: RwLock::default(),
            wake,
        });
        in_use.push((source.clone(), Arc::downgrade(&links)));
        drop(in_use);
        let links_weak = Arc::downgrade(&links);
        let (source, of_thread) = (source.clone(), notices.clone());
        let shown = source.place.to_string();
        let thread = thread::Builder::new().name("site-links".to_owned());
        if let Err(error) =
            thread.spawn(move || Loader::new(source, of_thread).run(&links_weak, &woken))
        {
            let reason = format!("cannot start a thread: {error}");
            let event = SiteEvent::LinksKept {
                source: &shown,
                reason: &reason,
                links: 0,
            };
            notices.report(&event.into());
        }
        links
    }

    /// Those of a text; its mistakes were reported when it was packed.
    pub(crate) fn fixed(text: &str) -> Arc<Self> {
        Arc::new(Self {
            map: RwLock::new(Arc::new(map_of(parse_aliases(text)))),
            wake: sync_channel(1).0,
        })
    }

    /// The URL that an alias stands for.
    ///
    /// - `alias`: decoded, without slashes at either end.
    pub(crate) fn url(&self, alias: &str) -> Option<HeaderValue> {
        self.map().get(alias).cloned()
    }

    /// How many there are.
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

/// Has every list in use requested again in a moment; how many there are.
///
/// A list that is being loaded is loaded once more, however often this is called meanwhile.
pub(crate) fn refresh() -> usize {
    let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let lists = in_use.iter().filter_map(|(_, links)| links.upgrade());
    let lists: Vec<_> = lists.collect();
    for list in &lists {
        // If one is waiting to be heard already, that is enough.
        list.wake.try_send(()).ok();
    }
    lists.len()
}

/// Loads a list once, waiting for it.
///
/// Fails with what is wrong with the place, or with a list that has no entry.
pub fn load_links(place: &LinkPlace) -> Result<Lenient<Alias>, String> {
    let source = LinkSource {
        place: place.clone(),
        refresh: Duration::MAX,
    };
    match Loader::new(source, Notices::default()).load()? {
        Some(links) => Ok(links),
        None => Err("it is what it was".to_owned()),
    }
}

/// Loads one list.
struct Loader {
    source: LinkSource,
    notices: Notices,
    /// Of the list that was loaded last.
    tag: Option<String>,
    stamp: Option<(SystemTime, u64)>,
    fetcher: Option<(Runtime, Fetcher)>,
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

    fn run(mut self, links_weak: &Weak<Links>, woken: &Receiver<()>) {
        let mut due = SystemClock.now();
        let mut is_woken = false;
        while let Some(links) = links_weak.upgrade() {
            let is_file = matches!(self.source.place, LinkPlace::File(_));
            if is_woken || is_file || SystemClock.now() >= due {
                self.renew(&links);
                due = SystemClock.now() + self.source.refresh;
            }
            drop(links);
            let patience = LOOK.min(self.source.refresh.max(SHORTEST));
            is_woken = woken.recv_timeout(patience).is_ok();
        }
    }

    /// The list, unless it is what it was.
    fn load(&mut self) -> Result<Option<Lenient<Alias>>, String> {
        let loaded = match self.source.place.clone() {
            LinkPlace::File(path) => self.read(&path),
            LinkPlace::Url(url) => self.fetch(&url),
        };
        match loaded? {
            LoadOutcome::Same => Ok(None),
            LoadOutcome::Text(text) => {
                let parsed = parse_aliases(&text);
                if parsed.entries.is_empty() {
                    return Err("it has no redirects".to_owned());
                }
                Ok(Some(parsed))
            }
        }
    }

    fn renew(&mut self, links: &Links) {
        let shown = self.source.place.to_string();
        let parsed = self.load();
        let parsed = match parsed {
            Ok(None) => return,
            Ok(Some(parsed)) => parsed,
            Err(reason) => {
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

    fn read(&mut self, path: &Path) -> Result<LoadOutcome, String> {
        let describe = |error: std::io::Error| format!("cannot be read: {error}");
        let file = File::open(path).map_err(describe)?;
        let metadata = file.metadata().map_err(describe)?;
        let stamp = metadata.modified().ok().map(|time| (time, metadata.len()));
        if stamp.is_some() && stamp == self.stamp {
            return Ok(LoadOutcome::Same);
        }
        let mut bytes = Vec::new();
        let read = file.take(LIMITS.bytes + 1).read_to_end(&mut bytes);
        read.map_err(describe)?;
        if bytes.len() as u64 > LIMITS.bytes {
            return Err(format!("it is longer than {} bytes", LIMITS.bytes));
        }
        self.stamp = stamp;
        text(bytes)
    }

    fn fetch(&mut self, url: &Url) -> Result<LoadOutcome, String> {
        let (runtime, fetcher) = match self.fetcher.take() {
            Some(fetcher) => fetcher,
            None => made()?,
        };
        let ask = Ask {
            known: self.tag.as_deref(),
            wants: None,
        };
        let answer = runtime.block_on(fetcher.get(url, ask));
        self.fetcher = Some((runtime, fetcher));
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status {
            200 => {}
            304 if self.tag.is_some() => return Ok(LoadOutcome::Same),
            status => return Err(format!("its server answers {status}")),
        }
        if answer.content_type().to_ascii_lowercase().contains("html") {
            return Err("it is a page, not a list".to_owned());
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

fn made() -> Result<(Runtime, Fetcher), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let fetcher = Fetcher::new(LIMITS).map_err(|error| error.to_string())?;
    Ok((runtime, fetcher))
}

fn text(bytes: Vec<u8>) -> Result<LoadOutcome, String> {
    String::from_utf8(bytes)
        .map(LoadOutcome::Text)
        .map_err(|_| "it is not UTF-8".to_owned())
}
