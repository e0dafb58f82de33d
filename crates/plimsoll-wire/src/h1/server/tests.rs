use proptest::prelude::*;

use super::*;

/// Events of a connection, as a server sees it.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    Head(String),
    Content(Vec<u8>),
    Trailers(String),
    Error(RequestError),
}

fn small() -> RequestLimits {
    RequestLimits {
        head_bytes: 512,
        target_bytes: 64,
        headers: 8,
        body_bytes: 64,
        chunk_overhead_bytes: 32,
    }
}

/// Reads `pieces` from a buffer to which they are added one by one; content is joined.
fn events(pieces: &[&[u8]]) -> Vec<Event> {
    let mut decoder = RequestDecoder::new(small());
    let mut events = Vec::new();
    let mut buffer = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if let Err(error) = read(&mut decoder, &mut buffer, &mut events) {
            events.push(Event::Error(error));
            break;
        }
    }
    events
}

fn read(
    decoder: &mut RequestDecoder,
    buffer: &mut Vec<u8>,
    events: &mut Vec<Event>,
) -> Result<(), RequestError> {
    loop {
        if !decoder.is_in_body() {
            let mut storage = HeadStorage::new();
            let Some((head, length)) = decoder.decode_head(buffer, &mut storage)? else {
                return Ok(());
            };
            events.push(Event::Head(format!("{head:?}")));
            buffer.drain(..length);
            continue;
        }
        match decoder.decode_body(buffer)? {
            BodyStep::NeedMore => {
                buffer.clear();
                return Ok(());
            }
            BodyStep::Content(range) => {
                let end = range.end;
                match events.last_mut() {
                    Some(Event::Content(content)) => content.extend_from_slice(&buffer[range]),
                    _ => events.push(Event::Content(buffer[range].to_vec())),
                }
                buffer.drain(..end);
            }
            BodyStep::End(consumed) => {
                buffer.drain(..consumed);
                let trailers = decoder.finish_body()?;
                events.push(Event::Trailers(String::from_utf8_lossy(&trailers).into()));
            }
        }
    }
}

fn refusal(text: &str) -> Option<RequestError> {
    match events(&[text.as_bytes()]).pop() {
        Some(Event::Error(error)) => Some(error),
        _ => None,
    }
}

