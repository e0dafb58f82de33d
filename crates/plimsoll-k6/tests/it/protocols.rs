//! Requests over HTTP/2 without TLS and over HTTP/3.

use plimsoll_client::forward::Speaks;
use plimsoll_k6::Overrides;
use plimsoll_testkit::{Http2Origin, Http3Origin, Leaf, Origin};

use crate::fixture::{Ran, run_over};

const SCRIPT: &str = "import http from 'k6/http';
    export const options = { insecureSkipTLSVerify: true, batchPerHost: 0 };
    export default function () {
      const r = http.get('URL');
      console.log(r.status, r.proto, r.body, r.error);
      console.log(http.batch(['URL', 'URL']).map((it) => it.proto).join());
    }";

fn run(speaks: Speaks, url: &str) -> Ran {
    run_over(speaks, SCRIPT, url, Overrides::default(), &|| false)
}

#[test]
fn plain_urls_are_requested_over_http_2_with_prior_knowledge() {
    let server = Http2Origin::hello();
    let ran = run(Speaks::Http2, &server.url("/"));
    let expected = ["Info: 200 HTTP/2.0 hello ", "Info: HTTP/2.0,HTTP/2.0"];
    assert_eq!(ran.console, expected, "{ran:#?}");
    assert_eq!(ran.metric("http_reqs", "count"), 3.0);
    assert_eq!(server.requests(), 3);
    assert_eq!(server.connections(), 1, "requests share a connection");
    // A server of HTTP/1.1 does not understand that.
    let other = Origin::hello();
    let ran = run(Speaks::Http2, &other.url("/"));
    assert_eq!(ran.metric("http_req_failed", "value"), 1.0, "{ran:#?}");
}

#[test]
fn requests_are_sent_over_http_3() {
    let leaf = Leaf::self_signed(&["localhost", "127.0.0.1"]);
    let server = Http3Origin::hello(leaf.server_config());
    let ran = run(Speaks::Http3, &server.url("/"));
    let expected = ["Info: 200 HTTP/3.0 hello ", "Info: HTTP/3.0,HTTP/3.0"];
    assert_eq!(ran.console, expected, "{ran:#?}");
    assert_eq!(server.requests(), 3);
    assert_eq!(server.connections(), 1, "requests share a connection");
    assert!(ran.has_metric("http_req_tls_handshaking"), "{ran:#?}");
}

#[test]
fn http_3_needs_tls() {
    let ran = run(Speaks::Http3, "http://127.0.0.1:1/");
    let message = "HTTP/3 (--http3) needs an https:// URL, not http://127.0.0.1:1";
    assert!(ran.log.iter().any(|it| it.contains(message)), "{ran:#?}");
    assert_eq!(ran.metric("http_req_failed", "value"), 1.0);
}
