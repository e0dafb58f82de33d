//! Active health: a page of each server is requested at an interval.

use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::{Empty, Full};
use plimsoll_client::forward::{Destination, Head};
use plimsoll_client::{Connector, Endpoint, Scheme, grpc};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::Server;

/// Settings of active health checks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HealthCheck {
    /// Where the server is asked; the port of its requests unless given.
    pub(crate) port: Option<u16>,
    /// Whether it is asked over TLS; as its requests are unless given.
    pub(crate) tls: Option<bool>,
    pub(crate) path: String,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    /// Checks in a row after which an unhealthy server is healthy.
    pub(crate) healthy: u32,
    /// Failures in a row after which a healthy server is unhealthy.
    pub(crate) unhealthy: u32,
    /// Of requests over HTTP.
    pub(crate) method: Method,
    /// The host of requests; that of the server unless given.
    pub(crate) host: Option<String>,
    /// Fields of requests, their names in small letters.
    pub(crate) fields: Vec<(String, String)>,
    /// The status that is expected; 200 to 399 unless given.
    pub(crate) status: Option<StatusCode>,
    /// What the first [`MOST_CONTENT`] bytes of the content have to have.
    pub(crate) content: Option<Bytes>,
    pub(crate) kind: HealthKind,
}

/// The kinds of health checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum HealthKind {
    /// The response to a GET.
    #[default]
    Http,
    /// That a connection can be opened, with its handshake of TLS.
    Tcp,
    /// The name in the health service; the server as a whole if it is empty.
    Grpc(String),
}

impl HealthCheck {
    /// Where a server with this endpoint is asked.
    pub(super) fn endpoint(&self, server: &Endpoint) -> Endpoint {
        let scheme = match self.tls {
            Some(true) => Scheme::Https,
            Some(false) => Scheme::Http,
            None => server.scheme(),
        };
        let port = self.port.unwrap_or_else(|| server.port());
        server.clone().with_service(scheme, port)
    }
}

impl Default for HealthCheck {
    /// As haproxy has it: every 2 s, 2 to rise, 3 to fall.
    fn default() -> Self {
        Self {
            port: None,
            tls: None,
            path: "/".to_owned(),
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            healthy: 2,
            unhealthy: 3,
            method: Method::GET,
            host: None,
            fields: Vec::new(),
            status: None,
            content: None,
            kind: HealthKind::Http,
        }
    }
}

/// The verdict on a server from its checks in a row; pure.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Verdict {
    is_healthy: bool,
    against: u32,
}

impl Verdict {
    /// A server is taken for healthy until it fails.
    const fn new() -> Self {
        Self {
            is_healthy: true,
            against: 0,
        }
    }

    /// Notes a check; whether the server is healthy then.
    fn note(&mut self, is_fine: bool, check: &HealthCheck) -> bool {
        if is_fine == self.is_healthy {
            self.against = 0;
            return self.is_healthy;
        }
        self.against += 1;
        let needed = if is_fine {
            check.healthy
        } else {
            check.unhealthy
        };
        if self.against >= needed {
            self.is_healthy = is_fine;
            self.against = 0;
        }
        self.is_healthy
    }
}

/// Checks a server as long as it belongs to its upstream.
///
/// - `asked`: where it is asked, as [`HealthCheck::endpoint`] has it.
pub(super) async fn watch(
    check: HealthCheck,
    connector: Rc<Connector>,
    asked: Rc<Destination>,
    server: Weak<Server>,
) {
    let mut verdict = Verdict::new();
    // Checks of several servers should not come at the same moment.
    let offset = check.interval.mul_f64(fastrand::f64());
    tokio::time::sleep(offset.min(Duration::from_secs(1))).await;
    let mut interval = tokio::time::interval(check.interval);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let Some(server) = server.upgrade().filter(|it| !it.state().is_removed()) else {
            return;
        };
        let is_fine = is_fine(&check, &connector, &asked);
        let is_fine = tokio::time::timeout(check.timeout, is_fine).await;
        let is_healthy = verdict.note(is_fine.unwrap_or(false), &check);
        server.state().set_healthy(is_healthy, SystemClock.now());
    }
}

