use std::collections::BTreeMap;

use super::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

fn release(triple: &str) -> Release {
    Release {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        target: Target::named(triple).unwrap(),
        epoch: 0,
        revision: String::new(),
        repository: "https://git.example/plimsoll".to_owned(),
    }
}

/// What cargo-binstall fetches is what the release has.
#[test]
fn the_archive_is_found_by_its_metadata() {
    let manifest: toml::Table = toml::from_str(&read("crates/plimsoll/Cargo.toml")).unwrap();
    let binstall = &manifest["package"]["metadata"]["binstall"];
    let release = release("aarch64-unknown-linux-musl");
    let filled = |key: &str| {
        let pattern = binstall[key].as_str().unwrap();
        pattern
            .replace("{ repo }", &release.repository)
            .replace("{ version }", &release.version)
            .replace("{ target }", release.target.triple)
            .replace("{ bin }", "plimsoll")
            .replace("{ binary-ext }", "")
    };
    let name = release.name();
    let version = &release.version;
    assert_eq!(
        filled("pkg-url"),
        format!("https://git.example/plimsoll/releases/download/v{version}/{name}.tar.gz")
    );
    assert_eq!(filled("bin-dir"), format!("{name}/plimsoll"));
}

/// The workflows that people copy are YAML, name this version, and the archive as it is called.
#[test]
fn workflows_of_the_documents_fetch_what_a_release_has() {
    let document = read("docs/ci.md");
    let blocks: Vec<&str> = document
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("\n```"))
        .map(|(block, _)| block)
        .collect();
    assert!(blocks.len() >= 3, "docs/ci.md has workflows");
    let release = release("x86_64-unknown-linux-musl");
    let name = release.name().replace(&release.version, "$VERSION");
    for block in &blocks {
        let parsed: BTreeMap<String, Value> = serde_saphyr::from_str(block)
            .unwrap_or_else(|error| panic!("docs/ci.md: {error} in\n{block}"));
        assert!(!parsed.is_empty());
        for line in block.lines().filter(|line| line.contains("VERSION: ")) {
            assert!(line.ends_with(&release.version), "{line}");
        }
        for line in block.lines().filter(|line| line.contains("name=plimsoll")) {
            assert!(line.ends_with(&name), "{line}");
        }
    }
}

/// Lengths that others send are computed with checks in what is packaged too.
#[test]
fn parsers_check_for_overflow_in_every_optimised_profile() {
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let profiles = &manifest["profile"];
    for profile in ["release", "dist", "packed", "bench"] {
        for package in ["plimsoll-wire", "plimsoll-formats"] {
            let checks = inherited(profiles, profile, |profile| {
                profile.get("package")?.get(package)?.get("overflow-checks")
            });
            assert_eq!(checks, Some(true), "{package} of {profile}");
        }
    }
}

/// A setting of `profile`, or of the nearest one that it inherits from and that has it.
fn inherited<'a>(
    profiles: &'a toml::Value,
    profile: &str,
    setting: impl Fn(&'a toml::Value) -> Option<&'a toml::Value>,
) -> Option<bool> {
    let mut profile = profiles.get(profile);
    while let Some(this) = profile {
        if let Some(value) = setting(this) {
            return value.as_bool();
        }
        profile = profiles.get(this.get("inherits")?.as_str()?);
    }
    None
}

/// Both workflows and the image of every processor go through the same tasks.
#[test]
fn workflows_call_the_tasks() {
    for (file, task) in [
        ("release.yml", "cargo xtask package --out out --check"),
        ("release.yml", "--target aarch64-unknown-linux-musl"),
        ("release.yml", "cargo xtask deploy"),
        ("release.yml", "cargo xtask book"),
        ("ci.yml", ".ci/run"),
        ("ci.yml", "cargo xtask book"),
    ] {
        let text = read(&format!(".github/workflows/{file}"));
        let parsed: Value =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(parsed["jobs"].is_object(), "{file}");
        assert!(text.contains(task), "{file} does not call `{task}`");
    }
}
