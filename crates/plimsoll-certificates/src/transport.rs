//! Transport of ACME requests: the same client as everywhere else.

use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use plimsoll_client::fetch::{FetchError, Fetched, Fetcher};
use tokio::sync::{mpsc, oneshot};
use url::Url;

/// The end that may be on any thread; the requests are made on the one that [`serve`] is on.
#[derive(Clone)]
pub(crate) struct Transport(mpsc::Sender<PendingRequest>);

/// One request and who waits for its response.
pub(crate) struct PendingRequest {
    request: Request<BodyWrapper<Bytes>>,
    done: oneshot::Sender<Result<Response<Full<Bytes>>, TransportError>>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    /// The authority names something else than a URL.
    #[error("`{0}` is no URL")]
    Url(String),
    /// It was not answered.
    #[error("{url}: {source}")]
    Fetch {
        url: String,
        #[source]
        source: FetchError,
    },
    /// The answer is not a response that can be checked.
    #[error(transparent)]
    Response(#[from] http::Error),
    /// The task that makes the requests has ended.
    #[error("it was given up")]
    Ended,
}

impl Transport {
    /// One end for the requests, and one to make them.
    pub(crate) fn new() -> (Self, mpsc::Receiver<PendingRequest>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }
}

impl HttpClient for Transport {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let asking = self.0.clone();
        Box::pin(async move {
            let (done, answered) = oneshot::channel();
            let sent = asking.send(PendingRequest { request, done }).await;
            sent.map_err(|_| other(TransportError::Ended))?;
            let answered = answered.await.map_err(|_| other(TransportError::Ended))?;
            answered.map(BytesResponse::from).map_err(other)
        })
    }
}

fn other(error: TransportError) -> Error {
    Error::Other(Box::new(error))
}

/// Makes the requests, one after the other, as long as there may be any.
pub(crate) async fn serve(fetcher: &Fetcher, mut requests: mpsc::Receiver<PendingRequest>) {
    while let Some(PendingRequest { request, done }) = requests.recv().await {
        // The requester may have gone away.
        done.send(answer(fetcher, request).await).ok();
    }
}

async fn answer(
    fetcher: &Fetcher,
    request: Request<BodyWrapper<Bytes>>,
) -> Result<Response<Full<Bytes>>, TransportError> {
    let (parts, body) = request.into_parts();
    let shown = parts.uri.to_string();
    let url = Url::parse(&shown).map_err(|_| TransportError::Url(shown.clone()))?;
    let Ok(content) = body.collect().await;
    let content = content.to_bytes();
    let fields = parts.headers.iter().filter_map(|(name, value)| {
        let is_ours = name == http::header::USER_AGENT;
        let value = value.to_str().ok().filter(|_| !is_ours)?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    let content = (parts.method == http::Method::POST).then_some(&*content);
    let sending = fetcher.send(parts.method.as_str(), &url, fields.collect(), content);
    let answer = sending
        .await
        .map_err(|source| TransportError::Fetch { url: shown, source })?;
    response(answer)
}

fn response(fetched: Fetched) -> Result<Response<Full<Bytes>>, TransportError> {
    let mut response = Response::builder().status(fetched.status);
    for (name, value) in &fetched.fields {
        response = response.header(name, value.as_slice());
    }
    Ok(response.body(Full::from(fetched.content))?)
}
