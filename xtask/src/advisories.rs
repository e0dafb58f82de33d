//! `cargo xtask advisories`: what rustsec.org says of the packages in Cargo.lock.
//!
//! Continuous integration may have no network, so a copy of the advisories about our packages is in the repository. The task
//! refreshes it from its database; `cargo xtask ci` compares it with Cargo.lock. What is known and accepted stands in
//! deny.toml with its reason, where `cargo deny check advisories` looks too.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};

use crate::step;
use crate::{Failure, Outcome};

/// The copy, below the root.
const COPY: &str = "xtask/advisories.toml";

const DATABASE: &str = "https://github.com/rustsec/advisory-db";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A clone of the database of rustsec.org; one is made below target/ unless it is given
    #[arg(long, value_name = "DIR")]
    database: Option<PathBuf>,
}

/// The copy of the advisories.
#[derive(Debug, Serialize, Deserialize)]
struct Copied {
    /// When the database was last changed.
    date: String,
    commit: String,
    advisory: Vec<Advisory>,
    /// The packages that were looked up, with and without advisories.
    packages: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Advisory {
    id: String,
    package: String,
    title: String,
    /// `unsound`, `unmaintained` or `notice`; absent for a vulnerability.
    #[serde(skip_serializing_if = "Option::is_none")]
    informational: Option<String>,
    patched: Vec<VersionReq>,
    unaffected: Vec<VersionReq>,
}

impl Advisory {
    fn is_about(&self, package: &Package) -> bool {
        let mut fine = self.patched.iter().chain(&self.unaffected);
        self.package == package.name && !fine.any(|one| one.matches(&package.version))
    }

    /// Whether it fails the check; otherwise it is said.
    fn is_grave(&self) -> bool {
        matches!(self.informational.as_deref(), None | Some("unsound"))
    }
}

#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Debug, Clone, Deserialize)]
struct Package {
    name: String,
    version: Version,
    /// Absent for our own.
    source: Option<String>,
}

/// The part of deny.toml that names accepted advisories.
#[derive(Debug, Default, Deserialize)]
struct Deny {
    #[serde(default)]
    advisories: Accepted,
}

#[derive(Debug, Default, Deserialize)]
struct Accepted {
    #[serde(default)]
    ignore: Vec<Ignored>,
}

#[derive(Debug, Deserialize)]
struct Ignored {
    id: String,
    reason: String,
}

/// Refreshes the copy.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let database = match &arguments.database {
        Some(given) => given.clone(),
        None => cloned(root)?,
    };
    let names: BTreeSet<_> = packages(root)?.into_iter().map(|one| one.name).collect();
    let listed = git(
        &database,
        &["ls-tree", "-r", "--name-only", "HEAD", "crates"],
    )?;
    let mut advisory = Vec::new();
    for path in listed.lines() {
        let package = path.split('/').nth(1).unwrap_or_default();
        if names.contains(package) {
            let text = git(&database, &["show", &format!("HEAD:{path}")])?;
            let parsed = parse(&text).map_err(|why| format!("{path}: {why}"))?;
            advisory.extend(parsed);
        }
    }
    let log = |format: &str| git(&database, &["log", "-1", &format!("--format={format}")]);
    let copied = Copied {
        date: log("%cs")?.trim().to_owned(),
        commit: log("%H")?.trim().to_owned(),
        advisory,
        packages: names,
    };
    let text = toml::to_string(&copied).map_err(|error| error.to_string())?;
    let head = "# Advisories of RustSec (https://rustsec.org, CC0 and CC-BY) about packages in Cargo.lock.\n\
                # `cargo xtask advisories` refreshes this file.\n\n";
    fs::write(root.join(COPY), format!("{head}{text}")).map_err(|error| error.to_string())?;
    println!("wrote {COPY}: {} advisories", copied.advisory.len());
    check(root)
}

/// Compares the copy with Cargo.lock.
pub(crate) fn check(root: &Path) -> Outcome {
    let read = |name: &str| {
        let text = fs::read_to_string(root.join(name));
        text.map_err(|error| Failure(format!("cannot read {name}: {error}")))
    };
    let copied: Copied = toml::from_str(&read(COPY)?).map_err(|error| error.to_string())?;
    let deny: Deny = toml::from_str(&read("deny.toml")?).map_err(|error| error.to_string())?;
    println!(
        "by the copy of RustSec's database of {}; `cargo xtask advisories` refreshes it",
        copied.date
    );
    let (report, is_fine) = judge(&copied, &packages(root)?, &deny.advisories.ignore);
    print!("{report}");
    if is_fine {
        Ok(())
    } else {
        Err("packages have advisories: raise or replace them, or accept them in deny.toml".into())
    }
}

/// What is to be said, and whether nothing speaks against the packages.
fn judge(copied: &Copied, packages: &[Package], accepted: &[Ignored]) -> (String, bool) {
    let mut report = String::new();
    let mut say = |line: String| {
        writeln!(report, "{line}").expect("text can be written to memory");
    };
    let mut is_fine = true;
    let mut used = BTreeSet::new();
    for package in packages {
        for advisory in copied.advisory.iter().filter(|one| one.is_about(package)) {
            let about = format!(
                "{} {}: {} ({})",
                package.name, package.version, advisory.title, advisory.id
            );
            if let Some(ignored) = accepted.iter().find(|one| one.id == advisory.id) {
                used.insert(&ignored.id);
                say(format!("accepted: {about}: {}", ignored.reason));
            } else if advisory.is_grave() {
                is_fine = false;
                say(format!("error: {about}"));
            } else {
                say(format!("note: {about}"));
            }
        }
    }
    for ignored in accepted.iter().filter(|one| !used.contains(&one.id)) {
        is_fine = false;
        say(format!(
            "error: deny.toml accepts {}, which is about no package",
            ignored.id
        ));
    }
    let unknown: BTreeSet<_> = packages
        .iter()
        .map(|package| &package.name)
        .filter(|name| !copied.packages.contains(*name))
        .collect();
    if !unknown.is_empty() {
        let names: Vec<_> = unknown.into_iter().map(String::as_str).collect();
        say(format!(
            "not looked up since they were added: {}",
            names.join(", ")
        ));
    }
    (report, is_fine)
}

