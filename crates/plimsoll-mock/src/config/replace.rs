//! Replacing a file as a whole, so that it always holds either the old or the new content.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// Writes a file beside `file` and renames it over `file`; both the file and its folder are synced. Blocks.
///
/// A file that exists keeps its permissions, owner and group, and a link stays a link. If `write` returns false, or
/// anything fails, the old file stays as it is.
///
/// - `write`: writes the new content; false to keep the old one.
pub fn replace(
    file: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<bool>,
) -> io::Result<bool> {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let beside = beside(&file);
    let replaced = write_beside(&file, &beside, write).and_then(|is_wanted| {
        if is_wanted {
            fs::rename(&beside, &file)?;
        }
        Ok(is_wanted)
    });
    if !matches!(replaced, Ok(true)) {
        // The first error is the one to report.
        fs::remove_file(&beside).ok();
        return replaced;
    }
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(true)
}

fn write_beside(
    file: &Path,
    beside: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<bool>,
) -> io::Result<bool> {
    let old = match fs::metadata(file) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // An old one may be left of a process that was killed.
    match fs::remove_file(beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if old.is_some() {
        // No other user can read it before it has the permissions of the old one.
        options.mode(0o600);
    }
    let new = options.open(beside)?;
    if let Some(old) = &old {
        let own = new.metadata()?;
        if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
            fchown(&new, Some(old.uid()), Some(old.gid()))?;
        }
        // Behind the owner, whose change resets some permissions.
        new.set_permissions(old.permissions())?;
    }
    let mut writer = BufWriter::new(new);
    let is_wanted = write(&mut writer)?;
    writer.flush()?;
    writer.get_ref().sync_all()?;
    Ok(is_wanted)
}

/// Hidden, since folders show no file whose name begins with a dot.
fn beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(".new");
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_keeps_its_permissions_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret.json");
        let link = folder.path().join("link.json");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let put = |text: &'static str, is_wanted| {
            replace(&link, |new| {
                new.write_all(text.as_bytes()).map(|()| is_wanted)
            })
            .unwrap()
        };
        assert!(put("new", true));
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(!put("newer", false));
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        let failed = replace(&file, |_| Err(io::Error::other("no")));
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
