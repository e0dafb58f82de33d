//! A stream of events comes to the same, whether it was read whole or in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::cut;
use plimsoll_fuzz::sse::read_events;

fuzz_target!(|data: &[u8]| {
    let (pieces, whole) = cut(data);
    assert_eq!(read_events(&[whole]), read_events(&pieces));
});
