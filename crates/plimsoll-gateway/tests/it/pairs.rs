//! Every version of HTTP in front with every version behind: content both ways, streamed.

use bytes::Bytes;
use plimsoll_client::forward::Speaks;

use crate::client::post;
use crate::server::Served;

/// More than every window and buffer on the way.
const BYTES: usize = 8 * 1024 * 1024;

const LISTEN_TLS: &str =
    "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = { self_signed = true }\nhttp3 = true\n";

fn content() -> Bytes {
    (0..BYTES)
        .map(|at| u8::try_from(at * 31 % 251).unwrap())
        .collect()
}

#[test]
fn every_pair_carries_content_both_ways() {
    let backend = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n{LISTEN_TLS}[[route]]\necho = {{}}\n"
    ));
    let (clear, tls) = (backend.addresses[0], backend.addresses[1]);
    let backs = [
        ("h1", format!("http://{clear}"), "http1"),
        ("h2c", format!("http://{clear}"), "http2"),
        ("h1s", format!("https://{tls}"), "http1"),
        ("h2", format!("https://{tls}"), "http2"),
        ("h3", format!("https://{tls}"), "http3"),
    ];
    let mut text = format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{LISTEN_TLS}");
    for (name, url, protocol) in &backs {
        text += &format!(
            "[[route]]\nprefix = \"/{name}\"\nproxy = \"{name}\"\n\
             [upstream.{name}]\nservers = [\"{url}\"]\nprotocol = \"{protocol}\"\ntls = {{ insecure = true }}\n"
        );
    }
    let gateway = Served::new(&text);
    let (clear, tls) = (gateway.addresses[0], gateway.addresses[1]);
    let fronts = [
        ("h1", Speaks::Http1, format!("http://{clear}")),
        ("h2c", Speaks::Http2, format!("http://{clear}")),
        ("h1s", Speaks::Http1, format!("https://{tls}")),
        ("h2", Speaks::Http2, format!("https://{tls}")),
        ("h3", Speaks::Http3, format!("https://{tls}")),
    ];
    let content = content();
    for (front, speaks, url) in &fronts {
        for (back, ..) in &backs {
            let (status, received, _) = post(*speaks, &format!("{url}/{back}"), content.clone());
            assert_eq!(status, 200, "{front} to {back}");
            assert!(received == content, "{front} to {back}: {}", received.len());
        }
    }
}
