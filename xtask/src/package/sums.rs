//! `SHA256SUMS`, as `sha256sum --check` reads it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::cannot;
use crate::{Failure, Outcome};

/// The name of the file with the sums.
pub(super) const NAME: &str = "SHA256SUMS";

/// Writes the sums of `files`, which lie in `out`.
pub(super) fn write(out: &Path, files: &[PathBuf]) -> Outcome {
    let mut text = String::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().display();
        let content = fs::read(file).map_err(|error| cannot("read", file, &error))?;
        writeln!(text, "{}  {name}", hex(&content)).map_err(|error| error.to_string())?;
    }
    let path = out.join(NAME);
    fs::write(&path, text).map_err(|error| cannot("write", &path, &error))
}

/// The sum of `content`.
pub(super) fn hex(content: &[u8]) -> String {
    use std::fmt::Write as _;
    let sum = Sha256::digest(content);
    sum.iter().fold(String::new(), |mut hex, byte| {
        // A string takes what is written to it.
        write!(hex, "{byte:02x}").ok();
        hex
    })
}

/// The sum that the file of sums in `out` has for `name`.
pub(super) fn recorded(out: &Path, name: &str) -> Result<String, Failure> {
    let path = out.join(NAME);
    let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let mut lines = text.lines().filter_map(|line| line.split_once("  "));
    let found = lines.find(|(_, known)| *known == name);
    let (sum, _) = found.ok_or_else(|| format!("{NAME} has no line for `{name}`"))?;
    Ok(sum.to_owned())
}
