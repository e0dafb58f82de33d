//! Content parsed as XML, within bounds.
//!
//! The parser compares each attribute of an element with all others of it, and each namespace with all that are in
//! scope, so both are counted before it runs.

use roxmltree::{Document, ParsingOptions};

/// Longer content is not parsed, in bytes: its tree takes some ten times as much memory.
pub(super) const LONGEST: usize = 1 << 20;

/// Most nodes of a document; attributes and namespaces are none.
const MOST_NODES: u32 = 100_000;

/// Attributes of one element: the parser compares each with all others to find duplicates.
const MOST_ATTRIBUTES: usize = 256;

/// Namespace declarations of a document: the parser searches all of them for each prefix.
const MOST_NAMESPACES: usize = 256;

/// Maximum nesting of elements.
const DEEPEST: usize = 10_000;

/// Why content is not looked at as XML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// It is not XML; the parser's reason.
    #[error("no XML: {0}")]
    Grammar(String),
    /// It is longer than the limit.
    #[error("XML longer than {} MiB", LONGEST >> 20)]
    TooLong,
    /// An element has too many attributes.
    #[error("XML with more than {MOST_ATTRIBUTES} attributes in one element")]
    Attributes,
    /// It declares too many namespaces.
    #[error("XML with more than {MOST_NAMESPACES} declarations of namespaces")]
    Namespaces,
    /// Its elements are nested too deeply.
    #[error("XML nested more than {DEEPEST} elements deep")]
    Depth,
}

impl XmlError {
    /// Whether the content may be XML but exceeds a limit of this reader.
    pub(crate) const fn is_limit(&self) -> bool {
        !matches!(self, Self::Grammar(_))
    }
}

/// Parses content as XML.
pub(crate) fn document(content: &[u8]) -> Result<Document<'_>, XmlError> {
    if content.len() > LONGEST {
        return Err(XmlError::TooLong);
    }
    let text = std::str::from_utf8(content);
    let text = text.map_err(|error| XmlError::Grammar(error.to_string()))?;
    count(content)?;
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MOST_NODES,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options)
        .map_err(|error| XmlError::Grammar(error.to_string()))
}

/// Counts what makes the parser slow, in one pass.
///
/// It reads well-formed documents as the parser does. In any other the parser stops at the first error, and up to there
/// both agree.
fn count(content: &[u8]) -> Result<(), XmlError> {
    let (mut depth, mut namespaces) = (0_usize, 0_usize);
    let mut rest = content;
    while let Some(start) = rest.iter().position(|byte| *byte == b'<') {
        let markup = rest.get(start..).unwrap_or_default();
        let end = match markup {
            [b'<', b'!', b'-', b'-', ..] => after(markup, 4, b"-->"),
            [b'<', b'!', b'[', ..] => after(markup, 3, b"]]>"),
            [b'<', b'?', ..] => after(markup, 2, b"?>"),
            [b'<', b'/', ..] => {
                depth = depth.saturating_sub(1);
                after(markup, 2, b">")
            }
            _ => {
                let tag = tag(markup);
                if tag.attributes > MOST_ATTRIBUTES {
                    return Err(XmlError::Attributes);
                }
                namespaces += tag.namespaces;
                if namespaces > MOST_NAMESPACES {
                    return Err(XmlError::Namespaces);
                }
                if !tag.is_empty {
                    depth += 1;
                }
                if depth > DEEPEST {
                    return Err(XmlError::Depth);
                }
                Some(tag.length)
            }
        };
        let Some(end) = end else {
            return Ok(());
        };
        rest = markup.get(end..).unwrap_or_default();
    }
    Ok(())
}

/// End of markup, behind `end`.
fn after(markup: &[u8], from: usize, end: &[u8]) -> Option<usize> {
    let inner = markup.get(from..)?;
    let at = inner.windows(end.len()).position(|it| it == end)?;
    Some(from + at + end.len())
}

/// The start tag of an element.
#[derive(Debug, Default)]
struct Tag {
    length: usize,
    attributes: usize,
    namespaces: usize,
    is_empty: bool,
}

fn tag(markup: &[u8]) -> Tag {
    let mut tag = Tag::default();
    let mut quote = None;
    let mut name_start = 0;
    for (at, byte) in markup.iter().enumerate() {
        match (quote, byte) {
            (Some(open), byte) if open == *byte => {
                quote = None;
                name_start = at + 1;
            }
            (None, b'"' | b'\'') => {
                quote = Some(*byte);
                tag.attributes += 1;
                let name = markup.get(name_start..at).unwrap_or_default();
                let is_namespace = name.windows(5).any(|it| it == b"xmlns");
                tag.namespaces += usize::from(is_namespace);
            }
            (None, b'>') => {
                tag.is_empty = at > 0 && markup.get(at - 1) == Some(&b'/');
                tag.length = at + 1;
                return tag;
            }
            _ => {}
        }
    }
    tag.length = markup.len();
    tag
}
