//! `[[page]]`: which monitors a status page shows, and how it looks.

mod theme;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use jiff::tz::TimeZone;
use plimsoll_model::document::{Table, Value, as_text};
use plimsoll_model::parse_duration;
use plimsoll_server::{BasicAuth, PasswordHash};
use url::Url;

use crate::config::language::Language;
use crate::config::maintenance::zone;
use crate::config::{ApiToken, MonitorPlan};

pub use crate::config::page::theme::{Bars, Font, Theme};

/// A status page.
#[derive(Debug, Clone)]
pub struct PagePlan {
    /// In its URL: `/status/SLUG`.
    pub slug: String,
    /// Its title.
    pub title: String,
    /// A sentence or two below the title.
    pub about: Option<String>,
    /// A host name under which it is at `/`.
    pub host: Option<String>,
    /// Public URL, for feeds; absent for the host of the request.
    pub url: Option<String>,
    /// Target of the logo's link.
    pub link: Option<String>,
    /// The groups, in order.
    pub groups: Vec<PageGroup>,
    /// Whether that is every monitor.
    pub shows_all: bool,
    /// The zone of its days and, without a script, of its times.
    pub zone: TimeZone,
    /// The language of readers whose own is not supported.
    pub language: Language,
    /// The colour of its links and its header, as `#rrggbb`.
    pub color: Option<String>,
    /// Its logo.
    pub logo: Option<Arc<Logo>>,
    /// Font, density, bars, and a style sheet of its own.
    pub theme: Theme,
    /// Access rule.
    pub guard: Guard,
    /// Whether search engines may list it.
    pub is_listed: bool,
    /// How long caches that many readers share, such as a CDN, may keep it (`s-maxage`, RFC 9111); absent as long as a browser.
    pub shared_max_age: Option<Duration>,
}

/// Monitors below a heading.
#[derive(Debug, Clone)]
pub struct PageGroup {
    /// The heading; empty for none.
    pub name: String,
    /// The monitors.
    pub components: Vec<PageComponent>,
}

/// A monitor as a page shows it.
#[derive(Debug, Clone)]
pub struct PageComponent {
    /// Which monitor.
    pub key: String,
    /// Its name on the page.
    pub name: String,
    /// A description for readers.
    pub about: Option<String>,
}

/// A picture.
#[derive(Debug)]
pub struct Logo {
    /// By its first bytes.
    pub media_type: &'static str,
    /// The file.
    pub content: Vec<u8>,
}

/// Access rule of a page.
#[derive(Debug, Clone)]
pub enum Guard {
    /// Everyone.
    Open,
    /// Readers with the password.
    Password(PagePassword),
    /// Users by basic authentication, as Gatus has it.
    Basic(Arc<BasicAuth>),
}

/// The password of a page.
#[derive(Debug, Clone)]
pub struct PagePassword {
    /// Checks it; its user is named `page`.
    pub auth: Arc<BasicAuth>,
    /// The SHA-256 of its hash, which differs for every password: sessions are bound to it.
    pub fingerprint: [u8; 32],
}

/// The user by whose name the password of a page is checked.
pub(crate) const READER: &str = "page";

/// A state that is older is of no use to its readers.
const MOST_SHARED: Duration = Duration::from_hours(24);

/// Bytes of a logo.
const MOST_LOGO: usize = 256 * 1024;

impl PagePlan {
    /// A page of all monitors, by their groups.
    pub(crate) fn of_all(title: &str, monitors: &[Arc<MonitorPlan>], guard: Guard) -> Self {
        Self {
            slug: "status".to_owned(),
            title: title.to_owned(),
            about: None,
            host: None,
            url: None,
            link: None,
            groups: grouped(monitors.iter().map(component_of)),
            shows_all: true,
            zone: TimeZone::UTC,
            language: Language::default(),
            color: None,
            logo: None,
            theme: Theme::default(),
            guard,
            is_listed: true,
            shared_max_age: None,
        }
    }

