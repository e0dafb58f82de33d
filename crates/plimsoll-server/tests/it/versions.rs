//! Actions see and do the same over every version of HTTP.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::io::Write;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, LINK, TRAILER};
use http::{Method, Request as HttpRequest, StatusCode};
use http_body::{Body, Frame};
use plimsoll_server::{
    Action, Answer, HeaderRules, InterimError, Limits, Middleware, Outcome, Request, Response,
    ResponseBody, Serves, StreamError,
};
use plimsoll_testkit::Authority;
use plimsoll_testkit::http::{HttpResponse, field_of};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Server, expect, plan};
use crate::{http2, http3};

/// Received by a client.
#[derive(Debug, Default, PartialEq, Eq)]
struct Received {
    /// Status and `link` of interim responses.
    interims: Vec<(u16, String)>,
    status: u16,
    length: Option<String>,
    /// The value of `trailer`.
    announced: String,
    content: String,
    trailers: Vec<(String, String)>,
}

/// Sent by a client.
#[derive(Clone, Default)]
struct Sent {
    method: Method,
    fields: HeaderMap,
    /// Pieces of content, then the trailer fields; without either, the request ends with its head.
    content: Vec<&'static [u8]>,
    trailers: HeaderMap,
}

impl Sent {
    fn get() -> Self {
        Self::default()
    }

