//! Subrequests that authorize a request before it is forwarded, like nginx's `auth_request`.

use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{HeaderName, HeaderValue, SET_COOKIE};
use http_body_util::Empty;
use plimsoll_client::forward::{Exchange, Head, ResponseHead};
use plimsoll_model::{Clock as _, Failure, FailureKind, Phase, Side};
use plimsoll_server::{Outcome, OwnedRequest, Response, ResponseBody, Template};
use plimsoll_wire::SystemClock;
use plimsoll_wire::http::FieldList;

use super::failure;
use crate::upstream::{ServerUse, Upstream};

/// Settings of authorization subrequests.
#[derive(Debug, Clone)]
pub(crate) struct AuthorizePlan {
    /// Path and query of the subrequest.
    pub(crate) target: String,
    /// Fields of the subrequest in place of those of the request.
    pub(crate) set: Vec<(HeaderName, HeaderValue)>,
    /// The same with values that depend on the request.
    pub(crate) templates: Vec<(HeaderName, Template)>,
    /// Fields of the request that the service does not get.
    pub(crate) removed: Vec<HeaderName>,
    /// Fields of the response that the request gets; those of the client are removed.
    pub(crate) copied: Vec<HeaderName>,
    /// Fields of the response that the client gets, beside `Set-Cookie`.
    pub(crate) returned: Vec<HeaderName>,
}

/// What a service that lets a request pass adds to it, and to the response.
#[derive(Debug, Default)]
pub(super) struct Authorized {
    /// Fields of the request that is forwarded.
    pub(super) identity: Vec<(HeaderName, HeaderValue)>,
    /// Fields of the response, such as cookies of a session that was renewed.
    pub(super) returned: Vec<(HeaderName, HeaderValue)>,
}

impl Authorized {
    /// The response with the fields that the service returns to the client. They replace those of the server, but for
    /// cookies, which stand beside them.
    pub(super) fn returned_with(self, outcome: Outcome) -> Outcome {
        let Outcome::Respond(mut response) = outcome else {
            return outcome;
        };
        for (name, value) in self.returned {
            response = if name == SET_COOKIE {
                response.with_field(name, value)
            } else {
                response.with_field_set(name, value)
            };
        }
        Outcome::Respond(response)
    }
}

/// Asks a service whether a request may be forwarded.
pub(super) struct Authorizer {
    pub(super) plan: AuthorizePlan,
    pub(super) upstream: Rc<Upstream>,
}

/// Content of a refusal that is sent to the client.
const MOST_CONTENT: usize = 64 * 1024;

impl Authorizer {
    /// The fields to add to the request and its response; or the response if it may not be forwarded: that of the
    /// service, whole, if it is a redirect or a client error, 502 to 504 if there is no valid response.
    pub(super) async fn authorize(
        &self,
        request: &OwnedRequest,
        mut fields: FieldList,
    ) -> Result<Authorized, Response> {
        self.plan.add_own(request, &mut fields);
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
                    return Ok(Authorized {
                        identity: copied(&self.plan.copied, &head),
                        returned: self.plan.returned(&head),
                    });
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
}

impl AuthorizePlan {
    /// The fields that the configuration sets come last, and no field of the client stands beside one of them.
    fn add_own(&self, request: &OwnedRequest, fields: &mut FieldList) {
        let templates = self.templates.iter().map(|(name, template)| {
            let mut value = Vec::new();
            template.fill(&request.request(), &mut value);
            (name, value)
        });
        let set = self.set.iter();
        let set = set.map(|(name, value)| (name, value.as_bytes().to_vec()));
        let own: Vec<_> = set.chain(templates).collect();
        let names = own.iter().map(|(name, _)| *name).chain(&self.removed);
        let names: Vec<_> = names.map(HeaderName::as_str).collect();
        fields.retain(|name, _| {
            let mut names = names.iter();
            !names.any(|it| it.as_bytes().eq_ignore_ascii_case(name))
        });
        for (name, value) in own {
            fields.push(name.as_str().as_bytes(), &value);
        }
    }

    fn returned(&self, head: &ResponseHead) -> Vec<(HeaderName, HeaderValue)> {
        let mut returned = copied(&self.returned, head);
        let cookies = head.fields.iter();
        let cookies = cookies.filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie"));
        let cookies = cookies.filter_map(|(_, value)| HeaderValue::from_bytes(value).ok());
        returned.extend(cookies.map(|it| (SET_COOKIE, it)));
        returned
    }
}

/// The fields of these names in a response, the first one of each.
fn copied(names: &[HeaderName], head: &ResponseHead) -> Vec<(HeaderName, HeaderValue)> {
    let fields = names.iter().filter_map(|name| {
        let value = head.fields.field(name.as_str())?;
        Some((name.clone(), HeaderValue::from_bytes(value).ok()?))
    });
    fields.collect()
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
    for (name, value) in seen {
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
