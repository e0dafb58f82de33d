//! A PROXY header comes to the same, whether it was read whole or in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::ProxyHeader;

fuzz_target!(|data: &[u8]| {
    let whole = ProxyHeader::parse(data);
    if let Ok(Some(header)) = whole {
        assert!(header.length <= data.len());
        assert_eq!(ProxyHeader::parse(&data[..header.length]), whole);
        // Nothing shorter is a header.
        for length in 0..header.length {
            assert_eq!(ProxyHeader::parse(&data[..length]), Ok(None));
        }
    }
});
