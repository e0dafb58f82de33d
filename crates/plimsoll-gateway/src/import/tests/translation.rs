//! What is expected of every translation, whatever it comes from.

use std::path::Path;

use super::super::{Imported, loads};

/// A translation that `up` loads.
#[track_caller]
pub(in crate::import) fn loaded(imported: Imported) -> Imported {
    let problems = loads::problems(&imported.toml, Path::new(""));
    assert!(problems.is_empty(), "{problems:?}\n{}", imported.toml);
    imported
}

/// The translation has these lines in this order, and its notes contain these texts.
#[track_caller]
pub(in crate::import) fn check_translation(imported: &Imported, lines: &[&str], notes: &[&str]) {
    let mut rest = imported.toml.as_str();
    for line in lines {
        let Some((_, after)) = rest.split_once(line) else {
            panic!(
                "`{line}` is missing, or not in this order:\n{}",
                imported.toml
            );
        };
        rest = after;
    }
    let shown: Vec<_> = imported.notes.iter().map(ToString::to_string).collect();
    for note in notes {
        assert!(
            shown.iter().any(|it| it.contains(note)),
            "{note}\n{shown:#?}"
        );
    }
    assert!(notes.len() >= shown.len(), "{shown:#?}\n{}", imported.toml);
}
