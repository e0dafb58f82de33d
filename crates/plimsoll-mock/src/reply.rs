//! What a rule answers.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};

/// A response, as a file describes it.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// 200 unless given.
    pub status: Option<StatusCode>,
    /// Fields that the rule gives.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// Its content.
    pub content: Content,
    /// How long it is held back.
    pub delay: Duration,
}

/// The content of a reply.
#[derive(Debug, Clone, Default)]
pub enum Content {
    /// None.
    #[default]
    Empty,
    /// This.
    Bytes(HeaderValue, Bytes),
    /// That of a file.
    File(ReplyFile),
}

/// A file that a rule answers with.
#[derive(Debug, Clone)]
pub struct ReplyFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it must be in, links resolved.
    pub root: PathBuf,
    /// What the array of a CSV file is called.
    pub records: String,
}

/// What the array of a CSV file is called unless a rule says otherwise.
pub const RECORDS: &str = "records";