    fn post(content: &[&'static [u8]]) -> Self {
        Self {
            method: Method::POST,
            content: content.to_vec(),
            ..Self::default()
        }
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.fields.insert(name, HeaderValue::from_static(value));
        self
    }

    fn request(&self, scheme: &str) -> HttpRequest<()> {
        let mut request = HttpRequest::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = format!("{scheme}://localhost/").parse().unwrap();
        *request.headers_mut() = self.fields.clone();
        request
    }
}

fn pairs(fields: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
    fields
        .iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

fn link(fields: &HeaderMap) -> String {
    let link = fields.get(LINK).map(|link| link.to_str().unwrap());
    link.unwrap_or_default().to_owned()
}

fn length(fields: &HeaderMap) -> Option<String> {
    let length = fields.get(CONTENT_LENGTH)?;
    Some(length.to_str().unwrap().to_owned())
}

fn announced(fields: &HeaderMap) -> String {
    let names = fields.get(TRAILER).map(|names| names.to_str().unwrap());
    names.unwrap_or_default().to_owned()
}

/// Everything that an HTTP/1 client receives until the server closes.
fn over_http1(server: &Server, sent: &Sent) -> Received {
    let mut head = format!("{} / HTTP/1.1\r\nhost: localhost\r\n", sent.method);
    for (name, value) in pairs(&sent.fields) {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    head += "connection: close\r\n";
    let mut bytes = Vec::new();
    if sent.content.is_empty() {
        bytes.extend_from_slice(format!("{head}\r\n").as_bytes());
    } else if sent.fields.contains_key(CONTENT_LENGTH) {
        bytes.extend_from_slice(format!("{head}\r\n").as_bytes());
        bytes.extend(sent.content.concat());
    } else {
        bytes.extend_from_slice(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes());
        for piece in &sent.content {
            bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n");
        for (name, value) in pairs(&sent.trailers) {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
    }
    let answer = server.talk(bytes);
    let response = HttpResponse::parse(answer.as_bytes()).unwrap();
    let interims = response.interims.iter().map(|head| {
        let status = head.get(9..12).unwrap().parse().unwrap();
        (
            status,
            field_of(head, "link").unwrap_or_default().to_owned(),
        )
    });
    let trailers = response.trailers.lines().map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_owned(), value.to_owned())
    });
    Received {
        interims: interims.collect(),
        status: response.status,
        length: response.field("content-length").map(str::to_owned),
        announced: response.field("trailer").unwrap_or_default().to_owned(),
        content: response.text().to_owned(),
        trailers: trailers.collect(),
    }
}

fn over_http2(server: &Server, sent: &Sent) -> Received {
    http2::run(async {
        let mut requests = http2::connect(server.address).await;
        let is_over = sent.content.is_empty();
        let (mut response, mut stream) = requests
            .send_request(sent.request("http"), is_over)
            .unwrap();
        let mut received = Received::default();
        let waits = sent.fields.contains_key("expect");
        let mut deliver = || {
            for piece in &sent.content {
                stream.send_data(Bytes::from_static(piece), false).unwrap();
            }
            if sent.trailers.is_empty() {
                stream.send_data(Bytes::new(), true).unwrap();
            } else {
                stream.send_trailers(sent.trailers.clone()).unwrap();
            }
        };
        if !is_over && !waits {
            deliver();
        }
        while let Some(interim) = poll_fn(|cx| response.poll_informational(cx)).await {
            let interim = interim.unwrap();
            let status = interim.status().as_u16();
            received.interims.push((status, link(interim.headers())));
            if waits && status == 100 {
                deliver();
            }
        }
        let (parts, mut body) = response.await.unwrap().into_parts();
        received.status = parts.status.as_u16();
        received.length = length(&parts.headers);
        received.announced = announced(&parts.headers);
        while let Some(piece) = body.data().await {
            let piece = piece.unwrap();
            received.content += std::str::from_utf8(&piece).unwrap();
        }
        let trailers = body.trailers().await.unwrap().unwrap_or_default();
        received.trailers = pairs(&trailers);
        received
    })
}

fn over_http3(server: &Server, authority: &Authority, sent: &Sent) -> Received {
    http3::run(async {
        let quic = http3::open(authority, server.address).await;
        let (mut requests, _driver) = http3::speak(quic).await;
        let mut stream = requests.send_request(sent.request("https")).await.unwrap();
        let waits = sent.fields.contains_key("expect");
        let mut received = Received::default();
        let mut is_sent = false;
        let response = loop {
            if !is_sent && (!waits || !received.interims.is_empty()) {
                is_sent = true;
                for piece in &sent.content {
                    stream.send_data(Bytes::from_static(piece)).await.unwrap();
                }
                if !sent.trailers.is_empty() {
                    stream.send_trailers(sent.trailers.clone()).await.unwrap();
                }
                stream.finish().await.unwrap();
            }
            let response = stream.recv_response().await.unwrap();
            if !response.status().is_informational() {
                break response;
            }
            let status = response.status().as_u16();
            received.interims.push((status, link(response.headers())));
        };
        received.status = response.status().as_u16();
        received.length = length(response.headers());
        received.announced = announced(response.headers());
        while let Some(mut piece) = stream.recv_data().await.unwrap() {
            let piece = piece.copy_to_bytes(piece.remaining());
            received.content += std::str::from_utf8(&piece).unwrap();
        }
        let trailers = stream.recv_trailers().await.unwrap().unwrap_or_default();
        received.trailers = pairs(&trailers);
        received
    })
}

/// The responses to the same request over HTTP/1, HTTP/2 and HTTP/3.
fn over_all<A: Action + 'static>(make: fn() -> A, sent: &Sent) -> [Received; 3] {
    over_all_dropping(make, sent, 0)
}

/// The same, where the server drops so many fields and trailers of each exchange.
fn over_all_dropping<A: Action + 'static>(
    make: fn() -> A,
    sent: &Sent,
    dropped: u64,
) -> [Received; 3] {
    let server = Server::start(&plan(Limits::default(), move || Rc::new(make())));
    let (quic, authority) = http3::start(Limits::default(), 1, move || Rc::new(make()));
    let received = [
        over_http1(&server, sent),
        over_http2(&server, sent),
        over_http3(&quic, &authority, sent),
    ];
    for (server, exchanges) in [(server, 2), (quic, 1)] {
        let snapshot = server.engine.counters().snapshot();
        assert_eq!(snapshot.panics, 0);
        assert_eq!(snapshot.dropped_fields, dropped * exchanges);
    }
    received
}

/// Answers with the announced length and everything of the content.
struct Reading;

impl Action for Reading {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let request = request.into_owned();
        Answer::later(async move {
            let request = request.request();
            let mut body = request.take_body();
            let mut text = format!("{:?}", request.content_length());
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                match frame.unwrap().into_data() {
                    Ok(data) => write!(text, " {}", String::from_utf8_lossy(&data)).unwrap(),
                    Err(trailers) => {
                        let trailers = pairs(&trailers.into_trailers().unwrap());
                        write!(text, " {trailers:?}").unwrap();
                    }
                }
            }
            Response::text(StatusCode::OK, text)
        })
    }
}

#[test]
fn lengths_and_trailers_of_requests_are_seen() {
    let check = |sent: &Sent, expected: &str| {
        for received in over_all(|| Reading, sent) {
            assert_eq!(received.content, expected);
            assert_eq!(received.interims, []);
        }
    };
    check(&Sent::get(), "Some(0)");
    check(
        &Sent::post(&[b"hello"]).with("content-length", "5"),
        "Some(5) hello",
    );
    let mut with_trailers = Sent::post(&[b"hello"]);
    let end = HeaderName::from_static("x-end");
    with_trailers
        .trailers
        .insert(end, HeaderValue::from_static("yes"));
    check(&with_trailers, "None hello [(\"x-end\", \"yes\")]");
}

