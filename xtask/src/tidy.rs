//! `cargo xtask tidy`: facts about the workspace.
//!
//! - Every edge between two of its crates is in the table of ARCHITECTURE.md.
//! - No two crates share a description.
//! - Every subcommand that help shows has a page in docs/, and every page a line in its summary.
//!
//! It never checks lengths.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::{Failure, Outcome};

/// Runs the task.
pub(crate) fn run(root: &Path) -> Outcome {
    let crates = read_crates(root)?;
    let architecture = read(&root.join("ARCHITECTURE.md"))?;
    let mut problems = edges(&crates, &allowed(&architecture));
    problems.extend(descriptions(&crates));
    problems.extend(pages(root)?);
    problems.extend(left_out(root)?);
    for problem in &problems {
        eprintln!("tidy: {problem}");
    }
    if problems.is_empty() {
        println!("tidy: {} crates, nothing to say", crates.len());
        Ok(())
    } else {
        Err(format!("{} untidy facts", problems.len()).into())
    }
}

/// What matters of a Cargo.toml.
#[derive(Debug, Deserialize)]
struct Manifest {
    package: Package,
    #[serde(default)]
    dependencies: BTreeMap<String, toml::Value>,
    #[serde(default, rename = "build-dependencies")]
    build: BTreeMap<String, toml::Value>,
    #[serde(default, rename = "dev-dependencies")]
    dev: BTreeMap<String, toml::Value>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    #[serde(default)]
    description: String,
}

/// Which crates each one may use; `None` means all.
type Allowed = BTreeMap<String, Option<BTreeSet<String>>>;

/// Only tests may use it, and any crate's tests may.
const FOR_TESTS: &str = "plimsoll-testkit";

/// Subcommands that plimsoll starts itself and that no help shows, and what subcommands have in common.
const HIDDEN: [&str; 4] = ["origin", "loadtest-origins", "loadtest-clients", "serving"];

fn read_crates(root: &Path) -> Result<Vec<Manifest>, Failure> {
    let mut files = vec![root.join("xtask/Cargo.toml")];
    for entry in entries(&root.join("crates"))? {
        files.push(entry.join("Cargo.toml"));
    }
    files.sort();
    files
        .iter()
        .map(|file| {
            toml::from_str(&read(file)?)
                .map_err(|error| format!("{}: {error}", file.display()).into())
        })
        .collect()
}

/// The rows of the table of crates: `| name | … | crates it may use |`, names without `plimsoll-`.
fn allowed(architecture: &str) -> Allowed {
    let mut allowed = Allowed::new();
    for line in architecture.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line
            .trim()
            .trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else {
            continue;
        };
        let name = first.split('`').nth(1).unwrap_or_default();
        if name != "xtask" && !name.starts_with("plimsoll") {
            continue;
        }
        let may_use = if *last == "all" {
            None
        } else {
            let names = last.split(',').map(|text| {
                let name = text.split('(').next().unwrap_or_default();
                name.trim().trim_matches('`').to_owned()
            });
            Some(
                names
                    .filter(|name| !name.is_empty() && name != "–" && name != "-")
                    .map(|name| format!("plimsoll-{}", name.trim_start_matches("plimsoll-")))
                    .collect(),
            )
        };
        allowed.insert(name.to_owned(), may_use);
    }
    allowed
}

fn edges(crates: &[Manifest], allowed: &Allowed) -> Vec<String> {
    let members: BTreeSet<&str> = crates
        .iter()
        .map(|member| member.package.name.as_str())
        .collect();
    let mut problems = Vec::new();
    for member in crates {
        let name = &member.package.name;
        let Some(may_use) = allowed.get(name) else {
            problems.push(format!("{name} is missing in the table of ARCHITECTURE.md"));
            continue;
        };
        let may_use = |other: &str| may_use.as_ref().is_none_or(|names| names.contains(other));
        let shipped = member.dependencies.keys().chain(member.build.keys());
        for other in shipped.filter(|other| members.contains(other.as_str())) {
            if other == FOR_TESTS {
                problems.push(format!("{name} uses {other} outside of its tests"));
            } else if !may_use(other) {
                problems.push(format!(
                    "{name} uses {other}, which ARCHITECTURE.md does not allow"
                ));
            }
        }
        for other in member
            .dev
            .keys()
            .filter(|other| members.contains(other.as_str()))
        {
            if other != FOR_TESTS && !may_use(other) {
                problems.push(format!(
                    "the tests of {name} use {other}, which ARCHITECTURE.md does not allow"
                ));
            }
        }
    }
    problems
}

