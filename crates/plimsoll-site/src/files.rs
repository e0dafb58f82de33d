//! The action: files of a tree, answered from what is kept in memory where nothing has changed.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use plimsoll_formats::site::Dialect;
use plimsoll_model::Clock;
use plimsoll_server::{Action, Answer, Notices, Request, Response};
use plimsoll_wire::SystemClock;

use crate::cache::{Hit, PageCache};
use crate::figures::{SiteFigures, WorkerFigures};
use crate::links::{LinkSource, Links};
use crate::listing;
use crate::live::Live;
use crate::media;
use crate::page::{Page, Parts};
use crate::path::SitePath;
use crate::resolve::{Layout, NOT_FOUND, Resolved, not_found_page};
use crate::rule_files::{self, RuleFiles};
use crate::rules::{Asked, Rules, Told};
use crate::tree::{SiteFile, StoredCopy, Tree};

/// How a site answers, whatever it is made of.
#[derive(Debug, Clone)]
pub struct SitePlan {
    /// How paths are understood.
    pub layout: Layout,
    /// Taken off the beginning of every path; begins with a slash and does not end with one. Empty for none.
    pub strip: String,
    /// What is compressed when it is asked for, besides the copies that are stored.
    pub compresses: bool,
    /// `cache-control` of files.
    pub cache_control: CacheControl,
    /// Bytes of content that each worker keeps in memory.
    pub cache_bytes: u64,
    /// `_redirects` and `_headers` at the root are heeded, as this dialect has them.
    pub dialect: Option<Dialect>,
    /// Short links, for paths that name no file.
    pub links: Vec<LinkSource>,
    /// What clients are told of short links: 301, 302, 303, 307 or 308.
    pub redirect_status: StatusCode,
    /// `cache-control` of redirects, if they have one.
    pub redirect_cache_control: Option<HeaderValue>,
    /// Who is told what happens to links and rules.
    pub notices: Notices,
}

/// What a site says of how long its files may be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CacheControl {
    /// What their names tell; that others may be kept, but have to be asked about each time.
    #[default]
    ByName,
    /// This of every file; pages for what is not there have to be asked about each time.
    Always(HeaderValue),
    /// Nothing.
    Nothing,
}

impl CacheControl {
    /// Of the file called `name`, with which it is answered by `status`.
    fn of(&self, name: &str, status: StatusCode) -> Option<HeaderValue> {
        match self {
            Self::Nothing => None,
            _ if status != StatusCode::OK => Some(HeaderValue::from_static("no-cache")),
            Self::Always(given) => Some(given.clone()),
            Self::ByName => Some(media::cache_control(name)),
        }
    }
}

impl Default for SitePlan {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            strip: String::new(),
            compresses: true,
            cache_control: CacheControl::default(),
            cache_bytes: CACHE_BYTES,
            dialect: None,
            links: Vec::new(),
            redirect_status: StatusCode::PERMANENT_REDIRECT,
            redirect_cache_control: Some(HeaderValue::from_static("no-cache")),
            notices: Notices::default(),
        }
    }
}

/// Bytes of content that a worker keeps unless it is told otherwise.
pub(crate) const CACHE_BYTES: u64 = 8 * 1024 * 1024;

/// The methods that a site answers.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// What the workers of a site share.
#[derive(Debug)]
pub(crate) struct Shared {
    plan: SitePlan,
    rules: Option<RuleFiles>,
    links: Vec<Arc<Links>>,
    live: Option<Arc<Live>>,
}

impl Shared {
    /// - `fixed`: lines of aliases and URLs that never change.
    /// - `figures`: where the links are counted, if anybody wants to know.
    /// - `live`: what pages are told of changes by, if they are.
    pub(crate) fn new(
        plan: SitePlan,
        fixed: &str,
        figures: Option<&SiteFigures>,
        live: Option<Live>,
    ) -> Self {
        let mut links = Vec::new();
        if !fixed.is_empty() {
            links.push(Links::fixed(fixed));
        }
        let notices = &plan.notices;
        links.extend(plan.links.iter().map(|source| Links::of(source, notices)));
        if let Some(figures) = figures {
            figures.count_links(&links);
        }
        Self {
            rules: plan
                .dialect
                .map(|dialect| RuleFiles::new(dialect, notices.clone())),
            links,
            live: live.map(Arc::new),
            plan,
        }
    }
}

