//! The first message of a TLS client, as far as a connection is routed by it (RFC 8446, section 4.1.2).
//!
//! Pure: it is shown what has come so far and keeps nothing. A name is read strictly, since what it is routed by must
//! be what the server behind will read.

use std::borrow::Cow;

/// The parts of a `ClientHello` that routing needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The name of the server (RFC 6066, section 3), in lower case.
    pub server_name: Option<String>,
    /// The protocols that the client would speak, the best first (RFC 7301).
    pub alpn: Vec<Vec<u8>>,
    /// It has another hello within that only the server can read (ECH); the name is then that of a front.
    pub is_encrypted: bool,
}

/// Why bytes are not a [`ClientHello`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClientHelloError {
    /// They begin as something else, such as HTTP in the clear.
    #[error("not the handshake of a TLS client")]
    OtherProtocol,
    /// Lengths that disagree, or a name that is none.
    #[error("malformed ClientHello")]
    Malformed,
    /// It is longer than [`ClientHello::MOST_BYTES`], or offers too many protocols.
    #[error("ClientHello too long")]
    TooLong,
}

/// Content type of a record (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;

const RECORD_HEADER: usize = 5;

/// Bytes of one record.
const MOST_OF_RECORD: usize = 1 << 14;

/// Type of the message (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;

const MESSAGE_HEADER: usize = 4;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// Protocols that are kept of those that a client offers.
const MOST_PROTOCOLS: usize = 64;

/// Characters of a name (RFC 1035, section 2.3.4).
const MOST_OF_NAME: usize = 253;

impl ClientHello {
    /// Bytes of the message: those of browsers have 2 KiB, with post-quantum key shares 3 KiB.
    pub const MOST_BYTES: usize = 32 * 1024;

    /// Reads what a connection begins with; `None` as long as more has to come.
    ///
    /// - `input`: records from the first byte on; what lies behind the message is not looked at.
    pub fn parse(input: &[u8]) -> Result<Option<Self>, ClientHelloError> {
        let mut message = Cow::Borrowed(&[][..]);
        let mut rest = input;
        loop {
            if let Some(length) = message_length(&message)?
                && let Some(message) = message.get(..length)
            {
                return Self::parse_message(message).map(Some);
            }
            let Some((fragment, after)) = record(rest)? else {
                return Ok(None);
            };
            rest = after;
            if message.is_empty() {
                message = Cow::Borrowed(fragment);
            } else {
                message.to_mut().extend_from_slice(fragment);
            }
        }
    }

    /// Reads one whole message, as QUIC has it in its CRYPTO frames (RFC 9001, section 4.1.3).
    pub fn parse_message(message: &[u8]) -> Result<Self, ClientHelloError> {
        if message_length(message)? != Some(message.len()) {
            return Err(ClientHelloError::Malformed);
        }
        let mut reader = Reader(&message[MESSAGE_HEADER..]);
        // Version and random.
        reader.read_bytes(2 + 32)?;
        let session_id = reader.vector_u8()?;
        let suites = reader.vector_u16()?;
        let compressions = reader.vector_u8()?;
        let is_valid = session_id.len() <= 32
            && !suites.is_empty()
            && suites.len().is_multiple_of(2)
            && !compressions.is_empty();
        if !is_valid {
            return Err(ClientHelloError::Malformed);
        }
        let mut hello = Self::default();
        // Clients of old have no extensions.
        if reader.is_empty() {
            return Ok(hello);
        }
        let mut extensions = Reader(reader.vector_u16()?);
        reader.end()?;
        let mut seen = Vec::new();
        while !extensions.is_empty() {
            let kind = extensions.u16()?;
            let content = extensions.vector_u16()?;
            if ![SERVER_NAME, ALPN, ENCRYPTED_CLIENT_HELLO].contains(&kind) {
                continue;
            }
            // Two readers could each follow another one.
            if seen.contains(&kind) {
                return Err(ClientHelloError::Malformed);
            }
            seen.push(kind);
            match kind {
                SERVER_NAME => hello.server_name = Some(server_name(content)?),
                ALPN => hello.alpn = protocols(content)?,
                _ => hello.is_encrypted = true,
            }
        }
        Ok(hello)
    }
}

/// The content of a record, and what follows it.
type Record<'a> = (&'a [u8], &'a [u8]);

/// The content of the record at the start of `input`, and what follows it; `None` if it is not all there.
fn record(input: &[u8]) -> Result<Option<Record<'_>>, ClientHelloError> {
    if input.first().is_some_and(|kind| *kind != HANDSHAKE)
        || input.get(1).is_some_and(|major| *major != 3)
    {
        return Err(ClientHelloError::OtherProtocol);
    }
    let Some((header, rest)) = input.split_at_checked(RECORD_HEADER) else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if length == 0 || length > MOST_OF_RECORD {
        return Err(ClientHelloError::Malformed);
    }
    Ok(rest.split_at_checked(length))
}

/// Bytes of the message with its header, once that is there.
fn message_length(message: &[u8]) -> Result<Option<usize>, ClientHelloError> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(ClientHelloError::OtherProtocol);
    }
    let Some(&[_, high, middle, low]) = message.first_chunk::<MESSAGE_HEADER>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([0, high, middle, low]) as usize + MESSAGE_HEADER;
    if length > ClientHello::MOST_BYTES {
        return Err(ClientHelloError::TooLong);
    }
    Ok(Some(length))
}

fn server_name(content: &[u8]) -> Result<String, ClientHelloError> {
    let mut reader = Reader(content);
    let mut names = Reader(reader.vector_u16()?);
    reader.end()?;
    // There is one kind of name, and one name of each kind.
    let kind = names.read_bytes(1)?;
    let name = names.vector_u16()?;
    names.end()?;
    let is_name = kind == [0]
        && (1..=MOST_OF_NAME).contains(&name.len())
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        && !name.starts_with(b".")
        && !name.ends_with(b".");
    match str::from_utf8(name) {
        Ok(name) if is_name => Ok(name.to_ascii_lowercase()),
        _ => Err(ClientHelloError::Malformed),
    }
}

fn protocols(content: &[u8]) -> Result<Vec<Vec<u8>>, ClientHelloError> {
    let mut reader = Reader(content);
    let mut list = Reader(reader.vector_u16()?);
    reader.end()?;
    let mut protocols = Vec::new();
    while !list.is_empty() {
        let protocol = list.vector_u8()?;
        if protocol.is_empty() {
            return Err(ClientHelloError::Malformed);
        }
        if protocols.len() == MOST_PROTOCOLS {
            return Err(ClientHelloError::TooLong);
        }
        protocols.push(protocol.to_vec());
    }
    if protocols.is_empty() {
        return Err(ClientHelloError::Malformed);
    }
    Ok(protocols)
}

/// Takes fields off the front of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn read_bytes(&mut self, count: usize) -> Result<&'a [u8], ClientHelloError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(ClientHelloError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, ClientHelloError> {
        let bytes = self.read_bytes(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A vector behind its length of one byte.
    fn vector_u8(&mut self) -> Result<&'a [u8], ClientHelloError> {
        let length = self.read_bytes(1)?[0];
        self.read_bytes(usize::from(length))
    }

    /// A vector behind its length of two bytes.
    fn vector_u16(&mut self) -> Result<&'a [u8], ClientHelloError> {
        let length = self.u16()?;
        self.read_bytes(usize::from(length))
    }

    /// Nothing is left.
    fn end(&self) -> Result<(), ClientHelloError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(ClientHelloError::Malformed)
        }
    }
}

#[cfg(test)]
mod tests;
