//! WebSockets of scripts (RFC 6455): each opened over a separate connection, read and written while their script waits for events.
//!
//! Messages are compressed where script and server agree on it (RFC 7692).

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Empty;
use plimsoll_client::forward::{Head, Upgraded};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use plimsoll_wire::ws::{
    DEFLATE_OFFER, Decoder, Deflater, Event, FrameSink, HandshakeError, Key, Limits, MessageKind,
    Opcode, Role, accepts_deflate, encode_close, encode_compressed, encode_frame,
};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

use crate::options::duration::millis;
use crate::protocol::http::{HttpRequest, Target, as_shown, endpoint_of, error_code, fields_of};
use crate::user::UserState;

/// Bytes that a script may have sent and the server has not read; k6 queues without a limit.
const MOST_UNSENT: usize = 64 << 20;

/// Bytes that one system call reads: a TLS record.
const READ: usize = 16 << 10;

/// Time limit for the answer to a close frame, the default of common WebSocket libraries.
const CLOSING: Duration = Duration::from_secs(10);

/// The sockets of a virtual user, by the numbers that its script knows.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    open: RefCell<HashMap<u32, Rc<Socket>>>,
    last: Cell<u32>,
}

impl Sockets {
    pub(crate) fn get(&self, id: u32) -> Option<Rc<Socket>> {
        self.open.borrow().get(&id).cloned()
    }

    fn add(&self, socket: Socket) -> u32 {
        let id = self.last.get() + 1;
        self.last.set(id);
        self.open.borrow_mut().insert(id, Rc::new(socket));
        id
    }

    fn remove(&self, id: u32) {
        self.open.borrow_mut().remove(&id);
    }

    /// Closes all, as an iteration that is interrupted leaves them.
    pub(crate) fn clear(&self) {
        self.open.borrow_mut().clear();
    }
}

/// The request for a socket.
#[derive(Debug)]
pub(crate) struct SocketRequest {
    pub(crate) request: HttpRequest,
    /// The value of `Sec-WebSocket-Protocol`; empty offers none.
    pub(crate) protocols: String,
    /// Whether compression is offered.
    pub(crate) offers_deflate: bool,
    pub(crate) module: SocketModule,
}

/// The module that a script uses sockets by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketModule {
    /// `k6/ws`: its samples have the tag `name` only where the script sets it, and a session that does not begin has a duration too.
    Ws,
    /// `k6/websockets`: its samples have the tags `name` and `url` of requests.
    WebSockets,
}

/// The compressor of a worker's sockets, which takes its memory at the first compressed message.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedDeflater(Rc<RefCell<Option<Compressing>>>);

#[derive(Debug, Default)]
struct Compressing {
    deflater: Deflater,
    payload: Vec<u8>,
}

impl SharedDeflater {
    /// Puts a compressed message at the end of `out`.
    fn encode(&self, out: &mut Vec<u8>, kind: MessageKind, message: &[u8]) {
        let mut compressing = self.0.borrow_mut();
        let Compressing { deflater, payload } = compressing.get_or_insert_default();
        deflater.deflate(message, payload);
        encode_compressed(out, kind, payload, Some(mask()));
    }
}

/// The response to the request for a socket.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Of the socket; absent if the server did not agree.
    pub(crate) id: Option<u32>,
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    /// The beginning of what a response has that opens no socket.
    pub(crate) content: Vec<u8>,
    /// Why there is no socket; empty if there is one.
    pub(crate) error: String,
}

impl Opened {
    /// Without a response.
    pub(crate) fn failed(error: String) -> Self {
        Self {
            id: None,
            status: 0,
            fields: Vec::new(),
            content: Vec::new(),
            error,
        }
    }
}

/// An event on a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SocketEvent {
    Message(MessageKind, Vec<u8>),
    Ping,
    Pong,
    /// The last event.
    Closed(u16, String),
    /// A failure; [`SocketEvent::Closed`] follows.
    Failed(String),
    /// Nothing until the time that the script waits for.
    Nothing,
}

/// An open socket.
pub(crate) struct Socket {
    state: RefCell<State>,
    /// Absent unless messages are compressed.
    deflater: Option<SharedDeflater>,
    tags: Vec<(String, String)>,
    opened: Instant,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").finish_non_exhaustive()
    }
}

struct State {
    stream: Upgraded,
    decoder: Decoder,
    inbox: Inbox,
    /// Frames that are not written yet.
    out: Vec<u8>,
    /// Of the future that reads and writes.
    waker: Option<Waker>,
    /// When the close frame was sent.
    closing: Option<Instant>,
    is_over: bool,
    pinged: Option<Instant>,
}

