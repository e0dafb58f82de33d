//! The file of this program: where its packed site lies, and what more processes of it are started by.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_wire::process::find;

/// The file, as the system has it, or else by the name that the program was started with: a root with this program alone has
/// no `/proc`.
pub(crate) fn own_file() -> io::Result<PathBuf> {
    std::env::current_exe().or_else(|error| {
        let name = std::env::args_os().next();
        name.and_then(|name| started_as(&name)).ok_or(error)
    })
}

/// The file of a program that was started by that name.
fn started_as(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return path.canonicalize().ok();
    }
    find(path.to_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_the_name_that_it_was_started_with() {
        let own = own_file().unwrap();
        assert_eq!(started_as(own.as_os_str()), own.canonicalize().ok());
        let shell = started_as(OsStr::new("sh")).unwrap();
        assert!(shell.is_absolute(), "{}", shell.display());
        assert_eq!(started_as(OsStr::new("/no/such-program")), None);
        assert_eq!(started_as(OsStr::new("no-such-program-4711")), None);
    }
}
