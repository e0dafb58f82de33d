//! Files that are written whole or not at all.

use std::fs;
use std::io;
use std::path::Path;

use plimsoll_wire::files;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes `path` and the folders that lead to it; what was there is replaced at once, by all of `bytes`.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    files::replace(path, bytes)
}

/// Whether `path` holds `ours`; a file that is not there yet is written with it.
pub(crate) fn holds<T: Serialize + DeserializeOwned + PartialEq>(
    path: &Path,
    ours: &T,
) -> io::Result<bool> {
    if let Ok(found) = fs::read(path) {
        return Ok(serde_json::from_slice(&found).is_ok_and(|found: T| found == *ours));
    }
    let json = serde_json::to_vec_pretty(ours).map_err(io::Error::other)?;
    write(path, &json)?;
    Ok(true)
}
