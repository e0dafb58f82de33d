//! Responses: prepared once and sent often, or made for one request.

mod built;

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderName, HeaderValue, UPGRADE};
use http::{HeaderMap, StatusCode};
use http_body::Body;
use plimsoll_wire::h1::ResponseWriter;
use plimsoll_wire::http::{FieldClass, FieldList};

use crate::message::file::FilePart;
use crate::message::verbatim::Verbatim;

pub(crate) use self::built::Built;

/// The response of an action.
///
/// The connection adds what is its own: `date`, `connection`, `transfer-encoding`, and `content-length`
/// where the length is known.
#[derive(Debug)]
pub struct Response(pub(crate) Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    Prepared(Rc<Prepared>),
    Built(Box<Built>),
}

/// Another path that is to respond, as a server behind this one wants it.
#[derive(Debug, Clone)]
pub struct HandOver {
    /// The path, with its query if it has one.
    pub path: String,
    /// Fields that its response gets in place of its own.
    pub fields: HeaderMap,
}

/// The content of a response.
#[derive(Default)]
pub enum ResponseBody {
    /// None.
    #[default]
    Empty,
    /// All of it.
    Bytes(Bytes),
    /// A part of a file; over HTTP/1 in the clear the kernel sends it.
    File(FilePart),
    /// None, though its length is announced: for HEAD and 304. To other requests it is as `Empty`.
    Announced(u64),
    /// Pieces as they come, with trailer fields if it has any.
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>),
}

/// Why the content of a response broke off: the client sees the connection or the stream end.
pub type StreamError = Box<dyn std::error::Error + Send + Sync>;

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::File(part) => write!(f, "File({})", part.length()),
            Self::Announced(length) => write!(f, "Announced({length})"),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

/// A response whose head is written already, for every request the same.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) status: StatusCode,
    /// Status line and fields of HTTP/1, without the empty line.
    pub(crate) lines: Vec<u8>,
    pub(crate) fields: HeaderMap,
    pub(crate) content: WholeContent,
}

impl Prepared {
    /// Its content; of a 304 the length that it announces.
    pub(crate) fn body(&self) -> ResponseBody {
        let announced = self.fields.get(CONTENT_LENGTH);
        let announced = announced.filter(|_| self.status == StatusCode::NOT_MODIFIED);
        match announced.and_then(|length| length.to_str().ok()?.parse().ok()) {
            Some(length) => ResponseBody::Announced(length),
            None => self.content.clone().into(),
        }
    }
}

/// Content that is there as a whole.
#[derive(Debug, Clone)]
pub(crate) enum WholeContent {
    Bytes(Bytes),
    File(FilePart),
}

impl WholeContent {
    /// Bytes of it.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(part) => part.length(),
        }
    }
}

impl From<WholeContent> for ResponseBody {
    fn from(whole: WholeContent) -> Self {
        match whole {
            WholeContent::Bytes(bytes) => Self::Bytes(bytes),
            WholeContent::File(part) => Self::File(part),
        }
    }
}

/// Begins a head of HTTP/1.
///
/// - `reason`: in place of the standard phrase.
#[inline]
pub(crate) fn status_line<'a>(
    out: &'a mut Vec<u8>,
    status: StatusCode,
    reason: Option<&str>,
) -> ResponseWriter<'a> {
    match reason {
        None => ResponseWriter::new(out, status.as_u16()),
        Some(reason) => ResponseWriter::with_reason(out, status.as_u16(), reason),
    }
}

/// Whether the server sets the field itself. `upgrade` is an action's: a response of 426 has one.
fn is_set_by_server(name: &[u8]) -> bool {
    FieldClass::from_name(name).is_connection_specific()
        && !name.eq_ignore_ascii_case(UPGRADE.as_str().as_bytes())
}

/// Whether the field neither is one of the connection nor frames the content.
fn is_end_to_end((name, _): (&[u8], &[u8])) -> bool {
    !is_set_by_server(name) && FieldClass::from_name(name) != FieldClass::ContentLength
}

/// A response as HTTP/2 and HTTP/3 send it, where other crates write the fields.
#[derive(Debug)]
pub(crate) struct Framed {
    /// Never informational: such are not answers.
    pub(crate) status: StatusCode,
    /// With `content-length` where it is announced.
    pub(crate) fields: HeaderMap,
    pub(crate) content: ResponseBody,
    /// Bytes of the content, where they are known.
    pub(crate) length: Option<u64>,
}

