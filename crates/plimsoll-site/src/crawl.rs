//! The URLs of a site, found by following its links.
//!
//! Only URLs on the host of the first one are requested, each once, so many at a time, up to a limit.

mod anchors;
mod extract;
mod robots;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use plimsoll_client::fetch::{Ask, FetchError, FetchLimits, Fetched, Fetcher, FetcherError};
use url::Url;

use self::anchors::Anchors;
pub use self::extract::{PageLinks, css_links, html_links, sitemap_links};
pub use self::robots::Robots;

/// The plan of a crawl.
#[derive(Debug, Clone)]
pub struct CrawlPlan {
    /// Start URL.
    pub start: Url,
    /// Requests under way at a time.
    pub concurrency: usize,
    /// URLs that are requested at most.
    pub most: usize,
    /// For each of them.
    pub timeout: Duration,
    /// Whether paths that `robots.txt` disallows are left out.
    pub robots: bool,
    /// Whether links to places within pages (`page.html#part`) are checked.
    pub anchors: bool,
}

/// The result of a crawl.
#[derive(Debug, Clone, Default)]
pub struct Crawled {
    /// Everything that was requested, by its URL.
    pub found: BTreeMap<String, CrawledUrl>,
    /// Links to places that their pages do not have, by their URL with its fragment.
    pub missing_anchors: BTreeMap<String, CrawledUrl>,
    /// There was more than the limit.
    pub is_cut_short: bool,
    /// The first URL.
    start: String,
}

/// One thing.
#[derive(Debug, Clone, Default)]
pub struct CrawledUrl {
    /// Of its answer; absent where there was none.
    pub status: Option<u16>,
    /// Why there was none, or why its content could not be read.
    pub failure: Option<String>,
    /// Some of the pages that link to it.
    pub referrers: BTreeSet<String>,
}

impl CrawledUrl {
    /// Whether a link to it leads nowhere.
    pub fn is_broken(&self) -> bool {
        self.status.is_none_or(|status| status >= 400)
    }
}

impl Crawled {
    /// Paths with their queries, sorted, without the slash that each begins with, of what is not broken.
    pub fn paths(&self) -> Vec<String> {
        let urls = self.found.iter().filter(|(_, url)| !url.is_broken());
        let paths: BTreeSet<_> = urls
            .filter_map(|(url, _)| Url::parse(url).ok())
            .map(|url| {
                let query = url.query().map(|query| format!("?{query}"));
                let path = url.path().trim_start_matches('/');
                format!("{path}{}", query.unwrap_or_default())
            })
            .collect();
        paths.into_iter().collect()
    }

    /// The first URL.
    pub fn start(&self) -> Option<&CrawledUrl> {
        self.found.get(&self.start)
    }

    /// Links that lead to nothing.
    pub fn broken(&self) -> impl Iterator<Item = (&String, &CrawledUrl)> {
        let urls = self.found.iter().filter(|(_, url)| url.is_broken());
        urls.chain(&self.missing_anchors)
    }
}

/// Texts as a JSON array, one a line.
pub fn json_list(texts: &[String]) -> String {
    let json = serde_json::to_string_pretty(texts).expect("texts are JSON");
    format!("{json}\n")
}

/// Why a crawl cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// The URL is of another kind.
    #[error("`{0}` is no http:// or https:// URL")]
    Scheme(Url),
    /// Requests cannot be made.
    #[error("{0}")]
    Prepare(String),
    /// The first URL does not answer.
    #[error("{url} does not answer: {reason}")]
    Start {
        /// The URL.
        url: Url,
        /// Why.
        reason: String,
    },
}

impl From<FetcherError> for CrawlError {
    fn from(error: FetcherError) -> Self {
        Self::Prepare(error.to_string())
    }
}

/// Bytes of a page, style sheet or list that are read: Google's crawler reads 15 MB.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Pages that are named for each thing.
const MOST_REFERRERS: usize = 20;

/// Links with different anchors that are checked, for each URL of the limit.
const ANCHORS_PER_URL: usize = 100;

