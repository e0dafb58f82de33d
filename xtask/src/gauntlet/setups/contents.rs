//! Responses and requests of unusual form.

use crate::gauntlet::server::behaviour::{Behaviour, End, PLAIN, Reply, Turn};
use crate::gauntlet::setup::{Bytes, KNOWN, Known, Setup, Timed, http1, millis};

const fn replying(reply: fn(&Turn) -> Reply) -> Behaviour {
    Behaviour {
        delay: |_| millis(30),
        reply,
        ..PLAIN
    }
}

/// 5,000 times `x` by gzip.
const COMPRESSED: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xed, 0xc1, 0x31, 0x01, 0x00, 0x00,
    0x00, 0xc2, 0xa0, 0xda, 0x8b, 0x6f, 0x0a, 0x3f, 0xa0, 0x00, 0x00, 0x00, 0x00, 0x80, 0xb7, 0x01,
    0x26, 0xf0, 0xdb, 0x00, 0x88, 0x13, 0x00, 0x00,
];

pub(super) const SETUPS: &[Setup] = &[
    http1(
        "early-hints",
        "103 before each response",
        replying(|_| Reply::ok().behind("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")),
        "-c 4 -z 1s",
        KNOWN,
    ),
    http1(
        "many-interim",
        "ten interim responses before each response",
        replying(|_| Reply::ok().behind(&"HTTP/1.1 102 Processing\r\n\r\n".repeat(10))),
        "-c 4 -z 1s",
        KNOWN,
    ),
    http1(
        "continue",
        "uploads of 100 kB that wait for 100",
        replying(|_| Reply::ok()),
        "-c 4 -z 1s -m POST -H expect:100-continue -D {folder}/upload",
        KNOWN,
    ),
    http1(
        "redirects",
        "each exchange is a redirect and a response",
        replying(redirected),
        "-c 4 -z 2s -L",
        Known {
            timed: Timed::Unknown,
            ..KNOWN
        },
    ),
    http1(
        "redirects-unfollowed",
        "each response is a redirect that is not followed",
        replying(redirected),
        "-c 4 -z 1s",
        KNOWN,
    ),
    http1(
        "chunked",
        "chunked content with extensions and trailers",
        replying(|_| {
            let content = b"3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nx-sum: 1\r\n\r\n";
            Reply::new(200, "transfer-encoding: chunked\r\n", content)
        }),
        "-c 4 -z 1s",
        KNOWN,
    ),
    http1(
        "compressed",
        "content by gzip, decoded",
        replying(|_| {
            let length = COMPRESSED.len();
            let fields = format!("content-encoding: gzip\r\ncontent-length: {length}\r\n");
            Reply::new(200, &fields, COMPRESSED)
        }),
        "-c 4 -z 1s --compressed",
        KNOWN,
    ),
    http1(
        "large",
        "responses of 300 kB",
        replying(|_| Reply::sized(300_000)),
        "-c 4 -q 40 -z 2s",
        Known {
            intended: Some(80),
            ..KNOWN
        },
    ),
    http1(
        "uploads",
        "requests of 100 kB",
        replying(|_| Reply::ok()),
        "-c 4 -z 1s -D {folder}/upload",
        KNOWN,
    ),
    http1(
        "head",
        "HEAD: a length without content",
        replying(|_| Reply::new(200, "content-length: 5000\r\n", b"")),
        "-c 4 -z 1s -m HEAD",
        KNOWN,
    ),
    http1(
        "no-content",
        "204 and 304 in turns",
        replying(|turn| Reply::new(if turn.is_every(2) { 204 } else { 304 }, "", b"")),
        "-c 4 -z 1s",
        KNOWN,
    ),
    http1(
        "longer-than-announced",
        "every tenth response is longer than it announces",
        replying(|turn| {
            let content: &[u8] = if turn.is_every(10) {
                b"hello more"
            } else {
                b"hello"
            };
            Reply::new(200, "content-length: 5\r\n", content)
        }),
        "-c 4 -z 1s",
        Known {
            bytes: Bytes::Unknown,
            cautions: &["more bytes than they announce"],
            ..KNOWN
        },
    ),
    http1(
        "until-close",
        "content whose end is that of the connection",
        replying(|_| Reply::new(200, "", b"hello").ending(End::WholeThenClose)),
        "-c 4 -z 1s",
        KNOWN,
    ),
];

/// `/` leads to `/there`.
fn redirected(turn: &Turn) -> Reply {
    if turn.target == "/" {
        Reply::new(302, "location: /there\r\ncontent-length: 0\r\n", b"")
    } else {
        Reply::ok()
    }
}
