//! Forwarding: a request goes to a server of an upstream, and its response comes back as it arrives.
//!
//! The way of a request:
//!
//! 1. [`Forward::handle`] keeps the head, and [`body::Upload`] the content that is still on the connection.
//! 2. [`Upstream::choose`] asks the balancer for a server; the pool of that server gives a connection.
//! 3. The head leaves with the fields of [`fields::ClientFields`] and [`fields::AddedFields`]; content is sent as it comes from the client.
//! 4. An attempt that fails before a response is made again at another server, if the policy and the budget permit it and
//!    nothing of the content was read.
//! 5. Interim responses are sent on. [`body::Download`] streams the content of the final one: what the client does not take
//!    is not read from the server. An agreed upgrade becomes a [`tunnel`].
//!
//! A client that leaves drops the future of its request, and with it the exchange.

mod plan;

mod split;

mod attempt;

mod answering;

mod authorize;

mod fault;

mod target;

mod application;

mod fastcgi;

mod uwsgi;

mod fields;

pub(crate) mod frames;

mod body;

mod read_ahead;

mod mirror;

mod failure;

mod grpc;

mod error_pages;

mod accel;

mod tunnel;

mod figures;

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::header::{HeaderName, HeaderValue};
use plimsoll_client::forward::NotForwarded;
use plimsoll_client::is_idempotent;
use plimsoll_model::{Clock as _, Phase, Side};
use plimsoll_server::{
    Action, Answer, DrainSignal, LocalFuture, Outcome, OwnedRequest, Request, Response,
    UpstreamNote,
};
use plimsoll_wire::SystemClock;
use plimsoll_wire::http::FieldList;

pub(crate) use self::application::ApplicationPlan;
pub(crate) use self::authorize::{AuthorizeGuard, AuthorizePlan};
pub(crate) use self::error_pages::{ErrorPage, ErrorPages};
pub(crate) use self::fastcgi::FastCgiPlan;
pub(crate) use self::fault::Fault;
pub(crate) use self::figures::{RouteFigures, RouteStatus};
pub(crate) use self::frames::FrameLimits;
pub(crate) use self::plan::{ForwardPlan, Forwarded, HostPolicy, RouteTimeouts, WebSockets};
pub(crate) use self::split::NamedUpstreams;
pub(crate) use self::target::Rewrite;
pub(crate) use self::tunnel::{Upgrades, WebSocketPlan};
pub(crate) use self::uwsgi::UwsgiPlan;

use self::application::BUFFERED_BYTES;
use self::attempt::{Attempt, hedged, late};
use self::authorize::Authorizer;
use self::body::{Unread, Upload};
use self::grpc::Call;
use self::mirror::{CopiedHead, Mirror};
use self::split::{Choice, Split};
use self::tunnel::Handshake;
use crate::deadline::{Deadline, Deadlines};
use crate::traces::{ActiveSpan, Exporter};
use crate::upstream::{self, Durations, Event, Server, Timeout, Upstream};

/// The action `proxy` of a route on a worker.
pub(crate) struct Forward(Rc<Forwarder>);

struct Forwarder {
    plan: Arc<ForwardPlan>,
    split: Split,
    authorizer: Option<Authorizer>,
    mirror: Option<Mirror>,
    exporter: Option<Rc<Exporter>>,
    drain: DrainSignal,
    durations: Arc<Durations>,
    deadlines: RouteDeadlines,
    /// Memory for the fields that are added to a request while its head is written.
    text: RefCell<String>,
}

/// Deadlines of a route that has other time limits than its upstream.
struct RouteDeadlines {
    response: Option<Rc<Deadlines>>,
    idle: Option<Rc<Deadlines>>,
    total: Option<Rc<Deadlines>>,
}

impl RouteDeadlines {
    fn start(timeouts: RouteTimeouts) -> Self {
        Self {
            response: timeouts.response.map(Deadlines::start),
            idle: timeouts.idle.map(Deadlines::start),
            total: timeouts.total.map(Deadlines::start),
        }
    }
}

