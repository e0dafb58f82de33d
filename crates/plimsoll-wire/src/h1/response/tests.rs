use plimsoll_model::FailureKind;
use proptest::prelude::*;

use super::*;

/// The outcome of feeding bytes to a decoder and closing the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    status: u16,
    content: Vec<u8>,
    result: Result<bool, DecodeError>,
    persistent: bool,
    /// Bytes that belong to no response.
    surplus: usize,
}

struct Keep {
    wants_head: bool,
    content: Vec<u8>,
}

impl ResponseSink for Keep {
    fn wants_head(&self) -> bool {
        self.wants_head
    }

    fn head(&mut self, _head: &ResponseHead<'_>) {
        assert!(self.wants_head, "the head was not wanted");
        assert!(self.content.is_empty(), "the head comes before the content");
    }

    fn content(&mut self, piece: &[u8]) {
        self.content.extend_from_slice(piece);
    }
}

fn small() -> Limits {
    Limits {
        head_bytes: 2048,
        headers: 8,
        body_bytes: 4096,
        interim: 2,
        chunk_overhead_bytes: 64,
    }
}

fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, head_request: bool) -> Outcome {
    feed_to(true, &mut KnownHead::new(), pieces, head_request)
}

fn feed_to<'a>(
    wants_head: bool,
    known: &mut KnownHead,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    head_request: bool,
) -> Outcome {
    let mut decoder = ResponseDecoder::new(small());
    decoder.begin(head_request);
    let mut keep = Keep {
        wants_head,
        content: Vec::new(),
    };
    let mut surplus = 0;
    let mut result = Ok(false);
    for piece in pieces {
        if result != Ok(false) {
            surplus += piece.len();
            continue;
        }
        result = decoder.decode(piece, &mut keep, known).map(|decoded| {
            surplus += piece.len() - decoded.consumed;
            decoded.complete
        });
    }
    if result == Ok(false) {
        result = decoder.end_of_stream().map(|()| true);
    }
    if result.is_err() {
        // How much was left over when an error was noticed depends on the reads.
        surplus = 0;
        keep.content.clear();
    }
    Outcome {
        status: decoder.status(),
        content: keep.content,
        persistent: result.is_ok() && decoder.is_persistent(),
        surplus,
        result,
    }
}

fn whole(text: &str) -> Outcome {
    feed([text.as_bytes()], false)
}

#[track_caller]
fn complete(text: &str, status: u16, content: &str, persistent: bool) {
    assert_eq!(
        whole(text),
        Outcome {
            status,
            content: content.into(),
            result: Ok(true),
            persistent,
            surplus: 0
        },
        "{text:?}"
    );
}

#[track_caller]
fn refused(text: &str, error: DecodeError) {
    assert_eq!(whole(text).result, Err(error), "{text:?}");
}

#[test]
fn content_by_length() {
    complete(
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        200,
        "hello",
        true,
    );
    complete(
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        200,
        "",
        true,
    );
    complete(
        "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nhi",
        200,
        "hi",
        true,
    );
    complete(
        "HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nno",
        404,
        "no",
        true,
    );
}

#[test]
fn content_by_chunks() {
    complete(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n3\r\n...\r\n0\r\nt: 1\r\n\r\n",
        200,
        "hello...",
        true,
    );
}

#[test]
fn content_until_close() {
    complete("HTTP/1.1 200 OK\r\n\r\nhello", 200, "hello", false);
    complete("HTTP/1.0 200 OK\r\n\r\n", 200, "", false);
}