#[test]
fn trailers_that_belong_to_a_head_reach_no_action() {
    let dropped = ["cookie", "range", "if-match", "date", "expect", "x-end"];
    for allowed in [true, false] {
        let mut sent = Sent::post(&[b"hello"]);
        for name in dropped.iter().take(if allowed { 6 } else { 5 }) {
            let name = HeaderName::from_static(name);
            sent.trailers.append(name, HeaderValue::from_static("yes"));
        }
        let expected = if allowed {
            "None hello [(\"x-end\", \"yes\")]"
        } else {
            "None hello"
        };
        for received in over_all_dropping(|| Reading, &sent, 5) {
            assert_eq!(received.content, expected);
        }
    }
}

/// Sends the trailers of the request's header fields, beginning with `x-trailer-`.
struct Trailing;

impl Action for Trailing {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let fields = request.headers().filter_map(|(name, value)| {
            let name = name.strip_prefix("x-trailer-")?;
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            Some((name, HeaderValue::from_bytes(value).unwrap()))
        });
        let frames = [
            Frame::data(Bytes::from_static(b"hello")),
            Frame::trailers(fields.collect()),
        ];
        let body = Frames(frames.into_iter().collect());
        let announced = HeaderValue::from_static("set-cookie, x-end");
        let response = Response::new(StatusCode::OK)
            .with_field(TRAILER, announced)
            .with_body(ResponseBody::Stream(Box::pin(body)));
        Answer::now(response)
    }
}

/// Content in pieces that are there.
struct Frames(VecDeque<Frame<Bytes>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

#[test]
fn trailers_that_belong_to_a_head_reach_no_client() {
    let sent = Sent::get()
        .with("x-trailer-set-cookie", "a=1")
        .with("x-trailer-content-length", "5");
    let with_allowed = sent.clone().with("x-trailer-x-end", "yes");
    for received in over_all_dropping(|| Trailing, &with_allowed, 2) {
        assert_eq!(received.content, "hello");
        assert_eq!(received.trailers, [("x-end".to_owned(), "yes".to_owned())]);
        assert_eq!(received.announced, "x-end");
    }
    for received in over_all_dropping(|| Trailing, &sent, 2) {
        assert_eq!(received.content, "hello");
        assert_eq!(received.trailers, []);
    }
}

/// Content that ends with a trailer field.
struct Trailed(u8);

impl Body for Trailed {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        self.0 += 1;
        Poll::Ready(match self.0 {
            1 => Some(Ok(Frame::data(Bytes::from_static(b"hello")))),
            2 => {
                let mut trailers = HeaderMap::new();
                trailers.insert("x-end", HeaderValue::from_static("yes"));
                Some(Ok(Frame::trailers(trailers)))
            }
            _ => None,
        })
    }
}

/// Sends trailer fields and, before them, early hints: at once, and from a separate task.
struct Hinting;

/// Answers with the value of a field in brackets.
struct Quoting;

impl Action for Quoting {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let value = request.header("x-debug").unwrap_or_default();
        let text = format!("[{}]", String::from_utf8_lossy(value));
        Answer::now(Response::text(StatusCode::OK, text))
    }
}

/// What conditions read is what servers behind read: without blanks around it.
#[test]
fn values_have_no_blanks_around_them() {
    for value in [" 1", "1 ", "\t1", "1\t", " 1\t "] {
        let [first, second, third] = over_all(|| Quoting, &Sent::get().with("x-debug", value));
        assert_eq!(first.content, "[1]", "{value:?}");
        assert_eq!([second.status, third.status], [400, 400], "{value:?}");
    }
}

#[test]
fn methods_of_http_are_in_upper_case() {
    for (method, status) in [("post", 400), ("Get", 400), ("purge", 200), ("GET", 200)] {
        let mut sent = Sent::get();
        sent.method = method.parse().unwrap();
        let statuses = over_all(|| Quoting, &sent).map(|received| received.status);
        assert_eq!(statuses, [status; 3], "{method}");
    }
}

/// Answers with its host.
struct Hosting;

