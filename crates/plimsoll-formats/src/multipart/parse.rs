//! Bodies of several parts (RFC 2046, section 5.1) and forms made of them (RFC 7578), read whole and within bounds.
//!
//! Nothing is copied: parts borrow from the body.

use std::borrow::Cow;

use memchr::memmem;

use crate::request::is_token;

/// Parts of a body: as many as PHP and Go accept form values by default (1,000).
pub const MOST_PARTS: usize = 1_000;

/// Bytes of the header of a part: real ones have some hundred bytes.
pub const LONGEST_PART_HEADER: usize = 16 << 10;

/// A boundary has at most this many characters (RFC 2046, section 5.1.1).
const LONGEST_BOUNDARY: usize = 70;

/// One part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyPart<'b> {
    header: &'b [u8],
    content: &'b [u8],
}

/// Why a body cannot be read as parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MultipartError {
    /// Its media type is not `multipart/…`.
    #[error("no multipart content")]
    MediaType,
    /// The media type names no boundary of 1 to 70 characters.
    #[error("multipart content without a valid boundary")]
    Boundary,
    /// There are too many parts.
    #[error("multipart content of more than {MOST_PARTS} parts")]
    TooManyParts,
    /// The header of a part is too long.
    #[error(
        "multipart content with a part whose header is longer than {} KiB",
        LONGEST_PART_HEADER >> 10
    )]
    HeaderTooLong,
    /// The header of a part does not end, or has an invalid line.
    #[error("multipart content with a part whose header is invalid")]
    Header,
    /// The last boundary is missing.
    #[error("multipart content without its last boundary")]
    Unfinished,
}

impl MultipartError {
    /// True if the body may be valid but exceeds a limit of this reader.
    pub const fn is_limit(self) -> bool {
        matches!(self, Self::TooManyParts | Self::HeaderTooLong)
    }
}

/// The parts of a body, in their order.
///
/// - `content_type`: its media type, with the boundary.
///
/// Text before the first boundary and behind the last one is ignored (RFC 2046, section 5.1.1). Takes time linear in the
/// length of the body.
pub fn parse_multipart<'b>(
    content_type: &str,
    body: &'b [u8],
) -> Result<Vec<BodyPart<'b>>, MultipartError> {
    if !is_multipart(content_type) {
        return Err(MultipartError::MediaType);
    }
    let boundary = parameter(content_type, "boundary").ok_or(MultipartError::Boundary)?;
    let is_printable = boundary.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if boundary.is_empty() || boundary.len() > LONGEST_BOUNDARY || !is_printable {
        return Err(MultipartError::Boundary);
    }
    let delimiter = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut start = None;
    // Occurrences that begin a line never overlap: a delimiter has no line break.
    for at in memmem::find_iter(body, delimiter.as_bytes()) {
        let before = body.get(..at).unwrap_or_default();
        if at > 0 && !before.ends_with(b"\r\n") {
            continue;
        }
        let behind = body.get(at + delimiter.len()..).unwrap_or_default();
        let Some(line) = line_behind(behind) else {
            continue;
        };
        if let Some(start) = start {
            let end = at.saturating_sub(b"\r\n".len());
            // Two boundaries share the line break between them.
            let part = body.get(start..end).ok_or(MultipartError::Header)?;
            if parts.len() == MOST_PARTS {
                return Err(MultipartError::TooManyParts);
            }
            parts.push(BodyPart::parse(part)?);
        }
        match line {
            Line::Last => return Ok(parts),
            Line::Next(length) => start = Some(at + delimiter.len() + length),
        }
    }
    Err(MultipartError::Unfinished)
}

/// True if a media type is one of several parts.
pub fn is_multipart(content_type: &str) -> bool {
    let class = content_type.trim_start().get(.."multipart/".len());
    class.is_some_and(|class| class.eq_ignore_ascii_case("multipart/"))
}

/// The rest of the line after a boundary.
enum Line {
    /// The part begins so many bytes behind the boundary.
    Next(usize),
    /// It was the last boundary.
    Last,
}

fn line_behind(behind: &[u8]) -> Option<Line> {
    if behind.starts_with(b"--") {
        return Some(Line::Last);
    }
    let blanks = behind
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    let rest = behind.get(blanks..)?;
    rest.starts_with(b"\r\n")
        .then_some(Line::Next(blanks + b"\r\n".len()))
}

