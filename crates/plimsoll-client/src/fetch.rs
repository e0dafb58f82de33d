//! One request to a URL, and all that is answered: bounded in time and length. For what servers need of others.

use std::borrow::Cow;
use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use plimsoll_model::{Clock, Failure};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::{Limits, ResponseHead, ResponseSink};
use plimsoll_wire::tls::{TlsError, TlsSettings, Trust};
use url::Url;

use crate::connect::Connector;
use crate::credentials::{self, basic_authorization};
use crate::endpoint::{Endpoint, EndpointError};
use crate::http1::{Http1, ReadBuffer};
use crate::plan::{ConnectOptions, ConnectPlan, ConnectPlanError};
use crate::request::Request;

/// Makes one request after the other, by HTTP/1.1 and a connection for each.
#[expect(
    missing_debug_implementations,
    reason = "it holds connections' memory, which says nothing"
)]
pub struct Fetcher {
    connector: Connector,
    buffer: ReadBuffer,
    limits: FetchLimits,
}

/// What a fetch may take.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    /// For all of it, from the name lookup to the last byte.
    pub timeout: Duration,
    /// Of the content.
    pub bytes: u64,
    /// Redirects that are followed.
    pub redirects: u32,
}

/// What a fetch asks for besides the content.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask<'a> {
    /// The entity tag of what is there already.
    pub known: Option<&'a str>,
    /// Of which media types the content is wanted; of all unless it is given. Of the others, the head is enough.
    pub wants: Option<fn(&str) -> bool>,
}

/// What came.
#[derive(Debug, Clone, Default)]
pub struct Fetched {
    /// After all redirects.
    pub status: u16,
    /// The header fields, in their order.
    pub fields: Vec<(String, Vec<u8>)>,
    /// What was read of the content.
    pub content: Vec<u8>,
}

