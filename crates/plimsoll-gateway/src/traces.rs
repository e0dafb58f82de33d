//! Spans of forwarded requests, sent to a collector by OTLP.
//!
//! Spans wait in a queue of their worker and leave together every second, as JSON over HTTP. What the queue cannot hold, or
//! the collector does not take, is dropped and counted.
//!
//! Source: "OpenTelemetry Protocol", version 1.5, JSON Protobuf encoding; names are those of its semantic conventions.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::Full;
use plimsoll_client::forward::{Head, Pool, PoolOptions};
use plimsoll_client::{ConnectOptions, ConnectPlan, ConnectPlanError, Connector, Endpoint};
use plimsoll_model::{Clock as _, MetricsText};
use plimsoll_server::{Figures, Request, TraceNote, WorkerContext};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::{TlsError, TlsSettings};
use serde_json::{Value, json};

use crate::metric_names::METRICS;

/// Destination of spans.
#[derive(Debug)]
pub(crate) struct TracesPlan {
    pub(crate) endpoint: Endpoint,
    /// The name of the service in the collector.
    pub(crate) service: String,
    connect: Arc<ConnectPlan>,
}

/// Spans that wait on a worker; more are dropped.
const MOST_WAITING: usize = 4096;

/// How often those that wait are sent.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long the collector may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TracesError {
    #[error("cannot prepare TLS: {}", plimsoll_model::with_causes(.0))]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Connect(#[from] ConnectPlanError),
}

impl TracesPlan {
    pub(crate) fn new(endpoint: Endpoint, service: String) -> Result<Self, TracesError> {
        let settings = TlsSettings {
            alpn: vec![b"http/1.1".to_vec()],
            ..TlsSettings::default()
        };
        let tls = endpoint.is_tls().then(|| settings.compile()).transpose()?;
        let connect = ConnectPlan::new(ConnectOptions {
            tls,
            timeout: Some(PATIENCE),
            ..ConnectOptions::default()
        })?;
        Ok(Self {
            endpoint,
            service,
            connect: Arc::new(connect),
        })
    }
}

/// Counts of the spans of all workers.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl Figures for SpanCounts {
    fn show(&self, _prefix: Option<&str>, text: &mut MetricsText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (sent, dropped) = (load(&self.sent), load(&self.dropped));
        if sent + dropped == 0 {
            return;
        }
        let name = format!("{METRICS}_spans_total");
        text.family(&name, "counter", "Spans by what became of them");
        for (outcome, count) in [("sent", sent), ("dropped", dropped)] {
            text.sample(&name, &[("outcome", outcome)], count);
        }
    }
}

/// The spans of one worker.
pub(crate) struct Exporter {
    plan: Arc<TracesPlan>,
    waiting: RefCell<Vec<Value>>,
    counts: Arc<SpanCounts>,
}

impl Exporter {
    /// The exporter of this worker, shared by its routes.
    pub(crate) fn of_worker(plan: &Arc<TracesPlan>, context: &WorkerContext) -> Rc<Self> {
        let identity = format!("{:?} {}", plan.endpoint, plan.service);
        let mut is_new = false;
        let exporter = context.state(&identity, || {
            is_new = true;
            Self {
                plan: Arc::clone(plan),
                waiting: RefCell::default(),
                counts: context.metrics().figures(),
            }
        });
        if is_new {
            tokio::task::spawn_local(export(Rc::downgrade(&exporter)));
        }
        exporter
    }

    /// Begins the span of a request, if its trace is recorded.
    pub(crate) fn begin(self: &Rc<Self>, request: &Request<'_>) -> Option<ActiveSpan> {
        let note = request.trace().filter(|note| note.is_sampled)?;
        Some(ActiveSpan {
            exporter: Rc::clone(self),
            note,
            begun: SystemClock.wall(),
            since: SystemClock.now(),
            method: request.method.to_owned(),
            path: request.path.to_owned(),
            authority: request.authority.to_owned(),
            status: Cell::new(0),
            attempts: Cell::new(0),
            server: RefCell::default(),
        })
    }

