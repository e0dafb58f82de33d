//! Content codings of responses undone, piece by piece and within bounds (RFC 9110, section 8.4).

use std::fmt;
use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use plimsoll_wire::inflate::{FREE_BYTES, Inflate, MOST_RATIO};
use zstd::stream::raw::{self, DParameter, InBuffer, Operation as _, OutBuffer};

/// Limits of decoded content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Bytes of decoded content.
    pub bytes: u64,
    /// Decoded bytes for each encoded one, once there is more than a mebibyte of them.
    pub ratio: u64,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            ratio: MOST_RATIO,
        }
    }
}

/// Why content cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A coding that is not known, or more of them than anything needs.
    #[error("unknown content coding `{0}`")]
    Unknown(String),
    /// The content is not what `content-encoding` says.
    #[error("malformed content of coding {coding}")]
    Malformed {
        /// The coding.
        coding: &'static str,
        /// The error of the decoder.
        #[source]
        source: io::Error,
    },
    /// The decoded content is longer than the limit.
    #[error("decoded content exceeds {0} bytes")]
    TooLarge(u64),
    /// The content grows by more than the limit.
    #[error("decoded content is more than {0} times as long as the encoded")]
    Ratio(u64),
}

/// Decodes the content of one response.
pub struct Decoder {
    /// The coding that was applied last comes first.
    stages: Vec<Stage>,
    limits: DecodeLimits,
    encoded: u64,
    decoded: u64,
}

/// Codings in a row that are undone.
const MOST_STAGES: usize = 3;

/// Bytes that are decoded before the limits are looked at.
const STEP: usize = 4 * 1024;

/// The largest window of zstd that is accepted, as a power of two (RFC 8878, section 3.1.1.1.2).
const ZSTD_WINDOW: u32 = 23;

/// Takes what a stage yields, as far as it may.
#[derive(Default)]
struct Sink {
    bytes: Vec<u8>,
    room: u64,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room = self
            .room
            .checked_sub(bytes.len() as u64)
            .ok_or(io::ErrorKind::FileTooLarge)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Stage {
    Gzip(Box<MultiGzDecoder<Sink>>),
    /// Servers mean either format by `deflate`; the first byte decides.
    Deflate,
    Inflate(Box<Deflated>),
    Brotli(Box<brotli::DecompressorWriter<Sink>>),
    Zstd(Box<Zstd>),
}

struct Deflated {
    inflate: Inflate,
    sink: Sink,
}

impl Deflated {
    fn new(has_zlib_header: bool) -> Self {
        Self {
            inflate: Inflate::new(has_zlib_header),
            sink: Sink::default(),
        }
    }

    /// Bytes behind the end are passed over.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sink = &mut self.sink;
        self.inflate.write(bytes, |piece| sink.write_all(piece))?;
        Ok(())
    }

    fn finish(&self) -> io::Result<()> {
        complete(self.inflate.is_complete())
    }
}

