//! The gateway's cache on disk under a process that is killed while it writes: no torn response is ever sent.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use plimsoll_testkit::http::get;
use plimsoll_testkit::{Logic, Origin, Reply, Script, Step, eventually};

use crate::served::Served;

/// Bytes of a response: many blocks of a file.
const LENGTH: usize = 600_000;

/// How often the process is killed.
const ROUNDS: usize = 8;

/// Responses that differ by path, each of its number over and over.
fn origin() -> Origin {
    let logic = Logic::new(|request| {
        let number = request.target.trim_start_matches('/').to_owned();
        Reply::new(200, &[("cache-control", "max-age=600")]).content(content(&number))
    });
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    Origin::builder().script(script).start()
}

fn content(number: &str) -> String {
    let mut content = number.repeat(LENGTH / number.len());
    content.truncate(LENGTH);
    content
}

fn gateway(origin: &Origin, folder: &Path, file: &Path) -> Served {
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nproxy = {{ to = \"{}\", cache = {{ size = \"1MiB\", max_object = \"1MiB\", \
         disk = {{ dir = \"{}\", size = \"64MiB\" }} }} }}\n",
        origin.url("").trim_end_matches('/'),
        folder.display()
    );
    fs::write(file, text).unwrap();
    Served::start(&["up", file.to_str().unwrap()])
}

/// Bytes below a folder.
fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[test]
fn a_process_that_is_killed_leaves_no_torn_response() {
    let origin = origin();
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("cache");
    let file = directory.path().join("plimsoll.toml");
    let mut hits = 0;
    for round in 0..ROUNDS {
        let mut served = gateway(&origin, &folder, &file);
        let address: SocketAddr = served
            .url
            .trim_start_matches("http://")
            .trim_end_matches('/')
            .parse()
            .unwrap();
        // What earlier processes wrote is whole, or is fetched again.
        for number in 0..round * 4 {
            let number = format!("{number:03}");
            let received = get(address, &format!("/{number}"));
            assert_eq!(received.text(), content(&number), "round {round}, {number}");
            let status = received.field("cache-status");
            hits += usize::from(status == Some("plimsoll; hit"));
        }
        let before = bytes(&folder);
        for number in round * 4..round * 4 + 4 {
            get(address, &format!("/{number:03}"));
        }
        // In the midst of writing, at another moment in each round.
        let some = before + (round as u64) * (LENGTH as u64) / 3;
        eventually(|| bytes(&folder) > some);
        served.child.kill().unwrap();
        served.child.wait().unwrap();
    }
    assert!(hits > 0, "nothing survived any kill");
}
