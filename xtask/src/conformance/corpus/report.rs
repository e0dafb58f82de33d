//! What the corpus came to: counts, and causes of differences by how many scripts they touch.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::checkout::Repository;
use super::differ::{self, Difference};
use crate::Outcome;

/// Counts and causes.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Scripts that k6 runs, and those that are the same, by repository.
    repositories: BTreeMap<String, (usize, usize)>,
    /// By the reason for which k6 does not initialise them: the scripts.
    not_run: BTreeMap<String, Vec<String>>,
    missing: Vec<String>,
    /// By cause: the scripts with what differs.
    causes: BTreeMap<String, Vec<(String, String)>>,
}

/// Writing to a `String` cannot fail.
const IN_MEMORY: &str = "a string grows";

/// Scripts that are named for each cause.
const EXAMPLES: usize = 5;

impl Report {
    pub(super) fn is_missing(&mut self, repository: &Repository) {
        self.missing.push(repository.name.clone());
    }

    /// A script that k6 does not initialise.
    pub(super) fn is_not_run(&mut self, repository: &Repository, script: &str, error: &str) {
        let scripts = self.not_run.entry(differ::normal(error)).or_default();
        scripts.push(format!("{}/{script}", repository.name));
    }

    pub(super) fn add(&mut self, repository: &Repository, script: &str, found: Vec<Difference>) {
        let counts = self
            .repositories
            .entry(repository.name.clone())
            .or_default();
        counts.0 += 1;
        counts.1 += usize::from(found.is_empty());
        for difference in found {
            let scripts = self.causes.entry(difference.cause).or_default();
            let name = format!("{}/{script}", repository.name);
            // One script counts once for a cause.
            if scripts.last().is_none_or(|(last, _)| *last != name) {
                scripts.push((name, difference.detail));
            }
        }
    }

    fn head(&self) -> String {
        let scripts: usize = self.repositories.values().map(|counts| counts.0).sum();
        let same: usize = self.repositories.values().map(|counts| counts.1).sum();
        format!(
            "{scripts} scripts of {} repositories that k6 runs: {same} the same, {} that differ, by {} causes; {} scripts are not initialised by k6",
            self.repositories.len(),
            scripts - same,
            self.causes.len(),
            self.not_run.values().map(Vec::len).sum::<usize>()
        )
    }

    pub(super) fn print(&self) {
        println!("{}", self.head());
        for (cause, scripts) in self.sorted() {
            println!("{:5}  {cause}", scripts.len());
        }
        if !self.missing.is_empty() {
            println!("without a clone: {}", self.missing.join(", "));
        }
    }

    /// Writes all of it as Markdown.
    pub(super) fn write(&self, path: &Path) -> Outcome {
        let mut text = format!("{}\n\n| scripts | cause |\n|---|---|\n", self.head());
        for (cause, scripts) in self.sorted() {
            writeln!(
                text,
                "| {} | {} |",
                scripts.len(),
                cause.replace('|', "\\|")
            )
            .expect(IN_MEMORY);
        }
        for (cause, scripts) in self.sorted() {
            writeln!(text, "\n## {cause}\n").expect(IN_MEMORY);
            for (script, detail) in scripts.iter().take(EXAMPLES) {
                writeln!(text, "- {script}: {detail}").expect(IN_MEMORY);
            }
        }
        let mut not_run: Vec<_> = self.not_run.iter().collect();
        not_run.sort_by_key(|(reason, scripts)| (std::cmp::Reverse(scripts.len()), *reason));
        text.push_str(
            "\n| scripts | reason for which k6 does not initialise them | one |\n|---|---|---|\n",
        );
        for (reason, scripts) in not_run {
            let (count, reason) = (scripts.len(), reason.replace('|', "\\|"));
            writeln!(text, "| {count} | {reason} | {} |", scripts[0]).expect(IN_MEMORY);
        }
        text.push_str("\n| repository | scripts | the same |\n|---|---|---|\n");
        for (name, (scripts, same)) in &self.repositories {
            writeln!(text, "| {name} | {scripts} | {same} |").expect(IN_MEMORY);
        }
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(())
    }

    /// The most frequent first.
    fn sorted(&self) -> Vec<(&String, &Vec<(String, String)>)> {
        let mut causes: Vec<_> = self.causes.iter().collect();
        causes.sort_by_key(|(cause, scripts)| (std::cmp::Reverse(scripts.len()), *cause));
        causes
    }
}
