//! The routes of a page: at `/status/SLUG` and at `/` of its host.

mod detail;

mod guard;

mod reply;

mod subscribe;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, ACCEPT_LANGUAGE, HOST, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Method, StatusCode};
use plimsoll_monitor::config::Language;
use plimsoll_monitor::store::StoreError;
use serde_json::json;

use crate::answer::not_found;
use crate::badge::{self, Badge, Look};
use crate::cookies::cookie;
use crate::language::Texts as _;
use crate::page::cache::{Current, Rendered};
use crate::page::html::{self, Frame};
use crate::page::snapshot::{Completed, State as Shown};
use crate::page::{PagePlan, feed, live, statuspage};
use crate::request::{is_tls, origin_of, parameter};
use crate::state::Api;
use crate::visit::reply::{Caching, redirect, refused, reply};

/// Seconds after which a request may be repeated that the store did not take.
const RETRY_SOON: HeaderValue = HeaderValue::from_static("30");

const HTML: &str = "text/html; charset=utf-8";

/// A request for a page.
struct Visit<'a> {
    api: &'a Api,
    plan: &'a Arc<PagePlan>,
    base: String,
    /// Behind the base, with its slash.
    path: &'a str,
    query: Option<&'a str>,
    fields: &'a HeaderMap,
    t: Language,
    /// Whether the query names the language.
    sets_language: bool,
    /// Of the page, without a slash at its end.
    url: String,
}

/// `/status/SLUG` and everything below it.
pub(crate) async fn at_slug(State(api): State<Api>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let rest = path.strip_prefix("/status/").unwrap_or_default();
    let written = rest.split('/').next().unwrap_or_default();
    // A link may have a hyphen as `%2D`.
    let slug = percent_encoding::percent_decode_str(written).decode_utf8_lossy();
    let pages = api.handle.board.pages();
    let Some(plan) = pages.iter().find(|plan| plan.slug == slug) else {
        return no_page(request).await;
    };
    let base = format!("/status/{slug}");
    let below = rest.strip_prefix(written).unwrap_or_default();
    if below.is_empty() {
        return redirect(StatusCode::PERMANENT_REDIRECT, &format!("{base}/"));
    }
    serve(&api, plan, base, below, request).await
}

/// Every path that nothing else answers: a page whose host it is, or the first page without a host.
pub(crate) async fn at_root(State(api): State<Api>, request: Request) -> Response {
    let pages = api.handle.board.pages();
    let host = host(request.headers());
    let of_host = pages
        .iter()
        .find(|plan| plan.host.is_some() && plan.host == host);
    let plan = of_host.or_else(|| pages.iter().find(|plan| plan.host.is_none()));
    let Some(plan) = plan else {
        return no_page(request).await;
    };
    let path = request.uri().path().to_owned();
    serve(&api, plan, String::new(), &path, request).await
}

/// Of a response: no status page is where a browser looked for one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoStatusPage {
    /// Whether the browser reached it over TLS.
    pub(crate) is_tls: bool,
}

/// The response where there is no status page: JSON, for which browsers get a page instead.
async fn no_page(request: Request) -> Response {
    let fields = request.headers();
    let accepted = fields.get(ACCEPT).and_then(|value| value.to_str().ok());
    let is_of_browser = accepted.is_some_and(|value| value.contains("text/html"));
    let is_page = is_of_browser && !is_of_programs(request.uri().path());
    let is_tls = is_tls(fields, request.extensions());
    let mut response = not_found().await.into_response();
    if is_page {
        response.extensions_mut().insert(NoStatusPage { is_tls });
    }
    response
}

/// The host of a request, without its port.
fn host(fields: &HeaderMap) -> Option<String> {
    let host = fields.get(HOST)?.to_str().ok()?;
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    Some(name.to_ascii_lowercase())
}

