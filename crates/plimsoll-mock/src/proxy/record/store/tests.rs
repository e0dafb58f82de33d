use super::*;
use crate::config;
use crate::request::KeptRequest;

fn store(folder: &Path) -> Store {
    Store::new(folder, Redaction::new(&[]))
}

fn exchange(target: &str, body: &str) -> KeptExchange {
    KeptExchange {
        request: KeptRequest::made("GET", target),
        reply: RecordedReply {
            status: 200,
            headers: Vec::new(),
            kind: Some("text/plain".to_owned()),
            body: body.to_owned().into(),
            announced: None,
        },
    }
}

/// The keys of `when` of each rule, and how many responses it has.
fn read(folder: &Path) -> Vec<(usize, i32)> {
    let plan = config::load(&folder.join("apimock.toml")).unwrap();
    let rules = plan.sets[0].rules().iter();
    rules
        .map(|rule| (rule.replies.len(), rule.priority))
        .collect()
}

#[test]
fn every_change_makes_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    let mut store = store(folder.path());
    let mut take = |target: &str, body: &str| {
        store.add(&exchange(target, body)).unwrap();
        // A file that is open now stays as it is, whole: what comes is not appended to it.
        let before = fs::File::open(&rules).ok();
        let length = before.as_ref().map(|it| it.metadata().unwrap().len());
        store.write(false).unwrap();
        assert!(store.is_written());
        assert_eq!(before.map(|it| it.metadata().unwrap().len()), length);
        read(folder.path())
    };
    assert_eq!(take("/a", "1"), [(1, 0)]);
    assert_eq!(take("/a?b=c", "2"), [(1, 0), (1, 1)]);
    // The same again says nothing.
    assert_eq!(take("/a", "1"), [(1, 0), (1, 1)]);
    assert_eq!(take("/a", "3"), [(2, 0), (1, 1)]);
    take("/long", &"x".repeat(2000));
    assert!(folder.path().join("bodies/long.txt").exists());
}

#[test]
fn a_long_file_is_written_anew_only_now_and_then() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(folder.path());
    let text = "x".repeat(1000);
    for number in 0..1200 {
        store.add(&exchange(&format!("/{number}"), &text)).unwrap();
    }
    store.write(false).unwrap();
    assert!(store.length.unwrap() > SHORT);
    store.add(&exchange("/0", "other")).unwrap();
    store.add(&exchange("/new", "new")).unwrap();
    store.write(false).unwrap();
    assert!(!store.is_written());
    assert_eq!(read(folder.path()).len(), 1200);
    for _ in 0..PATIENCE {
        store.write(false).unwrap();
    }
    assert!(store.is_written());
    assert_eq!(read(folder.path()).len(), 1201);
    assert_eq!(read(folder.path())[0].0, 2);
    store.add(&exchange("/0", "third")).unwrap();
    store.write(true).unwrap();
    assert_eq!(read(folder.path())[0].0, 3);
}

#[test]
fn what_cannot_be_written_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("file");
    fs::write(&missing, "").unwrap();
    let mut store = store(&missing);
    let long = exchange("/a", &"x".repeat(2000));
    assert!(store.add(&long).is_err());
    assert!(store.is_written() && store.names.is_empty());
    store.add(&exchange("/a", "x")).unwrap();
    assert!(store.write(false).is_err() && !store.is_written());
}
