//! One attempt to have a server respond, and a second one beside it.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::StatusCode;
use plimsoll_client::forward::{
    Destination, Exchange, FieldSource, Head, Lease, ReceivedFields, ResponseHead,
};
use plimsoll_model::{Clock as _, Failure, FailureKind, Phase, Phases, Protocol, Side};
use plimsoll_wire::SystemClock;

use super::application::ApplicationPlan;
use super::body::{Upload, UploadProgress};
use super::fields::{AddedFields, ClientFields};
use super::tunnel::Handshake;
use super::{Forwarding, failure};
use crate::deadline::{Deadline, Deadlines};
use crate::upstream::{Server, ServerUse, Upstream};

/// A response whose head is there.
pub(super) struct Responding {
    pub(super) server: ServerUse,
    pub(super) exchange: Exchange<Upload>,
    pub(super) head: ResponseHead,
    pub(super) protocol: Protocol,
    /// When it came.
    pub(super) at: Instant,
    /// How long it took to open the connection, if one was opened for it.
    pub(super) connect: Option<Duration>,
}

/// A response, or the failure of a server.
pub(super) type Attempted = Result<Responding, (ServerUse, Failure)>;

/// An attempt, and a second one at another server if the response is not there in time: the first response counts.
///
/// Only for requests that may be processed twice and have no content. What becomes of the other attempt is observed all
/// the same: a server that never responds would look healthy if it never had to.
pub(super) async fn hedged<'a>(
    hedge: &Rc<Deadlines>,
    attempt: impl Fn() -> Attempt<'a>,
    server: Rc<Server>,
    now: Instant,
) -> Attempted {
    let id = server.id();
    let deadline = hedge.begin(now);
    let is_decided = Rc::<Cell<bool>>::default();
    let hedging = || Attempt {
        is_decided: Some(Rc::clone(&is_decided)),
        ..attempt()
    };
    let mut first = Box::pin(hedging().run(server, Upload::Empty, false, now));
    let in_time = poll_fn(|context| match first.as_mut().poll(context) {
        Poll::Ready(attempted) => Poll::Ready(Some(attempted)),
        Poll::Pending => deadline.poll_over(context).map(|()| None),
    });
    if let Some(attempted) = in_time.await {
        return attempted;
    }
    let now = SystemClock.now();
    let second = hedging();
    let forwarding = second.forwarding;
    let upstream = &forwarding.upstream;
    let chosen = upstream.choose(forwarding.key, None, &[id], now);
    let Some(other) = chosen.filter(|it| it.id() != id && upstream.take_hedge(now)) else {
        return first.await;
    };
    let mut second = Box::pin(second.run(other, Upload::Empty, false, now));
    let (mut first_ended, mut second_ended) = (None, None);
    let attempted = poll_fn(|context| {
        let running = [
            (&mut first, &mut first_ended),
            (&mut second, &mut second_ended),
        ];
        for (running, ended) in running {
            if ended.is_none()
                && let Poll::Ready(attempted) = running.as_mut().poll(context)
            {
                if attempted.is_ok() {
                    is_decided.set(true);
                    return Poll::Ready(attempted);
                }
                *ended = Some(attempted);
            }
        }
        // Both have failed: the first one says why.
        if second_ended.is_some()
            && let Some(attempted) = first_ended.take()
        {
            return Poll::Ready(attempted);
        }
        Poll::Pending
    })
    .await;
    for other in [first_ended, second_ended].into_iter().flatten() {
        observe_failed(upstream, other);
    }
    attempted
}

/// Observes an attempt that failed beside another one.
fn observe_failed(upstream: &Upstream, attempted: Attempted) {
    if let Err((server, failure)) = attempted
        && failure.side != Side::Ours
    {
        server.failed();
        upstream.observe(server.server(), true, SystemClock.now());
    }
}

/// One exchange, up to the head of the final response.
pub(super) struct Attempt<'a> {
    pub(super) forwarding: &'a Forwarding,
    pub(super) target: &'a str,
    pub(super) handshake: Option<&'a Handshake>,
    pub(super) deadline: Deadline,
    /// Of an attempt with another one beside it: whether that one has won.
    pub(super) is_decided: Option<Rc<Cell<bool>>>,
}

