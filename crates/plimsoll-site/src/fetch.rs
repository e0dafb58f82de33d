//! Getting what lies behind a URL: bounded in time and length, and not again if it is what it was.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use plimsoll_client::{
    ConnectOptions, ConnectPlan, ConnectPlanError, Connector, Endpoint, EndpointError, Http1,
    ReadBuffer, Request,
};
use plimsoll_model::{Clock, Failure};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::{Limits, ResponseHead, ResponseSink};
use plimsoll_wire::tls::{TlsError, TlsSettings};
use url::Url;

/// Gets one thing after the other, by HTTP/1.1 and a connection for each.
pub(crate) struct Fetcher {
    connector: Connector,
    buffer: ReadBuffer,
    limits: FetchLimits,
}

/// What a fetch may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchLimits {
    /// For all of it, from the name lookup to the last byte.
    pub(crate) timeout: Duration,
    /// Of the content.
    pub(crate) bytes: u64,
    /// Redirects that are followed.
    pub(crate) redirects: u32,
}

/// What a fetch asks for besides the content.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ask<'a> {
    /// The entity tag of what is there already.
    pub(crate) known: Option<&'a str>,
    /// Of which media types the content is wanted; of all unless it is given. Of the others, the head is enough.
    pub(crate) wants: Option<fn(&str) -> bool>,
}

/// What came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fetched {
    /// After all redirects.
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) tag: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) content: Vec<u8>,
}

/// Why nothing came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("{0}")]
    Url(#[from] url::ParseError),
    #[error("{0}")]
    Endpoint(#[from] EndpointError),
    #[error("the request cannot be made: {0}")]
    Request(#[from] plimsoll_wire::h1::HeadError),
    #[error("{0}")]
    Failed(Failure),
    #[error("it takes longer than {0:?}")]
    Timeout(Duration),
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
    #[error("it is redirected more than {0} times")]
    TooManyRedirects(u32),
}

/// Why fetching cannot begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetcherError {
    /// The certificates of authorities cannot be read.
    #[error("cannot prepare TLS")]
    Tls(#[from] TlsError),
    /// Connections cannot be opened like this.
    #[error("cannot prepare connections")]
    Plan(#[from] ConnectPlanError),
}

impl Fetcher {
    /// Believes servers whose certificates end in a public root.
    pub(crate) fn new(limits: FetchLimits) -> Result<Self, FetcherError> {
        let settings = TlsSettings {
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
    pub(crate) async fn get(&self, url: &Url, ask: Ask<'_>) -> Result<Fetched, FetchError> {
        let timeout = self.limits.timeout;
        let fetching = tokio::time::timeout(timeout, self.follow(url.clone(), ask));
        fetching.await.unwrap_or(Err(FetchError::Timeout(timeout)))
    }

    async fn follow(&self, mut url: Url, ask: Ask<'_>) -> Result<Fetched, FetchError> {
        for _ in 0..=self.limits.redirects {
            let answer = self.one(&url, ask).await?;
            let is_redirect = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
            match &answer.location {
                Some(location) if is_redirect && self.limits.redirects > 0 => {
                    url = url.join(location)?;
                }
                _ => return Ok(answer),
            }
        }
        Err(FetchError::TooManyRedirects(self.limits.redirects))
    }

    async fn one(&self, url: &Url, ask: Ask<'_>) -> Result<Fetched, FetchError> {
        let endpoint = Endpoint::parse(url.as_str())?;
        let mut headers = vec![
            ("accept".to_owned(), "*/*".to_owned()),
            ("user-agent".to_owned(), AGENT.to_owned()),
            ("connection".to_owned(), "close".to_owned()),
        ];
        headers.extend(
            ask.known
                .map(|tag| ("if-none-match".to_owned(), tag.to_owned())),
        );
        let request = Request::encode(
            "GET",
            endpoint.path_and_query(),
            endpoint.authority(),
            &headers,
            None,
        )?;
        let connecting = self.connector.connect(&endpoint, &SystemClock);
        let connection = connecting
            .await
            .map_err(|error| FetchError::Failed(error.failure))?;
        let now = SystemClock.now();
        let mut http = Http1::new(connection.stream, Limits::default(), now);
        let mut taking = Taking::new(self.limits.bytes, ask.wants);
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
        let text = |name: &str| {
            let value = head.header(name)?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        self.fetched.status = head.status;
        self.fetched.content_type = text("content-type").unwrap_or_default();
        self.fetched.tag = text("etag");
        self.fetched.location = text("location");
        if self
            .wants
            .is_some_and(|wants| !wants(&self.fetched.content_type))
        {
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
