//! k6/x/sse.

use plimsoll_testkit::{Origin, Script, Step};

use crate::fixture::run_script;
use crate::server::Server;

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

const SCRIPT: &str = "import sse from 'k6/x/sse';
    import { check } from 'k6';
    export const options = { thresholds: { sse_event: ['count>0'] } };
    export default function () {
      const response = sse.open('URL', { headers: { 'X-Mine': 'me' }, tags: { kind: 'ticker' } }, (client) => {
        client.on('open', () => console.log('open'));
        client.on('event', (event) => {
          console.log(event.id, event.name, event.data);
          if (event.name === 'last') client.close();
        });
        client.on('error', (error) => console.log('error', error.error()));
      });
      console.log(response.status, response.error, response.headers['Content-Type']);
      check(response, { 'is open': (it) => it.status === 200 });
    }";

#[test]
fn events_reach_the_script_while_the_stream_is_open() {
    // The stream goes on, so the script has to close it.
    let text =
        format!("{HEAD}: comment\nid: 1\ndata: one\ndata: two\n\nevent: last\ndata: three\n\nda");
    let script = Script::new()
        .then(Step::ReadHead)
        .then(Step::Write(text.into_bytes()))
        .then(Step::Hold);
    let server = Origin::scripted(script);
    let ran = run_script(SCRIPT, &server.url("/events"));
    let expected = [
        "Info: open",
        "Info: 1 message one\ntwo",
        "Info: 1 last three",
        "Info: 200  text/event-stream",
    ];
    assert_eq!(ran.console, expected, "{ran:#?}");
    assert_eq!(ran.code, 0);
    assert_eq!(ran.metric("sse_event", "count"), 2.0);
    assert_eq!(ran.metric("http_reqs", "count"), 1.0);
    assert!(ran.metric("data_received", "count") > 50.0, "{ran:#?}");
    let head = server.heads().join("");
    for field in ["X-Mine: me", "Accept: text/event-stream"] {
        assert!(head.contains(field), "{head}");
    }
}

#[test]
fn a_stream_that_its_server_ends_returns() {
    let text = format!("{HEAD}data: only\n\n");
    let server = Origin::scripted(Script::answer_once(text));
    let ran = run_script(SCRIPT, &server.url("/"));
    let expected = [
        "Info: open",
        "Info:  message only",
        "Info: 200  text/event-stream",
    ];
    assert_eq!(ran.console, expected, "{ran:#?}");
}

#[test]
fn what_is_no_stream_is_an_error() {
    let server = Server::start();
    let ran = run_script(SCRIPT, &format!("{}/json", server.url()));
    let message =
        "the response is not a stream of events: its content type is \"application/json\"";
    let expected = [
        format!("Info: error {message}"),
        format!("Info: 200 {message} application/json"),
    ];
    assert_eq!(ran.console, expected, "{ran:#?}");
    let ran = run_script(SCRIPT, "http://127.0.0.1:1/");
    assert_eq!(
        ran.console[0], "Info: error dial: connection refused",
        "{ran:#?}"
    );
    assert_eq!(ran.metric("http_req_failed", "value"), 1.0);
    assert_eq!(ran.code, 99);
}
