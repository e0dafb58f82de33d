//! The response cache on disk: what a restart keeps, and what it must not.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_testkit::http::{exchange, get, get_with};
use plimsoll_testkit::{Logic, Origin, Reply, Script, Step, eventually};

use crate::server::Served;

/// An origin that numbers its responses.
fn origin() -> Origin {
    let requests = AtomicU64::new(0);
    let logic = Logic::new(move |_| {
        let number = requests.fetch_add(1, Ordering::Relaxed) + 1;
        let number = number.to_string();
        Reply::new(
            200,
            &[
                ("cache-control", "max-age=600"),
                ("vary", "x-v"),
                ("x-number", &number),
            ],
        )
    });
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    Origin::builder().script(script).start()
}

fn gateway(origin: &Origin, folder: &Path, more: &str) -> Served {
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\nproxy = {{ to = \"{}\", cache = {{ size = \"1MiB\", disk = {{ dir = \"{}\", size = \"1MiB\" }} }}{more} }}\n",
        origin.url("").trim_end_matches('/'),
        folder.display()
    ))
}

/// The value of a figure of the cache.
fn figure(served: &Served, name: &str) -> u64 {
    let metrics = get(served.addresses[1], "/metrics").into_text();
    let line = metrics.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.unwrap_or_else(|| panic!("{name}: {metrics}"))
}

fn event(served: &Served, event: &str) -> u64 {
    figure(
        served,
        &format!("plimsoll_gateway_cache_total{{route=\"/\",event=\"{event}\"}}"),
    )
}

/// Waits until the folder was read.
fn is_filled(served: &Served) {
    eventually(|| figure(served, "plimsoll_gateway_cache_disk_bytes{") > 0);
}