/// Follows the links of a site; must be called within a runtime.
pub async fn crawl(plan: &CrawlPlan) -> Result<Crawled, CrawlError> {
    if !["http", "https"].contains(&plan.start.scheme()) || plan.start.host().is_none() {
        return Err(CrawlError::Scheme(plan.start.clone()));
    }
    let limits = FetchLimits {
        timeout: plan.timeout,
        bytes: MOST_BYTES,
        redirects: 0,
    };
    let fetcher = Fetcher::new(limits)?;
    let mut crawl = Crawl {
        plan,
        robots: None,
        queue: VecDeque::new(),
        seen: HashSet::new(),
        anchors: plan
            .anchors
            .then(|| Anchors::new(plan.most.saturating_mul(ANCHORS_PER_URL))),
        crawled: Crawled::default(),
    };
    if let Some(list) = beside(&plan.start, "/robots.txt")
        && let Ok(fetched) = fetcher.get(&list, Ask::default()).await
        && fetched.status == 200
    {
        let robots = Robots::parse(&String::from_utf8_lossy(&fetched.content), "plimsoll");
        for sitemap in robots.sitemaps() {
            if let Ok(url) = plan.start.join(sitemap) {
                crawl.note(url, None);
            }
        }
        crawl.robots = Some(robots).filter(|_| plan.robots);
    }
    let mut start = plan.start.clone();
    start.set_fragment(None);
    crawl.note(start.clone(), None);
    // It is the usual place of a list, but there need not be one.
    let guess = beside(&plan.start, "/sitemap.xml");
    let mut is_guessed = false;
    if let Some(guess) = &guess
        && !crawl.seen.contains(guess.as_str())
    {
        is_guessed = true;
        crawl.note(guess.clone(), None);
    }
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < plan.concurrency.max(1)
            && let Some(url) = crawl.queue.pop_front()
        {
            let fetcher = &fetcher;
            running.push(async move {
                let ask = Ask {
                    known: None,
                    wants: Some(has_links),
                };
                (fetcher.get(&url, ask).await, url)
            });
        }
        let Some((result, url)) = running.next().await else {
            break;
        };
        crawl.accept_result(&url, result);
    }
    let mut crawled = crawl.crawled;
    crawled.missing_anchors = crawl.anchors.map(Anchors::broken).unwrap_or_default();
    crawled.start = start.to_string();
    if let Some(guess) = guess.filter(|_| is_guessed) {
        let is_broken = crawled
            .found
            .get(guess.as_str())
            .is_some_and(CrawledUrl::is_broken);
        let is_linked = |url: &CrawledUrl| !url.referrers.is_empty();
        if is_broken && !crawled.found.get(guess.as_str()).is_some_and(is_linked) {
            crawled.found.remove(guess.as_str());
        }
    }
    if let Some(first) = crawled.found.get(start.as_str())
        && first.status.is_none()
        && crawled.found.len() == 1
    {
        let reason = first.failure.clone().unwrap_or_default();
        return Err(CrawlError::Start { url: start, reason });
    }
    Ok(crawled)
}

/// A path at the root of the same host.
fn beside(start: &Url, path: &str) -> Option<Url> {
    start.join(path).ok()
}

fn has_links(content_type: &str) -> bool {
    let kind = content_type.to_ascii_lowercase();
    ["html", "css", "xml"]
        .iter()
        .any(|part| kind.contains(part))
        && !kind.starts_with("image/")
}

struct Crawl<'p> {
    plan: &'p CrawlPlan,
    robots: Option<Robots>,
    queue: VecDeque<Url>,
    seen: HashSet<String>,
    anchors: Option<Anchors>,
    crawled: Crawled,
}

impl Crawl<'_> {
    /// Notes a URL that is to be requested, if it is of this site.
    fn note(&mut self, mut url: Url, referrer: Option<&Url>) {
        url.set_fragment(None);
        if url.origin() != self.plan.start.origin() {
            return;
        }
        let allows = |robots: &Robots| {
            let query = url.query().map(|query| format!("?{query}"));
            robots.allows(&format!("{}{}", url.path(), query.unwrap_or_default()))
        };
        if !self.robots.as_ref().is_none_or(allows) {
            return;
        }
        let text = url.to_string();
        if !self.seen.contains(&text) {
            if self.seen.len() == self.plan.most {
                self.crawled.is_cut_short = true;
                return;
            }
            self.seen.insert(text.clone());
            self.queue.push_back(url);
        }
        let found = self.crawled.found.entry(text).or_default();
        if let Some(referrer) = referrer
            && found.referrers.len() < MOST_REFERRERS
        {
            found.referrers.insert(referrer.to_string());
        }
    }

    /// Takes what came of a request, and the links in it.
    fn accept_result(&mut self, url: &Url, result: Result<Fetched, FetchError>) {
        let found = self.crawled.found.entry(url.to_string()).or_default();
        let fetched = match result {
            Ok(fetched) => fetched,
            Err(error) => {
                found.failure = Some(error.to_string());
                return;
            }
        };
        found.status = Some(fetched.status);
        if (300..400).contains(&fetched.status) {
            let target = fetched.field("location");
            let target = target.as_deref();
            if let Some(target) = target.and_then(|target| url.join(target).ok()) {
                if let Some(anchors) = &mut self.anchors {
                    anchors.add_redirect(url, target.clone());
                }
                self.note(target, Some(url));
            }
            return;
        }
        if fetched.status != 200 {
            return;
        }
        let kind = fetched.content_type().to_ascii_lowercase();
        let text = String::from_utf8_lossy(&fetched.content);
        let links = if kind.contains("html") {
            let page = html_links(&text, url);
            if let Some(anchors) = &mut self.anchors {
                for link in &page.links {
                    self.crawled.is_cut_short |= !anchors.add_link(link, url);
                }
                anchors.add_page(url, page.anchors);
            }
            page.links
        } else if kind.contains("css") {
            css_links(&text, url)
        } else if kind.contains("xml") {
            sitemap_links(&text, url)
        } else {
            Vec::new()
        };
        for link in links {
            self.note(link, Some(url));
        }
    }
}
