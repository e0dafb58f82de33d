//! Allocations of a steady request: a change that adds some shows here.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_server::config::ActionKind;
use plimsoll_server::{Action, Answer, Request, Response, WorkerContext};
use plimsoll_testkit::http::connect;
use plimsoll_testkit::{Origin, allocations_of_this_thread, take_peak_of_this_thread};

use crate::server::Served;

/// The action `count` of a route: responds with the allocations of its worker so far.
pub(crate) const COUNT: ActionKind = ActionKind {
    key: "count",
    compile: |_, _| {
        Some(Arc::new(|_: &WorkerContext| {
            Rc::new(Count) as Rc<dyn Action>
        }))
    },
};

/// The action `peak` of a route: responds with the most bytes that its worker held at once since it was last called.
pub(crate) const PEAK: ActionKind = ActionKind {
    key: "peak",
    compile: |_, _| {
        Some(Arc::new(|_: &WorkerContext| {
            Rc::new(Peak) as Rc<dyn Action>
        }))
    },
};

struct Peak;

impl Action for Peak {
    fn handle(&self, _request: &Request<'_>) -> Answer {
        let peak = take_peak_of_this_thread().to_string();
        Answer::now(Response::text(http::StatusCode::OK, peak))
    }
}

struct Count;

impl Action for Count {
    fn handle(&self, _request: &Request<'_>) -> Answer {
        let count = allocations_of_this_thread().to_string();
        Answer::now(Response::text(http::StatusCode::OK, count))
    }
}

/// Sends a request and reads its response, whose length is announced; returns the content.
fn get(stream: &mut TcpStream, path: &str) -> String {
    get_with(stream, path, "")
}

/// The same with more fields.
fn get_with(stream: &mut TcpStream, path: &str, fields: &str) -> String {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\nAccept: */*\r\n{fields}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut read = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
        let Some((head, content)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let (_, length) = head.split_once("content-length: ").unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if content.len() == length {
            return content.to_owned();
        }
    }
}

#[test]
fn a_steady_request_takes_few_allocations() {
    const REQUESTS: u64 = 200;
    let origin = Origin::hello();
    let url = origin.url("");
    let gateway = Served::routes(&format!(
        "[[route]]\npath = \"/count\"\ncount = {{}}\n[[route]]\nproxy = \"{}\"\n",
        url.trim_end_matches('/')
    ));
    let mut stream = connect(gateway.address());
    for _ in 0..20 {
        get(&mut stream, "/x?a=b");
    }
    let before: u64 = get(&mut stream, "/count").parse().unwrap();
    for _ in 0..REQUESTS {
        assert!(get(&mut stream, "/x?a=b").contains("hello"));
    }
    let after: u64 = get(&mut stream, "/count").parse().unwrap();
    let each = (after - before) / REQUESTS;
    // The exchange, the answer and the response; the request in three pieces, the fields of the response in two and its
    // content in one; the state of the exchange.
    assert!(each <= 12, "{each} allocations per request");
}

#[test]
fn a_token_that_was_verified_before_takes_none() {
    const REQUESTS: u64 = 200;
    let provider = plimsoll_testkit::IdentityProvider::new("https://a.test/");
    let gateway = Served::routes(&format!(
        "[[route]]\npath = \"/count\"\ncount = {{}}\n[[route]]\npath = \"/open\"\nrespond = {{ body = \"hello\" }}\n\
         [[route]]\njwt = {{ issuer = \"{}\", audience = \"api\" }}\nrespond = {{ body = \"hello\" }}\n",
        provider.url()
    ));
    let token = provider.token(&serde_json::json!({}));
    let fields = format!("Authorization: Bearer {token}\r\n");
    let mut stream = connect(gateway.address());
    let mut allocations = |path: &str| {
        for _ in 0..20 {
            assert_eq!(get_with(&mut stream, path, &fields), "hello");
        }
        let before: u64 = get(&mut stream, "/count").parse().unwrap();
        for _ in 0..REQUESTS {
            get_with(&mut stream, path, &fields);
        }
        let after: u64 = get(&mut stream, "/count").parse().unwrap();
        (after - before) / REQUESTS
    };
    assert_eq!(allocations("/x"), allocations("/open"));
}
