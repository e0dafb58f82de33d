//! Compressed bodies of requests (RFC 9110, section 8.4.1).

pub(crate) mod decode;

use std::io::Write as _;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// A content coding (RFC 9110, section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentCoding {
    /// RFC 1952.
    Gzip,
    /// The zlib format of RFC 1950, which HTTP calls so.
    Deflate,
}

/// Content in a coding by its name in `content-encoding`; `None` if there is no such coding.
///
/// For content that is sent once or seldom: [`Compressor`] keeps its state for many.
pub fn encoded(name: &str, content: &[u8]) -> Option<Vec<u8>> {
    let mut made = Vec::new();
    match name {
        "gzip" => Compressor::new(ContentCoding::Gzip).write(content, &mut made),
        "deflate" => Compressor::new(ContentCoding::Deflate).write(content, &mut made),
        "br" => {
            let mut encoder = brotli::CompressorWriter::new(&mut made, 4096, 5, 22);
            // Memory takes everything.
            encoder.write_all(content).ok()?;
            drop(encoder);
        }
        "zstd" => made = zstd::encode_all(content, zstd::DEFAULT_COMPRESSION_LEVEL).ok()?,
        _ => return None,
    }
    Some(made)
}

impl ContentCoding {
    /// The name in `content-encoding`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }
}

/// Compresses one content after the other, in memory that is used again.
#[derive(Debug)]
pub struct Compressor {
    coding: ContentCoding,
    compress: Compress,
}

/// Magic number, deflate, no flags, no time, no level, unknown system (RFC 1952, section 2.3).
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Room for what compressing adds to very short content.
const LEAST_ROOM: usize = 64;

impl Compressor {
    /// Takes some 300 kB of memory.
    pub fn new(coding: ContentCoding) -> Self {
        let has_zlib_header = coding == ContentCoding::Deflate;
        Self {
            coding,
            compress: Compress::new(Compression::default(), has_zlib_header),
        }
    }

    /// Appends all of `content`, compressed.
    pub fn write(&mut self, content: &[u8], out: &mut Vec<u8>) {
        if self.coding == ContentCoding::Gzip {
            out.extend_from_slice(&GZIP_HEADER);
        }
        self.compress.reset();
        let mut rest = content;
        loop {
            out.reserve(rest.len() / 2 + LEAST_ROOM);
            let before = self.compress.total_in();
            let status = self
                .compress
                .compress_vec(rest, out, FlushCompress::Finish)
                .expect("a compressor that was just reset takes any content");
            let taken = self.compress.total_in() - before;
            rest = usize::try_from(taken).map_or(&[], |taken| &rest[taken..]);
            if status == Status::StreamEnd {
                break;
            }
        }
        if self.coding == ContentCoding::Gzip {
            let mut check = Crc::new();
            check.update(content);
            out.extend_from_slice(&check.sum().to_le_bytes());
            // The length counts modulo 2^32, and so does the amount.
            out.extend_from_slice(&check.amount().to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::{GzDecoder, ZlibDecoder};
    use proptest::prelude::*;

    use super::*;

    fn decoded(coding: ContentCoding, bytes: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        match coding {
            ContentCoding::Gzip => GzDecoder::new(bytes).read_to_end(&mut content),
            ContentCoding::Deflate => ZlibDecoder::new(bytes).read_to_end(&mut content),
        }
        .unwrap();
        content
    }

    #[test]
    fn long_content_becomes_short() {
        for coding in [ContentCoding::Gzip, ContentCoding::Deflate] {
            let content = b"0123456789".repeat(100_000);
            let mut out = Vec::new();
            Compressor::new(coding).write(&content, &mut out);
            assert!(out.len() < content.len() / 100);
            assert_eq!(decoded(coding, &out), content);
        }
    }

    proptest! {
        #[test]
        fn what_is_compressed_is_read_again(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5000), 1..4),
        ) {
            for coding in [ContentCoding::Gzip, ContentCoding::Deflate] {
                let mut compressor = Compressor::new(coding);
                for content in &contents {
                    let mut out = b"before".to_vec();
                    compressor.write(content, &mut out);
                    prop_assert_eq!(&decoded(coding, out.strip_prefix(b"before").unwrap()), content);
                }
            }
        }
    }
}