/// Answers with files.
pub(crate) struct Files {
    shared: Arc<Shared>,
    tree: Rc<dyn Tree>,
    cache: RefCell<PageCache>,
    rules: RefCell<Arc<Rules>>,
    /// What the rules are known to be of.
    rules_of: Cell<Option<u64>>,
    figures: Option<Arc<WorkerFigures>>,
}

/// A request on its way to a file.
struct Looked<'a, 'r> {
    request: &'a Request<'r>,
    path: SitePath,
    rules: Arc<Rules>,
    generation: u64,
}

impl Looked<'_, '_> {
    /// What rules are matched by.
    fn asked<'p>(&'p self, decoded: &'p str) -> Asked<'p> {
        Asked {
            host: self.request.host(),
            path: decoded,
            query: self.request.query,
        }
    }
}

/// A path of the tree, decoded, with slashes as they were asked for.
fn decoded(path: &SitePath) -> String {
    let slash = if path.has_slash && !path.joined.is_empty() {
        "/"
    } else {
        ""
    };
    format!("/{}{slash}", path.joined)
}

impl Files {
    /// - `figures`: what it counts in, if anybody wants to know.
    pub(crate) fn new(
        shared: Arc<Shared>,
        tree: Rc<dyn Tree>,
        figures: Option<Arc<WorkerFigures>>,
    ) -> Self {
        Self {
            figures,
            cache: RefCell::new(PageCache::new(shared.plan.cache_bytes)),
            rules: RefCell::new(rule_files::none()),
            rules_of: Cell::new(None),
            shared,
            tree,
        }
    }

    fn plan(&self) -> &SitePlan {
        &self.shared.plan
    }

    /// The rules as they are now.
    fn rules(&self, generation: u64) -> Arc<Rules> {
        if let Some(files) = &self.shared.rules
            && self.rules_of.get() != Some(generation)
        {
            let rules = files.rules(&*self.tree, &self.plan().layout);
            if !Arc::ptr_eq(&rules, &self.rules.borrow()) {
                // Pages say what the rules have told of them.
                self.cache.borrow_mut().clear();
                self.rules.replace(rules);
            }
            self.rules_of.set(Some(generation));
        }
        Arc::clone(&self.rules.borrow())
    }

    /// The answer of a page that is known to be as it was.
    #[inline]
    fn at_hand(&self, page: &Rc<Page>, request: &Request<'_>) -> Answer {
        if let Some(figures) = &self.figures {
            figures.hit();
        }
        page.answer(request)
    }

    /// The answer to a path that is not kept, or not known to be the same.
    fn look(&self, looked: &Looked<'_, '_>, key: &str, stale: Option<Rc<Page>>) -> Answer {
        let resolved = match self.plan().layout.resolve(&*self.tree, &looked.path) {
            Ok(resolved) => resolved,
            Err(error) => return unreadable(&error),
        };
        if stale.is_some() && !matches!(resolved, Resolved::File(..)) {
            self.cache.borrow_mut().remove(key);
        }
        match resolved {
            // A page that says that something is not there says so wherever it is met.
            Resolved::File(name, _) if name.rsplit('/').next() == Some(NOT_FOUND) => {
                self.not_found(looked, &name)
            }
            Resolved::File(name, file) => self.page(looked, key, name, file, StatusCode::OK, stale),
            Resolved::Redirect(to) => self.redirect(looked.request, &to),
            Resolved::Listing(directory) => match self.tree.list(&directory) {
                Ok(mut entries) => {
                    if !self.plan().layout.hidden {
                        entries.retain(|entry| !entry.name.starts_with('.'));
                    }
                    Answer::now(listing::respond(looked.request, &directory, entries))
                }
                Err(error) => unreadable(&error),
            },
            Resolved::Fallback(name, file) => match self.elsewhere(looked) {
                Some(answer) => answer,
                None => self.inner_page(looked, name, file, StatusCode::OK),
            },
            Resolved::NotFound => match self.elsewhere(looked) {
                Some(answer) => answer,
                None => self.not_found(looked, &looked.path.joined),
            },
        }
    }

