//! Requests as a server reads them: strict where intermediaries disagree.
//!
//! [`RequestDecoder`] is shown what a connection sent, wherever that lies, and returns heads that
//! borrow from it. It keeps no bytes but trailer fields, and allocates for nothing else.

mod diagnosis;

mod refusal;

mod target;

use std::mem::MaybeUninit;
use std::ops::Range;

use httparse::Header;

use crate::h1::DecodeError;
use crate::h1::chunked::{ChunkedDecoder, ChunkedPart};
use crate::h1::framing::elements;
use crate::h1::server::diagnosis::diagnose;
use crate::h1::server::target::Authority;
use crate::http::FieldClass;
use crate::http::decimal::decimal;

pub use crate::h1::server::refusal::RequestError;
pub use crate::h1::server::target::{Target, TargetForm};

/// Bounds on one request; all are on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of the head, request line and final empty line included.
    pub head_bytes: usize,
    /// Bytes of the target.
    pub target_bytes: usize,
    /// Header fields, at most [`RequestLimits::MOST_HEADERS`].
    pub headers: usize,
    /// Bytes of content.
    pub body_bytes: u64,
    /// Bytes of chunk extensions and trailer fields together.
    pub chunk_overhead_bytes: usize,
}

impl RequestLimits {
    /// The highest limit on header fields that can be set: their positions are in an array on the stack, once per
    /// worker.
    pub const MOST_HEADERS: usize = 128;
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            head_bytes: 32 * 1024,
            // Queries of dashboards such as Kibana's pass 8 KiB.
            target_bytes: 16 * 1024,
            headers: 100,
            body_bytes: 64 << 20,
            chunk_overhead_bytes: 8 * 1024,
        }
    }
}

/// The head of a request, borrowed from the bytes that it was read from.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedHead<'a> {
    /// A token, in the case it was sent in.
    pub method: &'a str,
    /// The request target.
    pub target: Target<'a>,
    /// The minor version of HTTP/1: 0 or 1.
    pub minor_version: u8,
    /// `host` or `host:port`, of the target or else of `Host`; empty if HTTP/1.0 has neither.
    pub authority: &'a str,
    /// The header fields in the order they came.
    pub headers: &'a [Header<'a>],
    /// The length of the body.
    pub body: BodyLength,
    /// The client may send another request on this connection.
    pub is_persistent: bool,
    /// The client waits for `100 Continue` before it sends the content.
    pub expects_continue: bool,
    /// The protocols that the client would rather speak, as `Upgrade` lists them; only if `Connection` names
    /// the field (RFC 9110, section 7.8).
    pub upgrade: Option<&'a [u8]>,
}

/// Framing of a request's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// There is none.
    None,
    /// So many bytes, at least one.
    Known(u64),
    /// Chunks, until the one that says it is the last.
    Chunked,
}

impl<'a> ReceivedHead<'a> {
    /// The value of the first field of that name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
    }

    /// Whether the answer has a head only.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// Memory for the fields of one head: 4 KiB that belong on the stack.
#[derive(Debug)]
pub struct HeadStorage<'a>([MaybeUninit<Header<'a>>; RequestLimits::MOST_HEADERS]);

impl HeadStorage<'_> {
    /// Memory that nothing was written to yet.
    #[inline]
    pub const fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; RequestLimits::MOST_HEADERS])
    }
}

impl Default for HeadStorage<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// The next piece of the input of [`RequestDecoder::decode_body`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyStep {
    /// All of the input was framing, or there was none; more must come.
    NeedMore,
    /// Content at this range of the input; call again with what follows it.
    Content(Range<usize>),
    /// The body ended after so many bytes; the next request follows.
    End(usize),
}

/// Decodes the requests of one connection, one after the other.
///
/// Show [`decode_head`](Self::decode_head) what has come until it finds a head, then give
/// [`decode_body`](Self::decode_body) all that follows until it says that the body has ended; only
/// then may the next head be looked for. After an error nothing on the connection can be trusted.
///
/// Decodes requests, and rejects each one that two readers could understand differently, with an error of its own:
/// [`RequestError`] lists them.
#[derive(Debug)]
pub struct RequestDecoder {
    limits: RequestLimits,
    /// Bytes of an unfinished head that were looked at.
    seen: usize,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    None,
    Length {
        left: u64,
    },
    Chunked {
        /// Boxed: few requests have chunks, and every idle connection has a decoder.
        decoder: Box<ChunkedDecoder>,
        content_bytes: u64,
    },
}

impl RequestDecoder {
    /// A decoder for a new connection.
    pub fn new(limits: RequestLimits) -> Self {
        Self {
            limits: RequestLimits {
                headers: limits.headers.min(RequestLimits::MOST_HEADERS),
                ..limits
            },
            seen: 0,
            body: Body::None,
        }
    }

