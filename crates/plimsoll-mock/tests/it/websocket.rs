//! WebSockets that rules describe.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_mock::config;
use plimsoll_wire::ws::{
    Decoder, Event, FrameSink, Limits, MessageKind, Opcode, Role, encode_close, encode_frame,
};

use crate::mock::{self, Served};

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Frames of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Text(String),
    Binary(Vec<u8>),
    Ping(String),
    Pong(String),
    Close(Option<u16>, String),
}

#[derive(Default)]
struct Sink {
    message: Vec<u8>,
    heard: Vec<Heard>,
}

impl FrameSink for Sink {
    fn piece(&mut self, piece: &[u8]) {
        self.message.extend_from_slice(piece);
    }

    fn event(&mut self, event: Event<'_>) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).unwrap();
        self.heard.push(match event {
            Event::Message { kind, .. } => {
                let message = std::mem::take(&mut self.message);
                match kind {
                    MessageKind::Text => Heard::Text(text(&message)),
                    MessageKind::Binary => Heard::Binary(message),
                }
            }
            Event::Ping(payload) => Heard::Ping(text(payload)),
            Event::Pong(payload) => Heard::Pong(text(payload)),
            Event::Close(None) => Heard::Close(None, String::new()),
            Event::Close(Some(close)) => Heard::Close(Some(close.code), close.reason.to_owned()),
        });
    }
}

/// A client of bare frames.
pub(crate) struct Client {
    stream: TcpStream,
    decoder: Decoder,
    sink: Sink,
    pub(crate) head: String,
}

const MASK: [u8; 4] = [1, 2, 3, 4];

impl Client {
    pub(crate) fn open(address: SocketAddr, target: &str, fields: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{fields}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        Self {
            stream,
            decoder: Decoder::new(Role::Client, Limits::default()),
            sink: Sink::default(),
            head: String::from_utf8(head).unwrap(),
        }
    }

    pub(crate) fn send(&mut self, opcode: Opcode, payload: &[u8]) {
        let mut frame = Vec::new();
        encode_frame(&mut frame, opcode, true, payload, Some(MASK));
        self.stream.write_all(&frame).unwrap();
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.send(Opcode::Text, text.as_bytes());
    }

    /// The next frame.
    pub(crate) fn hear(&mut self) -> Heard {
        while self.sink.heard.is_empty() {
            let mut buffer = [0; 4096];
            let read = self.stream.read(&mut buffer).unwrap();
            assert!(read > 0, "the connection has ended");
            self.decoder
                .decode(&buffer[..read], &mut self.sink)
                .unwrap();
        }
        self.sink.heard.remove(0)
    }

    /// Whether nothing more comes, and the connection ends.
    pub(crate) fn has_ended(mut self) -> bool {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).is_ok() && rest.is_empty()
    }
}

fn text(text: &str) -> Heard {
    Heard::Text(text.to_owned())
}

fn served(websocket: &str) -> Served {
    Served::rules(&format!(
        "[[rules]]\nwhen.request.url_path = {{ op = \"pattern\", value = \"/chat/{{room}}\" }}\n\
         [rules.respond]\ntemplate = true\nheaders = {{ x-room = \"{{{{request.path.room}}}}\" }}\n[rules.respond.websocket]\n{websocket}\n"
    ))
}

fn client(served: &Served) -> Client {
    Client::open(served.address(), "/chat/7?name=ann", "")
}

const CHAT: &str = r#"
protocols = ["chat.v2"]
open = [{ text = "welcome to {{request.path.room}}, {{request.query.name}}" }, { base64 = "AP8=" }]
messages = [
  { when.text = "hello", say = { text = "hello yourself" } },
  { when.json.type = "add", say = { json = '{ "sum": {{request.json.by}}, "room": "{{request.path.room}}" }' } },
  { when.jsonpath."$.all[*]" = "b", say = [{ text = "1" }, { text = "2", after = "20ms" }, { text = "3" }] },
  { when.text = { op = "regex", value = "^bye" }, say = [{ text = "bye" }, { close = 4001, reason = "you said so" }] },
  { when.text = "ping", say = { ping = "are you there" } },
  { when.text = "quiet", say = [] },
  { say = { echo = true } },
]
"#;

