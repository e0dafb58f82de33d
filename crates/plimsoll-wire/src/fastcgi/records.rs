//! Records: a header of eight bytes, content of at most 65,535 and padding.

/// `FCGI_VERSION_1`.
const VERSION: u8 = 1;

/// The number of the only request on a connection.
const REQUEST: u16 = 1;

const HEADER_BYTES: usize = 8;

/// The longest content of a record.
const MOST_CONTENT: usize = u16::MAX as usize;

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// `FCGI_RESPONDER`: an application that makes a response of a request.
const RESPONDER: u16 = 1;

/// `FCGI_KEEP_CONN`: the connection stays open behind the response.
const KEEP_CONNECTION: u8 = 1;

/// `FCGI_REQUEST_COMPLETE`.
const COMPLETE: u8 = 0;

/// Appends the records of a request to a buffer.
#[derive(Debug)]
pub struct Records<'a> {
    out: &'a mut Vec<u8>,
    /// Where the record of parameters begins that is being written.
    start: usize,
}

impl<'a> Records<'a> {
    /// Begins a request whose connection is kept.
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        // As most requests have them: parameters are many and short.
        out.reserve(1024);
        header(out, BEGIN_REQUEST, 8);
        out.extend_from_slice(&RESPONDER.to_be_bytes());
        out.extend_from_slice(&[KEEP_CONNECTION, 0, 0, 0, 0, 0]);
        let start = out.len();
        header(out, PARAMS, 0);
        Self { out, start }
    }

    /// Appends a parameter.
    pub fn parameter(&mut self, name: &[u8], value: &[u8]) {
        let mut lengths = [0; 8];
        let mut used = 0;
        for length in [name.len(), value.len()] {
            used += put_length(&mut lengths[used..], length);
        }
        let lengths = &lengths[..used];
        let all = lengths.len() + name.len() + value.len();
        if all <= MOST_CONTENT - self.content() {
            self.out.reserve(all);
            for piece in [lengths, name, value] {
                self.out.extend_from_slice(piece);
            }
            return;
        }
        for piece in [lengths, name, value] {
            self.put(piece);
        }
    }

    /// Ends the parameters. Content follows.
    pub fn finish(mut self) {
        if self.content() > 0 {
            self.end_record();
        } else {
            self.out.truncate(self.start);
        }
        header(self.out, PARAMS, 0);
    }

    /// A record may end anywhere in the stream of parameters.
    fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.content() == MOST_CONTENT {
                self.end_record();
                self.start = self.out.len();
                header(self.out, PARAMS, 0);
            }
            let (here, rest) = bytes.split_at(bytes.len().min(MOST_CONTENT - self.content()));
            self.out.extend_from_slice(here);
            bytes = rest;
        }
    }

    fn content(&self) -> usize {
        self.out.len() - self.start - HEADER_BYTES
    }

    /// Writes the length of what there is into its header.
    fn end_record(&mut self) {
        let length = length_of(self.content());
        self.out[self.start + 4..self.start + 6].copy_from_slice(&length.to_be_bytes());
    }

    /// Appends the header of a record of content, of at most 65,535 bytes, which follow. Without any it ends the content.
    ///
    /// Returns how many of these bytes the record may have.
    pub fn content_head(out: &mut Vec<u8>, bytes: usize) -> usize {
        let length = length_of(bytes);
        header(out, STDIN, length);
        length.into()
    }
}

fn length_of(bytes: usize) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

fn header(out: &mut Vec<u8>, kind: u8, length: u16) {
    out.extend_from_slice(&[VERSION, kind]);
    out.extend_from_slice(&REQUEST.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
}

/// A length of up to 127 in one byte, otherwise in four with the first bit set (section 3.4). Returns how many.
fn put_length(out: &mut [u8], length: usize) -> usize {
    if let Ok(short) = u8::try_from(length)
        && short < 0x80
    {
        out[0] = short;
        return 1;
    }
    let long = u32::try_from(length).unwrap_or(u32::MAX) | 0x8000_0000;
    out[..4].copy_from_slice(&long.to_be_bytes());
    4
}

/// Takes what a response brings, in pieces.
pub trait RecordSink {
    /// Output: the head of a CGI response and its content.
    fn output(&mut self, piece: &[u8]);

    /// A message for the log of the server.
    fn error(&mut self, piece: &[u8]);
}

/// Why bytes are not a response of FastCGI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FastCgiRecordError {
    /// The first byte of a record is another one.
    #[error("the response is not FastCGI 1: a record begins with the byte {0}")]
    Version(u8),
    /// A record of a request that was not sent.
    #[error("a record belongs to request {0}, and there is only request 1")]
    Request(u16),
    /// The end of the request has no content of eight bytes.
    #[error("the record that ends the request has {0} bytes instead of 8")]
    End(u16),
    /// The application has not completed the request: `FCGI_CANT_MPX_CONN`, `FCGI_OVERLOADED`, `FCGI_UNKNOWN_ROLE`.
    #[error("the application refuses the request with protocol status {status}{}", meaning(*status))]
    Refused {
        /// The protocol status.
        status: u8,
    },
}

