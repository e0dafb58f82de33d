//! The files that an OpenAPI document refers to: those in its folder and below.

use std::fs;
use std::io::Read as _;
use std::path::Path;

/// Files have at most this many bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Reads a file.
///
/// - `folder`: that of the document. A link that leads out of it is refused: a document from elsewhere must not
///   reveal other files of this machine.
/// - `name`: a path relative to it.
pub(super) fn read(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let as_text = |error: std::io::Error| error.to_string();
    let path = folder.join(name).canonicalize().map_err(as_text)?;
    if !path.starts_with(folder.canonicalize().map_err(as_text)?) {
        return Err("it is a link that leads out of the folder of the document".to_owned());
    }
    // Opening a pipe would wait for a writer.
    if !path.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut content = Vec::new();
    let file = fs::File::open(path).map_err(as_text)?;
    let mut file = file.take(MOST_BYTES + 1);
    file.read_to_end(&mut content).map_err(as_text)?;
    if content.len() as u64 > MOST_BYTES {
        let limit = MOST_BYTES >> 20;
        return Err(format!("it exceeds the limit of {limit} MiB"));
    }
    Ok(content)
}