async fn serve(
    api: &Api,
    plan: &Arc<PagePlan>,
    base: String,
    path: &str,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let fields = &parts.headers;
    let path = &*percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let named = parameter(parts.uri.query(), "lang").and_then(|code| Language::with_tag(&code));
    let accepted = || {
        let value = fields.get(ACCEPT_LANGUAGE)?.to_str().ok()?;
        Language::accepted(value)
    };
    let remembered = || Language::with_tag(cookie(fields, "lang")?);
    let url = plan
        .url
        .clone()
        .unwrap_or_else(|| format!("{}{base}", origin_of(fields, &parts.extensions)));
    let visit = Visit {
        api,
        plan,
        path,
        query: parts.uri.query(),
        fields,
        t: named
            .or_else(remembered)
            .or_else(accepted)
            .unwrap_or(plan.language),
        sets_language: named.is_some(),
        url,
        base,
    };
    match parts.method {
        Method::GET | Method::HEAD => visit.get(&parts.extensions).await,
        Method::POST => visit.post(&parts.extensions, body).await,
        _ => crate::answer::method_not_allowed().await.into_response(),
    }
}

impl Visit<'_> {
    fn frame<'f>(&'f self, style: &'f str, state: Shown) -> Frame<'f> {
        let mut frame = Frame::new(self.plan, self.t, &self.base, style, state);
        frame.is_live = true;
        frame.subscribes = self.may_subscribe();
        frame
    }

    async fn get(&self, extensions: &http::Extensions) -> Response {
        if let Some(asset) = self.asset() {
            return asset;
        }
        // The links of messages work without a password.
        if self.path.starts_with("/subscribe/") {
            return match self.subscription().await {
                Some(response) => response,
                None => self.missing(),
            };
        }
        if let Some(token) = self.path.strip_prefix("/share/") {
            return match self.shared(token).await {
                Some(response) => response,
                None => self.missing(),
            };
        }
        if let Some(refusal) = self.refusal(extensions).await {
            return refusal;
        }
        if let Some(response) = self.subscription().await {
            return response;
        }
        if self.path == "/events" {
            return live::events(self.api.handle.board.subscribe());
        }
        if self.path == "/logo" {
            return self.logo().await;
        }
        if !is_known(self.path) {
            return if is_of_programs(self.path) {
                not_found().await.into_response()
            } else {
                self.missing()
            };
        }
        let current = self.api.pages.current(&self.api.handle, self.plan).await;
        match current {
            Ok(current) => self.of_snapshot(&current).await,
            Err(error) => Err(error),
        }
        .unwrap_or_else(|error| self.unreadable(error))
    }

    /// Assets are the same for everyone, with or without a password.
    fn asset(&self) -> Option<Response> {
        let name = self.path.strip_prefix("/assets/")?;
        let (style_name, style) = html::style(self.plan);
        let rendered = if name == style_name {
            Rendered::new("text/css; charset=utf-8", style)
        } else if name == html::script_name() {
            Rendered::new("text/javascript; charset=utf-8", html::SCRIPT.to_owned())
        } else {
            return Some(refused(StatusCode::NOT_FOUND, "there is no such file\n"));
        };
        Some(reply(&rendered, self.fields, Caching::Forever))
    }

    async fn logo(&self) -> Response {
        match &self.plan.logo {
            Some(logo) => reply::picture(logo.media_type, &logo.content),
            None => not_found().await.into_response(),
        }
    }

    async fn of_snapshot(&self, current: &Arc<Current>) -> Result<Response, StoreError> {
        if self.path.ends_with("/badge.svg") {
            return Ok(self.badge(current));
        }
        let window = parameter(self.query, "window").unwrap_or_default();
        let key = format!("{} {} {window}", self.url, self.path);
        let rendered = match current.known(self.t, &key) {
            Some(known) => known,
            None => match self.render(current, &window).await? {
                Some(rendered) => {
                    let rendered = Arc::new(rendered);
                    current.keep(self.t, &key, Arc::clone(&rendered));
                    rendered
                }
                None => return Ok(self.missing()),
            },
        };
        let caching = match self.plan.guard {
            _ if self.sets_language => Caching::Language(self.t.code()),
            crate::page::Guard::Open => Caching::Briefly,
            _ => Caching::Private,
        };
        let mut response = reply(&rendered, self.fields, caching);
        if matches!(caching, Caching::Briefly) {
            self.share(&mut response, current.stale.is_some());
        }
        if self.path == "/embed" {
            reply::allow_frames(&mut response);
        }
        Ok(response)
    }

    /// Lets shared caches keep a response for as long as the configuration says, and briefly if it is not the present state.
    fn share(&self, response: &mut Response, is_stale: bool) {
        if let Some(longest) = self.plan.shared_max_age {
            let seconds = if is_stale { 5 } else { longest.as_secs() };
            reply::share(response, seconds, &self.plan.slug);
        }
    }

    /// The state of the page or of a component, or its uptime, as a picture. Drawn each time: it has any label.
    fn badge(&self, current: &Current) -> Response {
        let snapshot = &current.snapshot;
        let look = match Look::from_query(|key| parameter(self.query, key)) {
            Ok(look) => look,
            Err((key, why)) => {
                return refused(StatusCode::BAD_REQUEST, format!("`{key}` {why}\n"));
            }
        };
        let segments: Vec<_> = self.path.trim_start_matches('/').split('/').collect();
        let badge = match segments.as_slice() {
            ["badge.svg"] => {
                let text = self.t.text(snapshot.overall.overall());
                Badge::new(&self.plan.title, text, badge_color(snapshot.overall))
            }
            ["components", key, "badge.svg"] => {
                let Some(one) = snapshot.components().find(|one| one.key == *key) else {
                    return self.missing();
                };
                let is_uptime = parameter(self.query, "show").as_deref() == Some("uptime");
                match one.uptime.ratio() {
                    Some(ratio) if is_uptime => {
                        let percent = badge::percent(ratio);
                        Badge::new(&one.name, &percent, badge::of_uptime(ratio))
                    }
                    None if is_uptime => {
                        let text = self.t.text(Shown::Unknown.text());
                        Badge::new(&one.name, text, badge::GREY)
                    }
                    _ => {
                        let text = self.t.text(one.state.text());
                        Badge::new(&one.name, text, badge_color(one.state))
                    }
                }
            }
            _ => return self.missing(),
        };
        let rendered = Rendered::new("image/svg+xml", badge.with(look).svg());
        let caching = match self.plan.guard {
            crate::page::Guard::Open => Caching::Briefly,
            _ => Caching::Private,
        };
        let mut response = reply(&rendered, self.fields, caching);
        if matches!(caching, Caching::Briefly) {
            self.share(&mut response, current.stale.is_some());
        }
        response
    }

    /// The store has no answer at present: a page for readers, the error for programs.
    fn unreadable(&self, error: StoreError) -> Response {
        const PAGES: [&str; 6] = [
            "",
            "embed",
            "history",
            "incidents",
            "maintenance",
            "components",
        ];

        let mut segments = self.path.trim_start_matches('/').split('/');
        let is_page = segments.next().is_some_and(|first| PAGES.contains(&first))
            && !is_of_programs(self.path);
        let mut response = if is_page {
            let mut response = self.missing_with("page_away");
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response
        } else {
            crate::answer::ApiError::from(error).into_response()
        };
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, RETRY_SOON);
        }
        response
    }

    fn missing(&self) -> Response {
        self.missing_with("not_found")
    }

    fn missing_with(&self, message: &'static str) -> Response {
        let (style, _) = html::style(self.plan);
        let frame = Frame::new(self.plan, self.t, &self.base, &style, Shown::Unknown);
        let page = html::message_page(frame, self.t.text(message), true, false);
        let rendered = Rendered::new(HTML, page);
        let mut response = reply(&rendered, self.fields, Caching::Private);
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    }

    /// What a path shows; `None` if there is no such path.
    async fn render(
        &self,
        current: &Current,
        window: &str,
    ) -> Result<Option<Rendered>, StoreError> {
        let snapshot = &current.snapshot;
        let (style, _) = html::style(self.plan);
        let f = self.frame(&style, snapshot.overall);
        let page = |content: Option<String>| content.map(|content| Rendered::new(HTML, content));
        let segments: Vec<_> = self.path.trim_start_matches('/').split('/').collect();
        Ok(match segments.as_slice() {
            [""] => page(Some(html::status_page(f, snapshot, current.stale_text()))),
            ["embed"] => page(Some(html::embed(f, snapshot))),
            ["history"] => page(self.history(f, snapshot, None).await?),
            ["history", month] => page(self.history(f, snapshot, Some(month)).await?),
            ["incidents", id] => page(self.incident(f, snapshot, id).await?),
            ["maintenance", id @ ..] => page(self.maintenance(f, snapshot, &id.join("/")).await?),
            ["components", key] => page(self.component(f, snapshot, key, window).await?),
            ["components", key, "shields.json"] => {
                let one = snapshot.components().find(|one| one.key == *key);
                one.map(|one| shields(&one.name, self.t.text(one.state.text()), one.state))
            }
            ["shields.json"] => {
                let text = self.t.text(snapshot.overall.overall());
                Some(shields(&self.plan.title, text, snapshot.overall))
            }
            ["icon.svg"] => Some(Rendered::new(
                "image/svg+xml",
                html::tab_icon(snapshot.overall),
            )),
            ["feed.atom"] => Some(Rendered::new(
                "application/atom+xml; charset=utf-8",
                feed::atom(f, snapshot, &self.url),
            )),
            ["feed.rss"] => Some(Rendered::new(
                "application/rss+xml; charset=utf-8",
                feed::rss(f, snapshot, &self.url),
            )),
            ["calendar.ics"] => Some(Rendered::new(
                "text/calendar; charset=utf-8",
                feed::calendar(f, snapshot, &self.url),
            )),
            ["api", "v2", rest @ ..] => {
                let path = rest.join("/");
                let completed = if path == statuspage::ALL_MAINTENANCE {
                    self.completed(snapshot)
                } else {
                    Completed::default()
                };
                let answer = statuspage::answer(f, snapshot, &completed.all, &self.url, &path);
                answer.map(|answer| Rendered::new("application/json", answer.to_string()))
            }
            _ => None,
        })
    }
}