impl ResponseBody {
    /// Bytes of it, if that is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::File(part) => Some(part.length()),
            Self::Announced(length) => Some(*length),
            Self::Stream(body) => body.size_hint().exact(),
        }
    }

    /// The value of `content-length`, if there is to be one (RFC 9110, section 8.6).
    ///
    /// - `is_head`: the request has the method HEAD.
    pub(crate) fn announced(&self, status: StatusCode, is_head: bool) -> Option<u64> {
        match self {
            Self::Announced(length) if is_head || status == StatusCode::NOT_MODIFIED => {
                let may_be_announced = has_content(status) || status == StatusCode::NOT_MODIFIED;
                may_be_announced.then_some(*length)
            }
            // There is no content, so it must not be waited for.
            Self::Announced(_) => has_content(status).then_some(0),
            content => content.length().filter(|_| has_content(status)),
        }
    }
}

impl Response {
    /// The response where the connection writes no lines.
    ///
    /// - `is_head`: the request has the method HEAD.
    pub(crate) fn framed(self, is_head: bool) -> Framed {
        let (status, mut fields, content) = match self.0 {
            Kind::Prepared(prepared) => (prepared.status, prepared.fields.clone(), prepared.body()),
            Kind::Built(mut built) => {
                built.announce_trailers(|_| true);
                (built.status, built.take_fields(), built.content)
            }
        };
        let status = if status.is_informational() {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            status
        };
        let length = content.announced(status, is_head);
        match length {
            Some(length) => fields.insert(CONTENT_LENGTH, HeaderValue::from(length)),
            None => fields.remove(CONTENT_LENGTH),
        };
        Framed {
            status,
            fields,
            content,
            length,
        }
    }

    /// A response without fields and content.
    pub fn new(status: StatusCode) -> Self {
        Self(Kind::Built(Box::new(Built {
            status,
            reason: None,
            fields: HeaderMap::new(),
            verbatim: Verbatim::default(),
            order: None,
            content: ResponseBody::Empty,
            is_relayed: false,
            hand_over: None,
        })))
    }

    /// A response that another path is to give; 500 where no layer leads there.
    pub fn handing_over(hand_over: HandOver) -> Self {
        let mut response = Self::new(StatusCode::INTERNAL_SERVER_ERROR);
        response.built().hand_over = Some(Box::new(hand_over));
        response
    }

    /// The path that is to respond in its place; can be taken once.
    pub(crate) fn take_hand_over(&mut self) -> Option<HandOver> {
        match &mut self.0 {
            Kind::Prepared(_) => None,
            Kind::Built(built) => built.hand_over.take().map(|it| *it),
        }
    }

    /// The same as the response of a server behind this one: no route takes over because of its status.
    #[must_use]
    pub fn relayed(mut self) -> Self {
        self.built().is_relayed = true;
        self
    }

    /// Whether it is the response of a server behind this one.
    pub(crate) fn is_relayed(&self) -> bool {
        matches!(&self.0, Kind::Built(built) if built.is_relayed)
    }

