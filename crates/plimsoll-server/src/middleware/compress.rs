//! Compression of responses: `zstd`, `br` or `gzip`, as the client prefers (RFC 9110, section 12.5.3).
//!
//! Responses that are the same for every request are compressed once. Content that comes in pieces goes
//! on in pieces: whatever was given is flushed before more is waited for.

mod accept;

mod encoder;

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, VARY,
};
use http_body::{Body, Frame};

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::{
    Built, Kind, Prepared, Response, ResponseBody, StreamError, WholeContent, has_content,
};
use crate::message::verbatim::Verbatim;
use crate::middleware::compress::encoder::Encoder;

/// The settings of compression.
#[derive(Debug, Clone)]
pub struct Compress {
    /// Those that may be used; of those that the client likes equally the first is.
    pub codings: Vec<Coding>,
    /// Media types without parameters; `text/*` means all of a kind, `*+json` all with that suffix.
    pub types: Vec<String>,
    /// Shorter content is left as it is, in bytes; its length may be unknown.
    pub least: u64,
}

/// Ways to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Zstandard (RFC 8878)
    Zstd,
    /// Brotli (RFC 7932)
    Brotli,
    /// gzip (RFC 1952)
    Gzip,
}

impl Coding {
    /// Each of them, by what is preferred where the client does not mind.
    pub const ALL: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];

    /// As `accept-encoding` and `content-encoding` have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// The one of `codings` that the client likes best, the first of those it likes equally; `None` if it likes the
/// content as it is better.
///
/// - `values`: of its `accept-encoding` fields.
pub fn preferred_coding<'v>(
    codings: &[Coding],
    values: impl Iterator<Item = &'v [u8]>,
) -> Option<Coding> {
    accept::choose(codings, values)
}

/// `content` compressed in one go, at the level that is used for responses on their way.
pub fn compress(coding: Coding, content: &[u8]) -> Bytes {
    let mut encoder = Encoder::new(coding);
    encoder.write(content);
    encoder.finish()
}

/// `content` compressed as far as the coding goes, which takes seconds for a megabyte.
pub fn compress_well(coding: Coding, content: &[u8]) -> Bytes {
    let mut encoder = Encoder::best(coding);
    encoder.write(content);
    encoder.finish()
}

impl Default for Compress {
    fn default() -> Self {
        let types = [
            "text/*",
            "application/javascript",
            "application/json",
            "application/xml",
            "application/wasm",
            "image/svg+xml",
            "*+json",
            "*+xml",
        ];
        Self {
            codings: Coding::ALL.to_vec(),
            types: types.map(str::to_owned).to_vec(),
            least: 1024,
        }
    }
}

impl Compress {
    /// Whether a response may be compressed for those who want it.
    fn covers(&self, status: StatusCode, fields: &HeaderMap, length: Option<u64>) -> bool {
        has_content(status)
            && status != StatusCode::PARTIAL_CONTENT
            && length.is_none_or(|length| length >= self.least.max(1))
            && !fields.contains_key(CONTENT_ENCODING)
            && !fields.contains_key(CONTENT_RANGE)
            && !fields.get_all(CACHE_CONTROL).iter().any(forbids_change)
            && fields
                .get(CONTENT_TYPE)
                .is_some_and(|kind| self.has_type(kind))
    }

    fn has_type(&self, kind: &HeaderValue) -> bool {
        let kind = kind.to_str().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        self.types.iter().any(|it| match it.split_once('*') {
            None => it.eq_ignore_ascii_case(kind),
            Some((before, after)) => {
                let (start, end) = (
                    kind.get(..before.len()),
                    kind.len().checked_sub(after.len()),
                );
                kind.len() > before.len() + after.len()
                    && start.is_some_and(|start| start.eq_ignore_ascii_case(before))
                    && end
                        .and_then(|end| kind.get(end..))
                        .is_some_and(|end| end.eq_ignore_ascii_case(after))
            }
        })
    }
}

