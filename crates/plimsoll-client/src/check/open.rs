//! The connection that a checker owns.

use std::net::SocketAddr;
use std::time::Instant;

use plimsoll_model::{Clock, Failure, FailureKind, Phase, Phases};
use plimsoll_wire::h1::ResponseSink;
use plimsoll_wire::h2;

use crate::check::CheckPlan;
use crate::{
    Completed, Connection, Http1, Http2, Http3, Http3Parts, Incomplete, ReadBuffer, Request,
    ResponseParts, Stream, require_http2,
};

/// A connection, and who is at its other end.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) http: Http,
    pub(super) peer: Option<SocketAddr>,
}

/// It, by what is spoken on it.
#[derive(Debug)]
pub(super) enum Http {
    One(Http1<Stream>),
    Two(Box<Http2<Stream>>),
    Three(Http3),
}

impl Open {
    pub(super) fn new(
        plan: &CheckPlan,
        connection: Connection,
        now: Instant,
    ) -> Result<Self, Failure> {
        let peer = connection.peer;
        let http = if plan.request.http2().is_some() {
            require_http2(&connection, &plan.endpoint)?;
            let mut settings = h2::Settings {
                streams: 1,
                ..h2::Settings::default()
            };
            settings.limits.body_bytes = plan.limits.body_bytes;
            Http::Two(Box::new(Http2::new(connection.stream, settings, now)))
        } else {
            Http::One(Http1::new(connection.stream, plan.limits, now))
        };
        Ok(Self { http, peer })
    }

    /// Whether the peer has left it open while it was idle.
    pub(super) fn is_fresh(&mut self, buffer: &ReadBuffer, clock: &impl Clock) -> bool {
        match &mut self.http {
            Http::One(http) => http.is_fresh(),
            Http::Two(http) => http.is_fresh(buffer, clock),
            Http::Three(http) => !http.is_retired(),
        }
    }

    /// Ends the connection; QUIC does so by a packet, where the others leave it to the kernel.
    pub(super) async fn close(self: Box<Self>) {
        if let Http::Three(http) = self.http {
            http.close();
            tokio::task::yield_now().await;
        }
    }
}

impl Http {
    /// Sends `request` and reads its response to the end.
    pub(super) async fn exchange<K: ResponseSink + ResponseParts + Http3Parts>(
        &mut self,
        request: &Request,
        begun: Instant,
        deadline: Instant,
        buffer: &ReadBuffer,
        sink: &mut K,
        clock: &impl Clock,
    ) -> Result<Completed, Incomplete> {
        match (self, request.http2(), request.http3()) {
            (Self::Three(http), _, Some(request)) => {
                // Far larger than the others, and QUIC allocates for each exchange anyway.
                Box::pin(http.exchange(&request, begun, deadline, sink, clock)).await
            }
            (Self::Two(http), Some(request), _) => {
                http.exchange(request, begun, deadline, buffer, sink, clock)
                    .await
            }
            (Self::One(http), ..) => {
                http.exchange(request, begun, deadline, buffer, sink, clock)
                    .await
            }
            (Self::Two(_) | Self::Three(_), ..) => Err(Incomplete {
                failure: not_encoded(),
                phases: Phases::default(),
                bytes_sent: 0,
                bytes_received: 0,
                done: begun,
            }),
        }
    }
}

/// That of a request of another protocol than its connection's.
pub(super) fn not_encoded() -> Failure {
    Failure::new(Phase::Send, FailureKind::Protocol)
        .because("the request was not encoded for the protocol of its connection")
}