impl Fetched {
    /// The value of the first field of that name.
    pub fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        let is_it = |(other, _): &&(String, Vec<u8>)| other.eq_ignore_ascii_case(name);
        let (_, value) = self.fields.iter().find(is_it)?;
        Some(String::from_utf8_lossy(value))
    }

    /// What the content is said to be; empty if nothing is said.
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
    /// It cannot be written down.
    #[error("the request cannot be made: {0}")]
    Request(#[from] plimsoll_wire::h1::HeadError),
    /// It was not answered.
    #[error("{0}")]
    Failed(Failure),
    /// It took too long.
    #[error("it takes longer than {0:?}")]
    Timeout(Duration),
    /// The content is longer than it may be.
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
    /// It leads on and on.
    #[error("it is redirected more than {0} times")]
    TooManyRedirects(u32),
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
        let settings = TlsSettings {
            trust,
            alpn: vec![b"http/1.1".to_vec()],
            ..TlsSettings::default()
        };
        let plan = ConnectPlan::new(ConnectOptions {
            tls: Some(settings.compile()?),
            timeout: Some(limits.timeout),
            ..ConnectOptions::default()
        })?;
        Ok(Self {
            connector: Connector::new(Arc::new(plan)),
            buffer: ReadBuffer::new(),
            limits,
        })
    }

    /// Gets `url`, following redirects up to the limit; what is beyond it is an error, unless the limit is 0.
    pub async fn get(&self, url: &Url, ask: Ask<'_>) -> Result<Fetched, FetchError> {
        let timeout = self.limits.timeout;
        let fetching = tokio::time::timeout(timeout, self.follow(url.clone(), ask));
        fetching.await.unwrap_or(Err(FetchError::Timeout(timeout)))
    }

    /// Sends one request, and follows nowhere.
    ///
    /// - `fields`: besides `user-agent`, `connection` and those of framing.
    pub async fn send(
        &self,
        method: &str,
        url: &Url,
        fields: Vec<(String, String)>,
        content: Option<&[u8]>,
    ) -> Result<Fetched, FetchError> {
        let timeout = self.limits.timeout;
        let sending = tokio::time::timeout(timeout, self.one(method, url, fields, content, None));
        sending.await.unwrap_or(Err(FetchError::Timeout(timeout)))
    }

    async fn follow(&self, mut url: Url, ask: Ask<'_>) -> Result<Fetched, FetchError> {
        for _ in 0..=self.limits.redirects {
            let mut fields = vec![("accept".to_owned(), "*/*".to_owned())];
            fields.extend(
                ask.known
                    .map(|tag| ("if-none-match".to_owned(), tag.to_owned())),
            );
            let answer = self.one("GET", &url, fields, None, ask.wants).await?;
            let is_redirect = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
            match &answer.field("location") {
                Some(location) if is_redirect && self.limits.redirects > 0 => {
                    url = url.join(location)?;
                }
                _ => return Ok(answer),
            }
        }
        Err(FetchError::TooManyRedirects(self.limits.redirects))
    }

    async fn one(
        &self,
        method: &str,
        url: &Url,
        fields: Vec<(String, String)>,
        content: Option<&[u8]>,
        wants: Option<fn(&str) -> bool>,
    ) -> Result<Fetched, FetchError> {
        let endpoint = Endpoint::parse(url.as_str())?;
        let mut headers = fields;
        if let Some((user, password)) = credentials::of_url(url) {
            let value = basic_authorization(&user, &password);
            headers.push(("authorization".to_owned(), value.expose().to_owned()));
        }
        for (name, value) in [("user-agent", AGENT), ("connection", "close")] {
            headers.push((name.to_owned(), value.to_owned()));
        }
        let request = Request::encode(
            method,
            endpoint.path_and_query(),
            endpoint.authority(),
            &headers,
            content,
        )?;
        let connecting = self.connector.connect(&endpoint, &SystemClock);
        let connection = connecting
            .await
            .map_err(|error| FetchError::Failed(error.failure))?;
        let now = SystemClock.now();
        let mut http = Http1::new(connection.stream, Limits::default(), now);
        let mut taking = Taking::new(self.limits.bytes, wants);
        let stop = Rc::clone(&taking.stop);
        let deadline = now + self.limits.timeout;
        {
            let buffer = &self.buffer;
            let exchange =
                http.exchange(&request, now, deadline, buffer, &mut taking, &SystemClock);
            let mut exchange = pin!(exchange);
            let completed = std::future::poll_fn(|cx| {
                let polled = exchange.as_mut().poll(cx);
                // What is too long, or not wanted, is not read to its end.
                match stop.get() {
                    Stop::TooLong => Poll::Ready(Err(FetchError::TooLong(self.limits.bytes))),
                    Stop::Enough => Poll::Ready(Ok(())),
                    Stop::Not => polled.map(|result| {
                        result
                            .map(|_| ())
                            .map_err(|error| FetchError::Failed(error.failure))
                    }),
                }
            });
            completed.await?;
        }
        Ok(taking.fetched)
    }
}

const AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// Takes what is to be known of a response.
struct Taking {
    fetched: Fetched,
    most: u64,
    wants: Option<fn(&str) -> bool>,
    stop: Rc<Cell<Stop>>,
}

/// Why no more is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stop {
    #[default]
    Not,
    TooLong,
    Enough,
}

impl Taking {
    fn new(most: u64, wants: Option<fn(&str) -> bool>) -> Self {
        Self {
            fetched: Fetched::default(),
            most,
            wants,
            stop: Rc::default(),
        }
    }
}

impl ResponseSink for Taking {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.fetched.status = head.status;
        let fields = head.headers.iter();
        self.fetched.fields = fields
            .map(|field| (field.name.to_owned(), field.value.to_vec()))
            .collect();
        let content_type = self.fetched.content_type();
        if self.wants.is_some_and(|wants| !wants(&content_type)) {
            self.stop.set(Stop::Enough);
        }
    }

    fn content(&mut self, piece: &[u8]) {
        if self.stop.get() != Stop::Not {
            return;
        }
        if (self.fetched.content.len() + piece.len()) as u64 > self.most {
            self.stop.set(Stop::TooLong);
            self.fetched.content = Vec::new();
        } else {
            self.fetched.content.extend_from_slice(piece);
        }
    }
}
