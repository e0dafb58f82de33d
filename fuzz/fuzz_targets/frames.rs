//! The frames that a server of HTTP/2 and HTTP/3 counts: the same however their bytes were cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::cut;
use plimsoll_server::contract;

fuzz_target!(|data: &[u8]| {
    let (pieces, _) = cut(data);
    contract::frames(&pieces);
});
