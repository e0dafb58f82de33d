use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use plimsoll_testkit::{Authority, MaterialFiles};

use super::*;
use crate::config::{Compiler, ServerPlan};

/// Paths below a folder, as `permitted` has them.
fn roots(permitted: &PermittedPaths, folder: &Path) -> Vec<String> {
    let shown = |root: &NamedPath| {
        let path = root.path.strip_prefix(folder).ok()?;
        let usage = match root.usage {
            PathUse::Read => "r",
            PathUse::WriteFile => "f",
            PathUse::WriteFolder => "w",
        };
        Some(format!("{usage} {}", path.display()))
    };
    permitted.roots().filter_map(shown).collect()
}

struct Tree {
    _kept: tempfile::TempDir,
    folder: PathBuf,
    permitted: PermittedPaths,
}

impl Tree {
    fn new(folders: &[&str], files: &[&str]) -> Self {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path().canonicalize().unwrap();
        for path in folders {
            fs::create_dir_all(folder.join(path)).unwrap();
        }
        for path in files {
            fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
            fs::write(folder.join(path), "").unwrap();
        }
        Self {
            _kept: kept,
            folder,
            permitted: PermittedPaths::default(),
        }
    }

    fn link(&self, target: &str, link: &str) {
        symlink(target, self.folder.join(link)).unwrap();
    }

    fn add(&mut self, path: &str, usage: PathUse) {
        let path = self.folder.join(path);
        self.permitted.add(&NamedPath { path, usage });
    }

    fn permits(&self, path: &str, usage: PathUse) -> bool {
        self.permitted.permits(&self.folder.join(path), usage)
    }
}

#[test]
fn a_file_is_permitted_with_its_folder_and_a_folder_alone() {
    let mut tree = Tree::new(&["site/sub"], &["conf/a.pem", "conf/b.pem", "other/c.pem"]);
    tree.add("conf/a.pem", PathUse::Read);
    tree.add("site", PathUse::Read);
    assert_eq!(
        roots(&tree.permitted, &tree.folder),
        ["r conf", "r conf/a.pem", "r site"]
    );
    for (path, expected) in [
        ("conf/b.pem", true),
        ("conf/new.pem", true),
        ("site/sub/x", true),
        ("other/c.pem", false),
        ("site/../other/c.pem", false),
        ("site-2", false),
    ] {
        assert_eq!(tree.permits(path, PathUse::Read), expected, "{path}");
        assert!(!tree.permits(path, PathUse::WriteFile), "{path}");
    }
}

#[test]
fn links_are_permitted_with_the_folders_of_both_ends() {
    let mut tree = Tree::new(
        &["live", "www/releases/1", "www/releases/2"],
        &["archive/x/key1.pem", "archive/x/key2.pem", "elsewhere/key"],
    );
    tree.link("../archive/x/key1.pem", "live/key.pem");
    tree.link("releases/1", "www/current");
    tree.add("live/key.pem", PathUse::Read);
    tree.add("www/current", PathUse::Read);
    assert!(tree.permits("archive/x/key2.pem", PathUse::Read));
    assert!(tree.permits("www/releases/2", PathUse::Read));
    assert!(!tree.permits("elsewhere/key", PathUse::Read));
    // What a link leads to counts, not where it lies.
    tree.link("../elsewhere/key", "live/other.pem");
    assert!(!tree.permits("live/other.pem", PathUse::Read));
}

#[test]
fn writing_is_permitted_apart_from_reading() {
    let mut tree = Tree::new(&["log", "state"], &["secret/key"]);
    tree.add("log/access.log", PathUse::WriteFile);
    tree.add("state/acme", PathUse::WriteFolder);
    for (path, usage, expected) in [
        ("log/other.log", PathUse::WriteFile, true),
        ("log/access.log", PathUse::Read, false),
        ("log", PathUse::WriteFolder, false),
        ("state/acme/a/b.pem", PathUse::WriteFile, true),
        ("state/acme/a/b.pem", PathUse::Read, true),
        ("state/acme/a", PathUse::WriteFolder, true),
        ("state/other", PathUse::WriteFolder, false),
        ("secret/key", PathUse::WriteFile, false),
    ] {
        assert_eq!(tree.permits(path, usage), expected, "{path} {usage:?}");
    }
}

