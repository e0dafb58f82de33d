//! A response of FastCGI comes to the same, whether it was read whole or byte by byte, and so does the head within it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::fastcgi::{CgiHead, RecordDecoder, FastCgiRecordError, RecordSink};

#[derive(Debug, Default, PartialEq, Eq)]
struct Output {
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl RecordSink for Output {
    fn output(&mut self, piece: &[u8]) {
        self.output.extend_from_slice(piece);
    }

    fn error(&mut self, piece: &[u8]) {
        self.errors.extend_from_slice(piece);
    }
}

/// Bytes behind the response, once it is complete.
fn decoded(pieces: &mut dyn Iterator<Item = &[u8]>) -> (Output, Result<bool, FastCgiRecordError>) {
    let mut decoder = RecordDecoder::default();
    let mut output = Output::default();
    for piece in pieces {
        match decoder.decode(piece, &mut output) {
            Ok(None) => {}
            Ok(Some(_)) => return (output, Ok(true)),
            Err(error) => return (output, Err(error)),
        }
    }
    (output, Ok(false))
}

fuzz_target!(|data: &[u8]| {
    let whole = decoded(&mut std::iter::once(data));
    assert_eq!(decoded(&mut data.chunks(1)), whole);
    let (Output { output, .. }, _) = whole;
    if let Ok(Some(head)) = CgiHead::parse(&output) {
        assert!(head.bytes <= output.len());
        for length in 0..head.bytes {
            assert!(matches!(CgiHead::parse(&output[..length]), Ok(None)));
        }
    }
});