/// Whether content must not be transformed on its way (RFC 9111, section 5.2.2.6).
fn forbids_change(value: &HeaderValue) -> bool {
    let text = value.to_str().unwrap_or_default();
    text.split(',')
        .any(|directive| directive.trim().eq_ignore_ascii_case("no-transform"))
}

/// Compressed forms that are kept for one worker.
const MOST_KEPT: usize = 256;

/// Content that is compressed in one go; longer content is in pieces, so that others have their turn.
const AT_ONCE: usize = 64 * 1024;

type CompressedCopies = RefCell<HashMap<(*const Prepared, Coding), (Rc<Prepared>, Rc<Prepared>)>>;

/// Compresses what another action answers.
pub(super) struct Compressing {
    compress: Arc<Compress>,
    /// By the place in memory of what they were made of, which stays as long as it is kept.
    kept: Rc<CompressedCopies>,
    inner: Rc<dyn Action>,
}

impl Compressing {
    pub(super) fn new(compress: Arc<Compress>, inner: Rc<dyn Action>) -> Self {
        Self {
            compress,
            kept: Rc::default(),
            inner,
        }
    }
}

impl Action for Compressing {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let accepted = request
            .headers()
            .filter(|(name, _)| name.eq_ignore_ascii_case(ACCEPT_ENCODING.as_str()));
        let coding = accept::choose(&self.compress.codings, accepted.map(|(_, value)| value));
        let is_head = request.method == "HEAD";
        let (compress, kept) = (Arc::clone(&self.compress), Rc::clone(&self.kept));
        self.inner
            .handle(request)
            .map(move |response| compressed(&compress, &kept, coding, is_head, response))
    }
}

fn compressed(
    compress: &Compress,
    kept: &CompressedCopies,
    coding: Option<Coding>,
    is_head: bool,
    response: Response,
) -> Response {
    match response.0 {
        Kind::Prepared(prepared) => {
            let length = prepared.content.length();
            if !compress.covers(prepared.status, &prepared.fields, Some(length)) {
                return Response(Kind::Prepared(prepared));
            }
            let Some(coding) = coding else {
                return varied(Response(Kind::Prepared(prepared)));
            };
            let key = (Rc::as_ptr(&prepared), coding);
            if let Some((_, ready)) = kept.borrow().get(&key) {
                return Response(Kind::Prepared(Rc::clone(ready)));
            }
            let built = Built {
                status: prepared.status,
                reason: None,
                fields: prepared.fields.clone(),
                verbatim: Verbatim::default(),
                order: None,
                content: prepared.body(),
                is_relayed: false,
                hand_over: None,
            };
            let content = match &prepared.content {
                WholeContent::Bytes(bytes) if kept.borrow().len() < MOST_KEPT => bytes,
                _ => return encoded(coding, is_head, built),
            };
            let ready = whole(coding, built, content).prepare();
            kept.borrow_mut().insert(key, (prepared, Rc::clone(&ready)));
            Response(Kind::Prepared(ready))
        }
        Kind::Built(mut built) => {
            built.spread();
            let length = built.content.length();
            if !compress.covers(built.status, &built.fields, length) {
                return Response(Kind::Built(built));
            }
            match coding {
                None => varied(Response(Kind::Built(built))),
                Some(coding) => encoded(coding, is_head, *built),
            }
        }
    }
}

/// Marks for caches that another client may get another form.
fn varied(mut response: Response) -> Response {
    vary(response.fields_mut());
    response
}

fn vary(fields: &mut HeaderMap) {
    let names_it = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default();
        text.split(',').any(|name| {
            let name = name.trim();
            name == "*" || name.eq_ignore_ascii_case(ACCEPT_ENCODING.as_str())
        })
    };
    if !fields.get_all(VARY).iter().any(names_it) {
        fields.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}

