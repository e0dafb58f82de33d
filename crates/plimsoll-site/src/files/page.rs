//! One file ready to be sent, in each of its codings, with everything that does not depend on the request
//! written down.

use std::cell::{Cell, OnceCell};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, LAST_MODIFIED, VARY,
};
use http_body::{Body, Frame, SizeHint};
use plimsoll_server::{
    Answer, Coding, FilePart, Prepared, Request, Response, ResponseBody, StreamError, compress,
    preferred_coding,
};

use crate::files::compression::{Compressor, Forms};
use crate::files::conditions::{ConditionOutcome, Conditions, Validators, http_date};
use crate::files::media;
use crate::files::ranges::RequestedRanges;
use crate::files::tree::{SiteFile, StoredCopy, Tag};

/// Content up to this length, in bytes, is kept in memory; longer content stays in its file, from which the
/// kernel sends it without copying.
const IN_MEMORY: u64 = 16 * 1024;

/// Content of these lengths is compressed: shorter content gains nothing, longer content costs too much.
const COMPRESSED: Range<u64> = 512..4 * 1024 * 1024;

/// Content up to this length is compressed on the worker, which other connections hardly notice; longer content on a thread
/// of its own, so that other connections do not wait.
const AT_ONCE: u64 = 64 * 1024;

/// Dates are sure once they lie so far back: the content can have changed no more within that second.
const SETTLED: u64 = 2;

/// Bytes that pages hold in memory, counted together.
pub(crate) type MemoryTotal = Rc<Cell<u64>>;

/// A file with its compressed copies.
pub(crate) struct Page {
    path: String,
    status: StatusCode,
    /// The fields that all variants have.
    fields: HeaderMap,
    modified: Option<u64>,
    is_date_strong: bool,
    /// Its tags are those of its content.
    is_sure: bool,
    plain: Rc<Variant>,
    /// Stored copies, the smallest first.
    stored: Vec<Rc<Variant>>,
    /// Variants of `forms`, by the position of their coding in [`Coding::ALL`].
    made: [OnceCell<Option<Rc<Variant>>>; 3],
    /// Compressed when they are first requested; shared by all pages of the file.
    forms: Arc<Forms>,
    compressor: Arc<Compressor>,
    /// The available codings, the best first.
    codings: Vec<Coding>,
    memory: MemoryTotal,
}

/// One form of the content.
pub(crate) struct Variant {
    coding: Option<Coding>,
    tag: Tag,
    content: Content,
    whole: Rc<Prepared>,
    not_modified: Rc<Prepared>,
    memory_share: MemoryShare,
}

#[derive(Debug, Clone)]
enum Content {
    Bytes(Bytes),
    File(FilePart),
}

/// Bytes added to a total for as long as they are held.
struct MemoryShare {
    memory: MemoryTotal,
    bytes: u64,
}

impl MemoryShare {
    fn new(memory: &MemoryTotal, bytes: u64) -> Self {
        memory.set(memory.get() + bytes);
        Self {
            memory: Rc::clone(memory),
            bytes,
        }
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.memory.set(self.memory.get() - self.bytes);
    }
}

/// The parts of a page.
pub(crate) struct PageParts {
    /// Of the file in its tree.
    pub(crate) path: String,
    pub(crate) file: SiteFile,
    pub(crate) copies: Vec<StoredCopy>,
    pub(crate) status: StatusCode,
    /// `cache-control` and the other fields of this path; a type given here takes the place of the one by
    /// the name.
    pub(crate) fields: HeaderMap,
    /// Sent in place of the file's content.
    pub(crate) content: Option<Bytes>,
    /// Whether to compress where there is no stored copy.
    pub(crate) compresses: bool,
    pub(crate) compressor: Arc<Compressor>,
    /// Since 1970.
    pub(crate) now: Duration,
}

