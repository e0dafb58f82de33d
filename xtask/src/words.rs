//! `cargo xtask words`: how plain the language of comments and documents is.
//!
//! Counts words of spoken language that hyper, ripgrep and quinn use practically never in comments, per 1,000 words; then
//! metaphors in comments and names, and functions whose names cannot be searched for. It reports and never fails: a count is
//! no reason to write a worse sentence.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, Outcome};

const LISTED: [&str; 7] = [
    "told", "tells", "asked", "said", "whoever", "nobody", "whom",
];

/// Metaphors that names and comments of this project once had; each thing has a plain name (docs/lexicon.md).
const METAPHORS: [&str; 13] = [
    "courier", "desk", "farewell", "heed", "hurried", "ledger", "obey", "opinion", "roster",
    "seat", "seated", "unmade", "whence",
];

/// Names of functions that say nothing and occur everywhere.
const UNSEARCHABLE: [&str; 3] = ["by", "of", "take"];

/// Listed names and words of sources, each with the files that have it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found(BTreeMap<String, BTreeMap<PathBuf, u64>>);

impl Found {
    fn add(&mut self, name: &str, file: &Path) {
        let files = self.0.entry(name.to_owned()).or_default();
        *files.entry(file.to_owned()).or_default() += 1;
    }

    /// Adds the metaphors of a source, in comments and within names such as `SeatedUser` or `seat_of`.
    fn add_metaphors(&mut self, text: &str, file: &Path) {
        for word in text.split(|character: char| !character.is_alphabetic()) {
            for part in parts_of_name(word) {
                let singular = part.strip_suffix('s').unwrap_or(&part);
                if let Some(metaphor) = METAPHORS
                    .iter()
                    .find(|metaphor| **metaphor == part || **metaphor == singular)
                {
                    self.add(metaphor, file);
                }
            }
        }
    }

    /// Adds functions whose names cannot be searched for.
    fn add_functions(&mut self, text: &str, file: &Path) {
        for line in text.lines() {
            let Some((before, after)) = line.split_once("fn ") else {
                continue;
            };
            let name: String = after
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if before.trim_start().starts_with("//") || !UNSEARCHABLE.contains(&name.as_str()) {
                continue;
            }
            self.add(&name, file);
        }
    }

    fn print(&self, title: &str, root: &Path) {
        let sum: u64 = self.0.values().flat_map(BTreeMap::values).sum();
        println!("{title}: {sum}");
        for (name, files) in &self.0 {
            let count: u64 = files.values().sum();
            let shown: Vec<_> = files
                .keys()
                .take(3)
                .map(|file| {
                    file.strip_prefix(root)
                        .unwrap_or(file)
                        .display()
                        .to_string()
                })
                .collect();
            println!("  {name} {count}: {}", shown.join(", "));
        }
    }
}

/// The words of a name in camel case, in lower case.
fn parts_of_name(name: &str) -> Vec<String> {
    let mut parts = Vec::<String>::new();
    let mut was_lower = false;
    for c in name.chars() {
        if parts.is_empty() || c.is_uppercase() && was_lower {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase());
        }
    }
    parts
}

/// Words, and those of them that are listed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    words: u64,
    listed: BTreeMap<String, u64>,
}

impl Count {
    fn add(&mut self, text: &str) {
        for word in text.split(|character: char| !character.is_alphabetic()) {
            if word.is_empty() {
                continue;
            }
            self.words += 1;
            let word = word.to_ascii_lowercase();
            if LISTED.contains(&word.as_str()) {
                *self.listed.entry(word).or_default() += 1;
            }
        }
    }

    fn line(&self, name: &str) -> String {
        let sum: u64 = self.listed.values().sum();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a share of words is shown with two places"
        )]
        let share = sum as f64 * 1000.0 / self.words.max(1) as f64;
        let each: Vec<_> = self
            .listed
            .iter()
            .map(|(word, count)| format!("{word} {count}"))
            .collect();
        format!(
            "{name:<9} {:>7} words, {sum:>3} listed, {share:.2} per 1,000  {}",
            self.words,
            each.join(", ")
        )
    }
}

/// Runs the task.
pub(crate) fn run(root: &Path) -> Outcome {
    let (mut comments, mut documents) = (Count::default(), Count::default());
    let (mut metaphors, mut functions) = (Found::default(), Found::default());
    for folder in ["crates", "xtask/src", "docs", "fuzz"] {
        visit(
            &root.join(folder),
            &mut |path, text| match extension(path) {
                "rs" => {
                    text.lines()
                        .filter_map(comment)
                        .for_each(|it| comments.add(it));
                    // This file lists them.
                    if !path.ends_with("xtask/src/words.rs") {
                        metaphors.add_metaphors(text, path);
                        functions.add_functions(text, path);
                    }
                }
                "md" => documents.add(text),
                _ => {}
            },
        )?;
    }
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ] {
        documents.add(&read(&root.join(name))?);
    }
    println!("{}", comments.line("comments"));
    println!("{}", documents.line("documents"));
    metaphors.print("metaphors in comments and names", root);
    functions.print("functions called by, of or take", root);
    Ok(())
}

/// The comment that a line of Rust begins with.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']))
}

fn extension(path: &Path) -> &str {
    path.extension()
        .and_then(|it| it.to_str())
        .unwrap_or_default()
}

fn visit(folder: &Path, each: &mut dyn FnMut(&Path, &str)) -> Outcome {
    let entries = fs::read_dir(folder)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            visit(&path, each)?;
        } else if matches!(extension(&path), "rs" | "md") {
            each(&path, &read(&path)?);
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metaphors_are_found_within_names_and_comments() {
        let mut found = Found::default();
        let source =
            "// Whence it comes.\nstruct SeatedUser { seats: u8, seating: u8, nose: u8 }\n";
        found.add_metaphors(source, Path::new("a.rs"));
        let names: Vec<_> = found.0.keys().map(String::as_str).collect();
        assert_eq!(names, ["seat", "seated", "whence"]);
    }

    #[test]
    fn functions_that_cannot_be_searched_for_are_found() {
        let mut found = Found::default();
        let source = "    pub(crate) async fn take<T>(&self) {}\n// fn of()\nfn taken() {}\nfn of(a: u8) {}\n";
        found.add_functions(source, Path::new("a.rs"));
        let names: Vec<_> = found.0.keys().map(String::as_str).collect();
        assert_eq!(names, ["of", "take"]);
    }

    #[test]
    fn listed_words_are_counted_in_comments_only() {
        let mut count = Count::default();
        let source =
            "//! Nobody reads it.\nlet said = 1; // asked\n    /// It was said, and said again.\n";
        source
            .lines()
            .filter_map(comment)
            .for_each(|it| count.add(it));
        assert_eq!(count.words, 9);
        assert_eq!(count.listed["said"], 2);
        assert_eq!(count.listed["nobody"], 1);
        assert!(!count.listed.contains_key("asked"));
    }
}
