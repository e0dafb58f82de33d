//! Messages of gRPC are counted alike, whether their body was read whole or in pieces; and those that
//! are found are framed as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_client::grpc::{MessageCounter, frame, messages};
use plimsoll_fuzz::cut;

fuzz_target!(|data: &[u8]| {
    let (pieces, whole) = cut(data);
    let count = |pieces: &[&[u8]]| {
        let mut counter = MessageCounter::default();
        for piece in pieces {
            counter.push(piece);
        }
        counter.finish()
    };
    let found = messages(whole);
    assert_eq!(count(&[whole]), count(&pieces));
    assert_eq!(
        count(&[whole]),
        found.clone().map(|found| found.len() as u64)
    );
    if let Ok(found) = found {
        assert_eq!(frame(&found).as_deref(), Ok(whole));
    }
});