impl Page {
    /// Fails where the file cannot be read.
    pub(crate) fn load(parts: PageParts, memory: &MemoryTotal) -> io::Result<Self> {
        let PageParts {
            path,
            file,
            mut copies,
            status,
            mut fields,
            content,
            compresses,
            compressor,
            now,
        } = parts;
        let name = path.rsplit('/').next().unwrap_or_default();
        let kind = fields
            .entry(CONTENT_TYPE)
            .or_insert_with(|| media::media_type(name))
            .clone();
        let length = file.part.length();
        let compresses = compresses
            && COMPRESSED.contains(&length)
            && media::compresses(&kind)
            && !fields.contains_key(CONTENT_ENCODING);
        copies.retain(|copy| copy.part.length() < length);
        copies.sort_by_key(|copy| copy.part.length());
        let mut codings: Vec<_> = copies.iter().map(|copy| copy.coding).collect();
        if compresses {
            let others = Coding::ALL.into_iter();
            let others: Vec<_> = others.filter(|coding| !codings.contains(coding)).collect();
            codings.extend(others);
        }
        if !codings.is_empty() {
            fields.append(VARY, HeaderValue::from_static("accept-encoding"));
        }
        if status == StatusCode::OK {
            fields.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        // A date must not lie in the future (RFC 9110, section 8.8.2.1).
        let seconds = now.as_secs();
        let modified = file.modified.filter(|modified| *modified <= seconds);
        let shown = modified.and_then(http_date);
        if let Some(date) = shown.and_then(|date| HeaderValue::from_str(&date).ok()) {
            fields.insert(LAST_MODIFIED, date);
        }
        let now = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX);
        let (tag, mut is_sure) = file.tag.at(&file.part, now)?;
        let forms = compressor.forms(&path, &tag);
        let content = match content {
            Some(content) => Content::Bytes(content),
            None => Content::load(&file.part)?,
        };
        let plain = Variant::new(None, tag, content, status, &fields, memory);
        let stored = copies.into_iter().map(|copy| {
            let content = Content::load(&copy.part)?;
            let coding = Some(copy.coding);
            let (tag, is_tag_sure) = copy.tag.at(&copy.part, now)?;
            is_sure &= is_tag_sure;
            let variant = Variant::new(coding, tag, content, status, &fields, memory);
            Ok(Rc::new(variant))
        });
        let stored = stored.collect::<io::Result<_>>()?;
        Ok(Self {
            path,
            status,
            modified,
            is_date_strong: modified.is_some_and(|modified| modified + SETTLED <= seconds),
            is_sure,
            plain: Rc::new(plain),
            stored,
            made: Default::default(),
            forms,
            compressor,
            codings,
            fields,
            memory: Rc::clone(memory),
        })
    }

    /// Whether it may be kept: its tags are those of its content for as long as nothing changes.
    pub(crate) fn is_sure(&self) -> bool {
        self.is_sure
    }

    /// Whether it would be loaded from these as it was.
    pub(crate) fn is_of(&self, path: &str, file: &SiteFile, copies: &[StoredCopy]) -> bool {
        let has = |copy: &&StoredCopy| {
            copy.part.length() >= self.plain.content.length()
                || self.stored.iter().any(|stored| stored.tag == copy.tag)
        };
        let known = copies.iter().filter(has).count();
        let smaller = |copy: &&StoredCopy| copy.part.length() < self.plain.content.length();
        self.path == path
            && self.plain.tag == file.tag
            && known == copies.len()
            && copies.iter().filter(smaller).count() == self.stored.len()
    }

