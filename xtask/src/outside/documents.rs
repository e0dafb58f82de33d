//! OpenAPI documents of services: each content that `plimsoll` makes has to be one that the document accepts.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Bench, Results};
use crate::Failure;

/// Files of checkouts that are documents.
const DOCUMENTS: [&str; 4] = [
    "specs/openapi.json",
    "fixed-spotify-open-api.yml",
    "specification/DigitalOcean-public.v2.yaml",
    "generated/api.github.com.json",
];

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let mut results = Results::default();
    for name in DOCUMENTS {
        let document = bench.checkout.join(name);
        if document.is_file() {
            judge(bench, &document, &mut results)?;
        }
    }
    Ok(results)
}

fn judge(bench: &Bench<'_>, document: &Path, results: &mut Results) -> Result<(), Failure> {
    let name = document.file_name().unwrap_or_default();
    let folder = document.parent().unwrap_or(Path::new("/"));
    let rules = format!(
        "[prefix]\nrespond_dir = {:?}\n[[openapi]]\nfile = {:?}\n",
        folder.to_string_lossy(),
        name.to_string_lossy()
    );
    let file = bench.scratch.join("rules.toml");
    fs::write(&file, rules).map_err(|it| it.to_string())?;
    let output = Command::new(&bench.plimsoll)
        .args(["mock", "validate"])
        .arg(&file)
        .output()
        .map_err(|it| it.to_string())?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    let name = name.to_string_lossy();
    let count = printed.lines().find_map(judged);
    let Some(count) = count.filter(|_| output.status.success()) else {
        let first = complaint.lines().next().unwrap_or_default();
        results.add_result(name, Err(first.to_owned()));
        return Ok(());
    };
    let mut unfit = 0;
    for line in printed.lines().filter_map(|line| line.strip_prefix("  ")) {
        unfit += 1;
        match line.split_once(", the document: ") {
            Some(_) => results.skip("an example of the document that its schema does not accept"),
            None => results.add_result(format!("{name} {line}"), Err("not accepted".to_owned())),
        }
    }
    results.passed += count.saturating_sub(unfit);
    Ok(())
}

/// How many contents a line says were judged.
fn judged(line: &str) -> Option<usize> {
    let (before, _) = line.split_once(" contents in JSON, ")?;
    before.rsplit(' ').next()?.parse().ok()
}