    /// The page with these monitors, if it shows every monitor.
    pub(crate) fn showing<'m>(
        self: &Arc<Self>,
        monitors: impl Iterator<Item = &'m Arc<MonitorPlan>>,
    ) -> Arc<Self> {
        if !self.shows_all {
            return Arc::clone(self);
        }
        Arc::new(Self {
            groups: grouped(monitors.map(component_of)),
            ..Self::clone(self)
        })
    }

    /// All components.
    pub fn components(&self) -> impl Iterator<Item = &PageComponent> {
        self.groups.iter().flat_map(|group| &group.components)
    }
}

/// Groups in the order in which their names first appear; monitors without a group come first.
fn grouped(components: impl Iterator<Item = (String, PageComponent)>) -> Vec<PageGroup> {
    let mut groups: Vec<PageGroup> = Vec::new();
    for (name, component) in components {
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.components.push(component),
            None => groups.push(PageGroup {
                name,
                components: vec![component],
            }),
        }
    }
    groups.sort_by_key(|group| !group.name.is_empty());
    groups
}

fn component_of(monitor: &Arc<MonitorPlan>) -> (String, PageComponent) {
    let component = PageComponent {
        key: monitor.key.clone(),
        name: monitor.name.clone(),
        about: None,
    };
    (monitor.group.clone(), component)
}

/// The folder that logos and style sheets are relative to, and where their files are noted.
pub(super) type LogoFolder<'f> = (&'f Path, &'f RefCell<Vec<PathBuf>>);

/// Compiles all pages.
pub(super) fn compile(
    tables: Vec<Table<'_>>,
    monitors: &[Arc<MonitorPlan>],
    folder: LogoFolder<'_>,
) -> Vec<Arc<PagePlan>> {
    let mut slugs = HashSet::new();
    let mut hosts = HashSet::new();
    let pages = tables.into_iter().filter_map(|table| {
        one(table, monitors, Some(folder), &mut slugs, &mut hosts).map(Arc::new)
    });
    pages.collect()
}

/// Compiles a page that is kept in the store, which names no file.
pub(crate) fn compile_one(
    table: Table<'_>,
    monitors: &[Arc<MonitorPlan>],
    others: &[Arc<PagePlan>],
) -> Option<Arc<PagePlan>> {
    let mut slugs = others.iter().map(|page| page.slug.clone()).collect();
    let mut hosts = others.iter().filter_map(|page| page.host.clone()).collect();
    one(table, monitors, None, &mut slugs, &mut hosts).map(Arc::new)
}

