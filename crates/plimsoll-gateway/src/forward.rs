//! Forwarding: a request goes to a server of an upstream, and its response comes back as it arrives.
//!
//! The way of a request:
//!
//! 1. [`Forward::handle`] keeps the head, and [`body::Upload`] the content that is still on the connection.
//! 2. [`Upstream::choose`] asks the balancer for a server; the pool of that server gives a connection.
//! 3. The head leaves with the fields of [`fields::Outgoing`]; content is sent as it comes from the client.
//! 4. An attempt that fails before a response is made again at another server, if the policy and the budget permit it and
//!    nothing of the content was read.
//! 5. Interim responses are sent on. [`body::Download`] streams the content of the final one: what the client does not take
//!    is not read from the server. An agreed upgrade becomes a [`tunnel`].
//!
//! A client that leaves drops the future of its request, and with it the exchange.

mod body;

mod failure;

mod fields;

mod target;

mod tunnel;

use std::rc::Rc;
use std::sync::Arc;

use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, SET_COOKIE};
use http::{HeaderMap, StatusCode};
use ipnet::IpNet;
use plimsoll_client::forward::{Exchange, Head, ResponseHead};
use plimsoll_model::{Clock as _, Failure, FailureKind, Phase, Protocol, Side};
use plimsoll_server::{
    Action, Answer, InterimSender, LocalFuture, Outcome, OwnedRequest, Request, Response,
    ResponseBody,
};
use plimsoll_wire::SystemClock;

use self::body::{Download, Upload};
use self::fields::Outgoing;
use self::tunnel::Handshake;
use crate::upstream::{self, Server, ServerUse, Upstream};

/// How requests of a route are forwarded, immutable.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForwardPlan {
    /// What comes before the path; empty or begins with a slash and ends without one.
    pub(crate) base: String,
    /// The prefix of the route that is taken from the path.
    pub(crate) strip: Option<String>,
    pub(crate) host: HostPolicy,
    pub(crate) forwarded: Forwarded,
    /// Proxies whose `Forwarded` and `X-Forwarded-…` are believed; those of others are replaced.
    pub(crate) trusted: Vec<IpNet>,
    /// Fields in place of those of the request.
    pub(crate) set: Vec<(HeaderName, HeaderValue)>,
    /// Fields that are not forwarded.
    pub(crate) removed: Vec<HeaderName>,
}

/// The host that a server sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum HostPolicy {
    /// That of the request.
    #[default]
    Client,
    /// That of the server's URL.
    Server,
    /// This one.
    Name(String),
}

/// The fields that name the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Forwarded {
    /// `X-Forwarded-For`, `-Host` and `-Proto`.
    #[default]
    X,
    /// `Forwarded` (RFC 7239).
    Rfc7239,
    /// All of them.
    Both,
    /// None; those of the request are removed all the same, unless it comes from a trusted proxy.
    None,
}

/// The action `proxy` of a route on a worker.
pub(crate) struct Forward(Rc<Forwarder>);

struct Forwarder {
    plan: Arc<ForwardPlan>,
    upstream: Rc<Upstream>,
}

impl Forward {
    pub(crate) fn new(plan: Arc<ForwardPlan>, upstream: Rc<Upstream>) -> Self {
        Self(Rc::new(Forwarder { plan, upstream }))
    }
}

impl Action for Forward {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let options = &self.0.upstream.plan.options;
        let key = options.key.of(request).into_owned();
        let cookie = options.sticky.as_deref();
        let sticky = cookie.and_then(|name| upstream::cookie(request, name));
        let forwarding = Forwarding {
            forwarder: Rc::clone(&self.0),
            key,
            sticky: sticky.map(str::to_owned),
            interims: request.interims(),
            request: request.into_owned(),
        };
        Answer::Later(Box::pin(forwarding.run()))
    }
}

/// One request on its way.
struct Forwarding {
    forwarder: Rc<Forwarder>,
    key: Vec<u8>,
    /// The value of the cookie that names a server.
    sticky: Option<String>,
    interims: InterimSender,
    request: OwnedRequest,
}

