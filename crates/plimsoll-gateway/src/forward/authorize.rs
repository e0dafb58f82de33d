//! Subrequests that authorize a request before it is forwarded, like nginx's `auth_request`.

use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{HeaderName, HeaderValue};
use http_body_util::Empty;
use plimsoll_client::forward::{Exchange, Head, ResponseHead};
use plimsoll_model::{Clock as _, Failure, FailureKind, Phase, Side};
use plimsoll_server::{OwnedRequest, Response, ResponseBody};
use plimsoll_wire::SystemClock;
use plimsoll_wire::http::FieldList;

use super::failure;
use crate::upstream::{ServerUse, Upstream};

/// Settings of authorization subrequests.
#[derive(Debug, Clone)]
pub(crate) struct AuthorizePlan {
    /// Path and query of the subrequest.
    pub(crate) target: String,
    /// Fields of the response that the request gets; those of the client are removed.
    pub(crate) copied: Vec<HeaderName>,
}

/// Asks a service whether a request may be forwarded.
pub(super) struct Authorizer {
    pub(super) plan: AuthorizePlan,
    pub(super) upstream: Rc<Upstream>,
}

/// Content of a refusal that is sent to the client.
const MOST_CONTENT: usize = 64 * 1024;

impl Authorizer {
    /// The fields to add to the request; or the response if it may not be forwarded: that of the service if it is a
    /// redirect or a client error, 502 to 504 if there is no valid response.
    pub(super) async fn authorize(
        &self,
        request: &OwnedRequest,
        fields: FieldList,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Response> {
        let now = SystemClock.now();
        let chosen = self.upstream.choose(0, None, &[], now);
        let server = chosen.ok_or_else(failure::no_server)?.begin(now);
        let limit = self.upstream.plan.options.timeouts.response;
        let exchanged = self.exchange(&server, request, &fields);
        let exchanged = tokio::time::timeout(limit, exchanged).await;
        let exchanged = exchanged.unwrap_or_else(|_| Err(late(limit)));
        match exchanged {
            Ok((head, content)) => {
                server.responded(head.status.as_u16(), SystemClock.now());
                if head.status.is_success() {
                    return Ok(self.copied(&head));
                }
                if head.status.is_redirection() || head.status.is_client_error() {
                    let response = Response::new(head.status)
                        .with_fields(head.fields.into_forwarded())
                        .with_body(ResponseBody::Bytes(content));
                    return Err(response);
                }
                Err(failure::bad_gateway())
            }
            Err(failure) => {
                server.failed();
                Err(failure::response(&failure))
            }
        }
    }

    async fn exchange(
        &self,
        server: &ServerUse,
        request: &OwnedRequest,
        fields: &FieldList,
    ) -> Result<(ResponseHead, Bytes), Failure> {
        let destination = server.server().destination();
        let lease = destination.acquire().await.map_err(|it| it.failure)?;
        let authority = request.request().authority;
        let head = Head {
            authority: Some(authority).filter(|it| !it.is_empty()),
            ..Head::new("GET", &self.plan.target, fields)
        };
        let mut exchange = lease.begin(&head, Empty::<Bytes>::new())?;
        let head = exchange.final_head().await.map_err(|it| it.failure)?;
        let content = content(&mut exchange).await?;
        Ok((head, content))
    }

    fn copied(&self, head: &ResponseHead) -> Vec<(HeaderName, HeaderValue)> {
        let names = self.plan.copied.iter();
        let fields = names.filter_map(|name| {
            let value = head.fields.field(name.as_str())?;
            Some((name.clone(), HeaderValue::from_bytes(value).ok()?))
        });
        fields.collect()
    }
}

/// The fields of a subrequest: those that the server would see, without those of content and conditions, and with
/// `X-Forwarded-Method` and `X-Forwarded-Uri`.
pub(super) fn subrequest_fields(seen: &FieldList, request: &OwnedRequest) -> FieldList {
    const OWN: [&[u8]; 2] = [b"x-forwarded-method", b"x-forwarded-uri"];
    const LEFT_OUT: [&[u8]; 8] = [
        b"range",
        b"if-match",
        b"if-none-match",
        b"if-modified-since",
        b"if-unmodified-since",
        b"if-range",
        b"content-type",
        b"content-encoding",
    ];
    let mut list = FieldList::new();
    for (name, value) in seen.iter() {
        let is = |other: &&[u8]| name.eq_ignore_ascii_case(other);
        if !LEFT_OUT.iter().any(is) && !OWN.iter().any(is) {
            list.push(name, value);
        }
    }
    list.push(OWN[0], request.request().method.as_bytes());
    list.push(OWN[1], request.path_and_query().as_bytes());
    list
}

/// The content of a response, if it is not too long; reading to its end keeps the connection.
async fn content(exchange: &mut Exchange<Empty<Bytes>>) -> Result<Bytes, Failure> {
    let mut content = BytesMut::new();
    while let Some(frame) = exchange.frame().await {
        let frame = frame.map_err(|incomplete| incomplete.failure)?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if content.len() + data.len() > MOST_CONTENT {
            return Err(Failure::new(Phase::Receive, FailureKind::TooLarge)
                .on(Side::Theirs)
                .because(format!("more than {MOST_CONTENT} bytes")));
        }
        content.extend_from_slice(data);
    }
    Ok(content.freeze())
}

fn late(limit: Duration) -> Failure {
    Failure::new(Phase::Wait, FailureKind::Timeout)
        .on(Side::Theirs)
        .because(format!("no response within {limit:?}"))
}
