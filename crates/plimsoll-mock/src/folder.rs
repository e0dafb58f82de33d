//! A folder whose files answer requests.
//!
//! [`Folder`] finds the file of a path, never outside of the folder; [`contents`] makes of a file what is sent.

pub mod contents;

mod resolve;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

/// The extensions to try behind a name without one, in this order.
const INFERRED: [&str; 3] = [".json", ".json5", ".csv"];

/// The files that respond for a folder, in this order.
const INDEX: [&str; 4] = ["index.json", "index.json5", "index.csv", "index.html"];

/// A folder to serve.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
    hidden: HashSet<PathBuf>,
}

impl Folder {
    /// The folder at `root`, which must be there.
    pub fn new(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self {
            root,
            hidden: HashSet::new(),
        })
    }

    /// Files that are never served, such as those of the rules; whichever are there.
    #[must_use]
    pub fn hiding(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        let files = files
            .into_iter()
            .filter_map(|file| file.canonicalize().ok());
        self.hidden.extend(files);
        self
    }

    /// Its path, links resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file that answers `path`, links resolved; `None` if there is no such file.
    ///
    /// Reads directories, so it is not to be called where others wait.
    ///
    /// - `path`: decoded and normalised, as [`crate::rules::path::decoded`] gives it.
    pub fn find(&self, path: &str) -> Option<PathBuf> {
        let segments: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
        let is_hidden = |segment: &&str| {
            segment.starts_with('.') && *segment != ".well-known" || segment.contains('\0')
        };
        if segments.iter().any(is_hidden) {
            return None;
        }
        let found = resolve::find(&self.root, &segments)?;
        // Links are followed, but not out of the folder. They may lead through names that begin with a dot: every file of a
        // ConfigMap of Kubernetes is a link into `..data`.
        let found = found.canonicalize().ok()?;
        let is_inside = found.starts_with(&self.root);
        (is_inside && !self.hidden.contains(&found)).then_some(found)
    }
}

#[cfg(test)]
mod tests;