fn number(served: &Served, path: &str) -> (Option<String>, Option<String>) {
    let received = get(served.address(), path);
    assert_eq!(received.text(), "hello", "{received:?}");
    let field = |name: &str| received.field(name).map(str::to_owned);
    (field("x-number"), field("cache-status"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let routes = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let files = routes.flat_map(|route| fs::read_dir(route).unwrap());
    files.map(|it| it.unwrap().path()).collect()
}

#[test]
fn a_restart_keeps_what_was_stored() {
    let (origin, directory) = (origin(), tempfile::tempdir().unwrap());
    let folder = directory.path().join("cache");
    let first = gateway(&origin, &folder, "");
    number(&first, "/a");
    number(&first, "/b");
    eventually(|| event(&first, "disk_stored") == 2);
    first.end();
    // What a killed process leaves.
    let left = files(&folder)[0].with_extension("part");
    fs::write(&left, "half").unwrap();
    let second = gateway(&origin, &folder, "");
    is_filled(&second);
    let hit = |number: &str| (Some(number.to_owned()), Some("plimsoll; hit".to_owned()));
    assert_eq!(number(&second, "/a"), hit("1"));
    assert_eq!(event(&second, "disk_hit"), 1);
    // From memory now.
    assert_eq!(number(&second, "/a"), hit("1"));
    assert_eq!((event(&second, "disk_hit"), event(&second, "hit")), (1, 2));
    assert!(!left.exists());
    // What a request removes does not come back.
    let post =
        "POST /b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    exchange(second.address(), post.as_bytes());
    let purge = "DELETE /caches?url=http://localhost/a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let purged = exchange(second.addresses[1], purge.as_bytes()).into_text();
    assert!(purged.contains("\"purged\": 1"), "{purged}");
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
    second.end();
    let third = gateway(&origin, &folder, "");
    assert_eq!(number(&third, "/a").0.as_deref(), Some("4"));
    assert_eq!(number(&third, "/b").0.as_deref(), Some("5"));
}

#[test]
fn a_file_that_is_not_whole_is_not_sent() {
    let (origin, directory) = (origin(), tempfile::tempdir().unwrap());
    let served = gateway(&origin, directory.path(), "");
    number(&served, "/a");
    eventually(|| event(&served, "disk_stored") == 1);
    served.end();
    let file = files(directory.path()).remove(0);
    let whole = fs::read(&file).unwrap();
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    let cut = whole[..whole.len() - 3].to_vec();
    // Within the content, and within the head.
    for (damaged, is_found_at_start) in [(other, false), (cut, false), (whole[..20].to_vec(), true)]
    {
        fs::write(&file, damaged).unwrap();
        let served = gateway(&origin, directory.path(), "");
        if is_found_at_start {
            eventually(|| !file.exists());
        } else {
            is_filled(&served);
        }
        let (_, status) = number(&served, "/a");
        assert_eq!(status.as_deref(), Some("plimsoll; fwd=uri-miss; stored"));
        assert_eq!(
            event(&served, "disk_damaged"),
            u64::from(!is_found_at_start)
        );
        eventually(|| event(&served, "disk_stored") == 1);
        served.end();
        for file in files(directory.path()) {
            fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn what_was_stored_under_other_rules_is_gone() {
    let (origin, directory) = (origin(), tempfile::tempdir().unwrap());
    let served = gateway(&origin, directory.path(), "");
    number(&served, "/a");
    eventually(|| event(&served, "disk_stored") == 1);
    served.end();
    let file = files(directory.path()).remove(0);
    let served = gateway(&origin, directory.path(), ", headers = { x-v = \"1\" }");
    eventually(|| !file.exists());
    assert_eq!(number(&served, "/a").0.as_deref(), Some("2"));
}

#[test]
fn the_oldest_make_room_on_disk() {
    let logic = Logic::new(|_| Reply::new(200, &[("cache-control", "max-age=600")]));
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    let origin = Origin::builder().script(script).start();
    let directory = tempfile::tempdir().unwrap();
    let served = gateway(&origin, directory.path(), "");
    // A file takes 4 KiB and what is in it.
    for path in 1..=400 {
        get(served.address(), &format!("/{path}"));
        // Fewer than may wait to be written.
        if path % 100 == 0 {
            eventually(|| event(&served, "disk_stored") == path);
        }
    }
    let bytes = figure(&served, "plimsoll_gateway_cache_disk_bytes{");
    assert!((900_000..=1 << 20).contains(&bytes), "{bytes}");
    assert!(files(directory.path()).len() < 260);
}

#[test]
fn long_content_is_sent_from_its_file() {
    let content: Vec<u8> = (0..400_000_u32).map(|at| (at % 251) as u8).collect();
    let directory = tempfile::tempdir().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &content).unwrap();
    let origin = Served::routes(&format!(
        "[[route]]\nrespond = {{ file = \"{}\", headers = {{ cache-control = \"max-age=600\" }} }}\n",
        file.path().display()
    ));
    let gateway = || {
        Served::new(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
             [[route]]\nproxy = {{ to = \"{}\", cache = {{ disk = {{ dir = \"{}\" }} }} }}\n",
            origin.url(),
            directory.path().display()
        ))
    };
    let first = gateway();
    assert_eq!(get(first.address(), "/").body, content);
    eventually(|| event(&first, "disk_stored") == 1);
    first.end();
    let second = gateway();
    is_filled(&second);
    for hits in 1..3 {
        let received = get(second.address(), "/");
        assert_eq!(received.field("cache-status"), Some("plimsoll; hit"));
        assert!(received.body == content);
        // It does not move into memory.
        assert_eq!(event(&second, "disk_hit"), hits);
    }
    let part = get_with(second.address(), "/", "range: bytes=1000-1999\r\n");
    assert_eq!(
        (part.status, part.body.as_slice()),
        (206, &content[1000..2000])
    );
    // The folder is made again.
    fs::remove_dir_all(directory.path()).unwrap();
    assert_eq!(get(second.address(), "/other").body, content);
    eventually(|| event(&second, "disk_stored") == 1);
    assert_eq!(files(directory.path()).len(), 1);
}

#[test]
fn a_file_that_changes_is_not_sent_once_more() {
    let content = "0123456789".repeat(400);
    let directory = tempfile::tempdir().unwrap();
    let origin = Served::routes(&format!(
        "[[route]]\nrespond = {{ body = \"{content}\", headers = {{ cache-control = \"max-age=600\" }} }}\n"
    ));
    // Nothing has room in memory, so each hit is read from the file.
    let served = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\nproxy = {{ to = \"{}\", cache = {{ size = \"1KiB\", disk = {{ dir = \"{}\" }} }} }}\n",
        origin.url(),
        directory.path().display()
    ));
    let status = || {
        let received = get(served.address(), "/");
        assert_eq!(received.text(), content);
        received.field("cache-status").unwrap().to_owned()
    };
    status();
    eventually(|| event(&served, "disk_stored") == 1);
    for hits in 1..4 {
        assert_eq!(status(), "plimsoll; hit");
        assert_eq!(event(&served, "disk_hit"), hits);
    }
    let file = files(directory.path()).remove(0);
    let mut changed = fs::read(&file).unwrap();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    fs::write(&file, changed).unwrap();
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    let later = written + std::time::Duration::from_secs(1);
    let opened = fs::File::options().write(true).open(&file).unwrap();
    opened.set_modified(later).unwrap();
    assert_eq!(status(), "plimsoll; fwd=uri-miss; stored");
    assert_eq!(event(&served, "disk_damaged"), 1);
}
