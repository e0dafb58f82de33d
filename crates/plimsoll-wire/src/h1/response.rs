//! Responses as a client reads them, fed piece by piece.

use std::mem::MaybeUninit;

use httparse::Header;

use crate::h1::chunked::ChunkedPart;
use crate::h1::framing::{Framing, TransferEncoding};
use crate::h1::known_head::HeadFacts;
use crate::h1::{ChunkedDecoder, DecodeError, KnownHead};

/// Bounds on one response; all are on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the head, status line and final empty line included.
    pub head_bytes: usize,
    /// Header fields, at most [`Limits::MOST_HEADERS`].
    pub headers: usize,
    /// Bytes of content.
    pub body_bytes: u64,
    /// Interim (1xx) responses before the final one.
    pub interim: usize,
    /// Bytes of chunk extensions and trailers together.
    pub chunk_overhead_bytes: usize,
}

impl Limits {
    /// The highest limit on header fields that can be set: their positions are in an array on the stack.
    pub const MOST_HEADERS: usize = 256;

    /// The length of a head, `None` if it is not all there yet.
    ///
    /// - `parsed`: what came of it, of which no more than `head_bytes` were shown to the parser.
    /// - `available`: how many bytes of the message there are.
    #[inline]
    pub(crate) fn head_length(
        &self,
        parsed: httparse::Result<usize>,
        available: usize,
    ) -> Result<Option<usize>, DecodeError> {
        match parsed {
            Ok(httparse::Status::Complete(length)) => Ok(Some(length)),
            Ok(httparse::Status::Partial) if available >= self.head_bytes => {
                Err(DecodeError::HeadTooLarge {
                    limit: self.head_bytes,
                })
            }
            Ok(httparse::Status::Partial) => Ok(None),
            Err(httparse::Error::TooManyHeaders) => Err(DecodeError::TooManyHeaders {
                limit: self.headers,
            }),
            Err(error) => Err(DecodeError::Head(error)),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            headers: 128,
            body_bytes: 1 << 40,
            interim: 16,
            chunk_overhead_bytes: 64 * 1024,
        }
    }
}

/// The head of a final response, borrowed from the bytes it was read from.
#[derive(Debug)]
pub struct ResponseHead<'a> {
    /// The status, 200–999.
    pub status: u16,
    /// The reason phrase behind the status, often empty.
    pub reason: &'a str,
    /// The minor version of HTTP/1: 0 or 1.
    pub minor_version: u8,
    /// The header fields in the order they came.
    pub headers: &'a [Header<'a>],
}

impl ResponseHead<'_> {
    /// The value of the first field of that name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
    }
}

/// Receives more of a response than that it is complete.
pub trait ResponseSink {
    /// Whether [`head`](Self::head) looks at anything; a head that is not looked at may be recognised
    /// rather than parsed.
    fn wants_head(&self) -> bool {
        true
    }

    /// An interim head (1xx); any number of them comes before the final one.
    fn interim(&mut self, _head: &ResponseHead<'_>) {}

    /// The final head; called once, before any content, if it is [wanted](Self::wants_head).
    fn head(&mut self, head: &ResponseHead<'_>);

    /// A piece of the content, without framing.
    fn content(&mut self, piece: &[u8]);

    /// Lines of `name: value` behind the content, if the [request](RequestFacts::keeps_trailers) wants them and there
    /// are any; [`fields_of`](crate::h1::fields_of) takes them apart.
    fn trailers(&mut self, _lines: &[u8]) {}
}

/// Properties of a request that its response depends on (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct RequestFacts {
    /// The method is HEAD, so a length announces content that does not come.
    pub is_head: bool,
    /// The method is CONNECT, so a 2xx response turns the connection into a tunnel.
    pub is_connect: bool,
    /// The request has `Upgrade`, so 101 is a final response, and the connection is a tunnel after it.
    pub may_switch: bool,
    /// Trailers of the response are handed to the sink.
    pub keeps_trailers: bool,
}

/// Sees nothing.
impl ResponseSink for () {
    fn wants_head(&self) -> bool {
        false
    }

