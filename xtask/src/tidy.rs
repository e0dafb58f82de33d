//! `cargo xtask tidy`: facts about the workspace.
//!
//! - Every edge between two of its crates is in ARCHITECTURE.md, and every path and type that it names exists.
//! - Between the modules of a large crate imports run one way, as `tidy/directions.toml` lists it.
//! - The inputs of the GitHub action reach its script, and documents name no others.
//! - Functions of libraries fail with types, not with texts.
//! - Every key that the configuration of servers and of the monitor reads is in its schema.
//! - No two crates share a description.
//! - Every subcommand that help shows has a page in docs/, and every page a line in its summary.
//! - Every link between Markdown files leads to a file and a heading that exist, from docs/ also in the site made of it.
//! - Every fuzz target is built, described in fuzz/README.md, and has seeds.
//! - Every file that a recipe of CONTRIBUTING.md or the last column of docs/lexicon.md names exists.
//! - No two crates export a type of one name, unless docs/lexicon.md says why.
//!
//! It never checks lengths.

mod action;
mod architecture;
mod directions;
mod errors;
mod keys;
mod links;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use self::architecture::Allowed;
use crate::{Failure, Outcome};

/// Runs the task.
pub(crate) fn run(root: &Path) -> Outcome {
    let crates = read_crates(root)?;
    let architecture = read(&root.join("ARCHITECTURE.md"))?;
    let mut problems = edges(&crates, &architecture::allowed(&architecture));
    problems.extend(architecture::missing(root, &architecture)?);
    problems.extend(architecture::too_long(&architecture));
    problems.extend(directions::broken(root)?);
    problems.extend(action::disagreements(root)?);
    problems.extend(errors::texts(root)?);
    problems.extend(keys::without_schema(root)?);
    problems.extend(descriptions(&crates));
    problems.extend(pages(root)?);
    problems.extend(left_out(root)?);
    problems.extend(links::broken(root)?);
    problems.extend(fuzz_targets(&root.join("fuzz"))?);
    problems.extend(recipes(root, &read(&root.join("CONTRIBUTING.md"))?));
    problems.extend(homes(root, &read(&root.join("docs/lexicon.md"))?));
    problems.extend(shared_names(
        &exported(root)?,
        &read(&root.join("docs/lexicon.md"))?,
    ));
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

fn edges(crates: &[Manifest], allowed: &Allowed) -> Vec<String> {
    let members: BTreeSet<&str> = crates
        .iter()
        .map(|member| member.package.name.as_str())
        .collect();
    let mut problems = Vec::new();
    for member in crates {
        let name = &member.package.name;
        let Some(may_use) = allowed.get(name) else {
            problems.push(format!("{name} is missing in ARCHITECTURE.md"));
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
    let pages = markdown_files(&root.join("docs"))?;
    let names = pages.iter().map(|page| page.to_string_lossy());
    Ok(names
        .filter(|name| name != "SUMMARY.md" && !summary.contains(&format!("]({name})")))
        .map(|name| format!("docs/SUMMARY.md does not lead to {name}"))
        .collect())
}

/// The Markdown files below a folder, as they are from it, sorted.
pub(crate) fn markdown_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in entries(&next)? {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                found.push(path.strip_prefix(folder).unwrap_or(&path).to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Fuzz targets that would not run, or of which nobody would know.
fn fuzz_targets(folder: &Path) -> Result<Vec<String>, Failure> {
    let readme = read(&folder.join("README.md"))?;
    let manifest = read(&folder.join("Cargo.toml"))?;
    let mut problems = Vec::new();
    for file in entries(&folder.join("fuzz_targets"))? {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        if !manifest.contains(&format!("\nname = \"{name}\"\n")) {
            problems.push(format!("fuzz/Cargo.toml does not build the target {name}"));
        }
        if !readme.contains(&format!("\n| `{name}` |")) {
            problems.push(format!(
                "fuzz/README.md does not describe the target {name}"
            ));
        }
        let seeds = folder.join("seeds").join(&*name);
        if !entries(&seeds).is_ok_and(|seeds| !seeds.is_empty()) {
            problems.push(format!("the fuzz target {name} has no seeds"));
        }
    }
    problems.sort();
    Ok(problems)
}

/// The files in the table of recipes that do not exist.
fn recipes(root: &Path, contributing: &str) -> Vec<String> {
    let section = contributing
        .split("\n## ")
        .find(|it| it.starts_with("Recipes"));
    let Some(section) = section else {
        return vec!["CONTRIBUTING.md has no recipes".to_owned()];
    };
    let rows = section.lines().filter(|line| line.starts_with("| a"));
    let names = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    names
        .filter(|name| name.contains('.') && !root.join(name).is_file())
        .map(|name| format!("a recipe of CONTRIBUTING.md names {name}, which is not there"))
        .collect()
}

/// The files and folders in the last column of the lexicon that do not exist.
fn homes(root: &Path, lexicon: &str) -> Vec<String> {
    let rows = lexicon.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches([' ', '|']).rsplit('|').next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names
        .filter(|name| name.contains("/src"))
        .filter(|name| !root.join(format!("crates/plimsoll-{name}")).exists())
        .map(|name| format!("docs/lexicon.md names {name}, which is not there"))
        .collect()
}

/// The types that each crate exports: public where they are defined, and named by a `pub use` or defined in a public
/// module. By the name of the type, the crates without `plimsoll-`.
fn exported(root: &Path) -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in entries(&root.join("crates"))? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let Some(name) = name.strip_prefix("plimsoll-") else {
            continue;
        };
        // Both exist for tests and measurements of this workspace.
        if ["testkit", "bench"].contains(&name) {
            continue;
        }
        let mut defined = BTreeSet::new();
        let mut reexported = BTreeSet::new();
        sources(&folder.join("src"), &mut |text| {
            defined.extend(text.lines().filter_map(public_type).map(str::to_owned));
            for use_ in text.split("\npub use ").skip(1) {
                let end = use_.find(';').unwrap_or(use_.len());
                let names = use_.get(..end).unwrap_or_default();
                let words = names.split(|c: char| !c.is_alphanumeric() && c != '_');
                reexported.extend(words.map(str::to_owned));
            }
        })?;
        for exported in defined.intersection(&reexported) {
            all.entry(exported.clone())
                .or_default()
                .insert(name.to_owned());
        }
    }
    Ok(all)
}

/// The name of a public type that a line defines.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = ["struct ", "enum ", "trait ", "type ", "union "]
        .iter()
        .find_map(|keyword| rest.strip_prefix(keyword))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    rest.get(..end.unwrap_or(rest.len()))
}

fn sources(folder: &Path, each: &mut dyn FnMut(&str)) -> Outcome {
    for path in entries(folder)? {
        if path.is_dir() {
            sources(&path, each)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            each(&read(&path)?);
        }
    }
    Ok(())
}

/// Names that several crates export, unless a row `| `Name` | … | why |` of the lexicon explains them.
fn shared_names(exported: &BTreeMap<String, BTreeSet<String>>, lexicon: &str) -> Vec<String> {
    let section = lexicon
        .split("\n## ")
        .find(|it| it.starts_with("Types of one name"));
    let rows = section
        .unwrap_or_default()
        .lines()
        .filter(|line| line.starts_with("| `"));
    let explained: BTreeSet<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let mut problems: Vec<_> = exported
        .iter()
        .filter(|(name, crates)| crates.len() > 1 && !explained.contains(name.as_str()))
        .map(|(name, crates)| {
            let crates: Vec<_> = crates.iter().map(String::as_str).collect();
            format!(
                "{} export `{name}`; docs/lexicon.md does not say why",
                crates.join(" and ")
            )
        })
        .collect();
    let is_shared = |name: &&str| exported.get(*name).is_some_and(|crates| crates.len() > 1);
    problems.extend(
        explained
            .iter()
            .filter(|name| !is_shared(name))
            .map(|name| {
                format!("docs/lexicon.md explains `{name}`, which one crate exports at most")
            }),
    );
    problems
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
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

    const TEXT: &str = "\
### `plimsoll-model`
Values.
May use: nothing.
### `plimsoll-wire`
May use: model.
### `plimsoll-mock`
May use: wire, script, model.
### `plimsoll`
May use: all.
### `plimsoll-testkit`
May use: model.
";

    fn manifest(name: &str, rest: &str) -> Manifest {
        toml::from_str(&format!(
            "[package]\nname = \"{name}\"\ndescription = \"about {name}\"\n{rest}"
        ))
        .unwrap()
    }

    fn problems(crates: &[Manifest]) -> Vec<String> {
        edges(crates, &architecture::allowed(TEXT))
    }

    #[test]
    fn edges_are_held_against_the_text() {
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
                "plimsoll-new is missing in ARCHITECTURE.md",
            ]
        );
    }

    #[test]
    fn recipes_name_files_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = "# A\n## Recipes\n| a task | `src/tidy.rs`, an `ActionKind`, `src/gone.rs` |\n## B\n| a | `x.rs` |\n";
        assert_eq!(
            recipes(root, text),
            ["a recipe of CONTRIBUTING.md names src/gone.rs, which is not there"]
        );
        assert_eq!(recipes(root, "# A\n").len(), 1);
    }

    #[test]
    fn types_of_one_name_are_explained() {
        let crates = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let exported = BTreeMap::from([
            ("One".to_owned(), crates(&["a"])),
            ("Request".to_owned(), crates(&["client", "server"])),
            ("Plan".to_owned(), crates(&["a", "b"])),
        ]);
        let lexicon = "# L\n\n## Types of one name\n\n| types | why |\n|---|---|\n| `Request`, `One` | ends |\n";
        assert_eq!(
            shared_names(&exported, lexicon),
            [
                "a and b export `Plan`; docs/lexicon.md does not say why",
                "docs/lexicon.md explains `One`, which one crate exports at most"
            ]
        );
        assert_eq!(public_type("pub struct Plan<'a> {"), Some("Plan"));
        assert_eq!(public_type("pub(crate) struct Plan;"), None);
        assert_eq!(public_type("    pub struct Plan;"), None);
    }

    #[test]
    fn the_lexicon_names_files_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let rows = "| a | b | | `model/src/lib.rs` |\n| a | `text/html` | |\n| a | b | c | `model/src/gone.rs` |\n";
        assert_eq!(
            homes(&root, rows),
            ["docs/lexicon.md names model/src/gone.rs, which is not there"]
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
