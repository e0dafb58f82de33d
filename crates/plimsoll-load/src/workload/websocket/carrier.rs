//! Opens WebSockets: on connections of their own over HTTP/1.1, as streams of shared ones over HTTP/2 and HTTP/3.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Empty;
use plimsoll_client::forward::{Destination, Pool, PoolOptions, Speaks, Upgraded};
use plimsoll_client::{Connector, Stream, StreamUpgrade, Upgrade, WebSocket};
use plimsoll_model::{Clock as _, Exchange, Failure, FailureKind, Phase, Side};
use plimsoll_wire::{SystemClock, ws};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::no_upgrade;
use crate::driver::WorkerState;
use crate::plan::{HttpPlan, RunPlan};
use crate::worker::user::Recorder;

/// A connection of a run is not replaced while it works.
const WHOLE_RUN: Duration = Duration::from_hours(24 * 365);

/// Opens the WebSockets of one slot.
#[derive(Debug)]
pub(super) enum Opener {
    /// By planned request.
    Connections(Vec<Option<Upgrade>>),
    /// By planned request, and by endpoint.
    Streams(Vec<Option<StreamUpgrade>>, Vec<Rc<Destination>>),
}

/// The parameters of one WebSocket.
pub(super) struct Opening {
    /// The planned request.
    pub(super) position: usize,
    /// Unpredictable.
    pub(super) nonce: [u8; 16],
    /// On messages.
    pub(super) limits: ws::Limits,
    /// When to give up.
    pub(super) deadline: Instant,
}

impl Opener {
    /// No connection is opened yet.
    pub(super) fn new(plan: &RunPlan, http: HttpPlan) -> Self {
        let requests = plan.requests.iter().map(|planned| &planned.request);
        let (speaks, stream_window) = match http {
            HttpPlan::Http1 => return Self::Connections(requests.map(Upgrade::new).collect()),
            HttpPlan::Http2(http2) => (Speaks::Http2, http2.stream_window),
            HttpPlan::Http3(_) => (Speaks::Http3, PoolOptions::default().stream_window),
        };
        let streams = http.streams();
        let options = PoolOptions {
            speaks,
            connections: 1,
            streams: u32::try_from(streams).unwrap_or(u32::MAX),
            waiting: streams,
            idle: 1,
            idle_timeout: WHOLE_RUN,
            lifetime: WHOLE_RUN,
            follows_ttl: false,
            stream_window,
            limits: plan.limits,
            ..PoolOptions::default()
        };
        let pool = Pool::new(Connector::new(Arc::clone(&plan.connect)), options);
        let endpoints = plan.endpoints.iter();
        Self::Streams(
            requests.map(StreamUpgrade::new).collect(),
            endpoints
                .map(|endpoint| pool.destination(endpoint))
                .collect(),
        )
    }

    /// The status of a handshake that is agreed, which round trips are counted under.
    pub(super) fn agreed(&self) -> u16 {
        match self {
            Self::Connections(_) => 101,
            Self::Streams(..) => 200,
        }
    }

    /// Opens a WebSocket, and adds its phases and its peer to `exchange`. The handshake counts as part of `connect`.
    pub(super) async fn open(
        &self,
        shared: &WorkerState,
        opening: Opening,
        recorder: &Recorder,
        exchange: &mut Exchange,
    ) -> Result<WebSocket<Carrier>, Failure> {
        let endpoint = shared.plan.requests[opening.position].endpoint;
        match self {
            Self::Connections(upgrades) => {
                let upgrade = upgrades[opening.position].as_ref().ok_or_else(no_upgrade)?;
                connection(shared, endpoint, upgrade, opening, recorder, exchange).await
            }
            Self::Streams(upgrades, destinations) => {
                let upgrade = upgrades[opening.position].as_ref().ok_or_else(no_upgrade)?;
                let deadline = tokio::time::Instant::from_std(opening.deadline);
                let limits = opening.limits;
                let stream = stream(&destinations[endpoint], upgrade, recorder, exchange);
                match tokio::time::timeout_at(deadline, stream).await {
                    Ok(stream) => Ok(WebSocket::over(stream?, limits, &SystemClock)),
                    Err(_) => Err(Failure::new(Phase::Connect, FailureKind::Timeout)
                        .because("the handshake of WebSocket took too long")),
                }
            }
        }
    }
}

/// A WebSocket on a connection of its own.
async fn connection(
    shared: &WorkerState,
    endpoint: usize,
    upgrade: &Upgrade,
    opening: Opening,
    recorder: &Recorder,
    exchange: &mut Exchange,
) -> Result<WebSocket<Carrier>, Failure> {
    let endpoint = &shared.plan.endpoints[endpoint];
    let connecting = shared.connector.connect(endpoint, &SystemClock);
    let connection = match Box::pin(connecting).await {
        Ok(connection) => connection,
        Err(error) => {
            exchange.phases.add(&error.phases);
            return Err(error.failure);
        }
    };
    recorder.connection_opened();
    exchange.phases.add(&connection.phases);
    exchange.peer = connection.peer;
    let connected = SystemClock.now();
    let handshake = WebSocket::open(
        Carrier::Connection(Box::new(connection.stream)),
        upgrade,
        opening.nonce,
        (shared.plan.limits, opening.limits),
        opening.deadline,
        &shared.buffer,
        &SystemClock,
    );
    let socket = Box::pin(handshake).await?;
    add_handshake(exchange, connected);
    Ok(socket)
}

/// A stream that the server agreed to use as a WebSocket.
async fn stream(
    destination: &Rc<Destination>,
    upgrade: &StreamUpgrade,
    recorder: &Recorder,
    exchange: &mut Exchange,
) -> Result<Carrier, Failure> {
    let lease = match Box::pin(destination.acquire()).await {
        Ok(lease) => lease,
        Err(error) => {
            exchange.phases.add(&error.phases);
            return Err(error.failure);
        }
    };
    if lease.phases().get(Phase::Connect).is_some() {
        recorder.connection_opened();
    }
    exchange.phases.add(lease.phases());
    exchange.peer = lease.peer();
    let acquired = SystemClock.now();
    // Whether a server takes extended CONNECT is in its SETTINGS.
    lease.settled().await;
    let mut handshake = lease.begin(&upgrade.head(), Empty::<Bytes>::new())?;
    let head = handshake.final_head().await;
    let head = head.map_err(|incomplete| Failure {
        phase: Phase::Connect,
        ..incomplete.failure
    })?;
    add_handshake(exchange, acquired);
    let stream = head.status.is_success().then(|| handshake.upgrade());
    let stream = stream.flatten().ok_or_else(|| {
        Failure::new(Phase::Connect, FailureKind::UpgradeRefused)
            .because(format!("status {}", head.status.as_u16()))
            .on(Side::Theirs)
    })?;
    Ok(Carrier::Stream(Box::new(stream)))
}

fn add_handshake(exchange: &mut Exchange, begun: Instant) {
    let before = exchange.phases.get(Phase::Connect).unwrap_or_default();
    let handshake = SystemClock.now() - begun;
    exchange.phases.set(Phase::Connect, before + handshake);
}

/// The byte stream of a WebSocket. Boxed: they are of very different sizes.
#[derive(Debug)]
pub(super) enum Carrier {
    Connection(Box<Stream>),
    Stream(Box<Upgraded>),
}

impl AsyncRead for Carrier {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Connection(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Stream(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Carrier {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Connection(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Stream(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Connection(stream) => Pin::new(stream).poll_flush(context),
            Self::Stream(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Connection(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Stream(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