/// A response whose head is there.
struct Responding {
    server: ServerUse,
    exchange: Exchange<Upload>,
    head: ResponseHead,
    protocol: Protocol,
}

impl Forwarding {
    async fn run(self) -> Outcome {
        let forwarder = Rc::clone(&self.forwarder);
        let upstream = &forwarder.upstream;
        let policy = &upstream.plan.options.retry;
        let request = self.request.request();
        let handshake = Handshake::of(&request);
        let upload = Upload::new(request.take_body());
        let is_idempotent = is_idempotent(request.method) && handshake.is_none();
        let Some(target) = target::target(&forwarder.plan, &request) else {
            return respond(failure::bad_request());
        };
        upstream.count_request(SystemClock.now());
        let mut tried = Vec::new();
        loop {
            let now = SystemClock.now();
            let chosen = upstream.choose(&self.key, self.sticky.as_deref(), &tried, now);
            let Some(server) = chosen else {
                return respond(failure::no_server());
            };
            let number = server.number();
            let may_retry =
                |upload: &Upload| tried.len() < policy.retries as usize && !upload.is_touched();
            let outcome = self
                .attempt(
                    server,
                    &target,
                    handshake.as_ref(),
                    upload.clone(),
                    !tried.is_empty(),
                )
                .await;
            let now = SystemClock.now();
            match outcome {
                Ok(responding) => {
                    let status = responding.head.status;
                    let server = responding.server.server();
                    upstream.observe(server, failure::is_failing(status), now);
                    let applies = policy.applies(upstream::Outcome::Status(status), is_idempotent);
                    if applies && may_retry(&upload) && upstream.take_retry(now) {
                        tried.push(number);
                        continue;
                    }
                    return self.answer(responding, handshake).await;
                }
                Err((server, failure)) => {
                    // A client that broke its request off says nothing about the server.
                    if failure.side != Side::Ours {
                        server.failed();
                        upstream.observe(server.server(), true, now);
                    }
                    let applies =
                        policy.applies(upstream::Outcome::Failed(&failure), is_idempotent);
                    if applies && may_retry(&upload) && upstream.take_retry(now) {
                        tried.push(number);
                        continue;
                    }
                    return respond(failure::response(&failure));
                }
            }
        }
    }

    /// One exchange, up to the head of the final response.
    ///
    /// - `is_retry`: it goes by a connection that the server cannot be closing.
    async fn attempt(
        &self,
        server: Rc<Server>,
        target: &str,
        handshake: Option<&Handshake>,
        upload: Upload,
        is_retry: bool,
    ) -> Result<Responding, (ServerUse, Failure)> {
        let destination = Rc::clone(server.destination());
        let server = server.begin(SystemClock.now());
        let limit = self.forwarder.upstream.plan.options.timeouts.response;
        let lease = if is_retry {
            destination.acquire_unused().await
        } else {
            destination.acquire().await
        };
        let lease = match lease {
            Ok(lease) => lease,
            Err(error) => return Err((server, error.failure)),
        };
        if handshake.is_some() && tokio::time::timeout(limit, lease.settled()).await.is_err() {
            return Err((server, late(limit)));
        }
        let protocol = lease.protocol();
        let plan = &self.forwarder.plan;
        let request = self.request.request();
        let fields = Outgoing::new(plan, &request, handshake, protocol);
        let authority = match &plan.host {
            HostPolicy::Client => Some(request.authority).filter(|it| !it.is_empty()),
            HostPolicy::Server => None,
            HostPolicy::Name(name) => Some(name.as_str()),
        };
        let head = Head {
            method: match (handshake, protocol) {
                (None, _) => request.method,
                (Some(_), Protocol::Http2 | Protocol::Http3) => "CONNECT",
                (Some(_), _) => "GET",
            },
            target,
            authority,
            fields: &fields,
            upgrade: handshake.map(|_| "websocket"),
            expects_continue: false,
        };
        let mut exchange = match lease.begin(&head, upload) {
            Ok(exchange) => exchange,
            Err(failure) => return Err((server, failure)),
        };
        match tokio::time::timeout(limit, self.final_head(&mut exchange)).await {
            Ok(Ok(head)) => {
                server.responded(head.status.as_u16(), SystemClock.now());
                Ok(Responding {
                    server,
                    exchange,
                    head,
                    protocol,
                })
            }
            Ok(Err(failure)) => Err((server, failure)),
            Err(_) => Err((server, late(limit))),
        }
    }

