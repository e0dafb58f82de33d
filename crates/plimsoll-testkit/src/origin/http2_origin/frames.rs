//! Frames of a server as bytes, for scripts that a well-behaved one would not follow (RFC 9113).

/// Bytes that a client of plimsoll sends before the HEADERS frame of its first request: the preface,
/// SETTINGS with five entries, and `WINDOW_UPDATE`.
pub const OPENING_BYTES: usize = 24 + 39 + 13;

/// SETTINGS without an entry.
pub fn settings() -> Vec<u8> {
    frame(0x4, 0, 0, &[])
}

/// GOAWAY: streams after `last_stream` were not looked at.
pub fn goaway(last_stream: u32, code: u32) -> Vec<u8> {
    let payload = [last_stream.to_be_bytes(), code.to_be_bytes()].concat();
    frame(0x7, 0, 0, &payload)
}

/// A response of 200 without content.
pub fn ok(stream: u32) -> Vec<u8> {
    // Index 8 of the static table (RFC 7541, appendix A).
    frame(0x1, 0x5, stream, &[0x88])
}

/// One frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame of a test is short");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}