    /// What rules and links say of a path that names no file.
    fn elsewhere(&self, looked: &Looked<'_, '_>) -> Option<Answer> {
        let decoded = decoded(&looked.path);
        if let Some(told) = looked.rules.redirect(looked.asked(&decoded), false) {
            return Some(self.told(looked, &told));
        }
        let name = &looked.path.joined;
        let url = self.shared.links.iter().find_map(|links| links.url(name))?;
        // A link to itself would be followed for ever.
        let own = format!("{}{}", looked.request.authority, looked.request.path);
        let target = url.to_str().unwrap_or_default();
        let target = target.split_once("://").map_or("", |(_, rest)| rest);
        if target.eq_ignore_ascii_case(&own) {
            return None;
        }
        if let Some(figures) = &self.figures {
            figures.redirected(name);
        }
        Some(self.sent_on(self.plan().redirect_status, url))
    }

    /// A redirect that a rule or a link asks for.
    fn sent_on(&self, status: StatusCode, location: HeaderValue) -> Answer {
        let response = Response::new(status).with_field(LOCATION, location);
        Answer::now(match &self.plan().redirect_cache_control {
            Some(value) => response.with_field(CACHE_CONTROL, value.clone()),
            None => response,
        })
    }

    /// Does what a rule says.
    fn told(&self, looked: &Looked<'_, '_>, told: &Told) -> Answer {
        if told.status == 200 || told.status == 404 {
            let end = told.to.find(['?', '#']).unwrap_or(told.to.len());
            let target = SitePath::parse(told.to.get(..end).unwrap_or_default());
            let Ok(target) = target else {
                return self.not_found(looked, &looked.path.joined);
            };
            let status = StatusCode::from_u16(told.status).unwrap_or(StatusCode::OK);
            return match self.plan().layout.resolve(&*self.tree, &target) {
                Ok(Resolved::File(name, file) | Resolved::Fallback(name, file)) => {
                    self.inner_page(looked, name, file, status)
                }
                Ok(_) => self.not_found(looked, &looked.path.joined),
                Err(error) => unreadable(&error),
            };
        }
        let strip = if told.to.starts_with('/') {
            self.plan().strip.as_str()
        } else {
            ""
        };
        let location = HeaderValue::from_str(&format!("{strip}{}", told.to));
        let status = StatusCode::from_u16(told.status);
        let (Ok(location), Ok(status)) = (location, status) else {
            return unredirectable();
        };
        self.sent_on(status, location)
    }

    fn not_found(&self, looked: &Looked<'_, '_>, path: &str) -> Answer {
        match not_found_page(&*self.tree, path) {
            Ok(Some((name, file))) => self.inner_page(looked, name, file, StatusCode::NOT_FOUND),
            Ok(None) => not_found_text(),
            Err(error) => unreadable(&error),
        }
    }

    /// A file that answers for many paths, kept by its own.
    fn inner_page(
        &self,
        looked: &Looked<'_, '_>,
        name: String,
        file: SiteFile,
        status: StatusCode,
    ) -> Answer {
        // No path of a request begins like this.
        let key = format!("{} {name}", status.as_u16());
        let hit = self.cache.borrow_mut().get(&key, looked.generation);
        let known = hit.map(|(Hit::Fresh(page) | Hit::Stale(page))| page);
        self.page(looked, &key, name, file, status, known)
    }

    fn page(
        &self,
        looked: &Looked<'_, '_>,
        key: &str,
        name: String,
        file: SiteFile,
        status: StatusCode,
        known: Option<Rc<Page>>,
    ) -> Answer {
        let copies = self.tree.copies(&name, &file);
        let page = match known.filter(|known| known.is_of(&name, &file, &copies)) {
            Some(page) => page,
            None => match self.load(looked, name, file, copies, status) {
                Ok(page) => page,
                Err(error) => return unreadable(&error),
            },
        };
        let answer = page.answer(looked.request);
        if self.shared.live.is_none() {
            self.cache.borrow_mut().put(key, page, looked.generation);
        }
        answer
    }

