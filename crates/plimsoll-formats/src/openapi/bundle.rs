//! Documents in several files: the files that `$ref` names, joined into one document.
//!
//! Each file is read once and stored under one key of the document. References are rewritten to point there, so the
//! rest of the crate follows references within one document only, and files that refer to one another are no
//! special case.

use std::collections::{BTreeMap, VecDeque};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::api::Object;
use super::{anchors, read, walk};
use crate::{ReadError, ReadFile, Remark};

/// The place of the other files in the joined document.
pub(super) const FILES: &str = "x-plimsoll-files";

/// Files of a document: public ones that are split by operation have up to a few thousand.
const MOST_FILES: usize = 5000;

/// Bytes of the other files of a document: the largest public document (Microsoft Graph) has 40 MB.
const MOST_BYTES: usize = 64 << 20;

/// References in a row that lead to `paths` or a part of `components`: real ones have two or three, and circles must
/// end.
const MOST_HOPS: usize = 24;

/// A document with all files that it refers to.
pub(super) struct Bundle {
    pub(super) root: Value,
    /// The names of the other files, relative to the folder of the document.
    pub(super) files: Vec<String>,
    /// The files that could not be read.
    pub(super) problems: Vec<Remark>,
}

/// Joins a document with the files that it refers to.
///
/// - `own_name`: the file name of the document, to recognise references back to it.
/// - `read_file`: reads a file by its path relative to the folder of the document, with `/` between segments and
///   without `..`.
pub(super) fn bundle(mut root: Value, own_name: &str, read_file: ReadFile<'_>) -> Bundle {
    let mut bundler = Bundler {
        own_name,
        is_known: BTreeMap::new(),
        pending: VecDeque::new(),
        problems: Vec::new(),
    };
    anchors::resolve(&mut root);
    bundler.rewrite(&mut root, "");
    let mut files = Object::new();
    let mut bytes = 0;
    while let Some(name) = bundler.pending.pop_front() {
        match content(&name, files.len(), &mut bytes, read_file) {
            Ok(mut value) => {
                anchors::resolve(&mut value);
                bundler.rewrite(&mut value, &name);
                files.insert(name, value);
            }
            Err(reason) => bundler
                .problems
                .push(Remark::whole(format!("refers to `{name}`, which {reason}"))),
        }
    }
    let names = files.keys().cloned().collect();
    if let (false, Some(root)) = (files.is_empty(), root.as_object_mut()) {
        root.insert(FILES.to_owned(), Value::Object(files));
    }
    expand_containers(&mut root);
    Bundle {
        root,
        files: names,
        problems: bundler.problems,
    }
}

/// A reference within a joined document as its files have it.
pub(super) fn shown(reference: &str) -> String {
    let inner = reference.strip_prefix(&format!("#/{FILES}/"));
    let Some(inner) = inner else {
        return reference.to_owned();
    };
    let (name, pointer) = inner.split_at(inner.find('/').unwrap_or(inner.len()));
    let name = name.replace("~1", "/").replace("~0", "~");
    if pointer.is_empty() {
        return name;
    }
    format!("{name}#{pointer}")
}

/// Why a file that a document refers to is not part of it.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("is one file more than the limit of {MOST_FILES}")]
    TooMany,
    #[error("cannot be read: {0}")]
    Read(ReadError),
    #[error("exceeds the limit of {} MiB for all files of a document", MOST_BYTES >> 20)]
    TooLong,
    #[error("is not UTF-8")]
    NotUtf8,
    /// It is neither JSON nor YAML.
    #[error("{0}")]
    Wrong(String),
}

fn content(
    name: &str,
    count: usize,
    bytes: &mut usize,
    read_file: ReadFile<'_>,
) -> Result<Value, FileError> {
    if count >= MOST_FILES {
        return Err(FileError::TooMany);
    }
    let content = read_file(name).map_err(FileError::Read)?;
    *bytes = bytes.saturating_add(content.len());
    if *bytes > MOST_BYTES {
        return Err(FileError::TooLong);
    }
    let text = String::from_utf8(content).map_err(|_| FileError::NotUtf8)?;
    read(text.trim_start_matches('\u{feff}')).map_err(|remarks| {
        let reasons = remarks
            .into_iter()
            .map(|remark| match remark.place {
                crate::Place::Line(line) => format!("{} (line {line})", remark.message),
                _ => remark.message,
            })
            .collect::<Vec<_>>();
        FileError::Wrong(reasons.join("; "))
    })
}

