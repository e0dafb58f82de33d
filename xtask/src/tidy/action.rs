//! The GitHub action: its inputs reach the script that it runs, and documents name no others.

use std::collections::BTreeSet;
use std::path::Path;

use super::{entries, read};
use crate::Failure;

/// What documents call it by.
const USED: &str = "uses: plimsoll-rs/plimsoll@";

/// Inputs, variables and documents that do not agree, as problems.
pub(super) fn disagreements(root: &Path) -> Result<Vec<String>, Failure> {
    let action = read(&root.join("action.yml"))?;
    let script = read(&root.join("packaging/action/run.sh"))?;
    let mut documents = Vec::new();
    for file in entries(&root.join("docs"))? {
        if file.extension().is_some_and(|it| it == "md") {
            let name = file.strip_prefix(root).unwrap_or(&file).display();
            documents.push((name.to_string(), read(&file)?));
        }
    }
    Ok(problems(&action, &script, &documents))
}

fn problems(action: &str, script: &str, documents: &[(String, String)]) -> Vec<String> {
    let mut problems = Vec::new();
    let inputs = inputs(action);
    let used: BTreeSet<&str> = between(action, "inputs.", |it| {
        it.is_ascii_alphanumeric() || it == '-'
    });
    for name in inputs.symmetric_difference(&used) {
        problems.push(format!(
            "action.yml: the input `{name}` is not both there and used"
        ));
    }
    let is_upper = |it: char| it.is_ascii_uppercase() || it == '_';
    let read: BTreeSet<&str> = between(script, "\"${", is_upper)
        .into_iter()
        .filter(|it| script.contains(&format!("\"${{{it}:=")) || *it == "SERVER")
        .filter(|it| !it.starts_with("GITHUB_"))
        .collect();
    let run = action.split("run.sh").next().unwrap_or_default();
    let set = run
        .lines()
        .filter_map(|line| line.trim().split_once(": ${{"));
    let set: BTreeSet<&str> = set
        .map(|(name, _)| name)
        .filter(|it| it.chars().all(is_upper))
        .collect();
    for name in read.symmetric_difference(&set) {
        problems.push(format!(
            "packaging/action/run.sh: `{name}` is not both set by action.yml and read"
        ));
    }
    for (file, text) in documents {
        for name in given(text) {
            if !inputs.contains(name) {
                problems.push(format!("{file}: the action has no input `{name}`"));
            }
        }
    }
    problems
}

/// The keys below `inputs:`.
fn inputs(action: &str) -> BTreeSet<&str> {
    let below = action.lines().skip_while(|line| *line != "inputs:").skip(1);
    let below = below.take_while(|line| line.starts_with(' '));
    let keys = below.filter(|line| !line.starts_with("   "));
    keys.filter_map(|line| line.trim().strip_suffix(':'))
        .collect()
}

/// The words behind each of these texts.
fn between<'t>(text: &'t str, before: &str, is_part: impl Fn(char) -> bool) -> BTreeSet<&'t str> {
    let parts = text.split(before).skip(1);
    let words = parts.map(|part| {
        let end = part.find(|it| !is_part(it)).unwrap_or(part.len());
        part.get(..end).unwrap_or_default()
    });
    words.filter(|it| !it.is_empty()).collect()
}

/// The keys of `with:` in each use of the action.
fn given(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(column) = line.find(USED) else {
            continue;
        };
        let below = text.lines().skip(at + 1);
        let width = |line: &str| line.len() - line.trim_start().len();
        let step = below.take_while(|it| width(it) >= column);
        let own = step
            .skip_while(|it| !it.trim_start().starts_with("with:"))
            .skip(1)
            .filter(|it| width(it) == column + 2);
        names.extend(
            own.filter_map(|it| it.trim().split_once(':'))
                .map(|(name, _)| name),
        );
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTION: &str = "inputs:\n  server:\n    description: a\n  rate:\n    default: \"\"\nruns:\n  steps:\n    - env:\n        SERVER: ${{ inputs.server }}\n        RATE: ${{ inputs.rate }}\n      run: run.sh\n";
    const SCRIPT: &str = "if [ -z \"${SERVER:-}\" ]; then exit 2; fi\n: \"${RATE:=}\" \"${GITHUB_OUTPUT:=/dev/null}\"\necho \"${RATE}\"\n";

    #[test]
    fn what_agrees_is_no_problem() {
        let document = "- uses: plimsoll-rs/plimsoll@v1\n  with:\n    server: a\n    rate: |\n      x: y\n- run: b: c\n";
        let documents = [("docs/a.md".to_owned(), document.to_owned())];
        assert_eq!(problems(ACTION, SCRIPT, &documents), Vec::<String>::new());
    }

    #[test]
    fn what_is_there_on_one_side_alone_is_reported() {
        let script = SCRIPT.replace("\"${RATE:=}\"", "\"${RATES:=}\"");
        let document = "  - uses: plimsoll-rs/plimsoll@v1\n    id: x\n    with:\n      rates: 1\n";
        let documents = [("docs/a.md".to_owned(), document.to_owned())];
        let action = ACTION.replace("  rate:\n    default: \"\"\n", "");
        assert_eq!(
            problems(&action, &script, &documents),
            [
                "action.yml: the input `rate` is not both there and used",
                "packaging/action/run.sh: `RATE` is not both set by action.yml and read",
                "packaging/action/run.sh: `RATES` is not both set by action.yml and read",
                "docs/a.md: the action has no input `rates`",
            ]
        );
    }
}
