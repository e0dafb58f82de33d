//! The header of a QUIC packet is within the datagram, and the same whatever follows it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::QuicHeader;

fuzz_target!(|data: &[u8]| {
    let Ok(QuicHeader::Long(header)) = QuicHeader::parse(data) else {
        return;
    };
    let length = 7 + header.destination.len() + header.source.len();
    assert_eq!(QuicHeader::parse(&data[..length]), Ok(QuicHeader::Long(header)));
    assert!(QuicHeader::parse(&data[..length - 1]).is_err());
    assert_eq!(header.destination, &data[6..6 + header.destination.len()]);
    assert_eq!(header.source, &data[length - header.source.len()..length]);
});
