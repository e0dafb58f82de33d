//! Services of tower, such as the routers of axum, as actions.

mod send_body;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::str::FromStr;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use tower_service::Service;

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::{Response, ResponseBody, StreamError};
use crate::version::Version;

use crate::actions::mount::send_body::Pump;
pub use crate::actions::mount::send_body::SendBody;

/// Lets a [`Service`] answer, a clone of it for each request.
///
/// It gets the content as [`SendBody`], and the client's address and the scheme as extensions of the types `SocketAddr` and [`Scheme`](crate::Scheme). The content comes
/// for as long as the service answers and its answer is sent. An error of it is answered with 500. Upgrades are not for it.
///
/// ```ignore
/// let router = axum::Router::new().route("/", axum::routing::get(|| async { "hello" }));
/// let make: Arc<MakeAction> = Arc::new(move |_: &WorkerContext| Rc::new(Mount::new(router.clone())));
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
    S: Service<http::Request<SendBody>, Response = http::Response<B>> + Clone + 'static,
    S::Error: Into<StreamError>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<StreamError>,
{
    fn handle(&self, request: &Request<'_>) -> Answer {
        let Some((request, mut pump)) = owned(request) else {
            return Answer::now(Response::text(
                StatusCode::BAD_REQUEST,
                "the target is no URI\n",
            ));
        };
        let is_head = request.method() == Method::HEAD;
        let mut service = self.service.clone();
        Answer::later(async move {
            let mut answering = pin!(async {
                poll_fn(|cx| service.poll_ready(cx)).await?;
                service.call(request).await
            });
            let answered = poll_fn(|cx| {
                let answered = answering.as_mut().poll(cx);
                pump_content(&mut pump, cx);
                answered
            });
            match answered.await {
                Ok(response) => taken_over(response, is_head, pump),
                Err(_) => Response::text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the service could not answer\n",
                ),
            }
        })
    }
}

/// The request as a service takes it, and what hands its content over.
fn owned(request: &Request<'_>) -> Option<(http::Request<SendBody>, Option<Pump>)> {
    let target = match request.query {
        None => PathAndQuery::from_str(request.path),
        Some(query) => PathAndQuery::from_str(&format!("{}?{query}", request.path)),
    };
    let (body, pump) = SendBody::from_request_body(request.take_body());
    let mut owned = http::Request::new(body);
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
    owned.extensions_mut().insert(request.scheme);
    Some((owned, pump))
}

fn pump_content(pump: &mut Option<Pump>, cx: &mut Context<'_>) {
    if let Some(pump) = pump {
        pump.poll(cx);
    }
}

fn taken_over<B>(response: http::Response<B>, is_head: bool, pump: Option<Pump>) -> Response
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
        // The iterator gives a name with the first of its values only.
        last = name.or(last);
        if let Some(name) = &last {
            taken = taken.with_field(name.clone(), value);
        }
    }
    if let Some(length) = announced.filter(|_| is_head) {
        return taken.with_body(ResponseBody::Announced(length));
    }
    if body.is_end_stream() {
        return taken;
    }
    let content = Content {
        body: Box::pin(body),
        pump,
    };
    taken.with_body(ResponseBody::Stream(Box::pin(content)))
}

/// Content whose errors are those of responses; it may be made of that of the request.
struct Content<B> {
    body: Pin<Box<B>>,
    pump: Option<Pump>,
}

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
        let frame = self.body.as_mut().poll_frame(cx);
        pump_content(&mut self.pump, cx);
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