#[test]
fn framing_that_others_may_read_otherwise_is_refused() {
    let coding = DecodeError::TransferEncoding;
    let length = DecodeError::ContentLength;
    for (fields, expected) in [
        ("transfer-encoding: gzip, chunked\r\n", Err(coding)),
        (
            "transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n",
            Err(coding),
        ),
        ("transfer-encoding: chunked, chunked\r\n", Err(coding)),
        (
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            Err(coding),
        ),
        ("transfer-encoding: gzip\r\n", Err(coding)),
        ("transfer-encoding: foo\r\n", Err(coding)),
        (
            "transfer-encoding: identity\r\ncontent-length: 5\r\n",
            Err(coding),
        ),
        ("transfer-encoding: xchunked\r\n", Err(coding)),
        ("transfer-encoding:\r\n", Err(coding)),
        (
            "content-length: 5\r\ntransfer-encoding: chunked\r\n",
            Err(length),
        ),
        (
            "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
            Err(length),
        ),
        ("content-length: 5\r\ncontent-length: 6\r\n", Err(length)),
        ("content-length: 5, 6\r\n", Err(length)),
        ("content-length: 5\r\ncontent-length: 5\r\n", Ok(true)),
        ("content-length: 5, 5\r\n", Ok(true)),
        ("content-length: 5\r\n", Ok(true)),
        ("transfer-encoding: Chunked\r\n", Ok(true)),
    ] {
        let is_chunked = fields.contains("hunked");
        let content = if is_chunked {
            "5\r\nhello\r\n0\r\n\r\n"
        } else {
            "hello"
        };
        let outcome = whole(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n{content}"));
        assert_eq!(outcome.result, expected, "{fields}");
        if expected.is_ok() {
            assert_eq!(outcome.content, b"hello", "{fields}");
        }
    }
    // Without content nothing can be read otherwise.
    let fields = "content-length: 5\r\ntransfer-encoding: gzip, chunked\r\n\r\n";
    let head = feed([format!("HTTP/1.1 200 OK\r\n{fields}").as_bytes()], true);
    assert_eq!((head.result, head.persistent), (Ok(true), false));
}

#[test]
fn statuses_without_content() {
    complete("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true);
    complete(
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n\r\n",
        304,
        "",
        true,
    );
    let head = feed(
        [&b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n"[..]],
        true,
    );
    assert_eq!((head.result, head.persistent), (Ok(true), true));
}

#[test]
fn interim_responses_are_passed_over() {
    complete(
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        200,
        "ok",
        true,
    );
    refused(
        &"HTTP/1.1 100 Continue\r\n\r\n".repeat(3),
        DecodeError::TooManyInterim { limit: 2 },
    );
    refused(
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        DecodeError::Upgrade,
    );
}

#[test]
fn persistence() {
    let persistent = |head: &str| whole(&format!("{head}content-length: 0\r\n\r\n")).persistent;
    assert!(persistent("HTTP/1.1 200 OK\r\n"));
    assert!(!persistent("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n"));
    assert!(!persistent("HTTP/1.0 200 OK\r\n"));
    assert!(persistent("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n"));
}

#[test]
fn bytes_after_the_response_are_surplus() {
    let outcome = whole("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 500");
    assert_eq!((outcome.result, outcome.surplus), (Ok(true), 12));
}

#[test]
fn malformed_answers_are_typed() {
    refused(
        "SSH-2.0-OpenSSH_9.2\r\n",
        DecodeError::Head(httparse::Error::Version),
    );
    refused(
        "HTTP/1.1 20x OK\r\n\r\n",
        DecodeError::Head(httparse::Error::Status),
    );
    refused("HTTP/1.1 099 No\r\n\r\n", DecodeError::Status(99));
    refused(
        "HTTP/2 200\r\n\r\n",
        DecodeError::Head(httparse::Error::Version),
    );
    refused(
        "HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n",
        DecodeError::Head(httparse::Error::HeaderName),
    );
    refused(
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        DecodeError::ContentLength,
    );
    refused(
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        DecodeError::TransferEncoding,
    );
    refused(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        DecodeError::Chunk,
    );
}

#[test]
fn limits_are_kept() {
    refused(
        &format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "x".repeat(2048)),
        DecodeError::HeadTooLarge { limit: 2048 },
    );
    refused(
        &format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(9)),
        DecodeError::TooManyHeaders { limit: 8 },
    );
    refused(
        "HTTP/1.1 200 OK\r\ncontent-length: 4097\r\n\r\n",
        DecodeError::BodyTooLarge { limit: 4096 },
    );
    refused(
        &format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(4097)),
        DecodeError::BodyTooLarge { limit: 4096 },
    );
    assert_eq!(
        DecodeError::BodyTooLarge { limit: 1 }.kind(),
        FailureKind::TooLarge
    );
}

