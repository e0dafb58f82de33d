//! Keys of configurations: each that is read is in the schema that editors check it by.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::directions::{code_of, is_of_tests};
use super::{entries, read};
use crate::Failure;

/// Schemas with the folders whose code reads what they describe.
const SCHEMAS: [(&str, &[&str]); 2] = [
    (
        "schemas/server.v1.json",
        &[
            "crates/plimsoll-server/src/config",
            "crates/plimsoll-gateway/src/config",
            "crates/plimsoll-site/src/config.rs",
        ],
    ),
    (
        "schemas/monitor.v1.json",
        &["crates/plimsoll-monitor/src/config"],
    ),
];

/// Readers of other programs' files, whose keys have no schema of ours.
const FOREIGN: [&str; 3] = ["blackbox", "gatus", "import"];

/// Keys that are read and that their schema lacks, as problems.
pub(super) fn without_schema(root: &Path) -> Result<Vec<String>, Failure> {
    let read_key = Regex::new(READ_KEY).map_err(|error| error.to_string())?;
    let quoted = Regex::new(r#""(\w+)""#).map_err(|error| error.to_string())?;
    let mut problems = Vec::new();
    for (schema, folders) in SCHEMAS {
        let text = read(&root.join(schema))?;
        let known: BTreeSet<&str> = names(&quoted, &text);
        for folder in folders {
            let mut code = Vec::new();
            collect(&root.join(folder), &mut code)?;
            for (file, code) in code {
                let missing = names(&read_key, &code);
                let missing = missing.difference(&known);
                let file = file.strip_prefix(root).unwrap_or(&file).display();
                problems.extend(
                    missing.map(|key| format!("{file} reads `{key}`, which {schema} lacks")),
                );
            }
        }
    }
    Ok(problems)
}

/// A call that takes a value out of a table by its key.
const READ_KEY: &str =
    r#"\b(?:table|settings|inner|root|keys|rest)\s*\.\s*[a-z_]+\(\s*"([a-z0-9_]+)""#;

fn names<'t>(pattern: &Regex, text: &'t str) -> BTreeSet<&'t str> {
    let found = pattern.captures_iter(text);
    found.filter_map(|it| Some(it.get(1)?.as_str())).collect()
}

fn collect(path: &Path, code: &mut Vec<(PathBuf, String)>) -> Result<(), Failure> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if is_of_tests(&stem) || FOREIGN.contains(&&*stem) {
        return Ok(());
    }
    if path.is_dir() {
        for entry in entries(path)? {
            collect(&entry, code)?;
        }
    } else if path.extension().is_some_and(|it| it == "rs") {
        code.push((path.to_owned(), code_of(&read(path)?)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_they_are_read() {
        let pattern = Regex::new(READ_KEY).unwrap();
        let code = "let a = table.bytes(\"one\"); table\n    .take_value(\"two\"); other.text(\"three\"); table.missing(key, \"four\");";
        assert_eq!(names(&pattern, code), BTreeSet::from(["one", "two"]));
    }
}
