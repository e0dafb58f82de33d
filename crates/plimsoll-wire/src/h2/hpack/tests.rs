use proptest::prelude::*;

use super::*;
use crate::h2::{EncodedRequest, MessageError, RequestHead};

/// Bytes from hexadecimal text.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| u8::try_from(char::from(byte).to_digit(16).unwrap()).unwrap())
        .collect();
    digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

const LIMITS: FieldLimits = FieldLimits {
    count: 100,
    bytes: 10_000,
};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The fields of a block as lines of text.
fn lines(fields: &Fields) -> Vec<String> {
    fields
        .iter()
        .map(|(name, value)| format!("{}: {}", text(name), text(value)))
        .collect()
}

#[track_caller]
fn check(decoder: &mut Decoder, block: &str, expected: &str) -> Summary {
    let mut fields = Fields::default();
    let summary = decoder.decode(&unhex(block), Some(&mut fields)).unwrap();
    let expected: Vec<_> = expected.lines().map(str::trim).collect();
    assert_eq!(lines(&fields), expected);
    summary
}

const REQUESTS: [&str; 3] = [
    ":method: GET
     :scheme: http
     :path: /
     :authority: www.example.com",
    ":method: GET
     :scheme: http
     :path: /
     :authority: www.example.com
     cache-control: no-cache",
    ":method: GET
     :scheme: https
     :path: /index.html
     :authority: www.example.com
     custom-key: custom-value",
];

#[test]
fn requests_of_appendix_c_3_and_c_4() {
    for blocks in [
        [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ],
        HUFFMAN_REQUESTS,
    ] {
        let mut decoder = Decoder::new(4096, LIMITS);
        for (block, expected) in blocks.into_iter().zip(REQUESTS) {
            check(&mut decoder, block, expected);
        }
    }
}

const HUFFMAN_REQUESTS: [&str; 3] = [
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
    "8286 84be 5886 a8eb 1064 9cbf",
    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
];

#[test]
fn requests_are_encoded_as_in_appendix_c_4() {
    let mut encoder = Encoder::new();
    let request = |scheme, path, field: Option<(&str, &str)>| {
        let mut head = RequestHead::new("GET", scheme, "www.example.com", path).unwrap();
        if let Some((name, value)) = field {
            head.field(name, value).unwrap();
        }
        head.finish(None)
    };
    let requests = [
        request("http", "/", None),
        request("http", "/", Some(("cache-control", "no-cache"))),
        request("https", "/index.html", Some(("custom-key", "custom-value"))),
    ];
    for (request, block) in requests.iter().zip(HUFFMAN_REQUESTS) {
        assert_eq!(encoder.encode(request), unhex(block));
    }
    // By now each field is in a table.
    assert_eq!(encoder.encode(&requests[0]), unhex("8286 84c0"));
    assert_eq!(encoder.encode(&requests[2]), unhex("8287 85c0 be"));
    assert_eq!(encoder.encode(&requests[0]), unhex("8286 84c0"));
}

