//! An HTTP/2 connection comes to the same, whether its bytes came whole or in pieces, and every
//! exchange on it ends exactly once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::cut;
use plimsoll_fuzz::h2::read_connection;

fuzz_target!(|data: &[u8]| {
    let (pieces, whole) = cut(data);
    for cancel in [None, Some(0), Some(3)] {
        assert_eq!(
            read_connection(&[whole], cancel),
            read_connection(&pieces, cancel)
        );
    }
});
