//! ARCHITECTURE.md held against the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{entries, sources};
use crate::Failure;

/// Which crates each one may use; `None` means all.
pub(super) type Allowed = BTreeMap<String, Option<BTreeSet<String>>>;

/// The sections of crates: a heading with the name, and a line `May use: model, wire.` with names without `plimsoll-`.
pub(super) fn allowed(text: &str) -> Allowed {
    let mut allowed = Allowed::new();
    let mut name = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            name = heading.split('`').nth(1).map(str::to_owned);
        } else if let Some(names) = line.strip_prefix("May use: ")
            && let Some(name) = name.take()
        {
            allowed.insert(name, may_use(names.trim_end_matches('.')));
        }
    }
    allowed
}

fn may_use(names: &str) -> Option<BTreeSet<String>> {
    match names {
        "all" => None,
        "nothing" => Some(BTreeSet::new()),
        names => {
            let names = names.split(',').map(str::trim);
            Some(names.map(|name| format!("plimsoll-{name}")).collect())
        }
    }
}

/// What the text names in backticks and the repository does not have: paths, or their ends, and types.
pub(super) fn missing(root: &Path, text: &str) -> Result<Vec<String>, Failure> {
    let mut paths = BTreeSet::new();
    for folder in ["crates", "xtask", "docs", "packaging"] {
        collect(root, &root.join(folder), &mut paths)?;
    }
    for entry in entries(root)? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        paths.insert(name.into_owned());
    }
    let mut types = BTreeSet::new();
    for folder in entries(&root.join("crates"))? {
        sources(&folder.join("src"), &mut |text| {
            types.extend(text.lines().filter_map(defined_type).map(str::to_owned));
        })?;
    }
    let is_there = |path: &str| {
        let end = format!("/{path}");
        paths.contains(path) || paths.iter().any(|known| known.ends_with(&end))
    };
    let names: BTreeSet<&str> = text.split('`').skip(1).step_by(2).collect();
    Ok(names
        .into_iter()
        .filter(|name| match Named::new(name) {
            Some(Named::Path(path)) => !is_there(path),
            Some(Named::Type(name)) => !types.contains(name),
            None => false,
        })
        .map(|name| format!("ARCHITECTURE.md names {name}, which is not there"))
        .collect())
}

/// The most that a reader takes in at once: bytes of the document.
const MOST_BYTES: usize = 18_000;

/// Characters of a line that an editor beside another one shows.
const MOST_CHARACTERS: usize = 120;

/// What makes the document hard to read: its length, and lines that are too long.
pub(super) fn too_long(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > MOST_BYTES {
        problems.push(format!(
            "ARCHITECTURE.md has {} bytes, and at most {MOST_BYTES} are read: decisions go to docs/decisions.md",
            text.len()
        ));
    }
    for (number, line) in (1..).zip(text.lines()) {
        let characters = line.chars().count();
        if characters > MOST_CHARACTERS {
            problems.push(format!(
                "ARCHITECTURE.md:{number}: {characters} characters, and at most {MOST_CHARACTERS} stand in a line"
            ));
        }
    }
    problems
}

/// What text in backticks may be.
#[derive(Debug, PartialEq)]
enum Named<'a> {
    Path(&'a str),
    Type(&'a str),
}

impl<'a> Named<'a> {
    fn new(text: &'a str) -> Option<Self> {
        const ENDS: [&str; 4] = [".rs", ".md", ".toml", ".yml"];
        if text.contains(char::is_whitespace) {
            return None;
        }
        if text.contains('/') || ENDS.iter().any(|end| text.ends_with(end)) {
            return Some(Self::Path(text.trim_end_matches('/')));
        }
        let last = text.rsplit("::").next()?;
        let is_name = last.chars().all(char::is_alphanumeric);
        (is_name && last.starts_with(char::is_uppercase)).then_some(Self::Type(last))
    }
}

/// The type that a line defines, of any visibility.
fn defined_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ')?.1,
        None => line,
    };
    let rest = ["struct ", "enum ", "trait ", "type "]
        .iter()
        .find_map(|keyword| rest.strip_prefix(keyword))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    rest.get(..end.unwrap_or(rest.len()))
}

/// Files and folders below `folder`, as they are from `root`.
fn collect(root: &Path, folder: &Path, paths: &mut BTreeSet<String>) -> Result<(), Failure> {
    for path in entries(folder)? {
        let name = path.strip_prefix(root).unwrap_or(&path);
        paths.insert(name.to_string_lossy().into_owned());
        if path.is_dir() && !path.ends_with("node_modules") {
            collect(root, &path, paths)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_crates_are_read() {
        let text = "### `plimsoll-model`\nValues.\nMay use: nothing.\n\n### `plimsoll-mock`\n\nMay use: wire, model.\n\n### `plimsoll`\nMay use: all.\n";
        let allowed = allowed(text);
        assert_eq!(allowed["plimsoll-model"], Some(BTreeSet::new()));
        let names = ["plimsoll-model", "plimsoll-wire"].map(str::to_owned);
        assert_eq!(allowed["plimsoll-mock"], Some(names.into()));
        assert_eq!(allowed["plimsoll"], None);
        assert_eq!(allowed.len(), 3);
    }

    #[test]
    fn names_that_are_not_there_are_reported() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = "`wire`, `tidy/architecture.rs`, `Histogram`, `model::Histogram`, `cargo xtask x/y`, \
            `tidy/gone.rs`, `NoSuchType`, `crates/`";
        assert_eq!(
            missing(&root, text).unwrap(),
            [
                "ARCHITECTURE.md names NoSuchType, which is not there",
                "ARCHITECTURE.md names tidy/gone.rs, which is not there"
            ]
        );
    }

    #[test]
    fn what_is_long_is_reported_with_its_line() {
        let long = "ä".repeat(MOST_CHARACTERS + 1);
        let text = format!("{}\n{long}\n", "ä".repeat(MOST_CHARACTERS));
        assert_eq!(
            too_long(&text),
            ["ARCHITECTURE.md:2: 121 characters, and at most 120 stand in a line"]
        );
        assert_eq!(too_long(&"a\n".repeat(MOST_BYTES)).len(), 1);
    }

    #[test]
    fn types_are_found_where_they_are_defined() {
        assert_eq!(defined_type("pub(crate) struct Plan<'a> {"), Some("Plan"));
        assert_eq!(defined_type("    enum Kind {"), Some("Kind"));
        assert_eq!(defined_type("pub fn plan() {"), None);
    }
}
