//! One request to a URL, and all that is answered: bounded in time and length. For what servers need of others.

mod lines;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use plimsoll_model::Failure;
use plimsoll_wire::tls::{TlsError, TlsSettings, Trust};
use url::Url;

use crate::connect::Connector;
use crate::connect::address_filter::AddressFilter;
use crate::connect::credentials::basic_authorization;
use crate::connect::endpoint::{Endpoint, EndpointError};
use crate::connect::plan::{ConnectOptions, ConnectPlan, ConnectPlanError};
use crate::content_coding::decode::{DecodeError, DecodeLimits, Decoder};
use crate::forward::{Exchange, Head, Pool, PoolOptions, Speaks, may_retry};
use crate::redirect::{RedirectError, Redirects};
use crate::request::is_idempotent;

pub use self::lines::FetchedLines;

/// Makes requests one after the other by HTTP/1.1, over connections that are kept for a while.
#[derive(Debug)]
pub struct Fetcher {
    pool: Pool,
    limits: FetchLimits,
}

/// Limits of a fetch.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    /// For all of it, from the name lookup to the last byte.
    pub timeout: Duration,
    /// Of the content.
    pub bytes: u64,
    /// Redirects that are followed.
    pub redirects: u32,
}

/// The request of a fetch, besides its content.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask<'a> {
    /// The entity tag of what is there already.
    pub known: Option<&'a str>,
    /// Of which media types the content is wanted; of all unless it is given. Of the others, the head is enough.
    pub wants: Option<fn(&str) -> bool>,
}

/// The fetched response.
#[derive(Debug, Clone, Default)]
pub struct Fetched {
    /// After all redirects.
    pub status: u16,
    /// The header fields, in their order.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The content, as far as it was read.
    pub content: Vec<u8>,
}

impl Fetched {
    /// The value of the first field of that name.
    pub fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        let is_it = |(other, _): &&(String, Vec<u8>)| other.eq_ignore_ascii_case(name);
        let (_, value) = self.fields.iter().find(is_it)?;
        Some(String::from_utf8_lossy(value))
    }

    /// The media type of the content; empty if there is no such field.
    pub fn content_type(&self) -> Cow<'_, str> {
        self.field("content-type").unwrap_or_default()
    }
}