fn complete(is_complete: bool) -> io::Result<()> {
    if is_complete {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Written by hand, since the crate's writers do not say whether the stream is complete.
struct Zstd {
    decoder: raw::Decoder<'static>,
    sink: Sink,
    is_complete: bool,
}

impl Zstd {
    fn new() -> io::Result<Self> {
        let mut decoder = raw::Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW))?;
        Ok(Self {
            decoder,
            sink: Sink::default(),
            is_complete: true,
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut input = InBuffer::around(bytes);
        let mut memory = [0; STEP];
        let mut may_yield_more = false;
        while input.pos() < bytes.len() || may_yield_more {
            let mut output = OutBuffer::around(&mut memory[..]);
            let hint = self.decoder.run(&mut input, &mut output)?;
            let yielded = output.as_slice();
            self.sink.write_all(yielded)?;
            self.is_complete = hint == 0;
            may_yield_more = yielded.len() == STEP && !self.is_complete;
        }
        Ok(())
    }

    fn finish(&self) -> io::Result<()> {
        complete(self.is_complete)
    }
}

impl Decoder {
    /// The value of `accept-encoding` that lists what can be decoded.
    pub const ACCEPTED: &'static str = "gzip, deflate, br, zstd";

    /// A decoder for content with this `content-encoding`; `None` if there is nothing to decode.
    pub fn new(content_encoding: &str, limits: DecodeLimits) -> Result<Option<Self>, DecodeError> {
        let mut stages = Vec::new();
        for coding in content_encoding.split(',').map(str::trim) {
            if coding.is_empty() || coding.eq_ignore_ascii_case("identity") {
                continue;
            }
            if stages.len() == MOST_STAGES {
                return Err(DecodeError::Unknown(content_encoding.to_owned()));
            }
            stages.insert(0, Stage::new(coding)?);
        }
        Ok((!stages.is_empty()).then_some(Self {
            stages,
            limits,
            encoded: 0,
            decoded: 0,
        }))
    }

    /// Appends what `piece` decodes to.
    pub fn decode(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        for step in piece.chunks(STEP) {
            self.encoded += step.len() as u64;
            let mut bytes = step.to_vec();
            for index in 0..self.stages.len() {
                let room = self.room();
                let decoded = self.stages[index].write(&bytes, room);
                bytes = decoded.map_err(|error| self.failure(index, error))?;
            }
            self.decoded += bytes.len() as u64;
            out.extend_from_slice(&bytes);
        }
        Ok(())
    }

    /// Appends what was left behind the last piece. Fails if the content is not complete.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        if self.encoded == 0 {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for index in 0..self.stages.len() {
            let room = self.room();
            let stage = &mut self.stages[index];
            let decoded = stage.write(&bytes, room).and_then(|mut decoded| {
                decoded.append(&mut stage.finish()?);
                Ok(decoded)
            });
            bytes = decoded.map_err(|error| self.failure(index, error))?;
        }
        out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Bytes that may still come out.
    fn room(&self) -> u64 {
        let by_ratio = self
            .encoded
            .saturating_mul(self.limits.ratio)
            .max(FREE_BYTES);
        by_ratio.min(self.limits.bytes).saturating_sub(self.decoded)
    }

    fn failure(&self, index: usize, source: io::Error) -> DecodeError {
        if source.kind() != io::ErrorKind::FileTooLarge {
            let coding = self.stages[index].name();
            return DecodeError::Malformed { coding, source };
        }
        let by_ratio = self
            .encoded
            .saturating_mul(self.limits.ratio)
            .max(FREE_BYTES);
        if by_ratio < self.limits.bytes {
            DecodeError::Ratio(self.limits.ratio)
        } else {
            DecodeError::TooLarge(self.limits.bytes)
        }
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages = self.stages.iter().map(Stage::name);
        f.debug_list().entries(stages).finish()
    }
}

impl Stage {
    fn new(coding: &str) -> Result<Self, DecodeError> {
        let sink = Sink::default();
        Ok(match &*coding.to_ascii_lowercase() {
            "gzip" | "x-gzip" => Self::Gzip(Box::new(MultiGzDecoder::new(sink))),
            "deflate" => Self::Deflate,
            "br" => Self::Brotli(Box::new(brotli::DecompressorWriter::new(sink, STEP))),
            "zstd" => {
                let malformed = |source| DecodeError::Malformed {
                    coding: "zstd",
                    source,
                };
                Self::Zstd(Box::new(Zstd::new().map_err(malformed)?))
            }
            _ => return Err(DecodeError::Unknown(coding.to_owned())),
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Gzip(_) => "gzip",
            Self::Deflate | Self::Inflate(_) => "deflate",
            Self::Brotli(_) => "br",
            Self::Zstd(_) => "zstd",
        }
    }

    /// Decodes `bytes` to at most `room` bytes.
    fn write(&mut self, bytes: &[u8], room: u64) -> io::Result<Vec<u8>> {
        if let (Self::Deflate, Some(first)) = (&*self, bytes.first()) {
            // The method of zlib is in the low bits of its first byte (RFC 1950, section 2.2).
            *self = Self::Inflate(Box::new(Deflated::new(first & 0x0f == 8)));
        }
        if let Some(sink) = self.sink() {
            sink.room = room;
        }
        match self {
            Self::Gzip(decoder) => decoder.write_all(bytes).and_then(|()| decoder.flush()),
            Self::Deflate => Ok(()),
            Self::Inflate(decoder) => decoder.write_all(bytes),
            Self::Brotli(decoder) => decoder.write_all(bytes),
            Self::Zstd(decoder) => decoder.write_all(bytes),
        }?;
        Ok(self.taken())
    }

    fn finish(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(decoder) => decoder.try_finish()?,
            Self::Deflate => {}
            Self::Inflate(decoder) => decoder.finish()?,
            Self::Brotli(decoder) => decoder.close()?,
            Self::Zstd(decoder) => decoder.finish()?,
        }
        Ok(self.taken())
    }

    fn taken(&mut self) -> Vec<u8> {
        self.sink()
            .map(|sink| std::mem::take(&mut sink.bytes))
            .unwrap_or_default()
    }

    fn sink(&mut self) -> Option<&mut Sink> {
        match self {
            Self::Gzip(decoder) => Some(decoder.get_mut()),
            Self::Deflate => None,
            Self::Inflate(decoder) => Some(&mut decoder.sink),
            Self::Brotli(decoder) => Some(decoder.get_mut()),
            Self::Zstd(decoder) => Some(&mut decoder.sink),
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use proptest::prelude::*;

    use super::*;

    fn encoded(coding: &str, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match coding {
            "gzip" => {
                let mut encoder = flate2::write::GzEncoder::new(&mut out, Compression::default());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap();
            }
            "deflate" => {
                let mut encoder = flate2::write::ZlibEncoder::new(&mut out, Compression::default());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap();
            }
            "raw" => {
                let level = Compression::default();
                let mut encoder = flate2::write::DeflateEncoder::new(&mut out, level);
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap();
            }
            "br" => {
                let mut encoder = brotli::CompressorWriter::new(&mut out, STEP, 4, 20);
                encoder.write_all(content).unwrap();
            }
            "zstd" => out = zstd::encode_all(content, 1).unwrap(),
            _ => out.extend_from_slice(content),
        }
        out
    }

    fn decoded(codings: &str, bytes: &[u8], piece: usize) -> Result<Vec<u8>, DecodeError> {
        let mut decoder = Decoder::new(codings, DecodeLimits::default())?.unwrap();
        let mut out = Vec::new();
        for piece in bytes.chunks(piece) {
            decoder.decode(piece, &mut out)?;
        }
        decoder.finish(&mut out)?;
        Ok(out)
    }

    #[test]
    fn codings_are_known_by_their_names() {
        let new = |codings| Decoder::new(codings, DecodeLimits::default());
        assert!(new("").unwrap().is_none());
        assert!(new("identity").unwrap().is_none());
        assert!(new("X-GZIP").unwrap().is_some());
        assert!(matches!(new("compress"), Err(DecodeError::Unknown(_))));
        assert!(matches!(
            new("gzip, gzip, gzip, gzip"),
            Err(DecodeError::Unknown(_))
        ));
    }

    #[test]
    fn several_codings_are_undone_in_reverse() {
        let bytes = encoded("br", &encoded("gzip", b"hello"));
        assert_eq!(decoded("gzip, br", &bytes, 3).unwrap(), b"hello");
    }

    #[test]
    fn servers_mean_two_formats_by_deflate() {
        assert_eq!(
            decoded("deflate", &encoded("raw", b"hello hello"), 1).unwrap(),
            b"hello hello"
        );
    }

    #[test]
    fn content_that_breaks_off_or_is_none_fails() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let bytes = encoded(coding, &vec![7; 100_000]);
            let short = decoded(coding, &bytes[..bytes.len() - 3], 1000);
            assert!(
                matches!(short, Err(DecodeError::Malformed { .. })),
                "{coding}"
            );
            let wrong = decoded(coding, b"\xff\xfe\xfd this is not encoded at all", 1000);
            assert!(
                matches!(wrong, Err(DecodeError::Malformed { .. })),
                "{coding}"
            );
            assert_eq!(decoded(coding, b"", 1).unwrap(), b"", "{coding}");
        }
    }

    #[test]
    fn content_that_grows_too_much_fails_early() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let bytes = encoded(coding, &vec![0; 16 << 20]);
            let limits = DecodeLimits {
                ratio: 100,
                ..DecodeLimits::default()
            };
            let mut decoder = Decoder::new(coding, limits).unwrap().unwrap();
            let mut out = Vec::new();
            let error = decoder.decode(&bytes, &mut out).unwrap_err();
            assert!(
                matches!(error, DecodeError::Ratio(100)),
                "{coding}: {error}"
            );
            assert!(out.len() <= 2 << 20, "{coding}");
            let limits = DecodeLimits {
                bytes: 1000,
                ..DecodeLimits::default()
            };
            let mut decoder = Decoder::new(coding, limits).unwrap().unwrap();
            let error = decoder.decode(&bytes, &mut Vec::new()).unwrap_err();
            assert!(
                matches!(error, DecodeError::TooLarge(1000)),
                "{coding}: {error}"
            );
        }
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding_whatever_the_pieces(
            content in prop::collection::vec(any::<u8>(), 0..20_000),
            piece in 1_usize..5000,
        ) {
            for coding in ["gzip", "deflate", "br", "zstd"] {
                let bytes = encoded(coding, &content);
                prop_assert_eq!(&decoded(coding, &bytes, piece).unwrap(), &content, "{}", coding);
            }
        }
    }
}