/// The upstreams that a route uses, on a worker.
pub(crate) struct Upstreams {
    pub(crate) main: Rc<Upstream>,
    /// By the names that a text with places gives, if the route has one.
    pub(crate) named: Option<NamedUpstreams>,
    /// Percentages of requests that go elsewhere, and where.
    pub(crate) others: Vec<(u32, Rc<Upstream>)>,
    /// The cookie that keeps a client where its first request went.
    pub(crate) split_cookie: Option<String>,
    /// Authorization subrequests, if the plan has any, and the number of the worker.
    pub(crate) authorize: Option<(Rc<Upstream>, usize)>,
    /// Destination of spans.
    pub(crate) exporter: Option<Rc<Exporter>>,
    /// Destination of request copies.
    pub(crate) mirror: Option<(u32, Rc<Upstream>)>,
    /// Ends streams that the gateway itself sends.
    pub(crate) drain: DrainSignal,
    /// How long responses of the route take, on this worker.
    pub(crate) durations: Arc<Durations>,
}

impl Forward {
    pub(crate) fn new(plan: Arc<ForwardPlan>, upstreams: Upstreams) -> Self {
        let authorizer = plan.authorize.clone().zip(upstreams.authorize);
        let mirror = upstreams.mirror;
        Self(Rc::new(Forwarder {
            split: Split::new(
                upstreams.main,
                upstreams.named,
                upstreams.others,
                upstreams.split_cookie,
            ),
            authorizer: authorizer.map(|(plan, (upstream, worker))| Authorizer {
                plan,
                upstream,
                worker,
            }),
            mirror: mirror.map(|(share, upstream)| Mirror::new(upstream, share)),
            exporter: upstreams.exporter,
            drain: upstreams.drain,
            durations: upstreams.durations,
            deadlines: RouteDeadlines::start(plan.timeouts),
            plan,
            text: RefCell::default(),
        }))
    }
}

impl Forward {
    /// Whether responses of servers are sent whatever their status, though another route takes over from this one.
    pub(crate) fn is_relaying(&self) -> bool {
        !self.0.plan.intercepts
    }

    /// The fields of a request as a server would see them, by which its response is stored and found again.
    pub(crate) fn seen_fields(&self, request: &Request<'_>) -> FieldList {
        self.0.seen_fields(request, &[])
    }
}

impl Action for Forward {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let Some(Choice { upstream, cookie }) = self.0.split.choose(request) else {
            return Answer::Now(self.0.failed(failure::no_upstream(), false));
        };
        let call = Call::from_request(request, self.0.plan.grpc_timeout);
        if self.0.plan.grpc_health
            && let Some(call) = &call
            && let Some(response) = grpc::health(request, &upstream, call, &self.0.drain)
        {
            return Answer::now(response);
        }
        let options = &upstream.plan.options;
        let name = options.sticky.as_deref();
        let sticky = name.and_then(|name| request.cookie(name));
        let mut forwarding = Forwarding {
            forwarder: Rc::clone(&self.0),
            key: options.key.key_of(request),
            sticky: sticky.map(str::to_owned),
            split_cookie: cookie,
            upstream,
            identity: Vec::new(),
            span: self.0.exporter.as_ref().and_then(|it| it.begin(request)),
            is_call: call.is_some(),
            call_ends: call.and_then(|call| Some(SystemClock.now() + call.timeout?)),
            total: None,
            request: request.into_owned(),
        };
        let total = self.0.deadlines.total.as_ref();
        let total = total.or(forwarding.upstream.total_deadlines.as_ref());
        forwarding.total = total.map(|total| Rc::new(total.begin(SystemClock.now())));
        if forwarding.total.is_none() && forwarding.call_ends.is_none() {
            // The futures of a request borrow it: it is large, and by value each of them would copy it.
            return Answer::Later(Box::pin(async move { forwarding.run().await }));
        }
        Answer::Later(Box::pin(forwarding.run_within()))
    }
}