    /// Whether a body must be read before the next head.
    pub fn is_in_body(&self) -> bool {
        !matches!(self.body, Body::None)
    }

    /// Whether all that is left of the body lies at the start of `input`. Fails with what is wrong in it.
    ///
    /// Reads ahead without a change to what [`decode_body`](Self::decode_body) returns.
    pub fn has_whole_body(&self, input: &[u8]) -> Result<bool, RequestError> {
        let mut ahead = Self {
            limits: self.limits,
            seen: 0,
            body: self.body.clone(),
        };
        let mut at = 0;
        loop {
            match ahead.decode_body(&input[at..])? {
                BodyStep::Content(range) => at += range.end,
                BodyStep::End(_) => return ahead.finish_body().map(|_| true),
                BodyStep::NeedMore => return Ok(false),
            }
        }
    }

    /// Reads a head at the start of `input`; returns it and its length, `None` if it is not all
    /// there yet.
    ///
    /// One empty line before it is skipped (RFC 9112, section 2.2) and counts to its length. What
    /// comes in many pieces is looked at when it begins and when it is whole, so a mistake in it may be
    /// noticed only then.
    #[inline]
    pub fn decode_head<'s, 'b: 's>(
        &mut self,
        input: &'b [u8],
        storage: &'s mut HeadStorage<'b>,
    ) -> Result<Option<(ReceivedHead<'s>, usize)>, RequestError> {
        debug_assert!(!self.is_in_body(), "the body comes before the next head");
        let skipped = match input {
            [b'\r', b'\n', ..] => 2,
            [b'\r'] => return Ok(None),
            _ => 0,
        };
        let input = &input[skipped..];
        if let [b'\r' | b'\n', ..] = input {
            return Err(RequestError::RequestLine);
        }
        let shown = &input[..input.len().min(self.limits.head_bytes)];
        if self.seen > 0 && shown.len() < self.limits.head_bytes && !ends_in(shown, self.seen) {
            self.seen = shown.len();
            return Ok(None);
        }
        let mut request = httparse::Request::new(&mut []);
        let fields = &mut storage.0[..self.limits.headers];
        let length = match request.parse_with_uninit_headers(shown, fields) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if input.len() >= self.limits.head_bytes => {
                // A target that fills the head by itself is what is too long.
                let target = shown.split(|byte| matches!(byte, b' ' | b'\n')).nth(1);
                let length = target.map_or(0, <[u8]>::len);
                return Err(if length > self.limits.target_bytes {
                    RequestError::TargetTooLong
                } else {
                    RequestError::HeadTooLarge
                });
            }
            Ok(httparse::Status::Partial) => {
                self.seen = shown.len();
                return Ok(None);
            }
            Err(error) => return Err(diagnose(error, shown)),
        };
        self.seen = 0;
        let headers: &'s [Header<'b>] = request.headers;
        if has_bare_line_feed(&shown[..length], headers) {
            return Err(RequestError::LineEnd);
        }
        let method = request.method.unwrap_or_default();
        let target = request.path.unwrap_or_default();
        if target.len() > self.limits.target_bytes {
            return Err(RequestError::TargetTooLong);
        }
        let target = Target::parse(method, target)?;
        let minor_version = request.version.unwrap_or_default();
        let fields = Fields::read(headers)?;
        let body = fields.body_length(minor_version)?;
        if matches!(body, BodyLength::Known(length) if length > self.limits.body_bytes) {
            return Err(RequestError::BodyTooLarge);
        }
        let head = ReceivedHead {
            method,
            target,
            minor_version,
            authority: fields.authority(&target, minor_version)?,
            headers,
            body,
            is_persistent: !fields.close && (minor_version == 1 || fields.keep_alive),
            // HTTP/1.0 has no interim responses (RFC 9110, section 10.1.1).
            expects_continue: fields.expects_continue && minor_version == 1,
            upgrade: fields
                .upgrade
                .filter(|_| fields.has_upgrade_option && minor_version == 1),
        };
        self.body = match body {
            BodyLength::None => Body::None,
            BodyLength::Known(left) => Body::Length { left },
            BodyLength::Chunked => Body::Chunked {
                decoder: Box::new(ChunkedDecoder::strict(self.limits.chunk_overhead_bytes)),
                content_bytes: 0,
            },
        };
        Ok(Some((head, skipped + length)))
    }

    /// Reads the body at the start of `input`, which may be empty.
    pub fn decode_body(&mut self, input: &[u8]) -> Result<BodyStep, RequestError> {
        Ok(match &mut self.body {
            Body::None | Body::Length { left: 0 } => BodyStep::End(0),
            Body::Length { .. } if input.is_empty() => BodyStep::NeedMore,
            Body::Length { left } => {
                let taken =
                    usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= taken as u64;
                BodyStep::Content(0..taken)
            }
            Body::Chunked {
                decoder,
                content_bytes,
            } => match decoder.decode(input) {
                Ok(ChunkedPart::Framing) => BodyStep::NeedMore,
                Ok(ChunkedPart::Content { start, end }) => {
                    *content_bytes += (end - start) as u64;
                    if *content_bytes > self.limits.body_bytes {
                        return Err(RequestError::BodyTooLarge);
                    }
                    BodyStep::Content(start..end)
                }
                Ok(ChunkedPart::End { consumed }) => BodyStep::End(consumed),
                Err(DecodeError::ChunkOverhead { .. }) => return Err(RequestError::ChunkOverhead),
                Err(_) => return Err(decoder.refusal()),
            },
        })
    }

    /// The trailer fields of a body that has ended; must be called before the next head, unless there
    /// was no body.
    ///
    /// Lines of `name: value` with their CR LF, empty for most bodies.
    pub fn finish_body(&mut self) -> Result<Vec<u8>, RequestError> {
        match std::mem::replace(&mut self.body, Body::None) {
            Body::None | Body::Length { .. } => Ok(Vec::new()),
            Body::Chunked { mut decoder, .. } => {
                let trailers = decoder.take_trailers();
                if fields_of(&trailers).any(|(name, _)| is_refused_in_trailers(name)) {
                    return Err(RequestError::Trailer);
                }
                Ok(trailers)
            }
        }
    }
}

