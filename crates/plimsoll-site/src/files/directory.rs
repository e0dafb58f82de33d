//! A tree on disk. Nothing outside of its root is ever opened, whatever links say.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_server::{Coding, FilePart};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use crate::files::changes::Changes;
use crate::files::tree::{Listed, SiteFile, StoredCopy, Tag, Tree, TreeEntry};

/// Entries of one directory that are listed: more make a page of over 1 MiB, which is rendered for each request.
const MOST_LISTED: usize = 10_000;

/// A directory, looked up anew for each file, so that a link to it may be turned to another one.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    changes: Arc<Changes>,
}

impl Directory {
    pub(crate) fn new(root: PathBuf, changes: Arc<Changes>) -> Self {
        Self { root, changes }
    }

    fn open(&self, path: &str) -> io::Result<File> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, &self.root, flags, Mode::empty()).map_err(io_error)?;
        let path = if path.is_empty() { "." } else { path };
        beneath(&root, path).map(File::from).map_err(io_error)
    }

    /// A compressed copy beside a file, unless it is older.
    fn copy(&self, path: &str, file: &SiteFile, coding: Coding) -> Option<StoredCopy> {
        let suffix = match coding {
            Coding::Zstd => "zst",
            Coding::Brotli => "br",
            Coding::Gzip => "gz",
        };
        let copy = regular(self.open(&format!("{path}.{suffix}")).ok()?).ok()??;
        (copy.modified >= file.modified).then_some(StoredCopy {
            coding,
            part: copy.part,
            tag: copy.tag,
        })
    }
}

impl Tree for Directory {
    fn find(&self, path: &str) -> io::Result<TreeEntry> {
        let file = self.open(path)?;
        Ok(match regular(file)? {
            Some(file) => TreeEntry::File(file),
            None => TreeEntry::Directory,
        })
    }

    fn copies(&self, path: &str, file: &SiteFile) -> Vec<StoredCopy> {
        let copies = Coding::ALL.into_iter();
        copies
            .filter_map(|coding| self.copy(path, file, coding))
            .collect()
    }

    fn list(&self, path: &str) -> io::Result<Vec<Listed>> {
        let directory = self.open(path)?;
        let mut listed = Vec::new();
        for entry in Dir::read_from(&directory)?.take(MOST_LISTED) {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name == "." || name == ".." {
                continue;
            }
            // A link that leads nowhere, or out of the root, is not worth showing.
            let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let mut kind = FileType::from_raw_mode(stat.st_mode);
            let mut length = u64::try_from(stat.st_size).unwrap_or(0);
            let mut modified = u64::try_from(stat.st_mtime).ok();
            if kind == FileType::Symlink {
                let path = if path.is_empty() {
                    name.to_owned()
                } else {
                    format!("{path}/{name}")
                };
                match self.find(&path) {
                    Ok(TreeEntry::File(file)) => {
                        kind = FileType::RegularFile;
                        (length, modified) = (file.part.length(), file.modified);
                    }
                    Ok(TreeEntry::Directory) => kind = FileType::Directory,
                    Err(_) => continue,
                }
            }
            if matches!(kind, FileType::RegularFile | FileType::Directory) {
                listed.push(Listed {
                    name: name.to_owned(),
                    is_directory: kind == FileType::Directory,
                    length: if kind == FileType::Directory {
                        0
                    } else {
                        length
                    },
                    modified,
                });
            }
        }
        Ok(listed)
    }

    fn generation(&self) -> u64 {
        self.changes.generation()
    }
}

/// The file with its metadata; `None` for a directory.
fn regular(file: File) -> io::Result<Option<SiteFile>> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Ok(None);
    }
    if !metadata.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let length = metadata.len();
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let modified = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
    let changed = nanoseconds(metadata.ctime(), metadata.ctime_nsec());
    Ok(Some(SiteFile {
        part: FilePart::new(Arc::new(file), 0, length),
        modified: u64::try_from(metadata.mtime()).ok(),
        tag: Tag {
            is_weak: true,
            // Times of modification are set at will: by `touch`, by stores that have none, by copies that keep them.
            opaque: format!("{modified:x}-{length:x}-{changed:x}-{:x}", metadata.ino()),
            changed,
        },
    }))
}

/// Opens for reading, without waiting for the other end of a pipe.
const READING: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

#[cfg(target_os = "linux")]
fn beneath(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..8 {
        match openat2(root, path, READING, Mode::empty(), resolve) {
            // Something was renamed meanwhile, and the kernel does not know where that led.
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Not known to old kernels, and forbidden by some sandboxes.
            Err(Errno::NOSYS | Errno::PERM) => return beneath_by_steps(root, path),
            result => return result,
        }
    }
    Err(Errno::NOENT)
}

#[cfg(not(target_os = "linux"))]
fn beneath(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    beneath_by_steps(root, path)
}

/// Opens one name after the other and follows no links at all.
fn beneath_by_steps(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    let (directories, last) = path.rsplit_once('/').unwrap_or(("", path));
    let mut at: Option<OwnedFd> = None;
    let step = OFlags::DIRECTORY | OFlags::NOFOLLOW | READING;
    for name in directories.split('/').filter(|name| !name.is_empty()) {
        let next = openat(at.as_ref().unwrap_or(root), name, step, Mode::empty())?;
        at = Some(next);
    }
    let flags = OFlags::NOFOLLOW | READING;
    openat(at.as_ref().unwrap_or(root), last, flags, Mode::empty())
}

/// A file that may not be read counts as missing.
fn io_error(error: Errno) -> io::Error {
    match error {
        Errno::NOENT
        | Errno::NOTDIR
        | Errno::XDEV
        | Errno::LOOP
        | Errno::NAMETOOLONG
        | Errno::ACCESS
        | Errno::INVAL
        | Errno::NXIO => io::ErrorKind::NotFound.into(),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn root() -> (tempfile::TempDir, OwnedFd) {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(outer.path().join("secret"), "s").unwrap();
        fs::write(root.join("a/b/c"), "c").unwrap();
        symlink("a/b/c", root.join("within")).unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("/etc/passwd", root.join("absolute")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let opened = File::open(&root).unwrap().into();
        (outer, opened)
    }

    #[test]
    fn links_lead_nowhere_outside() {
        let (_outer, root) = root();
        for path in [
            "out",
            "absolute",
            "up/secret",
            "up",
            "loop",
            "../secret",
            "/etc/passwd",
        ] {
            assert!(beneath(&root, path).is_err(), "{path}");
        }
        assert!(beneath(&root, "a/b/c").is_ok());
        assert!(beneath(&root, "within").is_ok() || cfg!(not(target_os = "linux")));
    }

    #[test]
    fn by_steps_no_link_is_followed() {
        let (_outer, root) = root();
        for path in [
            "out",
            "absolute",
            "up/secret",
            "within",
            "loop",
            "a/x",
            "a/b/c/d",
        ] {
            assert!(beneath_by_steps(&root, path).is_err(), "{path}");
        }
        for path in ["a/b/c", "a", "."] {
            assert!(beneath_by_steps(&root, path).is_ok(), "{path}");
        }
    }
}
