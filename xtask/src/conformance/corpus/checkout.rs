//! Repositories of the corpus: their list, their clones, and the scripts among their files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use regex::Regex;

use crate::Failure;

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// `owner/name`
    pub(super) name: String,
    pub(super) commit: String,
}

/// Paths relative to a checkout.
pub(super) type Scripts = Vec<String>;

/// Parts of paths without scripts that are anyone's to run: browsers, what is built, tests of the tools themselves.
const LEFT_OUT: [&str; 6] = [
    "node_modules/",
    "/browser/",
    "docker-compose/",
    ".min.js",
    "/testdata/",
    "/vendor/",
];

/// Longer files are no scripts that a person wrote; bundles are shorter.
const LONGEST: u64 = 2 << 20;

/// Lines `owner/name commit`; `#` begins a comment.
pub(super) fn repositories(list: &str) -> Result<Vec<Repository>, Failure> {
    let lines = list.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, commit) = line
                .split_once(' ')
                .filter(|(name, commit)| name.contains('/') && commit.len() == 40)
                .ok_or_else(|| format!("`{line}` is not `owner/name commit`"))?;
            Ok(Repository {
                name: name.to_owned(),
                commit: commit.to_owned(),
            })
        })
        .collect()
}

impl Repository {
    /// The git directory of its clone, which may be bare.
    pub(super) fn clone_in(&self, clones: &Path) -> Option<PathBuf> {
        let joined = self.name.replace('/', "+");
        let places = [
            clones.join(&joined).join("repo/.git"),
            clones.join(&joined).join("repo"),
            clones.join(&self.name).join(".git"),
            clones.join(format!("{}.git", self.name)),
            clones.join(&self.name),
        ];
        places
            .into_iter()
            .find(|place| place.join("HEAD").is_file())
    }

    /// Whether a name on the command line is of it or of one of its scripts.
    pub(super) fn is_named(&self, names: &[String]) -> bool {
        let is_meant =
            |name: &String| self.name.contains(name.as_str()) || name.starts_with(&self.name);
        names.is_empty() || names.iter().any(is_meant)
    }

    /// Writes the files of its commit into a folder. Files that the clone lacks, large ones for example, are left out.
    pub(super) fn check_out(&self, git: &Path, folder: &Path) -> Result<(), Failure> {
        let index = folder.with_extension("index");
        let run = |arguments: &[&str]| {
            Command::new("git")
                .arg("--git-dir")
                .arg(git)
                .arg("--work-tree")
                .arg(folder)
                .args(arguments)
                .env("GIT_INDEX_FILE", &index)
                .stderr(Stdio::null())
                .status()
        };
        let read = run(&["read-tree", &self.commit]).map_err(|error| format!("git: {error}"))?;
        if !read.success() {
            let (name, commit) = (&self.name, &self.commit);
            return Err(format!("{name}: the clone has no commit {commit}").into());
        }
        // It goes on behind a file that is missing, and fails at the end.
        run(&["checkout-index", "--all", "--force"]).map_err(|error| format!("git: {error}"))?;
        // It lies beside the checkouts.
        fs::remove_file(&index).ok();
        Ok(())
    }
}

/// Every file below a folder, relative to it, without links.
pub(super) fn files(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        let unreadable = |error: std::io::Error| format!("{}: {error}", inner.display());
        for entry in fs::read_dir(&inner).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && let Ok(relative) = path.strip_prefix(folder)
            {
                found.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A key by which scripts of one folder are not beside each other (FNV-1a).
pub(super) fn mixed(script: &str) -> u64 {
    script.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Those of the files that are scripts by themselves: they import k6 or one of its libraries, and export something that is run.
pub(super) fn scripts(folder: &Path) -> Result<Scripts, Failure> {
    let files = files(folder)?.into_iter();
    let scripts = files.filter(|path| {
        let is_code = [".js", ".ts", ".mjs", ".cjs"]
            .iter()
            .any(|end| path.ends_with(end));
        let rooted = format!("/{path}");
        let is_left_out = LEFT_OUT.iter().any(|part| rooted.contains(part));
        let file = folder.join(path);
        let is_short = fs::metadata(&file).is_ok_and(|found| found.len() <= LONGEST);
        is_code
            && !is_left_out
            && is_short
            && fs::read_to_string(&file).is_ok_and(|text| is_script(&text))
    });
    Ok(scripts.collect())
}

fn is_script(text: &str) -> bool {
    static IMPORTS: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r#"(from|require\(|import)\s*['"](k6|k6/[a-z/0-9_-]+|https://jslib\.k6\.io/[^'"]*)['"]"#;
        Regex::new(pattern).expect("the pattern is fixed")
    });
    static RUNS: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"export\s+default|as\s+default|exports\.default|module\.exports|export\s+(const|let|var)\s+options|exec\s*:";
        Regex::new(pattern).expect("the pattern is fixed")
    });
    // Browsers, and extensions that no release has.
    let needs_more = text.contains("k6/browser")
        || text.contains("k6/experimental/browser")
        || text.contains("k6/x/");
    IMPORTS.is_match(text) && RUNS.is_match(text) && !needs_more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_names_and_commits() {
        let commit = "0123456789012345678901234567890123456789";
        let list = format!("# comment\n\na/b {commit}\n");
        let expected = Repository {
            name: "a/b".to_owned(),
            commit: commit.to_owned(),
        };
        assert_eq!(repositories(&list).unwrap(), [expected]);
        assert!(repositories("a/b main").is_err());
    }

    #[test]
    fn scripts_import_k6_and_export_something_that_is_run() {
        for text in [
            "import http from 'k6/http'; export default function () {}",
            "const http = require(\"k6/http\"); module.exports.default = () => {};",
            "import { check } from 'k6'\nexport const options = { scenarios: {} };\nexport function a() {}",
        ] {
            assert!(is_script(text), "{text}");
        }
        for text in [
            "import http from 'k6/http'; export function helper() {}",
            "import x from './x.js'; export default function () {}",
            "import sql from 'k6/x/sql'; import http from 'k6/http'; export default () => {}",
        ] {
            assert!(!is_script(text), "{text}");
        }
    }
}