/// One request on its way.
struct Forwarding {
    forwarder: Rc<Forwarder>,
    /// The hash of what requests have in common that should reach the same server; 0 without any.
    key: u64,
    /// The value of the cookie that names a server.
    sticky: Option<String>,
    /// Keeps a new client at the upstream that was chosen.
    split_cookie: Option<HeaderValue>,
    upstream: Rc<Upstream>,
    /// Fields that the service which authorized the request has set.
    identity: Vec<(HeaderName, HeaderValue)>,
    /// Ends with the response.
    span: Option<ActiveSpan>,
    /// It is a call of gRPC.
    is_call: bool,
    /// The deadline of the call.
    call_ends: Option<Instant>,
    /// When the whole exchange has to be over.
    total: Option<Rc<Deadline>>,
    request: OwnedRequest,
}

impl Forwarding {
    /// Ends with 504 if the head of the response does not come within the total time, or as a call of gRPC with
    /// `DEADLINE_EXCEEDED` once its own time is over.
    async fn run_within(mut self) -> Outcome {
        let deadline = self.total.clone();
        let upstream = Rc::clone(&self.upstream);
        let mut call_ends = self
            .call_ends
            .map(|end| Box::pin(tokio::time::sleep_until(end.into())));
        let (forwarder, is_call) = (Rc::clone(&self.forwarder), self.is_call);
        let mut running = Box::pin(self.run());
        poll_fn(|context| {
            if let Poll::Ready(outcome) = running.as_mut().poll(context) {
                return Poll::Ready(outcome);
            }
            if let Some(call_ends) = &mut call_ends
                && call_ends.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(respond(grpc::late()));
            }
            let Some(deadline) = &deadline else {
                return Poll::Pending;
            };
            deadline.poll_over(context).map(|()| {
                upstream.count_timeout(Timeout::Total);
                if is_call {
                    return respond(grpc::late());
                }
                let late = late(Phase::Wait, deadline.limit());
                forwarder.failed(failure::response(&late), false)
            })
        })
        .await
    }

    /// For the head of a response.
    fn response_deadlines(&self) -> &Rc<Deadlines> {
        let of_route = self.forwarder.deadlines.response.as_ref();
        of_route.unwrap_or(&self.upstream.response_deadlines)
    }

    /// The response to a request that is not forwarded.
    fn failed(&self, response: Response) -> Outcome {
        if let Some(span) = &self.span {
            span.responded(response.status().as_u16());
        }
        self.forwarder.failed(response, self.is_call)
    }

    async fn run(&mut self) -> Outcome {
        let forwarder = Rc::clone(&self.forwarder);
        let plan = &*forwarder.plan;
        if let Some(reason) = self.not_forwarded() {
            return self.failed(failure::not_forwarded(reason));
        }
        if self.request.method() == "CONNECT" && !self.opens_websocket() {
            // Nobody asked for a tunnel to this server, and a request of that method would mean one to it.
            return self.failed(failure::no_tunnel());
        }
        if let Some(fault) = &plan.fault
            && let Some(response) = Box::pin(fault.inject()).await
        {
            return self.failed(response);
        }
        let length = self.request.content_length();
        let limits = [plan.request_limit, plan.request_buffer];
        if let (Some(limit), Some(length)) = (limits.into_iter().flatten().min(), length)
            && length > limit
        {
            return self.failed(failure::too_large());
        }
        if let Some(authorizer) = &forwarder.authorizer {
            let fields = self.subrequest_fields();
            let authorized = Box::pin(authorizer.authorize(&self.request, fields)).await;
            let mut authorized = match authorized {
                Ok(authorized) => authorized,
                Err(response) if self.is_call => return self.failed(response),
                // What the service says to the client stays whole, without pages in its place.
                Err(response) => {
                    if let Some(span) = &self.span {
                        span.responded(response.status().as_u16());
                    }
                    return respond(response);
                }
            };
            self.identity = std::mem::take(&mut authorized.identity);
            let outcome = self.forward(&forwarder).await;
            return authorized.returned_with(outcome);
        }
        self.forward(&forwarder).await
    }

    /// Why no server gets the request, if none does: neither the service that authorizes it nor that of a copy.
    fn not_forwarded(&self) -> Option<NotForwarded> {
        let request = self.request.request();
        let fields = request.headers();
        let limits = fields.filter(|(name, _)| name.eq_ignore_ascii_case("max-forwards"));
        NotForwarded::check(request.method, limits.map(|(_, value)| value))
    }

    /// Whether the request is for a WebSocket, and the route forwards those.
    fn opens_websocket(&self) -> bool {
        let handshake = Handshake::from_request(&self.request.request(), &self.forwarder.plan);
        matches!(handshake, Some(Handshake::WebSocket { .. }))
    }

    async fn forward(&mut self, forwarder: &Forwarder) -> Outcome {
        let upstream = &self.upstream;
        let policy = &upstream.plan.options.retry;
        let request = self.request.request();
        let handshake = Handshake::from_request(&request, &forwarder.plan);
        let is_idempotent = is_idempotent(request.method) && handshake.is_none();
        let Some(target) = target::target(&forwarder.plan, &self.request) else {
            return self.failed(failure::bad_request());
        };
        let application = forwarder.plan.application.as_ref();
        if application.is_some_and(|it| !it.has_script(&target)) {
            return self.failed(failure::no_script());
        }
        let body = request.take_body();
        let copy = match &forwarder.mirror {
            Some(mirror) if handshake.is_none() && mirror.is_due() => {
                let is_empty = http_body::Body::is_end_stream(&body);
                let length = if is_empty {
                    Some(0)
                } else {
                    request.content_length()
                };
                mirror.send(self.copied_head(&target), length)
            }
            _ => None,
        };
        let upload = Upload::new(body, forwarder.plan.request_limit, copy);
        let is_application = application.is_some();
        let has_unknown_length = || request.content_length().is_none();
        let application = application.filter(|_| has_unknown_length());
        let whole = application.map(|_| forwarder.plan.request_limit.unwrap_or(BUFFERED_BYTES));
        let upload = match forwarder.plan.request_buffer.or(whole) {
            Some(limit) if handshake.is_none() && !upload.is_empty() => {
                match Box::pin(upload.read_whole(limit)).await {
                    // CGI knows no trailers.
                    Ok(upload) if is_application => upload.without_trailers(),
                    Ok(upload) => upload,
                    Err(Unread::TooLong) => return self.failed(failure::too_large()),
                    Err(Unread::Broken) => return self.failed(failure::bad_request()),
                }
            }
            _ => upload,
        };
        let mut now = SystemClock.now();
        let arrived = now;
        if !upstream.permit(now) {
            return self.failed(failure::broken());
        }
        let permit = match &upstream.concurrency {
            None => None,
            Some(concurrency) => match Box::pin(concurrency.acquire(now)).await {
                Ok(permit) => {
                    // The time in the queue is not the server's.
                    now = permit.begun();
                    Some(permit)
                }
                Err(_full) => {
                    upstream.count(Event::Limited);
                    return self.failed(failure::overloaded());
                }
            },
        };
        upstream.count_request(now);
        let is_hedged = is_idempotent && upload.is_empty();
        let mut tried = Vec::new();
        loop {
            let chosen = upstream.choose(self.key, self.sticky.as_deref(), &tried, now);
            let Some(server) = chosen else {
                return self.failed(failure::no_server());
            };
            let may_retry =
                |upload: &Upload| tried.len() < policy.retries as usize && !upload.is_touched();
            let is_retry = !tried.is_empty();
            let begun = now;
            let attempt = || Attempt {
                forwarding: self,
                target: &target,
                handshake: handshake.as_ref(),
                deadline: self.response_deadlines().begin(now),
                is_decided: None,
            };
            let outcome = match &upstream.hedge_deadlines {
                Some(hedge) if is_hedged && !is_retry => {
                    Box::pin(hedged(hedge, attempt, server, now)).await
                }
                _ => attempt().run(server, upload.clone(), is_retry, now).await,
            };
            match outcome {
                Ok(responding) => {
                    now = responding.at;
                    if let Some(permit) = &permit {
                        permit.responded(now);
                    }
                    let status = responding.head.status;
                    let server = responding.server.server();
                    let head = now.saturating_duration_since(begun);
                    self.note(server, tried.len(), responding.connect, Some(head));
                    upstream.observe(server, failure::is_failing(status), now);
                    let applies = policy.applies(upstream::Outcome::Status(status), is_idempotent);
                    if applies && may_retry(&upload) && upstream.take_retry(now) {
                        tried.push(server.id());
                        continue;
                    }
                    let took = now.saturating_duration_since(arrived);
                    forwarder.durations.count(took);
                    let answering = self.answering(forwarder, responding, handshake, permit);
                    let mut answering = match answering {
                        Ok(answering) => answering,
                        Err(outcome) => return outcome,
                    };
                    let ready = answering.download.take_ready().await;
                    return self.answer(answering, ready);
                }
                Err((server, failure)) => {
                    now = SystemClock.now();
                    self.note(server.server(), tried.len(), None, None);
                    if let Some(timeout) = Timeout::from_failure(&failure) {
                        upstream.count_timeout(timeout);
                    }
                    // A client that broke its request off says nothing about the server.
                    if failure.side != Side::Ours {
                        server.failed();
                        upstream.observe(server.server(), true, now);
                        if let Some(permit) = &permit {
                            permit.failed();
                        }
                    }
                    let applies =
                        policy.applies(upstream::Outcome::Failed(&failure), is_idempotent);
                    if applies && may_retry(&upload) && upstream.take_retry(now) {
                        tried.push(server.server().id());
                        continue;
                    }
                    let took = now.saturating_duration_since(arrived);
                    forwarder.durations.count(took);
                    return self.failed(if upload.is_too_long() {
                        failure::too_large()
                    } else {
                        failure::response(&failure)
                    });
                }
            }
        }
    }

    /// Notes for the access log where the request went.
    fn note(
        &self,
        server: &Server,
        retries: usize,
        connect: Option<Duration>,
        head: Option<Duration>,
    ) {
        if let Some(span) = &self.span {
            span.attempt(self.upstream.name(), server.name());
        }
        self.request.forwarded_to(UpstreamNote {
            upstream: Arc::clone(self.upstream.name()),
            server: Arc::clone(server.name()),
            attempts: u32::try_from(retries + 1).unwrap_or(u32::MAX),
            connect,
            head,
        });
    }

    /// The head of a copy, with the fields that a server would see.
    fn copied_head(&self, target: &str) -> CopiedHead {
        let request = self.request.request();
        let plan = &self.forwarder.plan;
        CopiedHead {
            method: request.method.to_owned(),
            target: target.to_owned(),
            authority: plan.host.authority(&request).map(str::to_owned),
            fields: self.forwarder.seen_fields(&request, &self.identity),
        }
    }

    fn subrequest_fields(&self) -> FieldList {
        let seen = self.forwarder.seen_fields(&self.request.request(), &[]);
        authorize::subrequest_fields(&seen, &self.request)
    }
}

impl Forwarder {
    /// The fields of a request as a server would see them over HTTP/1.
    ///
    /// - `identity`: what the service that authorized the request has set.
    fn seen_fields(
        &self,
        request: &Request<'_>,
        identity: &[(HeaderName, HeaderValue)],
    ) -> FieldList {
        fields::seen_fields(&self.plan, request, identity, &mut self.text.borrow_mut())
    }

    /// The response to a request that is not forwarded, or its page.
    ///
    /// - `is_call`: the client speaks gRPC.
    fn failed(&self, response: Response, is_call: bool) -> Outcome {
        respond(if is_call {
            grpc::failed(&response)
        } else {
            self.plan.error_pages.replaced(response)
        })
    }
}

fn respond(response: Response) -> Outcome {
    Outcome::Respond(response)
}

/// A future that stays on its worker, for modules of this folder.
type Local<T> = LocalFuture<T>;
