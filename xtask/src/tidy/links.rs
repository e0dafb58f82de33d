//! Links between the Markdown files of the repository: each leads to a file that exists, and to a heading of it.
//!
//! Pages of `docs/` are read in two places, in the repository and in the site made of them. So their links stay within `docs/`;
//! another file of the repository is linked by its URL there, whose path is checked too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::{markdown_files, read};
use crate::Failure;

/// Where files of this repository are on the web; `tree` and `blob` follow.
const REPOSITORY: &str = "https://github.com/plimsoll-rs/plimsoll/";

/// The links that lead nowhere: `FILE:LINE: …`.
pub(super) fn broken(root: &Path) -> Result<Vec<String>, Failure> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["docs", "examples", "packaging", "fuzz"] {
        let below = markdown_files(&root.join(folder))?;
        // Pages of mocks and of sites are not ours to read.
        files.extend(below.into_iter().map(|file| Path::new(folder).join(file)));
    }
    for entry in super::entries(root)? {
        if entry.extension().is_some_and(|it| it == "md") {
            files.extend(entry.file_name().map(PathBuf::from));
        }
    }
    files.sort();
    let mut anchors: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    let mut texts = BTreeMap::new();
    for file in files {
        let text = read(&root.join(&file))?;
        anchors.insert(file.clone(), headings(&text));
        texts.insert(file, text);
    }
    let mut problems = Vec::new();
    for (file, text) in &texts {
        for (line, target) in links(text) {
            if let Some(problem) = judge(root, file, &target, &anchors) {
                problems.push(format!("{}:{line}: {problem}", file.display()));
            }
        }
    }
    Ok(problems)
}

/// What is wrong with a link, if anything.
fn judge(
    root: &Path,
    file: &Path,
    target: &str,
    anchors: &BTreeMap<PathBuf, BTreeSet<String>>,
) -> Option<String> {
    if let Some(rest) = target.strip_prefix(REPOSITORY) {
        let mut parts = rest.splitn(3, '/');
        let is_file = matches!(parts.next(), Some("tree" | "blob")) && parts.next() == Some("main");
        let path = parts.next().unwrap_or_default();
        let path = path.split('#').next().unwrap_or_default();
        return (is_file && !root.join(path).exists())
            .then(|| format!("the repository has no {path}"));
    }
    let is_absolute = target.contains("://") || target.starts_with("mailto:");
    if is_absolute {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = file.parent().unwrap_or(Path::new(""));
    let there = if path.is_empty() {
        file.to_owned()
    } else {
        normal(&folder.join(path))
    };
    if !root.join(&there).exists() {
        return Some(format!("{target} is not there"));
    }
    if file.starts_with("docs") && !there.starts_with("docs") {
        return Some(format!(
            "{target} leaves docs/ and would be broken in the site: link to {REPOSITORY}blob/main/{}",
            there.display()
        ));
    }
    let is_summary = file.ends_with("SUMMARY.md");
    if file.starts_with("docs") && there == Path::new("docs/README.md") && !is_summary {
        return Some(format!(
            "{target} is index.html in the site, which does not lead there: link to another page"
        ));
    }
    let known = anchors.get(&there);
    (!anchor.is_empty() && known.is_none_or(|known| !known.contains(anchor)))
        .then(|| format!("{} has no heading #{anchor}", there.display()))
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// The targets of links and pictures, with the number of their lines; none of code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in outside_blocks(text) {
        let line = without_code(line);
        let marks = [
            ("](", ')'),
            ("src=\"", '"'),
            ("srcset=\"", '"'),
            ("href=\"", '"'),
        ];
        for (mark, end) in marks {
            let targets = line.split(mark).skip(1);
            let targets = targets.filter_map(|rest| rest.split(end).next());
            found.extend(targets.map(|target| (number, target.trim().to_owned())));
        }
    }
    found
}

/// Anchors of the headings, as GitHub and mdBook make them: small letters, digits, `-` and `_`, and `-` for blanks; a number
/// where one comes again.
fn headings(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in outside_blocks(text) {
        let title = line.trim_start_matches('#');
        let is_heading = line.starts_with('#') && title.starts_with(' ');
        if !is_heading {
            continue;
        }
        let is_kept = |c: &char| c.is_alphanumeric() || ['-', '_', ' '].contains(c);
        let plain = without_targets(title.trim());
        let anchor: String = plain.chars().filter(is_kept).collect();
        let anchor = anchor.to_lowercase().replace(' ', "-");
        let count = seen.entry(anchor.clone()).or_default();
        anchors.insert(match *count {
            0 => anchor,
            count => format!("{anchor}-{count}"),
        });
        *count += 1;
    }
    anchors
}

/// The text of a heading: of links only what is read.
fn without_targets(title: &str) -> String {
    let mut plain = String::new();
    for (at, part) in title.split("](").enumerate() {
        let shown = if at == 0 {
            part
        } else {
            part.split_once(')').map_or(part, |(_, after)| after)
        };
        plain.push_str(shown);
    }
    plain
}

/// The lines that are in no fenced block, with their numbers.
fn outside_blocks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_inside = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_inside ^= is_fence;
        (!is_inside && !is_fence).then_some((at + 1, line))
    })
}

/// A line without what is between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text =
            "[a](b.md#c) ![d](e.png) `[f](g)`\n```\n[h](i)\n```\n<img src=\"j.svg\"> [k `l`](m)\n";
        let found: Vec<_> = links(text);
        let found: Vec<_> = found
            .iter()
            .map(|(line, target)| (*line, target.as_str()))
            .collect();
        assert_eq!(found, [(1, "b.md#c"), (1, "e.png"), (5, "m"), (5, "j.svg")]);
    }

    #[test]
    fn headings_have_the_anchors_of_github() {
        let text = "# plimsoll mock\n## `--sandbox`\n### `[upstream.NAME]`\n## In CI (*GitHub*)\n```\n# no heading\n```\n## In CI GitHub\n## See [this](that.md)!\n";
        let expected = [
            "--sandbox",
            "in-ci-github",
            "in-ci-github-1",
            "plimsoll-mock",
            "see-this",
            "upstreamname",
        ];
        assert_eq!(headings(text), expected.map(str::to_owned).into());
    }

    #[test]
    fn links_are_judged_by_what_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let load = (
            PathBuf::from("docs/load.md"),
            BTreeSet::from(["output".to_owned()]),
        );
        let anchors = BTreeMap::from([load]);
        let judge = |target: &str| judge(&root, Path::new("docs/k6.md"), target, &anchors);
        let fine = [
            "load.md",
            "load.md#output",
            "./load.md",
            "https://a.example/#b",
            "images/report.png",
            "https://github.com/plimsoll-rs/plimsoll/tree/main/packaging",
            "https://github.com/plimsoll-rs/plimsoll/issues",
        ];
        for target in fine {
            assert_eq!(judge(target), None);
        }
        for target in [
            "gone.md",
            "load.md#gone",
            "#gone",
            "../README.md",
            "README.md",
            "https://github.com/plimsoll-rs/plimsoll/blob/main/gone.md",
        ] {
            assert!(judge(target).is_some(), "{target}");
        }
    }
}