    fn push(&self, span: Value) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() < MOST_WAITING {
            waiting.push(span);
        } else {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends what waits, as long as the exporter is in use.
async fn export(exporter: Weak<Exporter>) {
    let Some(plan) = exporter.upgrade().map(|it| Arc::clone(&it.plan)) else {
        return;
    };
    let connector = Connector::new(Arc::clone(&plan.connect));
    let pool = Pool::new(connector, PoolOptions::default());
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(exporter) = exporter.upgrade() else {
            return;
        };
        let spans = std::mem::take(&mut *exporter.waiting.borrow_mut());
        if spans.is_empty() {
            continue;
        }
        let count = spans.len() as u64;
        let sending = send(&pool, &plan, spans);
        let is_sent = tokio::time::timeout(PATIENCE, sending).await;
        let counts = &exporter.counts;
        let counter = if is_sent.ok().flatten().is_some() {
            &counts.sent
        } else {
            &counts.dropped
        };
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

async fn send(pool: &Pool, plan: &TracesPlan, spans: Vec<Value>) -> Option<()> {
    let document = json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", &plan.service)] },
        "scopeSpans": [{ "scope": { "name": "plimsoll-gateway" }, "spans": spans }],
    }] });
    let content = Bytes::from(serde_json::to_vec(&document).ok()?);
    let lease = pool.acquire(&plan.endpoint).await.ok()?;
    let fields = [("content-type", "application/json")];
    let head = Head::new("POST", plan.endpoint.path_and_query(), &fields);
    let mut exchange = lease.begin(&head, Full::new(content)).ok()?;
    let head = exchange.final_head().await.ok()?;
    while let Some(frame) = exchange.frame().await {
        frame.ok()?;
    }
    head.status.is_success().then_some(())
}

/// A request under way; its span ends when this is dropped.
pub(crate) struct ActiveSpan {
    exporter: Rc<Exporter>,
    note: TraceNote,
    begun: SystemTime,
    since: Instant,
    method: String,
    path: String,
    authority: String,
    /// 0 while there is no response.
    status: Cell<u16>,
    attempts: Cell<u32>,
    /// Names of the upstream and of the server that was tried last.
    server: RefCell<Option<(Arc<str>, Arc<str>)>>,
}

impl ActiveSpan {
    /// A server is tried.
    pub(crate) fn attempt(&self, upstream: &Arc<str>, server: &Arc<str>) {
        self.attempts.set(self.attempts.get() + 1);
        *self.server.borrow_mut() = Some((Arc::clone(upstream), Arc::clone(server)));
    }

    /// The client gets a response with this status.
    pub(crate) fn responded(&self, status: u16) {
        self.status.set(status);
    }
}

impl Drop for ActiveSpan {
    fn drop(&mut self) {
        const SERVER: u8 = 2;
        const ERROR: u8 = 2;
        let status = self.status.get();
        let mut attributes = vec![
            text("http.request.method", &self.method),
            text("url.path", &self.path),
            text("server.address", &self.authority),
            number("plimsoll.attempts", self.attempts.get().into()),
        ];
        if status != 0 {
            attributes.push(number("http.response.status_code", status.into()));
        }
        if let Some((upstream, server)) = self.server.take() {
            attributes.push(text("plimsoll.upstream", &upstream));
            attributes.push(text("plimsoll.server", &server));
        }
        let took = SystemClock.now().saturating_duration_since(self.since);
        let nanos = |time: SystemTime| {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            since.as_nanos().to_string()
        };
        // A client that left before a response is no error of the server.
        let code = if status >= 500 { ERROR } else { 0 };
        let parent = self.note.parent.map(|parent| format!("{parent:016x}"));
        self.exporter.push(json!({
            "traceId": format!("{:032x}", self.note.trace),
            "spanId": format!("{:016x}", self.note.span),
            "parentSpanId": parent.unwrap_or_default(),
            "name": self.method,
            "kind": SERVER,
            "startTimeUnixNano": nanos(self.begun),
            "endTimeUnixNano": nanos(self.begun + took),
            "attributes": attributes,
            "status": { "code": code },
        }));
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Integers are texts in this encoding.
fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}