struct Bundler<'a> {
    own_name: &'a str,
    /// Names of files that have been queued; false if the name was rejected.
    is_known: BTreeMap<String, bool>,
    pending: VecDeque<String>,
    problems: Vec<Remark>,
}

impl Bundler<'_> {
    /// Rewrites the references of one file.
    ///
    /// - `file`: its name; empty for the document itself.
    fn rewrite(&mut self, value: &mut Value, file: &str) {
        walk::objects(value, &mut |object| {
            let Some(Value::String(reference)) = object.get_mut("$ref") else {
                return;
            };
            if let Some(rewritten) = self.rewritten(reference, file) {
                *reference = rewritten;
            }
        });
    }

    /// The same reference within the joined document; `None` if it stays as it is.
    fn rewritten(&mut self, reference: &str, file: &str) -> Option<String> {
        let (target, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
        let is_pointer = fragment.is_empty() || fragment.starts_with('/');
        // Documents on the network are not fetched, and anchors need the names of all schemas.
        if target.contains("://") || target.starts_with("//") || !is_pointer {
            return None;
        }
        let name = if target.is_empty() {
            file.to_owned()
        } else {
            let target = percent_decode_str(target).decode_utf8().ok()?;
            let Some(name) = joined(file, &target) else {
                if self.is_known.insert(target.to_string(), false).is_none() {
                    let message = format!(
                        "refers to `{target}`, which is outside the folder of the document"
                    );
                    let hint = "move the document to the folder that holds all of its files";
                    self.problems.push(Remark::whole(message).hint(hint));
                }
                return None;
            };
            name
        };
        if name.is_empty() || name == self.own_name {
            return Some(format!("#{fragment}"));
        }
        if self.is_known.insert(name.clone(), true).is_none() {
            self.pending.push_back(name.clone());
        }
        let escaped = name.replace('~', "~0").replace('/', "~1");
        Some(format!("#/{FILES}/{escaped}{fragment}"))
    }
}

/// The path of a file that another names, relative to the folder of the document; `None` if it is outside.
fn joined(from: &str, target: &str) -> Option<String> {
    if target.starts_with('/') || target.contains(['\\', '\0', ':']) {
        return None;
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut segments: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            segment => segments.push(segment),
        }
    }
    Some(segments.join("/"))
}

/// Replaces `paths: {$ref: …}` and `components: {schemas: {$ref: …}}` by their targets, because other references
/// lead through them.
fn expand_containers(root: &mut Value) {
    let mut pointers: Vec<String> = ["paths", "webhooks", "components"]
        .iter()
        .chain(&["definitions", "parameters", "responses"])
        .map(|key| format!("/{key}"))
        .collect();
    for part in [
        "schemas",
        "responses",
        "parameters",
        "examples",
        "requestBodies",
        "headers",
        "securitySchemes",
        "pathItems",
    ] {
        pointers.push(format!("/components/{part}"));
    }
    for pointer in pointers {
        for _ in 0..MOST_HOPS {
            let container = root.pointer(&pointer);
            let reference = container.and_then(|it| it.get("$ref"));
            let target = reference
                .and_then(Value::as_str)
                .and_then(|reference| reference.strip_prefix('#'))
                // A container that holds itself would double with each hop; files never change.
                .filter(|pointer| pointer.starts_with(&format!("/{FILES}/")))
                .and_then(|pointer| root.pointer(pointer));
            let Some(target) = target.cloned() else {
                break;
            };
            if let Some(container) = root.pointer_mut(&pointer) {
                *container = target;
            }
        }
    }
}

#[cfg(test)]
mod tests;
