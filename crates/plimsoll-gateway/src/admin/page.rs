//! The admin page: upstreams, their servers and routes, rendered here and kept current by events.
//!
//! It can be read without JavaScript. The script replaces the figures once a second, sets weights, and shows forms for changes
//! of the configuration where those are permitted.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use askama::Template;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use plimsoll_model::look::STYLE as LOOK;
use plimsoll_model::{ByteSize, Clock as _};
use plimsoll_server::{
    AdminPage, Answer, AnswerApi, Counters, EventSource, EventStreamBody, NextEvent, Response,
    ResponseBody,
};
use plimsoll_wire::SystemClock;
use plimsoll_wire::sse::MEDIA_TYPE;

use crate::cache::{CacheFigures, Store, StoreState};
use crate::forward::{RouteFigures, RouteStatus};
use crate::upstream::{Event, Recent, ServerStatus, UpstreamFigures, UpstreamStatus};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("page.js"), include_str!("configuration.js"));

/// How often the figures are sent.
const EVERY: Duration = Duration::from_secs(1);

/// Pages that are kept current at a time.
const MOST_READERS: usize = 64;

/// Ticks after which a comment is sent although nothing has changed, which ends connections of readers that have left.
const SILENT: u32 = 20;

static READERS: AtomicUsize = AtomicUsize::new(0);

static PAGE: LazyLock<AdminPage> =
    LazyLock::new(|| AdminPage::new(format!("{LOOK}{STYLE}"), SCRIPT));

#[derive(Template)]
#[template(path = "page.html")]
struct Document<'a> {
    style: &'a str,
    script: &'a str,
    content: &'a str,
}

#[derive(Template)]
#[template(path = "content.html")]
struct Content {
    connections: usize,
    rate: String,
    available: usize,
    servers: usize,
    is_draining: bool,
    upstreams: Vec<UpstreamView>,
    routes: Vec<RouteView>,
    caches: Vec<CacheView>,
}

struct CacheView {
    route: String,
    entries: usize,
    size: String,
    /// Share of the responses that did not wait for a server.
    served: String,
    hits: u64,
    stale: u64,
    misses: u64,
    validated: u64,
    evicted: u64,
}

