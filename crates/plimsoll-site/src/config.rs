//! `files = { … }` in a `[[route]]`, compiled.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use plimsoll_server::config::{ActionKind, Mounted, Table, Value, as_text};
use plimsoll_server::{Action, MakeAction};
use url::Url;

use crate::changes::Changes;
use crate::directory::Directory;
use crate::files::{Files, Shared, SitePlan};
use crate::links::{LinkPlace, LinkSource};
use crate::pack::Pack;
use crate::resolve::TrailingSlash;

/// The action `files`, for routes of a server's configuration.
pub const FILES: ActionKind = ActionKind {
    key: "files",
    compile,
};

fn compile(value: Value<'_>, mounted: &Mounted<'_>) -> Option<Arc<MakeAction>> {
    let mut table = value.table()?;
    if let Some(value) = table.take("pack") {
        let pack = as_text(&value).and_then(|path| {
            let path = mounted.directory.join(path);
            value.check(Pack::open(&path))
        });
        if table.has("root") {
            table.wrong("both `root` and `pack` are given", None);
        }
        let plan = plan(&mut table, mounted);
        table.finish();
        return Some(packed(pack?, plan?));
    }
    let root = root(&mut table, mounted);
    let plan = plan(&mut table, mounted);
    table.finish();
    Some(directory(root?, plan?))
}

/// Serves what is packed.
fn packed(pack: Pack, plan: SitePlan) -> Arc<MakeAction> {
    let (pack, shared) = (Arc::new(pack), OnceLock::new());
    Arc::new(move || {
        let made = || Arc::new(Shared::new(plan.clone(), pack.links()));
        let shared = shared.get_or_init(made);
        let tree = Rc::new(Arc::clone(&pack));
        Rc::new(Files::new(Arc::clone(shared), tree)) as Rc<dyn Action>
    })
}

/// Serves a directory; it is watched, and links are loaded, from the first worker's start on.
pub fn directory(root: PathBuf, plan: SitePlan) -> Arc<MakeAction> {
    let shared = OnceLock::new();
    Arc::new(move || {
        let (shared, changes) = shared.get_or_init(|| {
            let shared = Arc::new(Shared::new(plan.clone(), ""));
            (shared, Changes::watch(root.clone()))
        });
        let tree = Directory::new(root.clone(), Arc::clone(changes));
        Rc::new(Files::new(Arc::clone(shared), Rc::new(tree))) as Rc<dyn Action>
    })
}

fn root(table: &mut Table<'_>, mounted: &Mounted<'_>) -> Option<PathBuf> {
    let Some(value) = table.take("root") else {
        let hint = "such as root = \"public\", or pack = FILE for a packed site";
        table.missing("root", hint);
        return None;
    };
    let root = mounted.directory.join(as_text(&value)?);
    // An empty path is the working directory.
    let root = if root.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        root
    };
    value.check(match std::fs::metadata(&root) {
        Ok(metadata) if metadata.is_dir() => Ok(root),
        Ok(_) => Err(format!("{} is no directory", root.display())),
        Err(error) => Err(format!("cannot read {}: {error}", root.display())),
    })
}

fn plan(table: &mut Table<'_>, mounted: &Mounted<'_>) -> Option<SitePlan> {
    let mut plan = SitePlan {
        strip: mounted.prefix.trim_end_matches('/').to_owned(),
        notices: mounted.notices.clone(),
        ..SitePlan::default()
    };
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
    if let Some(value) = table.take("index") {
        match value.texts_with(not_a_name) {
            Some(names) => plan.layout.index = names,
            None => is_whole = false,
        }
    }
    if let Some(value) = table.take("fallback") {
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
    if let Some(value) = table.take("trailing_slash") {
        match as_text(&value) {
            Some("redirect") => plan.layout.trailing_slash = TrailingSlash::Redirect,
            Some("ignore") => plan.layout.trailing_slash = TrailingSlash::Ignore,
            Some(_) => is_whole = value.wrong::<()>("is \"redirect\" or \"ignore\"").is_some(),
            None => is_whole = false,
        }
    }
    if let Some(value) = table.take("cache_control") {
        let given = field_value(&value);
        is_whole &= given.is_some();
        plan.cache_control = given;
    }
    if let Some(bytes) = table.bytes("cache") {
        plan.cache_bytes = bytes;
    }
    if let Some(value) = table.take("dialect") {
        let dialect = as_text(&value).and_then(|text| value.check(text.parse()));
        is_whole &= dialect.is_some();
        plan.dialect = dialect;
    }
    let links = links(table, mounted);
    let status = redirect_status(table);
    let cache_control = match table.take("redirect_cache_control") {
        None => Some(plan.redirect_cache_control.clone()),
        Some(value) => field_value(&value),
    };
    if !is_whole {
        return None;
    }
    plan.links = links?;
    plan.redirect_status = status?;
    plan.redirect_cache_control = cache_control?;
    Some(plan)
}

fn field_value(value: &Value<'_>) -> Option<HeaderValue> {
    let text = as_text(value)?;
    value.check(HeaderValue::from_str(text).map_err(|_| "contains a control character"))
}

/// How long a list of links from a URL holds.
const REFRESH: Duration = Duration::from_mins(5);

fn links(table: &mut Table<'_>, mounted: &Mounted<'_>) -> Option<Vec<LinkSource>> {
    let refresh = table.duration("refresh").unwrap_or(REFRESH);
    let places = match table.take("redirects") {
        None => Vec::new(),
        Some(value) => value.texts_with(|text| link_place(text, mounted).err())?,
    };
    let places = places
        .iter()
        .filter_map(|text| link_place(text, mounted).ok());
    Some(places.map(|place| LinkSource { place, refresh }).collect())
}

/// What begins with a scheme is a URL; anything else is a file, which has to be there.
fn link_place(text: &str, mounted: &Mounted<'_>) -> Result<LinkPlace, String> {
    if text.starts_with("http://") || text.starts_with("https://") {
        let url = Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
        return Ok(LinkPlace::Url(url));
    }
    let path = mounted.directory.join(text);
    match std::fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => Ok(LinkPlace::File(path)),
        Ok(_) => Err(format!("{} is no file", path.display())),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
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
