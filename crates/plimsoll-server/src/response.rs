//! Responses: prepared once and sent often, or made for one request.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderName, HeaderValue, UPGRADE};
use http::{HeaderMap, StatusCode};
use http_body::Body;
use plimsoll_wire::h1::ResponseWriter;
use plimsoll_wire::http::FieldClass;

use crate::file::FilePart;

/// What an action answers with.
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

#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) content: ResponseBody,
}

/// The content of a response.
#[derive(Default)]
pub enum ResponseBody {
    /// None.
    #[default]
    Empty,
    /// All of it.
    Bytes(Bytes),
    /// What lies in a file; over HTTP/1 in the clear the kernel sends it by itself.
    File(FilePart),
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
    pub(crate) content: Whole,
}

/// Content that is there as a whole.
#[derive(Debug, Clone)]
pub(crate) enum Whole {
    Bytes(Bytes),
    File(FilePart),
}

impl Whole {
    /// Bytes of it.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(part) => part.length(),
        }
    }
}

impl From<Whole> for ResponseBody {
    fn from(whole: Whole) -> Self {
        match whole {
            Whole::Bytes(bytes) => Self::Bytes(bytes),
            Whole::File(part) => Self::File(part),
        }
    }
}

/// Whether the server sets the field itself. `upgrade` is an action's: a response of 426 has one.
fn is_set_by_server(name: &HeaderName) -> bool {
    let is_specific = FieldClass::of(name.as_str().as_bytes()).is_connection_specific();
    (is_specific && name != UPGRADE) || name == DATE
}

/// A response as HTTP/2 and HTTP/3 send it, where other crates write the fields.
#[derive(Debug)]
pub(crate) struct Framed {
    /// Never informational: such are not answers.
    pub(crate) status: StatusCode,
    /// With `content-length` where it is known and there may be content.
    pub(crate) fields: HeaderMap,
    pub(crate) content: ResponseBody,
    /// Bytes of the content, where they are known.
    pub(crate) length: Option<u64>,
}

impl Response {
    /// The response for those who write no lines.
    pub(crate) fn framed(self) -> Framed {
        let (status, mut fields, content) = match self.0 {
            Kind::Prepared(prepared) => (
                prepared.status,
                prepared.fields.clone(),
                prepared.content.clone().into(),
            ),
            Kind::Built(built) => (built.status, built.fields, built.content),
        };
        let status = if status.is_informational() {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            status
        };
        let length = match &content {
            ResponseBody::Empty => Some(0),
            ResponseBody::Bytes(bytes) => Some(bytes.len() as u64),
            ResponseBody::File(part) => Some(part.length()),
            ResponseBody::Stream(body) => body.size_hint().exact(),
        };
        match length.filter(|_| has_content(status)) {
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
            fields: HeaderMap::new(),
            content: ResponseBody::Empty,
        })))
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
        if !is_set_by_server(&name) {
            self.built().fields.append(name, value);
        }
        self
    }

    /// The same with this content.
    #[must_use]
    pub fn with_body(mut self, content: ResponseBody) -> Self {
        self.built().content = content;
        self
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        match &self.0 {
            Kind::Prepared(prepared) => prepared.status,
            Kind::Built(built) => built.status,
        }
    }

    /// Bytes of its content, if that is known.
    pub fn length(&self) -> Option<u64> {
        match &self.0 {
            Kind::Prepared(prepared) => Some(prepared.content.length()),
            Kind::Built(built) => match &built.content {
                ResponseBody::Empty => Some(0),
                ResponseBody::Bytes(bytes) => Some(bytes.len() as u64),
                ResponseBody::File(part) => Some(part.length()),
                ResponseBody::Stream(body) => body.size_hint().exact(),
            },
        }
    }

    /// Sends it once for each request: the head is written now.
    ///
    /// Content that comes in pieces cannot be kept and is left out.
    pub fn prepare(mut self) -> Rc<Prepared> {
        let built = self.built();
        let content = match std::mem::take(&mut built.content) {
            ResponseBody::Bytes(bytes) => Whole::Bytes(bytes),
            ResponseBody::File(part) => Whole::File(part),
            ResponseBody::Empty | ResponseBody::Stream(_) => Whole::Bytes(Bytes::new()),
        };
        let mut fields = std::mem::take(&mut built.fields);
        if has_content(built.status) {
            fields.insert(CONTENT_LENGTH, HeaderValue::from(content.length()));
        } else {
            fields.remove(CONTENT_LENGTH);
        }
        let mut lines = Vec::new();
        let mut head = ResponseWriter::new(&mut lines, built.status.as_u16());
        write_fields(&mut head, &fields);
        Rc::new(Prepared {
            status: built.status,
            lines,
            fields,
            content,
        })
    }

    /// Its fields, to be changed; those of the connection must not be put in.
    pub(crate) fn fields_mut(&mut self) -> &mut HeaderMap {
        &mut self.built().fields
    }

    /// Turns a prepared one into one of its own, to be changed.
    fn built(&mut self) -> &mut Built {
        if let Kind::Prepared(prepared) = &self.0 {
            self.0 = Kind::Built(Box::new(Built {
                status: prepared.status,
                fields: prepared.fields.clone(),
                content: prepared.content.clone().into(),
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

/// Appends fields, which as such are valid on the wire.
pub(crate) fn write_fields(head: &mut ResponseWriter<'_>, fields: &HeaderMap) {
    for (name, value) in fields {
        // Only bytes that `HeaderValue` allows beyond HTTP/1 could be refused, and there are none.
        head.field(name.as_str(), value.as_bytes()).ok();
    }
}

/// Whether a response of that status may have content at all (RFC 9110, section 6.4.1).
pub(crate) fn has_content(status: StatusCode) -> bool {
    !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED
}