/// Whether a trailer of that name would change how the request was understood by a server that merges trailers into the
/// head: where it ends, what becomes of its connection, its host. Other fields of heads are only left out, as over
/// the other versions ([`may_be_trailer`](crate::http::may_be_trailer)).
fn is_refused_in_trailers(name: &[u8]) -> bool {
    let class = FieldClass::from_name(name);
    class.is_framing() || class.is_connection_specific() || name.eq_ignore_ascii_case(b"host")
}

/// Writes `HTTP/1.1` in the place of a later minor version, up to `HTTP/1.9`, of the request at the start of `input`, which
/// its sender expects to be understood by the rules of 1.1 (RFC 9110, section 2.5). False if it has none.
pub fn read_as_http_1_1(input: &mut [u8]) -> bool {
    let skipped = if input.starts_with(b"\r\n") { 2 } else { 0 };
    let blanks = input.iter().enumerate().skip(skipped);
    let mut blanks = blanks.filter(|(_, byte)| **byte == b' ');
    let Some((before, _)) = blanks.nth(1) else {
        return false;
    };
    let version = input.get_mut(before + 1..).unwrap_or_default();
    let Some((b"HTTP/1.", minor)) = version
        .split_at_mut_checked(7)
        .map(|(it, rest)| (&*it, rest))
    else {
        return false;
    };
    match minor {
        [minor @ b'2'..=b'9'] | [minor @ b'2'..=b'9', b'\r' | b'\n', ..] => {
            *minor = b'1';
            true
        }
        _ => false,
    }
}

/// The fields of lines of `name: value`, as [`RequestDecoder::finish_body`] returns them.
pub fn fields_of(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    lines.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// Values of the fields that concern the connection.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option or a field that is there or not"
)]
#[derive(Default)]
struct Fields<'a> {
    host: Option<&'a [u8]>,
    content_length: Option<u64>,
    codings: Codings,
    close: bool,
    keep_alive: bool,
    has_upgrade_option: bool,
    upgrade: Option<&'a [u8]>,
    expects_continue: bool,
}

impl<'a> Fields<'a> {
    fn read(headers: &[Header<'a>]) -> Result<Self, RequestError> {
        let mut fields = Self::default();
        for header in headers {
            let value = header.value;
            // Lengths first: most header fields differ in them.
            match header.name.len() {
                4 if header.name.eq_ignore_ascii_case("host") => {
                    let earlier = fields.host.replace(value);
                    if earlier.is_some() {
                        return Err(RequestError::HostRepeated);
                    }
                }
                6 if header.name.eq_ignore_ascii_case("expect") => {
                    // Others pass to the server (RFC 9110, section 10.1.1).
                    fields.expects_continue |= value.eq_ignore_ascii_case(b"100-continue");
                }
                7 if header.name.eq_ignore_ascii_case("upgrade") => fields.upgrade = Some(value),
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    for option in elements(value) {
                        fields.close |= option.eq_ignore_ascii_case(b"close");
                        fields.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                        fields.has_upgrade_option |= option.eq_ignore_ascii_case(b"upgrade");
                    }
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let length = decimal(value).ok_or(RequestError::ContentLength)?;
                    if fields.content_length.replace(length).is_some() {
                        return Err(RequestError::ContentLengthRepeated);
                    }
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    // Several fields are one list.
                    fields.codings = fields.codings.followed_by(value);
                }
                _ => {}
            }
        }
        Ok(fields)
    }

