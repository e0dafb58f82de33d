//! Content that is decoded as it arrives, in bounded memory.

use plimsoll_client::check::Observer;
use plimsoll_client::{DecodeError, DecodeLimits, Decoder};
use plimsoll_model::{DecodedBytes, Failure, FailureKind, Phase};
use plimsoll_wire::h1::ResponseSink as _;

use super::Head;

/// Bytes that are decoded at a time. With the limit on the ratio of content to its encoded form, this
/// bounds the memory of a user to less than 2 MiB whatever a server sends.
const STEP: usize = 4 * 1024;

/// Decodes one response after the other.
#[derive(Debug)]
pub(super) struct Decoding {
    limits: DecodeLimits,
    /// Absent for content that is not encoded.
    decoder: Option<Decoder>,
    error: Option<DecodeError>,
    /// Of the last step.
    decoded: Vec<u8>,
    lengths: DecodedBytes,
}

impl Decoding {
    pub(super) fn new(limits: DecodeLimits) -> Self {
        Self {
            limits,
            decoder: None,
            error: None,
            decoded: Vec::new(),
            lengths: DecodedBytes::default(),
        }
    }

    /// Takes the head of a response.
    pub(super) fn head(&mut self, head: &Head<'_>) {
        let coding = head.field("content-encoding").unwrap_or_default();
        let coding = String::from_utf8_lossy(coding);
        self.lengths = DecodedBytes::default();
        (self.decoder, self.error) = match Decoder::new(&coding, self.limits) {
            Ok(decoder) => (decoder, None),
            Err(error) => (None, Some(error)),
        };
    }

    /// Decodes a piece of the content, and shows the result to `observer`.
    pub(super) fn content(&mut self, piece: &[u8], mut observer: Option<&mut Observer>) {
        self.lengths.encoded += piece.len() as u64;
        let Some(decoder) = &mut self.decoder else {
            self.lengths.decoded += piece.len() as u64;
            if let Some(observer) = observer {
                observer.content(piece);
            }
            return;
        };
        for step in piece.chunks(STEP) {
            if self.error.is_some() {
                return;
            }
            self.decoded.clear();
            self.error = decoder.decode(step, &mut self.decoded).err();
            self.lengths.decoded += self.decoded.len() as u64;
            if let Some(observer) = &mut observer {
                observer.content(&self.decoded);
            }
        }
    }

    /// Ends the response; its lengths, unless its content cannot be decoded.
    pub(super) fn finish(
        &mut self,
        observer: Option<&mut Observer>,
    ) -> Result<DecodedBytes, Failure> {
        self.decoded.clear();
        let decoder = self.decoder.take();
        // A response without content, such as one to HEAD, may name a coding all the same.
        if let Some(decoder) = decoder.filter(|_| self.lengths.encoded > 0)
            && self.error.is_none()
        {
            self.error = decoder.finish(&mut self.decoded).err();
            self.lengths.decoded += self.decoded.len() as u64;
            if let Some(observer) = observer {
                observer.content(&self.decoded);
            }
        }
        match self.error.take() {
            None => Ok(self.lengths),
            Some(error) => {
                Err(Failure::new(Phase::Receive, FailureKind::Decode).because(error.to_string()))
            }
        }
    }
}
