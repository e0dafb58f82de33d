//! Frames of HTTP/2 as no decent client writes them, and the headers of those that come back
//! (RFC 9113, sections 4 and 6).

/// The connection preface of a client (section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Octets of a frame header.
pub(super) const HEADER_BYTES: usize = 9;

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PING: u8 = 0x6;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;

pub(super) const ACK: u8 = 0x1;
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;

/// `SETTINGS_INITIAL_WINDOW_SIZE` (section 6.5.2).
pub(super) const INITIAL_WINDOW_SIZE: u16 = 0x4;

/// Appends a frame.
pub(super) fn put(output: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("payloads here are short");
    output.extend_from_slice(&(length << 8 | u32::from(kind)).to_be_bytes());
    output.push(flags);
    output.extend_from_slice(&stream.to_be_bytes());
    output.extend_from_slice(payload);
}

/// Appends SETTINGS.
pub(super) fn put_settings(output: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let payload: Vec<u8> = settings
        .iter()
        .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    put(output, SETTINGS, 0, 0, &payload);
}

/// Appends `WINDOW_UPDATE`.
pub(super) fn put_window_update(output: &mut Vec<u8>, stream: u32, increment: u32) {
    put(output, WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
}

/// The fields of a request as an HPACK block without dynamic table and Huffman codes (RFC 7541).
pub(super) fn request_block(method: Method, is_tls: bool, authority: &str, path: &str) -> Vec<u8> {
    // Indexed fields of the static table (appendix A): :method and :scheme.
    let mut block = vec![
        match method {
            Method::Get => 0x82,
            Method::Post => 0x83,
        },
        if is_tls { 0x87 } else { 0x86 },
    ];
    // Literal fields without indexing, their names from the static table: :authority and :path.
    for (name, value) in [(0x01, authority), (0x04, path)] {
        block.push(name);
        put_string(&mut block, value.as_bytes());
    }
    block
}

/// The methods of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
}

/// Appends a string literal (RFC 7541, section 5.2).
pub(super) fn put_string(block: &mut Vec<u8>, text: &[u8]) {
    let mut left = text.len();
    if left < 127 {
        block.push(u8::try_from(left).expect("it is below 127"));
    } else {
        block.push(127);
        left -= 127;
        while left >= 128 {
            block.push(0x80 | u8::try_from(left % 128).expect("it is below 128"));
            left /= 128;
        }
        block.push(u8::try_from(left).expect("it is below 128"));
    }
    block.extend_from_slice(text);
}

/// The header of a frame that came: length of its payload, kind, flags, stream.
pub(super) fn parse(header: [u8; HEADER_BYTES]) -> (usize, u8, u8, u32) {
    let [a, b, c, kind, flags, stream @ ..] = header;
    let length = u32::from_be_bytes([0, a, b, c]) as usize;
    (
        length,
        kind,
        flags,
        u32::from_be_bytes(stream) & 0x7fff_ffff,
    )
}

/// The name of an error code (section 7).
pub(super) fn code_name(code: u32) -> &'static str {
    match code {
        0x0 => "NO_ERROR",
        0x1 => "PROTOCOL_ERROR",
        0x2 => "INTERNAL_ERROR",
        0x3 => "FLOW_CONTROL_ERROR",
        0x4 => "SETTINGS_TIMEOUT",
        0x5 => "STREAM_CLOSED",
        0x6 => "FRAME_SIZE_ERROR",
        0x7 => "REFUSED_STREAM",
        0x8 => "CANCEL",
        0x9 => "COMPRESSION_ERROR",
        0xa => "CONNECT_ERROR",
        0xb => "ENHANCE_YOUR_CALM",
        0xc => "INADEQUATE_SECURITY",
        0xd => "HTTP_1_1_REQUIRED",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_written_as_they_are_read() {
        let mut output = Vec::new();
        put(&mut output, PING, ACK, 0, &[7; 8]);
        put_settings(&mut output, &[(INITIAL_WINDOW_SIZE, 0)]);
        let header = output[..HEADER_BYTES].try_into().unwrap();
        assert_eq!(parse(header), (8, PING, ACK, 0));
        let header = output[17..17 + HEADER_BYTES].try_into().unwrap();
        assert_eq!(parse(header), (6, SETTINGS, 0, 0));
        assert_eq!(&output[26..], [0, 4, 0, 0, 0, 0]);
    }

    #[test]
    fn long_strings_have_lengths_of_several_octets() {
        let mut block = Vec::new();
        put_string(&mut block, &[b'a'; 4000]);
        // 4000 - 127 = 3873 = 30 * 128 + 33 (RFC 7541, section 5.1).
        assert_eq!(&block[..4], [127, 0x80 | 0x21, 30, b'a']);
        assert_eq!(block.len(), 4003);
    }
}
