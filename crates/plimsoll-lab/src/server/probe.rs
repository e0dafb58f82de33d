//! One plain request: does a server answer, and what does its counting page say.
//!
//! Experiments measure with other programs; this only asks whether they may begin.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use plimsoll_client::fetch::{FetchError, FetchLimits, Fetched, Fetcher};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector, Endpoint, EndpointError};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::{ClientConfig, TlsError};
use url::Url;

/// Longest content that is looked at, in bytes.
const CONTENT_LIMIT: u64 = 64 * 1024;

/// The same where the content of one server is compared with that of another.
pub(crate) const COMPARED_LIMIT: u64 = 1024 * 1024;

/// Why a server does not answer as it should.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No connection, or no complete response.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Something else came than a page.
    #[error("the server answered with status {0}")]
    Status(u16),
    /// Pages are read without TLS only.
    #[error("`{0}` cannot be fetched, only http")]
    Scheme(String),
    /// Not a URL of HTTP.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// No certificate can be verified here.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system refused.
    #[error("cannot wait for an answer")]
    Runtime(#[source] io::Error),
}

/// Whether the server behind `url` answers: any response for `http`, a connection for `https`.
pub(crate) fn answers(url: &Url, timeout: Duration) -> Result<(), ProbeError> {
    let request = if url.scheme() == "https" {
        wait_for(async { connect(&without_tls(url)?, timeout).await })
    } else {
        ask(url, timeout).map(drop)
    };
    match request {
        // Too much of an answer is one too.
        Err(ProbeError::Fetch(FetchError::TooLong(_))) => Ok(()),
        other => other,
    }
}

/// The content of the answer, if its status is 200.
pub(crate) fn fetch(url: &Url, timeout: Duration) -> Result<String, ProbeError> {
    if url.scheme() != "http" {
        return Err(ProbeError::Scheme(url.scheme().to_owned()));
    }
    match ask(url, timeout)? {
        Fetched {
            status: 200,
            content,
            ..
        } => Ok(String::from_utf8_lossy(&content).into_owned()),
        Fetched { status, .. } => Err(ProbeError::Status(status)),
    }
}

/// A complete response, of any status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content: Vec<u8>,
}

