//! k6/ws and k6/websockets.

use plimsoll_testkit::{WebSocketAnswer, WebSocketHandshake, WebSocketOrigin};

use crate::fixture::run_script;

fn lines(text: &str, origin: &WebSocketOrigin) -> (Vec<String>, crate::fixture::Ran) {
    let ran = run_script(
        &text.replace("ADDRESS", &format!("ws://{}", origin.address())),
        "",
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    (ran.log.clone(), ran)
}

#[test]
fn sessions_run_until_they_are_closed() {
    let origin = WebSocketOrigin::echo();
    let (log, ran) = lines(
        "import ws from 'k6/ws'; import { check } from 'k6';
         export const options = { iterations: 2, thresholds: { 'ws_sessions{status:101}': ['count==2'] } };
         export default function () {
           const seen = [];
           const response = ws.connect('ADDRESS/chat', { headers: { 'X-Own': 'o' } }, (socket) => {
             socket.on('open', () => { socket.send('first'); socket.sendBinary(new Uint8Array([1, 2, 255]).buffer); });
             socket.on('message', (text) => seen.push(text));
             socket.on('binaryMessage', (data) => { seen.push(new Uint8Array(data).join('-')); socket.ping(); });
             socket.on('pong', () => { seen.push('pong'); socket.setTimeout(() => { seen.push('timer'); socket.close(); }, 20); });
             let ticks = 0; socket.setInterval(() => { if (ticks++ === 0) seen.push('tick'); }, 5);
             socket.on('close', (code) => seen.push(code));
           });
           console.log(seen.filter((it) => it !== 'tick').join(' '), seen.includes('tick'), response.status);
         }",
        &origin,
    );
    let expected = "Info: first 1-2-255 pong timer 1000 true 101";
    assert_eq!(log, [expected, expected]);
    assert_eq!(ran.metric("ws_sessions", "count"), 2.0);
    assert_eq!(ran.metric("ws_msgs_sent", "count"), 4.0);
    assert_eq!(ran.metric("ws_msgs_received", "count"), 4.0);
    assert!(ran.metric("ws_session_duration", "min") >= 20.0);
    assert!(ran.metric("ws_ping", "max") > 0.0);
    assert!(ran.metric("ws_connecting", "max") > 0.0);
}

#[test]
fn a_refused_session_has_a_duration_in_one_module_only() {
    for (module, open, has_duration) in [
        (
            "import ws from 'k6/ws';",
            "ws.connect('ADDRESS/', null, () => {})",
            true,
        ),
        (
            "import { WebSocket } from 'k6/websockets';",
            "new WebSocket('ADDRESS/').onerror = () => {}",
            false,
        ),
    ] {
        let origin = WebSocketOrigin::greeting(|_| WebSocketHandshake::Refuse(403));
        let script = format!("{module}\nexport default function () {{ {open}; }}");
        let (_, ran) = lines(&script, &origin);
        assert_eq!(ran.metric("ws_sessions", "count"), 1.0, "{module}");
        assert_eq!(
            ran.has_metric("ws_session_duration"),
            has_duration,
            "{module}"
        );
    }
}

#[test]
fn servers_close_ping_and_refuse() {
    let script = "import ws from 'k6/ws';
         export default function () {
           const seen = [];
           const response = ws.connect('ADDRESS/', null, (socket) => {
             for (const name of ['message', 'ping', 'close']) socket.on(name, (value) => seen.push(`${name} ${value}`));
             socket.on('error', (error) => seen.push(`${error.error()}`));
             socket.on('open', () => socket.send('hi'));
           });
           console.log(response.status, seen.join(', '));
         }";
    let check = |answer: WebSocketAnswer, expected: &str| {
        let origin = WebSocketOrigin::answering(move |_| answer.clone());
        assert_eq!(lines(script, &origin).0, [format!("Info: {expected}")]);
    };
    check(
        WebSocketAnswer::Close(4001, "enough"),
        "101 websocket: close 4001: enough, close 4001",
    );
    check(
        WebSocketAnswer::Vanish,
        "101 websocket: close 1006 (abnormal closure), close 1006",
    );
    check(
        WebSocketAnswer::Raw(vec![0xff, 0xff]),
        "101 a reserved bit of a frame is set, close 1002",
    );
    let origin = WebSocketOrigin::greeting(|_| WebSocketHandshake::Refuse(403));
    assert_eq!(lines(script, &origin).0, ["Info: 403 "]);
    let refused = script.replace(
        "response.status, seen",
        "response.status, response.url === '', response.error === '', seen",
    );
    assert_eq!(lines(&refused, &origin).0, ["Info: 403 true true "]);
    let gone = "import ws from 'k6/ws';
         export default function () {
           const response = ws.connect('ws://127.0.0.1:1/', null, () => {}); console.log(response.status, response.error);
         }";
    let (log, ran) = lines(gone, &origin);
    let refused = "dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!(log, [format!("Info: 0 {refused}")]);
    assert_eq!(ran.code, 0);
    let wrong = gone.replace("ws://127", "http://127");
    assert_eq!(
        lines(&wrong, &origin).0,
        ["Info: 0 malformed ws or wss URL"]
    );
    let throwing = gone.replace(
        "export default",
        "export const options = { throw: true }; export default",
    );
    let log = lines(&throwing, &origin).0;
    assert!(
        log[0].starts_with(&format!("Error: GoError: {refused}")),
        "{log:?}"
    );
}

#[test]
fn sockets_of_the_event_loop_run_side_by_side() {
    let origin = WebSocketOrigin::echo();
    let (log, ran) = lines(
        "import { WebSocket, Blob } from 'k6/websockets'; import { setTimeout } from 'k6/timers';
         export const options = { iterations: 2 };
         const talk = (name) => new Promise((done) => {
           const seen = [];
           const socket = new WebSocket('ADDRESS/' + name);
           socket.binaryType = 'arraybuffer';
           seen.push(socket.readyState);
           socket.onopen = () => { seen.push('open', socket.readyState); socket.send(name); socket.send(new Blob(['b', name])); };
           socket.addEventListener('message', async (event) => {
             seen.push(typeof event.data === 'string' ? event.data : new TextDecoder().decode(event.data));
             if (typeof event.data !== 'string') setTimeout(() => socket.close(3001, 'bye'), 5);
           });
           socket.onclose = (event) => { seen.push(event.code, socket.readyState); done(seen.join(' ')); };
         });
         export default async function () { console.log((await Promise.all([talk('one'), talk('two')])).join(' | ')); }",
        &origin,
    );
    let expected = "Info: 0 open 1 one bone 3001 3 | 0 open 1 two btwo 3001 3";
    assert_eq!(log, [expected, expected]);
    assert_eq!(ran.metric("ws_sessions", "count"), 4.0);
}

#[test]
fn blobs_give_their_content_in_every_form() {
    let script = "import { Blob } from 'k6/websockets';
         export default async function () {
           const blob = new Blob(['ab', new Uint8Array([99, 100]), new Blob(['e'])], { type: 'text/plain' });
           const reader = blob.stream().getReader();
           const { value, done } = await reader.read();
           const end = await reader.read();
           console.log(blob.size, blob.type, await blob.text(), (await blob.bytes()).join('-'), value.join('-'), done, end.done);
           console.log((await blob.arrayBuffer()).byteLength, await blob.slice(1, 3).text(), (await new Blob().stream().getReader().read()).done);
         }";
    let ran = run_script(script, "");
    let bytes = "97-98-99-100-101";
    let first = format!("Info: 5 text/plain abcde {bytes} {bytes} false true");
    assert_eq!(ran.log, [first.as_str(), "Info: 5 bc true"]);
}

#[test]
fn a_socket_that_stays_open_ends_with_its_iteration() {
    let origin = WebSocketOrigin::echo();
    let (_, ran) = lines(
        "import ws from 'k6/ws';
         export const options = { scenarios: { one: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' } } };
         export default function () { ws.connect('ADDRESS/', null, (socket) => socket.on('open', () => socket.send('x'))); }",
        &origin,
    );
    assert_eq!(ran.metric("ws_msgs_received", "count"), 2.0);
    assert!(!ran.has_metric("iterations"), "both are interrupted");
}
