//! A response comes to the same, whether it was read whole or in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::{cut, read_response};

fuzz_target!(|data: &[u8]| {
    let (pieces, whole) = cut(data);
    for head_request in [false, true] {
        assert_eq!(
            read_response(&[whole], head_request),
            read_response(&pieces, head_request)
        );
    }
});
