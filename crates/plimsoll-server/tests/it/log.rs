//! The access log: what it says of every way that a request can end.

use std::io::{self, Write};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_server::{
    AccessLog, Action, Answer, Counters, Echo, Limits, LogFormat, PathCondition, Request,
    RouteConditions, Routes,
};
use plimsoll_testkit::eventually;
use serde_json::Value;

use crate::server::{Server, plan, text};

/// Lines that were written.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn parsed(&self) -> Vec<Value> {
        let bytes = self.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Never answers, and counts requests.
struct Silent(Arc<AtomicBool>);

impl Action for Silent {
    fn handle(&self, _: &Request<'_>) -> Answer {
        self.0.store(true, Ordering::Relaxed);
        Answer::later(std::future::pending())
    }
}

/// An engine that logs, what it wrote, and whether the silent route got a request.
fn logged() -> (Server, Lines, Arc<AtomicBool>) {
    let reopened = Arc::<AtomicBool>::default();
    let is_reopened = Arc::clone(&reopened);
    let counters = Arc::<Counters>::default();
    let log = AccessLog::new(LogFormat::json(), 1 << 20, Arc::clone(&counters));
    let lines = Lines::default();
    let sink = lines.clone();
    log.write_to(Box::new(move || Ok(Box::new(sink.clone()))))
        .unwrap();
    let server = Server::start(&plan(Limits::default(), move || {
        let route = |path: &str, action: Rc<dyn Action>| {
            let conditions = RouteConditions::of_path(PathCondition::exact(path).unwrap());
            (conditions, counters.route(path), action)
        };
        log.over(Rc::new(Routes::new(vec![
            route("/hello", text("hello")),
            route("/echo", Rc::new(Echo)),
            route("/silent", Rc::new(Silent(Arc::clone(&is_reopened)))),
        ])))
    }));
    (server, lines, reopened)
}

#[test]
fn every_request_leaves_one_line() {
    let (server, lines, _) = logged();
    server.talk(
        "GET /hello?a=b HTTP/1.1\r\nhost: example.org\r\nuser-agent: x\"y\r\nreferer: r\r\n\r\n\
         HEAD /hello HTTP/1.1\r\nhost: a\r\n\r\n\
         POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
         GET /none HTTP/1.0\r\n\r\n",
    );
    server.talk("GET / HTTP/1.1\r\nbad header: a\r\n\r\n");
    eventually(|| lines.parsed().len() == 5);
    let lines = lines.parsed();
    let texts = |key: &str| -> Vec<_> {
        lines
            .iter()
            .map(|line| line.get(key).cloned().unwrap_or_default())
            .collect()
    };
    assert_eq!(texts("status"), [200, 200, 200, 404, 400]);
    assert_eq!(texts("bytes"), [5, 0, 3, 10, 0]);
    assert_eq!(lines[0]["route"], "/hello");
    assert_eq!(lines[0]["query"], "a=b");
    assert_eq!(lines[0]["user_agent"], "x\"y");
    assert_eq!(lines[0]["referer"], "r");
    assert_eq!(lines[0]["host"], "example.org");
    assert_eq!(lines[1]["method"], "HEAD");
    assert_eq!(lines[3]["protocol"], "HTTP/1.0");
    assert_eq!(lines[3].get("route"), None);
    assert!(lines[4]["refused"].is_string(), "{}", lines[4]);
    assert!(lines.iter().all(|line| line["complete"] == true));
}

#[test]
fn what_breaks_off_is_logged_as_that() {
    let (server, lines, is_reopened) = logged();
    let mut stream = server.connect();
    stream
        .write_all(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc")
        .unwrap();
    crate::server::expect(
        &mut stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: 9\r\n\r\nabc",
    );
    drop(stream);
    eventually(|| lines.parsed().len() == 1);
    let line = lines.parsed().remove(0);
    assert_eq!(line["complete"], false);
    assert_eq!(line["bytes"], 3);
    let mut stream = server.connect();
    stream
        .write_all(b"GET /silent HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    eventually(|| is_reopened.load(Ordering::Relaxed));
    drop(server);
    eventually(|| lines.parsed().len() == 2);
    assert_eq!(lines.parsed()[1]["status"], 499);
}
