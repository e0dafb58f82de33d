use std::fs;
use std::io::ErrorKind;
use std::thread;

use plimsoll_server::config::NamedPath;

use super::*;

#[test]
fn what_is_not_permitted_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["read", "written", "kept", "other"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("file"), "content").unwrap();
    }
    let mut permitted = PermittedPaths::default();
    for (name, usage) in [
        ("read", PathUse::Read),
        ("written/file", PathUse::WriteFile),
        ("kept", PathUse::WriteFolder),
    ] {
        let path = at(name);
        permitted.add(&NamedPath { path, usage });
    }
    let own = OwnProcess::open();
    let confined = || {
        if restrict(&permitted, own.as_ref()).unwrap() == FilesRestricted::Not {
            eprintln!("skipped: this kernel has no Landlock");
            return;
        }
        let is_refused = |result: std::io::Result<()>| {
            result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
        };
        for (name, reads, writes) in [
            ("read", true, false),
            ("written", false, true),
            ("kept", true, true),
            ("other", false, false),
        ] {
            let file = at(name).join("file");
            let read = fs::read(&file).map(drop);
            assert_eq!(!is_refused(read), reads, "read {name}");
            let written = fs::write(&file, "new");
            assert_eq!(!is_refused(written), writes, "write {name}");
            let made = fs::write(at(name).join("new"), "new");
            assert_eq!(!is_refused(made), writes, "make {name}");
        }
        fs::create_dir(at("kept").join("folder")).unwrap();
        fs::rename(at("kept").join("file"), at("kept").join("folder/file")).unwrap();
        fs::rename(at("written").join("file"), at("written").join("moved")).unwrap();
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
        fs::read_dir("/proc/self/fd").unwrap();
        fs::read("/proc/1/status").unwrap_err();
    };
    thread::scope(|scope| scope.spawn(confined).join()).unwrap();
}
