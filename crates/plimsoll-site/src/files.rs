//! The action: files of a tree, answered from what is kept in memory where nothing has changed.

pub(crate) mod path;

pub(crate) mod tree;

pub(crate) mod directory;

pub(crate) mod changes;

pub(crate) mod resolve;

pub(crate) mod media;

pub(crate) mod conditions;

pub(crate) mod ranges;

pub(crate) mod compression;

pub(crate) mod page;

pub(crate) mod live;

pub(crate) mod cache;

pub(crate) mod listing;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use plimsoll_formats::site::Dialect;
use plimsoll_model::{Clock, escaped_html};
use plimsoll_server::{Action, Answer, Notices, Request, Response, ResponseBody};
use plimsoll_wire::SystemClock;
use plimsoll_wire::http::{NormalPath, below};
use rustix::io::Errno;

use crate::events::SiteEvent;
use crate::figures::{SiteFigures, WorkerFigures};
use crate::files::cache::{Hit, PageCache};
use crate::files::compression::Compressor;
use crate::files::live::Live;
use crate::files::page::{Page, PageParts};
use crate::files::path::{PathError, SitePath};
use crate::files::resolve::{Layout, NOT_FOUND, Resolved, not_found_page};
use crate::files::tree::{SiteFile, StoredCopy, Tree};
use crate::rules::links::{LinkLists, LinkSource, Links};
use crate::rules::reload::{self, RuleFiles};
use crate::rules::{RuleInput, RuleOutcome, Rules};

/// Settings of a site, whatever its files are stored in.
#[derive(Debug, Clone)]
pub struct SitePlan {
    /// Mapping of URL paths to files.
    pub layout: Layout,
    /// Taken off the beginning of every path; begins with a slash and does not end with one. Empty for none.
    pub strip: String,
    /// Whether files without a stored copy are compressed on request.
    pub compresses: bool,
    /// `cache-control` of files.
    pub cache_control: CacheControl,
    /// Bytes of content that each worker keeps in memory.
    pub cache_bytes: u64,
    /// `_redirects` and `_headers` at the root apply, as this dialect has them.
    pub dialect: Option<Dialect>,
    /// Short links, for paths that name no file.
    pub links: Vec<LinkSource>,
    /// The status of short links: 301, 302, 303, 307 or 308.
    pub redirect_status: StatusCode,
    /// `cache-control` of redirects, if they have one.
    pub redirect_cache_control: Option<HeaderValue>,
    /// Receives notices about links and rules.
    pub notices: Notices,
}

/// Time for which clients may cache files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CacheControl {
    /// As their names suggest; others may be kept, but have to be validated each time.
    #[default]
    ByName,
    /// This of every file; pages for what is not there have to be validated each time.
    Always(HeaderValue),
    /// Nothing.
    Nothing,
}

