//! Errors are types: outside of tests, and of the binary that prints them, no function fails with a mere text.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::directions::{code_of, is_of_tests};
use super::{entries, read};
use crate::Failure;

/// The crate whose errors are texts by then, and those that only tests and benches use.
const EXEMPT: [&str; 3] = ["plimsoll", "plimsoll-bench", "plimsoll-testkit"];

/// Functions and traits whose error is a text, as problems.
pub(super) fn texts(root: &Path) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    for member in entries(&root.join("crates"))? {
        let name = member.file_name().unwrap_or_default().to_string_lossy();
        if EXEMPT.contains(&&*name) {
            continue;
        }
        let mut files = Vec::new();
        collect(&member.join("src"), &mut files)?;
        let mut for_tests = BTreeSet::new();
        for (file, text) in &files {
            for_tests.extend(modules_of_tests(file, text));
        }
        for (file, text) in &files {
            if for_tests.contains(&file.with_extension("")) {
                continue;
            }
            let shown = file.strip_prefix(root).unwrap_or(file).display();
            let found = failing_with_text(text).into_iter();
            problems.extend(found.map(|what| format!("{shown}: `{what}` fails with a text")));
        }
    }
    Ok(problems)
}

fn collect(path: &Path, files: &mut Vec<(PathBuf, String)>) -> Result<(), Failure> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if is_of_tests(&stem) {
        return Ok(());
    }
    if path.is_dir() {
        for entry in entries(path)? {
            collect(&entry, files)?;
        }
    } else if path.extension().is_some_and(|it| it == "rs") {
        files.push((path.to_owned(), read(path)?));
    }
    Ok(())
}

/// The modules that a file declares for its tests, as paths without an extension.
fn modules_of_tests(file: &Path, text: &str) -> Vec<PathBuf> {
    let folder = match file.file_name().and_then(|it| it.to_str()) {
        Some("lib.rs" | "main.rs" | "mod.rs") => file.parent().unwrap_or(file).to_owned(),
        _ => file.with_extension(""),
    };
    let declared = text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| {
        let line = rest.lines().next()?.trim_end().strip_suffix(';')?;
        let (_, name) = line.split_once("mod ")?;
        Some(folder.join(name))
    });
    declared.collect()
}

fn failing_with_text(text: &str) -> Vec<String> {
    let code = code_of(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("Result<") {
        let whole = code.get(at..).unwrap_or_default();
        let Some(arguments) = arguments(whole) else {
            continue;
        };
        let is_text = |it: &String| it == "String" || it == "&'static str";
        if arguments.last().is_some_and(is_text) && arguments.len() == 2 {
            found.push(format!("Result<{}>", arguments.join(", ")));
        }
    }
    for alias in ["type Err = String;", "type Error = String;"] {
        if code.contains(alias) {
            found.push(alias.trim_end_matches(';').to_owned());
        }
    }
    found
}

/// The arguments of the generic type that the text begins with.
fn arguments(text: &str) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    let mut depth = 0_usize;
    let mut before = ' ';
    for c in text.chars() {
        // That of an arrow closes nothing.
        let closes = c == ')' || c == ']' || (c == '>' && before != '-');
        before = c;
        if closes {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                let trimmed = all.iter().map(|it| it.trim().to_owned());
                return Some(trimmed.filter(|it| !it.is_empty()).collect());
            }
        }
        match c {
            ',' if depth == 1 => all.push(String::new()),
            '{' | ';' => return None,
            c if depth > 0 => all.last_mut()?.push(c),
            _ => {}
        }
        if matches!(c, '<' | '(' | '[') {
            depth += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_as_an_error_is_found_wherever_it_stands() {
        for (code, is_text) in [
            ("fn a() -> Result<u8, String> {}", true),
            (
                "fn a() -> Result<\n    Vec<(u8, u8)>,\n    String,\n> {}",
                true,
            ),
            ("type Made = Result<Arc<dyn Fn() -> u8>, String>;", true),
            ("fn a() -> Option<Result<Option<u8>, String>> {}", true),
            ("type Err = String;", true),
            ("fn a() -> Result<String, Error> {}", false),
            ("fn a() -> io::Result<String> {}", false),
            ("fn a() -> Result<Result<String, Error>, Error> {}", false),
            ("/// Not `Result<u8, String>`.\nfn a() {}", false),
            (
                "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn a() -> Result<u8, String> {}\n}",
                false,
            ),
        ] {
            assert_eq!(!failing_with_text(code).is_empty(), is_text, "{code}");
        }
    }

    #[test]
    fn modules_of_tests_are_known_by_their_declarations() {
        let text = "mod a;\n\n#[cfg(test)]\npub(crate) mod b;\n\n#[cfg(test)]\nmod tests {}\n";
        let found = modules_of_tests(Path::new("x/src/c.rs"), text);
        assert_eq!(found, [PathBuf::from("x/src/c/b")]);
    }
}
