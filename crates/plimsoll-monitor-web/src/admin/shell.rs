//! The frame of all admin pages: assets, messages, dates.

use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION};
use http::{StatusCode, Uri};
use plimsoll_model::percent_rounded_down;
use plimsoll_monitor::config::Language;
use plimsoll_monitor::detect::status::Health;
use plimsoll_monitor::store::Role;
use plimsoll_monitor::time::Timestamp;

use crate::admin::faults::Faults;
use crate::admin::form_error::FormError;
use crate::admin::guard::{Me, protected};
use crate::language::Texts as _;

const SCRIPT: &str = include_str!("assets/admin.js");
const STYLE: &str = include_str!("assets/admin.css");
const WALL: &str = include_str!("assets/wall.css");
const ICON: &str = include_str!("assets/icon.svg");

/// Links of the menu: path, text, key of the shortcut behind `g`, least role.
const MENU: [(&str, &str, char, Role); 12] = [
    ("/admin", "Overview", 'o', Role::Viewer),
    ("/admin/monitors", "Monitors", 'm', Role::Viewer),
    ("/admin/incidents", "Incidents", 'i', Role::Viewer),
    ("/admin/maintenance", "Maintenance", 'c', Role::Viewer),
    ("/admin/pages", "Status pages", 'p', Role::Viewer),
    ("/admin/notices", "Notices", 'n', Role::Viewer),
    ("/admin/reports", "Reports", 'r', Role::Viewer),
    ("/admin/members", "Members", 'u', Role::Admin),
    ("/admin/tokens", "API tokens", 't', Role::Admin),
    ("/admin/audit", "Audit log", 'l', Role::Admin),
    ("/admin/account", "Account", 'a', Role::Viewer),
    ("/admin/new-monitor", "Add a monitor", 'w', Role::Editor),
];

/// Messages that a page may be opened with after a change: a fixed set, so that a link cannot put words on a page.
const DONE: [(&str, &str); 26] = [
    ("saved", "The changes are saved."),
    ("added", "The monitor is added."),
    ("deleted", "Deleted."),
    ("paused", "Checks are paused."),
    ("resumed", "Checks are resumed."),
    ("checked", "The check has run."),
    (
        "busy",
        "The check could not start now; it runs at its next time.",
    ),
    ("acknowledged", "The incident is acknowledged."),
    ("resolved", "The incident is resolved."),
    ("declared", "The incident is declared."),
    ("updated", "The update is published."),
    ("tagged", "The tags are changed."),
    ("nothing", "Nothing was selected."),
    (
        "read-only",
        "Monitors of the configuration file were left as they are.",
    ),
    ("sent", "The test message was accepted."),
    ("link-revoked", "The link is revoked."),
    ("revoked", "The token is revoked."),
    ("ended", "The sessions are ended."),
    (
        "password",
        "The password is changed, and all other sessions are ended.",
    ),
    (
        "must-change",
        "Choose your own password first: another person has seen the current one.",
    ),
    ("totp-on", "One-time codes are required from now on."),
    (
        "recovery",
        "The recovery codes of before are no longer valid.",
    ),
    ("totp-off", "One-time codes are no longer required."),
    ("linked", "You can sign in by the provider from now on."),
    ("unlinked", "The provider no longer signs you in."),
    ("no-incident", "The monitor has no open incident."),
];

/// The frame of a page.
#[derive(Debug)]
pub(super) struct Shell {
    pub(super) title: String,
    /// The path of the menu that the page belongs to.
    section: &'static str,
    pub(super) user: String,
    pub(super) role: &'static str,
    pub(super) csrf: String,
    pub(super) edits: bool,
    /// The outcome of the last action.
    pub(super) notice: Option<&'static str>,
    /// The error, if it is of no field.
    pub(super) error: Option<String>,
    /// The errors of fields.
    pub(super) faults: Faults,
    menu: Vec<Link>,
}

/// A link of the menu.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) path: &'static str,
    pub(super) text: &'static str,
    pub(super) shortcut: char,
    pub(super) is_here: bool,
}

impl Shell {
    pub(super) fn new(me: &Me, section: &'static str, title: impl Into<String>) -> Self {
        let menu =
            MENU.iter()
                .filter(|(.., role)| me.may(*role))
                .map(|(path, text, shortcut, _)| Link {
                    path,
                    text,
                    shortcut: *shortcut,
                    is_here: *path == section,
                });
        Self {
            title: title.into(),
            section,
            user: me.user.name.clone(),
            role: me.user.role.name(),
            csrf: me.csrf.clone(),
            edits: me.may(Role::Editor),
            notice: None,
            error: None,
            faults: Faults::default(),
            menu: menu.collect(),
        }
    }

    /// With the message of `?done=`.
    pub(super) fn done(mut self, query: Option<&str>) -> Self {
        let code = crate::request::parameter(query, "done");
        let found = DONE
            .iter()
            .find(|(known, _)| code.as_deref() == Some(*known));
        self.notice = found.map(|(_, text)| *text);
        self
    }

    pub(super) fn wrong(mut self, error: Option<String>) -> Self {
        self.error = error;
        self
    }