impl Action for Hosting {
    fn handle(&self, request: &Request<'_>) -> Answer {
        Answer::now(Response::text(StatusCode::OK, request.host().to_owned()))
    }
}

#[test]
fn a_host_has_neither_port_nor_the_dot_of_the_root() {
    let server = Server::start(&plan(Limits::default(), || Rc::new(Hosting)));
    for (field, host) in [
        ("a.test", "a.test"),
        ("a.test:80", "a.test"),
        ("a.test.", "a.test"),
        ("a.test.:80", "a.test"),
        ("[::1]:80", "[::1]"),
    ] {
        let request = format!("GET / HTTP/1.1\r\nhost: {field}\r\nconnection: close\r\n\r\n");
        let answer = server.talk(request.into_bytes());
        let content = answer.split_once("\r\n\r\n").map(|(_, content)| content);
        assert_eq!(content, Some(host), "{field}");
    }
}

fn hint(to: &str) -> HeaderMap {
    HeaderMap::from_iter([(LINK, HeaderValue::try_from(to).unwrap())])
}

impl Action for Hinting {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let interims = request.interims();
        interims
            .send(StatusCode::EARLY_HINTS, hint("</a>"))
            .unwrap();
        Answer::later(async move {
            let (sent, was_sent) = tokio::sync::oneshot::channel();
            let other = interims.clone();
            tokio::task::spawn_local(async move {
                tokio::task::yield_now().await;
                other.send(StatusCode::EARLY_HINTS, hint("</b>")).unwrap();
                sent.send(()).unwrap();
            });
            was_sent.await.unwrap();
            let late = interims.clone();
            tokio::task::spawn_local(async move {
                tokio::task::yield_now().await;
                let sent = late.send(StatusCode::EARLY_HINTS, hint("</c>"));
                assert_eq!(sent, Err(InterimError::Late));
            });
            Response::new(StatusCode::OK).with_body(ResponseBody::Stream(Box::pin(Trailed(0))))
        })
    }
}

#[test]
fn interim_responses_and_trailers_are_sent() {
    for received in over_all(|| Hinting, &Sent::get()) {
        let hint = |to: &str| (103, to.to_owned());
        assert_eq!(received.interims, [hint("</a>"), hint("</b>")]);
        assert_eq!((received.status, received.content.as_str()), (200, "hello"));
        assert_eq!(received.trailers, [("x-end".to_owned(), "yes".to_owned())]);
    }
}

#[test]
fn clients_of_http_1_0_get_no_interim_response() {
    let server = Server::start(&plan(Limits::default(), || Rc::new(Hinting)));
    let answer = server.talk("GET / HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(!answer.contains("103"), "{answer}");
}

#[test]
fn content_is_requested_once_it_is_read() {
    let sent = Sent::post(&[b"hello"]).with("expect", "100-continue");
    for received in over_all(|| Reading, &sent) {
        assert_eq!(received.content, "None hello");
        assert_eq!(received.interims, [(100, String::new())]);
    }
}

/// Announces content that it does not send.
struct Announcing;

impl Action for Announcing {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let status = match request.header("if-none-match") {
            Some(_) => StatusCode::NOT_MODIFIED,
            None => StatusCode::OK,
        };
        let response = Response::new(status).with_body(ResponseBody::Announced(1234));
        Answer::now(if request.header("x-prepared").is_some() {
            response.prepare().into()
        } else {
            response
        })
    }
}

#[test]
fn lengths_are_announced_without_content() {
    let head = Sent {
        method: Method::HEAD,
        ..Sent::default()
    };
    let unmodified = Sent::get().with("if-none-match", "\"a\"");
    for (sent, status, length) in [
        (head, 200, "1234"),
        (unmodified.clone(), 304, "1234"),
        (unmodified.with("x-prepared", "yes"), 304, "1234"),
        // A client that waited for them would wait for ever.
        (Sent::get(), 200, "0"),
    ] {
        for received in over_all(|| Announcing, &sent) {
            assert_eq!(received.status, status);
            assert_eq!(received.length.as_deref(), Some(length));
            assert_eq!(received.content, "");
        }
    }
}

/// Answers with what it knows of the connection.
struct Describing;

impl Action for Describing {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let info = request.connection();
        assert_eq!(info.peer, request.peer);
        let tls = info.tls.as_ref().map(|tls| {
            let alpn = tls.alpn.as_deref().map(String::from_utf8_lossy);
            let name = tls.server_name.as_deref();
            let certificates = tls.client_certificates.len();
            format!("{name:?} {alpn:?} {:?} {certificates}", tls.version)
        });
        let text = format!("{} {} {} {tls:?}", info.id, info.peer, info.local);
        Answer::now(Response::text(StatusCode::OK, text))
    }
}

