//! Real servers that answer in place of a rule.
//!
//! A request is passed on by HTTP/1.1, whatever it came by; its content is there as a whole, since rules may have looked
//! at it. The response is passed on as it comes: what the client does not take yet is not read. Each worker keeps its own
//! connections.

pub mod record;

mod content;

mod exchange;

mod outgoing;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use plimsoll_client::forward::{Destination, Pool, PoolOptions, Speaks};
use plimsoll_client::{
    ConnectOptions, ConnectPlan, ConnectPlanError, Connector, Endpoint, EndpointError,
};
use plimsoll_wire::tls::{TlsError, TlsSettings, Trust};

pub(crate) use self::exchange::{Passed, not_sent, pass_on};
pub(crate) use self::outgoing::Outgoing;

/// How long a server may take to respond, and to continue, by default: below the 60 s after which nginx and most load
/// balancers give up, so that our error reaches the client.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A real server.
#[derive(Debug)]
pub struct Upstream {
    endpoint: Endpoint,
    plan: Arc<ConnectPlan>,
    timeout: Duration,
    keeps_host: bool,
    fields: Vec<(HeaderName, HeaderValue)>,
    strip: Option<String>,
    without: Vec<HeaderName>,
}

/// The settings of a real server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamOptions {
    /// Timeout for the start of the response, and between its pieces.
    pub timeout: Duration,
    /// Which certificates are believed.
    pub trust: Trust,
    /// Whether it gets the client's `host`, not its own.
    pub keeps_host: bool,
    /// Fields in place of those of the request.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// The prefix to strip from the path as it was sent.
    pub strip: Option<String>,
    /// Fields of the request that are not passed on.
    pub without: Vec<HeaderName>,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            timeout: TIMEOUT,
            trust: Trust::default(),
            keeps_host: false,
            fields: Vec::new(),
            strip: None,
            without: Vec::new(),
        }
    }
}

/// Why there is no such server.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// It is no URL.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The URL has a query, which would be lost.
    #[error("has a query; that of each request is passed on")]
    Query,
    /// The URL has a user, who would be lost.
    #[error("has a user; give `authorization` in `proxy.headers`")]
    User,
    /// Certificates cannot be read.
    #[error("cannot prepare TLS: {}", plimsoll_model::with_causes(.0))]
    Tls(#[from] TlsError),
    /// Connections cannot be opened like this.
    #[error(transparent)]
    Plan(#[from] ConnectPlanError),
}

impl Upstream {
    /// The server at a URL, whose path comes before those of requests.
    pub fn new(url: &str, options: UpstreamOptions) -> Result<Self, UpstreamError> {
        let endpoint = Endpoint::parse(url)?;
        if endpoint.path_and_query().contains('?') {
            return Err(UpstreamError::Query);
        }
        if endpoint.credentials().is_some() {
            return Err(UpstreamError::User);
        }
        let settings = TlsSettings {
            trust: options.trust,
            alpn: vec![b"http/1.1".to_vec()],
            ..TlsSettings::default()
        };
        // The system's roots are read only where they are needed.
        let tls = endpoint.is_tls().then(|| settings.compile()).transpose()?;
        let plan = ConnectPlan::new(ConnectOptions {
            tls,
            timeout: Some(options.timeout),
            ..ConnectOptions::default()
        })?;
        Ok(Self {
            endpoint,
            plan: Arc::new(plan),
            timeout: options.timeout,
            keeps_host: options.keeps_host,
            fields: options.fields,
            strip: options.strip,
            without: options.without,
        })
    }

    /// Scheme, host and port.
    pub(crate) fn origin(&self) -> String {
        let endpoint = &self.endpoint;
        format!("{}://{}", endpoint.scheme(), endpoint.authority())
    }

    /// Connections of one worker to it.
    pub(crate) fn pool(self: &Arc<Self>) -> Rc<UpstreamPool> {
        let options = PoolOptions {
            speaks: Speaks::Http1,
            connections: MOST_CONNECTIONS,
            idle: MOST_IDLE,
            ..PoolOptions::default()
        };
        let pool = Pool::new(Connector::new(Arc::clone(&self.plan)), options);
        Rc::new(UpstreamPool {
            destination: pool.destination(&self.endpoint),
            upstream: Arc::clone(self),
        })
    }
}

/// Connections of one worker to one server that each are kept for later.
const MOST_IDLE: usize = 32;

/// Connections of one worker to one server: the usual soft limit on open files.
const MOST_CONNECTIONS: usize = 1024;

/// A real server, and the connections of one worker to it.
#[derive(Debug)]
pub(crate) struct UpstreamPool {
    upstream: Arc<Upstream>,
    destination: Rc<Destination>,
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = &self.endpoint;
        let path = endpoint.path_and_query().trim_end_matches('/');
        write!(f, "{}://{}{path}", endpoint.scheme(), endpoint.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_lost_is_refused() {
        let options = UpstreamOptions::default;
        for (url, shown) in [
            ("http://a:80/v1/", "http://a/v1"),
            ("127.0.0.1:9", "http://127.0.0.1:9"),
            ("http://[::1]:8/a", "http://[::1]:8/a"),
        ] {
            assert_eq!(Upstream::new(url, options()).unwrap().to_string(), shown);
        }
        for wrong in ["", "ftp://a", "http://", "http://a/?b=c", "http://u:p@a/"] {
            assert!(Upstream::new(wrong, options()).is_err(), "{wrong}");
        }
    }
}
