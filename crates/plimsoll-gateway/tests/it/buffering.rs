//! Requests whose content is read whole before a server gets it.

use std::io::{Read as _, Write as _};

use plimsoll_testkit::http::{connect, exchange};
use plimsoll_testkit::{Logic, Origin, Reply, Script, Step};

use crate::server::Served;

const CHUNKED: &str = "PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
    2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";

#[test]
fn no_connection_is_opened_before_the_content_is_there_and_its_length_is_sent() {
    let origin = Origin::hello();
    let gateway = Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{}\", buffer_request = \"1KiB\" }}\n",
        origin.url("").trim_end_matches('/')
    ));
    let mut stream = connect(gateway.address());
    let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\n\
        Transfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    // The gateway reads the content, which a streamed request begins only once it has a connection.
    assert_eq!(origin.open_connections(), 0);
    stream.write_all(b"5\r\nhello\r\n0\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let head = origin.heads().pop().unwrap().to_ascii_lowercase();
    assert!(head.contains("content-length: 5"), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
}

#[test]
fn content_beyond_the_buffer_gets_a_413() {
    let origin = Origin::hello();
    let gateway = Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{}\", buffer_request = \"4B\" }}\n",
        origin.url("").trim_end_matches('/')
    ));
    assert_eq!(exchange(gateway.address(), CHUNKED.as_bytes()).status, 413);
    let announced =
        "PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(
        exchange(gateway.address(), announced.as_bytes()).status,
        413
    );
    assert_eq!(origin.requests(), 0);
}

#[test]
fn a_buffered_request_is_retried_with_its_content() {
    let logic = Logic::new(|_| Reply::new(503, &[]));
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    let failing = Origin::builder().script(script).start();
    let echo = Served::routes("[[route]]\necho = {}\n");
    let gateway = |buffer: &str| {
        Served::routes(&format!(
            "[[route]]\nproxy = {{ to = \"all\"{buffer} }}\n[upstream.all]\nservers = [\"{}\", \"{}\"]\n\
            retry = {{ on = [\"503\"], budget = 100 }}\n",
            failing.url("").trim_end_matches('/'),
            echo.url()
        ))
    };
    let buffering = gateway(", buffer_request = \"1KiB\"");
    let streaming = gateway("");
    let put = |gateway: &Served| exchange(gateway.address(), CHUNKED.as_bytes());
    for _ in 0..2 {
        let received = put(&buffering);
        assert_eq!((received.status, received.text()), (200, "hello"));
    }
    // Without it, one of two such requests stays with the server that failed.
    let mut statuses = [put(&streaming).status, put(&streaming).status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 503]);
    assert!(failing.requests() >= 2);
}
