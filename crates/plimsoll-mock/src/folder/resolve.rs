//! From the segments of a path to a file.
//!
//! Names match in any case, by the rule that routes compare paths with ([`fold_case`]): a route that guards a folder
//! guards every spelling that finds its files.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_wire::http::fold_case;

use super::{INDEX, INFERRED};

/// The file for `segments` in `root`, perhaps through a link; names as they are written first, then in any case.
pub(super) fn find(root: &Path, segments: &[&str]) -> Option<PathBuf> {
    let Some((last, parents)) = segments.split_last() else {
        return index(root);
    };
    let mut directory = root.to_owned();
    let mut is_written_so = true;
    for parent in parents {
        let written = directory.join(parent);
        directory = if written.is_dir() {
            written
        } else {
            is_written_so = false;
            listed(&directory, &[(*parent).to_owned()], Path::is_dir)?
        };
    }
    let found = in_directory(&directory, last);
    if found.is_some() || !is_written_so || parents.is_empty() {
        return found;
    }
    // A folder of the same name in another case may have it.
    let mut directory = root.to_owned();
    for parent in parents {
        directory = listed_but(&directory, parent)?;
    }
    in_directory(&directory, last)
}

fn in_directory(directory: &Path, name: &str) -> Option<PathBuf> {
    let written = directory.join(name);
    if written.is_file() {
        return Some(written);
    }
    let has_extension = Path::new(name).extension().is_some();
    let inferred = || {
        INFERRED
            .iter()
            .map(|extension| format!("{name}{extension}"))
    };
    if !has_extension
        && let Some(found) = inferred()
            .map(|name| directory.join(name))
            .find(|it| it.is_file())
    {
        return Some(found);
    }
    let mut names = vec![name.to_owned()];
    if !has_extension {
        names.extend(inferred());
    }
    if let Some(found) = listed(directory, &names, Path::is_file) {
        return Some(found);
    }
    let folder = if written.is_dir() {
        written
    } else {
        listed(directory, &names[..1], Path::is_dir)?
    };
    let beside = inferred()
        .map(|name| directory.join(name))
        .find(|it| it.is_file());
    beside.or_else(|| index(&folder))
}

fn index(directory: &Path) -> Option<PathBuf> {
    let mut files = INDEX.iter().map(|name| directory.join(name));
    files.find(|file| file.is_file())
}

/// The entry of `directory` that is called like the first of `names` that any is called like, whatever the case.
fn listed(directory: &Path, names: &[String], is_wanted: fn(&Path) -> bool) -> Option<PathBuf> {
    let names: Vec<_> = names.iter().map(|name| fold_case(name)).collect();
    let mut entries: Vec<(usize, String)> = fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let lower = fold_case(&name);
            let rank = names.iter().position(|wanted| *wanted == lower)?;
            Some((rank, name))
        })
        .collect();
    // Which one answers must not depend on the order in which the system lists them.
    entries.sort();
    let mut paths = entries.into_iter().map(|(_, name)| directory.join(name));
    paths.find(|path| is_wanted(path))
}

/// A folder that is called like `name`, whatever the case, and another one than `name` if there is one.
fn listed_but(directory: &Path, name: &str) -> Option<PathBuf> {
    let lower = fold_case(name);
    let mut entries: Vec<String> = fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|entry| fold_case(entry) == lower)
        .collect();
    entries.sort_by_key(|entry| (entry == name, entry.clone()));
    let mut paths = entries.into_iter().map(|name| directory.join(name));
    paths.find(|path| path.is_dir())
}
