//! `files = { … }` in a `[[route]]`, compiled.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use plimsoll_server::config::{ActionKind, Mounted, Table, Value, as_text};
use plimsoll_server::{Action, Counters, MakeAction, WorkerContext};
use plimsoll_wire::Background;
use url::Url;

use crate::events::SiteEvent;
use crate::figures::{Measured, SiteFigures};
use crate::files::changes::Changes;
use crate::files::directory::Directory;
use crate::files::live::Live;
use crate::files::resolve::TrailingSlash;
use crate::files::tree::{NoFiles, Tree};
use crate::files::{CacheControl, Files, SitePlan, SiteState};
use crate::pack::Pack;
use crate::rules::links::{LinkLists, LinkPlace, LinkSource};

/// The action `files`, for routes of a server's configuration.
pub const FILES: ActionKind = ActionKind {
    key: "files",
    compile,
};

fn compile(value: Value<'_>, mounted: &Mounted<'_>) -> Option<Arc<MakeAction>> {
    let mut table = value.table()?;
    let source = source(&mut table, mounted);
    let live = match table.take_value("live") {
        None => Some(false),
        Some(value) if value.is_false() => Some(false),
        Some(value) if !value.is_true() => value.wrong("is true or false"),
        Some(value) => match &source {
            Some(Source::Pack(_) | Source::Nothing) => {
                value.wrong("is for a directory: nothing else changes")
            }
            _ => Some(true),
        },
    };
    let plan = plan(&mut table, mounted);
    table.finish();
    let (source, plan) = (source?, plan?);
    if let (Source::Directory(root), Some(fallback)) = (&source, &plan.layout.fallback)
        && !root.join(fallback).is_file()
    {
        let event = SiteEvent::FallbackMissing { file: fallback };
        mounted.notices.report(&event.into());
    }
    let site = Site {
        source,
        plan,
        lists: lists(mounted),
        figures: mounted.is_measured.then(|| mounted.counters.figures()),
        live: live?.then(|| Arc::clone(mounted.counters)),
    };
    Some(site.made())
}

/// Serves a directory; it is watched, and links are loaded, from the first worker's start on.
pub fn directory(root: PathBuf, plan: SitePlan) -> Arc<MakeAction> {
    let site = Site {
        source: Source::Directory(root),
        plan,
        lists: Arc::default(),
        figures: None,
        live: None,
    };
    site.made()
}

/// A site, of which each worker makes its own action.
struct Site {
    source: Source,
    plan: SitePlan,
    /// Loads its lists of short links.
    lists: Arc<LinkLists>,
    /// Counters, if any.
    figures: Option<Arc<SiteFigures>>,
    /// Pages load themselves again when something has changed, until these say that it is over.
    live: Option<Arc<Counters>>,
}

/// Source of files.
enum Source {
    Directory(PathBuf),
    Pack(Arc<Pack>),
    /// There are short links alone.
    Nothing,
}

impl Site {
    fn made(self) -> Arc<MakeAction> {
        let started = OnceLock::new();
        Arc::new(move |_: &WorkerContext| {
            let shared = started.get_or_init(|| self.start());
            let worker = self.figures.as_ref().map(|figures| figures.worker());
            let files = Rc::new(Files::new(Arc::clone(shared), worker.clone()));
            match worker {
                Some(worker) => Rc::new(Measured::new(files, worker)) as Rc<dyn Action>,
                None => files,
            }
        })
    }

    /// State that all workers share, from the first one's start on.
    fn start(&self) -> Arc<SiteState> {
        let (tree, fixed, changes): (Arc<dyn Tree>, _, _) = match &self.source {
            Source::Directory(root) => {
                let changes = Changes::watch(root.clone());
                let tree = Directory::new(root.clone(), Arc::clone(&changes));
                (Arc::new(tree), "", Some(changes))
            }
            Source::Pack(pack) => (Arc::new(Arc::clone(pack)), pack.links(), None),
            Source::Nothing => (Arc::new(NoFiles), "", None),
        };
        let live = self.live.as_ref().zip(changes.as_ref());
        let live = live.map(|(counters, changes)| {
            Live::new(Arc::clone(changes), Arc::clone(counters), &self.plan.strip)
        });
        let shared = SiteState::new(
            self.plan.clone(),
            tree,
            fixed,
            Arc::clone(&self.lists),
            self.figures.as_deref(),
            live,
        );
        Arc::new(shared)
    }
}

