//! The header of a QUIC packet is within the datagram, and the same whatever follows it. So is a token, and a packet that
//! cannot be decrypted keeps its own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::{InitialPacket, QuicHeader, RetryKey, with_token};

fuzz_target!(|data: &[u8]| {
    RetryKey::new(&[7; 32]).unwrap().read(data);
    if let Some(packet) = InitialPacket::parse(data) {
        assert!(packet.token().len() < data.len());
        assert!(with_token(data, b"token").is_none());
    }
    let Ok(QuicHeader::Long(header)) = QuicHeader::parse(data) else {
        return;
    };
    let length = 7 + header.destination.len() + header.source.len();
    assert_eq!(
        QuicHeader::parse(&data[..length]),
        Ok(QuicHeader::Long(header))
    );
    assert!(QuicHeader::parse(&data[..length - 1]).is_err());
    assert_eq!(header.destination, &data[6..6 + header.destination.len()]);
    assert_eq!(header.source, &data[length - header.source.len()..length]);
});
