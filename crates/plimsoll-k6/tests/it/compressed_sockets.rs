//! Compressed messages of k6/ws and k6/websockets, with a server that compresses by zlib.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::fixture::run_script;

const SERVER: &str = include_str!("compressed_sockets.py");

const AGREED: &str = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: String,
}

impl Server {
    fn start() -> Self {
        let mut child = Command::new("python3")
            .args(["-c", SERVER])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is installed");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap();
        Self { child, lines, port }
    }

    /// Runs a script whose `ADDRESS` is the server with this query; returns the lines of its console and those of the server up to the
    /// end of the connection.
    fn run(&mut self, script: &str, query: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(query)
            .finish();
        let address = format!("ws://127.0.0.1:{}/?{query}", self.port);
        let ran = run_script(&script.replace("ADDRESS", &address), "");
        assert_eq!(ran.code, 0, "{ran:#?}");
        let mut seen = Vec::new();
        for line in &mut self.lines {
            seen.push(line.unwrap());
            let last = seen.last().unwrap();
            if last.starts_with("close") || last == "gone" {
                break;
            }
        }
        (ran.console, seen)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Sends a short, a long, an empty and a binary message, one after the other, and prints what comes back.
const BLOCKING: &str = "import ws from 'k6/ws';
    export default function () {
      const long = Array.from({ length: 20000 }, (_, number) => `${number * 7919 % 10007}`).join(' ');
      const sent = ['Hello', long, '', new Uint8Array([0, 255, 0, 255]).buffer];
      const seen = [];
      const response = ws.connect('ADDRESS', { compression: 'deflate' }, (socket) => {
        const next = () => {
          if (seen.length === sent.length) return socket.close();
          const message = sent[seen.length];
          if (typeof message === 'string') socket.send(message); else socket.sendBinary(message);
        };
        socket.on('open', next);
        socket.on('message', (text) => { seen.push(text === long ? 'long' : text); next(); });
        socket.on('binaryMessage', (data) => { seen.push(new Uint8Array(data).join('-')); next(); });
        socket.on('error', (error) => { seen.push(error.error()); });
      });
      console.log(response.status, seen.join('|'), response.headers['Sec-Websocket-Extensions'], response.error);
    }";

#[test]
fn messages_are_compressed_both_ways() {
    let mut server = Server::start();
    for (accept, bits) in [
        (AGREED, "15"),
        (
            "permessage-deflate; server_no_context_takeover; server_max_window_bits=9",
            "9",
        ),
    ] {
        let (console, seen) = server.run(BLOCKING, &[("accept", accept), ("bits", bits)]);
        let expected = format!("Info: 101 Hello|long||0-255-0-255 {accept} ");
        assert_eq!(console, [expected]);
        assert_eq!(
            seen,
            [
                format!("offer {AGREED}").as_str(),
                "message 1 compressed 5",
                "message 1 compressed 97795",
                "message 1 compressed 0",
                "message 2 compressed 4",
                "close 1000",
            ]
        );
    }
}

#[test]
fn a_server_may_decline_compression() {
    let mut server = Server::start();
    let (console, seen) = server.run(BLOCKING, &[]);
    assert_eq!(console, ["Info: 101 Hello|long||0-255-0-255 undefined "]);
    assert_eq!(seen[1], "message 1 plain 5");
    let silent = BLOCKING.replace("'deflate'", "''");
    assert_eq!(server.run(&silent, &[]).1[0], "offer none");
}

#[test]
fn sockets_of_the_event_loop_compress_too() {
    let mut server = Server::start();
    let script = "import { WebSocket } from 'k6/websockets';
         export default function () {
           const socket = new WebSocket('ADDRESS', null, { compression: 'deflate' });
           socket.onopen = () => socket.send('Hello');
           socket.onmessage = (event) => { console.log(event.data, socket.extensions); socket.close(); };
         }";
    let (console, seen) = server.run(script, &[("accept", AGREED)]);
    assert_eq!(console, [format!("Info: Hello {AGREED}")]);
    assert_eq!(seen[1..], ["message 1 compressed 5", "close 1000"]);
}

#[test]
fn a_response_that_does_not_answer_the_offer_opens_no_socket() {
    let mut server = Server::start();
    let mut check = |script: &str, accept: &str, expected: &str| {
        let (console, seen) = server.run(script, &[("accept", accept)]);
        assert_eq!(
            console,
            [format!(
                "Info: 101  {accept} websocket: bad handshake: {expected}"
            )]
        );
        assert_eq!(seen[1..], ["gone"]);
    };
    let other = "the server accepts compression with parameters that were not offered";
    for accept in [
        "permessage-deflate",
        "permessage-deflate; server_no_context_takeover; client_max_window_bits=10",
    ] {
        check(BLOCKING, accept, &format!("{other}: {accept}"));
    }
    let unasked = "the server uses an extension that was not offered";
    check(BLOCKING, "x-own", &format!("{unasked}: x-own"));
    let silent = BLOCKING.replace("'deflate'", "undefined");
    check(&silent, AGREED, &format!("{unasked}: {AGREED}"));
}

#[test]
fn frames_that_break_the_rules_end_the_connection() {
    let mut server = Server::start();
    let script = "import ws from 'k6/ws';
         export default function () {
           const seen = [];
           ws.connect('ADDRESS', { compression: 'deflate' }, (socket) => {
             for (const name of ['message', 'binaryMessage', 'close']) socket.on(name, (value) => seen.push(`${name} ${value}`));
             socket.on('error', (error) => seen.push(error.error()));
           });
           console.log(seen.join(', '));
         }";
    let mut check = |frames: &str, accept: Option<&str>, error: &str, code: u16| {
        let accept = accept.map(|accept| ("accept", accept));
        let query: Vec<_> = accept.into_iter().chain([("raw", frames)]).collect();
        let (console, seen) = server.run(script, &query);
        assert_eq!(console, [format!("Info: {error}, close {code}")]);
        assert_eq!(seen[1..], [format!("close {code}")]);
    };
    let reserved = "a reserved bit of a frame is set";
    let invalid = "a compressed message is not valid DEFLATE";
    check("c107f248cdc9c90700", None, reserved, 1002);
    check("c900", Some(AGREED), reserved, 1002);
    check("a100", Some(AGREED), reserved, 1002);
    check("4103f248cdc004c9c90700", Some(AGREED), reserved, 1002);
    check("c10107", Some(AGREED), invalid, 1007);
    check("c103f248cd", Some(AGREED), invalid, 1007);
    // A stored block with a byte that is no UTF-8.
    check(
        "c107000100feffff00",
        Some(AGREED),
        "a text is not UTF-8",
        1007,
    );
}

#[test]
fn a_message_that_grows_too_much_ends_the_connection() {
    let mut server = Server::start();
    let mut bomb = compressed_zeros(8 << 20);
    let mut frame = vec![0xc2, 126];
    frame.extend_from_slice(&u16::try_from(bomb.len()).unwrap().to_be_bytes());
    frame.append(&mut bomb);
    let hex = frame.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    let script = "import ws from 'k6/ws';
         export default function () {
           ws.connect('ADDRESS', { compression: 'deflate' }, (socket) => {
             socket.on('binaryMessage', (data) => console.log(data.byteLength));
             socket.on('error', (error) => console.log(error.error()));
           });
         }";
    let (console, seen) = server.run(script, &[("accept", AGREED), ("raw", &hex)]);
    assert_eq!(
        console,
        ["Info: a compressed message decompresses to more than 200 times its length"]
    );
    assert_eq!(seen[1..], ["close 1009"]);
}

/// The payload of a message of so many zeros.
fn compressed_zeros(length: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    plimsoll_wire::ws::Deflater::default().deflate(&vec![0; length], &mut payload);
    payload
}

#[test]
fn other_algorithms_are_rejected_at_the_call() {
    let script = "import ws from 'k6/ws'; import { WebSocket } from 'k6/websockets';
         export default function () {
           for (const open of [() => ws.connect('ws://127.0.0.1:1', { compression: 'gzip' }, () => {}), () => new WebSocket('ws://127.0.0.1:1', null, { compression: 'gzip' })]) {
             try { open(); } catch (error) { console.log(error.message); }
           }
         }";
    let ran = run_script(script, "");
    let expected = "Info: params.compression of a WebSocket must be \"deflate\", not \"gzip\"";
    assert_eq!(ran.console, [expected, expected]);
}