#[test]
fn shared_folders_are_not_permitted_as_a_whole() {
    let mut permitted = PermittedPaths::default();
    for (path, usage) in [
        ("/etc/passwd", PathUse::Read),
        ("/tmp/plimsoll-no-such.log", PathUse::WriteFile),
        ("/plimsoll-no-such.log", PathUse::WriteFile),
    ] {
        let path = PathBuf::from(path);
        permitted.add(&NamedPath {
            path: path.clone(),
            usage,
        });
        assert!(permitted.permits(&path, usage), "{}", path.display());
        let beside = path.with_file_name("beside");
        assert!(!permitted.permits(&beside, usage), "{}", beside.display());
    }
    assert_eq!(permitted.roots().count(), 3);
    for folder in [
        "/",
        "/etc",
        "/home",
        "/home/ann",
        "/root",
        "/tmp",
        "/var/lib",
    ] {
        assert!(is_shared(Path::new(folder)), "{folder}");
    }
    for folder in [
        "/etc/plimsoll",
        "/home/ann/site",
        "/srv/www",
        "/var/lib/plimsoll",
        "/app",
    ] {
        assert!(!is_shared(Path::new(folder)), "{folder}");
    }
}

/// A configuration with every key that names a path.
struct Everything {
    files: MaterialFiles,
    text: String,
}

/// Each key that names a path, the path and its use.
const NAMED: [(&str, &str, PathUse); 11] = [
    ("listen[1].tls[1].cert", "tls/cert.pem", PathUse::Read),
    ("listen[1].tls[1].key", "tls/key.pem", PathUse::Read),
    (
        "listen[1].tls[1].ocsp",
        "tls/cert.pem.ocsp",
        PathUse::WriteFile,
    ),
    ("listen[1].tls[2].acme.ca", "acme/ca.pem", PathUse::Read),
    (
        "listen[1].tls[2].acme.folder",
        "acme/kept",
        PathUse::WriteFolder,
    ),
    (
        "listen[1].client_certificates.ca",
        "tls/clients.pem",
        PathUse::Read,
    ),
    ("listen[1].http3.retry_key", "keys/retry", PathUse::Read),
    ("listen[1].basic_auth.file", "users", PathUse::Read),
    ("listen[2]", "run/web.sock", PathUse::WriteFile),
    ("route[1].respond.file", "page.html", PathUse::Read),
    ("log.file", "log/access.log", PathUse::WriteFile),
];

impl Everything {
    fn new() -> Self {
        let files = MaterialFiles::new();
        for folder in ["tls", "acme", "keys", "run", "log"] {
            fs::create_dir(files.path(folder)).unwrap();
        }
        let authority = Authority::new();
        let leaf = authority.issue(&["a.example"]);
        files.write("tls/cert.pem", leaf.pem());
        files.write("tls/key.pem", leaf.key_pem());
        for name in ["tls/clients.pem", "acme/ca.pem"] {
            files.write(name, &authority.pem());
        }
        files.write("keys/retry", &"k".repeat(64));
        files.write("users", "");
        files.write("page.html", "page");
        let socket = files.path("run/web.sock");
        let text = format!(
            r#"
            [[listen]]
            address = "127.0.0.1:0"
            tls = [
                {{ cert = "tls/cert.pem", key = "tls/key.pem", ocsp = true }},
                {{ acme = {{ names = ["b.example"], accept_terms = true, ca = "acme/ca.pem", folder = "acme/kept" }} }},
            ]
            client_certificates = {{ ca = "tls/clients.pem" }}
            http3 = {{ retry_key = "keys/retry" }}
            basic_auth = {{ realm = "r", file = "users" }}
            [[listen]]
            address = "unix:{}"
            [[route]]
            respond = {{ file = "page.html" }}
            [log]
            file = "log/access.log"
            "#,
            socket.display()
        );
        Self { files, text }
    }

    fn compile(&self, permitted: Option<PermittedPaths>) -> Result<ServerPlan, Vec<String>> {
        let mut compiler = Compiler::new(&self.files.path(""), &Arc::default());
        compiler.permitted = permitted;
        let outcome = compiler.compile(&self.text);
        outcome.map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }
}

#[test]
fn every_path_of_a_configuration_is_named_and_refused_at_its_key_where_it_is_not_permitted() {
    let everything = Everything::new();
    let plan = everything.compile(None).unwrap();
    let folder = everything.files.path("");
    let mut expected: Vec<_> = NAMED
        .iter()
        .map(|(_, path, usage)| NamedPath {
            path: folder.join(path),
            usage: *usage,
        })
        .collect();
    expected.sort();
    assert_eq!(plan.paths, expected);

    let mut permitted = PermittedPaths::default();
    for named in &plan.paths {
        permitted.add(named);
    }
    let again = everything.compile(Some(permitted)).unwrap();
    assert_eq!(again.paths, expected);

    let problems = everything
        .compile(Some(PermittedPaths::default()))
        .unwrap_err();
    for (key, path, _) in NAMED {
        let path = folder.join(path);
        let message = format!("{key}: {} is not among the paths", path.display());
        let found = problems.iter().any(|problem| problem.contains(&message));
        // What belongs to a certificate is not reached once the certificate is refused.
        let is_of_refused = key.ends_with("ocsp");
        assert!(found || is_of_refused, "{message}: {problems:#?}");
    }
}
