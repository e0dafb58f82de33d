//! Services of tower, such as the routers of axum, as actions.

use std::future::poll_fn;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use tower_service::Service;

use crate::action::{Action, Answer};
use crate::body::RequestBody;
use crate::request::{Request, Version};
use crate::response::{Response, ResponseBody, StreamError};

/// Lets a [`Service`] answer, a clone of it for each request.
///
/// It gets the content as [`RequestBody`], which is `Send`, and the client's address as an extension of type
/// `SocketAddr`. An error of it is answered with 500. Upgrades are not for it.
///
/// ```ignore
/// let router = axum::Router::new().route("/", axum::routing::get(|| async { "hello" }));
/// let make: Arc<MakeAction> = Arc::new(move || Rc::new(Mount::new(router.clone())));
/// ```
#[derive(Debug, Clone)]
pub struct Mount<S> {
    service: S,
}

impl<S> Mount<S> {
    /// Answers by `service`.
    pub fn new(service: S) -> Self {
        Self { service }
    }
}

impl<S, B> Action for Mount<S>
where
    S: Service<http::Request<RequestBody>, Response = http::Response<B>> + Clone + 'static,
    S::Error: Into<StreamError>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<StreamError>,
{
    fn handle(&self, request: &Request<'_>) -> Answer {
        let Some(request) = owned(request) else {
            return Answer::now(Response::text(
                StatusCode::BAD_REQUEST,
                "the target is no URI\n",
            ));
        };
        let is_head = request.method() == Method::HEAD;
        let mut service = self.service.clone();
        Answer::later(async move {
            let answered = match poll_fn(|cx| service.poll_ready(cx)).await {
                Ok(()) => service.call(request).await,
                Err(error) => Err(error),
            };
            match answered {
                Ok(response) => taken_over(response, is_head),
                Err(_) => Response::text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the service could not answer\n",
                ),
            }
        })
    }
}

/// The request with its content, for whoever answers later.
fn owned(request: &Request<'_>) -> Option<http::Request<RequestBody>> {
    let target = match request.query {
        None => PathAndQuery::from_str(request.path),
        Some(query) => PathAndQuery::from_str(&format!("{}?{query}", request.path)),
    };
    let mut owned = http::Request::new(request.take_body());
    *owned.method_mut() = Method::from_bytes(request.method.as_bytes()).ok()?;
    *owned.uri_mut() = Uri::from(target.ok()?);
    *owned.version_mut() = match request.version {
        Version::Http10 => http::Version::HTTP_10,
        Version::Http11 => http::Version::HTTP_11,
        Version::Http2 => http::Version::HTTP_2,
        Version::Http3 => http::Version::HTTP_3,
    };
    let mut fields = request.to_fields();
    if !fields.contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(request.authority)
    {
        fields.insert(HOST, host);
    }
    *owned.headers_mut() = fields;
    owned.extensions_mut().insert(request.peer);
    Some(owned)
}

fn taken_over<B>(response: http::Response<B>, is_head: bool) -> Response
where
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<StreamError>,
{
    let (parts, body) = response.into_parts();
    let announced = parts.headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse().ok());
    let mut taken = Response::new(parts.status);
    let mut last = None;
    for (name, value) in parts.headers {
        // A name is said only for the first of its values.
        last = name.or(last);
        if let Some(name) = &last {
            taken = taken.with_field(name.clone(), value);
        }
    }
    if let Some(length) = announced.filter(|_| is_head) {
        return taken.with_body(ResponseBody::Stream(Box::pin(Announced(length))));
    }
    if body.is_end_stream() {
        return taken;
    }
    taken.with_body(ResponseBody::Stream(Box::pin(Content(Box::pin(body)))))
}

/// Content that HEAD only asks the length of.
struct Announced(u64);

impl Body for Announced {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}

/// Content whose errors are those of responses.
struct Content<B>(Pin<Box<B>>);

impl<B> Body for Content<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<StreamError>,
{
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let frame = self.0.as_mut().poll_frame(cx);
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
