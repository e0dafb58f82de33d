//! Heads and settings of HTTP/3: `:protocol` is replaced and put back again, settings are the same whole and in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::cut;
use plimsoll_wire::h3::{Rewritten, SettingsReader, with_protocol};

fuzz_target!(|data: &[u8]| {
    let (pieces, whole) = cut(data);
    if let Rewritten::Changed(there) = with_protocol(whole, b"websocket", b"connect-udp") {
        let back = with_protocol(&there, b"connect-udp", b"websocket");
        let Rewritten::Changed(back) = back else {
            panic!("what was replaced is found again");
        };
        let again = with_protocol(&back, b"websocket", b"connect-udp");
        assert_eq!(again, Rewritten::Changed(there));
    }
    let mut reader = SettingsReader::default();
    let in_pieces = pieces.iter().find_map(|piece| reader.take(piece));
    assert_eq!(in_pieces, SettingsReader::default().take(whole));
});
