//! WebSockets and other protocols that connections are upgraded to: the handshake, for WebSockets between versions of HTTP, and the
//! bytes after it.

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

use super::body::InFlight;
use super::frames::{Excess, FrameLimits, FrameMeter};
use super::{ForwardPlan, Local, WebSockets};

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

/// The protocols other than WebSockets that a route lets connections of HTTP/1 be upgraded to (RFC 9110, section 7.8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Upgrades {
    /// These, with their versions, compared without regard to case.
    Named(Vec<String>),
    /// All but those that carry requests.
    Any,
}

impl Default for Upgrades {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl Upgrades {
    /// Whether a protocol carries requests of HTTP, which the server would get without the rules of any route having seen them
    /// (request smuggling by `h2c`): no route lets connections be upgraded to it.
    ///
    /// - `name`: with its version, such as `HTTP/2.0`.
    pub(crate) fn carries_requests(name: &str) -> bool {
        let protocol = name.split('/').next().unwrap_or_default();
        let carriers = ["h2c", "h2", "h3", "http", "https", "tls"];
        carriers.iter().any(|it| protocol.eq_ignore_ascii_case(it))
    }

    /// Whether a text is one protocol, with a version or without.
    pub(crate) fn is_name(text: &str) -> bool {
        let is_token = |part: &str| {
            let is_of_token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            !part.is_empty() && part.bytes().all(is_of_token)
        };
        match text.split_once('/') {
            None => is_token(text),
            Some((name, version)) => is_token(name) && is_token(version),
        }
    }

    fn permit(&self, name: &str) -> bool {
        match self {
            Self::Named(names) => names.iter().any(|it| it.eq_ignore_ascii_case(name)),
            Self::Any => Self::is_name(name) && !Self::carries_requests(name),
        }
    }
}

/// The opening of a WebSocket (RFC 6455, section 4; over HTTP/2 RFC 8441), or of another protocol.
#[derive(Debug)]
pub(super) enum Handshake {
    WebSocket {
        key: String,
        is_http1: bool,
        plan: WebSocketPlan,
    },
    /// The name that the client gave; from HTTP/1 to HTTP/1 alone.
    Other(String),
}

impl Handshake {
    /// That of a request; nothing if it asks for none that the route permits.
    pub(super) fn from_request(request: &Request<'_>, plan: &ForwardPlan) -> Option<Self> {
        let upgrade = request.upgrade?;
        if !upgrade.eq_ignore_ascii_case(b"websocket") {
            let name = std::str::from_utf8(upgrade).ok()?.trim();
            let is_permitted = request.version == Version::Http11
                && request.method != "CONNECT"
                && plan.upgrades.permit(name);
            return is_permitted.then(|| Self::Other(name.to_owned()));
        }
        let WebSockets::Forwarded(plan) = plan.websocket else {
            return None;
        };
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
        Some(Self::WebSocket {
            key,
            is_http1,
            plan,
        })
    }

    /// The value of `Sec-WebSocket-Key` for a server that speaks HTTP/1, of a WebSocket.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::WebSocket { key, .. } => Some(key),
            Self::Other(_) => None,
        }
    }

    /// The protocol to ask the server for; nothing if it cannot be had over that version of HTTP.
    pub(super) fn protocol(&self, version: Protocol) -> Option<&str> {
        match self {
            Self::WebSocket { .. } => Some("websocket"),
            Self::Other(name) => (version == Protocol::Http1).then_some(name),
        }
    }

    /// The method of the request, as the version of HTTP that the server speaks has it.
    ///
    /// - `given`: that of the client.
    pub(super) fn method<'a>(&self, given: &'a str, version: Protocol) -> &'a str {
        match (self, version) {
            (Self::Other(_), _) => given,
            (Self::WebSocket { .. }, Protocol::Http2 | Protocol::Http3) => "CONNECT",
            (Self::WebSocket { .. }, _) => "GET",
        }
    }

    /// Limits of the tunnel.
    pub(super) fn plan(&self) -> WebSocketPlan {
        match self {
            Self::WebSocket { plan, .. } => *plan,
            // There are no frames to follow.
            Self::Other(_) => WebSocketPlan::default(),
        }
    }

    /// Whether the server agreed, as the version of HTTP that it speaks has it.
    pub(super) fn is_agreed(&self, head: &ResponseHead, protocol: Protocol) -> bool {
        let is_switched_to = |name: &str| {
            let upgrade = head.fields.field("upgrade");
            head.status == StatusCode::SWITCHING_PROTOCOLS
                && upgrade.is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()))
        };
        match (self, protocol) {
            (Self::WebSocket { key, .. }, Protocol::Http1) => {
                let accept = Key::given(key).accept();
                is_switched_to("websocket")
                    && head.fields.field("sec-websocket-accept") == Some(accept.as_bytes())
            }
            (Self::WebSocket { .. }, _) => head.status.is_success(),
            (Self::Other(name), Protocol::Http1) => is_switched_to(name),
            (Self::Other(_), _) => false,
        }
    }

    /// Makes the fields those of the version that the client speaks.
    pub(super) fn complete(&self, fields: &mut HeaderMap) {
        match self {
            Self::WebSocket { key, is_http1, .. } => {
                fields.remove(SEC_WEBSOCKET_ACCEPT);
                if *is_http1 {
                    fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
                    let accept = Key::given(key).accept();
                    if let Ok(accept) = HeaderValue::from_str(&accept) {
                        fields.insert(SEC_WEBSOCKET_ACCEPT, accept);
                    }
                }
            }
            Self::Other(name) => {
                if let Ok(name) = HeaderValue::from_str(name) {
                    fields.insert(UPGRADE, name);
                }
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