/// The lists of all sites of a configuration, which survive its reloads.
fn lists(mounted: &Mounted<'_>) -> Arc<LinkLists> {
    let background = mounted.states.state("", Background::default);
    mounted
        .states
        .state(LinkLists::IDENTITY, || LinkLists::new(background))
}

fn source(table: &mut Table<'_>, mounted: &Mounted<'_>) -> Option<Source> {
    let Some(value) = table.take_value("pack") else {
        // Short links need no files.
        if !table.has("root") && table.has("redirects") {
            return Some(Source::Nothing);
        }
        return root(table, mounted).map(Source::Directory);
    };
    if table.has("root") {
        table.wrong("both `root` and `pack` are given", None);
    }
    let path = mounted.paths.read(&value)?;
    value
        .check(Pack::open(&path))
        .map(Arc::new)
        .map(Source::Pack)
}

fn root(table: &mut Table<'_>, mounted: &Mounted<'_>) -> Option<PathBuf> {
    let Some(value) = table.take_value("root") else {
        let hint = "such as root = \"public\", pack = FILE for a packed site, or redirects = FILE for short links alone";
        table.missing("root", hint);
        return None;
    };
    let may_be_missing = table.boolean("optional").unwrap_or(false);
    let root = mounted.paths.read(&value)?;
    // An empty path is the working directory.
    let root = if root.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        root
    };
    value.check(match std::fs::metadata(&root) {
        Ok(metadata) if metadata.is_dir() => Ok(root),
        Ok(_) => Err(format!("{} is no directory", root.display())),
        Err(error) if may_be_missing && error.kind() == ErrorKind::NotFound => {
            let event = SiteEvent::RootMissing { root: &root };
            mounted.notices.report(&event.into());
            Ok(root)
        }
        Err(error) => Err(format!("cannot read {}: {error}", root.display())),
    })
}

fn plan(table: &mut Table<'_>, mounted: &Mounted<'_>) -> Option<SitePlan> {
    let mut plan = SitePlan {
        strip: mounted.prefix.trim_end_matches('/').to_owned(),
        notices: mounted.notices.clone(),
        ..SitePlan::default()
    };
    if let Some(value) = table.take_value("strip") {
        let strip = as_text(&value).filter(|it| it.starts_with('/'));
        match strip {
            Some(strip) => strip.trim_end_matches('/').clone_into(&mut plan.strip),
            None => _ = value.wrong::<()>(
                "is the beginning of paths that files are looked up without, such as \"/static\"",
            ),
        }
    }
    let mut is_whole = true;
    let mut flag = |key: &'static str, flag: &mut bool| {
        if let Some(given) = table.boolean(key) {
            *flag = given;
        }
    };
    flag("clean_urls", &mut plan.layout.clean_urls);
    flag("listing", &mut plan.layout.listing);
    flag("hidden", &mut plan.layout.hidden);
    flag("compress", &mut plan.compresses);
    if let Some(value) = table.take_value("index") {
        match value.texts_with(not_a_name) {
            Some(names) => plan.layout.index = names,
            None => is_whole = false,
        }
    }
    if let Some(value) = table.take_value("fallback") {
        let fallback = as_text(&value).and_then(|name| {
            let name = name.trim_start_matches('/');
            match name.split('/').find_map(not_a_name) {
                Some(mistake) => value.wrong(mistake),
                None => Some(name.to_owned()),
            }
        });
        is_whole &= fallback.is_some();
        plan.layout.fallback = fallback;
    }
    if let Some(value) = table.take_value("trailing_slash") {
        match as_text(&value) {
            Some("redirect") => plan.layout.trailing_slash = TrailingSlash::Redirect,
            Some("ignore") => plan.layout.trailing_slash = TrailingSlash::Ignore,
            Some("folders") => plan.layout.trailing_slash = TrailingSlash::Folders,
            Some("exact") => plan.layout.trailing_slash = TrailingSlash::Exact,
            Some(_) => {
                let known = "is \"redirect\", \"ignore\", \"folders\" or \"exact\"";
                is_whole = value.wrong::<()>(known).is_some();
            }
            None => is_whole = false,
        }
    }
    if let Some(value) = table.take_value("cache_control") {
        let given = cache_control(&value);
        is_whole &= given.is_some();
        plan.cache_control = given.unwrap_or_default();
    }
    if let Some(bytes) = table.bytes("cache") {
        plan.cache_bytes = bytes;
    }
    if let Some(value) = table.take_value("dialect") {
        let dialect = as_text(&value).and_then(|text| value.check(text.parse()));
        is_whole &= dialect.is_some();
        plan.dialect = dialect;
    }
    let links = links(table, mounted);
    let status = redirect_status(table);
    let redirect_cache_control = table
        .take_value("redirect_cache_control")
        .map(|value| cache_control(&value));
    if !is_whole {
        return None;
    }
    plan.links = links?;
    plan.redirect_status = status?;
    if let Some(given) = redirect_cache_control {
        plan.redirect_cache_control = match given? {
            CacheControl::Always(value) => Some(value),
            CacheControl::ByName | CacheControl::Nothing => None,
        };
    }
    Some(plan)
}