#[test]
fn an_early_end_says_where() {
    refused("", DecodeError::ClosedBeforeHead);
    refused("HTTP/1.1 200 OK\r\nconte", DecodeError::ClosedInHead);
    refused(
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
        DecodeError::ClosedInBody,
    );
    refused(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        DecodeError::ClosedInBody,
    );
}

#[test]
fn a_decoder_is_reused_without_memory_of_the_last_response() {
    let mut decoder = ResponseDecoder::new(small());
    decoder.begin(true);
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    assert!(
        decoder
            .decode(head, &mut (), &mut KnownHead::new())
            .unwrap()
            .complete
    );
    decoder.begin(false);
    assert_eq!(decoder.status(), 0);
    assert!(
        !decoder
            .decode(head, &mut (), &mut KnownHead::new())
            .unwrap()
            .complete
    );
    assert!(
        decoder
            .decode(b"hello", &mut (), &mut KnownHead::new())
            .unwrap()
            .complete
    );
    assert_eq!(decoder.content_bytes(), 5);
}

#[test]
fn a_known_head_is_held_to_the_limits_of_the_decoder_that_meets_it() {
    let head = b"HTTP/1.1 200 OK\r\na: 1\r\ncontent-length: 0\r\n\r\n";
    let mut known = KnownHead::new();
    let mut decode = |limits| {
        let mut decoder = ResponseDecoder::new(limits);
        decoder.begin(false);
        decoder.decode(head, &mut (), &mut known)
    };
    assert!(decode(Limits::default()).unwrap().complete);
    let narrow = Limits {
        headers: 1,
        ..Limits::default()
    };
    assert_eq!(
        decode(narrow),
        Err(DecodeError::TooManyHeaders { limit: 1 })
    );
    let short = Limits {
        head_bytes: 20,
        ..Limits::default()
    };
    assert_eq!(decode(short), Err(DecodeError::HeadTooLarge { limit: 20 }));
}

#[test]
fn a_head_that_trickles_in_is_parsed_in_linear_time() {
    // Would take minutes if every byte parsed the whole head again.
    let mut decoder = ResponseDecoder::new(Limits {
        head_bytes: 1 << 20,
        ..Limits::default()
    });
    decoder.begin(false);
    let head = format!(
        "HTTP/1.1 200 OK\r\na: {}\r\ncontent-length: 0\r\n\r\n",
        "x".repeat(900_000)
    );
    let mut complete = false;
    for byte in head.as_bytes() {
        complete = decoder
            .decode(std::slice::from_ref(byte), &mut (), &mut KnownHead::new())
            .unwrap()
            .complete;
    }
    assert!(complete);
}