async fn is_fine(check: &HealthCheck, connector: &Connector, asked: &Rc<Destination>) -> bool {
    match &check.kind {
        HealthKind::Http => responds(check, asked).await.unwrap_or(false),
        HealthKind::Tcp => {
            let endpoint = asked.endpoint();
            connector.connect(endpoint, &SystemClock).await.is_ok()
        }
        HealthKind::Grpc(service) => serves(service, asked).await.unwrap_or(false),
    }
}

/// Whether a GET has the status that is expected.
async fn responds(check: &HealthCheck, asked: &Rc<Destination>) -> Option<bool> {
    let lease = asked.acquire().await.ok()?;
    let own = check
        .fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let mut fields: Vec<_> = own.collect();
    if fields.iter().all(|(name, _)| *name != "user-agent") {
        fields.push(("user-agent", "plimsoll-health"));
    }
    let mut head = Head::new(check.method.as_str(), &check.path, &fields);
    head.authority = check.host.as_deref();
    let mut exchange = lease.begin(&head, Empty::<Bytes>::new()).ok()?;
    let head = exchange.final_head().await.ok()?;
    let mut content = Vec::new();
    // Read to the end, so that the connection can be used again.
    while let Some(frame) = exchange.frame().await {
        let frame = frame.ok()?;
        if let (Some(_), Ok(data)) = (&check.content, frame.into_data()) {
            let room = MOST_CONTENT - content.len();
            content.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
        }
    }
    let has_status = match check.status {
        Some(wanted) => head.status == wanted,
        None => head.status.is_success() || head.status.is_redirection(),
    };
    let wanted = check.content.as_deref();
    let has = |wanted: &[u8]| content.windows(wanted.len()).any(|it| it == wanted);
    Some(has_status && wanted.is_none_or(has))
}

/// Whether the health service of gRPC says that a service is serving.
///
/// Source: "GRPC Health Checking Protocol", `grpc.health.v1.Health/Check`.
async fn serves(service: &str, asked: &Rc<Destination>) -> Option<bool> {
    const SERVING: [u8; 2] = [0x08, 1];
    let lease = asked.acquire().await.ok()?;
    let fields = [
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("user-agent", "plimsoll-health"),
    ];
    let head = Head::new("POST", "/grpc.health.v1.Health/Check", &fields);
    let mut message = Vec::new();
    if !service.is_empty() {
        // Field 1, a text: names are shorter than 128 bytes, so the length is one byte.
        message.extend([0x0a, u8::try_from(service.len()).ok()?]);
        message.extend_from_slice(service.as_bytes());
    }
    let content = grpc::frame(&[message]).ok()?;
    let content = Full::new(Bytes::from(content));
    let mut exchange = lease.begin(&head, content).ok()?;
    let head = exchange.final_head().await.ok()?;
    let mut received = Vec::new();
    let mut status = head.fields.field("grpc-status").map(<[u8]>::to_vec);
    while let Some(frame) = exchange.frame().await {
        let frame = frame.ok()?;
        match frame.into_data() {
            Ok(data) if received.len() + data.len() <= MOST_MESSAGE => {
                received.extend_from_slice(&data);
            }
            Ok(_) => return None,
            Err(frame) => {
                let trailers = frame.into_trailers().ok()?;
                status = trailers.get("grpc-status").map(|it| it.as_bytes().to_vec());
            }
        }
    }
    let messages = grpc::messages(&received).ok()?;
    Some(
        head.status == StatusCode::OK
            && status.as_deref() == Some(b"0")
            && messages == [&SERVING[..]],
    )
}

/// Bytes of a response in which a text is looked for.
const MOST_CONTENT: usize = 64 * 1024;

/// Bytes of a response of the health service.
const MOST_MESSAGE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_changes_after_checks_in_a_row() {
        let check = HealthCheck::default();
        let mut verdict = Verdict::new();
        let mut note = |is_fine| verdict.note(is_fine, &check);
        assert_eq!([note(false), note(false), note(true)], [true; 3]);
        assert_eq!([note(false), note(false), note(false)], [true, true, false]);
        assert_eq!([note(true), note(false), note(true)], [false; 3]);
        assert!(note(true));
    }
}
