//! What lies beside the program: manual pages, completions, documents, unit files.

use std::fs;
use std::path::{Path, PathBuf};

use super::cannot;
use super::program::Programs;
use super::target::Target;
use crate::step;
use crate::{Failure, Outcome};

/// Documents of the repository that every package has.
const DOCUMENTS: [&str; 5] = [
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
];

/// Completions: the shell, and the name by which it finds them.
pub(super) const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "plimsoll"),
    ("zsh", "_plimsoll"),
    ("fish", "plimsoll.fish"),
];

/// A folder with all of it: both programs, `man/`, `completions/SHELL/`, `packaging/` and the documents.
#[derive(Debug)]
pub(super) struct Staged(pub(super) PathBuf);

/// Makes the folder anew.
pub(super) fn stage(
    root: &Path,
    folder: &Path,
    target: Target,
    programs: &Programs,
) -> Result<Staged, Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| cannot("remove", folder, &error))?;
    }
    let man = folder.join("man");
    make(&man)?;
    copy(&programs.plimsoll, &folder.join("plimsoll"))?;
    copy(&programs.packed, &folder.join("plimsoll-packed"))?;
    let program = || target.command(&programs.plimsoll);
    step::run(root, program().arg("man").arg(&man))?;
    for (shell, name) in COMPLETIONS {
        let shells = folder.join("completions").join(shell);
        make(&shells)?;
        let text = step::output(root, program().args(["completions", shell]))?;
        let file = shells.join(name);
        fs::write(&file, text).map_err(|error| cannot("write", &file, &error))?;
    }
    for name in DOCUMENTS {
        copy(&root.join(name), &folder.join(name))?;
    }
    copy_folder(&root.join("packaging"), &folder.join("packaging"))?;
    Ok(Staged(folder.to_owned()))
}

/// The files below `folder`, with their paths in it, in the order of their names.
pub(super) fn below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let path = folder.join(&inner);
        let entries = fs::read_dir(&path).map_err(|error| cannot("read", &path, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| cannot("read", &path, &error))?;
            let inner = inner.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(inner);
            } else {
                found.push(inner);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn copy_folder(from: &Path, to: &Path) -> Outcome {
    for inner in below(from)? {
        let file = to.join(&inner);
        if let Some(folder) = file.parent() {
            make(folder)?;
        }
        copy(&from.join(&inner), &file)?;
    }
    Ok(())
}

/// Makes the folder and those above it.
pub(super) fn make(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))
}

pub(super) fn copy(from: &Path, to: &Path) -> Outcome {
    fs::copy(from, to).map_err(|error| cannot("copy", from, &error))?;
    Ok(())
}