    fn body_length(&self, minor_version: u8) -> Result<BodyLength, RequestError> {
        match (self.codings, self.content_length) {
            (Codings::None, None | Some(0)) => Ok(BodyLength::None),
            (Codings::None, Some(length)) => Ok(BodyLength::Known(length)),
            _ if minor_version == 0 => Err(RequestError::TransferEncodingInOld),
            (_, Some(_)) => Err(RequestError::LengthAndCoding),
            (Codings::Chunked, None) => Ok(BodyLength::Chunked),
            (Codings::OthersThenChunked, None) => Err(RequestError::TransferEncoding),
            (Codings::Others | Codings::Wrong, None) => Err(RequestError::TransferEncodingEnd),
        }
    }

    /// The authority of the request; if both target and `Host` have one, they must agree.
    fn authority<'t>(&self, target: &Target<'t>, minor_version: u8) -> Result<&'t str, RequestError>
    where
        'a: 't,
    {
        let default_port = match target.form {
            TargetForm::Authority => "443",
            _ => "80",
        };
        let host = self.host.map(str::from_utf8).transpose();
        let host = host.map_err(|_| RequestError::HostInvalid)?;
        match authority_of(target.authority, host, default_port) {
            Err(RequestError::HostMissing) if minor_version == 0 => Ok(""),
            // Only HTTP/1.0 does without `Host` where the target names the authority.
            Ok(_) if minor_version == 1 && host.is_none() => Err(RequestError::HostMissing),
            result => result,
        }
    }
}

/// The authority of a request, by the rules of every version of HTTP: a host that is not empty, perhaps a port up to
/// 65535, no user. Where the target names one beside `Host`, both must agree.
///
/// - `named`: of the target, or of `:authority`.
/// - `default_port`: of the scheme, for authorities without a port.
pub fn authority_of<'t>(
    named: Option<&'t str>,
    host: Option<&'t str>,
    default_port: &str,
) -> Result<&'t str, RequestError> {
    let parsed = |text| {
        Authority::parse(text)
            .filter(|authority| !authority.host.is_empty())
            .ok_or(RequestError::HostInvalid)
    };
    match (named, host) {
        (None, None) => Err(RequestError::HostMissing),
        (Some(text), None) | (None, Some(text)) => parsed(text).map(|_| text),
        (Some(named), Some(host)) => {
            let (authority, other) = (parsed(named)?, parsed(host)?);
            if authority.is_same(&other, default_port) {
                Ok(named)
            } else {
                Err(RequestError::HostMismatch)
            }
        }
    }
}

/// The transfer codings of a request, so far as they decide on its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Codings {
    #[default]
    None,
    Chunked,
    Others,
    OthersThenChunked,
    /// Something follows `chunked`.
    Wrong,
}

impl Codings {
    /// With the list of one more field behind them.
    fn followed_by(self, value: &[u8]) -> Self {
        let all = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        all.fold(self, |before, coding| {
            match (before, coding.eq_ignore_ascii_case(b"chunked")) {
                // Readers differ about empty elements.
                _ if coding.is_empty() => Self::Wrong,
                (Self::None, true) => Self::Chunked,
                (Self::Others, true) => Self::OthersThenChunked,
                (Self::None | Self::Others, false) => Self::Others,
                (Self::Chunked | Self::OthersThenChunked | Self::Wrong, _) => Self::Wrong,
            }
        })
    }
}

/// Every line begins behind a line end, and that must be CR LF; nothing else needs to be looked at.
#[inline]
fn has_bare_line_feed(head: &[u8], headers: &[Header<'_>]) -> bool {
    let start = head.as_ptr() as usize;
    let follows_line_end =
        |at: usize| at >= 2 && matches!(head.get(at - 2..at), Some([b'\r', b'\n']));
    let in_order = headers
        .iter()
        .all(|header| follows_line_end(header.name.as_ptr() as usize - start));
    !(in_order && head.ends_with(b"\r\n\r\n"))
}

/// Whether an empty line ends within `head`, looking only at what came after `before`.
fn ends_in(head: &[u8], before: usize) -> bool {
    let fresh = &head[before.saturating_sub(3).min(head.len())..];
    fresh.windows(2).any(|pair| pair == b"\n\n") || fresh.windows(3).any(|three| three == b"\n\r\n")
}

#[cfg(test)]
mod tests;