/// Texts near real responses: valid parts in any order, with a few bytes damaged.
fn response() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n",
        "HTTP/1.1 304 Not Modified\r\n",
        "content-length: 5\r\n",
        "content-length: 12\r\n",
        "content-length: 99999\r\n",
        "transfer-encoding: chunked\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "connection: close\r\n",
        "x: y\n",
        "\r\n",
        "\n",
        "5\r\nhello\r\n",
        "0\r\n\r\n",
        "0\r\nt: 1\r\n\r\n",
        "hello",
        "\r",
    ]);
    (
        prop::collection::vec(part, 0..10),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        prop::bool::ANY,
    )
        .prop_map(|(parts, damage, valid_start)| {
            let mut bytes = if valid_start {
                b"HTTP/1.1 200 OK\r\n".to_vec()
            } else {
                Vec::new()
            };
            bytes.extend(parts.concat().into_bytes());
            for (index, byte) in damage {
                if !bytes.is_empty() {
                    let at = index.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            bytes
        })
}

fn split(bytes: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.push(0);
    at.push(bytes.len());
    at.sort_unstable();
    at.windows(2)
        .filter(|pair| pair[0] < pair[1])
        .map(|pair| bytes[pair[0]..pair[1]].to_vec())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_known_head_changes_nothing(
        first in response(),
        second in response(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        head_requests in prop::array::uniform2(prop::bool::ANY),
    ) {
        let mut known = KnownHead::new();
        for (bytes, head_request) in [(&first, head_requests[0]), (&second, head_requests[1]), (&first, false)] {
            let pieces = split(bytes, &cuts);
            let pieces = || pieces.iter().map(Vec::as_slice);
            let parsed = feed(pieces(), head_request);
            let met = feed_to(false, &mut known, pieces(), head_request);
            prop_assert_eq!(&parsed, &met);
            let met_again = feed_to(false, &mut known, pieces(), head_request);
            prop_assert_eq!(&parsed, &met_again);
        }
    }

    #[test]
    fn any_split_into_reads_gives_the_same_result(
        bytes in response(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        head_request in prop::bool::ANY,
    ) {
        let at_once = feed([&bytes[..]], head_request);
        let pieces = split(&bytes, &cuts);
        let in_pieces = feed(pieces.iter().map(Vec::as_slice), head_request);
        prop_assert_eq!(&at_once, &in_pieces);
        let by_byte = feed(bytes.chunks(1), head_request);
        prop_assert_eq!(&at_once, &by_byte);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        feed([&bytes[..]], false);
    }
}

/// The parts of a response as text.
#[derive(Default)]
struct Parts(Vec<String>);

impl ResponseSink for Parts {
    fn interim(&mut self, head: &ResponseHead<'_>) {
        self.0.push(format!("interim {}", head.status));
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.0.push(format!("head {}", head.status));
    }

    fn content(&mut self, piece: &[u8]) {
        self.0.push(String::from_utf8(piece.to_vec()).unwrap());
    }

    fn trailers(&mut self, lines: &[u8]) {
        self.0.push(String::from_utf8(lines.to_vec()).unwrap());
    }
}

/// The outcome of bytes that arrive one by one, and the bytes that belong to no response.
fn parts(request: RequestFacts, bytes: &[u8]) -> (Vec<String>, usize, ResponseDecoder) {
    let mut decoder = ResponseDecoder::new(small());
    decoder.begin_for(request);
    let mut parts = Parts::default();
    let mut left = 0;
    let mut is_complete = false;
    for byte in bytes {
        if is_complete {
            left += 1;
            continue;
        }
        let outcome = decoder.decode(&[*byte], &mut parts, &mut KnownHead::new());
        is_complete = outcome.unwrap().complete;
    }
    (parts.0, left, decoder)
}

#[test]
fn interim_heads_and_trailers_are_handed_over_where_they_are_wanted() {
    let bytes = b"HTTP/1.1 100 x\r\n\r\nHTTP/1.1 103 x\r\na: b\r\n\r\nHTTP/1.1 200 x\r\n\
        transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n";
    let request = RequestFacts {
        keeps_trailers: true,
        ..RequestFacts::default()
    };
    let (seen, _, decoder) = parts(request, bytes);
    let expected = [
        "interim 100",
        "interim 103",
        "head 200",
        "h",
        "i",
        "x-sum: 1\r\n",
    ];
    assert_eq!(seen, expected);
    assert!(decoder.is_persistent());
    let (seen, ..) = parts(RequestFacts::default(), bytes);
    assert_eq!(seen, expected[..5]);
}

#[test]
fn a_switch_of_protocols_that_was_requested_ends_http() {
    let bytes = b"HTTP/1.1 101 x\r\nupgrade: echo\r\ncontent-length: 9\r\n\r\nbytes";
    let request = RequestFacts {
        may_switch: true,
        ..RequestFacts::default()
    };
    let (seen, left, decoder) = parts(request, bytes);
    assert_eq!((&seen[..], left), (&["head 101".to_owned()][..], 5));
    assert!(decoder.is_tunnel() && !decoder.is_persistent());
    let mut decoder = ResponseDecoder::new(small());
    decoder.begin(false);
    let refused = decoder.decode(bytes, &mut Parts::default(), &mut KnownHead::new());
    assert_eq!(refused, Err(DecodeError::Upgrade));
}

#[test]
fn connect_makes_a_tunnel_unless_it_is_refused() {
    let request = RequestFacts {
        is_connect: true,
        ..RequestFacts::default()
    };
    let accepted = b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\nbytes";
    let (_, left, decoder) = parts(request, accepted);
    assert_eq!((left, decoder.is_tunnel()), (5, true));
    let refused = b"HTTP/1.1 403 x\r\ncontent-length: 2\r\n\r\nno";
    let (seen, left, decoder) = parts(request, refused);
    assert_eq!((seen.len(), left, decoder.is_tunnel()), (3, 0, false));
    assert!(decoder.is_persistent());
}
