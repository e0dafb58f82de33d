//! One compressor over memory, whichever coding it is of.

use std::io::Write;

use brotli::CompressorWriter;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::middleware::compress::Coding;

/// Levels at which a page costs about a millisecond for each 100 KB, and windows that cost little memory.
const ZSTD_LEVEL: i32 = 3;
const ZSTD_WINDOW_LOG: u32 = 18;
const BROTLI_QUALITY: u32 = 4;
const BROTLI_WINDOW_LOG: u32 = 18;
const GZIP_LEVEL: u32 = 5;

const BROTLI_BUFFER: usize = 4096;

const IN_MEMORY: &str = "writing to memory does not fail";

pub(super) enum Encoder {
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

/// The smallest that a coding makes of something within reason, for what is compressed once and sent often.
const BEST_ZSTD_LEVEL: i32 = 19;
/// 8 MB, which is what every client can decode (RFC 9659).
const BEST_ZSTD_WINDOW_LOG: u32 = 23;
const BEST_BROTLI_QUALITY: u32 = 11;
const BEST_BROTLI_WINDOW_LOG: u32 = 22;
const BEST_GZIP_LEVEL: u32 = 9;

impl Encoder {
    /// One that takes its time.
    pub(super) fn best(coding: Coding) -> Self {
        match coding {
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), BEST_ZSTD_LEVEL)
                    .expect("the level is one of zstd's");
                encoder
                    .window_log(BEST_ZSTD_WINDOW_LOG)
                    .expect("the window is one of zstd's");
                Self::Zstd(Box::new(encoder))
            }
            Coding::Brotli => Self::Brotli(Box::new(CompressorWriter::new(
                Vec::new(),
                BROTLI_BUFFER,
                BEST_BROTLI_QUALITY,
                BEST_BROTLI_WINDOW_LOG,
            ))),
            Coding::Gzip => {
                let level = Compression::new(BEST_GZIP_LEVEL);
                Self::Gzip(Box::new(GzEncoder::new(Vec::new(), level)))
            }
        }
    }

    pub(super) fn new(coding: Coding) -> Self {
        match coding {
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)
                    .expect("the level is one of zstd's");
                encoder
                    .window_log(ZSTD_WINDOW_LOG)
                    .expect("the window is one of zstd's");
                Self::Zstd(Box::new(encoder))
            }
            Coding::Brotli => Self::Brotli(Box::new(CompressorWriter::new(
                Vec::new(),
                BROTLI_BUFFER,
                BROTLI_QUALITY,
                BROTLI_WINDOW_LOG,
            ))),
            Coding::Gzip => {
                let level = Compression::new(GZIP_LEVEL);
                Self::Gzip(Box::new(GzEncoder::new(Vec::new(), level)))
            }
        }
    }

    /// Compresses `data`; some of it may not come out before it is flushed.
    pub(super) fn write(&mut self, data: &[u8]) {
        match self {
            Self::Zstd(encoder) => encoder.write_all(data),
            Self::Brotli(encoder) => encoder.write_all(data),
            Self::Gzip(encoder) => encoder.write_all(data),
        }
        .expect(IN_MEMORY);
    }

    /// Takes the output so far.
    pub(super) fn take_output(&mut self) -> Bytes {
        let out = match self {
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => encoder.get_mut(),
            Self::Gzip(encoder) => encoder.get_mut(),
        };
        Bytes::from(std::mem::take(out))
    }

    /// Takes the output of all input so far.
    pub(super) fn flush(&mut self) -> Bytes {
        match self {
            Self::Zstd(encoder) => encoder.flush(),
            Self::Brotli(encoder) => encoder.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
        .expect(IN_MEMORY);
        self.take_output()
    }

    /// The rest with its end.
    pub(super) fn finish(self) -> Bytes {
        Bytes::from(match self {
            Self::Zstd(encoder) => encoder.finish().expect(IN_MEMORY),
            Self::Brotli(encoder) => encoder.into_inner(),
            Self::Gzip(encoder) => encoder.finish().expect(IN_MEMORY),
        })
    }
}
