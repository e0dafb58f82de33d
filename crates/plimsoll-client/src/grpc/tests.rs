use proptest::prelude::*;

use super::*;

#[test]
fn messages_are_framed_and_found_again() {
    let framed = frame(&[b"ab".as_slice(), b""]).unwrap();
    assert_eq!(framed, b"\0\0\0\0\x02ab\0\0\0\0\0");
    assert_eq!(messages(&framed).unwrap(), [b"ab".as_slice(), b""]);
    assert_eq!(messages(b"").unwrap(), [b""; 0]);
}

#[test]
fn what_is_no_message_is_named() {
    for (body, error) in [
        (b"\0\0\0\0\x02a".as_slice(), FramingError::Truncated),
        (b"\0\0\0", FramingError::Truncated),
        (b"\x01\0\0\0\0", FramingError::Compressed),
        (b"<html>", FramingError::Flag(b'<')),
    ] {
        assert_eq!(messages(body), Err(error));
        let mut counter = MessageCounter::default();
        counter.push(body);
        assert_eq!(counter.finish(), Err(error));
    }
}

#[test]
fn a_message_under_way_is_not_complete() {
    let mut counter = MessageCounter::default();
    counter.push(b"\0\0\0\0\x01a\0\0\0\0\x02b");
    assert_eq!(counter.complete(), 1);
    counter.push(b"b");
    assert_eq!(counter.complete(), 2);
}

proptest! {
    /// However the body is cut, the counter finds what a look at the whole finds.
    #[test]
    fn any_split_counts_the_same(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..8),
        tail in prop::collection::vec(0_u8..3, 0..8),
        cuts in prop::collection::vec(1_usize..9, 1..20),
    ) {
        let mut body = frame(&contents).unwrap();
        body.extend(tail);
        let mut counter = MessageCounter::default();
        let mut rest = body.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, behind) = rest.split_at((*cut).min(rest.len()));
            counter.push(piece);
            rest = behind;
        }
        let whole = messages(&body).map(|messages| messages.len() as u64);
        prop_assert_eq!(counter.finish(), whole);
    }
}
