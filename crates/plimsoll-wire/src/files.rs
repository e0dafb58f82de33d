//! Files that are replaced whole: a reader finds the old content or the new one, also after a loss of power.
//!
//! [`replace`] does it at once, a [`NewFile`] when its content is complete. It blocks.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// The permissions of files that only their owner may read.
const PRIVATE: u32 = 0o600;

/// Processes that may write to one place at once.
const MOST_WRITERS: u32 = 32;

/// Replaces a file by one with this content; see [`NewFile::beside`] for its permissions.
pub fn replace(place: &Path, content: &[u8]) -> io::Result<()> {
    NewFile::beside(place)?.put_content(content)
}

/// The same with a file that only its owner may read.
pub fn replace_private(place: &Path, content: &[u8]) -> io::Result<()> {
    NewFile::private(place)?.put_content(content)
}

/// A file beside its place, written there and then put into the place; dropped before, it leaves nothing behind.
///
/// Its name begins with a dot, since servers and watchers pass over such names. Each of several processes that write to one
/// place has a file of its own, and the next one removes the file of a process that was killed.
#[derive(Debug)]
pub struct NewFile {
    /// Locked as long as it is written.
    file: File,
    path: PathBuf,
    place: PathBuf,
    is_placed: bool,
}

impl NewFile {
    /// A file that will have the permissions, owner and group of the one in its place, or those of any new file.
    ///
    /// - `place`: a link to a file stays a link, and the file that it leads to is replaced. The folder must exist.
    pub fn beside(place: &Path) -> io::Result<Self> {
        let place = resolved(place);
        let old = match fs::metadata(&place) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // No other user can read it before it has the permissions of the old one.
        let mode = old.as_ref().map(|_| PRIVATE);
        let new = Self::create(place, mode)?;
        if let Some(old) = old {
            new.take_over_permissions(&old)?;
        }
        Ok(new)
    }

    /// A file that only its owner may read, also if others could read the one in its place.
    pub fn private(place: &Path) -> io::Result<Self> {
        Self::create(resolved(place), Some(PRIVATE))
    }

    /// The file, to be written.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Its path until it is in its place.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the file into its place, once its content is on disk; the name is on disk when this returns.
    pub fn put(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, &self.place)?;
        self.is_placed = true;
        File::open(folder_of(&self.place))?.sync_all()
    }

    fn put_content(mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)?;
        self.put()
    }

    /// - `mode`: permissions; absent for those of any new file.
    fn create(place: PathBuf, mode: Option<u32>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if let Some(mode) = mode {
            options.mode(mode);
        }
        for number in 0..MOST_WRITERS {
            let path = name_beside(&place, number);
            remove_abandoned(&path);
            match options.open(&path) {
                Ok(file) if is_held(&file, &path) => {
                    return Ok(Self {
                        file,
                        path,
                        place,
                        is_placed: false,
                    });
                }
                // Another process held it for abandoned before it was locked, or writes to this place too.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        let message = format!("{MOST_WRITERS} processes write to {}", place.display());
        Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
    }

    fn take_over_permissions(&self, old: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
            fchown(&self.file, Some(old.uid()), Some(old.gid()))?;
        }
        // Behind the owner, whose change resets some permissions.
        let mode = old.permissions().mode() & 0o7777;
        self.file.set_permissions(Permissions::from_mode(mode))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_placed {
            // Whatever made it useless is the error to report.
            fs::remove_file(&self.path).ok();
        }
    }
}

/// Where links lead to; a path without a file stays as it is.
fn resolved(place: &Path) -> PathBuf {
    place.canonicalize().unwrap_or_else(|_| place.to_owned())
}

fn name_beside(place: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(match number {
        0 => ".new".to_owned(),
        number => format!(".new{number}"),
    });
    place.with_file_name(name)
}

/// Removes the file of a process that has ended before it was put into its place.
fn remove_abandoned(path: &Path) {
    // Opening something else, such as a pipe, may wait for ever.
    if !fs::symlink_metadata(path).is_ok_and(|it| it.is_file()) {
        return;
    }
    let Ok(left) = File::open(path) else { return };
    // Locks end with their process. Where there are none, the file stays.
    if left.try_lock().is_ok() && is_at(&left, path) {
        fs::remove_file(path).ok();
    }
}

/// Locks a file; false if it is no longer the one at `path`, or another process has locked it.
fn is_held(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => false,
        // Some network file systems have no locks, and there no process removes the file of another one.
        Ok(()) | Err(TryLockError::Error(_)) => is_at(file, path),
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(own), Ok(found)) => (own.dev(), own.ino()) == (found.dev(), found.ino()),
        _ => false,
    }
}

/// The folder of a path; without one it is the working directory.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests;
