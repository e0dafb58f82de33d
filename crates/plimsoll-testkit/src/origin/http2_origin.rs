//! A server that speaks HTTP/2, by the `h2` crate, and breaks off where the test says.

pub mod frames;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::background::Background;
use crate::logic::{Logic, Question};
use crate::origin::keep_head;
use crate::origin::lateness::be_late;
use crate::origin::{Io, OriginState as ScriptShared, Script, follow};

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Http2Answer {
    /// This status with this content; none in an answer to HEAD.
    Content(u16, Vec<u8>),
    /// This status with these header fields, this content and these trailers; an empty part is
    /// left out.
    Parts {
        /// The status.
        status: u16,
        /// Names and values of header fields.
        head: Vec<(&'static str, &'static str)>,
        /// The content.
        content: Vec<u8>,
        /// Names and values of fields behind it.
        trailers: Vec<(&'static str, &'static str)>,
    },
    /// The request's body.
    Echo,
    /// No answer before [`Http2Origin::release`], then that of [`Http2Origin::hello`].
    Hold,
    /// `RST_STREAM` with this code: 7 refuses the stream.
    Reset(u32),
    /// Half of the announced content, then `RST_STREAM` with `INTERNAL_ERROR`.
    BreakOff,
    /// 200 with this type and content, of no announced length.
    Stream {
        /// Its media type.
        content_type: &'static str,
        /// Its content.
        content: Vec<u8>,
        /// True if it ends then, or only after [`Http2Origin::release`].
        ends: bool,
    },
    /// GOAWAY that lets everything under way finish; this request too is answered.
    GoAway,
    /// The transport is closed without a word.
    Vanish,
    /// The reply of the logic.
    Reply(Logic),
}

impl Http2Answer {
    fn hello() -> Self {
        Self::Content(200, b"hello".to_vec())
    }
}

type Decide = Box<dyn Fn(u64, u64) -> Http2Answer + Send + Sync>;
type Raw = Box<dyn Fn(u64) -> Option<Script> + Send + Sync>;

/// A server of HTTP/2 on a port of its own.
#[derive(Debug)]
pub struct Http2Origin {
    address: SocketAddr,
    is_tls: bool,
    shared: Arc<OriginState>,
    _background: Background,
}

impl Http2Origin {
    /// Answers every request with 200 and `hello`.
    pub fn hello() -> Self {
        Self::builder().start()
    }

    /// An origin to be set up: [`hello`](Self::hello) in the clear by default.
    pub fn builder() -> Http2OriginBuilder {
        Http2OriginBuilder {
            tls: None,
            max_streams: None,
            window: None,
            decide: Box::new(|_, _| Http2Answer::hello()),
            raw: Box::new(|_| None),
        }
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL with `path`, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }

    /// Requests that it looked at; those of scripted connections are not among them.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Connections accepted.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> u64 {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Requests under way at most, on any one connection.
    pub fn most_at_a_time(&self) -> u64 {
        self.shared.most_at_a_time.load(Ordering::SeqCst)
    }

    /// Bytes of request bodies.
    pub fn body_bytes(&self) -> u64 {
        self.shared.body_bytes.load(Ordering::SeqCst)
    }

    /// Method and path of the first requests, and the ID of an event if there is one, at most 256.
    pub fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().expect("no holder panics").clone()
    }

    /// Answers every [`Http2Answer::Hold`], now and from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

/// An origin to be set up.
pub struct Http2OriginBuilder {
    tls: Option<ServerConfig>,
    max_streams: Option<u32>,
    window: Option<u32>,
    decide: Decide,
    raw: Raw,
}

impl std::fmt::Debug for Http2OriginBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http2OriginBuilder")
            .field("max_streams", &self.max_streams)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

impl Http2OriginBuilder {
    /// Speaks TLS and chooses `h2` by ALPN.
    #[must_use]
    pub fn tls(mut self, mut config: ServerConfig) -> Self {
        config.alpn_protocols = vec![b"h2".to_vec()];
        self.tls = Some(config);
        self
    }