/// Whether a page may have a path, so that others need no snapshot.
fn is_known(path: &str) -> bool {
    const FIRST: [&str; 13] = [
        "",
        "embed",
        "history",
        "incidents",
        "maintenance",
        "components",
        "shields.json",
        "badge.svg",
        "icon.svg",
        "feed.atom",
        "feed.rss",
        "calendar.ics",
        "api",
    ];

    let rest = path.trim_start_matches('/');
    let first = rest.split('/').next().unwrap_or_default();
    FIRST.contains(&first) && (first != "api" || rest.starts_with("api/v2/"))
}

/// Whether programs fetch such a path, who read errors as JSON.
fn is_of_programs(path: &str) -> bool {
    path.starts_with("/api/") || path.rsplit('.').next() == Some("json")
}

fn badge_color(state: Shown) -> &'static str {
    match state {
        Shown::Operational => badge::GREEN,
        Shown::Degraded => badge::YELLOW,
        Shown::Partial => badge::ORANGE,
        Shown::Major => badge::RED,
        Shown::Maintenance => badge::BLUE,
        Shown::Unknown => badge::GREY,
    }
}

/// The endpoint format of shields.io.
fn shields(label: &str, message: &str, state: Shown) -> Rendered {
    let color = match state {
        Shown::Operational => "brightgreen",
        Shown::Degraded => "yellow",
        Shown::Partial => "orange",
        Shown::Major => "red",
        Shown::Maintenance => "blue",
        Shown::Unknown => "lightgrey",
    };
    let answer = json!({ "schemaVersion": 1, "label": label, "message": message, "color": color });
    Rendered::new("application/json", answer.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_hosts_and_paths() {
        use http::header::COOKIE;

        let mut fields = HeaderMap::new();
        fields.append(COOKIE, "a=1; lang=de".parse().unwrap());
        fields.append(COOKIE, "language=fr".parse().unwrap());
        assert_eq!(cookie(&fields, "lang"), Some("de"));
        assert_eq!(cookie(&fields, "b"), None);
        for (given, expected) in [
            ("Status.Example.org:8080", "status.example.org"),
            ("[::1]:80", "[::1]"),
            ("a", "a"),
        ] {
            fields.insert(HOST, given.parse().unwrap());
            assert_eq!(host(&fields).as_deref(), Some(expected));
        }
        assert!(is_known("/api/v2/summary.json") && !is_known("/api/v1/nothing"));
        assert!(is_of_programs("/api/v1/nothing") && is_of_programs("/nothing.json"));
        assert!(!is_of_programs("/nothing") && !is_of_programs("/apiary"));
    }
}
