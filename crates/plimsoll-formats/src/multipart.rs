//! Forms of several parts (RFC 7578): written from fields as curl's `-F` takes them, and read.

mod parse;

use crate::ReadFile;

pub use self::parse::{
    BodyPart, LONGEST_PART_HEADER, MOST_PARTS, MultipartError, is_multipart, parse_multipart,
};

/// A form under construction.
#[derive(Debug, Clone, Default)]
pub struct MultipartForm {
    parts: Vec<FormPart>,
}

#[derive(Debug, Clone)]
struct FormPart {
    name: String,
    file_name: Option<String>,
    content_type: Option<String>,
    content: Vec<u8>,
}

/// Why a field of a form cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// Not `name=value`.
    #[error("`{0}` is not of the form `name=value` or `name=@file`")]
    Malformed(String),
    /// Something behind a semicolon that is not known.
    #[error("`{0}` is not known behind a value; known are `type=` and `filename=`")]
    Attribute(String),
    /// The file cannot be read.
    #[error("{0}")]
    File(String),
    /// A line break where none may be.
    #[error("`{0}` contains a line break")]
    LineBreak(String),
}

impl MultipartForm {
    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds a field: `name=value`, `name=@file` for an upload, `name=<file` for the content of a
    /// file; `;type=…` and `;filename=…` may follow.
    pub fn add(&mut self, text: &str, read: ReadFile<'_>) -> Result<(), FormError> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| FormError::Malformed(text.to_owned()))?;
        let (value, mut attributes) = split_attributes(value)?;
        let (content, default_name) = if let Some(path) = value.strip_prefix('@') {
            let content = read(path).map_err(|error| FormError::File(error.to_string()))?;
            let base = path.rsplit('/').next().unwrap_or(path);
            (content, Some(base.to_owned()))
        } else if let Some(path) = value.strip_prefix('<') {
            (
                read(path).map_err(|error| FormError::File(error.to_string()))?,
                None,
            )
        } else {
            (value.into_bytes(), None)
        };
        let file_name = attributes.file_name.take().or(default_name);
        let guessed = || {
            file_name
                .as_deref()
                .map(|name| content_type_of(name).to_owned())
        };
        let content_type = attributes.content_type.take().or_else(guessed);
        self.push(name, file_name.clone(), content_type, content)
    }

    /// Adds a field with exactly this value.
    pub fn add_text(&mut self, name: &str, value: &str) -> Result<(), FormError> {
        self.push(name, None, None, value.as_bytes().to_vec())
    }

    pub(crate) fn push(
        &mut self,
        name: &str,
        file_name: Option<String>,
        content_type: Option<String>,
        content: Vec<u8>,
    ) -> Result<(), FormError> {
        let texts = [Some(name), content_type.as_deref()];
        for text in texts.into_iter().flatten() {
            if text.contains(['\r', '\n']) {
                return Err(FormError::LineBreak(text.to_owned()));
            }
        }
        self.parts.push(FormPart {
            name: name.to_owned(),
            file_name,
            content_type,
            content,
        });
        Ok(())
    }