fn meaning(status: u8) -> &'static str {
    match status {
        1 => " (it takes no second request on a connection)",
        2 => " (it is overloaded)",
        3 => " (it is no responder)",
        _ => "",
    }
}

/// Reads the records of one response, from any pieces of it.
#[derive(Debug, Default)]
pub struct RecordDecoder {
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that are there.
    have: usize,
    kind: u8,
    content: u16,
    padding: u8,
    /// Content of the record that ends the request.
    end: [u8; 8],
    end_have: usize,
}

impl RecordDecoder {
    /// Reads a piece; returns the bytes behind the response once it is complete.
    pub fn decode<'a>(
        &mut self,
        mut bytes: &'a [u8],
        sink: &mut impl RecordSink,
    ) -> Result<Option<&'a [u8]>, FastCgiRecordError> {
        loop {
            if self.have < HEADER_BYTES {
                let wanted = HEADER_BYTES - self.have;
                let (here, rest) = bytes.split_at(wanted.min(bytes.len()));
                self.header[self.have..self.have + here.len()].copy_from_slice(here);
                self.have += here.len();
                bytes = rest;
                if self.have < HEADER_BYTES {
                    return Ok(None);
                }
                self.begin_record()?;
            }
            let (here, rest) = bytes.split_at(bytes.len().min(self.content.into()));
            self.content -= length_of(here.len());
            bytes = rest;
            match self.kind {
                _ if here.is_empty() => {}
                STDOUT => sink.output(here),
                STDERR => sink.error(here),
                END_REQUEST => {
                    self.end[self.end_have..self.end_have + here.len()].copy_from_slice(here);
                    self.end_have += here.len();
                }
                // Records of management and of later versions mean nothing here.
                _ => {}
            }
            if self.content > 0 {
                return Ok(None);
            }
            let skipped = bytes.len().min(self.padding.into());
            self.padding -= u8::try_from(skipped).unwrap_or(self.padding);
            bytes = &bytes[skipped..];
            if self.padding > 0 {
                return Ok(None);
            }
            self.have = 0;
            if self.kind == END_REQUEST {
                self.end_have = 0;
                let [_, _, _, _, status, ..] = self.end;
                return match status {
                    COMPLETE => Ok(Some(bytes)),
                    status => Err(FastCgiRecordError::Refused { status }),
                };
            }
        }
    }

    fn begin_record(&mut self) -> Result<(), FastCgiRecordError> {
        let [version, kind, id_high, id_low, high, low, padding, _] = self.header;
        if version != VERSION {
            return Err(FastCgiRecordError::Version(version));
        }
        self.kind = kind;
        self.content = u16::from_be_bytes([high, low]);
        self.padding = padding;
        let id = u16::from_be_bytes([id_high, id_low]);
        // Management records have the number 0.
        if id != REQUEST && matches!(kind, END_REQUEST | STDOUT | STDERR) {
            return Err(FastCgiRecordError::Request(id));
        }
        if kind == END_REQUEST && self.content != 8 {
            return Err(FastCgiRecordError::End(self.content));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Kept {
        output: Vec<u8>,
        errors: Vec<u8>,
    }

    impl RecordSink for Kept {
        fn output(&mut self, piece: &[u8]) {
            self.output.extend_from_slice(piece);
        }

        fn error(&mut self, piece: &[u8]) {
            self.errors.extend_from_slice(piece);
        }
    }

    fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
        let mut out = Vec::new();
        header(&mut out, kind, length_of(content.len()));
        out[6] = padding;
        out.extend_from_slice(content);
        out.resize(out.len() + usize::from(padding), 0);
        out
    }

    /// Name and value pairs of the records of parameters.
    fn parameters(mut bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut stream = Vec::new();
        while let [1, PARAMS, 0, 1, high, low, 0, 0, rest @ ..] = bytes {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            stream.extend_from_slice(&rest[..length]);
            bytes = &rest[length..];
        }
        assert!(bytes.is_empty());
        let mut stream = stream.into_iter();
        let mut pairs = Vec::new();
        while let Some(first) = stream.next() {
            let mut length = |first: u8| {
                if first < 0x80 {
                    return usize::from(first);
                }
                let rest: Vec<u8> = stream.by_ref().take(3).collect();
                u32::from_be_bytes([first & 0x7f, rest[0], rest[1], rest[2]]) as usize
            };
            let name = length(first);
            let next = stream.next().unwrap();
            let mut length = |first: u8| {
                if first < 0x80 {
                    return usize::from(first);
                }
                let rest: Vec<u8> = stream.by_ref().take(3).collect();
                u32::from_be_bytes([first & 0x7f, rest[0], rest[1], rest[2]]) as usize
            };
            let value = length(next);
            let name = stream.by_ref().take(name).collect();
            pairs.push((name, stream.by_ref().take(value).collect()));
        }
        pairs
    }

    #[test]
    fn a_request_has_the_bytes_of_the_specification() {
        let mut out = Vec::new();
        let mut records = Records::begin(&mut out);
        records.parameter(b"A", b"bc");
        records.finish();
        assert_eq!(Records::content_head(&mut out, 3), 3);
        let expected: [&[u8]; 5] = [
            &[1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0],
            &[1, 4, 0, 1, 0, 5, 0, 0, 1, 2],
            b"Abc",
            &[1, 4, 0, 1, 0, 0, 0, 0],
            &[1, 5, 0, 1, 0, 3, 0, 0],
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn a_response_ends_where_its_record_says() {
        let bytes = [
            record(STDOUT, b"Status: 200\r\n\r\nhi", 3),
            record(STDERR, b"careful", 0),
            record(0, b"unknown", 1),
            record(STDOUT, b"", 0),
            record(END_REQUEST, &[0; 8], 0),
            b"behind".to_vec(),
        ]
        .concat();
        let mut kept = Kept::default();
        let rest = RecordDecoder::default().decode(&bytes, &mut kept).unwrap();
        assert_eq!(rest, Some(&b"behind"[..]));
        assert_eq!(kept.output, b"Status: 200\r\n\r\nhi");
        assert_eq!(kept.errors, b"careful");
    }

    #[test]
    fn what_is_no_response_is_named() {
        let decoded = |bytes: &[u8]| {
            let decoded = RecordDecoder::default().decode(bytes, &mut Kept::default());
            decoded.unwrap_err().to_string()
        };
        assert_eq!(
            decoded(b"HTTP/1.1 200"),
            "the response is not FastCGI 1: a record begins with the byte 72"
        );
        let mut other = record(STDOUT, b"x", 0);
        other[3] = 2;
        assert_eq!(
            decoded(&other),
            "a record belongs to request 2, and there is only request 1"
        );
        assert_eq!(
            decoded(&record(END_REQUEST, b"short", 0)),
            "the record that ends the request has 5 bytes instead of 8"
        );
        assert_eq!(
            decoded(&record(END_REQUEST, &[0, 0, 0, 0, 2, 0, 0, 0], 0)),
            "the application refuses the request with protocol status 2 (it is overloaded)"
        );
    }

    proptest! {
        #[test]
        fn parameters_of_any_length_arrive(
            pairs in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..300), prop::collection::vec(any::<u8>(), 0..70_000)), 0..4)
        ) {
            let mut out = Vec::new();
            let mut records = Records::begin(&mut out);
            for (name, value) in &pairs {
                records.parameter(name, value);
            }
            records.finish();
            prop_assert_eq!(parameters(&out[16..]), pairs);
        }

        #[test]
        fn a_response_is_the_same_in_any_pieces(
            output in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..50), any::<u8>(), any::<bool>()), 0..6),
            cuts in prop::collection::vec(1_usize..40, 0..60),
        ) {
            let mut bytes = Vec::new();
            let mut expected = Kept::default();
            for (content, padding, is_error) in &output {
                bytes.extend(record(if *is_error { STDERR } else { STDOUT }, content, *padding));
                if *is_error { &mut expected.errors } else { &mut expected.output }.extend(content);
            }
            bytes.extend(record(END_REQUEST, &[0; 8], 7));
            let mut decoder = RecordDecoder::default();
            let mut kept = Kept::default();
            let mut rest = bytes.as_slice();
            let mut cuts = cuts.into_iter().chain(std::iter::repeat(usize::MAX));
            loop {
                let (here, behind) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                rest = behind;
                if decoder.decode(here, &mut kept).unwrap().is_some() {
                    break;
                }
                prop_assert!(!rest.is_empty());
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(kept, expected);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            RecordDecoder::default().decode(&bytes, &mut Kept::default()).ok();
        }
    }
}