#[derive(Default)]
struct Inbox {
    events: VecDeque<SocketEvent>,
    message: Vec<u8>,
    /// Payloads of pings to answer.
    pings: Vec<Vec<u8>>,
    close: Option<(u16, String)>,
}

impl FrameSink for Inbox {
    fn piece(&mut self, piece: &[u8]) {
        self.message.extend_from_slice(piece);
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Message { kind, .. } => {
                let message = std::mem::take(&mut self.message);
                self.events.push_back(SocketEvent::Message(kind, message));
            }
            Event::Ping(payload) => {
                self.pings.push(payload.to_vec());
                self.events.push_back(SocketEvent::Ping);
            }
            Event::Pong(_) => self.events.push_back(SocketEvent::Pong),
            Event::Close(close) => {
                // A close frame without a code stands for this one (section 7.1.5).
                let close = close.map_or((1005, String::new()), |close| {
                    (close.code, close.reason.to_owned())
                });
                self.close = Some(close);
            }
        }
    }
}

/// Why a frame is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    /// One of both ends has closed the socket.
    #[error("the socket is closed")]
    Closed,
    /// Too much waits to be sent.
    #[error("the server does not read: more than {} MiB wait to be sent", MOST_UNSENT >> 20)]
    Unread,
}

fn mask() -> [u8; 4] {
    fastrand::u32(..).to_ne_bytes()
}

impl Socket {
    /// Adds a frame to those that are sent while the script waits for events.
    ///
    /// Fails if the socket is closed, or if the server takes nothing.
    pub(crate) fn send(&self, opcode: Opcode, payload: &[u8]) -> Result<(), SendError> {
        let mut state = self.state.borrow_mut();
        if state.closing.is_some() || state.is_over {
            return Err(SendError::Closed);
        }
        if state.out.len() + payload.len() > MOST_UNSENT {
            return Err(SendError::Unread);
        }
        let kind = match opcode {
            Opcode::Text => Some(MessageKind::Text),
            Opcode::Binary => Some(MessageKind::Binary),
            _ => None,
        };
        match (&self.deflater, kind) {
            (Some(deflater), Some(kind)) => deflater.encode(&mut state.out, kind, payload),
            _ => encode_frame(&mut state.out, opcode, true, payload, Some(mask())),
        }
        if opcode == Opcode::Ping {
            state.pinged = Some(SystemClock.now());
        }
        if opcode == Opcode::Close {
            state.closing = Some(SystemClock.now());
        }
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        Ok(())
    }

    /// Bytes that wait to be sent.
    pub(crate) fn unsent(&self) -> usize {
        self.state.borrow().out.len()
    }

    pub(crate) fn tags(&self) -> &[(String, String)] {
        &self.tags
    }

    fn poll_event(&self, context: &mut Context<'_>) -> Poll<SocketEvent> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.waker = Some(context.waker().clone());
        let mut buffer = [0; READ];
        loop {
            if let Poll::Ready(Err(error)) = state.poll_write(context)
                && !state.is_over
            {
                state.end(1006, &error.to_string());
            }
            if let Some(event) = state.inbox.events.pop_front() {
                return Poll::Ready(event);
            }
            if let Some((code, reason)) = state.inbox.close.take() {
                if state.closing.is_none() && !state.is_over {
                    // The same frame back (section 5.5.1); what cannot be written then does not matter.
                    let code = if code == 1005 { 1000 } else { code };
                    encode_frame(
                        &mut state.out,
                        Opcode::Close,
                        true,
                        &code.to_be_bytes(),
                        Some(mask()),
                    );
                    let _answered = state.poll_write(context);
                }
                state.is_over = true;
                return Poll::Ready(SocketEvent::Closed(code, reason));
            }
            if state.is_over {
                return Poll::Ready(SocketEvent::Closed(1006, String::new()));
            }
            let mut read = ReadBuf::new(&mut buffer);
            match Pin::new(&mut state.stream).poll_read(context, &mut read) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if read.filled().is_empty() => state.end(1006, ""),
                Poll::Ready(Ok(())) => {
                    if let Err(error) = state.decoder.decode(read.filled(), &mut state.inbox) {
                        let code = error.close_code();
                        if state.closing.is_none() {
                            // Written as far as the server takes it at once.
                            encode_close(&mut state.out, Some(code), Some(mask()));
                        }
                        state.end(code, &error.to_string());
                    }
                    for payload in std::mem::take(&mut state.inbox.pings) {
                        encode_frame(&mut state.out, Opcode::Pong, true, &payload, Some(mask()));
                    }
                }
                Poll::Ready(Err(error)) => state.end(1006, &error.to_string()),
            }
        }
    }
}