fn one(
    mut table: Table<'_>,
    monitors: &[Arc<MonitorPlan>],
    folder: Option<LogoFolder<'_>>,
    slugs: &mut HashSet<String>,
    hosts: &mut HashSet<String>,
) -> Option<PagePlan> {
    let slug = slug(&mut table, slugs);
    let title = table.text("title");
    if !table.was_given("title") {
        table.missing("title", "the heading of the page");
    }
    let about = table.text("about");
    let host = table.take_value("host").and_then(|value| {
        let host = as_text(&value)?.to_ascii_lowercase();
        if host.is_empty() || host.contains(['/', ':', ' ']) {
            return value
                .wrong("must be a host name without a port, such as \"status.example.org\"");
        }
        if !hosts.insert(host.clone()) {
            return value.wrong(format!("`{host}` is the host of another page"));
        }
        Some(host)
    });
    let mut web = |key| {
        let value = table.take_value(key)?;
        let text = as_text(&value)?;
        match Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => {
                Some(text.trim_end_matches('/').to_owned())
            }
            _ => value.wrong("must be a URL that begins with `https://` or `http://`"),
        }
    };
    let (url, link) = (web("url"), web("link"));
    let chosen = table.take_value("monitors");
    let explicit = table.tables("group");
    let shows_all = chosen.is_none() && explicit.is_empty();
    let groups = match (chosen, explicit.is_empty()) {
        (None, true) => grouped(monitors.iter().map(component_of)),
        (chosen, _) => {
            let flat = chosen.map(Value::elements).unwrap_or_default();
            let flat = flat
                .into_iter()
                .flat_map(|value| components(value, monitors));
            let mut groups = grouped(flat);
            groups.extend(
                explicit
                    .into_iter()
                    .filter_map(|table| group(table, monitors)),
            );
            groups
        }
    };
    let zone = match table.take_value("zone") {
        None => Some(TimeZone::UTC),
        Some(value) => zone(&value),
    };
    let language = match table.take_value("language") {
        None => Some(Language::default()),
        Some(value) => as_text(&value).and_then(|text| match Language::with_tag(text) {
            Some(language) => Some(language),
            None => value.wrong(format!(
                "`{text}` is not one of {}",
                Language::codes().join(", ")
            )),
        }),
    };
    let color = table.take_value("color").and_then(|value| color(&value));
    let logo = table
        .take_value("logo")
        .and_then(|value| logo(&value, folder));
    let theme = Theme::compile(&mut table, folder);
    let shared_max_age = table.take_value("shared_max_age");
    let guard = match table.take_value("password_bcrypt") {
        None => Some(Guard::Open),
        Some(value) => password(&value),
    };
    let is_open = matches!(guard, Some(Guard::Open));
    let shared_max_age = shared_max_age.and_then(|value| shared_max_age_of(&value, is_open));
    let is_listed = table.boolean("listed").unwrap_or(true);
    table.finish();
    Some(PagePlan {
        slug: slug?,
        title: title?,
        about,
        host,
        url,
        link,
        groups,
        shows_all,
        zone: zone?,
        language: language?,
        color,
        logo,
        theme: theme?,
        guard: guard?,
        is_listed,
        shared_max_age,
    })
}

/// - `is_open`: everyone may see the page.
fn shared_max_age_of(value: &Value<'_>, is_open: bool) -> Option<Duration> {
    if !is_open {
        return value.wrong("a page with a password is kept by no shared cache; leave this out");
    }
    match parse_duration(as_text(value)?) {
        Ok(long) if (Duration::from_secs(1)..=MOST_SHARED).contains(&long) => Some(long),
        Ok(_) => value.wrong("must be between 1s and 1d"),
        Err(error) => value.wrong(error),
    }
}

fn slug(table: &mut Table<'_>, slugs: &mut HashSet<String>) -> Option<String> {
    let Some(value) = table.take_value("slug") else {
        table.missing("slug", "the page is at /status/SLUG");
        return None;
    };
    let slug = as_text(&value)?;
    let is_plain = !slug.is_empty()
        && slug.len() <= 63
        && slug
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !is_plain {
        return value.wrong("must be made of lower-case letters, digits and hyphens, at most 63");
    }
    if !slugs.insert(slug.to_owned()) {
        return value.wrong(format!("`{slug}` is the slug of another page"));
    }
    Some(slug.to_owned())
}

fn group(mut table: Table<'_>, monitors: &[Arc<MonitorPlan>]) -> Option<PageGroup> {
    let name = table.text("name");
    if !table.was_given("name") {
        table.missing("name", "the heading of the group");
    }
    let chosen = table.take_value("monitors");
    if chosen.is_none() {
        table.missing("monitors", "names of monitors or groups");
    }
    table.finish();
    let values = chosen?.elements().into_iter();
    let found = values.flat_map(|value| components(value, monitors));
    Some(PageGroup {
        name: name?,
        components: found.map(|(_, component)| component).collect(),
    })
}

/// A name of a monitor or a group, or `{ monitor, name, about }`.
fn components(value: Value<'_>, monitors: &[Arc<MonitorPlan>]) -> Vec<(String, PageComponent)> {
    if value.is_table() {
        return described(value, monitors).into_iter().collect();
    }
    let Some(text) = as_text(&value) else {
        return Vec::new();
    };
    let is_meant = |monitor: &&Arc<MonitorPlan>| {
        monitor.key == text || monitor.name == text || monitor.group == text
    };
    let found: Vec<_> = monitors.iter().filter(is_meant).map(component_of).collect();
    if found.is_empty() {
        unknown::<()>(&value, text, monitors);
    }
    found
}