#[test]
fn a_conversation_goes_as_the_rule_says() {
    let served = served(CHAT);
    let mut client = Client::open(
        served.address(),
        "/chat/7?name=ann",
        "sec-websocket-protocol: chat.v1, chat.v2\r\n",
    );
    let head = client.head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    for field in [
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=",
        "sec-websocket-protocol: chat.v2",
        "x-room: 7",
    ] {
        assert!(
            head.contains(&format!("\r\n{field}\r\n")),
            "no {field} in {head}"
        );
    }
    assert_eq!(client.hear(), text("welcome to 7, ann"));
    assert_eq!(client.hear(), Heard::Binary(vec![0, 255]));
    client.say("hello");
    assert_eq!(client.hear(), text("hello yourself"));
    client.say("{\"type\":\"add\",\"by\":3}");
    assert_eq!(client.hear(), text("{ \"sum\": 3, \"room\": \"7\" }"));
    client.say("{\"all\":[\"a\",\"b\"]}");
    // A waiting message does not hold up later ones.
    client.say("now");
    assert_eq!(client.hear(), text("1"));
    assert_eq!(client.hear(), text("now"));
    assert_eq!(client.hear(), text("2"));
    assert_eq!(client.hear(), text("3"));
    client.send(Opcode::Binary, &[1, 2]);
    assert_eq!(client.hear(), Heard::Binary(vec![1, 2]));
    client.send(Opcode::Ping, b"p");
    assert_eq!(client.hear(), Heard::Pong("p".to_owned()));
    client.say("quiet");
    client.say("ping");
    assert_eq!(client.hear(), Heard::Ping("are you there".to_owned()));
    client.say("bye now");
    assert_eq!(client.hear(), text("bye"));
    assert_eq!(
        client.hear(),
        Heard::Close(Some(4001), "you said so".to_owned())
    );
    assert!(client.has_ended());
}

#[test]
fn what_the_client_ends_has_ended() {
    let served = served(CHAT);
    let mut client = client(&served);
    client.hear();
    client.hear();
    let mut frame = Vec::new();
    encode_close(&mut frame, Some(1001), Some(MASK));
    client.stream.write_all(&frame).unwrap();
    assert_eq!(client.hear(), Heard::Close(Some(1001), String::new()));
    assert!(client.has_ended());
}

#[test]
fn limits_and_mistakes_end_it_with_their_codes() {
    let served = served("message_bytes = \"1KiB\"\nmessages = [{ say = { echo = true } }]");
    for (opcode, payload, code) in [
        (Opcode::Text, vec![b'x'; 1025], 1009),
        (Opcode::Text, vec![0xff], 1007),
        (Opcode::Continuation, vec![b'x'], 1002),
    ] {
        let mut client = client(&served);
        client.send(opcode, &payload);
        match client.hear() {
            Heard::Close(Some(given), reason) => {
                assert_eq!(given, code);
                assert!(!reason.is_empty());
            }
            other => panic!("{other:?} for {code}"),
        }
        assert!(client.has_ended());
    }
    let mut client = client(&served);
    client.send(Opcode::Text, &[b'x'; 1024]);
    assert_eq!(client.hear(), text(&"x".repeat(1024)));
}

#[test]
fn too_much_that_waits_ends_it() {
    let served = served("messages = [{ say = { text = \"later\", after = \"1h\" } }]");
    let mut client = client(&served);
    for _ in 0..=1000 {
        client.say("more");
    }
    let expected = Heard::Close(Some(1008), "too many answers wait".to_owned());
    assert_eq!(client.hear(), expected);
}

#[test]
fn a_client_that_does_not_read_is_given_up() {
    let long = "x".repeat(8 << 20);
    let rule = format!("open = [{{ text = \"{long}\" }}]\nwrite_timeout = \"50ms\"");
    let served = served(&rule);
    let mut client = client(&served);
    // Until the server has reset it, everything that is sent is taken.
    let sent = (0..100_000).find(|_| {
        let mut frame = Vec::new();
        encode_frame(&mut frame, Opcode::Text, true, &[b'y'; 4096], Some(MASK));
        client.stream.write_all(&frame).is_err()
    });
    assert!(sent.is_some());
}

