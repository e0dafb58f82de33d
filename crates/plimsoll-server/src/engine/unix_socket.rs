//! Listening sockets in the file system.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A socket in the file system; its file is removed with it, unless another has taken its place.
#[derive(Debug)]
pub struct UnixFile {
    path: PathBuf,
    /// By what the file is known: device and number.
    id: (u64, u64),
}

/// Listens at `path`.
///
/// It gets there at once and with its permissions: until then it has another name beside it. It is no content that must
/// outlast a loss of power, so nothing waits for the disk as [`plimsoll_wire::files`] does.
///
/// - `mode`: permissions, such as `0o660`; those that the system gives to new files if absent.
/// - `replaces`: takes the place of a socket with a listener; without it, only of one without.
///
/// Fails with [`io::ErrorKind::AlreadyExists`] if there is a file that is no socket, with [`io::ErrorKind::AddrInUse`] if
/// there is a listener that is not to be replaced, and as the system's calls do.
pub fn bind_unix_socket(
    path: &Path,
    mode: Option<u32>,
    replaces: bool,
) -> io::Result<(UnixListener, UnixFile)> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "there is a file that is no socket",
            ));
        }
        Ok(_) if replaces => {}
        Ok(_) if UnixStream::connect(path).is_ok() => {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        // There is no listener: the socket was left behind.
        Ok(_) => {}
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    fs::remove_file(&beside).ok();
    let listener = UnixListener::bind(&beside)?;
    let placed = place(&beside, path, mode);
    if placed.is_err() {
        fs::remove_file(&beside).ok();
    }
    listener.set_nonblocking(true)?;
    Ok((listener, placed?))
}

fn place(beside: &Path, path: &Path, mode: Option<u32>) -> io::Result<UnixFile> {
    if let Some(mode) = mode {
        fs::set_permissions(beside, Permissions::from_mode(mode))?;
    }
    let id = id(beside)?;
    fs::rename(beside, path)?;
    Ok(UnixFile {
        path: path.to_owned(),
        id,
    })
}

fn id(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

impl UnixFile {
    /// The file of a socket that was bound by another process.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            id: id(path)?,
        })
    }

    /// Leaves the file to another process.
    pub(crate) fn leave(mut self) {
        self.id = (0, 0);
    }
}

impl Drop for UnixFile {
    fn drop(&mut self) {
        if id(&self.path).is_ok_and(|id| id == self.id) {
            fs::remove_file(&self.path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_takes_the_place_of_one_that_was_left_and_goes_with_its_value() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.sock");
        let (listener, file) = bind_unix_socket(&path, Some(0o600), false).unwrap();
        let mode = fs::metadata(&path).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let kind = |result: io::Result<_>| result.map(|_| ()).unwrap_err().kind();
        assert_eq!(
            kind(bind_unix_socket(&path, None, false)),
            io::ErrorKind::AddrInUse
        );
        // Another takes over, and the first one leaves its file alone.
        let (_other, other_file) = bind_unix_socket(&path, None, true).unwrap();
        drop((listener, file));
        UnixStream::connect(&path).unwrap();
        drop(other_file);
        assert!(!path.exists());
        // One that was never removed.
        drop(UnixListener::bind(&path).unwrap());
        let (_listener, _file) = bind_unix_socket(&path, None, false).unwrap();
        UnixStream::connect(&path).unwrap();
        let text = directory.path().join("text");
        fs::write(&text, "x").unwrap();
        assert_eq!(
            kind(bind_unix_socket(&text, None, true)),
            io::ErrorKind::AlreadyExists
        );
        let names = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(names, 2, "nothing is left beside them");
    }
}
