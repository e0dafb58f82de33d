use std::fs;
use std::os::unix::fs::symlink;

use super::*;

pub(in super::super) fn bounds(root: &Path) -> Bounds {
    Bounds {
        targets: TargetPolicy::new(
            vec!["https://staging.example.org".parse().unwrap()],
            Vec::new(),
        ),
        root: root.canonicalize().unwrap(),
        rate: number::positive_rate("1k/s").unwrap(),
        duration: Duration::from_mins(1),
        connections: 100,
        unconfined_files: false,
        environment: Vec::new(),
    }
}

#[test]
fn paths_stay_below_the_root_whatever_their_spelling() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/file"), "").unwrap();
    fs::write(root.join("-x"), "").unwrap();
    fs::write(folder.path().join("secret"), "").unwrap();
    symlink("../secret", root.join("link")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("a/file", root.join("inside")).unwrap();
    let bounds = bounds(&root);
    let absolute = |path: &str| bounds.root.join(path).display().to_string();
    for (given, admitted) in [
        ("a/file", "./a/file"),
        ("./a/b/../file", "./a/file"),
        ("inside", "./a/file"),
        ("-x", "./-x"),
        (".", "."),
        (&absolute("a/file"), "./a/file"),
    ] {
        assert_eq!(bounds.admit_path(given).as_deref(), Ok(admitted), "{given}");
    }
    for outside in [
        "../secret",
        "a/../../secret",
        "/etc/passwd",
        "/etc/does-not-exist",
        "link",
        "up/secret",
        "..",
        &absolute("../secret"),
    ] {
        let error = bounds.admit_path(outside).unwrap_err();
        assert!(error.contains("--root"), "{outside}: {error}");
    }
    assert!(
        bounds
            .admit_path("missing")
            .unwrap_err()
            .contains("cannot read")
    );
    assert!(bounds.admit_path("").is_ok_and(|path| path == "."));
}

#[test]
fn each_bound_is_refused_with_its_flag_and_reached_without() {
    let folder = tempfile::tempdir().unwrap();
    let bounds = bounds(folder.path());
    let rate = |text| number::positive_rate(text).unwrap();
    assert_eq!(bounds.admit_rate(rate("1000")), Ok(()));
    let error = bounds.admit_rate(rate("1001")).unwrap_err();
    assert_eq!(
        error,
        "1,001/s is above the bound of 1,000/s (`plimsoll mcp --max-rate`)"
    );
    assert_eq!(bounds.admit_duration(Duration::from_mins(1)), Ok(()));
    let error = bounds.admit_duration(Duration::from_secs(61)).unwrap_err();
    assert!(error.contains("--max-duration"), "{error}");
    assert_eq!(bounds.admit_connections(100), Ok(()));
    let error = bounds.admit_connections(101).unwrap_err();
    assert!(error.contains("--max-connections"), "{error}");
}

#[test]
fn targets_are_urls_of_allowed_origins() {
    let folder = tempfile::tempdir().unwrap();
    let bounds = bounds(folder.path());
    for allowed in [
        "http://127.0.0.1:8080/a?b",
        "http://localhost/",
        "ws://[::1]:9/",
        "https://staging.example.org/x",
        // The same host in another spelling.
        "http://0x7f.1/",
    ] {
        assert!(bounds.admit_url(allowed).is_ok(), "{allowed}");
    }
    for refused in [
        "http://staging.example.org/",
        "https://staging.example.org:8443/",
        "https://127.0.0.1@example.org/",
        "https://example.org/?127.0.0.1",
        "http://169.254.169.254/",
        "http://0.0.0.0/",
        "http://[::ffff:10.0.0.1]/",
    ] {
        let error = bounds.admit_url(refused).unwrap_err();
        assert!(error.contains("--allow-target"), "{refused}: {error}");
    }
    for no_url in [
        "file:///etc/passwd",
        "--help",
        "script.js",
        "-",
        "HTTP://127.0.0.1",
        "sh -c x",
    ] {
        let error = bounds.admit_url(no_url).unwrap_err();
        assert!(error.contains("is not a URL"), "{no_url}: {error}");
    }
}