    /// The content type with its boundary, and the body.
    pub fn encode(&self) -> (String, Vec<u8>) {
        let boundary = self.boundary();
        let mut body = Vec::new();
        for part in &self.parts {
            let name = quoted(&part.name);
            body.extend_from_slice(
                format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"")
                    .as_bytes(),
            );
            if let Some(file_name) = &part.file_name {
                let file_name = quoted(file_name);
                body.extend_from_slice(format!("; filename=\"{file_name}\"").as_bytes());
            }
            if let Some(content_type) = &part.content_type {
                body.extend_from_slice(format!("\r\nContent-Type: {content_type}").as_bytes());
            }
            body.extend_from_slice(b"\r\n\r\n");
            body.extend_from_slice(&part.content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        (format!("multipart/form-data; boundary={boundary}"), body)
    }

    /// One that occurs in no part; the same for the same form, so that a run can be repeated.
    fn boundary(&self) -> String {
        let candidates = (0_u64..).map(|number| format!("------------------------{number:016x}"));
        let occurs = |boundary: &String| {
            let boundary = boundary.as_bytes();
            self.parts.iter().any(|part| {
                part.content
                    .windows(boundary.len())
                    .any(|window| window == boundary)
            })
        };
        candidates
            .into_iter()
            .find(|boundary| !occurs(boundary))
            .expect("contents are finite")
    }
}

/// As browsers write names (RFC 7578, section 4.2, and the HTML standard).
fn quoted(text: &str) -> String {
    text.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

#[derive(Default)]
struct Attributes {
    content_type: Option<String>,
    file_name: Option<String>,
}

/// Splits `;type=…` and `;filename=…` off a value, which may stand in double quotes.
fn split_attributes(value: &str) -> Result<(String, Attributes), FormError> {
    let (marker, value) = match value.strip_prefix(['@', '<']) {
        Some(rest) => (value.chars().next(), rest),
        None => (None, value),
    };
    let mut attributes = Attributes::default();
    let (first, mut rest) = take_word(value, false);
    let mut text: String = marker.into_iter().collect();
    text.push_str(&first);
    while let Some(attribute) = rest.strip_prefix(';') {
        let (word, after) = take_word(attribute.trim_start(), true);
        match word.split_once('=') {
            Some(("type", value)) => attributes.content_type = Some(value.to_owned()),
            Some(("filename", value)) => attributes.file_name = Some(value.to_owned()),
            // `text/plain;charset=utf-8`
            Some(_) if attributes.content_type.is_some() => {
                if let Some(content_type) = &mut attributes.content_type {
                    content_type.push(';');
                    content_type.push_str(&word);
                }
            }
            // Of a value that is no file it is a part, as it stands there.
            _ if marker.is_none() => {
                let length = rest.len() - after.len();
                text.push_str(rest.get(..length).unwrap_or_default());
            }
            _ => return Err(FormError::Attribute(word)),
        }
        rest = after;
    }
    Ok((text, attributes))
}

/// Takes up to the next semicolon; a text in double quotes may hold one.
///
/// - `is_attribute`: whether the quotes may begin behind an equals sign too.
fn take_word(text: &str, is_attribute: bool) -> (String, &str) {
    let mut word = String::new();
    let mut quoted = false;
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' if quoted => quoted = false,
            '"' if word.is_empty() || (is_attribute && word.ends_with('=')) => quoted = true,
            '\\' if quoted => word.extend(chars.next().map(|(_, c)| c)),
            ';' if !quoted => return (word, text.get(index..).unwrap_or_default()),
            c => word.push(c),
        }
    }
    (word, "")
}

/// The types that curl derives from the name of a file.
fn content_type_of(file_name: &str) -> &'static str {
    let extension = file_name.rsplit_once('.').map(|(_, extension)| extension);
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("gif") => "image/gif",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain",
        Some("htm" | "html") => "text/html",
        Some("pdf") => "application/pdf",
        Some("xml") => "application/xml",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadError;

    fn read(path: &str) -> Result<Vec<u8>, ReadError> {
        match path {
            "dir/a;b.png" => Ok(b"\x89PNG".to_vec()),
            "note" => Ok(b"noted".to_vec()),
            _ => Err(format!("cannot read {path}").into()),
        }
    }

    fn encoded(fields: &[&str]) -> String {
        let mut form = MultipartForm::default();
        for field in fields {
            form.add(field, &mut read).unwrap();
        }
        let (content_type, body) = form.encode();
        let boundary = content_type.split_once("boundary=").unwrap().1;
        String::from_utf8_lossy(&body).replace(boundary, "B")
    }

    #[test]
    fn fields_files_and_attributes() {
        let body = encoded(&[
            "a=b;c",
            "up=@\"dir/a;b.png\"",
            "n=<note;type=text/plain;charset=utf-8",
            "q\"=x;filename=y.json",
            "j={\"a\":\"b;c\"}",
        ]);
        assert_eq!(
            body,
            "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb;c\r\n\
             --B\r\nContent-Disposition: form-data; name=\"up\"; filename=\"a;b.png\"\r\n\
             Content-Type: image/png\r\n\r\n\u{fffd}PNG\r\n\
             --B\r\nContent-Disposition: form-data; name=\"n\"\r\n\
             Content-Type: text/plain;charset=utf-8\r\n\r\nnoted\r\n\
             --B\r\nContent-Disposition: form-data; name=\"q%22\"; filename=\"y.json\"\r\n\
             Content-Type: application/json\r\n\r\nx\r\n\
             --B\r\nContent-Disposition: form-data; name=\"j\"\r\n\r\n{\"a\":\"b;c\"}\r\n\
             --B--\r\n"
        );
    }

    #[test]
    fn a_boundary_occurs_in_no_part() {
        let mut form = MultipartForm::default();
        form.add_text("a", "------------------------0000000000000000")
            .unwrap();
        let (content_type, _) = form.encode();
        assert!(content_type.ends_with('1'), "{content_type}");
    }

    #[test]
    fn mistakes_are_reported() {
        let mut form = MultipartForm::default();
        for (field, expected) in [
            ("a", "is not of the form"),
            ("a=@missing", "cannot read missing"),
            ("a=@note;color=red", "`color=red` is not known"),
            ("a\n=b", "line break"),
        ] {
            let error = form.add(field, &mut read).unwrap_err().to_string();
            assert!(error.contains(expected), "{field}: {error}");
        }
        assert!(form.is_empty());
    }
}