/// The packages of others in Cargo.lock.
fn packages(root: &Path) -> Result<Vec<Package>, Failure> {
    let text = fs::read_to_string(root.join("Cargo.lock")).map_err(|error| error.to_string())?;
    let mut lock: Lock = toml::from_str(&text).map_err(|error| error.to_string())?;
    lock.package.retain(|package| package.source.is_some());
    Ok(lock.package)
}

/// The front matter of an advisory and the title behind it; nothing for one that was withdrawn.
fn parse(text: &str) -> Result<Option<Advisory>, String> {
    #[derive(Deserialize)]
    struct Document {
        advisory: Head,
        versions: Versions,
    }

    #[derive(Deserialize)]
    struct Head {
        id: String,
        package: String,
        informational: Option<String>,
        withdrawn: Option<toml::Value>,
    }

    #[derive(Deserialize)]
    struct Versions {
        patched: Vec<VersionReq>,
        #[serde(default)]
        unaffected: Vec<VersionReq>,
    }

    let rest = text
        .strip_prefix("```toml\n")
        .ok_or("it does not begin with TOML")?;
    let (front, body) = rest.split_once("\n```").ok_or("its TOML does not end")?;
    let document: Document = toml::from_str(front).map_err(|error| error.to_string())?;
    if document.advisory.withdrawn.is_some() {
        return Ok(None);
    }
    let title = body.lines().find_map(|line| line.strip_prefix("# "));
    Ok(Some(Advisory {
        id: document.advisory.id,
        package: document.advisory.package,
        title: title.unwrap_or_default().trim().to_owned(),
        informational: document.advisory.informational,
        patched: document.versions.patched,
        unaffected: document.versions.unaffected,
    }))
}

fn git(database: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("git");
    let output = command.arg("-C").arg(database).args(arguments).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure(format!("git {}: {error}", arguments.join(" "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A clone below target/, brought up to date.
fn cloned(root: &Path) -> Result<PathBuf, Failure> {
    let database = root.join("target/advisory-db");
    let mut command = Command::new("git");
    if database.exists() {
        command.arg("-C").arg(&database).args(["pull", "--ff-only"]);
    } else {
        command
            .args(["clone", "--depth", "1", DATABASE])
            .arg(&database);
    }
    step::run(root, &mut command)
        .map_err(|Failure(why)| format!("{why}; give a clone by --database"))?;
    Ok(database)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2026-0253\"\npackage = \"lru\"\n\
        informational = \"unsound\"\n[versions]\npatched = [\">= 0.18.2\"]\nunaffected = [\"< 0.2.0\"]\n```\n\n\
        # Potential use-after-free\n\nMore.\n";

    fn copied() -> Copied {
        Copied {
            date: "2026-08-21".to_owned(),
            commit: String::new(),
            advisory: vec![parse(TEXT).unwrap().unwrap()],
            packages: BTreeSet::from(["lru".to_owned()]),
        }
    }

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.parse().unwrap(),
            source: None,
        }
    }

    fn accepted(id: &str) -> Vec<Ignored> {
        vec![Ignored {
            id: id.to_owned(),
            reason: "keys do not panic".to_owned(),
        }]
    }

    #[test]
    fn versions_are_matched() {
        for (version, is_fine) in [
            ("0.1.9", true),
            ("0.16.4", false),
            ("0.18.1", false),
            ("0.18.5", true),
        ] {
            let (report, found) = judge(&copied(), &[package("lru", version)], &[]);
            assert_eq!(found, is_fine, "{version}: {report}");
        }
    }

    #[test]
    fn accepted_ones_are_said_and_must_be_about_something() {
        let old = [package("lru", "0.16.4")];
        let (report, is_fine) = judge(&copied(), &old, &accepted("RUSTSEC-2026-0253"));
        assert!(is_fine && report.contains("keys do not panic"), "{report}");
        let new = [package("lru", "0.18.5")];
        let (report, is_fine) = judge(&copied(), &new, &accepted("RUSTSEC-2026-0253"));
        assert!(!is_fine && report.contains("about no package"), "{report}");
    }

    #[test]
    fn packages_that_were_added_since_are_named() {
        let (report, is_fine) = judge(&copied(), &[package("new", "1.0.0")], &[]);
        assert!(
            is_fine && report.contains("not looked up since they were added: new"),
            "{report}"
        );
    }

    #[test]
    fn withdrawn_ones_do_not_count() {
        let text = TEXT.replace("[versions]", "withdrawn = \"2026-06-01\"\n[versions]");
        assert_eq!(parse(&text).unwrap(), None);
    }

    /// The copy is of this workspace: nothing in it is unknown, and Cargo.lock has no advisory that is not accepted.
    #[test]
    fn cargo_lock_has_no_advisory_that_is_not_accepted() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        if let Err(Failure(why)) = check(root) {
            panic!("{why}");
        }
    }
}