/// Requests that two readers could understand differently, and what they are refused for.
const SMUGGLING: &[(&str, RequestError)] = &[
    // Where the body ends.
    (
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nG",
        RequestError::LengthAndCoding,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 0\r\n\r\n",
        RequestError::LengthAndCoding,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        RequestError::ContentLengthRepeated,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello",
        RequestError::ContentLengthRepeated,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5, 5\r\n\r\nhello",
        RequestError::ContentLength,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +5\r\n\r\nhello",
        RequestError::ContentLength,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -5\r\n\r\n",
        RequestError::ContentLength,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0x5\r\n\r\nhello",
        RequestError::ContentLength,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5 5\r\n\r\nhello",
        RequestError::ContentLength,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length:\r\n\r\n",
        RequestError::ContentLength,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 18446744073709551616\r\n\r\n",
        RequestError::ContentLength,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n",
        RequestError::TransferEncodingEnd,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        RequestError::TransferEncoding,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, identity\r\n\r\n",
        RequestError::TransferEncodingEnd,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
        RequestError::TransferEncodingEnd,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n",
        RequestError::TransferEncoding,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: \"chunked\"\r\n\r\n",
        RequestError::TransferEncodingEnd,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding:\r\n\r\n",
        RequestError::TransferEncodingEnd,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, gzip\r\n\r\n",
        RequestError::TransferEncodingEnd,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked, x\r\n\r\n",
        RequestError::TransferEncodingEnd,
    ),
    (
        "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n",
        RequestError::TransferEncodingInOld,
    ),
    (
        "POST / HTTP/1.0\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
        RequestError::TransferEncodingInOld,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n",
        RequestError::BlankInName,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding\t: chunked\r\n\r\n",
        RequestError::BlankInName,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding:\x0bchunked\r\n\r\n",
        RequestError::FieldValue,
    ),
    // Where a line ends.
    ("GET / HTTP/1.1\nhost: a\n\n", RequestError::LineEnd),
    (
        "GET / HTTP/1.1\r\nhost: a\nx: y\r\n\r\n",
        RequestError::LineEnd,
    ),
    ("GET / HTTP/1.1\r\nhost: a\r\n\n", RequestError::LineEnd),
    ("GET / HTTP/1.1\r\nhost: a\n\r\n", RequestError::LineEnd),
    ("GET / HTTP/1.1\nhost: a\r\n\r\n", RequestError::LineEnd),
    (
        "GET / HTTP/1.1\r\nhost: a\r\nx: a\rb\r\n\r\n",
        RequestError::FieldValue,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a\r\nx: a\0b\r\n\r\n",
        RequestError::FieldValue,
    ),
    ("GET / HTTP/1.1\rhost: a\r\n\r\n", RequestError::LineEnd),
    (
        "GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n z\r\n\r\n",
        RequestError::Folding,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding:\r\n chunked\r\n\r\n",
        RequestError::Folding,
    ),
    ("GET / HTTP/1.1\r\n host: a\r\n\r\n", RequestError::Folding),
    (
        "GET / HTTP/1.1\r\nhost: a\r\n: y\r\n\r\n",
        RequestError::FieldName,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a\r\nx(y): z\r\n\r\n",
        RequestError::FieldName,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n",
        RequestError::BlankInName,
    ),
    (
        "\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::RequestLine,
    ),
    (
        "\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::RequestLine,
    ),
    ("post / HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Method),
    ("Get / HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Method),
    (
        "connect a:1 HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::Method,
    ),
    // The request target.
    ("GET /\r\n\r\n", RequestError::RequestLine),
    ("GET  / HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Target),
    (
        "GET /a b HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::RequestLine,
    ),
    (
        "G\x01T / HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::RequestLine,
    ),
    ("GET / HTTP/2.0\r\nhost: a\r\n\r\n", RequestError::Version),
    ("GET / HTTP/1\r\nhost: a\r\n\r\n", RequestError::RequestLine),
    (
        "GET / HTTP/01.01\r\nhost: a\r\n\r\n",
        RequestError::RequestLine,
    ),
    (
        "GET / HTTP/11\r\nhost: a\r\n\r\n",
        RequestError::RequestLine,
    ),
    ("GET / HTTP/1.2\r\nhost: a\r\n\r\n", RequestError::Version),
    (
        "GET / http/1.1\r\nhost: a\r\n\r\n",
        RequestError::RequestLine,
    ),
    ("GET a HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Target),
    ("GET * HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Target),
    ("GET /a#b HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Target),
    ("GET /\\b HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Target),
    ("GET /`b HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Target),
    ("GET /%2 HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Target),
    ("GET /%zz HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Target),
    (
        "GET /\x7f HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::Target,
    ),
    ("GET /ü HTTP/1.1\r\nhost: a\r\n\r\n", RequestError::Target),
    (
        "GET ftp://a/ HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::Target,
    ),
    (
        "GET http:///x HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::Target,
    ),
    (
        "GET http://user@a/ HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::Target,
    ),
    (
        "CONNECT / HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::Target,
    ),
    (
        "CONNECT a HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::Target,
    ),
    // The authority.
    ("GET / HTTP/1.1\r\n\r\n", RequestError::HostMissing),
    (
        "GET / HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n",
        RequestError::HostRepeated,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a b\r\n\r\n",
        RequestError::HostInvalid,
    ),
    ("GET / HTTP/1.1\r\nhost:\r\n\r\n", RequestError::HostInvalid),
    (
        "GET / HTTP/1.1\r\nhost: .\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET / HTTP/1.1\r\nhost: .a\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a..b\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a.b..:80\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET / HTTP/1.1\r\nhost: :80\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a:65536\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a:99999\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a, b\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET / HTTP/1.1\r\nhost: u@a\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a:b\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET / HTTP/1.1\r\nhost: a/b\r\n\r\n",
        RequestError::HostInvalid,
    ),
    (
        "GET http://b/ HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::HostMismatch,
    ),
    (
        "GET http://a:81/ HTTP/1.1\r\nhost: a\r\n\r\n",
        RequestError::HostMismatch,
    ),
    (
        "CONNECT b:443 HTTP/1.1\r\nhost: a:443\r\n\r\n",
        RequestError::HostMismatch,
    ),
];

#[test]
fn what_readers_disagree_on_is_refused_by_name() {
    for (text, expected) in SMUGGLING {
        assert_eq!(refusal(text), Some(*expected), "{text:?}");
    }
}

#[test]
fn chunked_framing_is_held_to_its_grammar() {
    const HEAD: &str = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    for (body, expected) in [
        ("\r\n", RequestError::ChunkSize),
        ("x\r\n", RequestError::ChunkSize),
        ("-5\r\n", RequestError::ChunkSize),
        ("0x5\r\n", RequestError::ChunkSize),
        ("5 \r\nhello", RequestError::ChunkSize),
        ("00000000000000005\r\nhello", RequestError::ChunkSize),
        ("5\nhello\r\n0\r\n\r\n", RequestError::ChunkSize),
        ("5;\r\nhello", RequestError::ChunkExtension),
        ("5;a\nb\r\nhello", RequestError::ChunkExtension),
        ("5; a\r\nhello", RequestError::ChunkExtension),
        ("5;a b\r\nhello", RequestError::ChunkExtension),
        ("5;a=\r\nhello", RequestError::ChunkExtension),
        ("5;a=\"b\nc\"\r\nhello", RequestError::ChunkExtension),
        ("5;a=\"b\"c\r\nhello", RequestError::ChunkExtension),
        ("5\rhello", RequestError::ChunkEnd),
        ("5\r\nhelloX", RequestError::ChunkEnd),
        ("5\r\nhello\n", RequestError::ChunkEnd),
        ("5\r\nhello\r\r", RequestError::ChunkEnd),
        ("0\r\nno colon\r\n\r\n", RequestError::Trailer),
        ("0\r\n: x\r\n\r\n", RequestError::Trailer),
        ("0\r\nx: y\n\r\n", RequestError::Trailer),
        ("0\r\nx: y\r\n z\r\n\r\n", RequestError::Trailer),
        ("0\r\ncontent-length: 5\r\n\r\n", RequestError::Trailer),
        ("0\r\nHost: a\r\n\r\n", RequestError::Trailer),
        ("0\r\n\n", RequestError::Trailer),
        (
            "1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
            RequestError::ChunkOverhead,
        ),
        (
            "0\r\nx: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
            RequestError::ChunkOverhead,
        ),
        ("41\r\n", RequestError::BodyTooLarge),
    ] {
        let filled = if expected == RequestError::BodyTooLarge {
            format!("{HEAD}{body}{}", "x".repeat(65))
        } else {
            format!("{HEAD}{body}")
        };
        assert_eq!(refusal(&filled), Some(expected), "{body:?}");
    }
    let accepted = format!("{HEAD}5;a;b=c;d=\"e \\\"f\"\r\nhello\r\n0\r\nx-sum: 1\r\ny:\r\n\r\n");
    let events = events(&[accepted.as_bytes()]);
    assert_eq!(events[1], Event::Content(b"hello".to_vec()));
    assert_eq!(events[2], Event::Trailers("x-sum: 1\r\ny:\r\n".into()));
    let fields: Vec<_> = fields_of(b"x-sum: 1\r\ny:\r\n").collect();
    assert_eq!(fields, [(&b"x-sum"[..], &b"1"[..]), (b"y", b"")]);
}

#[test]
fn limits_have_names() {
    let long = "x".repeat(600);
    let head = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}\r\n\r\n");
    assert_eq!(refusal(&head), Some(RequestError::HeadTooLarge));
    let head = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}");
    assert_eq!(refusal(&head), Some(RequestError::HeadTooLarge));
    let head = format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "x".repeat(64));
    assert_eq!(refusal(&head), Some(RequestError::TargetTooLong));
    let head = format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(8));
    assert_eq!(refusal(&head), Some(RequestError::TooManyFields));
    let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 65\r\n\r\n";
    assert_eq!(refusal(head), Some(RequestError::BodyTooLarge));
}

#[test]
fn a_head_says_what_the_connection_needs_to_know() {
    fn check(text: &str, expected: impl FnOnce(&ReceivedHead<'_>)) {
        let mut storage = HeadStorage::new();
        let mut decoder = RequestDecoder::new(RequestLimits::default());
        let found = decoder.decode_head(text.as_bytes(), &mut storage);
        let (head, length) = found.unwrap().expect("the head is whole");
        assert_eq!(length, text.len());
        expected(&head);
    }
    check(
        "GET /a/%20?b=c&d HTTP/1.1\r\nHost: A.example:8080\r\n\r\n",
        |head| {
            assert_eq!((head.method, head.minor_version), ("GET", 1));
            assert_eq!(head.target.path, "/a/%20");
            assert_eq!(head.target.query, Some("b=c&d"));
            assert_eq!(head.authority, "A.example:8080");
            assert_eq!(head.header("host"), Some(&b"A.example:8080"[..]));
            assert_eq!(head.body, BodyLength::None);
            assert!(head.is_persistent && !head.expects_continue && head.upgrade.is_none());
        },
    );
    check(
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: Close\r\n\r\n",
        |head| {
            assert!(!head.is_persistent);
        },
    );
    check("GET / HTTP/1.0\r\n\r\n", |head| {
        assert!(!head.is_persistent);
        assert_eq!(head.authority, "");
    });
    check(
        "HEAD / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
        |head| {
            assert!(head.is_persistent && head.is_head());
        },
    );
    check(
        "PUT / HTTP/1.1\r\nhost: a\r\nexpect: 100-Continue\r\ncontent-length: 3\r\n\r\n",
        |head| {
            assert!(head.expects_continue);
            assert_eq!(head.body, BodyLength::Known(3));
        },
    );
    check(
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\r\n",
        |head| assert_eq!(head.upgrade, Some(&b"websocket"[..])),
    );
    check(
        "GET / HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\n\r\n",
        |head| {
            assert_eq!(head.upgrade, None, "`connection` does not name it");
        },
    );
    check("GET http://A:80?x HTTP/1.1\r\nhost: a\r\n\r\n", |head| {
        assert_eq!(head.target.form, TargetForm::Absolute);
        assert_eq!((head.target.path, head.target.query), ("/", Some("x")));
        assert_eq!(head.authority, "A:80");
    });
    check("OPTIONS * HTTP/1.1\r\nhost: [::1]:80\r\n\r\n", |head| {
        assert_eq!(head.target.form, TargetForm::Asterisk);
        assert_eq!(head.authority, "[::1]:80");
    });
    check("CONNECT a:443 HTTP/1.1\r\nhost: a\r\n\r\n", |head| {
        assert_eq!(head.target.form, TargetForm::Authority);
        assert_eq!(head.target.authority, Some("a:443"));
    });
    check("\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", |head| {
        assert_eq!(head.method, "GET");
    });
}

#[test]
fn requests_follow_one_another() {
    let text = "POST /1 HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello\
        GET /2 HTTP/1.1\r\nhost: a\r\n\r\n\
        PUT /3 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n\
        GET /4 HTTP/1.1\r\nhost: a\r\n\r\n";
    let events = events(&[text.as_bytes()]);
    let heads = |event: &&Event| matches!(event, Event::Head(_));
    assert_eq!(events.iter().filter(heads).count(), 4);
    assert_eq!(events[1], Event::Content(b"hello".to_vec()));
    assert_eq!(events[5], Event::Content(b"hi".to_vec()));
}

/// Parts that make requests, good ones and bad ones.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let texts = prop::sample::select(vec![
        "GET / HTTP/1.1\r\n",
        "POST /a?b HTTP/1.1\r\n",
        "CONNECT a:1 HTTP/1.1\r\n",
        "GET http://a/ HTTP/1.0\r\n",
        "host: a\r\n",
        "content-length: 3\r\n",
        "transfer-encoding: chunked\r\n",
        "x: y\r\n",
        "x : y\r\n",
        " folded\r\n",
        "\r\n",
        "\n",
        "\r",
        "abc",
        "3\r\nabc\r\n",
        "3;a=b\r\nabc\r\n",
        "0\r\n",
        "0\r\n\r\n",
        "HTTP/1.1",
        " ",
        ":",
    ]);
    prop_oneof![
        9 => texts.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ]
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        parts in prop::collection::vec(part(), 0..14),
        cuts in prop::collection::vec(0_usize..40, 0..20),
    ) {
        // A mistake in a head that is not whole is noticed in one piece, but in several only at its end.
        let bytes = [parts.concat(), b"\r\n\r\n".to_vec()].concat();
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(events(&pieces), events(&[&bytes]));
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(events(&single), events(&[&bytes]));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        events(&[&bytes]);
    }
}

#[test]
fn the_smuggling_set_is_refused_byte_by_byte_too() {
    for (text, expected) in SMUGGLING {
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        let error = Event::Error(*expected);
        assert_eq!(events(&single).last(), Some(&error), "{text:?}");
    }
}

#[test]
fn a_later_minor_version_is_read_as_1_1() {
    for (text, expected) in [
        (
            "GET / HTTP/1.2\r\nhost: a\r\n\r\n",
            Some("GET / HTTP/1.1\r\nhost: a\r\n\r\n"),
        ),
        (
            "\r\nGET /a%20b HTTP/1.9\r\nhost: a\r\n\r\n",
            Some("\r\nGET /a%20b HTTP/1.1\r\nhost: a\r\n\r\n"),
        ),
        ("GET / HTTP/1.2", Some("GET / HTTP/1.1")),
        ("GET / HTTP/1.20\r\n", None),
        ("GET / HTTP/2.0\r\n", None),
        ("GET / HTTP/1.1\r\n", None),
        ("GET /\r\n", None),
        ("", None),
    ] {
        let mut input = text.as_bytes().to_vec();
        assert_eq!(read_as_http_1_1(&mut input), expected.is_some(), "{text:?}");
        assert_eq!(input, expected.unwrap_or(text).as_bytes());
    }
}

#[test]
fn queries_may_have_what_browsers_send() {
    for text in ["/a?b=\\c`d|e{f}^[g]'", "/?\\"] {
        let target = Target::parse("GET", text).unwrap();
        let (_, query) = text.split_once('?').unwrap();
        assert_eq!(target.query, Some(query));
    }
}

#[test]
fn an_unknown_expectation_is_for_whoever_knows_it() {
    for (expect, is_continue) in [
        ("100-Continue", true),
        ("200-ok", false),
        ("100-continue, x", false),
    ] {
        let text =
            format!("POST / HTTP/1.1\r\nhost: a\r\nexpect: {expect}\r\ncontent-length: 1\r\n\r\n");
        let mut storage = HeadStorage::new();
        let mut decoder = RequestDecoder::new(RequestLimits::default());
        let (head, _) = decoder
            .decode_head(text.as_bytes(), &mut storage)
            .unwrap()
            .unwrap();
        assert_eq!(head.expects_continue, is_continue, "{expect}");
    }
}
