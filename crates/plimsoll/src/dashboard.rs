//! Serves the page of a run that goes on, and its events.
//!
//! On a loopback address by default. Pages of other sites see nothing: requests must name this machine, and no page may
//! frame or read it.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;
use plimsoll_report::dashboard::{Dashboard, SCRIPT, SCRIPT_NAME};
use plimsoll_server::{
    Action, Answer, Counters, Engine, EnginePlan, ListenerPlan, Middleware, Request, Response,
    ResponseBody, SecurityHeaders, Serves, StreamError, WorkerContext,
};
use plimsoll_wire::http::names_loopback;
use plimsoll_wire::sse;
use tokio::sync::watch;

use crate::problem::Problem;

/// The port of k6's dashboard.
pub(crate) const PORT: u16 = 5665;

/// How long pages may take to receive the last figures.
const LAST_FIGURES: Duration = Duration::from_secs(2);

/// Pages load their own script and the events, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// A server that shows a run.
#[derive(Debug)]
pub(crate) struct DashboardServer {
    address: SocketAddr,
    shown: watch::Sender<Arc<Shown>>,
    engine: Engine,
}

/// The figures of one moment, encoded once for all readers.
#[derive(Debug, Default)]
struct Shown {
    page: Bytes,
    event: Bytes,
    is_last: bool,
}

impl Shown {
    fn new(dashboard: &Dashboard, is_last: bool) -> Self {
        let content = serde_json::Value::from(dashboard.content());
        let kind = if is_last { "event: end\n" } else { "" };
        Self {
            page: dashboard.live_page().into(),
            event: sse::encoded_event(kind, &content.to_string()).into(),
            is_last,
        }
    }
}

impl DashboardServer {
    /// - `flag`: where the address is from.
    /// - `address`: `HOST:PORT`, or `:PORT` for the loopback address.
    /// - `first`: what is shown until there are figures.
    pub(crate) fn listen(flag: &str, address: &str, first: &Dashboard) -> Result<Self, Problem> {
        let wrong = |message: String| Problem::with(flag, message);
        let named = match address.strip_prefix(':') {
            Some(port) => format!("127.0.0.1:{port}"),
            None if address.contains(':') => address.to_owned(),
            None => format!("{address}:{PORT}"),
        };
        let mut found = named
            .to_socket_addrs()
            .map_err(|error| wrong(format!("`{address}`: {error}")))?;
        let found = found
            .next()
            .ok_or_else(|| wrong(format!("`{address}` has no address")))?;
        let (shown, _) = watch::channel(Arc::new(Shown::new(first, false)));
        let seen = shown.subscribe();
        let is_local = found.ip().is_loopback();
        let headers = SecurityHeaders::default().with(
            "content-security-policy",
            Some(HeaderValue::from_static(POLICY)),
        );
        let layers = Middleware {
            security_headers: Some(Arc::new(headers)),
            ..Middleware::default()
        };
        let make = move |_: &WorkerContext| {
            layers.over(Rc::new(Respond {
                seen: seen.clone(),
                is_local,
            }))
        };
        let listener = ListenerPlan::new(found, Serves::clear(Arc::new(make)));
        let plan = EnginePlan {
            threads: 1,
            ..EnginePlan::new(vec![listener])
        };
        let engine = Engine::start(&plan, Arc::<Counters>::default())
            .map_err(|error| Problem::caused_by(&error).about(flag))?;
        let address = engine.addresses().first().copied().unwrap_or(found);
        Ok(Self {
            address,
            shown,
            engine,
        })
    }

    /// The URL of the page.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Shows other figures.
    pub(crate) fn show(&self, dashboard: &Dashboard) {
        self.shown
            .send_replace(Arc::new(Shown::new(dashboard, false)));
    }

    /// Shows the last figures and ends.
    pub(crate) fn end(self, dashboard: &Dashboard) {
        self.shown
            .send_replace(Arc::new(Shown::new(dashboard, true)));
        // Clients that have not received them by then have gone away.
        self.engine.drain(LAST_FIGURES);
    }
}

struct Respond {
    seen: watch::Receiver<Arc<Shown>>,
    /// Whether the address is this machine's alone.
    is_local: bool,
}

impl Action for Respond {
    fn handle(&self, request: &Request<'_>) -> Answer {
        if self.is_local && !names_loopback(request.authority) {
            let text = "the dashboard is served under the names of the loopback alone\n";
            return Answer::now(Response::text(StatusCode::MISDIRECTED_REQUEST, text));
        }
        if request.method != "GET" && request.method != "HEAD" {
            let response = Response::text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
            let methods = HeaderValue::from_static("GET, HEAD");
            return Answer::now(response.with_field(http::header::ALLOW, methods));
        }
        let (kind, body) = match request.path.trim_start_matches('/') {
            "" => {
                let page = self.seen.borrow().page.clone();
                ("text/html; charset=utf-8", ResponseBody::Bytes(page))
            }
            SCRIPT_NAME => (
                "text/javascript; charset=utf-8",
                ResponseBody::Bytes(Bytes::from_static(SCRIPT.as_bytes())),
            ),
            "events" if request.method == "GET" => (sse::MEDIA_TYPE, events(self.seen.clone())),
            _ => {
                let text = "there is `/` with the page\n";
                return Answer::now(Response::text(StatusCode::NOT_FOUND, text));
            }
        };
        let response = Response::new(StatusCode::OK)
            .with_field(CONTENT_TYPE, HeaderValue::from_static(kind))
            .with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Answer::now(response.with_body(body))
    }
}

/// Sends the figures whenever there are others, until the last ones.
fn events(seen: watch::Receiver<Arc<Shown>>) -> ResponseBody {
    let first = (seen, true);
    let events = stream::unfold(Some(first), |state| async move {
        let (mut seen, is_first) = state?;
        // The run has ended without last figures if the sender is gone.
        if !is_first && seen.changed().await.is_err() {
            return None;
        }
        let shown = Arc::clone(&seen.borrow_and_update());
        let next = (!shown.is_last).then_some((seen, false));
        Some((Ok::<_, StreamError>(Frame::data(shown.event.clone())), next))
    });
    ResponseBody::Stream(Box::pin(StreamBody::new(events)))
}