impl<'b> BodyPart<'b> {
    fn parse(part: &'b [u8]) -> Result<Self, MultipartError> {
        if let Some(content) = part.strip_prefix(b"\r\n") {
            return Ok(Self {
                header: &[],
                content,
            });
        }
        let searched = part
            .get(..LONGEST_PART_HEADER + b"\r\n\r\n".len())
            .unwrap_or(part);
        let Some(end) = memmem::find(searched, b"\r\n\r\n") else {
            return Err(if searched.len() < part.len() {
                MultipartError::HeaderTooLong
            } else {
                MultipartError::Header
            });
        };
        let (header, rest) = part.split_at(end);
        let part = Self {
            header,
            content: rest.get(b"\r\n\r\n".len()..).unwrap_or_default(),
        };
        let is_valid = lines(header).all(|line| field(line).is_some());
        is_valid.then_some(part).ok_or(MultipartError::Header)
    }

    /// Its content.
    pub fn content(&self) -> &'b [u8] {
        self.content
    }

    /// The fields of its header, in their order: names and values.
    pub fn fields(&self) -> impl Iterator<Item = (&'b str, &'b [u8])> + use<'b> {
        lines(self.header).filter_map(field)
    }

    /// The value of the first field of that name, in any case.
    pub fn field(&self, name: &str) -> Option<&'b [u8]> {
        let mut fields = self.fields();
        let found = fields.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    /// Its name in a form.
    pub fn name(&self) -> Option<String> {
        self.disposition("name")
    }

    /// The name of the file that it was made of.
    pub fn file_name(&self) -> Option<String> {
        self.disposition("filename")
    }

    /// Its media type with parameters; absent if it gives none.
    pub fn content_type(&self) -> Option<Cow<'b, str>> {
        self.field("content-type").map(String::from_utf8_lossy)
    }

    fn disposition(&self, name: &str) -> Option<String> {
        let value = self.field("content-disposition")?;
        parameter(&String::from_utf8_lossy(value), name)
    }
}

fn lines(header: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(header).filter(|header| !header.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = memmem::find(text, b"\r\n") else {
            rest = None;
            return Some(text);
        };
        rest = text.get(at + b"\r\n".len()..);
        text.get(..at)
    })
}

fn field(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = std::str::from_utf8(line.get(..colon)?).ok()?;
    let value = line.get(colon + 1..)?;
    is_token(name).then(|| (name, value.trim_ascii()))
}

/// The value of a parameter behind the first semicolon of a field value (RFC 9110, section 5.6.6).
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut rest = skip(value).1;
    while let Some(behind) = rest.strip_prefix(';') {
        let (known, after) = match behind.find(['=', ';']) {
            Some(at) => behind.split_at(at),
            None => (behind, ""),
        };
        let Some(given) = after.strip_prefix('=') else {
            rest = after;
            continue;
        };
        let (text, after) = skip(given.trim_start());
        if known.trim().eq_ignore_ascii_case(name) {
            return Some(text);
        }
        rest = after;
    }
    None
}