    /// The same with another status and its standard phrase.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        let built = self.built();
        built.status = status;
        built.reason = None;
        self
    }

    /// A line of text, such as the reason for a refusal.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self::new(status)
            .with_field(
                CONTENT_TYPE,
                HeaderValue::from_static("text/plain; charset=utf-8"),
            )
            .with_body(ResponseBody::Bytes(Bytes::from(text.into())))
    }

    /// The same with one more field; those that are the connection's are left out.
    #[must_use]
    pub fn with_field(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if name != DATE && !is_set_by_server(name.as_str().as_bytes()) {
            self.built().fields.append(name, value);
        }
        self
    }

    /// The same with these fields in place of all it has; those that are the connection's are left out. A `date` among
    /// them stays: it is that of an origin.
    #[must_use]
    pub fn with_field_map(mut self, mut fields: HeaderMap) -> Self {
        remove_connection_fields(&mut fields);
        let built = self.built();
        built.verbatim = Verbatim::default();
        built.fields = fields;
        self
    }

    /// The same with all of these fields; those that are the connection's, and what is not valid, are left out.
    ///
    /// HTTP/1 writes them in this order and with names in this case, as a gateway should; further fields come behind, and
    /// layers may change or remove some. A `date` among them stays: it is that of an origin.
    #[must_use]
    pub fn with_fields(self, mut fields: FieldList) -> Self {
        fields.retain(|name, value| is_end_to_end((name, value)));
        self.with_end_to_end_fields(fields)
    }

    /// The same with fields that were forwarded: neither `content-length` nor those of a connection are among them.
    #[must_use]
    pub fn with_end_to_end_fields(mut self, fields: FieldList) -> Self {
        debug_assert!(fields.iter().all(is_end_to_end), "they were removed before");
        let built = self.built();
        built.spread();
        built.verbatim = fields.into();
        self
    }

    /// The same with fields of which many responses have most: what was said of
    /// [`with_end_to_end_fields`](Self::with_end_to_end_fields) holds for these too.
    ///
    /// - `own`: those of this response, behind the others.
    #[must_use]
    pub fn with_shared_fields(mut self, shared: Arc<FieldList>, own: FieldList) -> Self {
        debug_assert!(
            shared.iter().chain(&own).all(is_end_to_end),
            "they were removed before"
        );
        let built = self.built();
        built.spread();
        built.verbatim = Verbatim::new(shared, own);
        self
    }

    /// The same with a reason phrase in place of the standard one: only HTTP/1 has any. A phrase that could not be
    /// [written](plimsoll_wire::h1::own_reason) is left out.
    #[must_use]
    pub fn with_reason(mut self, reason: Box<str>) -> Self {
        self.built().reason = Some(reason);
        self
    }

    /// The same with this content.
    #[must_use]
    pub fn with_body(mut self, content: ResponseBody) -> Self {
        self.built().content = content;
        self
    }

    /// Its fields, without `content-length`.
    pub fn fields(&mut self) -> &HeaderMap {
        self.fields_mut()
    }

    /// Sets a field in place of others of its name; one that is the connection's is left out.
    #[must_use]
    pub fn with_field_set(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if name != DATE && !is_set_by_server(name.as_str().as_bytes()) {
            self.fields_mut().insert(name, value);
        }
        self
    }

    /// Takes its content; it has none then.
    pub fn take_body(&mut self) -> ResponseBody {
        std::mem::take(&mut self.built().content)
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        match &self.0 {
            Kind::Prepared(prepared) => prepared.status,
            Kind::Built(built) => built.status,
        }
    }

    /// The same as a response to CONNECT by an action that does not take the stream over: by a 2xx the client would understand
    /// that the tunnel is open, and read content as its bytes (RFC 9110, section 9.3.6; RFC 8441, section 5).
    pub(crate) fn without_tunnel(self) -> Self {
        if !self.status().is_success() {
            return self;
        }
        let text = "nothing here can be connected to\n";
        Self::text(StatusCode::NOT_IMPLEMENTED, text)
    }

    /// Bytes of its content, if that is known.
    pub fn length(&self) -> Option<u64> {
        match &self.0 {
            Kind::Prepared(prepared) => Some(prepared.content.length()),
            Kind::Built(built) => built.content.length(),
        }
    }

    /// Whether its content comes in pieces.
    pub(crate) fn is_streamed(&self) -> bool {
        match &self.0 {
            Kind::Prepared(_) => false,
            Kind::Built(built) => matches!(built.content, ResponseBody::Stream(_)),
        }
    }

    /// Sends it once for each request: the head is written now.
    ///
    /// Content that comes in pieces cannot be kept and is left out.
    pub fn prepare(mut self) -> Rc<Prepared> {
        let built = self.built();
        built.spread();
        let announced = built.content.announced(built.status, false);
        let content = match std::mem::take(&mut built.content) {
            ResponseBody::Bytes(bytes) => WholeContent::Bytes(bytes),
            ResponseBody::File(part) => WholeContent::File(part),
            ResponseBody::Empty | ResponseBody::Announced(_) | ResponseBody::Stream(_) => {
                WholeContent::Bytes(Bytes::new())
            }
        };
        let mut fields = std::mem::take(&mut built.fields);
        let length = if has_content(built.status) {
            Some(content.length())
        } else {
            announced
        };
        match length {
            Some(length) => fields.insert(CONTENT_LENGTH, HeaderValue::from(length)),
            None => fields.remove(CONTENT_LENGTH),
        };
        let mut lines = Vec::new();
        let mut head = status_line(&mut lines, built.status, built.reason.as_deref());
        write_built_fields(&mut head, &built.verbatim, &fields, built.order.as_deref());
        Rc::new(Prepared {
            status: built.status,
            lines,
            fields,
            content,
        })
    }

    /// Its fields, to be changed; those of the connection must not be put in.
    pub(crate) fn fields_mut(&mut self) -> &mut HeaderMap {
        let built = self.built();
        built.spread();
        &mut built.fields
    }

    /// Turns a prepared one into one that can be changed.
    fn built(&mut self) -> &mut Built {
        if let Kind::Prepared(prepared) = &self.0 {
            self.0 = Kind::Built(Box::new(Built {
                status: prepared.status,
                reason: None,
                fields: prepared.fields.clone(),
                verbatim: Verbatim::default(),
                order: None,
                content: prepared.body(),
                is_relayed: false,
                hand_over: None,
            }));
        }
        match &mut self.0 {
            Kind::Built(built) => built,
            Kind::Prepared(_) => unreachable!("it was just replaced"),
        }
    }
}