/// An attempt that is under way. Dropped because another one has won, it goes on until it is known how it ends.
struct Pending {
    upstream: Rc<Upstream>,
    server: Rc<Server>,
    /// Waits for a connection.
    is_connecting: bool,
    /// Waits for the head of the response.
    exchange: Option<Exchange<Upload>>,
    limit: Duration,
    is_decided: Option<Rc<Cell<bool>>>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let is_lost = self.is_decided.as_ref().is_some_and(|it| it.get());
        let exchange = self.exchange.take();
        if !is_lost || (exchange.is_none() && !self.is_connecting) {
            return;
        }
        let (upstream, server) = (Rc::clone(&self.upstream), Rc::clone(&self.server));
        let limit = self.limit;
        tokio::task::spawn_local(async move {
            let ended = tokio::time::timeout(limit, status_of(&server, exchange)).await;
            let is_failure = match ended {
                // A connection alone says nothing about responses.
                Ok(Ok(None)) => return,
                Ok(Ok(Some(status))) => failure::is_failing(status),
                Ok(Err(failure)) if failure.side == Side::Ours => return,
                Ok(Err(_)) | Err(_) => true,
            };
            upstream.observe(&server, is_failure, SystemClock.now());
        });
    }
}

/// The status of the response that is waited for; without an exchange, whether there is a connection.
async fn status_of(
    server: &Server,
    exchange: Option<Exchange<Upload>>,
) -> Result<Option<StatusCode>, Failure> {
    let Some(mut exchange) = exchange else {
        let lease = server.destination().acquire().await;
        return lease.map(|_| None).map_err(|it| it.failure);
    };
    let head = exchange.final_head().await.map_err(|it| it.failure)?;
    Ok(Some(head.status))
}