    /// The final head; interim responses before it are sent to the client.
    async fn final_head(&self, exchange: &mut Exchange<Upload>) -> Result<ResponseHead, Failure> {
        loop {
            let head = exchange.head().await.map_err(|it| it.failure)?;
            if !head.is_interim() {
                return Ok(head);
            }
            // The engine itself sends 100 once content is wanted. What a slow client does not take is left out: interim
            // responses are hints.
            if head.status != StatusCode::CONTINUE {
                let fields = head.fields.to_forwarded_map();
                self.interims.send(head.status, fields).ok();
            }
        }
    }

    async fn answer(&self, responding: Responding, handshake: Option<Handshake>) -> Outcome {
        let Responding {
            server,
            exchange,
            head,
            protocol,
        } = responding;
        let mut fields = head.fields.to_forwarded_map();
        if let Some(handshake) = handshake
            && handshake.is_agreed(&head, protocol)
        {
            handshake.complete(&mut fields);
            let response = Response::new(StatusCode::SWITCHING_PROTOCOLS).with_field_map(fields);
            let Some(upgraded) = exchange.upgrade() else {
                return respond(failure::bad_gateway());
            };
            return Outcome::Upgrade(response, tunnel::tunnel(upgraded, server));
        }
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            // It was not asked for.
            return respond(failure::bad_gateway());
        }
        self.keep_at_server(&server, &mut fields);
        let announced = head.fields.field("content-length").and_then(length);
        let has_content = self.request.request().method != "HEAD"
            && head.status != StatusCode::NOT_MODIFIED
            && head.status != StatusCode::NO_CONTENT;
        fields.remove(CONTENT_LENGTH);
        let response = Response::new(head.status).with_field_map(fields);
        let idle = self.forwarder.upstream.plan.options.timeouts.idle;
        let mut download = Download::new(exchange, server, idle);
        let body = match download.take_ready().await {
            // The whole content is here: it leaves with the head in one write.
            Ok(Some(content)) if has_content && !content.is_empty() => ResponseBody::Bytes(content),
            Ok(Some(_)) => announced.map_or(ResponseBody::Empty, ResponseBody::Announced),
            Ok(None) => ResponseBody::Stream(Box::pin(download)),
            Err(failure) => return respond(failure::response(&failure)),
        };
        respond(response.with_body(body))
    }

    /// Gives a client that is new the cookie that leads it to the same server again.
    fn keep_at_server(&self, server: &ServerUse, fields: &mut HeaderMap) {
        let Some(name) = &self.forwarder.upstream.plan.options.sticky else {
            return;
        };
        let cookie = server.server().cookie();
        if self.sticky.as_deref() == Some(cookie) {
            return;
        }
        let text = format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Lax");
        if let Ok(value) = HeaderValue::from_str(&text) {
            fields.append(SET_COOKIE, value);
        }
    }
}

fn respond(response: Response) -> Outcome {
    Outcome::Respond(response)
}

fn length(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// RFC 9110, section 9.2.2.
fn is_idempotent(method: &str) -> bool {
    ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(&method)
}

fn late(limit: std::time::Duration) -> Failure {
    Failure::new(Phase::Wait, FailureKind::Timeout)
        .on(Side::Theirs)
        .because(format!("no response within {limit:?}"))
}

/// A future that stays on its worker, for modules of this folder.
type Local<T> = LocalFuture<T>;