impl From<Rc<Prepared>> for Response {
    fn from(prepared: Rc<Prepared>) -> Self {
        Self(Kind::Prepared(prepared))
    }
}

/// Leaves out what belongs to the connection or frames content.
pub(crate) fn remove_connection_fields(fields: &mut HeaderMap) {
    fields.remove(CONTENT_LENGTH);
    if !fields
        .keys()
        .any(|name| is_set_by_server(name.as_str().as_bytes()))
    {
        return;
    }
    let set_by_server: Vec<HeaderName> = fields
        .keys()
        .filter(|name| is_set_by_server(name.as_str().as_bytes()))
        .cloned()
        .collect();
    for name in set_by_server {
        fields.remove(name);
    }
}

/// Appends fields, which as such are valid on the wire.
pub(crate) fn write_fields(head: &mut ResponseWriter<'_>, fields: &HeaderMap) {
    for (name, value) in fields {
        // Only bytes that `HeaderValue` allows beyond HTTP/1 could be refused, and there are none.
        head.field(name.as_str(), value.as_bytes()).ok();
    }
}

/// Appends the fields of a response: those that are sent as they are, then those of the map.
pub(crate) fn write_built_fields(
    head: &mut ResponseWriter<'_>,
    verbatim: &Verbatim,
    fields: &HeaderMap,
    order: Option<&FieldList>,
) {
    verbatim.write(head);
    write_fields_in(head, fields, order);
}

/// Appends fields in the order and the case of `order`; fields that are not in it come last.
fn write_fields_in(head: &mut ResponseWriter<'_>, fields: &HeaderMap, order: Option<&FieldList>) {
    let Some(order) = order else {
        return write_fields(head, fields);
    };
    let names = || order.iter().map(|(name, _)| name);
    for (at, name) in names().enumerate() {
        let before = names()
            .take(at)
            .filter(|before| before.eq_ignore_ascii_case(name))
            .count();
        if let Ok(name) = std::str::from_utf8(name)
            && let Some(value) = fields.get_all(name).iter().nth(before)
        {
            head.field(name, value.as_bytes()).ok();
        }
    }
    for name in fields.keys() {
        let written = names()
            .filter(|it| it.eq_ignore_ascii_case(name.as_str().as_bytes()))
            .count();
        for value in fields.get_all(name).iter().skip(written) {
            head.field(name.as_str(), value.as_bytes()).ok();
        }
    }
}

/// Whether a response of that status may have content at all (RFC 9110, section 6.4.1).
pub(crate) fn has_content(status: StatusCode) -> bool {
    !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED
}

/// The status that opens a tunnel: any 2xx does (RFC 9110, section 9.3.6).
pub(crate) fn tunnel_status(status: StatusCode) -> StatusCode {
    if status.is_success() {
        status
    } else {
        StatusCode::OK
    }
}
