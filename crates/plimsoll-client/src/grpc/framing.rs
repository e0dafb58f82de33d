//! Messages with their length before them: a byte that says whether it is compressed, four bytes of
//! length, the message.

const PREFIX_BYTES: usize = 5;

/// Puts messages one behind the other, none of them compressed.
///
/// Fails if one is longer than its length can say: 4 GiB.
pub fn frame<M: AsRef<[u8]>>(messages: &[M]) -> Result<Vec<u8>, FramingError> {
    let mut framed = Vec::new();
    for message in messages {
        let message = message.as_ref();
        let length = u32::try_from(message.len()).map_err(|_| FramingError::TooLong)?;
        framed.push(0);
        framed.extend_from_slice(&length.to_be_bytes());
        framed.extend_from_slice(message);
    }
    Ok(framed)
}

/// The messages of a whole body, which must end with one and have none that is compressed.
pub fn messages(mut body: &[u8]) -> Result<Vec<&[u8]>, FramingError> {
    let mut messages = Vec::new();
    while !body.is_empty() {
        let (prefix, rest) = body
            .split_first_chunk::<PREFIX_BYTES>()
            .ok_or(FramingError::Truncated)?;
        let prefix = Prefix::parse(*prefix)?;
        let length = usize::try_from(prefix.length).map_err(|_| FramingError::TooLong)?;
        let (message, rest) = rest
            .split_at_checked(length)
            .ok_or(FramingError::Truncated)?;
        messages.push(message);
        body = rest;
    }
    Ok(messages)
}

/// Takes the first message out of content that is still being received; `None` until it is whole.
pub fn take_message(content: &mut Vec<u8>) -> Result<Option<Vec<u8>>, FramingError> {
    let Some((prefix, rest)) = content.split_first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let length = Prefix::parse(*prefix)?.length;
    let length = usize::try_from(length).map_err(|_| FramingError::TooLong)?;
    let Some(message) = rest.get(..length) else {
        return Ok(None);
    };
    let message = message.to_vec();
    content.drain(..PREFIX_BYTES + length);
    Ok(Some(message))
}

/// Why bytes are no messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// A message that does not fit its length.
    #[error("a message is longer than 4 GiB")]
    TooLong,
    /// The body ends inside a message, or inside its length.
    #[error("the last message is cut short")]
    Truncated,
    /// Compression is used only where the client offered it, and ours never does.
    #[error("a message is compressed although no compression was offered")]
    Compressed,
    /// The first byte of a message is neither 0 nor 1.
    #[error("the content is not messages of gRPC: {0} where 0 or 1 says if one is compressed")]
    Flag(u8),
}

/// Counts the messages of a body that comes in pieces, cut anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageCounter {
    /// The bytes of an incomplete prefix.
    prefix: [u8; PREFIX_BYTES],
    prefix_length: usize,
    /// Bytes of the message under way that are still to come.
    missing: u64,
    complete: u64,
    error: Option<FramingError>,
}

impl MessageCounter {
    /// Takes a piece.
    #[inline]
    pub fn push(&mut self, mut piece: &[u8]) {
        while self.error.is_none() {
            let here = self.missing.min(piece.len() as u64);
            self.missing -= here;
            piece = &piece[usize::try_from(here).expect("no more than the piece")..];
            if self.missing > 0 || piece.is_empty() {
                return;
            }
            let room = PREFIX_BYTES - self.prefix_length;
            let (begin, rest) = piece.split_at(room.min(piece.len()));
            self.prefix[self.prefix_length..][..begin.len()].copy_from_slice(begin);
            self.prefix_length += begin.len();
            piece = rest;
            if self.prefix_length < PREFIX_BYTES {
                return;
            }
            self.prefix_length = 0;
            match Prefix::parse(self.prefix) {
                Ok(prefix) => {
                    self.missing = u64::from(prefix.length);
                    // It counts at once; whether it came whole is known at the end.
                    self.complete += 1;
                }
                Err(error) => self.error = Some(error),
            }
        }
    }

    /// Number of messages in the body; call it once the body has ended.
    pub fn finish(&self) -> Result<u64, FramingError> {
        match self.error {
            Some(error) => Err(error),
            None if self.missing > 0 || self.prefix_length > 0 => Err(FramingError::Truncated),
            None => Ok(self.complete),
        }
    }

    /// Messages that came whole until now.
    pub fn complete(&self) -> u64 {
        self.complete - u64::from(self.missing > 0)
    }
}

struct Prefix {
    length: u32,
}

impl Prefix {
    fn parse(bytes: [u8; PREFIX_BYTES]) -> Result<Self, FramingError> {
        let [flag, length @ ..] = bytes;
        match flag {
            0 => Ok(Self {
                length: u32::from_be_bytes(length),
            }),
            1 => Err(FramingError::Compressed),
            flag => Err(FramingError::Flag(flag)),
        }
    }
}