    /// Allows so many streams at a time.
    #[must_use]
    pub fn max_streams(mut self, streams: u32) -> Self {
        self.max_streams = Some(streams);
        self
    }

    /// Has windows of so many bytes for requests, of each stream.
    #[must_use]
    pub fn window(mut self, bytes: u32) -> Self {
        self.window = Some(bytes);
        self
    }

    /// Does with the n-th request of the m-th connection, both from 0, what `decide(m, n)` says.
    #[must_use]
    pub fn answer(
        mut self,
        decide: impl Fn(u64, u64) -> Http2Answer + Send + Sync + 'static,
    ) -> Self {
        self.decide = Box::new(decide);
        self
    }

    /// Answers each request as `logic` says.
    #[must_use]
    pub fn logic(self, logic: Logic) -> Self {
        self.answer(move |_, _| Http2Answer::Reply(logic.clone()))
    }

    /// Follows a script of bytes on the m-th connection, where there is one.
    #[must_use]
    pub fn raw(mut self, raw: impl Fn(u64) -> Option<Script> + Send + Sync + 'static) -> Self {
        self.raw = Box::new(raw);
        self
    }

    /// Binds and serves; connections are accepted when this returns.
    pub fn start(self) -> Http2Origin {
        let is_tls = self.tls.is_some();
        let shared = Arc::new(OriginState::default());
        let mut protocol = h2::server::Builder::new();
        if let Some(streams) = self.max_streams {
            protocol.max_concurrent_streams(streams);
        }
        if let Some(window) = self.window {
            protocol.initial_window_size(window);
        }
        let service = Arc::new(Service {
            acceptor: self.tls.map(|config| TlsAcceptor::from(Arc::new(config))),
            protocol,
            decide: self.decide,
            raw: self.raw,
            shared: Arc::clone(&shared),
        });
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a socket can be set");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let background = Background::run("http2 origin", async move {
            let listener = TcpListener::from_std(listener).expect("it is non-blocking");
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    stream.set_nodelay(true).ok();
                    let service = Arc::clone(&service);
                    tokio::spawn(async move {
                        service.shared.open.fetch_add(1, Ordering::SeqCst);
                        match &service.acceptor {
                            None => service.serve(stream).await,
                            Some(acceptor) => {
                                if let Ok(stream) = acceptor.accept(stream).await {
                                    service.serve(stream).await;
                                }
                            }
                        }
                        service.shared.open.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            }
        });
        Http2Origin {
            address,
            is_tls,
            shared,
            _background: background,
        }
    }
}

#[derive(Debug, Default)]
struct OriginState {
    connections: AtomicU64,
    open: AtomicU64,
    requests: AtomicU64,
    most_at_a_time: AtomicU64,
    body_bytes: AtomicU64,
    heads: Mutex<Vec<String>>,
    released: watch::Sender<bool>,
}

struct Service {
    acceptor: Option<TlsAcceptor>,
    protocol: h2::server::Builder,
    decide: Decide,
    raw: Raw,
    shared: Arc<OriginState>,
}