    /// Answers GET and HEAD.
    pub(crate) fn answer(self: &Rc<Self>, request: &Request<'_>) -> Answer {
        let headers = request.headers();
        let request = PageRequest::from_request(request);
        let coding = if self.codings.is_empty() {
            None
        } else {
            let accepted = headers.filter(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"));
            preferred_coding(&self.codings, accepted.map(|(_, value)| value))
        };
        let Some(coding) = coding else {
            return Answer::now(self.respond(&self.plain, &request));
        };
        if let Some(stored) = self.stored.iter().find(|it| it.coding == Some(coding)) {
            return Answer::now(self.respond(stored, &request));
        }
        // A part of what is compressed on the way would be one of something else the next time.
        if request.range.is_some() {
            return Answer::now(self.respond(&self.plain, &request));
        }
        if let Some(variant) = self.made(coding) {
            return Answer::now(self.respond(&variant, &request));
        }
        // Without content to send, nothing is compressed.
        if request.is_head {
            return Answer::now(self.head_of(coding, &request));
        }
        let content = self.plain.content.clone();
        let work = move || {
            let made = content.compressed(coding)?;
            Ok(((made.len() as u64) < content.length()).then_some(made))
        };
        if self.plain.content.length() <= AT_ONCE {
            self.compressor.make_now(&self.forms, coding, work);
            let variant = self.made(coding).unwrap_or_else(|| Rc::clone(&self.plain));
            return Answer::now(self.respond(&variant, &request));
        }
        let (page, request) = (Rc::clone(self), request.kept());
        Answer::later(async move {
            let forms = Arc::clone(&page.forms);
            page.compressor.make(forms, coding, work).await;
            let variant = page.made(coding).unwrap_or_else(|| Rc::clone(&page.plain));
            page.respond(&variant, &request.borrowed())
        })
    }

    /// The variant to send for `coding`, if it needs no compressing any more: the plain one where compressing gains
    /// nothing.
    fn made(&self, coding: Coding) -> Option<Rc<Variant>> {
        let form = self.forms.get(coding)?;
        let at = Coding::ALL.iter().position(|it| *it == coding).unwrap_or(0);
        let made = self.made[at].get_or_init(|| {
            let bytes = form.clone()?;
            Some(Rc::new(Variant::new(
                Some(coding),
                self.plain.tag.coded(coding),
                Content::Bytes(bytes),
                self.status,
                &self.fields,
                &self.memory,
            )))
        });
        Some(Rc::clone(made.as_ref().unwrap_or(&self.plain)))
    }

    /// The response to HEAD for a form that was not made: without the length, which only compressing would show
    /// (RFC 9110, section 9.3.2).
    fn head_of(&self, coding: Coding, request: &PageRequest<'_>) -> Response {
        let tag = self.plain.tag.coded(coding);
        let fields = fields_of_form(&self.fields, &tag, Some(coding));
        if self.status == StatusCode::OK && !request.is_plain() {
            match request.conditions.judge(self.validators(&tag)) {
                ConditionOutcome::NotModified => return not_modified(fields),
                ConditionOutcome::Failed => return unexpected(),
                ConditionOutcome::Holds => {}
            }
        }
        built(self.status, &fields).with_body(ResponseBody::Stream(Box::pin(UnknownLength)))
    }

    fn validators<'t>(&self, tag: &'t Tag) -> Validators<'t> {
        Validators {
            tag,
            modified: self.modified,
            is_date_strong: self.is_date_strong,
        }
    }

    fn respond(&self, variant: &Rc<Variant>, request: &PageRequest<'_>) -> Response {
        if self.status != StatusCode::OK || request.is_plain() {
            return Rc::clone(&variant.whole).into();
        }
        let validators = self.validators(&variant.tag);
        match request.conditions.judge(validators) {
            ConditionOutcome::NotModified => return Rc::clone(&variant.not_modified).into(),
            ConditionOutcome::Failed => return unexpected(),
            ConditionOutcome::Holds => {}
        }
        let Some(range) = request.range else {
            return Rc::clone(&variant.whole).into();
        };
        if request.is_head || !request.conditions.range_holds(validators) {
            return Rc::clone(&variant.whole).into();
        }
        let length = variant.content.length();
        match RequestedRanges::parse(range, length) {
            RequestedRanges::Whole => Rc::clone(&variant.whole).into(),
            RequestedRanges::Nothing => {
                let text = "the content has none of that range\n";
                let range = HeaderValue::from_str(&format!("bytes */{length}"));
                let range = range.expect("digits are allowed in a field");
                Response::text(StatusCode::RANGE_NOT_SATISFIABLE, text)
                    .with_field(CONTENT_RANGE, range)
            }
            RequestedRanges::Parts(parts) => self.partial(variant, &parts),
        }
    }

    fn partial(&self, variant: &Variant, parts: &[Range<u64>]) -> Response {
        let mut fields = fields_of_form(&self.fields, &variant.tag, variant.coding);
        let length = variant.content.length();
        let shown =
            |part: &Range<u64>| format!("bytes {}-{}/{length}", part.start, part.end.max(1) - 1);
        let body = if let [part] = parts {
            let range = HeaderValue::from_str(&shown(part));
            fields.insert(CONTENT_RANGE, range.expect("digits are allowed in a field"));
            variant.content.slice(part.clone())
        } else {
            let kind = fields.remove(CONTENT_TYPE);
            let kind = kind.as_ref().map_or(&b""[..], HeaderValue::as_bytes);
            let mut pieces = VecDeque::new();
            for part in parts {
                let mut head = format!("\r\n--{BOUNDARY}\r\ncontent-type: ").into_bytes();
                head.extend_from_slice(kind);
                let range = format!("\r\ncontent-range: {}\r\n\r\n", shown(part));
                head.extend_from_slice(range.as_bytes());
                pieces.push_back(ResponseBody::Bytes(head.into()));
                pieces.push_back(variant.content.slice(part.clone()));
            }
            let end = format!("\r\n--{BOUNDARY}--\r\n");
            pieces.push_back(ResponseBody::Bytes(end.into()));
            let kind = format!("multipart/byteranges; boundary={BOUNDARY}");
            let kind = HeaderValue::from_str(&kind).expect("it is made of letters");
            fields.insert(CONTENT_TYPE, kind);
            ResponseBody::Stream(Box::pin(Pieces(pieces)))
        };
        built(StatusCode::PARTIAL_CONTENT, &fields).with_body(body)
    }
}