impl CacheControl {
    /// Of the file called `name`, with which it is answered by `status`.
    fn value_for(&self, name: &str, status: StatusCode) -> Option<HeaderValue> {
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

/// Bytes of content that a worker keeps by default.
pub(crate) const CACHE_BYTES: u64 = 8 * 1024 * 1024;

/// The methods that a site answers.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// State that the workers of a site share.
#[derive(Debug)]
pub(crate) struct SiteState {
    plan: SitePlan,
    tree: Arc<dyn Tree>,
    rules: Option<RuleFiles>,
    links: Vec<Arc<Links>>,
    /// Kept as long as the site is served, so that the next configuration finds the lists that are in use.
    _lists: Arc<LinkLists>,
    live: Option<Arc<Live>>,
    pub(crate) compressor: Arc<Compressor>,
    /// The shortage of open files was reported.
    told_shortage: AtomicBool,
}

impl SiteState {
    /// - `fixed`: lines of aliases and URLs that never change.
    /// - `lists`: where lists of short links are loaded.
    /// - `figures`: where the links are counted, if anybody wants to know.
    /// - `live`: reports changes to pages, if they are live.
    pub(crate) fn new(
        plan: SitePlan,
        tree: Arc<dyn Tree>,
        fixed: &str,
        lists: Arc<LinkLists>,
        figures: Option<&SiteFigures>,
        live: Option<Live>,
    ) -> Self {
        let mut links = Vec::new();
        if !fixed.is_empty() {
            links.push(Links::fixed(fixed));
        }
        let notices = &plan.notices;
        links.extend(plan.links.iter().map(|source| lists.links(source, notices)));
        if let Some(figures) = figures {
            figures.count_links(&links);
        }
        Self {
            rules: plan.dialect.map(|dialect| {
                let tree = Arc::clone(&tree);
                RuleFiles::new(dialect, tree, plan.layout.clone(), notices.clone())
            }),
            tree,
            links,
            _lists: lists,
            live: live.map(Arc::new),
            compressor: Arc::default(),
            told_shortage: AtomicBool::new(false),
            plan,
        }
    }
}

/// Answers with files.
pub(crate) struct Files {
    shared: Arc<SiteState>,
    tree: Arc<dyn Tree>,
    cache: RefCell<PageCache>,
    rules: RefCell<Arc<Rules>>,
    /// The version of the rules, and the generation of the tree in which their files were last looked for.
    rules_version: Cell<u64>,
    rules_looked: Cell<Option<u64>>,
    figures: Option<Arc<WorkerFigures>>,
}

/// A request on its way to a file.
struct Lookup<'a, 'r> {
    request: &'a Request<'r>,
    path: SitePath,
    rules: Arc<Rules>,
    generation: u64,
}

impl Lookup<'_, '_> {
    /// The values that rules match.
    fn input<'p>(&'p self, decoded: &'p str) -> RuleInput<'p> {
        RuleInput {
            host: self.request.host(),
            path: decoded,
            query: self.request.query,
        }
    }
}

/// A path of the tree, decoded, with slashes as they were requested.
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
    pub(crate) fn new(shared: Arc<SiteState>, figures: Option<Arc<WorkerFigures>>) -> Self {
        Self {
            figures,
            cache: RefCell::new(PageCache::new(shared.plan.cache_bytes)),
            rules: RefCell::new(reload::none()),
            rules_version: Cell::new(0),
            rules_looked: Cell::new(None),
            tree: Arc::clone(&shared.tree),
            shared,
        }
    }

    fn plan(&self) -> &SitePlan {
        &self.shared.plan
    }

    /// The rules as they are now.
    fn rules(&self, generation: u64) -> Arc<Rules> {
        if let Some(files) = &self.shared.rules {
            if self.rules_looked.get() != Some(generation) {
                files.refresh();
                self.rules_looked.set(Some(generation));
            }
            let version = files.version();
            if self.rules_version.get() != version {
                // Pages carry the fields of the rules.
                self.cache.borrow_mut().clear();
                self.rules.replace(files.rules());
                self.rules_version.set(version);
            }
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
    fn look(
        &self,
        looked: &Lookup<'_, '_>,
        key: &str,
        stale: Option<Rc<Page>>,
    ) -> io::Result<Answer> {
        let resolved = self.plan().layout.resolve(&*self.tree, &looked.path)?;
        if stale.is_some() && !matches!(resolved, Resolved::File(..)) {
            self.cache.borrow_mut().remove(key);
        }
        match resolved {
            // A page that says that something is not there says so wherever it is met.
            Resolved::File(name, _) if name.rsplit('/').next() == Some(NOT_FOUND) => {
                self.not_found(looked, &name)
            }
            Resolved::File(name, file) => self.page(looked, key, name, file, StatusCode::OK, stale),
            Resolved::Redirect(to) => Ok(self.redirect(looked.request, &to)),
            Resolved::Listing(directory) => {
                let mut entries = self.tree.list(&directory)?;
                // No request names those with a backslash or a line end.
                entries.retain(|entry| {
                    SitePath::parse(&format!("/{}", path::escaped(&entry.name))).is_ok()
                });
                if !self.plan().layout.hidden {
                    entries.retain(|entry| !entry.name.starts_with('.'));
                }
                let live = self.shared.live.as_deref();
                let listing = listing::respond(looked.request, &directory, entries, live);
                Ok(Answer::now(listing))
            }
            Resolved::Fallback(name, file) => match self.elsewhere(looked)? {
                Some(answer) => Ok(answer),
                None => self.inner_page(looked, name, file, StatusCode::OK),
            },
            Resolved::NotFound => match self.elsewhere(looked)? {
                Some(answer) => Ok(answer),
                None => self.not_found(looked, &looked.path.joined),
            },
        }
    }

    /// The response of rules and links for a path that names no file.
    fn elsewhere(&self, looked: &Lookup<'_, '_>) -> io::Result<Option<Answer>> {
        let decoded = decoded(&looked.path);
        if let Some(outcome) = looked.rules.redirect(looked.input(&decoded), false) {
            return self.outcome(looked, &outcome).map(Some);
        }
        let name = &looked.path.joined;
        let Some(url) = self.shared.links.iter().find_map(|links| links.url(name)) else {
            return Ok(None);
        };
        // A link to itself would be followed for ever.
        let own = format!("{}{}", looked.request.authority, looked.request.path);
        let target = url.to_str().unwrap_or_default();
        let target = target.split_once("://").map_or("", |(_, rest)| rest);
        if target.eq_ignore_ascii_case(&own) {
            return Ok(None);
        }
        if let Some(figures) = &self.figures {
            figures.redirected(name);
        }
        Ok(Some(self.sent_on(self.plan().redirect_status, url)))
    }

    /// A redirect that a rule or a link asks for.
    fn sent_on(&self, status: StatusCode, location: HeaderValue) -> Answer {
        let response = redirection(status, location);
        Answer::now(match &self.plan().redirect_cache_control {
            Some(value) => response.with_field(CACHE_CONTROL, value.clone()),
            None => response,
        })
    }

    /// Does what a rule says.
    fn outcome(&self, looked: &Lookup<'_, '_>, outcome: &RuleOutcome) -> io::Result<Answer> {
        if outcome.status == 200 || outcome.status == 404 {
            let end = outcome.to.find(['?', '#']).unwrap_or(outcome.to.len());
            let target = SitePath::parse(outcome.to.get(..end).unwrap_or_default());
            let Ok(target) = target else {
                return self.not_found(looked, &looked.path.joined);
            };
            let status = StatusCode::from_u16(outcome.status).unwrap_or(StatusCode::OK);
            return match self.plan().layout.resolve(&*self.tree, &target)? {
                Resolved::File(name, file) | Resolved::Fallback(name, file) => {
                    self.inner_page(looked, name, file, status)
                }
                _ => self.not_found(looked, &looked.path.joined),
            };
        }
        let strip = if outcome.to.starts_with('/') {
            self.plan().strip.as_str()
        } else {
            ""
        };
        let location = HeaderValue::from_str(&format!("{strip}{}", outcome.to));
        let status = StatusCode::from_u16(outcome.status);
        let (Ok(location), Ok(status)) = (location, status) else {
            return Ok(unredirectable());
        };
        Ok(self.sent_on(status, location))
    }

    fn not_found(&self, looked: &Lookup<'_, '_>, path: &str) -> io::Result<Answer> {
        match not_found_page(&*self.tree, path)? {
            Some((name, file)) => self.inner_page(looked, name, file, StatusCode::NOT_FOUND),
            None => Ok(not_found_text()),
        }
    }

    /// A file that answers for many paths, kept by its own.
    fn inner_page(
        &self,
        looked: &Lookup<'_, '_>,
        name: String,
        file: SiteFile,
        status: StatusCode,
    ) -> io::Result<Answer> {
        // The outcome of the rules for the requested path is part of the page. No path of a request begins like this.
        let decoded = decoded(&looked.path);
        let headers_key = looked.rules.headers_key(looked.input(&decoded));
        let key = format!("{} {name}{headers_key}", status.as_u16());
        let hit = self.cache.borrow_mut().get(&key, looked.generation);
        let known = hit.map(|(Hit::Fresh(page) | Hit::Stale(page))| page);
        self.page(looked, &key, name, file, status, known)
    }

    fn page(
        &self,
        looked: &Lookup<'_, '_>,
        key: &str,
        name: String,
        file: SiteFile,
        status: StatusCode,
        known: Option<Rc<Page>>,
    ) -> io::Result<Answer> {
        let copies = self.tree.copies(&name, &file);
        let page = match known.filter(|known| known.is_of(&name, &file, &copies)) {
            Some(page) => page,
            None => self.load(looked, name, file, copies, status)?,
        };
        let answer = page.answer(looked.request);
        if self.shared.live.is_none() && page.is_sure() {
            self.cache.borrow_mut().put(key, page, looked.generation);
        }
        Ok(answer)
    }

    fn load(
        &self,
        looked: &Lookup<'_, '_>,
        path: String,
        file: SiteFile,
        mut copies: Vec<StoredCopy>,
        status: StatusCode,
    ) -> io::Result<Rc<Page>> {
        let now = SystemClock.wall().duration_since(std::time::UNIX_EPOCH);
        let mut fields = HeaderMap::new();
        let name = path.rsplit('/').next().unwrap_or_default();
        fields.insert(CONTENT_TYPE, media::media_type(name));
        if let Some(cache_control) = self.plan().cache_control.value_for(name, status) {
            fields.insert(CACHE_CONTROL, cache_control);
        }
        let decoded = decoded(&looked.path);
        looked.rules.apply(looked.input(&decoded), &mut fields);
        let mut content = None;
        if let Some(live) = &self.shared.live {
            Live::allow(&mut fields);
            content = live.injected(&fields, &file.part);
            copies.clear();
        }
        let parts = PageParts {
            path,
            file,
            copies,
            status,
            fields,
            content,
            compresses: self.plan().compresses && self.shared.live.is_none(),
            compressor: Arc::clone(&self.shared.compressor),
            now: now.unwrap_or_default(),
        };
        Page::load(parts, self.cache.borrow().memory()).map(Rc::new)
    }

    /// The response where a file cannot be read. The reason concerns the server, so it names none of its paths.
    fn unreadable(&self, error: &io::Error) -> Answer {
        let reason = if is_shortage(error) {
            if !self.shared.told_shortage.swap(true, Ordering::Relaxed) {
                self.plan().notices.report(&SiteEvent::TooManyFiles.into());
            }
            "too many open files".to_owned()
        } else {
            error.kind().to_string()
        };
        let text = format!("the file cannot be read: {reason}\n");
        let response = Response::text(StatusCode::INTERNAL_SERVER_ERROR, text);
        Answer::now(response.with_field(CACHE_CONTROL, HeaderValue::from_static("no-store")))
    }

    fn redirect(&self, request: &Request<'_>, to: &str) -> Answer {
        let query = request.query.map(|query| format!("?{query}"));
        let to = format!("{}{to}{}", self.plan().strip, query.unwrap_or_default());
        let Ok(to) = HeaderValue::from_str(&to) else {
            return unredirectable();
        };
        // Whether there is a directory may change, so this is looked up again.
        Answer::now(
            redirection(StatusCode::PERMANENT_REDIRECT, to)
                .with_field(CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        )
    }
}

impl Action for Files {
    fn methods(&self) -> Option<&'static str> {
        Some(METHODS)
    }

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
        let Some(raw) = below(request.path, &self.plan().strip) else {
            return not_found_text();
        };
        let normal = match NormalPath::parse(raw) {
            Ok(normal) => normal,
            Err(refusal) => return bad_path(refusal.into()),
        };
        // One key for all spellings of a path. Those that are redirected to another spelling, or refused, have none.
        let is_file = !normal.has_encoded_slash() && normal.is_utf8();
        let is_keyed = is_file && !normal.has_gaps() && !raw.is_empty();
        let host_key;
        let key = if rules.depends_on_host() {
            host_key = format!("/{} {}", request.host(), normal.text());
            &host_key
        } else {
            normal.text()
        };
        let is_direct = !rules.has_forced();
        let kept = || {
            is_keyed
                .then(|| self.cache.borrow_mut().get(key, generation))
                .flatten()
        };
        let mut stale = match is_direct.then(kept).flatten() {
            Some(Hit::Fresh(page)) => return self.at_hand(&page, request),
            Some(Hit::Stale(page)) => Some(page),
            None => None,
        };
        let path = match SitePath::from_normal_path(&normal) {
            // The root of what is taken off, without its slash.
            Ok(path) if raw.is_empty() => SitePath {
                has_slash: false,
                ..path
            },
            Ok(path) => path,
            Err(error) => return bad_path(error),
        };
        let looked = Lookup {
            request,
            path,
            rules,
            generation,
        };
        if !is_direct {
            let decoded = decoded(&looked.path);
            if let Some(outcome) = looked.rules.redirect(looked.input(&decoded), true) {
                let answer = self.outcome(&looked, &outcome);
                return answer.unwrap_or_else(|error| self.unreadable(&error));
            }
            match kept() {
                Some(Hit::Fresh(page)) => return self.at_hand(&page, request),
                Some(Hit::Stale(page)) => stale = Some(page),
                None => {}
            }
        }
        if let Some(figures) = &self.figures {
            figures.missed();
        }
        let mut answer = self.look(&looked, key, stale);
        if answer.as_ref().is_err_and(is_shortage) {
            // Pages hold files open, which matter less than this one.
            self.cache.borrow_mut().clear();
            answer = self.look(&looked, key, None);
        }
        answer.unwrap_or_else(|error| self.unreadable(&error))
    }
}

/// A redirect, with a link for clients that do not follow it (RFC 9110, section 15.4).
fn redirection(status: StatusCode, location: HeaderValue) -> Response {
    let target = escaped_html(location.to_str().unwrap_or_default());
    let page =
        format!("<!doctype html>\n<title>Redirect</title>\n<a href=\"{target}\">{target}</a>\n");
    Response::new(status)
        .with_field(LOCATION, location)
        .with_field(
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        )
        .with_body(ResponseBody::Bytes(page.into()))
}

fn bad_path(error: PathError) -> Answer {
    Answer::now(Response::text(
        StatusCode::BAD_REQUEST,
        format!("{error}\n"),
    ))
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

/// Whether the process or the system has too many files open.
fn is_shortage(error: &io::Error) -> bool {
    let error = Errno::from_io_error(error);
    matches!(error, Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(test)]
mod tests;
