//! A ClientHello comes to the same, whatever follows it, and nothing shorter is one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::tls::ClientHello;

fuzz_target!(|data: &[u8]| {
    ClientHello::parse_message(data).ok();
    let whole = ClientHello::parse(data);
    // More bytes change nothing about what is decided already.
    for length in 0..data.len().min(512) {
        let shorter = ClientHello::parse(&data[..length]);
        assert!(shorter == Ok(None) || shorter == whole);
    }
    if let Ok(Some(hello)) = whole {
        assert!(
            hello
                .server_name
                .is_none_or(|name| !name.is_empty() && name.is_ascii())
        );
        assert!(hello.alpn.iter().all(|protocol| !protocol.is_empty()));
    }
});