/// Separates parts. They are parts of one file, whose length is given with each: a reader does not search.
const BOUNDARY: &str = "7c5d1f0e9b3a4826-plimsoll-part";

impl Variant {
    fn new(
        coding: Option<Coding>,
        tag: Tag,
        content: Content,
        status: StatusCode,
        fields: &HeaderMap,
        memory: &MemoryTotal,
    ) -> Self {
        let held = match &content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::File(_) => 0,
        };
        let nothing = || Response::new(StatusCode::NO_CONTENT).prepare();
        let mut variant = Self {
            coding,
            tag,
            content,
            whole: nothing(),
            not_modified: nothing(),
            memory_share: MemoryShare::new(memory, held),
        };
        let fields = fields_of_form(fields, &variant.tag, coding);
        let whole = built(status, &fields);
        variant.whole = whole.with_body(variant.content.body()).prepare();
        variant.not_modified = not_modified(fields).prepare();
        variant
    }
}

impl std::fmt::Debug for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variant")
            .field("coding", &self.coding)
            .field("held", &self.memory_share.bytes)
            .finish_non_exhaustive()
    }
}

impl Content {
    fn load(part: &FilePart) -> io::Result<Self> {
        Ok(if part.length() <= IN_MEMORY {
            Self::Bytes(part.read()?)
        } else {
            Self::File(part.clone())
        })
    }

    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(part) => part.length(),
        }
    }

    fn body(&self) -> ResponseBody {
        self.slice(0..self.length())
    }

    /// - `range`: within it.
    fn slice(&self, range: Range<u64>) -> ResponseBody {
        match self {
            Self::Bytes(bytes) => {
                let at = |byte: u64| {
                    usize::try_from(byte)
                        .unwrap_or(bytes.len())
                        .min(bytes.len())
                };
                ResponseBody::Bytes(bytes.slice(at(range.start)..at(range.end)))
            }
            Self::File(part) => ResponseBody::File(part.slice(range)),
        }
    }

    fn compressed(&self, coding: Coding) -> io::Result<Bytes> {
        Ok(match self {
            Self::Bytes(bytes) => compress(coding, bytes),
            Self::File(part) => compress(coding, &part.read()?),
        })
    }
}