    fn head(&mut self, _head: &ResponseHead<'_>) {}

    fn content(&mut self, _piece: &[u8]) {}
}

/// Decodes the responses of one connection, one after the other.
///
/// It keeps no bytes except those of a head that a read cut in two. Call [`begin`] before each
/// request, [`decode`] with whatever arrives until it says complete, and [`end_of_stream`] when the
/// peer has closed.
///
/// [`begin`]: Self::begin
/// [`decode`]: Self::decode
/// [`end_of_stream`]: Self::end_of_stream
#[derive(Debug)]
pub struct ResponseDecoder {
    limits: Limits,
    state: State,
    /// The part of a head that came without its end.
    partial_head: Vec<u8>,
    request: RequestFacts,
    is_tunnel: bool,
    status: u16,
    interim_seen: usize,
    content_bytes: u64,
    persistent: bool,
}

#[derive(Debug)]
enum State {
    Head,
    Length { left: u64 },
    Chunked(ChunkedDecoder),
    UntilClose,
    Complete,
}

/// Progress of one call of [`ResponseDecoder::decode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input that belong to this response.
    pub consumed: usize,
    /// Whether the response is complete.
    pub complete: bool,
}

/// A head this short is parsed again with every piece, so that garbage is noticed at once; a longer
/// one only when its end has come, so that a trickle of bytes costs linear time.
const EAGER_HEAD_BYTES: usize = 1024;

impl ResponseDecoder {
    /// A decoder for a new connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: Limits {
                headers: limits.headers.min(Limits::MOST_HEADERS),
                ..limits
            },
            state: State::Complete,
            partial_head: Vec::new(),
            request: RequestFacts::default(),
            is_tunnel: false,
            status: 0,
            interim_seen: 0,
            content_bytes: 0,
            persistent: true,
        }
    }

    /// Expects the response to a request that is about to be sent.
    ///
    /// - `head_request`: the method is HEAD, so a length announces content that does not come.
    pub fn begin(&mut self, head_request: bool) {
        self.begin_for(RequestFacts {
            is_head: head_request,
            ..RequestFacts::default()
        });
    }

    /// Expects the response to a request that may be more than a plain one.
    pub fn begin_for(&mut self, request: RequestFacts) {
        self.state = State::Head;
        self.partial_head.clear();
        self.request = request;
        self.is_tunnel = false;
        self.status = 0;
        self.interim_seen = 0;
        self.content_bytes = 0;
    }

    /// The status of the final response, 0 before its head came.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Bytes of content so far.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Bytes of content that are still to come, if the head announced them or there are none.
    pub fn content_left(&self) -> Option<u64> {
        match self.state {
            State::Length { left } => Some(left),
            State::Complete => Some(0),
            State::Head | State::Chunked(_) | State::UntilClose => None,
        }
    }

    /// Counts content of a known length that the caller has read past the decoder; no more than is
    /// [left](Self::content_left). Returns whether the response is complete.
    pub fn skip_content(&mut self, bytes: usize) -> bool {
        if let State::Length { left } = &mut self.state {
            debug_assert!(bytes as u64 <= *left);
            *left = left.saturating_sub(bytes as u64);
            self.content_bytes += bytes as u64;
            if *left == 0 {
                self.state = State::Complete;
            }
        }
        matches!(self.state, State::Complete)
    }

    /// Whether the final head was seen.
    pub fn has_head(&self) -> bool {
        !matches!(self.state, State::Head)
    }

    /// Whether the final head turned the connection into a tunnel; what follows it is not HTTP.
    pub fn is_tunnel(&self) -> bool {
        self.is_tunnel
    }

    /// Whether the connection may carry another request once this response is complete.
    pub fn is_persistent(&self) -> bool {
        self.persistent && matches!(self.state, State::Complete)
    }

    /// Takes what the connection delivered.
    ///
    /// - `known`: the last head of this or another connection; the decoded message does not depend on it.
    ///
    /// Bytes beyond `consumed` of a complete response answer no request: none is outstanding,
    /// and the connection must not be used again (RFC 9112, section 9.2).
    pub fn decode<S: ResponseSink>(
        &mut self,
        input: &[u8],
        sink: &mut S,
        known: &mut KnownHead,
    ) -> Result<Decoded, DecodeError> {
        let mut consumed = 0;
        while matches!(self.state, State::Head) {
            match self.decode_head(&input[consumed..], sink, known)? {
                Some(taken) => consumed += taken,
                None => {
                    return Ok(Decoded {
                        consumed: input.len(),
                        complete: false,
                    });
                }
            }
        }
        consumed += self.decode_content(&input[consumed..], sink)?;
        Ok(Decoded {
            consumed,
            complete: matches!(self.state, State::Complete),
        })
    }

    /// The peer closed its side: fine where that ends the content, an error elsewhere.
    pub fn end_of_stream(&mut self) -> Result<(), DecodeError> {
        match &self.state {
            State::Complete => Ok(()),
            State::UntilClose => {
                self.state = State::Complete;
                Ok(())
            }
            State::Head if self.partial_head.is_empty() => Err(DecodeError::ClosedBeforeHead),
            State::Head => {
                // The bytes may be garbage rather than half a head.
                let partial = std::mem::take(&mut self.partial_head);
                self.parse_head(&partial, &mut (), &mut KnownHead::new())?;
                Err(DecodeError::ClosedInHead)
            }
            State::Length { .. } | State::Chunked(_) => Err(DecodeError::ClosedInBody),
        }
    }

    /// Reads one head; returns the bytes of `input` it took, `None` if it needs more than there is.
    fn decode_head<S: ResponseSink>(
        &mut self,
        input: &[u8],
        sink: &mut S,
        known: &mut KnownHead,
    ) -> Result<Option<usize>, DecodeError> {
        if self.partial_head.is_empty() {
            if !sink.wants_head()
                && let Some(facts) = known.recognise(input, &self.limits)
            {
                self.accept(&facts)?;
                return Ok(Some(facts.length));
            }
            let taken = self.parse_head(input, sink, known)?;
            if taken.is_none() {
                self.partial_head.extend_from_slice(input);
            }
            return Ok(taken);
        }
        let before = self.partial_head.len();
        let room = self.limits.head_bytes - before;
        self.partial_head
            .extend_from_slice(&input[..input.len().min(room)]);
        let worth_parsing = self.partial_head.len() <= EAGER_HEAD_BYTES
            || self.partial_head.len() == self.limits.head_bytes
            || ends_in(&self.partial_head, before);
        if !worth_parsing {
            return Ok(None);
        }
        let partial = std::mem::take(&mut self.partial_head);
        let taken = self.parse_head(&partial, sink, known)?;
        self.partial_head = partial;
        Ok(taken.map(|length| {
            self.partial_head.clear();
            length - before
        }))
    }

    /// Parses a head at the start of `bytes`; returns its length, `None` if it is not all there.
    fn parse_head<S: ResponseSink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
        known: &mut KnownHead,
    ) -> Result<Option<usize>, DecodeError> {
        let limit = self.limits.head_bytes;
        let mut storage = [const { MaybeUninit::<Header<'_>>::uninit() }; Limits::MOST_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            &bytes[..bytes.len().min(limit)],
            &mut storage[..self.limits.headers],
        );
        let Some(length) = self.limits.head_length(parsed, bytes.len())? else {
            return Ok(None);
        };
        let head = ResponseHead {
            status: response.code.expect("a complete head has a status"),
            reason: response.reason.unwrap_or_default(),
            minor_version: response.version.expect("a complete head has a version"),
            headers: response.headers,
        };
        match head.status {
            0..100 => return Err(DecodeError::Status(head.status)),
            101 if !self.request.may_switch => return Err(DecodeError::Upgrade),
            100 | 102..200 => {
                self.interim_seen += 1;
                if self.interim_seen > self.limits.interim {
                    return Err(DecodeError::TooManyInterim {
                        limit: self.limits.interim,
                    });
                }
                sink.interim(&head);
            }
            _ => {
                let facts = HeadFacts {
                    length,
                    status: head.status,
                    minor_version: head.minor_version,
                    headers: head.headers.len(),
                    framing: Framing::from_headers(head.headers)?,
                };
                self.accept(&facts)?;
                if sink.wants_head() {
                    sink.head(&head);
                } else if !self.is_tunnel {
                    known.keep(&bytes[..length], facts);
                }
            }
        }
        Ok(Some(length))
    }

    /// Goes on to the content that a final head announces.
    fn accept(&mut self, head: &HeadFacts) -> Result<(), DecodeError> {
        self.state = self.content_of(head)?;
        self.status = head.status;
        Ok(())
    }

    /// Decides where the content ends (RFC 9112, section 6.3) and whether the connection persists
    /// (section 9.3).
    fn content_of(&mut self, head: &HeadFacts) -> Result<State, DecodeError> {
        let framing = head.framing;
        self.is_tunnel =
            head.status == 101 || (self.request.is_connect && matches!(head.status, 200..300));
        if self.is_tunnel {
            self.persistent = false;
            return Ok(State::Complete);
        }
        self.persistent =
            !framing.connection_close && (head.minor_version == 1 || framing.connection_keep_alive);
        if framing.transfer_encoding.is_some() {
            if head.minor_version == 0 {
                return Err(DecodeError::TransferEncoding);
            }
            // Both fields at once are an attempt at smuggling or a broken peer.
            self.persistent &= framing.content_length.is_none();
        }
        if self.request.is_head || matches!(head.status, 204 | 304) {
            return Ok(State::Complete);
        }
        match (framing.transfer_encoding, framing.content_length) {
            // Others may read such content by another rule, so that it would not be the same for all on its way.
            (Some(TransferEncoding::Undecoded), _) => Err(DecodeError::TransferEncoding),
            (Some(TransferEncoding::Chunked), Some(_)) => Err(DecodeError::ContentLength),
            (Some(TransferEncoding::Chunked), None) => Ok(State::Chunked(
                ChunkedDecoder::new(self.limits.chunk_overhead_bytes)
                    .with_trailers(self.request.keeps_trailers),
            )),
            (None, Some(0)) => Ok(State::Complete),
            (None, Some(left)) => {
                if left > self.limits.body_bytes {
                    return Err(self.body_too_large());
                }
                Ok(State::Length { left })
            }
            (None, None) => {
                self.persistent = false;
                Ok(State::UntilClose)
            }
        }
    }

    /// Takes content from `input`; returns how many bytes belonged to it.
    fn decode_content<S: ResponseSink>(
        &mut self,
        input: &[u8],
        sink: &mut S,
    ) -> Result<usize, DecodeError> {
        match &mut self.state {
            State::Head | State::Complete => Ok(0),
            State::Length { left } => {
                let taken =
                    usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= taken as u64;
                if *left == 0 {
                    self.state = State::Complete;
                }
                self.content(&input[..taken], sink)?;
                Ok(taken)
            }
            State::UntilClose => {
                self.content(input, sink)?;
                Ok(input.len())
            }
            State::Chunked(_) => self.decode_chunks(input, sink),
        }
    }

    fn decode_chunks<S: ResponseSink>(
        &mut self,
        input: &[u8],
        sink: &mut S,
    ) -> Result<usize, DecodeError> {
        let mut at = 0;
        while let State::Chunked(chunked) = &mut self.state {
            match chunked.decode(&input[at..])? {
                ChunkedPart::Framing => return Ok(input.len()),
                ChunkedPart::Content { start, end } => {
                    self.content(&input[at + start..at + end], sink)?;
                    at += end;
                }
                ChunkedPart::End { consumed } => {
                    let trailers = chunked.take_trailers();
                    self.state = State::Complete;
                    at += consumed;
                    if !trailers.is_empty() {
                        sink.trailers(&trailers);
                    }
                }
            }
        }
        Ok(at)
    }

    fn content<S: ResponseSink>(&mut self, piece: &[u8], sink: &mut S) -> Result<(), DecodeError> {
        self.content_bytes += piece.len() as u64;
        if self.content_bytes > self.limits.body_bytes {
            return Err(self.body_too_large());
        }
        if !piece.is_empty() {
            sink.content(piece);
        }
        Ok(())
    }

    fn body_too_large(&self) -> DecodeError {
        DecodeError::BodyTooLarge {
            limit: self.limits.body_bytes,
        }
    }
}

/// Whether an empty line ends within `head`, looking only at what came after `before`.
fn ends_in(head: &[u8], before: usize) -> bool {
    let from = before.saturating_sub(3);
    let fresh = &head[from..];
    fresh.windows(2).any(|pair| pair == b"\n\n")
        || fresh.windows(4).any(|four| four == b"\r\n\r\n")
        || fresh.windows(3).any(|three| three == b"\n\r\n")
}

#[cfg(test)]
mod tests;