impl Attempt<'_> {
    /// - `is_retry`: it goes by a connection that the server cannot be closing.
    pub(super) async fn run(
        mut self,
        server: Rc<Server>,
        upload: Upload,
        is_retry: bool,
        now: Instant,
    ) -> Attempted {
        let destination = Rc::clone(server.destination());
        let mut pending = Pending {
            upstream: Rc::clone(&self.forwarding.upstream),
            server: Rc::clone(&server),
            is_connecting: true,
            exchange: None,
            limit: self.deadline.limit(),
            is_decided: self.is_decided.take(),
        };
        let server = server.begin(now);
        let is_plain = !is_retry && self.handshake.is_none();
        let ready = is_plain.then(|| destination.acquire_now(now)).flatten();
        let lease = match ready {
            Some(lease) => lease,
            None => match self.acquire(&destination, is_retry).await {
                Ok(lease) => lease,
                Err(failure) => {
                    pending.is_connecting = false;
                    return Err((server, failure));
                }
            },
        };
        let protocol = lease.protocol();
        let connect = opening(lease.phases());
        let progress = upload.progress();
        pending.is_connecting = false;
        let exchange = match self.begin(lease, upload) {
            Ok(exchange) => pending.exchange.insert(exchange),
            Err(failure) => return Err((server, failure)),
        };
        let headed = self.final_head(exchange, progress).await;
        let exchange = pending.exchange.take();
        let exchange = exchange.expect("only the end of this attempt takes it");
        match headed {
            Ok(head) => {
                let at = exchange
                    .first_byte_at()
                    .unwrap_or_else(|| SystemClock.now());
                server.responded(head.status.as_u16(), at);
                Ok(Responding {
                    server,
                    exchange,
                    head,
                    protocol,
                    at,
                    connect,
                })
            }
            Err(failure) => Err((server, failure)),
        }
    }

    /// Waits for a connection on which the request can be sent.
    async fn acquire(
        &self,
        destination: &Rc<Destination>,
        is_retry: bool,
    ) -> Result<Lease, Failure> {
        let acquiring = Box::pin(async {
            let lease = if is_retry {
                destination.acquire_unused().await
            } else {
                destination.acquire().await
            };
            let lease = lease.map_err(|error| error.failure)?;
            if self.handshake.is_some() {
                lease.settled().await;
            }
            Ok(lease)
        });
        self.within(Phase::Blocked, acquiring).await
    }

    /// `future`, or the failure that it took too long.
    async fn within<T>(
        &self,
        phase: Phase,
        mut future: impl Future<Output = Result<T, Failure>> + Unpin,
    ) -> Result<T, Failure> {
        poll_fn(|context| {
            if let Poll::Ready(done) = Pin::new(&mut future).poll(context) {
                return Poll::Ready(done);
            }
            let over = self.deadline.poll_over(context);
            over.map(|()| Err(late(phase, self.deadline.limit())))
        })
        .await
    }

    /// Writes the head.
    fn begin(&self, lease: Lease, upload: Upload) -> Result<Exchange<Upload>, Failure> {
        let protocol = lease.protocol();
        let forwarder = &self.forwarding.forwarder;
        let plan = &forwarder.plan;
        let request = self.forwarding.request.request();
        let mut text = forwarder.text.borrow_mut();
        let method = self
            .handshake
            .map_or(request.method, |it| it.method(request.method, protocol));
        let client = ClientFields::new(plan, &request, self.handshake);
        let received = ReceivedFields::new(&client);
        let added = AddedFields::new(
            plan,
            &self.forwarding.identity,
            &request,
            (self.handshake, protocol),
            &mut text,
        );
        let application = plan.application.as_ref();
        let parameters =
            application.map(|it| it.parameters(&request, self.target, plan.strip.as_deref()));
        let head = Head {
            parameters: parameters.as_ref().map(|it| it as &dyn FieldSource),
            modifiers: application.map_or([0, 0], ApplicationPlan::modifiers),
            authority: plan.host.authority(&request),
            upgrade: self.handshake.and_then(|it| it.protocol(protocol)),
            // The client gets its 100 once the server wants the content, unless that has been read already.
            expects_continue: plan.request_buffer.is_none()
                && request
                    .header("expect")
                    .is_some_and(|it| it.eq_ignore_ascii_case(b"100-continue")),
            ..Head::forwarded(method, self.target, &received, &added)
        };
        lease.begin(&head, upload)
    }

    /// Gives the server its whole time again.
    fn restart(&mut self) {
        let deadlines = self.forwarding.response_deadlines();
        self.deadline = deadlines.begin(SystemClock.now());
    }

    /// The final head; interim responses before it are sent to the client.
    ///
    /// The time for it begins anew with every piece of content that the server takes, and stands still while the client
    /// has to send more: a slow upload is not the server's fault, and the engine has its own limits for it.
    async fn final_head(
        &mut self,
        exchange: &mut Exchange<Upload>,
        mut progress: Option<UploadProgress>,
    ) -> Result<ResponseHead, Failure> {
        poll_fn(|context| {
            loop {
                let Poll::Ready(polled) = exchange.poll_head(context) else {
                    if progress.as_mut().is_some_and(UploadProgress::has_moved) {
                        self.restart();
                    }
                    if self.deadline.poll_over(context).is_pending() {
                        return Poll::Pending;
                    }
                    if progress.as_ref().is_some_and(UploadProgress::awaits_client) {
                        self.restart();
                        continue;
                    }
                    return Poll::Ready(Err(late(Phase::Wait, self.deadline.limit())));
                };
                let head = polled.map_err(|incomplete| incomplete.failure)?;
                if !head.is_interim() {
                    return Poll::Ready(Ok(head));
                }
                // The engine itself sends 100 once content is wanted. What a slow client does not take is left out:
                // interim responses are hints.
                if head.status != StatusCode::CONTINUE {
                    let fields = head.fields.into_forwarded().into_map();
                    let interims = self.forwarding.request.request().interims();
                    interims.send(head.status, fields).ok();
                }
            }
        })
        .await
    }
}

/// The time of name lookup, connection and handshake together.
fn opening(phases: &Phases) -> Option<Duration> {
    let phases = [Phase::Dns, Phase::Connect, Phase::Tls].map(|phase| phases.get(phase));
    phases
        .into_iter()
        .flatten()
        .reduce(|sum, phase| sum + phase)
}

pub(super) fn late(phase: Phase, limit: Duration) -> Failure {
    Failure::new(phase, FailureKind::Timeout)
        .on(Side::Theirs)
        .because(format!("no response within {limit:?}"))
}
