//! Files of state, which hold credentials and addresses of people: only the user of this process may read them, whatever its
//! umask permits.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;

fn options() -> OpenOptions {
    let mut options = File::options();
    options.write(true).mode(FILE);
    options
}

/// Opens a file to write, and makes it if it is not there.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = options().create(true).truncate(false).open(path)?;
    close(path)?;
    Ok(file)
}

/// Makes a file that is not there.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    options().create_new(true).open(path)
}

/// Makes a folder and those above it, if they are not there. Those that are keep their permissions.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Takes the permissions of others from a file, if it is there and they have any: an earlier version made it.
pub(crate) fn close(path: &Path) -> io::Result<()> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let mode = found.permissions().mode();
    // Only its owner has any.
    if !found.is_file() || mode & 0o7777 == mode & 0o7700 {
        return Ok(());
    }
    match fs::set_permissions(path, Permissions::from_mode(FILE)) {
        // The file of another user, such as one of root that a group may write: its owner decides.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_and_folders_are_of_their_owner_alone() {
        let folder = tempfile::TempDir::new().unwrap();
        let below = folder.path().join("a/b");
        create_folder(&below).unwrap();
        assert_eq!(mode(&below), FOLDER);
        assert_eq!(mode(below.parent().unwrap()), FOLDER);
        let file = below.join("file");
        open(&file).unwrap();
        assert_eq!(mode(&file), FILE);
        fs::write(&file, "one").unwrap();
        assert!(create_new(&file).is_err());
        create_new(&below.join("new")).unwrap();
        assert_eq!(mode(&below.join("new")), FILE);
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        open(&file).unwrap();
        assert_eq!(
            (mode(&file), fs::read(&file).unwrap()),
            (FILE, b"one".to_vec())
        );
        close(&below.join("missing")).unwrap();
    }
}
