//! Files that change while they are served.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use plimsoll_testkit::eventually;

use crate::server::Site;

#[test]
fn what_is_served_follows_what_lies_there() {
    let files: &[(&str, &[u8])] = &[("index.html", b"one"), ("other/index.html", b"other")];
    let site = Site::new(files, "");
    let path = site.root().join("index.html");
    assert_eq!(site.get("/").body, b"one");
    assert_eq!(site.get("/").body, b"one");
    fs::write(&path, "two").unwrap();
    eventually(|| site.get("/").body == b"two");
    let new = site.root().join("new");
    fs::write(&new, "three").unwrap();
    fs::rename(&new, &path).unwrap();
    eventually(|| site.get("/").body == b"three");
    // A copy beside it that comes later.
    let words = "words ".repeat(100);
    fs::write(&path, &words).unwrap();
    eventually(|| site.get("/").body == words.as_bytes());
    fs::write(site.root().join("index.html.gz"), "copy").unwrap();
    let copied = || site.ask("GET", "/", "accept-encoding: gzip\r\n").body == b"copy";
    eventually(copied);
    fs::remove_file(&path).unwrap();
    eventually(|| site.get("/").status == 404);
    assert_eq!(site.get("/other/").body, b"other");
    fs::remove_dir_all(site.root()).unwrap();
    eventually(|| site.get("/other/").status == 404);
    fs::create_dir(site.root()).unwrap();
    fs::write(&path, "back").unwrap();
    eventually(|| site.get("/").body == b"back");
}

#[test]
fn a_root_that_is_a_link_may_be_turned() {
    let site = Site::new(&[("index.html", b"one")], "");
    assert_eq!(site.get("/").body, b"one");
    let (old, new) = (site.outside().join("old"), site.outside().join("new"));
    fs::create_dir(&new).unwrap();
    fs::write(new.join("index.html"), "two").unwrap();
    fs::rename(site.root(), &old).unwrap();
    symlink(&old, site.root()).unwrap();
    eventually(|| site.get("/").body == b"one");
    let link = site.outside().join("link");
    symlink(&new, &link).unwrap();
    fs::rename(&link, site.root()).unwrap();
    eventually(|| site.get("/").body == b"two");
}

#[test]
fn a_file_that_shrinks_under_way_never_looks_whole() {
    let large = vec![b'x'; 32 << 20];
    let site = Site::new(&[("large.bin", &large)], "");
    let mut stream = site.connect();
    stream
        .write_all(b"GET /large.bin HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    let counters = site.engine.counters();
    eventually(|| counters.snapshot().answered() == 1);
    let file = fs::File::options()
        .write(true)
        .open(site.root().join("large.bin"))
        .unwrap();
    file.set_len(1000).unwrap();
    let mut received = Vec::new();
    std::io::Read::read_to_end(
        &mut std::io::Read::take(&mut stream, 1 << 26),
        &mut received,
    )
    .ok();
    assert!(received.len() < large.len(), "{}", received.len());
    eventually(|| counters.open() == 0);
}
