//! `cargo xtask words`: how plain the language of comments and documents is.
//!
//! Counts words of spoken language that hyper, ripgrep and quinn use practically never in comments, per 1,000 words. It
//! reports and never fails: a count is no reason to write a worse sentence.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, Outcome};

const LISTED: [&str; 7] = [
    "told", "tells", "asked", "said", "whoever", "nobody", "whom",
];

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
    for folder in ["crates", "xtask/src", "docs", "fuzz"] {
        visit(
            &root.join(folder),
            &mut |path, text| match extension(path) {
                "rs" => text
                    .lines()
                    .filter_map(comment)
                    .for_each(|it| comments.add(it)),
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
