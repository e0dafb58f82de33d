//! One request to a real server, up to the head of its response.

use std::rc::Rc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ALLOW, CONTENT_LENGTH, HeaderName, HeaderValue};
use http_body_util::Full;
use plimsoll_client::ConnectFailure;
use plimsoll_client::forward::{
    Destination, Exchange, Head, Lease, NotForwarded, ResponseHead, may_retry,
};
use plimsoll_model::{Failure, FailureKind, Phase};
use plimsoll_server::Response;

use super::content::PassedContent;
use super::outgoing::{Outgoing, is_passed_back};
use super::{Upstream, UpstreamPool};

/// A response on its way.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) status: StatusCode,
    /// Without those of the connection.
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content: PassedContent,
}

/// The status and the text for the client when there is no response.
pub(crate) type Refusal = (StatusCode, String);

/// The response to a request that is not sent, with the methods that are.
pub(crate) fn not_sent(response: Response) -> Response {
    match response.status() {
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NO_CONTENT => {
            response.with_field(ALLOW, HeaderValue::from_static(NotForwarded::ALLOWED))
        }
        _ => response,
    }
}

/// Sends a request, and once more on a new connection if the server has closed the one that was kept.
pub(crate) async fn pass_on(pool: Rc<UpstreamPool>, outgoing: Outgoing) -> Result<Passed, Refusal> {
    let upstream = &pool.upstream;
    let mut is_retry = false;
    loop {
        let lease = Box::pin(lease(&pool.destination, is_retry)).await;
        let lease = lease.map_err(|error| unreachable(upstream, &error.failure))?;
        let attempt = tokio::time::timeout(upstream.timeout, attempt(lease, &outgoing)).await;
        match attempt {
            Ok(Ok((head, exchange))) => return Ok(passed(upstream, &outgoing, &head, exchange)),
            Ok(Err(failure)) if !is_retry && may_retry(&failure, outgoing.is_idempotent) => {
                is_retry = true;
            }
            Ok(Err(failure)) => return Err(refusal(upstream, &failure)),
            Err(_) => {
                let timeout = upstream.timeout;
                let text = format!("{upstream} has not answered within {timeout:?}\n");
                return Err((StatusCode::GATEWAY_TIMEOUT, text));
            }
        }
    }
}

async fn lease(destination: &Rc<Destination>, is_retry: bool) -> Result<Lease, ConnectFailure> {
    if is_retry {
        destination.acquire_unused().await
    } else {
        destination.acquire().await
    }
}

async fn attempt(
    lease: Lease,
    outgoing: &Outgoing,
) -> Result<(ResponseHead, Exchange<Full<Bytes>>), Failure> {
    let head = Head {
        authority: Some(&outgoing.authority),
        ..Head::new(&outgoing.method, &outgoing.target, &outgoing.fields)
    };
    let mut exchange = lease.begin(&head, Full::new(outgoing.body.clone()))?;
    let head = exchange.final_head().await;
    let head = head.map_err(|incomplete| incomplete.failure)?;
    Ok((head, exchange))
}

fn passed(
    upstream: &Upstream,
    outgoing: &Outgoing,
    head: &ResponseHead,
    exchange: Exchange<Full<Bytes>>,
) -> Passed {
    let fields = head.fields.to_forwarded_map();
    let fields = fields
        .into_iter()
        .scan(None, |last, (name, value)| {
            // A map names a field once for all its values.
            let name = name.or_else(|| last.clone())?;
            *last = Some(name.clone());
            Some((name, value))
        })
        .filter(|(name, _)| is_passed_back(name));
    let announced = head.fields.field(CONTENT_LENGTH.as_str());
    let announced = announced
        .filter(|_| outgoing.method == "HEAD")
        .and_then(|value| std::str::from_utf8(value).ok()?.trim().parse().ok());
    Passed {
        status: head.status,
        fields: fields.collect(),
        content: PassedContent::new(exchange.into_response_body(), announced, upstream.timeout),
    }
}

fn unreachable(upstream: &Upstream, failure: &Failure) -> Refusal {
    let status = match failure.kind {
        FailureKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    (status, format!("{upstream} cannot be reached: {failure}\n"))
}

fn refusal(upstream: &Upstream, failure: &Failure) -> Refusal {
    let text = match failure.kind {
        FailureKind::Closed if failure.phase != Phase::Receive => {
            format!("{upstream} closed the connection without an answer\n")
        }
        FailureKind::Reset => format!("the connection to {upstream} broke: {failure}\n"),
        _ => format!("{upstream} answered what is no HTTP: {failure}\n"),
    };
    (StatusCode::BAD_GATEWAY, text)
}