fn descriptions(crates: &[Manifest]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for Manifest { package, .. } in crates {
        if package.description.is_empty() {
            problems.push(format!("{} has no description", package.name));
        } else if let Some(other) = seen.insert(&package.description, &package.name) {
            problems.push(format!("{other} and {} share a description", package.name));
        }
    }
    problems
}

fn pages(root: &Path) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    for file in entries(&root.join("crates/plimsoll/src/commands"))? {
        let is_source = file.extension().is_some_and(|extension| extension == "rs");
        let stem = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let page = format!("docs/{}.md", stem.replace('_', "-"));
        if is_source && !HIDDEN.contains(&stem.as_str()) && !root.join(&page).is_file() {
            problems.push(format!("the subcommand {stem} has no page {page}"));
        }
    }
    problems.sort();
    Ok(problems)
}

/// Pages that no reader of the book would find.
fn left_out(root: &Path) -> Result<Vec<String>, Failure> {
    let summary = read(&root.join("docs/SUMMARY.md"))?;
    let mut problems = Vec::new();
    for file in entries(&root.join("docs"))? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_page = name.ends_with(".md") && name != "SUMMARY.md";
        if is_page && !summary.contains(&format!("]({name})")) {
            problems.push(format!("docs/SUMMARY.md does not lead to {name}"));
        }
    }
    problems.sort();
    Ok(problems)
}

fn entries(directory: &Path) -> Result<Vec<std::path::PathBuf>, Failure> {
    fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(|error| format!("cannot list {}: {error}", directory.display()).into())
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
| crate | holds | may use |
|---|---|---|
| `plimsoll-model` | values | – |
| `plimsoll-wire` | sockets | model |
| `plimsoll-mock` | rules | wire, script (feature), `plimsoll-model` |
| `plimsoll` | the binary | all |
| `plimsoll-testkit` (dev) | origins | model |
| `xtask` | tasks | – |
";

    fn manifest(name: &str, rest: &str) -> Manifest {
        toml::from_str(&format!(
            "[package]\nname = \"{name}\"\ndescription = \"about {name}\"\n{rest}"
        ))
        .unwrap()
    }

    fn problems(crates: &[Manifest]) -> Vec<String> {
        edges(crates, &allowed(TABLE))
    }

    #[test]
    fn the_table_is_read() {
        let allowed = allowed(TABLE);
        assert_eq!(allowed["plimsoll-model"], Some(BTreeSet::new()));
        assert_eq!(allowed["plimsoll"], None);
        let mock: Vec<&str> = allowed["plimsoll-mock"]
            .as_ref()
            .unwrap()
            .iter()
            .map(String::as_str)
            .collect();
        assert_eq!(mock, ["plimsoll-model", "plimsoll-script", "plimsoll-wire"]);
        assert_eq!(allowed.len(), 6);
    }

    #[test]
    fn edges_are_held_against_the_table() {
        let model = || {
            manifest(
                "plimsoll-model",
                "[dev-dependencies]\nplimsoll-testkit = {}",
            )
        };
        let testkit = || manifest("plimsoll-testkit", "");
        let wire = manifest(
            "plimsoll-wire",
            "[dependencies]\nplimsoll-model = {}\nserde = {}",
        );
        assert_eq!(problems(&[model(), testkit(), wire]), Vec::<String>::new());

        let upward = manifest("plimsoll-model", "[dependencies]\nplimsoll-testkit = {}");
        let sideways = manifest("plimsoll-wire", "[build-dependencies]\nplimsoll-mock = {}");
        let in_tests = manifest("plimsoll-mock", "[dev-dependencies]\nplimsoll-new = {}");
        let new = manifest("plimsoll-new", "");
        assert_eq!(
            problems(&[upward, testkit(), sideways, in_tests, new]),
            [
                "plimsoll-model uses plimsoll-testkit outside of its tests",
                "plimsoll-wire uses plimsoll-mock, which ARCHITECTURE.md does not allow",
                "the tests of plimsoll-mock use plimsoll-new, which ARCHITECTURE.md does not allow",
                "plimsoll-new is missing in the table of ARCHITECTURE.md",
            ]
        );
    }

    #[test]
    fn descriptions_differ() {
        let mut second = manifest("b", "");
        second.package.description = "about a".to_owned();
        let mut third = manifest("c", "");
        third.package.description.clear();
        assert_eq!(
            descriptions(&[manifest("a", ""), second, third]),
            ["a and b share a description", "c has no description"]
        );
    }
}
