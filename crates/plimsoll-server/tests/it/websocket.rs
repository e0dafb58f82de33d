//! Upgrades over HTTP/2: WebSocket by an extended CONNECT (RFC 8441).

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use h2::ext::Protocol;
use h2::{RecvStream, SendStream};
use http::header::{HeaderValue, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{Method, Request, StatusCode};
use plimsoll_server::{Action, Answer, Limits, Outcome, Response, Stream};
use plimsoll_wire::ws::{
    Decoder, Event, FrameSink, Limits as MessageLimits, Opcode, Role, encode_close, encode_frame,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http2::run;
use crate::server::{Server, plan, text};

/// Speaks WebSocket with those who ask for it, and gives every message back.
struct Echo;

impl Action for Echo {
    fn handle(&self, request: &plimsoll_server::Request<'_>) -> Answer {
        if request.upgrade != Some(b"websocket") {
            return Answer::now(Response::text(StatusCode::OK, "no websocket"));
        }
        assert_eq!((request.method, request.path), ("CONNECT", "/chat"));
        let response = Response::new(StatusCode::SWITCHING_PROTOCOLS)
            .with_field(UPGRADE, HeaderValue::from_static("websocket"))
            .with_field(SEC_WEBSOCKET_ACCEPT, HeaderValue::from_static("x"));
        let outcome = Outcome::Upgrade(response, Box::new(|stream, _drain| Box::pin(echo(stream))));
        match request.query {
            None => Answer::Now(outcome),
            Some(_) => Answer::Later(Box::pin(async {
                tokio::task::yield_now().await;
                outcome
            })),
        }
    }
}

/// Received messages, and the replies to them.
#[derive(Default)]
struct Received {
    message: Vec<u8>,
    answers: Vec<u8>,
    is_closed: bool,
}

impl FrameSink for Received {
    fn piece(&mut self, piece: &[u8]) {
        self.message.extend_from_slice(piece);
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Message { .. } => {
                let message = std::mem::take(&mut self.message);
                encode_frame(&mut self.answers, Opcode::Binary, true, &message, None);
            }
            Event::Close(_) => {
                self.is_closed = true;
                encode_close(&mut self.answers, Some(1000), None);
            }
            Event::Ping(_) | Event::Pong(_) => {}
        }
    }
}

async fn echo(mut stream: Stream) {
    let mut decoder = Decoder::new(Role::Server, MessageLimits::default());
    let mut received = Received::default();
    let mut buffer = vec![0; 4096];
    while !received.is_closed {
        let read = stream.read(&mut buffer).await.unwrap();
        decoder.decode(&buffer[..read], &mut received).unwrap();
        let answers = std::mem::take(&mut received.answers);
        stream.write_all(&answers).await.unwrap();
    }
    stream.shutdown().await.unwrap();
}

async fn connect(
    address: SocketAddr,
    uri: &str,
    protocol: Option<&'static str>,
) -> (StatusCode, http::HeaderMap, SendStream<Bytes>, RecvStream) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    let mut requests = requests.ready().await.unwrap();
    while !requests.is_extended_connect_protocol_enabled() {
        tokio::task::yield_now().await;
        requests = requests.ready().await.unwrap();
    }
    let mut request = Request::new(());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = uri.parse().unwrap();
    if let Some(protocol) = protocol {
        let protocol = Protocol::from_static(protocol);
        request.extensions_mut().insert(protocol);
    }
    let (response, send) = requests.send_request(request, false).unwrap();
    let (parts, receive) = response.await.unwrap().into_parts();
    (parts.status, parts.headers, send, receive)
}

#[test]
fn a_websocket_is_a_stream_of_http2() {
    let server = Server::start(&plan(Limits::default(), || Rc::new(Echo)));
    run(async {
        for uri in ["http://a/chat", "http://a/chat?later"] {
            let (status, fields, mut send, mut receive) =
                connect(server.address, uri, Some("websocket")).await;
            assert_eq!(status, StatusCode::OK);
            assert!(!fields.contains_key(SEC_WEBSOCKET_ACCEPT));
            assert!(!fields.contains_key(UPGRADE));
            // More than any window holds, and read only once it is sent.
            let message: Vec<u8> = (0..=250).cycle().take(300_000).collect();
            let mut frames = Vec::new();
            let mask = Some([1, 2, 3, 4]);
            encode_frame(&mut frames, Opcode::Binary, true, &message, mask);
            encode_close(&mut frames, Some(1000), mask);
            send.reserve_capacity(frames.len());
            send.send_data(Bytes::from(frames), false).unwrap();
            let mut decoder = Decoder::new(Role::Client, MessageLimits::default());
            let mut received = Received::default();
            while let Some(piece) = receive.data().await {
                let piece = piece.unwrap();
                receive
                    .flow_control()
                    .release_capacity(piece.len())
                    .unwrap();
                decoder.decode(&piece, &mut received).unwrap();
            }
            // It has ended, and with a close frame.
            assert!(received.is_closed);
            let mut expected = Vec::new();
            encode_frame(&mut expected, Opcode::Binary, true, &message, None);
            encode_close(&mut expected, Some(1000), None);
            assert!(received.answers == expected);
        }
    });
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.requests[2][1], 2);
    assert_eq!(snapshot.panics, 0);
}

#[test]
fn a_success_without_a_tunnel_does_not_reach_a_client_that_asked_for_one() {
    let server = Server::start(&plan(Limits::default(), || text("hello")));
    run(async {
        // The action responds with 200, by which the client would understand that the tunnel is open (RFC 8441, section 5).
        let nothing = "nothing here can be connected to\n";
        // No action sees a protocol that is not served.
        let unknown = "of the protocols for extended CONNECT only websocket is supported\n";
        for (protocol, expected) in [("websocket", nothing), ("other", unknown)] {
            let (status, _, _send, mut receive) =
                connect(server.address, "http://a/chat", Some(protocol)).await;
            assert_eq!(status, StatusCode::NOT_IMPLEMENTED);
            let content = receive.data().await.unwrap().unwrap();
            assert_eq!(content, expected);
        }
    });
}