/// A text up to the next semicolon, out of its double quotes, and the rest.
fn skip(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let at = text.find(';').unwrap_or(text.len());
        let (word, rest) = text.split_at(at);
        return (word.trim_end().to_owned(), rest);
    };
    let mut word = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let rest = quoted.get(at + 1..).unwrap_or_default();
                let end = rest.find(';').unwrap_or(rest.len());
                return (word, rest.get(end..).unwrap_or_default());
            }
            // Some clients send paths of Windows as they are.
            '\\' => match characters.clone().next() {
                Some((_, escaped @ ('"' | '\\'))) => {
                    word.push(escaped);
                    characters.next();
                }
                _ => word.push('\\'),
            },
            character => word.push(character),
        }
    }
    (word, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MultipartForm;

    const FORM: &str = "multipart/form-data; boundary=b";

    fn shown(content_type: &str, body: &str) -> Result<Vec<String>, MultipartError> {
        let parts = parse_multipart(content_type, body.as_bytes())?;
        let shown = parts.iter().map(|part| {
            let content = String::from_utf8_lossy(part.content());
            let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            format!(
                "{} {} {}: {content}",
                text(part.name()),
                text(part.file_name()),
                text(part.content_type().map(Cow::into_owned)),
            )
        });
        Ok(shown.collect())
    }

    #[test]
    fn parts_have_names_files_and_media_types() {
        let body = "preamble\r\n--b  \r\nContent-Disposition: form-data; name=\"a;=b\"; filename=\"c \\\"d\\\" C:\\e.txt\"\r\n\
             content-type: text/plain\r\n\r\nx\r\n--bc\r\ny--b\r\n--b\r\n\r\nbare\r\n--b\r\ncontent-disposition:form-data;name=c\r\n\r\n\r\n--b--\r\nepilogue --b";
        for kind in [
            FORM,
            "Multipart/Form-Data;charset=utf-8; BOUNDARY=\"b\"",
            "multipart/mixed; boundary=b ; x=y",
        ] {
            assert_eq!(
                shown(kind, body).unwrap(),
                [
                    "a;=b c \"d\" C:\\e.txt text/plain: x\r\n--bc\r\ny--b",
                    "- - -: bare",
                    "c - -: ",
                ],
                "{kind}"
            );
        }
        assert_eq!(shown(FORM, "--b--"), Ok(Vec::new()));
    }

    #[test]
    fn invalid_bodies_are_rejected() {
        let part = "--b\r\na: b\r\n\r\n";
        for (kind, body, error) in [
            ("text/plain; boundary=b", "--b--", MultipartError::MediaType),
            ("multipart/form-data", "--b--", MultipartError::Boundary),
            (
                "multipart/form-data; boundary=",
                "----",
                MultipartError::Boundary,
            ),
            (
                "multipart/form-data; boundary=é",
                "--é--",
                MultipartError::Boundary,
            ),
            (FORM, "", MultipartError::Unfinished),
            (FORM, part, MultipartError::Unfinished),
            (FORM, "--b\r\n--b--", MultipartError::Header),
            (FORM, "--b\r\n\r\n--b--", MultipartError::Header),
            (FORM, "--b\r\na: b\r\n--b--", MultipartError::Header),
            (FORM, "--b\r\na b\r\n\r\n\r\n--b--", MultipartError::Header),
        ] {
            assert_eq!(shown(kind, body), Err(error), "{kind} {body}");
        }
    }

    #[test]
    fn parts_and_headers_are_bounded() {
        let many = |count: usize| "--b\r\n\r\n\r\n".repeat(count) + "--b--";
        assert_eq!(shown(FORM, &many(MOST_PARTS)).unwrap().len(), MOST_PARTS);
        let error = shown(FORM, &many(MOST_PARTS + 1)).unwrap_err();
        assert!(error == MultipartError::TooManyParts && error.is_limit());
        let long = |length: usize| format!("--b\r\na:{}\r\n\r\nx\r\n--b--", "x".repeat(length - 2));
        assert!(shown(FORM, &long(LONGEST_PART_HEADER)).is_ok());
        let error = shown(FORM, &long(LONGEST_PART_HEADER + 1)).unwrap_err();
        assert!(error == MultipartError::HeaderTooLong && error.is_limit());
    }

    proptest! {
        #[test]
        fn a_form_is_read_as_it_was_written(
            fields in proptest::collection::vec(("[a-z;= é]{0,8}", proptest::option::of("[a-z. ;]{1,8}"), "[-\r\nab]{0,12}"), 0..5),
        ) {
            let mut form = MultipartForm::default();
            for (name, file_name, content) in &fields {
                let kind = file_name.as_ref().map(|_| "text/plain".to_owned());
                form.push(name, file_name.clone(), kind, content.clone().into_bytes()).unwrap();
            }
            let (content_type, body) = form.encode();
            let parts = parse_multipart(&content_type, &body).unwrap();
            let read: Vec<_> = parts
                .iter()
                .map(|part| (part.name().unwrap(), part.file_name(), String::from_utf8(part.content().to_vec()).unwrap()))
                .collect();
            prop_assert_eq!(read, fields);
        }

        #[test]
        fn no_body_makes_it_panic(kind in "(multipart/|a|;|=|\"|\\\\|boundary|b| ){0,8}", body in "(--b|--|\r\n|a:|b| |\"){0,16}") {
            drop(parse_multipart(&kind, body.as_bytes()));
            if let Ok(parts) = parse_multipart(FORM, body.as_bytes()) {
                prop_assert!(parts.iter().map(|part| part.content().len()).sum::<usize>() < body.len());
            }
        }
    }
}
