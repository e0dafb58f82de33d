//! WebSockets: the handshake between versions of HTTP, and the bytes after it.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use plimsoll_client::forward::{ResponseHead, Upgraded};
use plimsoll_model::{Clock as _, Protocol};
use plimsoll_server::{Request, TakeOver, Version};
use plimsoll_wire::SystemClock;
use plimsoll_wire::ws::{Key, encode_close};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use super::Local;
use super::body::InFlight;
use super::frames::{Excess, FrameLimits, FrameMeter};

/// Limits of the WebSockets of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WebSocketPlan {
    /// How long neither side may send anything.
    pub(crate) idle_timeout: Duration,
    pub(crate) limits: FrameLimits,
    /// They are configured, so that it is worth following frames, to close in order.
    pub(crate) is_followed: bool,
}

impl Default for WebSocketPlan {
    /// An hour of silence, as haproxy's documentation suggests for tunnels.
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_hours(1),
            limits: FrameLimits::default(),
            is_followed: false,
        }
    }
}

/// The code of a Close frame to the side that did nothing wrong, and after silence: going away.
const AWAY: u16 = 1001;

/// The opening of a WebSocket (RFC 6455, section 4; over HTTP/2 RFC 8441).
#[derive(Debug)]
pub(super) struct Handshake {
    key: String,
    is_http1: bool,
}

impl Handshake {
    /// That of a request; nothing if it asks for no WebSocket. Other protocols are not upgraded to: of `h2c` the gateway
    /// would not see the requests.
    pub(super) fn from_request(request: &Request<'_>) -> Option<Self> {
        let upgrade = request.upgrade?;
        if !upgrade.eq_ignore_ascii_case(b"websocket") {
            return None;
        }
        let is_http1 = matches!(request.version, Version::Http10 | Version::Http11);
        // The server gets a GET: another method, which routes have chosen by, is no opening.
        if is_http1 && request.method != "GET" {
            return None;
        }
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

/// Copies bytes both ways until both sides have ended, one fails, both are silent for too long, or one goes beyond a limit.
pub(super) fn tunnel(upgraded: Upgraded, in_flight: InFlight, plan: WebSocketPlan) -> TakeOver {
    Box::new(move |client, _drain| {
        let copied: Local<()> = Box::pin(async move {
            let _in_flight = in_flight;
            let activity = Rc::new(Cell::new(false));
            let mut client = Watched::new(client, &activity, &plan);
            let mut upstream = Watched::new(upgraded, &activity, &plan);
            let copying = tokio::io::copy_bidirectional(&mut client, &mut upstream);
            let is_silent = tokio::select! {
                // Either end may break off; there is no place left to report it.
                _ = copying => false,
                () = silence(&activity, plan.idle_timeout) => true,
            };
            // An excess towards one side came from the other.
            let (from_server, from_client) = (client.excess, upstream.excess);
            if is_silent || from_client.is_some() || from_server.is_some() {
                let code = |excess: Option<Excess>| excess.map_or(AWAY, Excess::code);
                client.close(code(from_client), None).await;
                let mask = std::array::from_fn(|_| fastrand::u8(..));
                upstream.close(code(from_server), Some(mask)).await;
            }
        });
        copied
    })
}

/// Ends once there was no activity for a whole period.
async fn silence(activity: &Cell<bool>, period: Duration) {
    loop {
        activity.set(false);
        tokio::time::sleep(period).await;
        if !activity.get() {
            return;
        }
    }
}

/// How long a side may take to accept its Close frame.
const CLOSING: Duration = Duration::from_secs(1);

/// A stream that notes whether bytes pass, and follows the frames that are written to it.
struct Watched<S> {
    stream: S,
    activity: Rc<Cell<bool>>,
    meter: Option<FrameMeter>,
    /// A frame that was to be written was beyond a limit.
    excess: Option<Excess>,
}

impl<S> Watched<S> {
    fn new(stream: S, activity: &Rc<Cell<bool>>, plan: &WebSocketPlan) -> Self {
        Self {
            stream,
            activity: Rc::clone(activity),
            meter: plan.is_followed.then(|| FrameMeter::new(plan.limits)),
            excess: None,
        }
    }
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    /// Sends a Close frame, if it does not fall within another one.
    async fn close(&mut self, code: u16, mask: Option<[u8; 4]>) {
        let meter = self.meter.as_ref();
        if !meter.is_some_and(FrameMeter::is_between_frames) {
            return;
        }
        let mut frame = Vec::new();
        encode_close(&mut frame, Some(code), mask);
        let closing = async {
            self.stream.write_all(&frame).await?;
            self.stream.shutdown().await
        };
        // The stream is dropped in any case.
        tokio::time::timeout(CLOSING, closing).await.ok();
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
        let watched = self.get_mut();
        let Some(meter) = &mut watched.meter else {
            return Pin::new(&mut watched.stream).poll_write(context, bytes);
        };
        let now = SystemClock.now();
        let mut ahead = meter.clone();
        if let Err(excess) = ahead.pass(bytes, now) {
            watched.excess = Some(excess);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let written = ready!(Pin::new(&mut watched.stream).poll_write(context, bytes))?;
        if written == bytes.len() {
            *meter = ahead;
        } else {
            // Fewer bytes are within the limits too.
            meter.pass(&bytes[..written], now).ok();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