fn described(value: Value<'_>, monitors: &[Arc<MonitorPlan>]) -> Option<(String, PageComponent)> {
    let mut table = value.table()?;
    let name = table.text("name");
    let about = table.text("about");
    let monitor = table.take_value("monitor");
    if monitor.is_none() {
        table.missing("monitor", "the name of a monitor");
    }
    table.finish();
    let monitor = monitor?;
    let text = as_text(&monitor)?;
    let found = monitors
        .iter()
        .find(|one| one.key == text || one.name == text);
    let Some(found) = found else {
        return unknown(&monitor, text, monitors);
    };
    let (group, component) = component_of(found);
    let component = PageComponent {
        name: name.unwrap_or(component.name),
        about,
        ..component
    };
    Some((group, component))
}

fn unknown<T>(value: &Value<'_>, text: &str, monitors: &[Arc<MonitorPlan>]) -> Option<T> {
    let names = monitors
        .iter()
        .flat_map(|monitor| [&monitor.name, &monitor.group]);
    let near = names
        .map(|name| (strsim::jaro_winkler(text, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let hint = near.map(|(_, name)| format!("did you mean `{name}`?"));
    value.wrong_with(format!("there is no monitor and no group `{text}`"), hint)
}

fn color(value: &Value<'_>) -> Option<String> {
    let text = as_text(value)?;
    let digits = text.strip_prefix('#').unwrap_or_default();
    if digits.len() == 6 && digits.chars().all(|c| c.is_ascii_hexdigit()) {
        Some(text.to_ascii_lowercase())
    } else {
        value.wrong("must be a colour such as \"#1f6feb\"")
    }
}

/// A file, or its content as a `data:` URL (RFC 2397), which definitions in the store have.
fn logo(value: &Value<'_>, folder: Option<LogoFolder<'_>>) -> Option<Arc<Logo>> {
    let text = as_text(value)?;
    let content = if let Some(data) = text.strip_prefix("data:") {
        let encoded = data.split_once(";base64,").map(|(_, encoded)| encoded);
        let encoded = encoded.filter(|encoded| encoded.len() <= MOST_LOGO.div_ceil(3) * 4);
        let decoded = encoded.and_then(|it| base64::prelude::BASE64_STANDARD.decode(it).ok());
        match decoded {
            Some(content) => content,
            None => {
                return value.wrong(format!(
                    "must be a `data:` URL in base64 of at most {MOST_LOGO} bytes"
                ));
            }
        }
    } else if let Some((directory, named)) = folder {
        let path = directory.join(text);
        named.borrow_mut().push(path.clone());
        match std::fs::read(&path) {
            Ok(content) => content,
            Err(error) => return value.wrong(format!("cannot read {}: {error}", path.display())),
        }
    } else {
        return value.wrong("names a file; give its content as a `data:` URL instead");
    };
    if content.len() > MOST_LOGO {
        return value.wrong(format!("is longer than {MOST_LOGO} bytes"));
    }
    let media_type = match content.as_slice() {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => "image/webp",
        _ => return value.wrong("is not a PNG, JPEG or WebP picture, by its first bytes"),
    };
    Some(Arc::new(Logo {
        media_type,
        content,
    }))
}

fn password(value: &Value<'_>) -> Option<Guard> {
    let text = as_text(value)?;
    let hash = value.check(PasswordHash::bcrypt(text))?;
    let users = HashMap::from([(READER.to_owned(), hash)]);
    let auth = BasicAuth::new("status page", users);
    value
        .check(auth.map_err(|_| "cannot be checked: the system has no random numbers"))
        .map(|auth| {
            Guard::Password(PagePassword {
                auth: Arc::new(auth),
                fingerprint: ApiToken::hash_of(text),
            })
        })
}

/// The value of `authorization` that stands for a password of a page.
pub fn authorization(password: &str) -> String {
    let credentials = base64::prelude::BASE64_STANDARD.encode(format!("{READER}:{password}"));
    format!("Basic {credentials}")
}