struct UpstreamView {
    name: String,
    rate: String,
    breaker: Option<BreakerView>,
    source: Option<SourceView>,
    events: Vec<(&'static str, u64)>,
    servers: Vec<ServerView>,
}

/// What lists the servers of an upstream.
struct SourceView {
    /// Such as `kubernetes shop/api:http`.
    name: String,
    /// `None` while it answers.
    away: Option<String>,
}

struct BreakerView {
    name: &'static str,
    class: &'static str,
}

struct ServerView {
    name: String,
    state: &'static str,
    class: &'static str,
    weight: u32,
    /// The weight that a drained server gets back.
    restored: u32,
    active: u64,
    connections: u64,
    fine: u64,
    refused: u64,
    broken: u64,
    failures: u64,
    recent: RecentView,
}

struct RouteView {
    name: String,
    targets: String,
    fine: u64,
    refused: u64,
    broken: u64,
    recent: RecentView,
}

struct RecentView {
    rate: String,
    failed: String,
    p50: String,
    p99: String,
    /// Points of a line, in a box of 60 by 20.
    line: String,
}

/// What the page shows.
#[derive(Clone)]
struct ShownFigures {
    upstreams: Arc<UpstreamFigures>,
    routes: Arc<RouteFigures>,
    caches: Arc<CacheFigures>,
    counters: Arc<Counters>,
}

/// Answers GET of the page at the root, and of its events.
pub(crate) fn answer(counters: Arc<Counters>) -> Arc<AnswerApi> {
    let figures = ShownFigures {
        upstreams: counters.figures(),
        routes: counters.figures(),
        caches: counters.figures(),
        counters,
    };
    Arc::new(move |request, rest| {
        let response = match (request.method, rest) {
            ("GET" | "HEAD", "") => AdminPage::redirect(request),
            ("GET" | "HEAD", "/") => Some(document(&figures)),
            ("GET", "/events") => Some(events(&figures)),
            _ => None,
        };
        Answer::now(response.unwrap_or_else(|| {
            let text = "there are GET /gateway/ and GET /gateway/events\n";
            Response::text(StatusCode::NOT_FOUND, text)
        }))
    })
}

fn document(figures: &ShownFigures) -> Response {
    let document = Document {
        style: PAGE.style(),
        script: PAGE.script(),
        content: &content(figures),
    };
    PAGE.response(Bytes::from(document.render().unwrap_or_default()))
}

fn events(figures: &ShownFigures) -> Response {
    let Some(reader) = Reader::new() else {
        let later = HeaderValue::from_static("30");
        return Response::text(StatusCode::SERVICE_UNAVAILABLE, "too many readers\n")
            .with_field(RETRY_AFTER, later);
    };
    let changes = ContentChanges {
        figures: figures.clone(),
        last: String::new(),
        _reader: reader,
    };
    let events = EventStreamBody::new(changes, EVERY, SILENT);
    let kind = HeaderValue::from_static(MEDIA_TYPE);
    // Proxies such as nginx must not hold events back.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    Response::new(StatusCode::OK)
        .with_field(CONTENT_TYPE, kind)
        .with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with_field(unbuffered, HeaderValue::from_static("no"))
        .with_body(ResponseBody::Stream(Box::pin(events)))
}

/// One page that is kept current.
struct Reader;

impl Reader {
    /// `None` if there are too many.
    fn new() -> Option<Self> {
        let reader = Self;
        (READERS.fetch_add(1, Ordering::Relaxed) < MOST_READERS).then_some(reader)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        READERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The content of the page, whenever it has changed.
struct ContentChanges {
    figures: ShownFigures,
    last: String,
    _reader: Reader,
}

impl EventSource for ContentChanges {
    fn next_event(&mut self) -> NextEvent {
        if self.figures.counters.is_draining() {
            return NextEvent::End;
        }
        let content = content(&self.figures);
        if content == self.last {
            return NextEvent::Pending;
        }
        self.last.clone_from(&content);
        NextEvent::Data(content)
    }
}

/// The part of the page that changes.
fn content(figures: &ShownFigures) -> String {
    let upstreams: Vec<_> = figures
        .upstreams
        .all()
        .iter()
        .map(|it| upstream(it))
        .collect();
    let routes = figures.routes.routes();
    let servers = || upstreams.iter().flat_map(|it| &it.servers);
    let content = Content {
        connections: figures.counters.open(),
        rate: shown_rate(routes.iter().fold(0.0, |sum, it| sum + it.recent.rate)),
        available: servers().filter(|it| it.state == "healthy").count(),
        servers: servers().count(),
        is_draining: figures.counters.is_draining(),
        upstreams,
        routes: routes.into_iter().map(route).collect(),
        caches: figures.caches.stores().into_iter().map(cache).collect(),
    };
    content.render().unwrap_or_default()
}

fn upstream(status: &UpstreamStatus) -> UpstreamView {
    let now = SystemClock.now();
    let servers = status.watched_servers(now);
    // Of no servers the sum would be shown as -0.0.
    let rate = servers
        .iter()
        .fold(0.0, |sum, (_, _, recent)| sum + recent.rate);
    let events = [
        ("retries", Event::Retry),
        ("retries refused", Event::RefusedRetry),
        ("hedges", Event::Hedge),
        ("copies dropped", Event::DroppedCopy),
        ("limited", Event::Limited),
        ("refused by the breaker", Event::Broken),
    ];
    let events = events.map(|(name, event)| (name, status.counted(event)));
    let breaker = status.breaker(now).map(|name| BreakerView {
        name,
        class: if name == "closed" { "good" } else { "bad" },
    });
    let source = status.source(now).map(|source| SourceView {
        name: format!("{} {}", source.kind, source.name),
        away: source.problem.map(|problem| {
            let seconds = source.away_seconds.floor();
            let list = if servers.is_empty() {
                "no list"
            } else {
                "no other list"
            };
            format!("{list} for {seconds} s: {problem}")
        }),
    });
    UpstreamView {
        name: status.name.clone(),
        rate: shown_rate(rate),
        breaker,
        source,
        events: events.into_iter().filter(|(_, count)| *count > 0).collect(),
        servers: servers.into_iter().map(server).collect(),
    }
}

fn server((status, configured, recent): (ServerStatus, u32, Recent)) -> ServerView {
    ServerView {
        class: match status.state {
            "healthy" => "good",
            "drained" => "warn",
            _ => "bad",
        },
        state: status.state,
        weight: status.weight,
        restored: configured.max(1),
        active: status.active,
        connections: status.connections,
        fine: status.responses[1] + status.responses[2],
        refused: status.responses[3],
        broken: status.responses[4],
        failures: status.failures,
        name: status.server,
        recent: shown(&recent),
    }
}

fn route(status: RouteStatus) -> RouteView {
    RouteView {
        targets: status.targets.join(", "),
        fine: status.responses[1] + status.responses[2],
        refused: status.responses[3],
        broken: status.responses[4],
        recent: shown(&status.recent),
        name: status.name,
    }
}

fn cache((route, stores): (String, Vec<Arc<Store>>)) -> CacheView {
    let sum = StoreState::from_stores(&stores);
    let [hits, stale, misses] = ["hit", "stale", "miss"].map(|event| sum.counted(event));
    let at_once = hits + stale;
    CacheView {
        route,
        entries: sum.entries,
        size: ByteSize(sum.bytes as u64).to_string(),
        served: match at_once + misses {
            0 => "–".to_owned(),
            all => format!("{:.1} %", at_once as f64 / all as f64 * 100.0),
        },
        hits,
        stale,
        misses,
        validated: sum.counted("validated"),
        evicted: sum.counted("evicted"),
    }
}

fn shown(recent: &Recent) -> RecentView {
    let time = |it: Option<Duration>| {
        it.map_or("–".to_owned(), |it| {
            let millis = it.as_secs_f64() * 1000.0;
            if millis < 10.0 {
                format!("{millis:.1} ms")
            } else {
                format!("{millis:.0} ms")
            }
        })
    };
    RecentView {
        rate: shown_rate(recent.rate),
        failed: format!("{:.1} %", recent.failed * 100.0),
        p50: time(recent.p50),
        p99: time(recent.p99),
        line: line(&recent.series),
    }
}

fn shown_rate(rate: f64) -> String {
    if rate < 10.0 {
        format!("{rate:.1}")
    } else {
        format!("{rate:.0}")
    }
}

/// The newest value is at the right end.
fn line(series: &[f64]) -> String {
    let most = series.iter().copied().fold(1.0, f64::max);
    let mut points = String::new();
    for (number, value) in series.iter().enumerate() {
        let x = 60 - series.len() + number + 1;
        let y = 19.0 - 18.0 * value / most;
        let space = if number == 0 { "" } else { " " };
        write!(points, "{space}{x},{y:.1}").expect("a String takes whatever is written");
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_the_right_and_reach_the_top_with_the_largest_value() {
        assert_eq!(line(&[0.0, 5.0, 10.0]), "58,19.0 59,10.0 60,1.0");
        assert_eq!(line(&[]), "");
        assert_eq!(line(&[0.0]), "60,19.0");
    }

    #[test]
    fn names_are_escaped() {
        let recent = Recent::default();
        let content = Content {
            connections: 0,
            rate: shown_rate(0.0),
            available: 0,
            servers: 0,
            is_draining: false,
            upstreams: Vec::new(),
            routes: vec![RouteView {
                name: "<script>".to_owned(),
                targets: "\"a\"".to_owned(),
                fine: 0,
                refused: 0,
                broken: 0,
                recent: shown(&recent),
            }],
            caches: Vec::new(),
        };
        let html = content.render().unwrap();
        assert!(
            !html.contains("<script>") && html.contains("&#60;script&#62;"),
            "{html}"
        );
    }
}