/// The value of a field, which is not sent at all if it is empty.
fn cache_control(value: &Value<'_>) -> Option<CacheControl> {
    let text = as_text(value)?;
    let given = HeaderValue::from_str(text).map_err(|_| "contains a control character");
    let given = value.check(given)?;
    Some(if text.is_empty() {
        CacheControl::Nothing
    } else {
        CacheControl::Always(given)
    })
}

/// How long a list of links from a URL is valid by default: short links are edited by people, who accept minutes, and
/// the list server gets 288 requests a day.
const REFRESH: Duration = Duration::from_mins(5);

fn links(table: &mut Table<'_>, mounted: &Mounted<'_>) -> Option<Vec<LinkSource>> {
    let refresh = table.duration("refresh").unwrap_or(REFRESH);
    let values = table.take_value("redirects").map(Value::elements);
    let places = values.unwrap_or_default().into_iter();
    let sources = places.map(|value| {
        let place = link_place(&value, mounted)?;
        Some(LinkSource { place, refresh })
    });
    // Every error is noted before it is known that there was one.
    sources.collect::<Vec<_>>().into_iter().collect()
}

/// A text that begins with a scheme is a URL; anything else is a file, which has to exist.
fn link_place(value: &Value<'_>, mounted: &Mounted<'_>) -> Option<LinkPlace> {
    let text = as_text(value)?;
    if text.starts_with("http://") || text.starts_with("https://") {
        // Not shown: it may hold a password.
        let url = Url::parse(text).map_err(|error| format!("the URL is malformed: {error}"));
        return value.check(url).map(LinkPlace::Url);
    }
    let path = mounted.paths.read(value)?;
    value.check(match std::fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => Ok(LinkPlace::File(path)),
        Ok(_) => Err(format!("{} is no file", path.display())),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    })
}

fn redirect_status(table: &mut Table<'_>) -> Option<StatusCode> {
    let Some(status) = table.count("redirect_status", 300..=399) else {
        return Some(StatusCode::PERMANENT_REDIRECT);
    };
    if ![301, 302, 303, 307, 308].contains(&status) {
        table.wrong("`redirect_status` is 301, 302, 303, 307 or 308", None);
        return None;
    }
    StatusCode::from_u16(u16::try_from(status).ok()?).ok()
}

fn not_a_name(name: &str) -> Option<String> {
    let is_wrong =
        name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']);
    is_wrong.then(|| format!("`{name}` is no name of a file"))
}