/// Sets the fields of a compressed response.
fn describe(coding: Coding, fields: &mut HeaderMap) {
    fields.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    vary(fields);
    fields.remove(CONTENT_LENGTH);
    // Ranges would be those of the content as it was.
    fields.remove(ACCEPT_RANGES);
    // Bytes differ from those that the strong tag is for (RFC 9110, section 8.8.1).
    if let Some(tag) = fields.get(ETAG)
        && !tag.as_bytes().starts_with(b"W/")
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat())
    {
        fields.insert(ETAG, weak);
    }
}

/// `built` with `content` compressed at once.
fn whole(coding: Coding, mut built: Built, content: &[u8]) -> Response {
    describe(coding, &mut built.fields);
    let mut encoder = Encoder::new(coding);
    encoder.write(content);
    built.content = ResponseBody::Bytes(encoder.finish());
    Response(Kind::Built(Box::new(built)))
}

fn encoded(coding: Coding, is_head: bool, mut built: Built) -> Response {
    let content = match std::mem::take(&mut built.content) {
        ResponseBody::Bytes(bytes) if bytes.len() <= AT_ONCE && !is_head => {
            return whole(coding, built, &bytes);
        }
        content => content,
    };
    describe(coding, &mut built.fields);
    let source = match content {
        // The length would be that of the compressed content, which would have to be made for it.
        _ if is_head => Source::Bytes(Bytes::new()),
        ResponseBody::Stream(body) => Source::Stream(body),
        ResponseBody::File(part) => Source::Stream(Box::pin(part)),
        ResponseBody::Bytes(bytes) => Source::Bytes(bytes),
        ResponseBody::Empty | ResponseBody::Announced(_) => Source::Bytes(Bytes::new()),
    };
    built.content = ResponseBody::Stream(Box::pin(Encoded {
        source,
        encoder: Some(Encoder::new(coding)),
        has_unflushed: false,
        ready: VecDeque::new(),
    }));
    Response(Kind::Built(Box::new(built)))
}

enum Source {
    Bytes(Bytes),
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>),
}

/// Content that is compressed as it goes.
struct Encoded {
    source: Source,
    /// Absent once all is compressed.
    encoder: Option<Encoder>,
    /// Something was compressed that has not come out.
    has_unflushed: bool,
    ready: VecDeque<Frame<Bytes>>,
}

/// Bytes that are compressed before others of the worker have their turn.
const TURN: usize = 32 * 1024;

impl Body for Encoded {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = self.get_mut();
        let mut compressed = 0;
        loop {
            if let Some(frame) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(frame)));
            }
            let Some(encoder) = &mut this.encoder else {
                return Poll::Ready(None);
            };
            if compressed >= TURN {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let polled = match &mut this.source {
                Source::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
                Source::Bytes(bytes) => {
                    let piece = bytes.split_to(bytes.len().min(TURN));
                    Poll::Ready(Some(Ok(Frame::data(piece))))
                }
                Source::Stream(body) => body.as_mut().poll_frame(cx),
            };
            let trailers = match polled {
                Poll::Pending => {
                    if !this.has_unflushed {
                        return Poll::Pending;
                    }
                    this.has_unflushed = false;
                    let flushed = encoder.flush();
                    if flushed.is_empty() {
                        return Poll::Pending;
                    }
                    this.ready.push_back(Frame::data(flushed));
                    continue;
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => None,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        encoder.write(&data);
                        compressed += data.len();
                        this.has_unflushed = true;
                        let out = encoder.take_output();
                        if !out.is_empty() {
                            this.ready.push_back(Frame::data(out));
                        }
                        continue;
                    }
                    Err(frame) => Some(frame),
                },
            };
            if let Some(encoder) = this.encoder.take() {
                this.ready.push_back(Frame::data(encoder.finish()));
            }
            this.ready.extend(trailers);
        }
    }
}

#[cfg(test)]
mod tests;