    /// The path below what is taken off.
    fn stripped<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.plan().strip.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }

    fn load(
        &self,
        looked: &Looked<'_, '_>,
        path: String,
        file: SiteFile,
        mut copies: Vec<StoredCopy>,
        status: StatusCode,
    ) -> io::Result<Rc<Page>> {
        let now = SystemClock.wall().duration_since(std::time::UNIX_EPOCH);
        let mut fields = HeaderMap::new();
        let name = path.rsplit('/').next().unwrap_or_default();
        fields.insert(CONTENT_TYPE, media::media_type(name));
        if let Some(cache_control) = self.plan().cache_control.of(name, status) {
            fields.insert(CACHE_CONTROL, cache_control);
        }
        // What answers for many paths says what holds for its own.
        let decoded = if status == StatusCode::OK && !looked.path.has_gaps {
            decoded(&looked.path)
        } else {
            format!("/{path}")
        };
        looked.rules.apply(looked.asked(&decoded), &mut fields);
        let mut content = None;
        if let Some(live) = &self.shared.live {
            Live::allow(&mut fields);
            content = live.injected(&fields, &file.part);
            copies.clear();
        }
        let parts = Parts {
            path,
            file,
            copies,
            status,
            fields,
            content,
            compresses: self.plan().compresses && self.shared.live.is_none(),
            now: now.map_or(0, |now| now.as_secs()),
        };
        Page::load(parts, self.cache.borrow().ledger()).map(Rc::new)
    }

    fn redirect(&self, request: &Request<'_>, to: &str) -> Answer {
        let query = request.query.map(|query| format!("?{query}"));
        let to = format!("{}{to}{}", self.plan().strip, query.unwrap_or_default());
        let Ok(to) = HeaderValue::from_str(&to) else {
            return unredirectable();
        };
        // Whether there is a directory may change, so this is asked about again.
        Answer::now(
            Response::new(StatusCode::PERMANENT_REDIRECT)
                .with_field(LOCATION, to)
                .with_field(CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        )
    }
}

impl Action for Files {
    fn handle(&self, request: &Request<'_>) -> Answer {
        match request.method {
            "GET" | "HEAD" => {}
            "OPTIONS" => return Answer::now(allowing(Response::new(StatusCode::NO_CONTENT))),
            _ => {
                let text = "only GET, HEAD and OPTIONS are answered\n";
                let refusal = Response::text(StatusCode::METHOD_NOT_ALLOWED, text);
                return Answer::now(allowing(refusal));
            }
        }
        if let Some(live) = &self.shared.live
            && let Some(answer) = live.answer(request.path)
        {
            return answer;
        }
        // Read before anything is looked at: what changes meanwhile is looked at again the next time.
        let generation = self.tree.generation();
        let rules = self.rules(generation);
        let host_key;
        let key = if rules.depends_on_host() {
            host_key = format!("/{} {}", request.host(), request.path);
            &host_key
        } else {
            request.path
        };
        let is_direct = !rules.has_forced();
        let hit = if is_direct {
            self.cache.borrow_mut().get(key, generation)
        } else {
            None
        };
        let mut stale = match hit {
            Some(Hit::Fresh(page)) => return self.at_hand(&page, request),
            Some(Hit::Stale(page)) => Some(page),
            None => None,
        };
        let Some(raw) = self.stripped(request.path) else {
            return not_found_text();
        };
        let path = match SitePath::parse(raw) {
            // The root of what is taken off, without its slash.
            Ok(path) if raw.is_empty() => SitePath {
                has_slash: false,
                ..path
            },
            Ok(path) => path,
            Err(error) => {
                let text = format!("{error}\n");
                return Answer::now(Response::text(StatusCode::BAD_REQUEST, text));
            }
        };
        let looked = Looked {
            request,
            path,
            rules,
            generation,
        };
        if !is_direct {
            let decoded = decoded(&looked.path);
            if let Some(told) = looked.rules.redirect(looked.asked(&decoded), true) {
                return self.told(&looked, &told);
            }
            let hit = self.cache.borrow_mut().get(key, generation);
            match hit {
                Some(Hit::Fresh(page)) => return self.at_hand(&page, request),
                Some(Hit::Stale(page)) => stale = Some(page),
                None => {}
            }
        }
        if let Some(figures) = &self.figures {
            figures.missed();
        }
        self.look(&looked, key, stale)
    }
}

fn unredirectable() -> Answer {
    let text = "the target cannot be redirected\n";
    Answer::now(Response::text(StatusCode::BAD_REQUEST, text))
}

fn allowing(response: Response) -> Response {
    response.with_field(ALLOW, HeaderValue::from_static(METHODS))
}

fn not_found_text() -> Answer {
    let response = Response::text(StatusCode::NOT_FOUND, "there is nothing at this path\n");
    Answer::now(response.with_field(CACHE_CONTROL, HeaderValue::from_static("no-cache")))
}

/// What keeps a file from being read concerns the server, and is told without its paths.
fn unreadable(error: &io::Error) -> Answer {
    let text = format!("the file cannot be read: {}\n", error.kind());
    let response = Response::text(StatusCode::INTERNAL_SERVER_ERROR, text);
    Answer::now(response.with_field(CACHE_CONTROL, HeaderValue::from_static("no-store")))
}