/// `fields` with those of one form of the content.
fn fields_of_form(fields: &HeaderMap, tag: &Tag, coding: Option<Coding>) -> HeaderMap {
    let mut fields = fields.clone();
    if let Ok(tag) = HeaderValue::from_str(&tag.shown()) {
        fields.insert(ETAG, tag);
    }
    if let Some(coding) = coding {
        fields.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    fields
}

/// A 304 with the fields that caches update (RFC 9110, section 15.4.5).
fn not_modified(mut fields: HeaderMap) -> Response {
    for name in [CONTENT_TYPE, CONTENT_ENCODING, ACCEPT_RANGES] {
        fields.remove(name);
    }
    built(StatusCode::NOT_MODIFIED, &fields)
}

fn unexpected() -> Response {
    let text = "the content is not the one that was expected\n";
    Response::text(StatusCode::PRECONDITION_FAILED, text)
}

/// A response with these fields.
pub(crate) fn built(status: StatusCode, fields: &HeaderMap) -> Response {
    let pairs = fields.iter();
    pairs.fold(Response::new(status), |response, (name, value)| {
        response.with_field(HeaderName::clone(name), value.clone())
    })
}

/// The parts of a request that decide on the form of the response.
#[derive(Debug, Default)]
struct PageRequest<'a> {
    is_head: bool,
    conditions: Conditions<'a>,
    range: Option<&'a [u8]>,
}

impl<'a> PageRequest<'a> {
    fn from_request(request: &Request<'a>) -> Self {
        let mut found = Self {
            is_head: request.method == "HEAD",
            ..Self::default()
        };
        for (name, value) in request.headers() {
            // Most fields differ in their length alone.
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            match name.len() {
                5 if is("range") => found.range = Some(value),
                8 if is("if-match") => found.conditions.if_match = Some(value),
                8 if is("if-range") => found.conditions.if_range = Some(value),
                13 if is("if-none-match") => found.conditions.if_none_match = Some(value),
                17 if is("if-modified-since") => found.conditions.if_modified_since = Some(value),
                19 if is("if-unmodified-since") => {
                    found.conditions.if_unmodified_since = Some(value);
                }
                _ => {}
            }
        }
        found
    }

    /// Nothing about it is particular.
    fn is_plain(&self) -> bool {
        self.range.is_none() && self.conditions.is_empty()
    }

    fn kept(&self) -> KeptPageRequest {
        let own = |value: Option<&[u8]>| value.map(<[u8]>::to_vec);
        KeptPageRequest {
            is_head: self.is_head,
            if_match: own(self.conditions.if_match),
            if_none_match: own(self.conditions.if_none_match),
            if_modified_since: own(self.conditions.if_modified_since),
            if_unmodified_since: own(self.conditions.if_unmodified_since),
        }
    }
}

/// The same, kept for an answer that takes time; such an answer is no range.
struct KeptPageRequest {
    is_head: bool,
    if_match: Option<Vec<u8>>,
    if_none_match: Option<Vec<u8>>,
    if_modified_since: Option<Vec<u8>>,
    if_unmodified_since: Option<Vec<u8>>,
}

impl KeptPageRequest {
    fn borrowed(&self) -> PageRequest<'_> {
        PageRequest {
            is_head: self.is_head,
            conditions: Conditions {
                if_match: self.if_match.as_deref(),
                if_none_match: self.if_none_match.as_deref(),
                if_modified_since: self.if_modified_since.as_deref(),
                if_unmodified_since: self.if_unmodified_since.as_deref(),
                if_range: None,
            },
            range: None,
        }
    }
}

/// Content of unknown length for a response to HEAD.
struct UnknownLength;

impl Body for UnknownLength {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        Poll::Ready(None)
    }
}

/// Content of several pieces, one after the other.
struct Pieces(VecDeque<ResponseBody>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let pieces = &mut self.get_mut().0;
        loop {
            match pieces.front_mut() {
                None => return Poll::Ready(None),
                Some(ResponseBody::File(part)) if !part.is_end_stream() => {
                    return Pin::new(part).poll_frame(cx);
                }
                Some(_) => {}
            }
            if let Some(ResponseBody::Bytes(bytes)) = pieces.pop_front()
                && !bytes.is_empty()
            {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        let lengths = self.0.iter().map(|piece| match piece {
            ResponseBody::Bytes(bytes) => bytes.len() as u64,
            ResponseBody::File(part) => part.length(),
            ResponseBody::Empty | ResponseBody::Announced(_) | ResponseBody::Stream(_) => 0,
        });
        SizeHint::with_exact(lengths.sum())
    }
}
