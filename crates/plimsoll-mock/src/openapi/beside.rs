//! The files that an OpenAPI document refers to: those in its folder and below.

use std::fs;
use std::io::Read as _;
use std::path::Path;

/// Files have at most this many bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Why a file is not read. Messages continue its name.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadBesideError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("it is a link that leads out of the folder of the document")]
    Outside,
    #[error("it is not a file")]
    NotAFile,
    #[error("it exceeds the limit of {} MiB", MOST_BYTES >> 20)]
    TooLong,
}

/// Reads a file.
///
/// - `folder`: that of the document. A link that leads out of it is refused: a document from elsewhere must not
///   reveal other files of this machine.
/// - `name`: a path relative to it.
pub(super) fn read(folder: &Path, name: &str) -> Result<Vec<u8>, ReadBesideError> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let path = folder.join(name).canonicalize()?;
    if !path.starts_with(folder.canonicalize()?) {
        return Err(ReadBesideError::Outside);
    }
    // Opening a pipe would wait for a writer.
    if !path.is_file() {
        return Err(ReadBesideError::NotAFile);
    }
    let mut content = Vec::new();
    let file = fs::File::open(path)?;
    let mut file = file.take(MOST_BYTES + 1);
    file.read_to_end(&mut content)?;
    if content.len() as u64 > MOST_BYTES {
        return Err(ReadBesideError::TooLong);
    }
    Ok(content)
}
