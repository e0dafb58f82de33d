//! Facts about the server that the parts of an HTTP/3 connection share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use plimsoll_wire::h3::PeerSettings;
use tokio::sync::Notify;

/// The server of a connection. The task that reads its SETTINGS is not the one that waits for them.
#[derive(Debug, Default)]
pub(super) struct Peer {
    settings: OnceLock<PeerSettings>,
    settled: Notify,
    /// Requests for WebSockets that are being sent.
    opening: AtomicUsize,
    /// Its limit on streams made a request wait.
    is_limiting: AtomicBool,
}

impl Peer {
    /// Its SETTINGS came.
    pub(super) fn announced(&self, settings: PeerSettings) {
        if self.settings.set(settings).is_ok() {
            self.settled.notify_waiters();
        }
    }

    /// Waits for its SETTINGS.
    pub(super) async fn settled(&self) {
        // Before the look, so that a notice in between is not missed.
        let notified = self.settled.notified();
        if self.settings.get().is_none() {
            notified.await;
        }
    }

    /// A stream could not be opened at once, which its limit on streams alone prevents.
    pub(super) fn limits_streams(&self) {
        self.is_limiting.store(true, Ordering::Relaxed);
    }

    /// Whether its limit on streams made a request wait.
    pub(super) fn has_limited_streams(&self) -> bool {
        self.is_limiting.load(Ordering::Relaxed)
    }

    /// Whether it has announced that it understands extended CONNECT (RFC 9220).
    pub(super) fn allows_extended_connect(&self) -> bool {
        self.settings.get().is_some_and(|it| it.extended_connect)
    }

    /// Whether heads that are sent now may be those of requests for WebSockets, which saves a look at all others.
    pub(super) fn is_opening_websocket(&self) -> bool {
        self.opening.load(Ordering::Relaxed) > 0
    }
}

/// A request for a WebSocket that is being sent.
#[derive(Debug)]
pub(crate) struct OpeningWebSocket(Arc<Peer>);

impl OpeningWebSocket {
    pub(super) fn new(peer: &Arc<Peer>) -> Self {
        peer.opening.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(peer))
    }
}

impl Drop for OpeningWebSocket {
    fn drop(&mut self) {
        self.0.opening.fetch_sub(1, Ordering::Relaxed);
    }
}
