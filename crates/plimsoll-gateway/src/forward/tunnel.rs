//! WebSockets: the handshake between versions of HTTP, and the bytes after it.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use plimsoll_client::forward::{ResponseHead, Upgraded};
use plimsoll_model::Protocol;
use plimsoll_server::{Request, TakeOver, Version};
use plimsoll_wire::ws::Key;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Local;
use super::body::InFlight;

/// How long neither side may send anything. An hour, as haproxy's documentation suggests for tunnels.
const IDLE: Duration = Duration::from_hours(1);

/// The opening of a WebSocket (RFC 6455, section 4; over HTTP/2 RFC 8441).
#[derive(Debug)]
pub(super) struct Handshake {
    key: String,
    is_http1: bool,
}

impl Handshake {
    /// That of a request; nothing if it asks for no WebSocket. Other protocols are not upgraded to: of `h2c` the gateway
    /// would not see the requests.
    pub(super) fn of(request: &Request<'_>) -> Option<Self> {
        let upgrade = request.upgrade?;
        if !upgrade.eq_ignore_ascii_case(b"websocket") {
            return None;
        }
        let is_http1 = matches!(request.version, Version::Http10 | Version::Http11);
        let key = if is_http1 {
            let key = request.header("sec-websocket-key")?;
            String::from_utf8(key.to_vec()).ok()?
        } else {
            let nonce: [u8; 16] = std::array::from_fn(|_| fastrand::u8(..));
            Key::new(nonce).text().to_owned()
        };
        Some(Self { key, is_http1 })
    }

    /// The value of `Sec-WebSocket-Key` for a server that speaks HTTP/1.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Whether the server agreed, as the version of HTTP that it speaks has it.
    pub(super) fn is_agreed(&self, head: &ResponseHead, protocol: Protocol) -> bool {
        if protocol != Protocol::Http1 {
            return head.status.is_success();
        }
        let accept = Key::given(&self.key).accept();
        head.status == StatusCode::SWITCHING_PROTOCOLS
            && head
                .fields
                .field("upgrade")
                .is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"))
            && head.fields.field("sec-websocket-accept") == Some(accept.as_bytes())
    }

    /// Makes the fields those of the version that the client speaks.
    pub(super) fn complete(&self, fields: &mut HeaderMap) {
        fields.remove(SEC_WEBSOCKET_ACCEPT);
        if self.is_http1 {
            fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
            let accept = Key::given(&self.key).accept();
            if let Ok(accept) = HeaderValue::from_str(&accept) {
                fields.insert(SEC_WEBSOCKET_ACCEPT, accept);
            }
        }
    }
}

/// Copies bytes both ways until both sides have ended, or one fails, or both are silent for too long.
pub(super) fn tunnel(upgraded: Upgraded, in_flight: InFlight) -> TakeOver {
    Box::new(move |client, _drain| {
        let copied: Local<()> = Box::pin(async move {
            let _in_flight = in_flight;
            let activity = Rc::new(Cell::new(false));
            let mut client = Watched::new(client, &activity);
            let mut upstream = Watched::new(upgraded, &activity);
            let copying = tokio::io::copy_bidirectional(&mut client, &mut upstream);
            tokio::select! {
                // Either end may break off; there is no place left to report it.
                _ = copying => {}
                () = silence(&activity) => {}
            }
        });
        copied
    })
}

/// Ends once there was no activity for a whole period.
async fn silence(activity: &Cell<bool>) {
    loop {
        activity.set(false);
        tokio::time::sleep(IDLE).await;
        if !activity.get() {
            return;
        }
    }
}

/// A stream that notes whether bytes pass.
struct Watched<S> {
    stream: S,
    activity: Rc<Cell<bool>>,
}

impl<S> Watched<S> {
    fn new(stream: S, activity: &Rc<Cell<bool>>) -> Self {
        Self {
            stream,
            activity: Rc::clone(activity),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let watched = self.get_mut();
        let polled = Pin::new(&mut watched.stream).poll_read(context, buffer);
        if polled.is_ready() {
            watched.activity.set(true);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