#[test]
fn responses_of_appendix_c_5_and_c_6_evict() {
    let expected = [
        ":status: 302
         cache-control: private
         date: Mon, 21 Oct 2013 20:13:21 GMT
         location: https://www.example.com",
        ":status: 307
         cache-control: private
         date: Mon, 21 Oct 2013 20:13:21 GMT
         location: https://www.example.com",
        ":status: 200
         cache-control: private
         date: Mon, 21 Oct 2013 20:13:22 GMT
         location: https://www.example.com
         content-encoding: gzip
         set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    ];
    let plain = [
        "3fe101
         4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a
         3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04
         677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49
         553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    let huffman = [
        "3fe101
         4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e
         919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7
         821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed
         4ee5 b106 3d50 07",
    ];
    for blocks in [plain, huffman] {
        let mut decoder = Decoder::new(4096, LIMITS);
        for ((block, expected), status) in blocks.into_iter().zip(expected).zip([302, 307, 200]) {
            let summary = check(&mut decoder, block, expected);
            assert_eq!(summary.status, Some(status));
            assert_eq!(summary.malformed, None);
        }
        let set_cookie = decoder.decode(&unhex("be"), None);
        assert!(set_cookie.is_ok());
        assert_eq!(
            decoder.decode(&unhex("c1"), None),
            Err(HpackError::Index(65)),
            "three entries are left"
        );
    }
}

#[test]
fn blocks_that_cannot_be_decompressed() {
    for (block, error) in [
        ("80", HpackError::Index(0)),
        ("be", HpackError::Index(62)),
        ("ff80808080", HpackError::Integer),
        ("7f", HpackError::Truncated),
        ("48", HpackError::Truncated),
        ("4803 3330", HpackError::Truncated),
        ("4882 64", HpackError::Truncated),
        ("4881 00", HpackError::Huffman),
        ("7e0161", HpackError::Index(62)),
        ("88 20", HpackError::LateTableSize),
        (
            "3fe21f",
            HpackError::TableSize {
                size: 4097,
                limit: 4096,
            },
        ),
    ] {
        for keep in [None, Some(&mut Fields::default())] {
            let mut decoder = Decoder::new(4096, LIMITS);
            assert_eq!(decoder.decode(&unhex(block), keep), Err(error), "{block}");
        }
    }
}

#[test]
fn a_smaller_table_has_to_be_followed() {
    let mut decoder = Decoder::new(100, LIMITS);
    assert_eq!(
        decoder.decode(&unhex("88"), None),
        Err(HpackError::MissingTableSize)
    );
    let mut decoder = Decoder::new(100, LIMITS);
    assert!(decoder.decode(&unhex("20 3f45 88"), None).is_ok());
    assert!(decoder.decode(&unhex("88"), None).is_ok());
}

#[test]
fn what_a_response_may_not_have() {
    use MessageError as Error;

    for (block, error) in [
        ("8888", Error::Status),
        ("4803 303939", Error::Status),
        ("84", Error::PseudoField),
        // server: a, then :status
        ("0f2701 61 88", Error::PseudoField),
        ("88 0001 41 00", Error::FieldName),
        ("88 0000 00", Error::FieldName),
        ("88 0f2a 01 61", Error::ConnectionSpecific),
        ("88 000a 636f6e6e656374696f6e 00", Error::ConnectionSpecific),
        ("88 0f0d 01 61", Error::ContentLength),
        ("88 0f0d 01 31 0f0d 01 32", Error::ContentLength),
        ("88 9c", Error::ContentLength),
    ] {
        for keep in [None, Some(&mut Fields::default())] {
            let mut decoder = Decoder::new(4096, LIMITS);
            let summary = decoder.decode(&unhex(block), keep).unwrap();
            assert_eq!(summary.malformed, Some(error), "{block}");
        }
    }
}

/// An error in one message must not spoil another on the same connection.
#[test]
fn a_malformed_entry_lends_its_name() {
    let mut decoder = Decoder::new(4096, LIMITS);
    let mut malformed = |block: &str| decoder.decode(&unhex(block), None).unwrap().malformed;
    // a: " ", then content-length: x
    assert_eq!(malformed("88 4001 6101 20"), Some(MessageError::FieldValue));
    assert_eq!(malformed("88 be"), Some(MessageError::FieldValue));
    assert_eq!(malformed("88 0f2f 01 62"), None);
    assert_eq!(malformed("88 7e01 62"), None);
    assert_eq!(malformed("88 5c01 78"), Some(MessageError::ContentLength));
    assert_eq!(malformed("88 0f2f 01 35"), None);
    assert_eq!(
        malformed("88 0f2f 01 79"),
        Some(MessageError::ContentLength)
    );
}

#[test]
fn fields_are_bounded() {
    let limits = FieldLimits {
        count: 2,
        bytes: 100,
    };
    let malformed = |block: &str| {
        let mut fields = Fields::default();
        let mut decoder = Decoder::new(4096, limits);
        let summary = decoder.decode(&unhex(block), Some(&mut fields)).unwrap();
        (summary.malformed, fields.len())
    };
    assert_eq!(
        malformed("88 95 95"),
        (Some(MessageError::TooManyHeaders { limit: 2 }), 2)
    );
    assert_eq!(
        malformed(&format!("88 0f27 20 {}", "61".repeat(32))),
        (Some(MessageError::HeadersTooLarge { limit: 100 }), 1)
    );
}

#[test]
fn a_peer_with_a_smaller_table_is_reported_and_respected() {
    let mut head = RequestHead::new("GET", "http", "a", "/").unwrap();
    head.field("accept", "x").unwrap();
    let request = head.finish(None);
    let mut encoder = Encoder::new();
    encoder.encode(&request);
    assert_eq!(encoder.encode(&request), unhex("8286 84bf be"));
    // Room for `accept: x` only, which is the youngest.
    encoder.resize(40);
    assert_eq!(encoder.encode(&request), unhex("3f09 8286 84 0101 61 be"));
    encoder.resize(0);
    encoder.resize(4096);
    assert_eq!(
        encoder.encode(&request),
        unhex("20 3fe11f 8286 84 4101 61 5301 78")
    );
    assert_eq!(encoder.encode(&request), unhex("8286 84bf be"));
}

#[test]
fn secrets_stay_out_of_the_table() {
    let mut head = RequestHead::new("GET", "http", "a", "/").unwrap();
    head.field("Authorization", "x").unwrap();
    head.field("cookie", "y").unwrap();
    let request = head.finish(None);
    let mut encoder = Encoder::new();
    encoder.encode(&request);
    assert_eq!(
        encoder.encode(&request),
        unhex("8286 84be 1f08 01 78 1f11 01 79")
    );
}

#[test]
fn passing_values_stay_out_of_the_table_and_leave_what_is_remembered() {
    let request = RequestHead::new("GET", "http", "a", "/")
        .unwrap()
        .finish(None);
    let mut passing = request.clone();
    let mut encoder = Encoder::new();
    encoder.encode(&request);
    for path in ["/1", "/2"] {
        let mut rewrite = passing.rewrite();
        rewrite.field(EncodedRequest::PATH, |value| {
            value.extend_from_slice(path.as_bytes());
        });
        let mut expected = unhex("8286 0402");
        expected.extend_from_slice(path.as_bytes());
        expected.push(0xbe);
        assert_eq!(encoder.encode(&passing), expected);
        assert_eq!(encoder.encode(&request), unhex("8286 84be"));
    }
}

/// Requests from a small alphabet, so that the same fields come again.
fn requests() -> impl Strategy<Value = Vec<EncodedRequest>> {
    let field = ("[a-c]{1,3}|cookie|accept", "[a-z0-9 ;=]{0,40}");
    let request = (
        "GET|POST|PUT",
        "/[a-b]{0,2}",
        prop::collection::vec(field, 0..6),
    )
        .prop_map(|(method, path, fields)| {
            let mut head = RequestHead::new(&method, "http", "example.org", &path).unwrap();
            for (name, value) in fields {
                head.field(&name, value.trim()).unwrap();
            }
            head.finish(None)
        });
    prop::collection::vec(request, 1..12)
}

#[test]
fn a_block_that_keeps_coming_is_recognised_once_the_table_holds_nothing_else() {
    let mut decoder = Decoder::new(4096, LIMITS);
    // `:status: 200`, and `server: <60 bytes>` inserted: 98 of the 4096 bytes that there are.
    let mut block = vec![0x88, 0x76, 60];
    block.resize(63, b'n');
    let others = [vec![0x88], vec![0x88, 0x76, 1, b'x']];
    for _ in 0..2 {
        for time in 1..=45 {
            assert_eq!(
                decoder.recognises(&block),
                time > 42,
                "before it comes for the {time}th time"
            );
            assert_eq!(decoder.decode(&block, None).unwrap().status, Some(200));
        }
        for other in &others {
            decoder.decode(other, None).unwrap();
            assert!(!decoder.recognises(&block));
        }
    }
    // One that inserts nothing is known at once, whatever entries it names.
    let named = [0x88, 0xbe];
    decoder.decode(&named, None).unwrap();
    assert!(decoder.recognises(&named));
    // Unless somebody takes the fields, which are not remembered.
    let mut fields = Fields::default();
    decoder.decode(&named, Some(&mut fields)).unwrap();
    assert!(!decoder.recognises(&named));
    assert_eq!(lines(&fields), [":status: 200", "server: x"]);
    // One that names an entry and inserts it anew is never the same.
    let moving = [0x88, 0x7e, 1, b'y'];
    for _ in 0..500 {
        decoder.decode(&moving, None).unwrap();
        assert!(!decoder.recognises(&moving));
    }
    // Nor is one that changes the table's size.
    let resizing = [0x20, 0x88];
    decoder.decode(&resizing, None).unwrap();
    assert!(!decoder.recognises(&resizing));
}

/// A block of response fields: indexed, inserted, passed over, with names of either table.
fn response_block() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        // `server`, `date`, `etag` and `content-length: N`, inserted.
        (prop::sample::select(vec![54, 33, 34]), 0_u8..127).prop_map(|(name, length)| {
            let mut field = vec![0x40 | name, length];
            field.extend(std::iter::repeat_n(b'v', length.into()));
            field
        }),
        (0_u8..10).prop_map(|digit| vec![0x5c, 1, b'0' + digit]),
        // A new name, inserted.
        (b'a'..b'e').prop_map(|name| vec![0x40, 1, name, 2, b'o', b'k']),
        // Passed over.
        Just(vec![0x0f, 54 - 15, 3, b'a', b'b', b'c']),
        // Entries of the table, and their names.
        (62_u8..70).prop_map(|index| vec![0x80 | index]),
        (0_u8..4).prop_map(|index| vec![0x7f, index, 1, b'x']),
        // The size of the table.
        Just(vec![0x3f, 0x61]),
    ];
    prop::collection::vec(field, 0..6).prop_map(|fields| {
        let mut block = fields.concat();
        // `:status: 200` goes first, but behind a change of the table's size.
        let resizes = block.starts_with(&[0x3f, 0x61]);
        block.insert(if resizes { 2 } else { 0 }, 0x88);
        block
    })
}

