//! Calls of gRPC whose answers are wanted, one after the other on a connection.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::grpc::{GrpcReply, call, frame};
use plimsoll_client::{
    ConnectPlan, Connection, Connector, Endpoint, Http2, ReadBuffer, Stream, require_http2,
};
use plimsoll_model::{Clock, Failure, Protocol};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h2::Settings;

use super::url;
use crate::flags::{RequestParts, Way};
use crate::problem::Problem;

/// How long one response may take, by default: that of `check` over HTTP.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of one response: gRPC libraries accept 4 MiB unless configured, so 64 MiB are configured cases.
const MOST_OF_ANSWER: usize = 64 << 20;

/// A connection that carries calls whose answers are wanted.
pub(crate) struct Caller<'a> {
    connect: &'a ConnectPlan,
    base: &'a str,
    parts: &'a RequestParts,
    http: Http2<Stream>,
    buffer: ReadBuffer,
}

impl<'a> Caller<'a> {
    /// Connects to a server of gRPC, over HTTP/2.
    ///
    /// - `base`: its URL, behind which methods stand.
    /// - `parts`: what all requests to it carry.
    pub(crate) async fn connect(
        connect: &'a Arc<ConnectPlan>,
        endpoint: &Endpoint,
        base: &'a str,
        parts: &'a RequestParts,
    ) -> Result<Self, String> {
        let failed = |failure: &Failure| Problem::caused_by(failure).message;
        let connector = Connector::new(Arc::clone(connect));
        let connecting = connector.connect(endpoint, &SystemClock);
        let connection: Connection = Box::pin(connecting)
            .await
            .map_err(|error| failed(&error.failure))?;
        require_http2(&connection, endpoint).map_err(|failure| failed(&failure))?;
        let http = Http2::new(connection.stream, Settings::default(), SystemClock.now());
        Ok(Self {
            connect,
            base,
            parts,
            http,
            buffer: ReadBuffer::new(),
        })
    }

    /// The answer to a call with one message.
    pub(crate) async fn call(&mut self, method: &str, message: &[u8]) -> Result<GrpcReply, String> {
        let endpoint =
            Endpoint::parse(&url(self.base, &method)?).map_err(|error| error.to_string())?;
        let mut parts = self.parts.clone();
        parts.set_call(frame(&[message]).map_err(|error| error.to_string())?);
        let way = Way {
            connect: self.connect,
            protocol: Protocol::Http2,
        };
        let request = parts
            .encode(&endpoint, way)
            .map_err(|error| error.to_string())?;
        let request = request
            .http2()
            .ok_or("the request was not encoded for HTTP/2")?;
        let deadline = SystemClock.now() + TIMEOUT;
        let calling = call(
            &mut self.http,
            request,
            MOST_OF_ANSWER,
            deadline,
            &self.buffer,
            &SystemClock,
        );
        let reply = Box::pin(calling).await;
        reply.map_err(|failure| Problem::caused_by(&failure).message)
    }
}
