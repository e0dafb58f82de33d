//! Passing requests on to a real server, and its responses back, whole.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use plimsoll_client::{
    ConnectOptions, ConnectPlan, ConnectPlanError, Connector, Endpoint, EndpointError, Http1,
    ReadBuffer, Request, Stream,
};
use plimsoll_model::{Clock, Failure};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::{HeadError, Limits, ResponseHead, ResponseSink};
use plimsoll_wire::tls::{TlsError, TlsSettings};

use crate::asked::KeptRequest;
use crate::hops::is_of_connection;

/// Longer responses are not passed on, in bytes of content.
const LONGEST: u64 = 64 << 20;

/// A response has to come within this.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Connections that a worker keeps for later.
const MOST_IDLE: usize = 32;

/// The server that requests are passed on to.
#[derive(Debug, Clone)]
pub struct Upstream {
    endpoint: Endpoint,
    /// What its paths begin with, without a slash at its end.
    base: String,
    plan: Arc<ConnectPlan>,
}

/// Why requests cannot be passed on to a URL.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// It is no URL of a server.
    #[error("{0}")]
    Endpoint(#[from] EndpointError),
    /// It has a query.
    #[error("a query cannot be part of it")]
    Query,
    /// The certificates of authorities cannot be read.
    #[error("cannot prepare TLS: {0}")]
    Tls(#[from] TlsError),
    /// Connections cannot be opened like this.
    #[error("cannot prepare connections: {0}")]
    Plan(#[from] ConnectPlanError),
}

impl Upstream {
    /// - `url`: `http://` or `https://`, with the path that theirs begin with if there is one.
    pub fn new(url: &str) -> Result<Self, UpstreamError> {
        let endpoint = Endpoint::parse(url)?;
        if endpoint.path_and_query().contains('?') {
            return Err(UpstreamError::Query);
        }
        let settings = TlsSettings {
            alpn: vec![b"http/1.1".to_vec()],
            ..TlsSettings::default()
        };
        let tls = endpoint.is_tls().then(|| settings.compile()).transpose()?;
        let plan = ConnectPlan::new(ConnectOptions {
            tls,
            timeout: Some(TIMEOUT),
            ..ConnectOptions::default()
        })?;
        Ok(Self {
            base: endpoint.path_and_query().trim_end_matches('/').to_owned(),
            endpoint,
            plan: Arc::new(plan),
        })
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        let scheme = self.endpoint.scheme();
        format!("{scheme}://{}", self.endpoint.authority())
    }
}

/// Passes requests on, for one worker.
pub(crate) struct Forwarder {
    upstream: Arc<Upstream>,
    connector: Connector,
    buffer: ReadBuffer,
    idle: RefCell<Vec<Http1<Stream>>>,
}

/// A response as it came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forwarded {
    pub(crate) status: StatusCode,
    /// Without those about the connection and the framing.
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content: Bytes,
}

/// Why no response came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForwardError {
    #[error("the request cannot be passed on: {0}")]
    Request(#[from] HeadError),
    #[error("{0}")]
    Failed(Failure),
}

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarder")
            .field("upstream", &self.upstream)
            .finish_non_exhaustive()
    }
}

impl Forwarder {
    pub(crate) fn new(upstream: Arc<Upstream>) -> Self {
        Self {
            connector: Connector::new(Arc::clone(&upstream.plan)),
            upstream,
            buffer: ReadBuffer::new(),
            idle: RefCell::default(),
        }
    }

    /// The response to a request.
    ///
    /// - `target`: path and query, below the path of the upstream.
    pub(crate) async fn forward(
        &self,
        asked: &KeptRequest,
        target: &str,
    ) -> Result<Forwarded, ForwardError> {
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut named = asked.fields.iter();
        let named = named.find(|(name, _)| name.eq_ignore_ascii_case("connection"));
        let named = named.map_or("", |(_, value)| std::str::from_utf8(value).unwrap_or(""));
        for (name, value) in &asked.fields {
            // Without `accept-encoding` the content comes as it is.
            let is_left_out = is_of_connection(name, named)
                || ["host", "accept-encoding", "expect"]
                    .iter()
                    .any(|known| name.eq_ignore_ascii_case(known));
            if let Ok(value) = std::str::from_utf8(value)
                && !is_left_out
            {
                headers.push((name.clone(), value.to_owned()));
            }
        }
        let has_content = !asked.body.is_empty();
        let request = Request::encode(
            &asked.method,
            &format!("{}{target}", self.upstream.base),
            self.upstream.endpoint.authority(),
            &headers,
            has_content.then_some(&asked.body[..]),
        )?;
        // One that was idle may be gone by now; a request that is safe may be sent again.
        let kept = self.take_idle();
        let is_kept = kept.is_some();
        match self.exchange(kept, &request).await {
            Err(_) if is_kept && matches!(asked.method.as_str(), "GET" | "HEAD") => {
                self.exchange(None, &request).await
            }
            result => result,
        }
    }

    fn take_idle(&self) -> Option<Http1<Stream>> {
        let mut idle = self.idle.borrow_mut();
        while let Some(mut http) = idle.pop() {
            if http.is_fresh() {
                return Some(http);
            }
        }
        None
    }

    async fn exchange(
        &self,
        kept: Option<Http1<Stream>>,
        request: &Request,
    ) -> Result<Forwarded, ForwardError> {
        let mut http = if let Some(http) = kept {
            http
        } else {
            let endpoint = &self.upstream.endpoint;
            let connection = self.connector.connect(endpoint, &SystemClock).await;
            let connection = connection.map_err(|error| ForwardError::Failed(error.failure))?;
            let limits = Limits {
                body_bytes: LONGEST,
                ..Limits::default()
            };
            Http1::new(connection.stream, limits, SystemClock.now())
        };
        let now = SystemClock.now();
        let mut taking = Taking::default();
        let exchange = http.exchange(
            request,
            now,
            now + TIMEOUT,
            &self.buffer,
            &mut taking,
            &SystemClock,
        );
        let completed = exchange
            .await
            .map_err(|incomplete| ForwardError::Failed(incomplete.failure))?;
        let mut idle = self.idle.borrow_mut();
        if completed.reusable && idle.len() < MOST_IDLE {
            idle.push(http);
        }
        Ok(Forwarded {
            status: StatusCode::from_u16(completed.status).unwrap_or(StatusCode::BAD_GATEWAY),
            fields: taking.fields,
            content: taking.content.into(),
        })
    }
}

/// Takes a whole response.
#[derive(Default)]
struct Taking {
    fields: Vec<(HeaderName, HeaderValue)>,
    content: Vec<u8>,
}

impl ResponseSink for Taking {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let named = head.header("connection").unwrap_or_default();
        let named = String::from_utf8_lossy(named);
        for header in head.headers {
            let name = HeaderName::from_bytes(header.name.as_bytes());
            let value = HeaderValue::from_bytes(header.value);
            if let (Ok(name), Ok(value)) = (name, value)
                && !is_of_connection(name.as_str(), &named)
            {
                self.fields.push((name, value));
            }
        }
    }

    fn content(&mut self, piece: &[u8]) {
        self.content.extend_from_slice(piece);
    }
}