    /// With why a form was not accepted, at its fields where it is of one.
    ///
    /// - `field_of`: the id of the field for a key of the definition, or for the name that the error has for one.
    pub(super) fn refused(
        mut self,
        error: Option<&FormError>,
        field_of: impl Fn(&str) -> Option<String>,
    ) -> Self {
        if let Some(error) = error {
            let (faults, others) = Faults::sorted(error, field_of);
            self.faults = faults;
            self.error = (!others.is_empty()).then(|| others.join("\n"));
        }
        self
    }

    /// Whether a form was not accepted.
    pub(super) fn is_wrong(&self) -> bool {
        self.error.is_some() || !self.faults.all().is_empty()
    }

    /// The links of the menu; the last one is a button elsewhere.
    pub(super) fn links(&self) -> &[Link] {
        let is_button = |link: &&Link| link.path == "/admin/new-monitor";
        let count = self.menu.iter().filter(|link| !is_button(link)).count();
        &self.menu[..count]
    }

    /// All links with shortcuts.
    pub(super) fn shortcuts(&self) -> &[Link] {
        debug_assert!(!self.section.is_empty());
        &self.menu
    }
}

/// A page, or why it could not be rendered.
pub(super) fn html(template: &impl Template, status: StatusCode) -> Response {
    match template.render() {
        Ok(content) => {
            let mut response = Response::new(Body::from(content));
            *response.status_mut() = status;
            let media_type = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, media_type);
            response
        }
        Err(error) => {
            let mut response = Response::new(Body::from(error.to_string()));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}

pub(super) fn page(template: &impl Template) -> Response {
    html(template, StatusCode::OK)
}

/// Sends the browser on, by GET.
pub(super) fn redirect(to: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}

#[derive(Template)]
#[template(path = "admin/message.html")]
struct MessagePage<'a> {
    title: &'a str,
    text: &'a str,
}

/// A page with a heading and a sentence.
pub(super) fn message(status: StatusCode, title: &str, text: &str) -> Response {
    html(&MessagePage { title, text }, status)
}

/// A path that is no route: with a slash at its end, the page without it.
pub(super) async fn elsewhere(uri: Uri) -> Response {
    match uri.path().strip_suffix('/') {
        Some(path) => redirect(path),
        None => missing().await,
    }
}

pub(super) async fn missing() -> Response {
    message(
        StatusCode::NOT_FOUND,
        "There is no such page",
        "It may have been deleted or renamed.",
    )
}

/// The response to a browser for a path at which there is no status page.
pub(crate) fn no_status_page(is_tls: bool) -> Response {
    let page = message(
        StatusCode::NOT_FOUND,
        "There is no such page",
        "No status page is at this address.",
    );
    protected(page, is_tls)
}

pub(super) async fn asset(Path(name): Path<String>) -> Response {
    let (content, media_type) = match name.as_str() {
        "admin.js" => (SCRIPT.to_owned(), "text/javascript; charset=utf-8"),
        "admin.css" => (
            format!(
                "{}{}{STYLE}",
                plimsoll_model::look::STYLE,
                plimsoll_report::plot::STYLE
            ),
            "text/css; charset=utf-8",
        ),
        "wall.css" => (WALL.to_owned(), "text/css; charset=utf-8"),
        "icon.svg" => (ICON.to_owned(), "image/svg+xml"),
        _ => return missing().await,
    };
    let mut response = Response::new(Body::from(content));
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    response
}

/// A date for people, and for scripts that show it in their zone.
#[derive(Debug, Clone)]
pub(super) struct When {
    pub(super) iso: String,
    pub(super) text: String,
}

impl When {
    pub(super) fn from_timestamp(at: Timestamp) -> Self {
        let iso = at.to_string();
        let text = iso.get(..16).unwrap_or(&iso).replace('T', " ");
        Self {
            text: format!("{text} UTC"),
            iso,
        }
    }
}

/// A duration for people: `3 d 4 h`, `12 min`, `40 s`.
pub(super) fn duration(duration: Duration) -> String {
    Language::English.duration(duration)
}

/// `12.3 ms` or `1.20 s`.
pub(super) fn latency(micros: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let millis = micros as f64 / 1000.0;
    if millis >= 1000.0 {
        format!("{:.2} s", millis / 1000.0)
    } else {
        format!("{millis:.1} ms")
    }
}

/// `99.95 %`, never rounded up to 100.
pub(super) fn percent(ratio: Option<f64>) -> String {
    match ratio {
        None => "–".to_owned(),
        Some(ratio) if ratio >= 1.0 => "100 %".to_owned(),
        Some(ratio) if ratio <= 0.0 => "0 %".to_owned(),
        Some(ratio) => format!("{} %", percent_rounded_down(ratio, 3)),
    }
}

/// The class and the word of a monitor's state.
pub(super) fn state(health: Health, in_maintenance: bool) -> (&'static str, &'static str) {
    match health {
        _ if in_maintenance => ("maintenance", "Maintenance"),
        Health::Up => ("operational", "Up"),
        Health::Degraded => ("degraded", "Degraded"),
        Health::Down => ("major", "Down"),
        Health::Pending => ("unknown", "Pending"),
        Health::NoData => ("partial", "No data"),
        Health::Paused => ("unknown", "Paused"),
    }
}
