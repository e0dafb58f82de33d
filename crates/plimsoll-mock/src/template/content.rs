//! Bytes that are known, or made for each request: the content of replies and the messages of conversations.

use bytes::Bytes;
use http::header::HeaderValue;

use crate::request::RequestView;
use crate::template::TextTemplate;

/// Content with its media type.
#[derive(Debug, Clone, Default)]
pub enum Content {
    /// No content.
    #[default]
    Empty,
    /// The same bytes for every request.
    Bytes(HeaderValue, Bytes),
    /// A template, filled for each request.
    TextTemplate(HeaderValue, TextTemplate),
}

impl Content {
    /// The bytes for a request.
    pub(crate) fn for_request(&self, request: &RequestView<'_>) -> Bytes {
        match self {
            Self::Empty => Bytes::new(),
            Self::Bytes(_, bytes) => bytes.clone(),
            Self::TextTemplate(_, written) => Bytes::from(written.fill(request)),
        }
    }

    /// The media type; absent without content.
    pub(crate) fn media_type(&self) -> Option<&HeaderValue> {
        match self {
            Self::Empty => None,
            Self::Bytes(media_type, _) | Self::TextTemplate(media_type, _) => Some(media_type),
        }
    }
}
