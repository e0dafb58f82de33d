//! The content of a response for a file.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;
use plimsoll_formats::{csv_to_json, json5_to_json};

/// A longer file is sent as it is, in pieces; it is neither cached nor converted to JSON, which would hold it in
/// memory several times.
pub const LONGEST_WHOLE: u64 = 16 << 20;

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Its media type.
    pub media_type: &'static str,
    /// All of it.
    pub bytes: Bytes,
}

/// Why a file cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// It cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(String, #[source] io::Error),
    /// It is longer than [`LONGEST_WHOLE`].
    #[error("{0} is too long to be taken into memory")]
    TooLong(String),
    /// It is not what its extension says.
    #[error("{file} is not the {kind} that its name says: {message}")]
    Malformed {
        /// Its name, without folders.
        file: String,
        /// Of its extension.
        kind: &'static str,
        /// The error.
        message: String,
    },
}

/// The content for a file: JSON5 and CSV as JSON, everything else as it is.
///
/// Blocks while it reads.
///
/// - `records`: what the array of a CSV file is called; dots make objects around it.
pub fn read(file: &Path, records: &str) -> Result<Contents, ContentsError> {
    let name = name(file);
    let unreadable = |error| ContentsError::Read(name.clone(), error);
    let mut open = fs::File::open(file).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let limit = LONGEST_WHOLE + 1;
    Read::take(&mut open, limit)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 == limit {
        return Err(ContentsError::TooLong(name));
    }
    made(file, bytes, records)
}

/// The content for a file of that name with those bytes.
pub fn made(file: &Path, bytes: Vec<u8>, records: &str) -> Result<Contents, ContentsError> {
    let extension = extension(file);
    let malformed = |kind, message: String| ContentsError::Malformed {
        file: name(file),
        kind,
        message,
    };
    // The kind of a file comes from its bytes before its name.
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            return Ok(Contents {
                media_type: binary_type(&extension),
                bytes: Bytes::from(error.into_bytes()),
            });
        }
    };
    let (media_type, text) = match extension.as_str() {
        "json5" => {
            let json = json5_to_json(&text);
            (
                JSON,
                json.map_err(|error| malformed("JSON5", error.to_string()))?,
            )
        }
        "csv" => {
            let json = csv_to_json(&text, records).map_err(|problems| {
                let problems: Vec<String> = problems
                    .iter()
                    .map(|remark| match &remark.place {
                        plimsoll_formats::Place::Line(line) => {
                            format!("line {line}: {}", remark.message)
                        }
                        _ => remark.message.clone(),
                    })
                    .collect();
                malformed("CSV", problems.join("; "))
            })?;
            (JSON, json)
        }
        extension => (text_type(extension), text),
    };
    Ok(Contents {
        media_type,
        bytes: Bytes::from(text),
    })
}

/// Whether a file is made into something else before it is sent.
pub fn is_converted(file: &Path) -> bool {
    matches!(extension(file).as_str(), "json5" | "csv")
}

/// The media type of a file that is too long to be looked at as a whole.
pub fn long_type(file: &Path, beginning: &[u8]) -> &'static str {
    let extension = extension(file);
    let is_text = match std::str::from_utf8(beginning) {
        Ok(_) => true,
        // The beginning may end within a character.
        Err(error) => error.error_len().is_none(),
    };
    if is_text {
        text_type(&extension)
    } else {
        binary_type(&extension)
    }
}

const JSON: &str = "application/json";

fn name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn extension(file: &Path) -> String {
    let extension = file.extension().unwrap_or_default();
    extension.to_string_lossy().to_ascii_lowercase()
}

fn text_type(extension: &str) -> &'static str {
    match extension {
        "json" => JSON,
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "application/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "xml" => "application/xml",
        "webmanifest" => "application/manifest+json",
        _ => "text/plain; charset=utf-8",
    }
}

fn binary_type(extension: &str) -> &'static str {
    match extension {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "bmp" => "image/bmp",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "flac" => "audio/flac",
        "ogg" => "audio/ogg",
        "m4a" => "audio/mp4",
        "aac" => "audio/aac",
        "weba" => "audio/webm",
        "mp4" | "m4v" => "video/mp4",
        "mpeg" | "mpg" => "video/mpeg",
        "avi" => "video/x-msvideo",
        "mov" => "video/quicktime",
        "webm" => "video/webm",
        "ogv" => "video/ogg",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "wasm" => "application/wasm",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_of(name: &str, bytes: &[u8]) -> (String, String) {
        let contents = made(Path::new(name), bytes.to_vec(), "records").unwrap();
        let text = String::from_utf8_lossy(&contents.bytes).into_owned();
        (contents.media_type.to_owned(), text)
    }

    #[test]
    fn bytes_and_names_say_what_a_file_is() {
        for (name, bytes, media_type, sent) in [
            ("a.json", &b"{ broken"[..], JSON, "{ broken"),
            ("a.JSON5", b"{a: 1}", JSON, "{\"a\":1}"),
            ("a.csv", b"a\n1\n", JSON, "{\"records\":[{\"a\":\"1\"}]}"),
            ("a.html", b"x", "text/html; charset=utf-8", "x"),
            ("a.png", b"x", "text/plain; charset=utf-8", "x"),
            ("a.png", b"\xff", "image/png", "\u{fffd}"),
            ("a.json", b"\xff", "application/octet-stream", "\u{fffd}"),
            ("a", b"x", "text/plain; charset=utf-8", "x"),
        ] {
            let made = made_of(name, bytes);
            assert_eq!(made, (media_type.to_owned(), sent.to_owned()), "{name}");
        }
    }

    #[test]
    fn what_a_file_is_not_is_reported() {
        let error = made(Path::new("x/a.csv"), b"a,b\n1\n".to_vec(), "records").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.csv is not the CSV that its name says: line 2: has 1 value for 2 columns"
        );
        let error = made(Path::new("a.json5"), b"{".to_vec(), "records").unwrap_err();
        assert!(
            error.to_string().contains("a.json5 is not the JSON5"),
            "{error}"
        );
    }
}
