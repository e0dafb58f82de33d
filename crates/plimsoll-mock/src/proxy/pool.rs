//! Connections of one worker to one server.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_client::{ConnectFailure, Connector, Stream};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::{Limits, ResponseDecoder};
use tokio::io::{AsyncRead, ReadBuf};

use super::Upstream;

/// Connections that are kept for later.
const MOST_IDLE: usize = 32;

/// Longer than so a connection is not kept: servers close theirs after some time, at the same moment at worst.
const LONGEST_IDLE: Duration = Duration::from_secs(15);

/// Those that are open and not in use.
pub(crate) struct Pool {
    pub(super) upstream: Arc<Upstream>,
    connector: Connector,
    idle: RefCell<Vec<(Instant, Line)>>,
}

/// One connection, and the decoder of what comes on it.
pub(super) struct Line {
    pub(super) stream: Stream,
    pub(super) decoder: ResponseDecoder,
    /// Whether it was used before.
    pub(super) is_used: bool,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pool").field(&self.upstream).finish()
    }
}

impl Pool {
    pub(super) fn new(upstream: Arc<Upstream>) -> Self {
        Self {
            connector: Connector::new(Arc::clone(&upstream.plan)),
            upstream,
            idle: RefCell::default(),
        }
    }

    /// A connection, the one that was used last if there is one.
    ///
    /// - `fresh`: whether only a new one will do.
    pub(super) async fn line(&self, fresh: bool) -> Result<Line, ConnectFailure> {
        if !fresh && let Some(line) = self.kept() {
            return Ok(line);
        }
        let endpoint = &self.upstream.endpoint;
        let connection = self.connector.connect(endpoint, &SystemClock).await?;
        Ok(Line {
            stream: connection.stream,
            decoder: ResponseDecoder::new(Limits::default()),
            is_used: false,
        })
    }

    fn kept(&self) -> Option<Line> {
        let now = SystemClock.now();
        loop {
            let (since, mut line) = self.idle.borrow_mut().pop()?;
            if now.saturating_duration_since(since) < LONGEST_IDLE && line.is_quiet() {
                return Some(line);
            }
        }
    }

    /// Keeps a connection whose response is over.
    pub(super) fn keep(&self, mut line: Line) {
        let mut idle = self.idle.borrow_mut();
        if line.decoder.is_persistent() && idle.len() < MOST_IDLE {
            line.is_used = true;
            idle.push((SystemClock.now(), line));
        }
    }
}

impl Line {
    /// Whether the server has sent nothing, not even the end.
    fn is_quiet(&mut self) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        std::pin::Pin::new(&mut self.stream)
            .poll_read(&mut context, &mut buffer)
            .is_pending()
    }
}
