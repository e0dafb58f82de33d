//! Tests that are new or different since a commit: those are run often before they are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::step;

/// The names of tests by the folder of their package, below the root.
pub(super) type Changed = BTreeMap<String, BTreeSet<String>>;

/// What `git` has as different since `commit`, the files that are not committed included.
pub(super) fn changed(root: &Path, commit: &str) -> Result<Changed, Failure> {
    let mut git = Command::new("git");
    git.args(["diff", "--unified=0", "--no-color", "--no-ext-diff", commit]);
    let diff = step::output(root, git.args(["--", "*.rs"]))?;
    let mut changed = Changed::new();
    for (file, lines) in lines_of(&diff) {
        let Some(folder) = package_folder(root, file) else {
            continue;
        };
        let text =
            fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        let tests = tests_at(&text, &lines);
        if !tests.is_empty() {
            changed.entry(folder).or_default().extend(tests);
        }
    }
    if changed.is_empty() {
        return Err(format!("no test differs since {commit}").into());
    }
    Ok(changed)
}

/// The lines that each file has now and did not have, from 1 (GNU diffutils, Detailed Unified).
fn lines_of(diff: &str) -> Vec<(&str, BTreeSet<usize>)> {
    let mut files: Vec<(&str, BTreeSet<usize>)> = Vec::new();
    for line in diff.lines() {
        if let Some(file) = line.strip_prefix("+++ b/") {
            files.push((file, BTreeSet::new()));
        } else if let Some(hunk) = line.strip_prefix("@@ -")
            && let Some((_, new)) = hunk.split_once(" +")
            && let Some((new, _)) = new.split_once(" @@")
            && let Some((_, lines)) = files.last_mut()
        {
            let (start, count) = new.split_once(',').unwrap_or((new, "1"));
            let start: usize = start.parse().unwrap_or_default();
            let count: usize = count.parse().unwrap_or_default();
            lines.extend(start..start + count);
        }
    }
    files
}

/// `crates/plimsoll-wire` of a file below it.
fn package_folder(root: &Path, file: &str) -> Option<String> {
    let mut folders = Path::new(file).ancestors().skip(1);
    let folder = folders.find(|it| root.join(it).join("Cargo.toml").is_file())?;
    Some(folder.to_str()?.to_owned())
}

/// The tests of a file that have one of these lines, from their attribute to that of the next.
fn tests_at(text: &str, lines: &BTreeSet<usize>) -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    // Where the attribute of the test at hand is, and its name once that was read.
    let mut start = None;
    let mut name: Option<&str> = None;
    for (number, line) in (1..).zip(text.lines().chain(["#[test]"])) {
        let line = line.trim_start();
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            if let (Some(start), Some(name)) = (start.replace(number), name.take())
                && lines.range(start..number).next().is_some()
            {
                tests.insert(name.to_owned());
            }
        } else if start.is_some() && name.is_none() {
            let function = line.strip_prefix("async ").unwrap_or(line);
            name = function
                .strip_prefix("fn ")
                .and_then(|function| function.split('(').next());
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn help() {}\n\n#[test]\nfn one() {\n    help();\n}\n\n#[tokio::test]\nasync fn two() {\n    help();\n}\n";

    #[test]
    fn a_test_is_new_when_one_of_its_lines_is() {
        let at = |lines: &[usize]| {
            let tests = tests_at(FILE, &lines.iter().copied().collect());
            Vec::from_iter(tests).join(" ")
        };
        assert_eq!(at(&[1]), "");
        assert_eq!(at(&[5]), "one");
        assert_eq!(at(&[3, 10]), "one two");
        assert_eq!(at(&[11]), "two");
    }

    #[test]
    fn lines_are_those_of_the_file_as_it_is_now() {
        let diff = "diff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -1 +1,2 @@ fn a\n-a\n+b\n+c\n\
            @@ -9,2 +10,0 @@\n-d\n-e\n--- a/gone.rs\n+++ /dev/null\n@@ -1,3 +0,0 @@\n\
            --- a/y.rs\n+++ b/y.rs\n@@ -4,0 +5 @@\n+f\n";
        let files = lines_of(diff);
        let expected = [("x.rs", vec![1, 2]), ("y.rs", vec![5])];
        assert_eq!(files.len(), expected.len());
        for ((file, lines), (name, numbers)) in files.into_iter().zip(expected) {
            assert_eq!((file, Vec::from_iter(lines)), (name, numbers));
        }
    }

    #[test]
    fn a_package_is_the_nearest_folder_with_a_manifest() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = package_folder(root, "xtask/src/test/since.rs");
        assert_eq!(folder.as_deref(), Some("xtask"));
    }
}
