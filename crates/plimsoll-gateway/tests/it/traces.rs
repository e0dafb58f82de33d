//! Spans of forwarded requests as a collector receives them.

use std::io::{Read, Write};
use std::net::TcpListener;

use plimsoll_testkit::http::{get, get_with};
use plimsoll_testkit::{Origin, eventually};

use crate::server::Served;

/// Receives one POST and returns its content.
fn received(listener: &TcpListener) -> serde_json::Value {
    let (mut stream, _) = listener.accept().unwrap();
    let mut read = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, content)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
        if let Ok(document) = serde_json::from_str(content) {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                .unwrap();
            return document;
        }
    }
}

#[test]
fn a_span_continues_the_trace_of_the_client_and_is_the_parent_of_the_server() {
    let origin = Origin::hello();
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = collector.local_addr().unwrap();
    let url = origin.url("");
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
        [traces]\notlp = \"http://{address}/v1/traces\"\nservice = \"edge\"\n\
        [[route]]\ntrace = true\nproxy = \"{}\"\n",
        url.trim_end_matches('/')
    ));
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let traced = |flags| format!("traceparent: 00-{trace}-b7ad6b7169203331-{flags}\r\n");
    // Not recorded, so no span of it is sent.
    assert_eq!(
        get_with(gateway.address(), "/unseen", &traced("00")).text(),
        "hello"
    );
    assert_eq!(
        get_with(gateway.address(), "/seen", &traced("01")).text(),
        "hello"
    );
    let head = origin.heads().pop().unwrap();
    let document = received(&collector);
    let resource = &document["resourceSpans"][0];
    let service = &resource["resource"]["attributes"][0];
    assert_eq!(service["key"], "service.name");
    assert_eq!(service["value"]["stringValue"], "edge");
    let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 1, "{spans:?}");
    let span = &spans[0];
    assert_eq!(span["traceId"], trace);
    assert_eq!(span["parentSpanId"], "b7ad6b7169203331");
    let own = span["spanId"].as_str().unwrap();
    assert!(
        head.contains(&format!("traceparent: 00-{trace}-{own}-01")),
        "{head}"
    );
    let nanos = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
    assert!(nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"));
    let attributes = span["attributes"].as_array().unwrap();
    let attribute = |key: &str| {
        let found = attributes.iter().find(|it| it["key"] == key);
        found.map(|it| it["value"].clone()).unwrap_or_default()
    };
    assert_eq!(attribute("url.path")["stringValue"], "/seen");
    assert_eq!(attribute("http.response.status_code")["intValue"], "200");
    assert_eq!(attribute("plimsoll.attempts")["intValue"], "1");
    assert_eq!(
        attribute("plimsoll.server")["stringValue"],
        url.trim_end_matches('/')
    );
    let sent = "plimsoll_gateway_spans_total{outcome=\"sent\"} 1";
    eventually(|| get(gateway.addresses[1], "/metrics").text().contains(sent));
}
