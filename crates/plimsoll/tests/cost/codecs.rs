//! Codecs: what clients and servers send.

use std::time::{Duration, UNIX_EPOCH};

use plimsoll_client::grpc::{MessageCounter, messages};
use plimsoll_client::{CookieJar, CookiePlace, DigestAnswers};
use plimsoll_model::{MASK, masked_command_line, masked_text};
use plimsoll_wire::ProxyHeader;
use plimsoll_wire::h1::{
    BodyStep, HeadStorage, KnownHead, Limits, RequestDecoder, RequestLimits, ResponseDecoder,
    ResponseHead, ResponseSink,
};
use plimsoll_wire::h2::hpack::{Decoder as HeaderDecoder, FieldLimits, Fields};
use plimsoll_wire::{sse, ws};

use crate::{Case, case, numbered, repeat, text};

pub(crate) const CASES: &[Case] = &[
    case(
        "request: many fields",
        |n| {
            numbered(
                "GET / HTTP/1.1\r\nhost: a\r\n",
                "f#: x",
                "\r\n",
                "\r\n\r\n",
                n,
            )
        },
        |it| requests(it, it.len()),
    ),
    case(
        "request: a long target",
        |n| {
            [
                b"GET /".to_vec(),
                repeat("a%41", n),
                b" HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(),
            ]
            .concat()
        },
        |it| requests(it, it.len()),
    ),
    Case {
        bytes: 2 << 10,
        ..case(
            "request: a head byte by byte",
            |n| {
                numbered(
                    "GET / HTTP/1.1\r\nhost: a\r\n",
                    "f#: x",
                    "\r\n",
                    "\r\n\r\n",
                    n,
                )
            },
            |it| requests(it, 1),
        )
    },
    case(
        "request: chunks of one byte",
        |n| {
            [
                b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
                repeat("1\r\nx\r\n", n),
                b"0\r\n\r\n".to_vec(),
            ]
            .concat()
        },
        |it| requests(it, it.len()),
    ),
    case(
        "request: chunks of one byte, byte by byte",
        |n| {
            [
                b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
                repeat("1\r\nx\r\n", n),
            ]
            .concat()
        },
        |it| requests(it, 1),
    ),
    case(
        "request: a long chunk extension",
        |n| {
            [
                b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1".to_vec(),
                repeat(";a=b", n),
            ]
            .concat()
        },
        |it| requests(it, 7),
    ),
    case(
        "response: many fields",
        |n| numbered("HTTP/1.1 200 OK\r\n", "f#: x", "\r\n", "\r\n\r\n", n),
        |it| response(it, it.len()),
    ),
    Case {
        bytes: 4 << 10,
        ..case(
            "response: a head byte by byte",
            |n| numbered("HTTP/1.1 200 OK\r\n", "f#: x", "\r\n", "\r\n\r\n", n),
            |it| response(it, 1),
        )
    },
    case(
        "response: chunks of one byte, byte by byte",
        |n| {
            [
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
                repeat("1\r\nx\r\n", n),
            ]
            .concat()
        },
        |it| response(it, 1),
    ),
    case(
        "response: interim responses",
        |n| repeat("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n", n),
        |it| response(it, it.len()),
    ),
    case(
        "response: trailers",
        |n| {
            numbered(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
                "t#: x",
                "\r\n",
                "\r\n\r\n",
                n,
            )
        },
        |it| response(it, 3),
    ),
    case("HPACK: indexed fields", |n| vec![0x82; n], header_block),
    case("HPACK: insertions that evict", numbered_block, header_block),
    case(
        "HPACK: Huffman codes",
        |n| [vec![0x00, 0x01, b'a', 0xff, 0x80, 0x40], vec![0x1c; n]].concat(),
        header_block,
    ),
    case(
        "WebSocket: frames of one byte",
        |n| [0x81, 0x81, 0, 0, 0, 0, b'x'].repeat(n / 7),
        |it| frames(it, it.len()),
    ),
    case(
        "WebSocket: fragments of one byte",
        |n| {
            [
                &[0x01, 0x81, 0, 0, 0, 0, b'x'][..],
                &[0x00, 0x81, 0, 0, 0, 0, b'x'].repeat(n / 7),
            ]
            .concat()
        },
        |it| frames(it, 1),
    ),
    case(
        "WebSocket: pings",
        |n| [0x89, 0x80, 0, 0, 0, 0].repeat(n / 6),
        |it| frames(it, it.len()),
    ),
    case(
        "event stream: empty lines",
        |n| vec![b'\n'; n],
        |it| events(it, 1),
    ),
    case(
        "event stream: one event of many lines",
        |n| repeat("data: x\n", n),
        |it| events(it, 3),
    ),
    case(
        "event stream: many events",
        |n| repeat("id: 1\ndata: x\n\n", n),
        |it| events(it, it.len()),
    ),
    case(
        "PROXY header",
        |n| [b"PROXY TCP4 ".to_vec(), repeat("1", n)].concat(),
        |it| {
            assert!(ProxyHeader::parse(it).is_err());
        },
    ),
    case(
        "gRPC: empty messages",
        |n| vec![0; n],
        |it| {
            drop(messages(it));
            counted(it);
        },
    ),
    case(
        "gRPC: one message byte by byte",
        |n| [[0, 0, 0xff, 0xff, 0xff].to_vec(), vec![b'x'; n]].concat(),
        counted,
    ),
    case(
        "Set-Cookie: many cookies",
        |n| numbered("", "c#=x; Path=/a/#", "\n", "", n),
        cookies,
    ),
    case(
        "Set-Cookie: many attributes",
        |n| [b"a=b".to_vec(), repeat("; Path=/", n)].concat(),
        cookies,
    ),
    case(
        "digest: a long challenge",
        |n| {
            numbered(
                "Digest realm=\"a\", nonce=\"b\", ",
                "x#=\"y\\\"z\"",
                ", ",
                "",
                n,
            )
        },
        challenge,
    ),
    case(
        "digest: many schemes",
        |n| repeat("Basic, Digest a=b, ", n),
        challenge,
    ),
    case(
        "masking: names in one line",
        |n| repeat("token:'", n),
        masked,
    ),
    case(
        "masking: nested JSON",
        |n| repeat("\"token\":[{", n),
        masked,
    ),
    case("masking: URLs", |n| repeat("http://a@", n), masked),
    case("masking: words", |n| repeat("-H 'Cookie: a' ", n), masked),
];