/// Two answers on one connection that has such a stream beneath.
async fn ask_twice(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) -> [String; 2] {
    let mut answers = [String::new(), String::new()];
    for answer in &mut answers {
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .unwrap();
        let mut bytes = Vec::new();
        loop {
            bytes.push(stream.read_u8().await.unwrap());
            let text = String::from_utf8_lossy(&bytes);
            let Some((head, content)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            if content.len() == length {
                content.clone_into(answer);
                break;
            }
        }
    }
    answers
}

#[test]
fn requests_know_their_connection() {
    let mut everywhere = plan(Limits::default(), || Rc::new(Describing));
    everywhere.listeners[0].address = "0.0.0.0:0".parse::<SocketAddr>().unwrap().into();
    let one = plan(Limits::default(), || Rc::new(Describing));
    for plan in [one, everywhere] {
        let server = Server::start(&plan);
        let address = SocketAddr::from(([127, 0, 0, 1], server.address.port()));
        http2::run(async {
            for id in 0..2 {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let peer = stream.local_addr().unwrap();
                let expected = format!("{id} {peer} {address} None");
                let answers = ask_twice(&mut stream).await;
                assert_eq!(answers, [expected.clone(), expected]);
            }
        });
    }
}

#[test]
fn requests_know_what_tls_agreed_on() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let leaf = authority.issue(&["localhost"]);
    let config = leaf.server_config_for_clients_of(&clients);
    let mut plan = plan(Limits::default(), || Rc::new(Describing));
    if let Serves::Http { tls, .. } = &mut plan.listeners[0].serves {
        *tls = Some(Arc::new(config));
    }
    let server = Server::start(&plan);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.der()).unwrap();
    let shown = clients.issue_for_client("tester");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![shown.der()], shown.key_der())
        .unwrap();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    http2::run(async {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let peer = stream.local_addr().unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
        let name = "localhost".try_into().unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        let [answer, _] = ask_twice(&mut stream).await;
        let agreed = "Some(\"Some(\\\"localhost\\\") Some(\\\"http/1.1\\\") Some(TLSv1_3) 1\")";
        assert_eq!(answer, format!("0 {peer} {} {agreed}", server.address));
    });
    let (server, authority) = http3::start(Limits::default(), 1, || Rc::new(Describing));
    let answer = over_http3(&server, &authority, &Sent::get()).content;
    let agreed = "Some(\"Some(\\\"localhost\\\") Some(\\\"h3\\\") Some(TLSv1_3) 0\")";
    let expected = format!(" {} {agreed}", server.address);
    assert!(answer.ends_with(&expected), "{answer}");
}

/// Answers with the fields of a request that it has kept.
struct Listing;

impl Action for Listing {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let request = request.into_owned();
        Answer::later(async move {
            let request = request.request();
            let fields = request.headers().map(|(name, value)| {
                let value = String::from_utf8_lossy(value);
                format!("{name}={value}\n")
            });
            Response::text(StatusCode::OK, fields.collect::<String>())
        })
    }
}

#[test]
fn fields_keep_their_order_and_case_through_layers_and_in_kept_requests() {
    let rules = HeaderRules {
        remove: vec![HeaderName::from_static("x-gone")],
        set: vec![(
            HeaderName::from_static("x-b"),
            HeaderValue::from_static("new").into(),
        )],
        add: Vec::new(),
        ..HeaderRules::default()
    };
    let layers = Middleware {
        request_headers: Some(Arc::new(rules)),
        ..Middleware::default()
    };
    let make = move || layers.over(Rc::new(Listing));
    let server = Server::start(&plan(Limits::default(), make));
    let answer = server.talk(
        "GET / HTTP/1.1\r\nHost: a\r\nX-B: old\r\nx-GONE: 1\r\nx-A: 2\r\nX-a: 3\r\nConnection: close\r\n\r\n",
    );
    let expected = "\r\n\r\nHost=a\nX-B=new\nx-A=2\nX-a=3\nConnection=close\n";
    assert!(answer.ends_with(expected), "{answer}");
}

/// Answers with fields as an upstream might write them.
struct Forwarding {
    is_streamed: bool,
}

