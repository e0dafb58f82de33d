use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::rules::path::decoded;

struct Tree(TempDir);

impl Tree {
    /// A folder `root` with these files, and a secret beside it.
    fn new(files: &[&str]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        fs::create_dir(tree.root()).unwrap();
        fs::write(tree.0.path().join("secret.json"), "{}").unwrap();
        for file in files {
            let path = tree.root().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
        }
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    /// The file of a path, relative to the folder.
    fn find(&self, target: &str) -> Option<String> {
        let folder = Folder::new(&self.root()).unwrap();
        let found = folder.find(&decoded(target))?;
        let inside = found.strip_prefix(folder.root()).unwrap();
        Some(inside.to_string_lossy().into_owned())
    }
}

#[test]
fn files_are_found_as_paths_say() {
    let tree = Tree::new(&[
        "index.html",
        "a.json",
        "a.csv",
        "b.json5",
        "c.csv",
        "four.txt",
        "Mixed/Case.JSON",
        "mixed.csv",
        "users/index.json5",
        "users/1.json",
        "v1.0/index.csv",
        "both/index.json",
        "both.json5",
        "deep/er/x.html",
        "empty/inner/y",
        "with space.json",
        "ünï.json",
    ]);
    for (target, expected) in [
        ("/", Some("index.html")),
        ("/a", Some("a.json")),
        ("/a.csv", Some("a.csv")),
        ("/a/", Some("a.json")),
        ("/b", Some("b.json5")),
        ("/c", Some("c.csv")),
        ("/C", Some("c.csv")),
        ("/A.JSON", Some("a.json")),
        ("/four", None),
        ("/four.txt", Some("four.txt")),
        ("/mixed/case", Some("Mixed/Case.JSON")),
        ("/mixed/case.json", Some("Mixed/Case.JSON")),
        ("/mixed", Some("mixed.csv")),
        ("/users", Some("users/index.json5")),
        ("/users/", Some("users/index.json5")),
        ("/USERS/1", Some("users/1.json")),
        ("/v1.0", Some("v1.0/index.csv")),
        ("/both", Some("both.json5")),
        ("/deep/er", None),
        ("/deep/er/x.html", Some("deep/er/x.html")),
        ("/empty", None),
        ("/with%20space", Some("with space.json")),
        ("/%C3%BCn%C3%AF", Some("ünï.json")),
        ("/%C3%9CN%C3%8F", Some("ünï.json")),
        ("/nothing", None),
        ("/a.json/x", None),
    ] {
        assert_eq!(tree.find(target).as_deref(), expected, "{target}");
    }
}

#[test]
fn the_folders_own_name_means_nothing() {
    let tree = Tree::new(&["index.json"]);
    fs::write(tree.0.path().join("root.json"), "{}").unwrap();
    assert_eq!(tree.find("/").as_deref(), Some("index.json"));
}

#[test]
fn nothing_outside_is_found_however_it_is_written() {
    let tree = Tree::new(&["a.json", "in/x.json"]);
    for target in [
        "/../secret.json",
        "/../secret",
        "/in/../../secret.json",
        "/%2e%2e/secret.json",
        "/%2E%2E%2Fsecret.json",
        "/..%2fsecret.json",
        "/..%5csecret.json",
        "/%252e%252e/secret.json",
        "/%252e%252e%252fsecret.json",
        "/%c0%ae%c0%ae/secret.json",
        "/....//secret.json",
        "/.../secret.json",
        "/in/..;/secret.json",
        "/a.json%00/../../secret.json",
        "/%00",
        "//secret.json",
    ] {
        assert_eq!(tree.find(target), None, "{target}");
    }
}

#[test]
fn links_are_followed_inside_only() {
    let tree = Tree::new(&[
        "a.json",
        "in/x.json",
        ".hidden/y.json",
        ".well-known/z.json",
        ".env",
    ]);
    let root = tree.root();
    symlink(root.join("in"), root.join("link")).unwrap();
    symlink("../secret.json", root.join("out.json")).unwrap();
    symlink(tree.0.path(), root.join("up")).unwrap();
    symlink(root.join(".env"), root.join("env")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    assert_eq!(tree.find("/link/x").as_deref(), Some("in/x.json"));
    // The name of a link counts, not that of its target.
    assert_eq!(tree.find("/env").as_deref(), Some(".env"));
    for target in [
        "/out",
        "/up/secret.json",
        "/up/root/a.json.x",
        "/loop",
        "/.env",
    ] {
        assert_eq!(tree.find(target), None, "{target}");
    }
    assert_eq!(tree.find("/.hidden/y.json"), None);
    assert_eq!(
        tree.find("/.well-known/z").as_deref(),
        Some(".well-known/z.json")
    );
    let hiding = Folder::new(&root).unwrap().hiding([root.join("a.json")]);
    assert_eq!(hiding.find("/a"), None);
    assert!(Folder::new(&root.join("a.json")).is_err());
}

/// Kubernetes mounts a `ConfigMap` as links into a folder behind a link, and changes all of it by one rename.
#[test]
fn a_mounted_config_map_is_found_and_changes_as_a_whole() {
    let tree = Tree::new(&["..1/orders.json", "..2/orders.json"]);
    let root = tree.root();
    symlink("..1", root.join("..data")).unwrap();
    symlink("..data/orders.json", root.join("orders.json")).unwrap();
    assert_eq!(tree.find("/orders").as_deref(), Some("..1/orders.json"));
    symlink("..2", root.join("..data_tmp")).unwrap();
    fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
    assert_eq!(tree.find("/orders").as_deref(), Some("..2/orders.json"));
    for hidden in ["/..data/orders", "/..2/orders.json", "/..data"] {
        assert_eq!(tree.find(hidden), None, "{hidden}");
    }
}

proptest! {
    #[test]
    fn whatever_is_requested_lies_inside(target in "[/.%a2eEfF5cC0xs]{0,24}") {
        thread_local! {
            static TREE: Tree = Tree::new(&["a.json", "a/index.json", "e/s.csv"]);
        }
        TREE.with(|tree| tree.find(&target));
    }
}