#[test]
fn pings_are_sent_and_have_to_be_answered() {
    let served = served("ping = \"10ms\"");
    let mut client = client(&served);
    assert_eq!(client.hear(), Heard::Ping(String::new()));
    client.send(Opcode::Pong, &[]);
    // It never answers again. What it has sent may come too late to be read, and resets the connection.
    let mut buffer = [0; 4096];
    while client.stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

#[test]
fn what_is_no_handshake_is_reported_how_it_would_be_one() {
    let served = served(CHAT);
    let answer = served.get("/chat/7");
    assert_eq!(
        (answer.status, answer.field("upgrade")),
        (426, Some("websocket"))
    );
    assert!(answer.text().contains("ask for it by"), "{}", answer.text());
    let fields = [
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 8",
    ];
    let answer = served.ask("GET", "/chat/7", &fields, "");
    assert_eq!(answer.field("sec-websocket-version"), Some("13"));
}

#[test]
fn they_come_over_http2_too() {
    let served = served(
        "open = [{ text = \"welcome\" }]\nmessages = [{ say = [{ echo = true }, { close = 1000 }] }]",
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let local = tokio::task::LocalSet::new();
    let heard = local.block_on(&runtime, async {
        let stream = tokio::net::TcpStream::connect(served.address())
            .await
            .unwrap();
        let (requests, mut connection) = h2::client::handshake(stream).await.unwrap();
        // The server says that it takes extended CONNECT before it answers a ping.
        let mut pings = connection.ping_pong().unwrap();
        tokio::task::spawn_local(connection);
        pings.ping(h2::Ping::opaque()).await.unwrap();
        let mut requests = requests.ready().await.unwrap();
        assert!(requests.is_extended_connect_protocol_enabled());
        let request = http::Request::builder()
            .method("CONNECT")
            .uri("http://a/chat/7")
            .header("sec-websocket-version", "13")
            .extension(h2::ext::Protocol::from_static("websocket"))
            .body(())
            .unwrap();
        let (response, mut send) = requests.send_request(request, false).unwrap();
        let (parts, mut receive) = response.await.unwrap().into_parts();
        assert_eq!(parts.status, 200);
        assert_eq!(parts.headers["x-room"], "7");
        let mut frame = Vec::new();
        encode_frame(&mut frame, Opcode::Text, true, b"hello", Some(MASK));
        send.send_data(frame.into(), false).unwrap();
        let mut decoder = Decoder::new(Role::Client, Limits::default());
        let mut sink = Sink::default();
        while let Some(piece) = receive.data().await {
            decoder.decode(&piece.unwrap(), &mut sink).unwrap();
            if matches!(sink.heard.last(), Some(Heard::Close(..))) {
                break;
            }
        }
        sink.heard
    });
    let close = Heard::Close(Some(1000), String::new());
    assert_eq!(heard, [text("welcome"), text("hello"), close]);
}

#[test]
fn mistakes_are_reported() {
    for (websocket, expected) in [
        ("open = [{}]", "must say one thing"),
        (
            "open = [{ text = \"a\", ping = \"b\" }]",
            "must say one thing",
        ),
        ("open = [{ echo = true }]", "no message to give back"),
        ("open = [{ json = \"{\" }]", "is no JSON"),
        ("open = [{ close = 1005 }]", "must not be sent"),
        (
            "open = [{ text = \"a\", reason = \"b\" }]",
            "a `reason` is of `close`",
        ),
        ("messages = [{ when.text = \"a\" }]", "`say` is missing"),
        ("messages = [{ when.txt = \"a\", say = [] }]", "unknown key"),
        (
            "messages = [{ when.jsonpath.\"$[\" = \"a\", say = [] }]",
            "is no JSONPath",
        ),
        ("ping = \"0s\"", "would never pause"),
        ("message_bytes = \"1GiB\"", "256 MiB at most"),
        ("protocols = [\"a b\"]", "no name of a protocol"),
    ] {
        let rules = format!(
            "[[rules]]\nwhen.request.url_path = \"/\"\n[rules.respond.websocket]\n{websocket}\n"
        );
        let folder = mock::files(&[("rules.toml", &rules)]);
        let problems = config::load(&folder.path().join("rules.toml")).unwrap_err();
        let reported: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let is_reported = reported.iter().any(|it| it.contains(expected));
        assert!(is_reported, "no {expected} in {reported:?}");
    }
}
