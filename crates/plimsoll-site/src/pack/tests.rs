use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::files::tree::{Tree, TreeEntry};

/// A program, a site, and where it is packed to.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let words = "words ".repeat(1000);
        for (name, content) in [
            ("site/index.html", words.as_str()),
            ("site/same.html", &words),
            ("site/a/b.bin", "\u{1}bytes"),
            ("site/.hidden", "no"),
            ("outside", "no"),
            ("program", "#!/bin/sh\n"),
        ] {
            let path = place.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        std::os::unix::fs::symlink("../outside", place.path("site/link")).unwrap();
        std::os::unix::fs::symlink("index.html", place.path("site/alias.html")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn pack(&self, program: &str) -> Packed {
        pack(&PackOptions {
            directory: self.path("site"),
            program: self.path(program),
            output: self.path("packed"),
            keys: "listing = true\n".to_owned(),
            links: "gh https://a.example/\n".to_owned(),
            hidden: false,
        })
        .unwrap()
    }
}

fn names(path: &Path) -> Vec<String> {
    list(path)
        .unwrap()
        .into_iter()
        .map(|file| file.path)
        .collect()
}

#[test]
fn what_is_packed_comes_out_as_it_went_in() {
    let place = Place::new();
    let packed = place.pack("program");
    assert_eq!((packed.files, packed.program_bytes), (4, 10));
    assert_eq!(
        packed.bytes,
        fs::metadata(place.path("packed")).unwrap().len()
    );
    // The same content is stored once, and its copies are far smaller.
    assert!(packed.bytes < 10 + 6000 + 2500, "{}", packed.bytes);
    let path = place.path("packed");
    assert_eq!(
        names(&path),
        ["a/b.bin", "alias.html", "index.html", "same.html"]
    );
    assert_eq!(packed_keys(&path).unwrap(), "listing = true\n");
    assert_eq!(packed_keys(&place.path("program")), None);
    let out = place.path("out");
    assert_eq!(extract(&path, &out).unwrap(), 4);
    for name in names(&path) {
        let (before, after) = (place.path("site").join(&name), out.join(&name));
        assert_eq!(
            fs::read(before).unwrap(),
            fs::read(after).unwrap(),
            "{name}"
        );
    }
    assert!(matches!(extract(&path, &out), Err(PackError::Occupied(_))));
    assert!(fs::read(&path).unwrap().starts_with(b"#!/bin/sh\n"));
}

#[test]
fn a_payload_is_replaced_and_its_tags_are_those_of_the_content() {
    let place = Place::new();
    place.pack("program");
    let tags = || {
        let pack = std::sync::Arc::new(Pack::open(&place.path("packed")).unwrap());
        let tag = |name: &str| match pack.find(name).unwrap() {
            TreeEntry::File(file) => file.tag.shown(),
            TreeEntry::Directory => panic!("{name} is a directory"),
        };
        assert_eq!(pack.links(), "gh https://a.example/\n");
        assert!(matches!(pack.find("a").unwrap(), TreeEntry::Directory));
        assert!(pack.find("b").is_err());
        let TreeEntry::File(file) = pack.find("index.html").unwrap() else {
            panic!("it is a file");
        };
        assert_eq!(pack.copies("index.html", &file).len(), 3);
        (tag("index.html"), tag("same.html"), tag("a/b.bin"))
    };
    let before = tags();
    assert_eq!(before.0, before.1);
    assert!(!before.0.starts_with("W/") && before.0 != before.2);
    fs::rename(place.path("packed"), place.path("packed-before")).unwrap();
    fs::write(place.path("site/a/b.bin"), "other").unwrap();
    let again = place.pack("packed-before");
    assert_eq!(again.program_bytes, 10);
    let after = tags();
    assert_eq!(after.0, before.0);
    assert_ne!(after.2, before.2);
}

#[test]
fn damage_is_noticed_wherever_it_is() {
    let place = Place::new();
    place.pack("program");
    let path = place.path("packed");
    let whole = fs::read(&path).unwrap();
    for at in (10..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x20;
        fs::write(&path, damaged).unwrap();
        assert!(Pack::open(&path).is_err(), "byte {at}");
    }
    for length in [0, 9, 10, 71, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(
            matches!(Pack::open(&path), Err(PackError::NoPayload(_))),
            "{length} bytes"
        );
    }
    fs::write(&path, &whole).unwrap();
    assert!(Pack::open(&path).is_ok());
}

#[test]
fn a_program_is_cut_to_what_is_loaded() {
    let own = fs::read(std::env::current_exe().unwrap()).unwrap();
    let length = program_length(&own);
    if cfg!(target_os = "linux") {
        assert!(length < own.len() && length > 64);
        // A truncated program, and a file that is not a program, are left as they are.
        assert_eq!(program_length(&own[..length]), length);
        assert_eq!(program_length(&own[..100]), 100);
    }
    assert_eq!(program_length(b"#!/bin/sh\n"), 10);
    let mut broken = own[..0x40].to_vec();
    broken[0x20..0x40].fill(0xff);
    assert_eq!(program_length(&broken), 0x40);
}

#[test]
fn a_program_that_needs_a_loader_is_recognised() {
    let header = |kind: u8| {
        let mut program = vec![0; 0x40 + 0x38];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[0x20] = 0x40;
        program[0x36] = 0x38;
        program[0x38] = 1;
        program[0x40] = kind;
        program
    };
    assert!(executable::is_dynamic(&header(3)));
    assert!(!executable::is_dynamic(&header(1)));
    assert!(!executable::is_dynamic(b"#!/bin/sh"));
    let own = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(
        executable::is_dynamic(&own),
        !cfg!(target_feature = "crt-static")
    );
}
