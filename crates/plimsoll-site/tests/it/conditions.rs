//! Conditional requests and ranges.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use plimsoll_testkit::eventually;

use crate::server::Site;

fn site() -> (Site, String, String) {
    let content: Vec<u8> = (b'a'..=b'z').cycle().take(10_000).collect();
    let large: Vec<u8> = (b'a'..=b'z').cycle().take(100_000).collect();
    let files: &[(&str, &[u8])] = &[("a.bin", &content), ("large.bin", &large), ("empty", b"")];
    let site = Site::new(files, "");
    let whole = site.get("/a.bin");
    let tag = whole.joined_field("etag").unwrap();
    let date = whole.joined_field("last-modified").unwrap();
    (site, tag, date)
}

#[test]
fn clients_that_have_it_are_informed() {
    let (site, tag, date) = site();
    let older = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (fields, status) in [
        (format!("if-none-match: {tag}\r\n"), 304),
        (format!("if-none-match: \"x\", {tag}\r\n"), 304),
        ("if-none-match: *\r\n".to_owned(), 304),
        (
            format!("if-none-match: \"x\"\r\nif-modified-since: {date}\r\n"),
            200,
        ),
        (format!("if-modified-since: {date}\r\n"), 304),
        (format!("if-modified-since: {older}\r\n"), 200),
        (format!("if-unmodified-since: {older}\r\n"), 412),
        // A weak tag never matches strongly.
        (format!("if-match: {tag}\r\n"), 412),
        ("if-match: *\r\n".to_owned(), 200),
        (format!("if-none-match: {tag}\r\nrange: bytes=0-1\r\n"), 304),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = site.ask(method, "/a.bin", &fields);
            assert_eq!(answer.status, status, "{method} {fields}");
            if status == 304 {
                assert_eq!(answer.joined_field("etag").as_ref(), Some(&tag));
                assert_eq!(
                    answer.joined_field("cache-control").as_deref(),
                    Some("no-cache")
                );
                assert!(answer.joined_field("date").is_some());
                assert!(answer.body.is_empty());
            }
        }
    }
}

#[test]
fn parts_are_those_that_were_requested() {
    let (site, tag, _) = site();
    for path in ["/a.bin", "/large.bin"] {
        let length: usize = if path == "/a.bin" { 10_000 } else { 100_000 };
        let whole = site.get(path).body;
        for (range, from, to) in [
            ("bytes=0-499".to_owned(), 0, 500),
            (format!("bytes={}-", length - 5), length - 5, length),
            ("bytes=-500".to_owned(), length - 500, length),
            ("bytes=5-9,0-4".to_owned(), 0, 10),
            ("bytes=0-".to_owned(), 0, length),
            (format!("bytes=-{}", length + 1), 0, length),
        ] {
            let answer = site.ask("GET", path, &format!("range: {range}\r\n"));
            assert_eq!(answer.status, 206, "{range}");
            assert!(answer.body == whole[from..to], "{range}");
            let expected = format!("bytes {from}-{}/{length}", to - 1);
            assert_eq!(answer.joined_field("content-range"), Some(expected));
            assert!(
                answer.joined_field("etag").is_some()
                    && answer.joined_field("last-modified").is_some()
            );
        }
        let several = site.ask("GET", path, "range: bytes=0-1, 26-28\r\n");
        assert_eq!(several.status, 206);
        let kind = several.joined_field("content-type").unwrap();
        let boundary = kind
            .strip_prefix("multipart/byteranges; boundary=")
            .unwrap();
        let part = |range: &str, body: &str| {
            format!(
                "\r\n--{boundary}\r\ncontent-type: application/octet-stream\r\n\
                 content-range: bytes {range}/{length}\r\n\r\n{body}"
            )
        };
        let expected = format!(
            "{}{}\r\n--{boundary}--\r\n",
            part("0-1", "ab"),
            part("26-28", "abc")
        );
        assert_eq!(several.text(), expected);
        assert_eq!(several.joined_field("content-range"), None);
        let nothing = site.ask("GET", path, "range: bytes=100000-\r\n");
        assert_eq!(nothing.status, 416);
        assert_eq!(
            nothing.joined_field("content-range"),
            Some(format!("bytes */{length}"))
        );
    }
    let thousands = format!("range: bytes={}\r\n", vec!["0-"; 1500].join(","));
    for fields in [
        thousands.as_str(),
        "range: bytes=9-0\r\n",
        "range: lines=0-5\r\n",
        &format!("range: bytes=0-5\r\nif-range: {tag}\r\n"),
        "range: bytes=0-5\r\nif-range: \"x\"\r\n",
    ] {
        let answer = site.ask("GET", "/a.bin", fields);
        assert_eq!(
            (answer.status, answer.body.len()),
            (200, 10_000),
            "{fields}"
        );
    }
    assert_eq!(
        site.ask("HEAD", "/a.bin", "range: bytes=0-5\r\n").status,
        200
    );
    assert_eq!(
        site.ask("GET", "/empty", "range: bytes=0-5\r\n").status,
        200
    );
}

#[test]
fn a_part_goes_on_from_a_date_once_that_is_sure() {
    let (site, _, _) = site();
    let file = fs::File::options()
        .write(true)
        .open(site.root().join("large.bin"))
        .unwrap();
    let old = UNIX_EPOCH + Duration::from_secs(784_111_777);
    file.set_modified(old).unwrap();
    let fields = "range: bytes=5-9\r\nif-range: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    eventually(|| site.ask("GET", "/large.bin", fields).status == 206);
}

/// Whatever says that a file is what it was: its length, its time of modification, or both.
#[test]
fn another_content_has_another_tag() {
    type Change = fn(&Path, &str);
    /// As builds and stores do that have one time for all files.
    fn at_one_second(path: &Path) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1))
            .unwrap();
    }
    let changes: [(&str, Change); 3] = [
        ("written in place", |path, text| {
            fs::write(path, text).unwrap();
            at_one_second(path);
        }),
        ("replaced", |path, text| {
            let new = path.with_extension("new");
            fs::write(&new, text).unwrap();
            at_one_second(&new);
            fs::rename(&new, path).unwrap();
        }),
        ("linked to another", |path, text| {
            let target = path.with_file_name(format!("target-{text}"));
            fs::write(&target, text).unwrap();
            at_one_second(&target);
            fs::remove_file(path).unwrap();
            symlink(target.file_name().unwrap(), path).unwrap();
        }),
    ];
    for (how, change) in changes {
        let site = Site::new(&[("a.txt", b"00")], "");
        let path = site.root().join("a.txt");
        at_one_second(&path);
        let mut tags = HashSet::new();
        for number in 10..20 {
            let text = number.to_string();
            change(&path, &text);
            eventually(|| site.get("/a.txt").text() == text);
            let tag = site.get("/a.txt").joined_field("etag").unwrap();
            assert!(tags.insert(tag.clone()), "{how}: {text} has {tag}, too");
        }
    }
}
