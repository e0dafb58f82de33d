//! Subrequests that authorize a request before it is answered, like nginx's `auth_request`: a guard of a route, and `auth` of
//! `proxy`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::{HeaderName, HeaderValue, SET_COOKIE, WWW_AUTHENTICATE};
use http_body_util::Empty;
use plimsoll_client::forward::{Exchange, Head, NotForwarded, ResponseHead};
use plimsoll_model::{Clock as _, Failure, FailureKind, Phase, Side};
use plimsoll_server::{
    Action, Answer, FieldEdits, Outcome, OwnedRequest, ProvedClaims, Request, RequestGuard,
    Response, ResponseBody, Template, WorkerContext,
};
use plimsoll_wire::SystemClock;
use plimsoll_wire::http::FieldList;

use super::fields::seen_fields;
use super::grpc::{self, Call};
use super::plan::ForwardPlan;
use super::{failure, respond};
use crate::guards::{GuardCounts, GuardOutcome, answered};
use crate::upstream::{ServerUse, Upstream, UpstreamPlan};

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
    /// The client gets the refusal of the service whole, and not only its status.
    pub(crate) is_relayed: bool,
    pub(crate) counts: Arc<GuardCounts>,
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
    /// Edits of the request: the fields that only the service may set.
    fn edits(&self, copied: &[HeaderName]) -> FieldEdits {
        let edits = copied.iter().cloned();
        let edits = edits.fold(FieldEdits::new(), FieldEdits::remove);
        let identity = self.identity.iter().cloned();
        identity.fold(edits, |edits, (name, value)| edits.set(name, value))
    }

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

/// What the service has said about the sender, for places; and what was proved about it before.
#[derive(Debug)]
struct Identity {
    fields: Vec<(HeaderName, HeaderValue)>,
    before: Option<Rc<dyn ProvedClaims>>,
}

impl ProvedClaims for Identity {
    fn write(&self, name: &str, out: &mut Vec<u8>) -> bool {
        let of_service = name.strip_prefix("auth:");
        let mut fields = self.fields.iter();
        let found = of_service.and_then(|name| fields.find(|(known, _)| known == name));
        if let Some((_, value)) = found {
            out.extend_from_slice(value.as_bytes());
            return true;
        }
        let before = self.before.as_ref();
        before.is_some_and(|it| it.write(name, out))
    }
}

/// Sends subrequests to the service that authorizes requests.
pub(super) struct Authorizer {
    pub(super) plan: AuthorizePlan,
    pub(super) upstream: Rc<Upstream>,
    /// The number of the worker.
    pub(super) worker: usize,
}

/// The guard `auth`: a service authorizes each request, for every action.
#[derive(Debug)]
pub(crate) struct AuthorizeGuard {
    /// By which the fields that the service sees are put together; it has an [`AuthorizePlan`].
    pub(crate) plan: Arc<ForwardPlan>,
    pub(crate) upstream: Arc<UpstreamPlan>,
}

impl RequestGuard for AuthorizeGuard {
    fn over(&self, worker: &WorkerContext, inner: Rc<dyn Action>) -> Rc<dyn Action> {
        let Some(authorize) = self.plan.authorize.clone() else {
            return inner;
        };
        Rc::new(Authorizing(Rc::new(Guarding {
            plan: Arc::clone(&self.plan),
            authorizer: Authorizer {
                plan: authorize,
                upstream: Upstream::of_worker(&self.upstream, worker),
                worker: worker.worker(),
            },
            text: RefCell::default(),
            inner,
        })))
    }

    fn own_fields(&self) -> Vec<HeaderName> {
        self.plan.own_fields().cloned().collect()
    }

    fn is_enough(&self) -> bool {
        true
    }
}

/// Lets another action answer the requests that a service authorizes.
struct Authorizing(Rc<Guarding>);

struct Guarding {
    plan: Arc<ForwardPlan>,
    authorizer: Authorizer,
    text: RefCell<String>,
    inner: Rc<dyn Action>,
}

impl Action for Authorizing {
    fn handle(&self, request: &Request<'_>) -> Answer {
        // The response to a TRACE would show the client the fields that the service has added.
        if let Some(reason) = NotForwarded::check(request.method, std::iter::empty()) {
            return Answer::now(failure::not_forwarded(reason));
        }
        let guarding = Rc::clone(&self.0);
        let is_call = Call::from_request(request, None).is_some();
        let seen = seen_fields(
            &guarding.plan,
            request,
            &[],
            &mut guarding.text.borrow_mut(),
        );
        let request = request.into_owned();
        let fields = subrequest_fields(&seen, &request);
        Answer::Later(Box::pin(async move {
            let asked = &guarding.authorizer;
            let authorized = match asked.authorize(&request, fields).await {
                Ok(authorized) => authorized,
                Err(response) if is_call => return respond(grpc::failed(&response)),
                Err(response) => return respond(response),
            };
            let edits = authorized.edits(&asked.plan.copied);
            let request = request.request();
            let answer = request.edited(&edits, |request| guarding.inner.handle(request));
            authorized.returned_with(answered(answer).await)
        }))
    }

