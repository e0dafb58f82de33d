//! Multipart bodies: any bytes are parts within bounds or are refused, and parts lie within their body. The first line is the
//! media type, the rest the body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_formats::{LONGEST_PART_HEADER, MOST_PARTS, parse_multipart};

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (kind, body) = bytes.split_at(end.unwrap_or(0));
    let body = body.strip_prefix(b"\n").unwrap_or(body);
    let kind = String::from_utf8_lossy(kind);
    let Ok(parts) = parse_multipart(&kind, body) else {
        return;
    };
    assert!(parts.len() <= MOST_PARTS);
    let mut taken = 0;
    for part in parts {
        let fields = part.fields().map(|(name, value)| name.len() + value.len());
        let header: usize = fields.sum();
        assert!(header <= LONGEST_PART_HEADER);
        taken += header + part.content().len();
        drop((part.name(), part.file_name(), part.content_type()));
    }
    assert!(taken < body.len());
});
