//! The right to make one exchange on a connection.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::Body;
use plimsoll_model::{Failure, Phase, Phases, Protocol, TlsSession};

use super::exchange::Exchange;
use super::head::Head;
use super::http1::{FastCgiExchange, Http1Exchange};
use super::http2::{Http2Connection, Http2Exchange, Reservation};
use super::http3::{Http3Exchange, QuicPlace};
use super::pool::{ConnectionGuard, Destination, Speaks};
use crate::Stream;

/// A connection, or a place on one, for one exchange. Goes back to the pool when it is dropped.
pub struct Lease {
    kind: Kind,
    phases: Phases,
    /// When it was granted.
    at: Instant,
}

enum Kind {
    Http1(ConnectionGuard),
    Http2(Reservation),
    Http3(QuicPlace),
}

impl Lease {
    pub(super) fn http1(place: ConnectionGuard, at: Instant) -> Self {
        Self {
            kind: Kind::Http1(place),
            phases: Phases::default(),
            at,
        }
    }

    pub(super) fn http2(
        connection: Rc<Http2Connection>,
        destination: Rc<Destination>,
        at: Instant,
    ) -> Self {
        Self {
            kind: Kind::Http2(Reservation::new(connection, destination)),
            phases: Phases::default(),
            at,
        }
    }

    pub(super) fn http3(place: QuicPlace, at: Instant) -> Self {
        Self {
            kind: Kind::Http3(place),
            phases: Phases::default(),
            at,
        }
    }

    /// The same on a connection that was opened for it.
    pub(super) fn connected(self, phases: Phases) -> Self {
        Self { phases, ..self }
    }

    /// The caller waited so long.
    pub(super) fn blocked(&mut self, waited: Option<Duration>) {
        if let Some(waited) = waited {
            self.phases.set(Phase::Blocked, waited);
        }
    }

    /// The phases before the exchange: blocked if the caller had to wait; dns, connect and tls if a connection was
    /// opened.
    pub fn phases(&self) -> &Phases {
        &self.phases
    }

    /// Whether the connection carried an exchange before.
    pub fn is_reused(&self) -> bool {
        match &self.kind {
            Kind::Http1(place) => place.connection().is_some_and(|it| it.is_used),
            Kind::Http2(reservation) => reservation.connection().is_used(),
            Kind::Http3(place) => place.connection.http.has_carried(),
        }
    }

    /// The version of HTTP.
    pub fn protocol(&self) -> Protocol {
        match &self.kind {
            Kind::Http1(_) => Protocol::Http1,
            Kind::Http2(_) => Protocol::Http2,
            Kind::Http3(_) => Protocol::Http3,
        }
    }

    /// The address of the server or the proxy; a unix socket has none.
    pub fn peer(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Http1(place) => place.connection()?.peer,
            Kind::Http2(reservation) => reservation.connection().peer(),
            Kind::Http3(place) => Some(place.connection.http.peer()),
        }
    }

    /// The TLS session. Reads the certificate, so it is not for every exchange.
    pub fn tls_session(&self) -> Option<TlsSession> {
        match &self.kind {
            Kind::Http3(place) => Some(place.connection.http.tls_session()),
            _ => self.with_stream(Stream::tls_session),
        }
    }

    fn with_stream<T>(&self, read: impl FnOnce(&Stream) -> Option<T>) -> Option<T> {
        match &self.kind {
            Kind::Http1(place) => read(&place.connection()?.stream),
            Kind::Http2(reservation) => reservation.connection().with_stream(read),
            Kind::Http3(_) => None,
        }
    }

    /// Waits until it is known which upgrades the connection allows: over HTTP/2 and HTTP/3, for the server's SETTINGS.
    pub async fn settled(&self) {
        match &self.kind {
            Kind::Http1(_) => {}
            Kind::Http2(reservation) => {
                let connection = reservation.connection();
                poll_fn(|context| connection.poll_established(context)).await;
            }
            Kind::Http3(place) => place.connection.http.settled().await,
        }
    }

    /// Begins an exchange. The request is sent as the exchange is polled.
    ///
    /// - `body`: read when the connection takes more. Its exact size, if it has one, is announced. With CONNECT and
    ///   with an upgrade over HTTP/2 or HTTP/3 it is not read.
    ///
    /// FastCGI and uwsgi need a body of known size. Fails in the phase send: if the head cannot be written, if the connection does not allow the upgrade
    /// (`upgrade-refused`; see [`settled`](Self::settled)), if the parameters are too long for uwsgi (`too-large`), or, with a retry that is safe, if the server is closing the connection.
    pub fn begin<B>(self, head: &Head<'_>, body: B) -> Result<Exchange<B>, Failure>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
    {
        match self.kind {
            Kind::Http1(place) if place.destination().options().speaks == Speaks::FastCgi => {
                FastCgiExchange::begin(place, head, body, self.at).map(Exchange::fastcgi)
            }
            Kind::Http1(place) => {
                Http1Exchange::begin(place, head, body, self.at).map(Exchange::http1)
            }
            Kind::Http2(reservation) => {
                Http2Exchange::begin(reservation, head, body, self.at).map(Exchange::http2)
            }
            Kind::Http3(place) => {
                Http3Exchange::begin(place, head, body, self.at).map(Exchange::http3)
            }
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("protocol", &self.protocol())
            .field("is_reused", &self.is_reused())
            .finish_non_exhaustive()
    }
}