impl Action for Forwarding {
    fn handle(&self, _: &Request<'_>) -> Answer {
        let fields = [
            ("X-B", &b"1"[..]),
            ("Set-Cookie", b"a"),
            ("Connection", b"close"),
            ("ETag", b"\"t\""),
            ("set-cookie", b"b"),
            ("X-Gone", b"2"),
        ];
        let response = Response::new(StatusCode::OK).with_fields(fields.into_iter().collect());
        let content = if self.is_streamed {
            ResponseBody::Stream(Box::pin(Trailed(0)))
        } else {
            ResponseBody::Bytes(Bytes::from_static(b"hello"))
        };
        Answer::now(response.with_body(content))
    }
}

#[test]
fn fields_of_responses_keep_their_order_and_case() {
    let name = HeaderName::from_static;
    let value = HeaderValue::from_static;
    let rules = HeaderRules {
        remove: vec![name("x-gone")],
        set: vec![(name("etag"), value("\"u\"").into())],
        add: vec![
            (name("x-b"), value("3").into()),
            (name("x-new"), value("4").into()),
        ],
        ..HeaderRules::default()
    };
    let layers = Middleware {
        response_headers: Some(Arc::new(rules)),
        ..Middleware::default()
    };
    for is_streamed in [false, true] {
        let layers = layers.clone();
        let make = move || layers.over(Rc::new(Forwarding { is_streamed }));
        let server = Server::start(&plan(Limits::default(), make));
        let answer = server.talk("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let expected =
            "X-B: 1\r\nSet-Cookie: a\r\nETag: \"u\"\r\nset-cookie: b\r\nx-b: 3\r\nx-new: 4\r\n";
        assert!(answer.contains(expected), "{answer}");
        assert_eq!(answer.to_ascii_lowercase().matches("connection").count(), 1);
    }
}

/// Opens tunnels that give everything back.
struct Tunnels;

impl Action for Tunnels {
    fn handle(&self, request: &Request<'_>) -> Answer {
        if request.method != "CONNECT" {
            return Answer::now(Response::text(StatusCode::OK, "no tunnel"));
        }
        assert_eq!(request.authority, "upstream:443");
        let response = Response::new(StatusCode::OK)
            .with_field(CONTENT_LENGTH, HeaderValue::from_static("7"))
            .with_field(HeaderName::from_static("x-via"), "us".parse().unwrap());
        Answer::Now(Outcome::Upgrade(
            response,
            Box::new(|mut stream, _drain| {
                Box::pin(async move {
                    let mut buffer = [0; 5];
                    stream.read_exact(&mut buffer).await.unwrap();
                    stream.write_all(&buffer).await.unwrap();
                    stream.shutdown().await.unwrap();
                })
            }),
        ))
    }
}

#[test]
fn connect_opens_a_tunnel_over_http1() {
    let server = Server::start(&plan(Limits::default(), || Rc::new(Tunnels)));
    let mut stream = server.connect();
    stream
        .write_all(b"CONNECT upstream:443 HTTP/1.1\r\nhost: upstream:443\r\n\r\n")
        .unwrap();
    // Neither a length nor a coding: what follows is the tunnel.
    expect(&mut stream, "HTTP/1.1 200 OK\r\nx-via: us\r\n\r\n");
    stream.write_all(b"hello").unwrap();
    expect(&mut stream, "hello");
}

#[test]
fn connect_opens_a_tunnel_over_http2() {
    let server = Server::start(&plan(Limits::default(), || Rc::new(Tunnels)));
    http2::run(async {
        let mut requests = http2::connect(server.address).await;
        for (authority, expected) in [("upstream:443", 200), ("upstream", 400)] {
            let mut request = HttpRequest::new(());
            *request.method_mut() = Method::CONNECT;
            *request.uri_mut() = authority.parse().unwrap();
            let (response, mut send) = requests.send_request(request, false).unwrap();
            requests = requests.ready().await.unwrap();
            let (parts, mut receive) = response.await.unwrap().into_parts();
            assert_eq!(parts.status.as_u16(), expected);
            if expected != 200 {
                continue;
            }
            assert_eq!(parts.headers["x-via"], "us");
            assert_eq!(length(&parts.headers), None);
            send.send_data(Bytes::from_static(b"hello"), false).unwrap();
            let mut received = Vec::new();
            while let Some(piece) = receive.data().await {
                received.extend_from_slice(&piece.unwrap());
            }
            assert_eq!(received, b"hello");
        }
    });
    assert_eq!(server.engine.counters().snapshot().panics, 0);
}
