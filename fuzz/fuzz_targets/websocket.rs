//! Frames and the answer to a handshake come to the same, whether they were read whole or in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::cut;
use plimsoll_fuzz::ws::{read_compressed, read_frames, read_handshake};
use plimsoll_wire::ws::Role;

fuzz_target!(|data: &[u8]| {
    let (pieces, whole) = cut(data);
    for role in [Role::Client, Role::Server] {
        assert_eq!(read_frames(&[whole], role), read_frames(&pieces, role));
        assert_eq!(
            read_compressed(&[whole], role),
            read_compressed(&pieces, role)
        );
    }
    assert_eq!(read_handshake(&[whole]), read_handshake(&pieces));
});
