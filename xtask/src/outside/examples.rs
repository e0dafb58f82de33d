//! Files that other projects publish: each has to be read whole, without a note about anything that is left out.
//!
//! wiremock.org's documentation has mappings among its text, Mockoon's samples are environments, har-to-k6 has HAR files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use serde_json::Value;

use super::{Bench, Results};
use crate::Failure;

/// Runs the mappings of WireMock's documentation.
pub(super) fn wiremock_org(bench: &Bench<'_>) -> Result<Results, Failure> {
    let docs = bench.checkout.join("src/content");
    let block = Regex::new(r"(?s)```json[^\n]*\n(.*?)```").expect("it is a pattern");
    let mut results = Results::default();
    for page in files(&docs, &["md", "mdx"])? {
        let text = fs::read_to_string(&page).map_err(|it| it.to_string())?;
        let name = page
            .strip_prefix(&docs)
            .unwrap_or(&page)
            .display()
            .to_string();
        for (number, found) in block.captures_iter(&text).enumerate() {
            let Ok(value) = serde_json::from_str::<Value>(&found[1]) else {
                // Many are parts of documents.
                results.skip("an example that is not JSON");
                continue;
            };
            let has = |key: &str| value.get(key).is_some();
            let is_mapping = has("mappings") || has("request") && has("response");
            if !is_mapping {
                results.skip("an example that is no mapping");
                continue;
            }
            let file = bench.scratch.join("mapping.json");
            fs::write(&file, &found[1]).map_err(|it| it.to_string())?;
            results.add_result(format!("{name} {}", number + 1), imported(bench, &file));
        }
    }
    Ok(results)
}

/// Runs the environments of Mockoon's samples.
pub(super) fn mock_samples(bench: &Bench<'_>) -> Result<Results, Failure> {
    let folder = bench.checkout.join("mock-apis/data");
    let mut results = Results::default();
    for file in files(&folder, &["json"])? {
        let name = file.strip_prefix(&folder).unwrap_or(&file).display();
        let result = imported(bench, &file);
        // Failures are named by what is not carried over, of which there are few kinds.
        let kind = result.as_ref().err().and_then(|note| note.split_once(']'));
        let kind = kind.and_then(|(_, rest)| rest.split_once(": "));
        let name = match kind {
            Some((_, kind)) => format!("{kind} ({name})"),
            None => name.to_string(),
        };
        results.add_result(name, result);
    }
    Ok(results)
}

/// Runs the HAR files of har-to-k6, which have requests only.
pub(super) fn har_to_k6(bench: &Bench<'_>) -> Result<Results, Failure> {
    let folder = bench.checkout.join("test");
    let mut results = Results::default();
    for file in files(&folder, &["har"])? {
        let name = file.strip_prefix(&folder).unwrap_or(&file);
        results.add_result(name.display().to_string(), loaded(bench, &file));
    }
    Ok(results)
}

/// Reads requests as `load` does, and sends none: no request is chosen.
fn loaded(bench: &Bench<'_>, file: &Path) -> Result<(), String> {
    let output = Command::new(&bench.plimsoll)
        .args(["load", "--only", "host=none.invalid", "--from"])
        .arg(file)
        .output()
        .map_err(|it| it.to_string())?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    match complaint.lines().next().unwrap_or_default() {
        "error: --only: no request of the file is chosen" => Ok(()),
        first => Err(first.replace(&*file.to_string_lossy(), "")),
    }
}

/// Imports a file; fails with the first note.
fn imported(bench: &Bench<'_>, file: &Path) -> Result<(), String> {
    let output = Command::new(&bench.plimsoll)
        .args(["mock", "import"])
        .arg(file)
        .output()
        .map_err(|it| it.to_string())?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    match complaint.lines().next() {
        None if output.status.success() => Ok(()),
        first => {
            let first = first.unwrap_or("fails without a word");
            Err(first.replace(&*file.to_string_lossy(), ""))
        }
    }
}

/// The files of some extensions below a folder, in order.
pub(super) fn files(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|it| it.to_string())?.path();
            let extension = path.extension().and_then(|it| it.to_str());
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if extension.is_some_and(|it| extensions.contains(&it)) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