/// Reads requests from reads of `step` bytes, as a connection does: what is left over is kept.
fn requests(input: &[u8], step: usize) {
    let mut decoder = RequestDecoder::new(RequestLimits {
        body_bytes: u64::MAX,
        ..RequestLimits::default()
    });
    let mut taken = 0;
    let mut read = 0;
    while read < input.len() {
        read = (read + step).min(input.len());
        loop {
            let buffer = &input[taken..read];
            if decoder.is_in_body() {
                match decoder.decode_body(buffer) {
                    Ok(BodyStep::NeedMore) => {
                        taken = read;
                        break;
                    }
                    Ok(BodyStep::Content(range)) => taken += range.end,
                    Ok(BodyStep::End(consumed)) => {
                        taken += consumed;
                        if decoder.finish_body().is_err() {
                            return;
                        }
                    }
                    Err(_) => return,
                }
            } else {
                let mut storage = HeadStorage::new();
                match decoder.decode_head(buffer, &mut storage) {
                    Ok(Some((_, length))) => taken += length,
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
        }
    }
}

struct Ignore;

impl ResponseSink for Ignore {
    fn head(&mut self, _: &ResponseHead<'_>) {}

    fn content(&mut self, _: &[u8]) {}
}

fn response(input: &[u8], step: usize) {
    let mut decoder = ResponseDecoder::new(Limits {
        interim: u32::MAX as _,
        ..Limits::default()
    });
    decoder.begin(false);
    for piece in input.chunks(step) {
        let read = decoder.decode(piece, &mut Ignore, &mut KnownHead::new());
        if !read.is_ok_and(|read| !read.complete) {
            return;
        }
    }
}

fn header_block(block: &[u8]) {
    let limits = FieldLimits {
        count: usize::MAX,
        bytes: usize::MAX,
    };
    let mut fields = Fields::default();
    // Whether it can be decoded is the fuzz target's concern.
    HeaderDecoder::new(4096, limits)
        .decode(block, Some(&mut fields))
        .ok();
}

/// Literals with incremental indexing, each of which evicts an older entry once the table is full.
fn numbered_block(bytes: usize) -> Vec<u8> {
    let mut block = Vec::new();
    let mut number = 0_u32;
    while block.len() < bytes {
        let name = format!("n{number:07}");
        block.extend([0x40, 8]);
        block.extend(name.as_bytes());
        block.extend([1, b'v']);
        number += 1;
    }
    block
}

struct IgnoreFrames;

impl ws::FrameSink for IgnoreFrames {
    fn piece(&mut self, _: &[u8]) {}

    fn event(&mut self, _: ws::Event<'_>) {}
}

fn frames(input: &[u8], step: usize) {
    let limits = ws::Limits {
        message_bytes: u64::MAX,
    };
    let mut decoder = ws::Decoder::new(ws::Role::Server, limits);
    for piece in input.chunks(step) {
        if decoder.decode(piece, &mut IgnoreFrames).is_err() {
            return;
        }
    }
}

struct IgnoreEvents;

impl sse::EventSink for IgnoreEvents {
    fn event(&mut self, _: sse::Event<'_>) {}
}

fn events(input: &[u8], step: usize) {
    let mut decoder = sse::Decoder::new(sse::Limits {
        event_bytes: usize::MAX,
        id_bytes: usize::MAX,
    });
    for piece in input.chunks(step) {
        if decoder.decode(piece, &mut IgnoreEvents).is_err() {
            return;
        }
    }
}

fn counted(input: &[u8]) {
    let mut counter = MessageCounter::default();
    for piece in input.chunks(1) {
        counter.push(piece);
    }
    counter.finish().ok();
}

fn cookies(input: &[u8]) {
    let place = CookiePlace {
        host: "a.example.org",
        path: "/a/1/b",
        is_secure: false,
    };
    let now = UNIX_EPOCH + Duration::from_hours(500_000);
    let mut jar = CookieJar::default();
    for line in input.split(|&byte| byte == b'\n') {
        jar.store_cookie(line, place, now);
    }
    let mut sent = Vec::new();
    jar.write(place, now, &mut sent);
}

fn challenge(input: &[u8]) {
    DigestAnswers::default().challenge(std::iter::once(input), false);
}

fn masked(input: &[u8]) {
    let text = text(input);
    assert!(masked_text(text).contains(MASK) || masked_command_line(text).contains(MASK));
}
