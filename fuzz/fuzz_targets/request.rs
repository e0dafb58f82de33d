//! Requests on a connection come to the same, whether they were read whole or in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::{cut, read_requests};

fuzz_target!(|data: &[u8]| {
    let (pieces, whole) = cut(data);
    // A mistake in a head that is not whole is noticed in one piece, but in several only at its end.
    let whole = [whole, b"\r\n\r\n"].concat();
    let pieces = [&pieces[..], &[b"\r\n\r\n"]].concat();
    assert_eq!(read_requests(&[&whole]), read_requests(&pieces));
});
