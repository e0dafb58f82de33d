//! Every version of HTTP in front with every version behind: content both ways, streamed.

use bytes::Bytes;
use plimsoll_client::forward::Speaks;

use crate::client::post;
use crate::server::Served;

/// Far more than every window and buffer on the way.
const BYTES: usize = 64 * 1024 * 1024;

const LISTEN_TLS: &str =
    "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = { self_signed = true }\nhttp3 = true\n";

fn content() -> Bytes {
    // No piece of it is like another one at the same place, so that a repeated or lost piece shows.
    let mut state = 1_u64;
    let words = std::iter::repeat_with(|| {
        // Knuth, "The Art of Computer Programming", volume 2, section 3.3.4.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_le_bytes()
    });
    words.take(BYTES / 8).flatten().collect()
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
        let part = format!(
            "[[route]]\nprefix = \"/{name}\"\nproxy = \"{name}\"\n\
             [upstream.{name}]\nservers = [\"{url}\"]\nprotocol = \"{protocol}\"\ntls = {{ insecure = true }}\n"
        );
        text.push_str(&part);
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
