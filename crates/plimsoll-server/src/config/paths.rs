//! The files and folders that a configuration names.
//!
//! A text of a configuration becomes a path here and nowhere else. So the server can permit itself these paths and no others
//! (`--sandbox`), and a reload that names another one is refused at its place in the file.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::config::document::{Value, as_text};

/// What a server does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathUse {
    /// Reads the file, or everything below the folder.
    Read,
    /// Writes the file, and makes it again when it was moved away: a log, a socket.
    WriteFile,
    /// Reads and writes everything below the folder, which may not exist yet.
    WriteFolder,
}

/// A path that a configuration names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedPath {
    /// The path, relative to the working directory if it is relative.
    pub path: PathBuf,
    /// Its use.
    pub usage: PathUse,
}

/// A path that the configuration named only after the server had confined itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not among the paths that the sandbox permits since the start", path.display())]
pub struct OutsideSandbox {
    /// The path.
    pub path: PathBuf,
}

impl OutsideSandbox {
    /// What to do about it.
    pub const HINT: &str = "restart the server to use it";
}

/// Makes paths of the texts of a configuration while it is compiled, and keeps what they were.
#[derive(Debug)]
pub struct NamedPaths<'c> {
    /// The folder that paths are relative to.
    directory: &'c Path,
    /// What is permitted; absent without a sandbox.
    permitted: Option<&'c PermittedPaths>,
    named: RefCell<BTreeSet<NamedPath>>,
}

impl<'c> NamedPaths<'c> {
    pub(crate) fn new(directory: &'c Path, permitted: Option<&'c PermittedPaths>) -> Self {
        Self {
            directory,
            permitted,
            named: RefCell::default(),
        }
    }

    /// The path that `value` names, relative to the folder of the configuration.
    ///
    /// A value that is no text, and a path that the sandbox does not permit, are noted as errors.
    pub fn path(&self, value: &Value<'_>, usage: PathUse) -> Option<PathBuf> {
        let path = self.directory.join(as_text(value)?);
        match self.note(&path, usage) {
            Ok(()) => Some(path),
            Err(outside) => value.wrong_with(outside, Some(OutsideSandbox::HINT.to_owned())),
        }
    }

    /// As [`path`](Self::path), for a path that is read.
    pub fn read(&self, value: &Value<'_>) -> Option<PathBuf> {
        self.path(value, PathUse::Read)
    }

    /// Notes a path that follows from others, or that files name which the configuration names.
    pub fn note(&self, path: &Path, usage: PathUse) -> Result<(), OutsideSandbox> {
        if let Some(permitted) = self.permitted
            && !permitted.permits(path, usage)
        {
            let path = path.to_owned();
            return Err(OutsideSandbox { path });
        }
        self.named.borrow_mut().insert(NamedPath {
            path: path.to_owned(),
            usage,
        });
        Ok(())
    }

    /// The folder that paths are relative to.
    pub(crate) fn directory(&self) -> &'c Path {
        self.directory
    }

    pub(crate) fn into_named(self) -> Vec<NamedPath> {
        self.named.into_inner().into_iter().collect()
    }
}

/// The folders and files that a server may use for as long as it runs.
///
/// A rule of the kernel holds for a file that exists, not for its name. A file is therefore permitted with its folder, where it may
/// be replaced, and a link with the folders of both of its ends. Folders that many programs share are the exception: only the
/// file itself is permitted there, until it is replaced.
#[derive(Debug, Clone, Default)]
pub struct PermittedPaths {
    roots: BTreeSet<NamedPath>,
}

impl PermittedPaths {
    /// Permits what `named` is used for. Paths that do not exist are permitted once there is a folder above them that is.
    pub fn add(&mut self, named: &NamedPath) {
        let path = absolute(&named.path);
        let target = resolved(&path);
        match named.usage {
            PathUse::Read if target.is_dir() => {
                if is_link(&path) {
                    self.add_folder_of(&path, PathUse::Read);
                    self.add_folder_of(&target, PathUse::Read);
                }
                self.insert(target, PathUse::Read);
            }
            PathUse::Read => {
                self.add_folder_of(&path, PathUse::Read);
                self.add_folder_of(&target, PathUse::Read);
                self.insert(target, PathUse::Read);
            }
            PathUse::WriteFile => {
                self.add_folder_of(&target, PathUse::WriteFile);
                self.insert(target, PathUse::WriteFile);
            }
            PathUse::WriteFolder => self.insert(target, PathUse::WriteFolder),
        }
    }

    /// Permits to read `path`, as it is now, and nothing beside it.
    pub fn add_alone(&mut self, path: &Path) {
        self.insert(resolved(&absolute(path)), PathUse::Read);
    }

    /// Whether `path` may be used so.
    pub fn permits(&self, path: &Path, usage: PathUse) -> bool {
        let target = resolved(&absolute(path));
        self.roots.iter().any(|root| {
            let is_covered = root.usage == usage || root.usage == PathUse::WriteFolder;
            is_covered && target.starts_with(&root.path)
        })
    }

    /// The folders and files, with links resolved.
    pub fn roots(&self) -> impl Iterator<Item = &NamedPath> {
        self.roots.iter()
    }

    /// The folder above `path`, unless it is one that many programs share.
    fn add_folder_of(&mut self, path: &Path, usage: PathUse) {
        let Some(folder) = path.parent().map(resolved) else {
            return;
        };
        if !is_shared(&folder) {
            self.insert(folder, usage);
        }
    }

    fn insert(&mut self, path: PathBuf, usage: PathUse) {
        self.roots.insert(NamedPath { path, usage });
    }
}

/// Whether `path` lies directly in a folder that many programs share, where only files that exist are permitted.
pub fn is_in_shared_folder(path: &Path) -> bool {
    let target = resolved(&absolute(path));
    target.parent().is_none_or(is_shared)
}

/// Folders whose content belongs to more than one program or user.
fn is_shared(folder: &Path) -> bool {
    const SHARED: [&str; 20] = [
        "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/media", "/mnt", "/opt", "/proc",
        "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/lib",
    ];
    let is_home = folder.parent() == Some(Path::new("/home"));
    is_home || SHARED.iter().any(|shared| folder == Path::new(shared))
}

/// An empty path is the working directory.
fn absolute(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

/// `path` without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