    fn methods(&self) -> Option<&'static str> {
        self.0.inner.methods()
    }
}

/// Content of a refusal that is sent to the client.
const MOST_CONTENT: usize = 64 * 1024;

impl Authorizer {
    /// The fields to add to the request and its response; or the response if it may not be answered otherwise: that of the
    /// service, whole or as far as the plan says, if it is a redirect or a client error, 502 to 504 if there is no valid response.
    pub(super) async fn authorize(
        &self,
        request: &OwnedRequest,
        mut fields: FieldList,
    ) -> Result<Authorized, Response> {
        self.plan.add_own(request, &mut fields);
        let now = SystemClock.now();
        let chosen = self.upstream.choose(0, None, &[], now);
        let Some(server) = chosen else {
            self.count(GuardOutcome::Unavailable);
            return Err(failure::no_server());
        };
        let server = server.begin(now);
        let limit = self.upstream.plan.options.timeouts.response;
        let exchanged = self.exchange(&server, request, &fields);
        let exchanged = tokio::time::timeout(limit, exchanged).await;
        let exchanged = exchanged.unwrap_or_else(|_| Err(late(limit)));
        match exchanged {
            Ok((head, content)) => {
                server.responded(head.status.as_u16(), SystemClock.now());
                if head.status.is_success() {
                    self.count(GuardOutcome::Verified);
                    let identity = copied(&self.plan.copied, &head);
                    let request = request.request();
                    request.proves(Rc::new(Identity {
                        fields: identity.clone(),
                        before: request.claims(),
                    }));
                    return Ok(Authorized {
                        identity,
                        returned: self.plan.returned(&head),
                    });
                }
                self.count(match head.status {
                    StatusCode::UNAUTHORIZED => GuardOutcome::Missing,
                    StatusCode::FORBIDDEN => GuardOutcome::Forbidden,
                    it if it.is_redirection() => GuardOutcome::Missing,
                    it if it.is_client_error() => GuardOutcome::Invalid,
                    _ => GuardOutcome::Unavailable,
                });
                Err(self.plan.refusal(head, content))
            }
            Err(failure) => {
                self.count(GuardOutcome::Unavailable);
                server.failed();
                Err(failure::response(&failure))
            }
        }
    }

    fn count(&self, outcome: GuardOutcome) {
        self.plan.counts.count(self.worker, outcome);
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
        let set = self.set.iter().map(|(name, _)| name);
        let filled = self.templates.iter().map(|(name, _)| name);
        let names = set.chain(filled).chain(&self.removed);
        let names: Vec<_> = names.map(HeaderName::as_str).collect();
        fields.retain(|name, _| {
            let mut names = names.iter();
            !names.any(|it| it.as_bytes().eq_ignore_ascii_case(name))
        });
        for (name, value) in &self.set {
            fields.push(name.as_str().as_bytes(), value.as_bytes());
        }
        let mut text = Vec::new();
        for (name, template) in &self.templates {
            if let Some(value) = template.field(&request.request(), &mut text) {
                fields.push(name.as_str().as_bytes(), value);
            }
        }
    }

    /// The response to a request that the service does not authorize.
    fn refusal(&self, head: ResponseHead, content: Bytes) -> Response {
        let status = head.status;
        let is_refused = status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN;
        if !self.is_relayed {
            if !is_refused {
                return Response::text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the service that authorizes requests has not decided\n",
                );
            }
            let text = if status == StatusCode::FORBIDDEN {
                "forbidden\n"
            } else {
                "not authorized\n"
            };
            let fields = head.fields.iter();
            let challenges =
                fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"www-authenticate"));
            let challenges = challenges.filter_map(|(_, it)| HeaderValue::from_bytes(it).ok());
            return challenges.fold(Response::text(status, text), |response, challenge| {
                response.with_field(WWW_AUTHENTICATE, challenge)
            });
        }
        if !status.is_redirection() && !status.is_client_error() {
            return failure::bad_gateway();
        }
        let response = Response::new(status)
            .with_fields(head.fields.into_forwarded())
            .with_body(ResponseBody::Bytes(content));
        // Another one does not say that what was wanted is not there: the route that takes over then would let clients in.
        if is_refused {
            response
        } else {
            response.relayed()
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
