//! A request as a file describes it.

pub(crate) mod format;

pub(crate) mod url_list;

pub(crate) mod http_file;

pub(crate) mod curl;

pub(crate) mod environment;

use std::error::Error;
use std::time::Duration;

use plimsoll_model::FieldClass;

use crate::{Place, Remark, ResponsePart, Template};

/// Reads a file that another one names.
pub type ReadFile<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<u8>, ReadError>;

/// Why such a file cannot be read: that of the system, or that it lies where it may not.
pub type ReadError = Box<dyn Error + Send + Sync>;

/// The content of a file of requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestFile {
    /// The requests, in the order of the file.
    pub requests: Vec<FileRequest>,
    /// The URL that paths without a host stand behind, if the file gives one.
    pub base: Option<String>,
    /// The variables of the file, in order; a later value may use an earlier one.
    pub variables: Vec<(String, Template)>,
    /// Parts of the file that the requests leave out.
    pub left_out: Vec<Remark>,
    /// When the requests were made, in ascending order, if the file is a log of them. Such a file has no bodies.
    pub arrivals: Vec<Arrival>,
}

/// A request of a log, at its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Time since the first one of the log.
    pub at: Duration,
    /// Its position in [`RequestFile::requests`].
    pub request: usize,
}

/// A request as a file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRequest {
    /// Its position in the file.
    pub place: Place,
    /// Its name in the file.
    pub name: Option<String>,
    /// Keys to select it by, besides its name.
    pub tags: Vec<String>,
    /// The method, if the file gives one.
    pub method: Option<String>,
    /// An absolute URL, or a path where the file names no host.
    pub url: Template,
    /// The host that received it, where it is in a log: another one than that of the URL.
    pub host: Option<String>,
    /// Header fields in order; none of them frames the body.
    pub headers: Vec<(String, Template)>,
    /// The body.
    pub body: Option<Template>,
    /// Its weight among the others.
    pub weight: u32,
    /// Variables that its response gives values to, for the requests behind it.
    pub sets: Vec<(String, ResponsePart)>,
}

impl FileRequest {
    /// A request for `url` and nothing more.
    pub fn new(place: Place, url: Template) -> Self {
        Self {
            place,
            name: None,
            tags: Vec::new(),
            method: None,
            url,
            host: None,
            headers: Vec::new(),
            body: None,
            weight: 1,
            sets: Vec::new(),
        }
    }

    /// True if it has a field of that name.
    pub fn has_header(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|(given, _)| given.eq_ignore_ascii_case(name))
    }

    /// Adds a field unless there is one of that name.
    pub(crate) fn default_header(&mut self, name: &str, value: &str) {
        if !self.has_header(name) {
            let value = Template::literal(value);
            self.headers.push((name.to_owned(), value));
        }
    }
}

/// True if the field is about the connection or the framing, which are not a file's to decide.
pub(crate) fn is_about_connection(name: &str) -> bool {
    let class = FieldClass::from_name(name.as_bytes());
    class.is_connection_specific() || class.is_framing() || class == FieldClass::Hop
}

/// True if `text` is a method or a field name (RFC 9110, section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