proptest! {
    /// Whatever tables go through in between, the peer reads what was meant.
    #[test]
    fn what_is_encoded_is_decoded(
        requests in requests(),
        sends in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::option::weighted(0.1, 0_u32..5000)),
            1..60,
        ),
    ) {
        let mut encoder = Encoder::new();
        let mut decoder = Decoder::new(4096, LIMITS);
        let mut fields = Fields::default();
        let mut passing = requests[0].clone();
        for (index, size) in sends {
            if let Some(size) = size {
                encoder.resize(size);
            }
            let request = index.get(&requests);
            let block = encoder.encode(request);
            decoder.decode(block, Some(&mut fields)).unwrap();
            prop_assert!(fields.iter().eq(request.headers()));
            let position = index.index(request.headers().count());
            passing.clone_from(request);
            passing.rewrite().field(position, |value| value.extend_from_slice(b"/passing"));
            let block = encoder.encode(&passing);
            decoder.decode(block, Some(&mut fields)).unwrap();
            prop_assert!(fields.iter().eq(passing.headers()));
        }
    }

    /// A block that is recognised says and does what it did when it was decoded.
    #[test]
    fn recognising_blocks_changes_nothing(
        pool in prop::collection::vec(response_block(), 1..4),
        runs in prop::collection::vec((any::<prop::sample::Index>(), 1_usize..80), 1..8),
    ) {
        let mut keeping = Decoder::new(4096, LIMITS);
        let mut skipping = Decoder::new(4096, LIMITS);
        for (index, times) in runs {
            let block = index.get(&pool);
            for _ in 0..times {
                let kept = keeping.decode(block, Some(&mut Fields::default()));
                let skipped = skipping.decode(block, None);
                match (kept, skipped) {
                    (Ok(kept), Ok(skipped)) => {
                        prop_assert_eq!(kept.status, skipped.status);
                        prop_assert_eq!(kept.content_length, skipped.content_length);
                        prop_assert_eq!(kept.malformed, skipped.malformed);
                    }
                    (Err(kept), Err(skipped)) => {
                        prop_assert_eq!(kept, skipped);
                        return Ok(());
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
                prop_assert_eq!(keeping.entries(), skipping.entries());
            }
        }
    }

    /// Skipping values changes nothing but the reported fields.
    #[test]
    fn skipping_values_keeps_the_state(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..6),
    ) {
        let mut keeping = Decoder::new(4096, LIMITS);
        let mut skipping = Decoder::new(4096, LIMITS);
        for block in blocks {
            let kept = keeping.decode(&block, Some(&mut Fields::default()));
            let skipped = skipping.decode(&block, None);
            match (kept, skipped) {
                (Ok(kept), Ok(skipped)) if kept.malformed.is_none() => {
                    prop_assert_eq!(skipped.malformed, None);
                    prop_assert_eq!(kept.status, skipped.status);
                    prop_assert_eq!(kept.content_length, skipped.content_length);
                }
                (Ok(_), Ok(_)) => {}
                (Err(kept), Err(skipped)) if kept == skipped => break,
                (Err(HpackError::Huffman), _) => break,
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}

proptest! {
    /// Blocks written field by field say what they were given, whatever the tables hold meanwhile.
    #[test]
    fn what_is_written_field_by_field_is_decoded(
        blocks in prop::collection::vec(
            prop::collection::vec(
                (
                    prop::sample::select(vec![
                        "accept", "X-Mixed-Case", "cookie", "authorization", "user-agent", "x-request-id",
                        "accept-encoding", "a-name-that-no-table-has",
                    ]),
                    "[a-z0-9]{0,60}",
                ),
                0..12,
            ),
            1..30,
        ),
        sizes in prop::collection::vec(0_u32..5000, 30),
    ) {
        let mut encoder = Encoder::new();
        let mut decoder = Decoder::new(DEFAULT_TABLE_SIZE, LIMITS);
        for (block, size) in blocks.iter().zip(sizes) {
            if size < 1000 {
                encoder.resize(size);
            }
            encoder.begin_block();
            for (name, value) in block {
                encoder.put_text(name.as_bytes(), value.as_bytes());
            }
            let mut fields = Fields::default();
            decoder.decode(encoder.block(), Some(&mut fields)).unwrap();
            let expected: Vec<_> = block
                .iter()
                .map(|(name, value)| format!("{}: {value}", name.to_lowercase()))
                .collect();
            prop_assert_eq!(lines(&fields), expected);
        }
    }
}

#[test]
fn a_field_that_comes_again_is_one_byte_and_secrets_enter_no_table() {
    let mut encoder = Encoder::new();
    let mut block = |name: &[u8], value: &[u8]| {
        encoder.begin_block();
        encoder.put_text(name, value);
        encoder.block().to_vec()
    };
    assert!(block(b"x-a", b"1").len() > 1);
    assert_eq!(block(b"x-a", b"1").len(), 1);
    let secret = block(b"authorization", b"Basic abc");
    assert_eq!(secret[0] & 0xf0, 0x10);
    assert_eq!(block(b"authorization", b"Basic abc"), secret);
    let path = block(b":path", b"/a?b");
    assert_eq!(path[0] & 0xf0, 0x00);
    assert_eq!(block(b":path", b"/a?b"), path);
}