/// The response to a request for `url`; `None` if it is longer than is looked at.
///
/// - `tls`: for `https`, which needs it.
pub(crate) fn answer(
    url: &Url,
    tls: Option<Arc<ClientConfig>>,
    timeout: Duration,
) -> Result<Option<Answer>, ProbeError> {
    let request = ProbeRequest {
        url,
        fields: &[],
        tls,
        timeout,
        limit: COMPARED_LIMIT,
    };
    match send(&request) {
        Ok(Fetched {
            status, content, ..
        }) => Ok(Some(Answer { status, content })),
        Err(ProbeError::Fetch(FetchError::TooLong(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A request of a probe.
pub(crate) struct ProbeRequest<'a> {
    pub(crate) url: &'a Url,
    /// Fields beside those that every request has.
    pub(crate) fields: &'a [(String, String)],
    /// For `https`, which needs it.
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// Of the whole; a profile is answered once it has been taken.
    pub(crate) timeout: Duration,
    /// Most bytes of content.
    pub(crate) limit: u64,
}

/// The whole content of the answer, if its status is 200.
pub(crate) fn content(request: &ProbeRequest<'_>) -> Result<Vec<u8>, ProbeError> {
    if request.url.scheme() != "http" && request.tls.is_none() {
        return Err(ProbeError::Scheme(request.url.scheme().to_owned()));
    }
    match send(request)? {
        Fetched {
            status: 200,
            content,
            ..
        } => Ok(content),
        Fetched { status, .. } => Err(ProbeError::Status(status)),
    }
}

fn ask(url: &Url, timeout: Duration) -> Result<Fetched, ProbeError> {
    send(&ProbeRequest {
        url,
        fields: &[],
        tls: None,
        timeout,
        limit: CONTENT_LIMIT,
    })
}

fn send(request: &ProbeRequest<'_>) -> Result<Fetched, ProbeError> {
    let endpoint = Endpoint::try_from(request.url)?;
    let limits = FetchLimits {
        timeout: request.timeout,
        bytes: request.limit,
        redirects: 0,
    };
    let fetcher = Fetcher::over(connector(request.timeout, request.tls.clone()), limits);
    let fields = request.fields.to_vec();
    let sending = fetcher.send_to("GET", &endpoint, fields, Bytes::new());
    wait_for(async { Ok(Box::pin(sending).await?) })
}

fn connector(timeout: Duration, tls: Option<Arc<ClientConfig>>) -> Connector {
    let plan = ConnectPlan::new(ConnectOptions {
        timeout: Some(timeout),
        tls,
        ..ConnectOptions::default()
    })
    .expect("nothing was chosen that could contradict itself");
    Connector::new(Arc::new(plan))
}

async fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<(), ProbeError> {
    let connector = connector(timeout, None);
    let connecting = Box::pin(connector.connect(endpoint, &SystemClock));
    match connecting.await {
        Ok(_) => Ok(()),
        Err(error) => Err(FetchError::Failed(error.failure).into()),
    }
}

/// The same host and port, to be reached over TCP alone.
fn without_tls(url: &Url) -> Result<Endpoint, EndpointError> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(443);
    Endpoint::parse(&format!("http://{host}:{port}/"))
}

fn wait_for<T>(answer: impl Future<Output = Result<T, ProbeError>>) -> Result<T, ProbeError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ProbeError::Runtime)?
        .block_on(answer)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use plimsoll_model::FailureKind;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    /// A server that answers one connection with `answer`, after reading the request's head.
    fn server(answer: &'static str) -> Url {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0; 1];
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        });
        format!("http://127.0.0.1:{port}/status?full")
            .parse()
            .unwrap()
    }

    #[test]
    fn any_status_is_an_answer() {
        answers(&server("HTTP/1.1 503 Busy\r\n\r\n"), TIMEOUT).unwrap();
    }

    #[test]
    fn other_protocols_are_not() {
        let error = answers(&server("SSH-2.0-x\r\n"), TIMEOUT).unwrap_err();
        assert!(
            matches!(error, ProbeError::Fetch(FetchError::Failed(ref failure))
            if failure.kind == FailureKind::Protocol),
            "{error}"
        );
    }

    #[test]
    fn a_page_needs_status_200() {
        let page = fetch(&server("HTTP/1.1 200 OK\r\na: b\r\n\r\nhello"), TIMEOUT);
        assert_eq!(page.unwrap(), "hello");
        let error = fetch(&server("HTTP/1.1 404 Not Found\r\n\r\n"), TIMEOUT).unwrap_err();
        assert_eq!(error.to_string(), "the server answered with status 404");
    }

    #[test]
    fn a_port_without_a_server_is_refused() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        drop(listener);
        let error = answers(&url.parse().unwrap(), TIMEOUT).unwrap_err();
        assert!(
            matches!(error, ProbeError::Fetch(FetchError::Failed(ref failure))
            if failure.kind == FailureKind::Refused),
            "{error}"
        );
    }

    #[test]
    fn an_answer_may_be_larger_than_what_is_read() {
        let huge = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
        answers(&server(huge), TIMEOUT).unwrap();
        let error = fetch(&server(huge), TIMEOUT).unwrap_err();
        assert!(
            matches!(error, ProbeError::Fetch(FetchError::TooLong(_))),
            "{error}"
        );
    }

    #[test]
    fn over_tls_a_connection_is_enough() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        answers(&url.parse().unwrap(), TIMEOUT).unwrap();
        let error = fetch(&url.parse().unwrap(), TIMEOUT).unwrap_err();
        assert_eq!(error.to_string(), "`https` cannot be fetched, only http");
    }
}
