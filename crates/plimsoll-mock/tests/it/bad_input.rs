//! Bad and hostile input of clients, over real sockets.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::mock::Served;

/// A mock of a folder `in`, beside which lies a secret, with a bound on content.
fn bounded() -> Served {
    let root = "[service]\nfallback_respond_dir = \"in\"\nrule_sets = [\"set.toml\"]\nmax_request_body_bytes = 100000\n";
    let set = "[[rules]]\nwhen.request = { url_path = \"/upload\", method = \"POST\" }\nrespond.text = \"taken\"\n";
    Served::rules_with(
        root,
        &[
            ("set.toml", set),
            ("in/a.json", "1"),
            ("secret.json", "\"secret\""),
            ("in/deep/b.json", "2"),
        ],
    )
}

#[test]
fn uploads_are_bounded_whether_or_not_their_length_is_reported() {
    let served = bounded();
    for length in [1_u64 << 30, 200_000] {
        let reported = format!(
            "POST /upload HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\nxxxx"
        );
        let response = String::from_utf8(served.talk(reported.as_bytes())).unwrap();
        assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    }

    let mut stream = TcpStream::connect(served.address()).unwrap();
    let head = b"POST /upload HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head).unwrap();
    let mut chunk = b"10000\r\n".to_vec();
    chunk.extend(vec![b'x'; 0x10000]);
    chunk.extend(b"\r\n");
    // As much as 1 GiB, if it were taken: the connection ends before.
    let sent = (0..16 * 1024).take_while(|_| stream.write_all(&chunk).is_ok());
    assert!(sent.count() < 4096);
    let mut response = Vec::new();
    // The end may come as a reset, which takes away what was response before.
    if stream.read_to_end(&mut response).is_ok() && !response.is_empty() {
        assert!(response.starts_with(b"HTTP/1.1 413 "));
    }
    assert_eq!(served.ask("POST", "/upload", &[], "short").text(), "taken");
}

#[test]
fn no_way_of_writing_a_path_leads_out() {
    let served = bounded();
    assert_eq!(served.get("/a").text(), "1");
    for target in [
        "/../secret.json",
        "/deep/../../secret.json",
        "/..%2fsecret.json",
        "/..%2Fsecret",
        "/%2e%2e/secret.json",
        "/%2E%2E%2Fsecret.json",
        "/.%2e/secret.json",
        "/%2e./secret.json",
        "/..%5csecret.json",
        "/..\\secret.json",
        "/%252e%252e%252fsecret.json",
        "/%c0%ae%c0%ae%c0%afsecret.json",
        "/%e0%80%ae%e0%80%ae/secret.json",
        "/%uff0e%uff0e/secret.json",
        "/....//secret.json",
        "/..;/secret.json",
        "//../secret.json",
        "/./../secret.json",
        "/a/%00/../../secret.json",
        "/../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "http://a/../secret.json",
        "http://a/%2e%2e/secret.json",
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let response = served.talk(request.as_bytes());
        let response = String::from_utf8_lossy(&response);
        assert!(
            response.starts_with("HTTP/1.1 404 ") || response.starts_with("HTTP/1.1 400 "),
            "{target}: {response}"
        );
        assert!(
            !response.contains("\"secret\"") && !response.contains("root:"),
            "{target}"
        );
    }
}