impl Service {
    /// Errors end the connection and are otherwise the client's business.
    async fn serve<S: Io + 'static>(self: &Arc<Self>, stream: S) {
        be_late().await;
        let connection = self.shared.connections.fetch_add(1, Ordering::SeqCst);
        if let Some(script) = (self.raw)(connection) {
            follow(script, stream, &ScriptShared::default()).await;
            return;
        }
        let Ok(mut http) = self.protocol.handshake::<_, Bytes>(stream).await else {
            return;
        };
        let under_way = Arc::new(AtomicU64::new(0));
        for number in 0.. {
            let Some(Ok((request, respond))) = http.accept().await else {
                return;
            };
            be_late().await;
            keep_head(&self.shared.heads, &request);
            // A test that waits for the number finds the head.
            self.shared.requests.fetch_add(1, Ordering::SeqCst);
            let answer = (self.decide)(connection, number);
            if answer == Http2Answer::Vanish {
                return;
            }
            if answer == Http2Answer::GoAway {
                http.graceful_shutdown();
            }
            let now = under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.shared.most_at_a_time.fetch_max(now, Ordering::SeqCst);
            let (service, under_way) = (Arc::clone(self), Arc::clone(&under_way));
            tokio::spawn(async move {
                service.answer(answer, request, respond).await.ok();
                under_way.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }

    async fn answer(
        &self,
        answer: Http2Answer,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let (head, mut body) = request.into_parts();
        let is_head = head.method == http::Method::HEAD;
        let answer = match answer {
            Http2Answer::Reset(code) => {
                respond.send_reset(Reason::from(code));
                return Ok(());
            }
            Http2Answer::Hold => {
                let mut released = self.shared.released.subscribe();
                released.wait_for(|now| *now).await.ok();
                Http2Answer::hello()
            }
            Http2Answer::GoAway => Http2Answer::hello(),
            other => other,
        };
        let mut received = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            self.shared
                .body_bytes
                .fetch_add(piece.len() as u64, Ordering::SeqCst);
            if answer == Http2Answer::Echo {
                received.extend_from_slice(&piece);
            }
        }
        if let Http2Answer::Parts {
            status,
            head,
            content,
            trailers,
        } = answer
        {
            return send_parts(&mut respond, status, &head, content, &trailers);
        }
        if let Http2Answer::Stream {
            content_type,
            content,
            ends,
        } = answer
        {
            let response = Response::builder().header("content-type", content_type);
            let response = response.body(()).expect("a type that can be sent");
            let mut stream = respond.send_response(response, false)?;
            stream.send_data(content.into(), false)?;
            if !ends {
                let mut released = self.shared.released.subscribe();
                released.wait_for(|now| *now).await.ok();
            }
            return stream.send_data(Bytes::new(), true);
        }
        let mut fields = vec![("x-answer".to_owned(), "yes".to_owned())];
        let (status, content, breaks_off) = match answer {
            Http2Answer::Content(status, content) => (status, content, false),
            Http2Answer::BreakOff => (200, vec![b'x'; 100], true),
            Http2Answer::Reply(logic) => {
                let reply = logic.reply(&Question::from_request(
                    &head.method,
                    &head.uri,
                    &head.headers,
                ));
                fields.extend(reply.fields);
                (reply.status, reply.content.clone(), false)
            }
            _ => (200, received, false),
        };
        let mut response = Response::builder()
            .status(status)
            .header("content-length", content.len());
        for (name, value) in fields {
            response = response.header(name, value);
        }
        let response = response.body(()).expect("a status that exists");
        let is_empty = is_head || content.is_empty();
        let mut stream = respond.send_response(response, is_empty)?;
        if is_empty {
            return Ok(());
        }
        if breaks_off {
            stream.send_data(Bytes::from(vec![b'x'; 50]), false)?;
            // A reset overtakes what the connection has not written yet.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            stream.send_reset(Reason::INTERNAL_ERROR);
            return Ok(());
        }
        stream.send_data(content.into(), true)
    }
}

fn send_parts(
    respond: &mut SendResponse<Bytes>,
    status: u16,
    head: &[(&'static str, &'static str)],
    content: Vec<u8>,
    trailers: &[(&'static str, &'static str)],
) -> Result<(), h2::Error> {
    let mut response = Response::builder().status(status);
    for (name, value) in head {
        response = response.header(*name, *value);
    }
    let response = response.body(()).expect("a status that exists");
    let is_head_only = content.is_empty() && trailers.is_empty();
    let mut stream = respond.send_response(response, is_head_only)?;
    if !content.is_empty() {
        stream.send_data(content.into(), trailers.is_empty())?;
    }
    if !trailers.is_empty() {
        let mut fields = http::HeaderMap::new();
        for (name, value) in trailers {
            fields.append(*name, http::HeaderValue::from_static(value));
        }
        stream.send_trailers(fields)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::frames;

    #[test]
    fn frames_have_their_layout() {
        assert_eq!(frames::settings(), [0, 0, 0, 4, 0, 0, 0, 0, 0]);
        assert_eq!(
            frames::goaway(1, 0),
            [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
        );
        assert_eq!(frames::ok(3), [0, 0, 1, 1, 5, 0, 0, 0, 3, 0x88]);
    }
}