impl State {
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        while !self.out.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, &self.out) {
                Poll::Ready(Ok(written)) => drop(self.out.drain(..written)),
                Poll::Ready(Err(error)) => {
                    self.out.clear();
                    return Poll::Ready(Err(error));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// - `error`: empty if the server only closed the connection.
    fn end(&mut self, code: u16, error: &str) {
        if !error.is_empty() && self.closing.is_none() {
            self.inbox
                .events
                .push_back(SocketEvent::Failed(error.to_owned()));
        }
        self.inbox.close.get_or_insert((code, String::new()));
        self.is_over = true;
    }
}

/// Requests a socket; what is measured is added.
pub(crate) async fn open(user: &Rc<UserState>, request: SocketRequest) -> Opened {
    let SocketRequest {
        request,
        protocols,
        offers_deflate,
        module,
    } = request;
    let began = SystemClock.now();
    let timeout = request.timeout;
    let mut tags = request.tags.clone();
    let name = request.name().map(str::to_owned);
    let url = match module {
        SocketModule::Ws => request.written.clone(),
        SocketModule::WebSockets => request.address.to_string(),
    };
    let opening =
        tokio::time::timeout(timeout, handshake(user, request, protocols, offers_deflate));
    let result = opening.await.unwrap_or_else(|_| Err(error_code::timeout()));
    let now = SystemClock.now();
    let (status, fields) = match &result {
        Ok((_, status, fields)) => (*status, fields.clone()),
        Err(_) => (0, Vec::new()),
    };
    let on = user.shared.system_tags;
    let protocol = fields
        .iter()
        .find(|(name, _)| name == "Sec-Websocket-Protocol");
    let protocol = protocol.map(|(_, value)| value.clone()).unwrap_or_default();
    let mut tag = |is_on: bool, name: &str, value: String| {
        if is_on {
            tags.push((name.to_owned(), value));
        }
    };
    match (module, name) {
        (SocketModule::Ws, _) => tag(on.url, "url", url),
        (SocketModule::WebSockets, Some(name)) => tag(on.url, "url", name),
        (SocketModule::WebSockets, None) => {
            tag(on.url, "url", url.clone());
            tag(on.name, "name", url);
        }
    }
    // A response has both, even if there is no protocol.
    if status != 0 {
        tag(on.status, "status", status.to_string());
        tag(on.subproto, "subproto", protocol);
    }
    let metrics = &user.shared.built_in;
    user.add_with(metrics.ws_sessions, 1.0, &tags);
    user.add_with(
        metrics.ws_connecting,
        millis(now.saturating_duration_since(began)),
        &tags,
    );
    if module == SocketModule::Ws && !matches!(result, Ok((Ok(_), ..))) {
        user.add_with(metrics.ws_session_duration, 0.0, &tags);
    }
    let failed = |status, fields, content, error: String| Opened {
        id: None,
        status,
        fields,
        content,
        error,
    };
    match result {
        Ok((Ok(Agreed { stream, deflates }), status, fields)) => {
            let decoder = Decoder::new(Role::Client, Limits::default());
            let id = user.sockets.add(Socket {
                state: RefCell::new(State {
                    stream,
                    decoder: if deflates {
                        decoder.with_deflate()
                    } else {
                        decoder
                    },
                    inbox: Inbox::default(),
                    out: Vec::new(),
                    waker: None,
                    closing: None,
                    is_over: false,
                    pinged: None,
                }),
                deflater: deflates.then(|| user.worker.deflater.clone()),
                tags,
                opened: now,
            });
            Opened {
                id: Some(id),
                status,
                fields,
                content: Vec::new(),
                error: String::new(),
            }
        }
        Ok((Err(Refused { content, error }), status, fields)) => {
            failed(status, fields, content, error)
        }
        Err((_, error)) => Opened::failed(error),
    }
}

/// A socket whose handshake is done.
struct Agreed {
    stream: Upgraded,
    /// Whether messages are compressed.
    deflates: bool,
}

/// A response that opens no socket.
struct Refused {
    content: Vec<u8>,
    error: String,
}

/// Bytes that are read of such a response, as by k6.
const MOST_REFUSED: usize = 1024;

/// The socket or why the response does not open one, the status, and the fields of the response.
type Handshake = (Result<Agreed, Refused>, u16, Vec<(String, String)>);

async fn handshake(
    user: &Rc<UserState>,
    request: HttpRequest,
    protocols: String,
    offers_deflate: bool,
) -> Result<Handshake, (u16, String)> {
    // The request is one of HTTP.
    let scheme = match request.address.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return Err((1000, "malformed ws or wss URL".to_owned())),
    };
    let target = Target::new(Rc::new(request.address.with_scheme(scheme)))?;
    let (mut fields, mut authority) = fields_of(user, &request, &target);
    let endpoint = endpoint_of(user, &target, &mut authority)?;
    let path_and_query = target.address.target();
    let key = Key::new(fastrand::u128(..).to_ne_bytes());
    fields.push(("Sec-WebSocket-Version".to_owned(), "13".to_owned()));
    fields.push(("Sec-WebSocket-Key".to_owned(), key.text().to_owned()));
    if !protocols.is_empty() {
        fields.push(("Sec-WebSocket-Protocol".to_owned(), protocols));
    }
    if offers_deflate {
        let offer = DEFLATE_OFFER.to_owned();
        fields.push(("Sec-WebSocket-Extensions".to_owned(), offer));
    }
    let destination = user.worker.sockets.sibling().destination(&endpoint);
    let lease = destination.acquire_unused().await;
    let lease = lease.map_err(|error| match error_code::of_failure(&error.failure) {
        // As the library of k6 says it, where a request says less.
        (code @ 1212, _) => {
            let address = endpoint.authority_with_port();
            (
                code,
                format!("dial tcp {address}: connect: connection refused"),
            )
        }
        other => other,
    })?;
    let mut head = Head::new("GET", &path_and_query, &fields);
    head.authority = authority.as_deref();
    head.upgrade = Some("websocket");
    let exchange = lease.begin(&head, Empty::<Bytes>::new());
    let mut exchange = exchange.map_err(|failure| error_code::of_failure(&failure))?;
    let answer = exchange.final_head().await;
    let answer = answer.map_err(|incomplete| error_code::of_failure(&incomplete.failure))?;
    let status = answer.status.as_u16();
    let answered = as_shown(&answer.fields);
    let accepted = answered
        .iter()
        .find(|(name, _)| name == "Sec-Websocket-Accept");
    let is_accepted = accepted.is_some_and(|(_, value)| *value == key.accept());
    let mut content = Vec::new();
    let mut upgraded = None;
    if status != 101 {
        while content.len() < MOST_REFUSED
            && let Some(Ok(frame)) = exchange.frame().await
        {
            content.extend(frame.into_data().unwrap_or_default());
        }
        content.truncate(MOST_REFUSED);
    } else if is_accepted {
        upgraded = exchange.upgrade();
    }
    let agreed = match (upgraded, deflates(&answered, offers_deflate)) {
        (None, _) => Err("websocket: bad handshake".to_owned()),
        (Some(_), Err(error)) => Err(format!("websocket: bad handshake: {error}")),
        (Some(stream), Ok(deflates)) => Ok(Agreed { stream, deflates }),
    };
    let agreed = agreed.map_err(|error| Refused { content, error });
    Ok((agreed, status, answered))
}

