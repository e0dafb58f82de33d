//! The client's side of the opening handshake (RFC 6455, section 4).

use std::mem::MaybeUninit;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use httparse::Header;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::error::HandshakeError;
use crate::h1::Limits;

/// The text that every server appends to a key (section 1.3).
const SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The value of `Sec-WebSocket-Key`: another one for each connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The length of every key as it is written.
    pub const LENGTH: usize = 24;

    /// The key that stands for `nonce`, which should be unpredictable.
    pub fn new(nonce: [u8; 16]) -> Self {
        Self(STANDARD.encode(nonce))
    }

    /// The key of a request.
    pub fn given(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// As it stands in the request.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The expected value of `Sec-WebSocket-Accept`.
    pub fn accept(&self) -> String {
        let text = format!("{}{SUFFIX}", self.0);
        STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
    }
}

/// Reads the answer to a handshake.
#[derive(Debug)]
pub struct Handshake {
    accept: String,
    limits: Limits,
    /// The head so far, as long as it is not complete.
    partial: Vec<u8>,
    interim_seen: usize,
}

impl Handshake {
    /// Expects the answer to a request with `key`.
    ///
    /// - `limits`: those on its head.
    pub fn new(key: &Key, limits: Limits) -> Self {
        Self {
            accept: key.accept(),
            limits: Limits {
                headers: limits.headers.min(Limits::MOST_HEADERS),
                ..limits
            },
            partial: Vec::new(),
            interim_seen: 0,
        }
    }

    /// Takes what the connection delivered; the handshake is done when it gives the bytes of `input`
    /// that belong to it. Frames may follow them at once.
    pub fn decode(&mut self, input: &[u8]) -> Result<Option<usize>, HandshakeError> {
        let mut before = self.partial.len();
        self.partial.extend_from_slice(input);
        let mut taken = 0;
        while let Some((length, status)) = self.head()? {
            if status == 101 {
                return Ok(Some(taken + length - before));
            }
            // An interim response: the one that counts is still to come.
            self.partial.drain(..length);
            taken += length - before;
            before = 0;
        }
        Ok(None)
    }

    /// The length and the status of a head at the start of what came, once it is all there.
    fn head(&mut self) -> Result<Option<(usize, u16)>, HandshakeError> {
        let shown = &self.partial[..self.partial.len().min(self.limits.head_bytes)];
        let mut storage = [const { MaybeUninit::<Header<'_>>::uninit() }; Limits::MOST_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            shown,
            &mut storage[..self.limits.headers],
        );
        let length = self.limits.head_length(parsed, self.partial.len());
        let length = length.map_err(|error| HandshakeError::Head(error.to_string()))?;
        let Some(length) = length else {
            return Ok(None);
        };
        let status = response.code.expect("a complete head has a status");
        match status {
            101 => {
                let is_current = response.version == Some(1);
                if !is_current {
                    return Err(HandshakeError::Upgrade);
                }
                self.check(response.headers)?;
            }
            100..200 => {
                self.interim_seen += 1;
                if self.interim_seen > self.limits.interim {
                    let limit = self.limits.interim;
                    let text = format!("more than {limit} interim responses");
                    return Err(HandshakeError::Head(text));
                }
            }
            _ => return Err(HandshakeError::Status(status)),
        }
        Ok(Some((length, status)))
    }

    /// Judges the fields of an answer with 101 (section 4.1).
    fn check(&self, headers: &[Header<'_>]) -> Result<(), HandshakeError> {
        if !has_token(headers, "upgrade", "websocket") {
            return Err(HandshakeError::Upgrade);
        }
        if !has_token(headers, "connection", "upgrade") {
            return Err(HandshakeError::Connection);
        }
        let mut accepts = values(headers, "sec-websocket-accept");
        if accepts.next().map(<[u8]>::trim_ascii) != Some(self.accept.as_bytes())
            || accepts.next().is_some()
        {
            return Err(HandshakeError::Accept);
        }
        match values(headers, "sec-websocket-extensions").next() {
            Some(value) if !value.trim_ascii().is_empty() => {
                let value = String::from_utf8_lossy(value).into_owned();
                Err(HandshakeError::Extension(value))
            }
            _ => Ok(()),
        }
    }
}

fn values<'a>(headers: &'a [Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value)
}

/// Whether one of the values of a list names `token`, whatever its case.
fn has_token(headers: &[Header<'_>], name: &str, token: &str) -> bool {
    values(headers, name)
        .flat_map(|value| value.split(|byte| *byte == b','))
        .any(|value| value.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}
