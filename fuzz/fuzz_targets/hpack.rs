//! Header blocks: decoding what others wrote stays within its limits and does not depend on who looks
//! at the values; what our encoder writes, whatever tables went before, is what was meant.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::cut;
use plimsoll_wire::h2::RequestHead;
use plimsoll_wire::h2::hpack::{Decoder, Encoder, FieldLimits, Fields, HpackError, PseudoWatch};

const LIMITS: FieldLimits = FieldLimits {
    count: 16,
    bytes: 2000,
};

fuzz_target!(|data: &[u8]| {
    let (blocks, whole) = cut(data);
    decode(&blocks);
    encode(whole);
});

fn decode(blocks: &[&[u8]]) {
    let mut keeping = Decoder::new(4096, LIMITS);
    let mut skipping = Decoder::new(4096, LIMITS);
    let mut watch = PseudoWatch::default();
    let mut fields = Fields::default();
    // Blocks that keep coming are recognised, not decoded.
    let repeated = blocks
        .iter()
        .flat_map(|block| std::iter::repeat_n(block, 1 + block.len() % 64));
    for block in repeated {
        let kept = keeping.decode(block, Some(&mut fields));
        watch.look(block);
        let bytes: usize = fields
            .iter()
            .map(|(name, value)| name.len() + value.len() + 32)
            .sum();
        assert!(bytes <= LIMITS.bytes && fields.len() <= LIMITS.count);
        match (kept, skipping.decode(block, None)) {
            // Values that are passed over can only make a message worse than it seems.
            (Ok(kept), Ok(_)) if kept.malformed.is_some() => {}
            (Ok(kept), Ok(skipped)) => {
                assert_eq!(skipped.malformed, None);
                assert_eq!(kept.status, skipped.status);
                assert_eq!(kept.content_length, skipped.content_length);
            }
            // A value that is passed over is not judged.
            (Err(HpackError::Huffman), _) => return,
            (Err(kept), Err(skipped)) => {
                assert_eq!(kept, skipped);
                return;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Reads lines of `name: value` as the fields of requests, an empty line between two, and a line of
/// digits as a table size.
fn encode(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let mut encoder = Encoder::new();
    let mut decoder = Decoder::new(
        4096,
        FieldLimits {
            count: usize::MAX,
            bytes: usize::MAX,
        },
    );
    let mut decoded = Fields::default();
    for paragraph in text.split("\n\n") {
        let mut head = RequestHead::new("GET", "http", "a", "/").expect("a valid head");
        for line in paragraph.lines() {
            if let Ok(size) = line.parse() {
                encoder.resize(size);
            } else if let Some((name, value)) = line.split_once(": ") {
                // What cannot be said in HTTP/2 is refused.
                head.field(name, value).ok();
            }
        }
        let request = head.finish(None);
        for _ in 0..3 {
            let block = encoder.encode(&request);
            let summary = decoder
                .decode(block, Some(&mut decoded))
                .expect("our own block");
            assert_eq!(summary.status, None);
            assert!(decoded.iter().eq(request.headers()));
        }
    }
}
