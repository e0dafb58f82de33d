use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn watched(root: &std::path::Path) -> FolderWatch {
    FolderWatch::new(vec![root.to_owned()], 100)
}

#[test]
fn a_change_is_visible_to_the_next_call_wherever_it_is() {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    fs::create_dir_all(at("a/b")).unwrap();
    let mut watch = watched(root.path());
    assert_eq!(watch.news(), FolderNews::None);
    let changes: [&dyn Fn(); 6] = [
        &|| fs::write(at("a/b/c"), "1").unwrap(),
        &|| fs::write(at("a/b/c"), "12").unwrap(),
        &|| fs::rename(at("a"), at("d")).unwrap(),
        &|| fs::create_dir_all(at("e/f")).unwrap(),
        &|| fs::write(at("e/f/g"), "1").unwrap(),
        &|| fs::remove_dir_all(at("d")).unwrap(),
    ];
    for (number, change) in changes.iter().enumerate() {
        change();
        assert_eq!(watch.news(), FolderNews::Changed, "change {number}");
        assert_eq!(watch.news(), FolderNews::None, "change {number}");
    }
}

#[test]
fn a_root_may_be_a_link() {
    let outer = tempfile::tempdir().unwrap();
    let (folder, link) = (outer.path().join("folder"), outer.path().join("link"));
    fs::create_dir(&folder).unwrap();
    symlink(&folder, &link).unwrap();
    let mut watch = watched(&link);
    fs::write(folder.join("file"), "1").unwrap();
    assert_eq!(watch.news(), FolderNews::Changed);
}

#[test]
fn a_root_that_is_removed_is_unknown_until_it_is_back() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    fs::create_dir(&root).unwrap();
    let mut watch = watched(&root);
    fs::remove_dir(&root).unwrap();
    assert_eq!(watch.news(), FolderNews::Unknown);
    fs::create_dir(&root).unwrap();
    let mut calls = 0;
    while watch.news() == FolderNews::Unknown {
        calls += 1;
        assert!(calls < 1000, "watching is attempted again");
    }
    fs::write(root.join("file"), "1").unwrap();
    assert_eq!(watch.news(), FolderNews::Changed);
}

#[test]
fn more_folders_than_the_limit_are_unknown() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..3 {
        fs::create_dir(root.path().join(number.to_string())).unwrap();
    }
    let roots = vec![root.path().to_owned()];
    assert_eq!(
        FolderWatch::new(roots.clone(), 3).news(),
        FolderNews::Unknown
    );
    assert_eq!(FolderWatch::new(roots, 4).news(), FolderNews::None);
}

#[test]
fn waiting_ends_with_a_change() {
    let root = tempfile::tempdir().unwrap();
    let mut watch = watched(root.path());
    fs::write(root.path().join("file"), "1").unwrap();
    assert_eq!(watch.wait(Duration::from_mins(1)), FolderNews::Changed);
    assert_eq!(watch.wait(Duration::ZERO), FolderNews::None);
}
