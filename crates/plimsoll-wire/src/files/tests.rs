use std::os::unix::fs::symlink;
use std::sync::Barrier;
use std::thread;

use tempfile::TempDir;

use super::*;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

fn state(path: &Path) -> (String, u32) {
    let mode = fs::metadata(path).unwrap().mode() & 0o7777;
    (fs::read_to_string(path).unwrap(), mode)
}

#[test]
fn a_file_is_replaced_whole_and_keeps_its_permissions() {
    let folder = Folder::new();
    for mode in [0o600, 0o640, 0o644, 0o755] {
        let file = folder.file("file", "old and longer", mode);
        replace(&file, b"new").unwrap();
        assert_eq!(state(&file), ("new".to_owned(), mode));
    }
    // A new file has the permissions of any other.
    let (new, other) = (folder.path("new"), folder.path("other"));
    replace(&new, b"").unwrap();
    fs::write(&other, "").unwrap();
    assert_eq!(state(&new), state(&other));
    assert_eq!(folder.names(), ["file", "new", "other"]);
}

#[test]
fn a_private_file_stays_private_or_becomes_it() {
    let folder = Folder::new();
    let place = folder.file("open", "old", 0o644);
    replace_private(&place, b"key").unwrap();
    assert_eq!(state(&place), ("key".to_owned(), 0o600));
    let place = folder.path("new");
    let mut new = NewFile::private(&place).unwrap();
    new.file().write_all(b"key").unwrap();
    assert_eq!(state(new.path()), ("key".to_owned(), 0o600));
    assert!(!place.exists());
    new.put().unwrap();
    assert_eq!(state(&place), ("key".to_owned(), 0o600));
    assert_eq!(folder.names(), ["new", "open"]);
}

#[test]
fn a_file_is_written_with_the_permissions_of_the_one_that_it_replaces() {
    let folder = Folder::new();
    let place = folder.file("secret", "old", 0o600);
    let new = NewFile::beside(&place).unwrap();
    assert_eq!(fs::metadata(new.path()).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_link_stays_a_link() {
    let folder = Folder::new();
    fs::create_dir(folder.path("below")).unwrap();
    let file = folder.file("below/file", "old", 0o640);
    let (link, again) = (folder.path("link"), folder.path("again"));
    symlink("below/file", &link).unwrap();
    symlink(&link, &again).unwrap();
    for (place, content) in [(&link, "one"), (&again, "two")] {
        replace(place, content.as_bytes()).unwrap();
        assert!(fs::symlink_metadata(place).unwrap().is_symlink());
        assert_eq!(state(&file), (content.to_owned(), 0o640));
    }
    assert_eq!(fs::read_dir(folder.path("below")).unwrap().count(), 1);
}

#[test]
fn a_file_that_is_not_put_into_its_place_leaves_nothing_behind() {
    let folder = Folder::new();
    let place = folder.file("file", "old", 0o644);
    let mut new = NewFile::beside(&place).unwrap();
    new.file().write_all(b"half").unwrap();
    assert_eq!(folder.names(), [".file.new", "file"]);
    drop(new);
    // A file cannot take the place of a folder.
    let occupied = folder.path("folder");
    fs::create_dir(&occupied).unwrap();
    fs::write(occupied.join("file"), "").unwrap();
    replace(&occupied, b"new").unwrap_err();
    assert_eq!(folder.names(), ["file", "folder"]);
    assert_eq!(state(&place).0, "old");
}

#[test]
fn a_folder_that_takes_no_files_is_an_error() {
    let folder = Folder::new();
    let missing = replace(&folder.path("missing/file"), b"").unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    let file = folder.file("file", "old", 0o644);
    let below = replace(&file.join("below"), b"").unwrap_err();
    assert_eq!(below.kind(), io::ErrorKind::NotADirectory);
    // Not even root writes there.
    replace(Path::new("/proc/self/new"), b"").unwrap_err();
    assert_eq!(folder.names(), ["file"]);
}

#[test]
fn the_file_of_a_process_that_was_killed_is_removed() {
    let folder = Folder::new();
    let place = folder.path("file");
    folder.file(".file.new", "left behind, and longer", 0o666);
    replace_private(&place, b"new").unwrap();
    assert_eq!(state(&place), ("new".to_owned(), 0o600));
    assert_eq!(folder.names(), ["file"]);
    // Something else of that name stays, and is not in the way.
    fs::create_dir(folder.path(".file.new")).unwrap();
    replace(&place, b"newer").unwrap();
    assert_eq!(state(&place).0, "newer");
    assert_eq!(folder.names(), [".file.new", "file"]);
}

#[test]
fn writers_to_one_place_do_not_share_a_file() {
    let folder = Folder::new();
    let place = folder.path("file");
    let (mut one, mut other) = (
        NewFile::beside(&place).unwrap(),
        NewFile::beside(&place).unwrap(),
    );
    assert_ne!(one.path(), other.path());
    one.file().write_all(b"one").unwrap();
    other.file().write_all(b"other").unwrap();
    one.put().unwrap();
    assert_eq!(state(&place).0, "one");
    other.put().unwrap();
    assert_eq!(state(&place).0, "other");
    assert_eq!(folder.names(), ["file"]);
}

#[test]
fn a_reader_finds_whole_content_while_many_write() {
    let folder = Folder::new();
    let place = folder.file("file", &"-".repeat(10_000), 0o644);
    let start = Barrier::new(5);
    thread::scope(|scope| {
        for letter in ["a", "b", "c", "d"] {
            let (place, start) = (&place, &start);
            scope.spawn(move || {
                start.wait();
                for _ in 0..20 {
                    replace(place, letter.repeat(10_000).as_bytes()).unwrap();
                }
            });
        }
        start.wait();
        for _ in 0..200 {
            let content = fs::read(&place).unwrap();
            assert_eq!(content.len(), 10_000);
            assert!(content.iter().all(|byte| *byte == content[0]));
        }
    });
    assert_eq!(folder.names(), ["file"]);
}
