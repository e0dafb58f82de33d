//! The results of a trend: lines of files, and folders.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_lab::trend::TrendPoint;
use plimsoll_report::files;

use super::{name, record};
use crate::flags::Problems;

/// The ending of files that `load --append` writes, as they are looked for in folders.
const LINES: &str = "jsonl";

/// The results of all `paths`: files of lines, results, and folders of either.
pub(super) fn read(paths: &[PathBuf], problems: &mut Problems) -> Vec<TrendPoint> {
    let mut results = Vec::new();
    let mut points = Vec::new();
    for path in paths {
        if path.is_file() {
            points.extend(lines(path, problems));
            continue;
        }
        let within = within(path);
        if is_result(path) || within.is_empty() {
            // What is neither is reported when it is read.
            results.push((path.clone(), path.clone()));
            continue;
        }
        for entry in within {
            if entry.is_file() {
                points.extend(lines(&entry, problems));
            } else {
                results.push((result_of(&entry).unwrap_or_else(|| entry.clone()), entry));
            }
        }
    }
    let names: Vec<PathBuf> = results.iter().map(|(_, named)| named.clone()).collect();
    for (folder, named) in &results {
        let record = record(folder, &name(named, &names), problems);
        points.extend(record.as_ref().map(TrendPoint::from_record));
    }
    points
}

fn is_result(folder: &Path) -> bool {
    folder.join(files::SUMMARY_JSON).is_file()
}

/// The result that a folder is or, as the action for continuous integration leaves it, has in `load`.
fn result_of(folder: &Path) -> Option<PathBuf> {
    [folder.to_owned(), folder.join("load")]
        .into_iter()
        .find(|folder| is_result(folder))
}

/// The results and the files of lines in a folder.
fn within(folder: &Path) -> Vec<PathBuf> {
    let mut within: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let is_lines = path.extension().is_some_and(|it| it == LINES) && path.is_file();
            is_lines || result_of(path).is_some()
        })
        .collect();
    within.sort();
    within
}

/// The results in a file, one a line; empty lines do not count.
fn lines(path: &Path, problems: &mut Problems) -> Vec<TrendPoint> {
    let place = path.display().to_string();
    let Some(text) = problems.file(&place, path) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .filter_map(|(number, line)| {
            let place = format!("{place}:{}", number + 1);
            problems.value(&place, TrendPoint::parse(line))
        })
        .collect()
}