/// Whether the server accepts compression.
fn deflates(fields: &[(String, String)], is_offered: bool) -> Result<bool, HandshakeError> {
    let extensions = fields
        .iter()
        .filter(|(name, _)| name == "Sec-Websocket-Extensions")
        .map(|(_, value)| value.as_str());
    if is_offered {
        return accepts_deflate(extensions);
    }
    match extensions.map(str::trim).find(|value| !value.is_empty()) {
        Some(value) => Err(HandshakeError::Extension(value.to_owned())),
        None => Ok(false),
    }
}

/// The next event of a socket, or nothing until then.
pub(crate) async fn next(user: &Rc<UserState>, id: u32, until: Option<Instant>) -> SocketEvent {
    let Some(socket) = user.sockets.get(id) else {
        return SocketEvent::Closed(1006, String::new());
    };
    let closing = socket.state.borrow().closing.map(|since| since + CLOSING);
    let alarm = [until, closing].into_iter().flatten().min();
    let event = poll_fn(|context| socket.poll_event(context));
    let event = match alarm {
        None => event.await,
        Some(alarm) => match tokio::time::timeout_at(alarm.into(), event).await {
            Ok(event) => event,
            Err(_) if closing.is_some_and(|closing| SystemClock.now() >= closing) => {
                SocketEvent::Closed(1006, String::new())
            }
            Err(_) => return SocketEvent::Nothing,
        },
    };
    let metrics = &user.shared.built_in;
    let now = SystemClock.now();
    match &event {
        SocketEvent::Message(..) => user.add_with(metrics.ws_msgs_received, 1.0, &socket.tags),
        SocketEvent::Pong => {
            if let Some(pinged) = socket.state.borrow_mut().pinged.take() {
                let took = millis(now.saturating_duration_since(pinged));
                user.add_with(metrics.ws_ping, took, &socket.tags);
            }
        }
        SocketEvent::Closed(..) => {
            let took = millis(now.saturating_duration_since(socket.opened));
            user.add_with(metrics.ws_session_duration, took, &socket.tags);
            user.sockets.remove(id);
        }
        SocketEvent::Ping | SocketEvent::Failed(_) | SocketEvent::Nothing => {}
    }
    event
}
