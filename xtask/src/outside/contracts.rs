//! Mappings of WireMock that Spring Cloud Contract ships: each has to load.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Bench, Results};
use crate::Failure;

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let mut results = Results::default();
    let mut files = Vec::new();
    mappings(bench.checkout, &mut files).map_err(|it| it.to_string())?;
    files.sort();
    for file in files {
        let output = Command::new(&bench.plimsoll)
            .args(["mock", "import"])
            .arg(&file)
            .current_dir(&bench.scratch)
            .output()
            .map_err(|it| it.to_string())?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        let result = if output.status.success() {
            Ok(())
        } else {
            Err(complaint.lines().next().unwrap_or_default().to_owned())
        };
        let name = file.strip_prefix(bench.checkout).unwrap_or(&file);
        results.add_result(name.display().to_string(), result);
    }
    Ok(results)
}

/// The JSON files in folders called `mappings`, at any depth.
fn mappings(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            mappings(&path, files)?;
            continue;
        }
        let is_json = path.extension().is_some_and(|it| it == "json");
        let is_mapping = path.components().any(|it| it.as_os_str() == "mappings");
        if is_json && is_mapping {
            files.push(path);
        }
    }
    Ok(())
}