/// Why nothing came.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It is no URL.
    #[error("{0}")]
    Url(#[from] url::ParseError),
    /// No connection can be opened by it.
    #[error("{0}")]
    Endpoint(#[from] EndpointError),
    /// It was not answered.
    #[error("{0}")]
    Failed(Failure),
    /// It took too long.
    #[error("it takes longer than {0:?}")]
    Timeout(Duration),
    /// The content is longer than it may be.
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
    /// A redirect cannot be followed.
    #[error("{0}")]
    Redirect(#[from] RedirectError),
    /// The content cannot be decoded.
    #[error("{0}")]
    Decode(#[from] DecodeError),
}

/// Why fetching cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum FetcherError {
    /// The certificates of authorities cannot be read.
    #[error("cannot prepare TLS")]
    Tls(#[from] TlsError),
    /// Connections cannot be opened like this.
    #[error("cannot prepare connections")]
    Plan(#[from] ConnectPlanError),
}

impl Fetcher {
    /// Believes servers whose certificates end in a public root.
    pub fn new(limits: FetchLimits) -> Result<Self, FetcherError> {
        Self::believing(Trust::PublicRoots, limits)
    }

    /// Believes servers by `trust`.
    pub fn believing(trust: Trust, limits: FetchLimits) -> Result<Self, FetcherError> {
        Self::reaching(trust, limits, None)
    }

    /// Believes servers by `trust`, and connects only to addresses that the filter allows.
    pub fn reaching(
        trust: Trust,
        limits: FetchLimits,
        address_filter: Option<AddressFilter>,
    ) -> Result<Self, FetcherError> {
        let settings = TlsSettings {
            trust,
            alpn: vec![b"http/1.1".to_vec()],
            ..TlsSettings::default()
        };
        let plan = ConnectPlan::new(ConnectOptions {
            tls: Some(settings.compile()?),
            timeout: Some(limits.timeout),
            address_filter,
            ..ConnectOptions::default()
        })?;
        Ok(Self::over(Connector::new(Arc::new(plan)), limits))
    }

    /// Connects as the plan of `connector` says, whose TLS settings should offer `http/1.1` only.
    pub fn over(connector: Connector, limits: FetchLimits) -> Self {
        let options = PoolOptions {
            speaks: Speaks::Http1,
            ..PoolOptions::default()
        };
        Self {
            pool: Pool::new(connector, options),
            limits,
        }
    }

    /// The addresses of an endpoint that it may connect to, for messages by other protocols.
    pub async fn addresses(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, FetchError> {
        let found = self.pool.addresses(endpoint).await;
        found.map_err(FetchError::Failed)
    }

    /// Gets `url`, following redirects up to the limit; what is beyond it is an error, unless the limit is 0.
    pub async fn get(&self, url: &Url, ask: Ask<'_>) -> Result<Fetched, FetchError> {
        let timeout = self.limits.timeout;
        let fetching = tokio::time::timeout(timeout, self.follow(url.clone(), ask));
        fetching.await.unwrap_or(Err(FetchError::Timeout(timeout)))
    }

    /// Sends one request, and follows nowhere.
    ///
    /// - `fields`: without those of framing. `user-agent`, and `authorization` for a URL with credentials, are added
    ///   unless they are given.
    pub async fn send(
        &self,
        method: &str,
        url: &Url,
        fields: Vec<(String, String)>,
        content: Option<&[u8]>,
    ) -> Result<Fetched, FetchError> {
        let endpoint = Endpoint::try_from(url)?;
        let content = Bytes::copy_from_slice(content.unwrap_or_default());
        self.send_to(method, &endpoint, fields, content).await
    }

    /// The same to an endpoint.
    pub async fn send_to(
        &self,
        method: &str,
        endpoint: &Endpoint,
        fields: Vec<(String, String)>,
        content: Bytes,
    ) -> Result<Fetched, FetchError> {
        let timeout = self.limits.timeout;
        let sending = self.one(method, endpoint, fields, content, None);
        let sent = tokio::time::timeout(timeout, sending).await;
        sent.unwrap_or(Err(FetchError::Timeout(timeout)))
    }

    async fn follow(&self, mut url: Url, ask: Ask<'_>) -> Result<Fetched, FetchError> {
        let mut redirects = Redirects::new(self.limits.redirects);
        loop {
            let mut fields = vec![
                ("accept".to_owned(), "*/*".to_owned()),
                ("accept-encoding".to_owned(), Decoder::ACCEPTED.to_owned()),
            ];
            fields.extend(
                ask.known
                    .map(|tag| ("if-none-match".to_owned(), tag.to_owned())),
            );
            let endpoint = Endpoint::try_from(&url)?;
            let answer = self.one("GET", &endpoint, fields, Bytes::new(), ask.wants);
            let answer = answer.await?;
            if self.limits.redirects == 0 {
                return Ok(answer);
            }
            let location = answer.field("location");
            let location = location.as_ref().map(|location| location.as_bytes());
            match redirects.follow("GET", &url, answer.status, location)? {
                // Credentials of the first URL are not in the next one unless it names them itself.
                Some(redirect) => url = redirect.url,
                None => return Ok(answer),
            }
        }
    }

    async fn one(
        &self,
        method: &str,
        endpoint: &Endpoint,
        fields: Vec<(String, String)>,
        content: Bytes,
        wants: Option<fn(&str) -> bool>,
    ) -> Result<Fetched, FetchError> {
        let (head, exchange) = self.begin(method, endpoint, fields, content).await?;
        self.read(head, exchange, wants).await
    }

    /// An exchange up to the head of its response, and a second one on a new connection if the server has closed the one that
    /// was kept.
    async fn begin(
        &self,
        method: &str,
        endpoint: &Endpoint,
        mut fields: Vec<(String, String)>,
        content: Bytes,
    ) -> Result<(Fetched, Exchange<Full<Bytes>>), FetchError> {
        let mut default = |name: &str, value: &str| {
            if !fields
                .iter()
                .any(|(given, _)| given.eq_ignore_ascii_case(name))
            {
                fields.push((name.to_owned(), value.to_owned()));
            }
        };
        if let Some((user, password)) = endpoint.credentials() {
            default(
                "authorization",
                basic_authorization(user, password).expose(),
            );
        }
        default("user-agent", AGENT);
        let destination = self.pool.destination(endpoint);
        // A request that must not be sent twice does not meet a connection that is being closed.
        let mut is_fresh = !is_idempotent(method);
        loop {
            let lease = if is_fresh {
                destination.acquire_unused().await
            } else {
                destination.acquire().await
            };
            let lease = lease.map_err(|error| FetchError::Failed(error.failure))?;
            let head = Head::new(method, endpoint.path_and_query(), &fields);
            let exchange = lease.begin(&head, Full::new(content.clone()));
            let mut exchange = exchange.map_err(FetchError::Failed)?;
            match exchange.final_head().await {
                Ok(head) => {
                    let fields = head.fields.iter();
                    let fetched = Fetched {
                        status: head.status.as_u16(),
                        fields: fields
                            .map(|(name, value)| {
                                let name = String::from_utf8_lossy(name).into_owned();
                                (name, value.to_vec())
                            })
                            .collect(),
                        content: Vec::new(),
                    };
                    return Ok((fetched, exchange));
                }
                Err(incomplete) if !is_fresh && may_retry(&incomplete.failure, true) => {
                    is_fresh = true;
                }
                Err(incomplete) => return Err(FetchError::Failed(incomplete.failure)),
            }
        }
    }

    /// Reads the content, decoded; what is too long, or not wanted, is not read to its end.
    async fn read(
        &self,
        mut fetched: Fetched,
        mut exchange: Exchange<Full<Bytes>>,
        wants: Option<fn(&str) -> bool>,
    ) -> Result<Fetched, FetchError> {
        if wants.is_some_and(|wants| !wants(&fetched.content_type())) {
            return Ok(fetched);
        }
        let limit = self.limits.bytes;
        if exchange.content_left().is_some_and(|left| left > limit) {
            return Err(FetchError::TooLong(limit));
        }
        let limits = DecodeLimits {
            bytes: limit,
            ..DecodeLimits::default()
        };
        let coding = fetched.field("content-encoding").unwrap_or_default();
        let mut decoder = Decoder::new(&coding, limits)?;
        let too_long = |error| match error {
            DecodeError::TooLarge(limit) => FetchError::TooLong(limit),
            error => FetchError::Decode(error),
        };
        let mut content = Vec::new();
        while let Some(frame) = exchange.frame().await {
            let frame = frame.map_err(|incomplete| FetchError::Failed(incomplete.failure))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            match &mut decoder {
                Some(decoder) => decoder.decode(&data, &mut content).map_err(too_long)?,
                None => content.extend_from_slice(&data),
            }
            if content.len() as u64 > limit {
                return Err(FetchError::TooLong(limit));
            }
        }
        if let Some(decoder) = decoder {
            decoder.finish(&mut content).map_err(too_long)?;
        }
        fetched.content = content;
        Ok(fetched)
    }
}

const AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));
