//! Conversations over WebSockets that a mock holds: with our load generator, another client, and a browser.

use plimsoll_testkit::{MaterialFiles, eventually};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, connect};

use crate::browser::Browser;
use crate::mock::mock;
use crate::plimsoll::plimsoll;
use crate::served::Served;

const RULES: &str = r#"
[[rules]]
when.request.url_path = "/chat"
[rules.respond]
template = true
[rules.respond.websocket]
protocols = ["chat"]
open = [{ text = "welcome" }]
messages = [
  { when.json.add = { op = "exists" }, say = { json = '{ "sum": {{request.json.add}} }', after = "1ms" } },
  { when.text = "bye", say = [{ text = "goodbye" }, { close = 4000, reason = "as you wish" }] },
  { say = { echo = true } },
]

[[rules]]
when.request.url_path = "/echo"
respond.websocket.messages = [{ say = { echo = true } }]

[[rules]]
when.request.url_path = "/"
[rules.respond]
headers = { content-type = "text/html; charset=utf-8" }
text = '''
<p id="log"></p>
<script>
  const socket = new WebSocket(location.href.replace("http", "ws") + "chat", "chat");
  const log = document.getElementById("log");
  const note = (text) => { log.textContent += text + ";"; };
  socket.onopen = () => { note("open " + socket.protocol); socket.send('{"add": 5}'); socket.send("ü"); socket.send("bye"); };
  socket.onmessage = (event) => note(event.data);
  socket.onclose = (event) => note("closed " + event.code + " " + event.reason + " " + event.wasClean);
</script>
'''
"#;

fn start() -> (Served, MaterialFiles) {
    let files = MaterialFiles::new();
    let rules = files.write("rules.toml", RULES);
    (mock(&[&rules.to_string_lossy()]), files)
}

#[test]
fn another_client_holds_the_conversation() {
    let (served, _files) = start();
    let url = format!("{}/chat", served.url.trim_end_matches('/')).replace("http", "ws");
    let (mut socket, _) = connect(url).unwrap();
    assert_eq!(socket.read().unwrap(), Message::text("welcome"));
    socket.send(Message::text("{\"add\": 3}")).unwrap();
    assert_eq!(socket.read().unwrap(), Message::text("{ \"sum\": 3 }"));
    let long = vec![7; 100_000];
    socket.send(Message::binary(long.clone())).unwrap();
    assert_eq!(socket.read().unwrap(), Message::binary(long));
    socket.send(Message::Ping("p".into())).unwrap();
    assert_eq!(socket.read().unwrap(), Message::Pong("p".into()));
    socket.send(Message::text("bye")).unwrap();
    assert_eq!(socket.read().unwrap(), Message::text("goodbye"));
    let close = CloseFrame {
        code: CloseCode::from(4000),
        reason: "as you wish".into(),
    };
    assert_eq!(socket.read().unwrap(), Message::Close(Some(close)));
}

#[test]
fn it_can_be_loaded_as_streams_of_http2_and_http3() {
    let files = MaterialFiles::new();
    let rules = files.write("rules.toml", RULES);
    let served = mock(&[&rules.to_string_lossy(), "--tls", "--http3"]);
    let url = format!("{}/echo", served.url.trim_end_matches('/')).replace("http", "ws");
    for (flag, protocol) in [("--http2", "HTTP/2"), ("--http3", "HTTP/3")] {
        let summary = plimsoll(&[
            "load", "--json", "--no-tui", flag, "-k", "-c", "2", "-p", "3", "-n", "600", "-d",
            "hello", &url,
        ]);
        let json = summary.json();
        assert_eq!(json["counts"]["ok"], 600, "{json:#}");
        assert_eq!(json["counts"]["failed"], 0, "{json:#}");
        assert_eq!(json["load"]["protocol"], protocol);
        assert_eq!(json["load"]["exchanges"], "round trips");
        assert_eq!(json["messages"]["sent"], 600);
        assert_eq!(json["messages"]["received"], 600);
        assert_eq!(json["connections_opened"], 2, "{json:#}");
    }
}

#[test]
fn a_path_that_is_no_websocket_is_refused_on_a_stream_too() {
    let (served, _files) = start();
    let url = format!("{}/", served.url.trim_end_matches('/')).replace("http", "ws");
    let summary = plimsoll(&[
        "load", "--json", "--no-tui", "--http2", "-c", "1", "-n", "1", &url,
    ]);
    let json = summary.json();
    assert_eq!(json["failures"][0]["kind"], "upgrade-refused", "{json:#}");
}

#[test]
fn it_can_be_loaded() {
    let (served, _files) = start();
    let url = format!("{}/echo", served.url.trim_end_matches('/')).replace("http", "ws");
    let summary = plimsoll(&[
        "load", "--json", "-n", "200", "-c", "4", "-d", "grüße", &url,
    ]);
    let summary = summary.exits(0).json();
    assert_eq!(summary["counts"]["ok"], 200);
    assert_eq!(summary["messages"]["received"], 200);
}

#[test]
fn browsers_hold_it_too() {
    let (served, _files) = start();
    let mut browser = Browser::start();
    browser.open(&served.url);
    let expected = "open chat;welcome;ü;goodbye;closed 4000 as you wish true;";
    let sum = "{ \"sum\": 5 };";
    // The sum comes later than what is answered at once, unless the machine is slow.
    eventually(|| browser.text().replace(sum, "").contains(expected));
}
