//! Directions within large crates: which of their top-level modules may import which.
//!
//! `directions.toml` lists the modules of a crate from the lowest up. A module imports those before it alone. An import
//! the other way has to be listed as well, with its reason, and is removed from the list once it is gone. Tests and suites that
//! every implementation of a trait passes (`contract`) may import everything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::{entries, read};
use crate::Failure;

/// The list, by the name of the crate.
const LIST: &str = include_str!("directions.toml");

/// The allowed directions of one crate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Directions {
    /// Its top-level modules, from the lowest up.
    order: Vec<String>,
    /// Imports the other way.
    #[serde(default)]
    upward: Vec<Upward>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Upward {
    from: String,
    to: String,
    /// Why it is not cut.
    because: String,
}

/// Which module imports which, with one of the files that do.
type Imports = BTreeMap<(String, String), String>;

/// What the sources do and the list does not allow, and what the list says that is not so.
pub(super) fn broken(root: &Path) -> Result<Vec<String>, Failure> {
    let list: BTreeMap<String, Directions> =
        toml::from_str(LIST).map_err(|error| format!("xtask/src/tidy/directions.toml: {error}"))?;
    let mut problems = Vec::new();
    for (name, directions) in &list {
        let source = root.join("crates").join(name).join("src");
        let lib = read(&source.join("lib.rs"))?;
        let modules = declared_modules(&lib);
        let reexports = reexported_names(&lib);
        let mut imports = Imports::new();
        for module in &modules {
            for end in [format!("{module}.rs"), module.clone()] {
                let path = source.join(end);
                if path.exists() {
                    collect(&source, &path, (module, &modules, &reexports), &mut imports)?;
                }
            }
        }
        problems.extend(held_against(name, directions, &modules, &imports));
    }
    Ok(problems)
}

fn held_against(
    name: &str,
    directions: &Directions,
    modules: &BTreeSet<String>,
    imports: &Imports,
) -> Vec<String> {
    let order = &directions.order;
    let listed: BTreeSet<&String> = order.iter().collect();
    let mut problems = Vec::new();
    for module in modules.iter().filter(|it| !listed.contains(it)) {
        problems.push(format!(
            "xtask/src/tidy/directions.toml does not place the module {module} of {name}"
        ));
    }
    for module in listed.iter().filter(|it| !modules.contains(**it)) {
        problems.push(format!(
            "xtask/src/tidy/directions.toml places the module {module}, which {name} does not have"
        ));
    }
    let place = |module: &str| order.iter().position(|it| it == module);
    let exception = |from: &str, to: &str| {
        let mut upward = directions.upward.iter();
        upward.any(|it| it.from == from && it.to == to && !it.because.is_empty())
    };
    let is_upward = |from: &str, to: &str| place(from) < place(to);
    for ((from, to), file) in imports {
        if is_upward(from, to) && !exception(from, to) {
            problems.push(format!(
                "{name}: {file} imports `{to}`, which xtask/src/tidy/directions.toml places above `{from}`"
            ));
        }
    }
    for Upward { from, to, .. } in &directions.upward {
        let is_there = imports.contains_key(&(from.clone(), to.clone()));
        if !is_there || !is_upward(from, to) {
            problems.push(format!(
                "xtask/src/tidy/directions.toml excuses an import of `{to}` by `{from}` in {name}, which is not there"
            ));
        }
    }
    problems
}

/// The modules that a crate's root declares, except those of tests.
fn declared_modules(lib: &str) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    let mut is_test = false;
    for line in lib.lines() {
        let declaration = line.strip_suffix(';').and_then(|line| {
            let rest = line
                .split_once("mod ")
                .filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
            rest.map(|(_, name)| name)
        });
        if let Some(name) = declaration {
            if !is_test && !is_of_tests(name) {
                modules.insert(name.to_owned());
            }
            is_test = false;
        } else if line == "#[cfg(test)]" {
            is_test = true;
        }
    }
    modules
}

/// The names that a crate's root reexports, each with the module that it comes from.
fn reexported_names(lib: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for use_ in lib.split("\npub").skip(1) {
        let Some((visibility, rest)) = use_.split_once("use crate::") else {
            continue;
        };
        if visibility.contains('\n') {
            continue;
        }
        let path = rest.split(';').next().unwrap_or_default();
        let Some((module, rest)) = path.split_once("::") else {
            continue;
        };
        for name in rest.split(|c: char| !c.is_alphanumeric() && c != '_') {
            names.insert(name.to_owned(), module.to_owned());
        }
    }
    names
}

fn collect(
    source: &Path,
    path: &Path,
    known: (&str, &BTreeSet<String>, &BTreeMap<String, String>),
    imports: &mut Imports,
) -> Result<(), Failure> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if is_of_tests(&stem) {
        return Ok(());
    }
    if path.is_dir() {
        for entry in entries(path)? {
            collect(source, &entry, known, imports)?;
        }
        return Ok(());
    }
    if path.extension().is_none_or(|it| it != "rs") {
        return Ok(());
    }
    let (module, modules, reexports) = known;
    let file = path.strip_prefix(source).unwrap_or(path);
    for name in names_of_root(&read(path)?) {
        let to = reexports.get(&name).unwrap_or(&name);
        if modules.contains(to) && to != module {
            let edge = (module.to_owned(), to.clone());
            imports
                .entry(edge)
                .or_insert_with(|| file.display().to_string());
        }
    }
    Ok(())
}

/// The modules and files of tests.
pub(super) fn is_of_tests(name: &str) -> bool {
    ["tests", "contract"].contains(&name) || name.ends_with("_tests")
}

/// A text without comments and the module of tests at its end.
pub(super) fn code_of(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod ").next();
    let lines = code.unwrap_or_default().lines();
    let code: Vec<_> = lines
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    code.join("\n")
}

/// What follows `crate::` in the code of a text.
fn names_of_root(text: &str) -> BTreeSet<String> {
    let code = code_of(text);
    let mut names = BTreeSet::new();
    for (at, found) in code.match_indices("crate::") {
        let before = code.get(..at).unwrap_or_default().chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = code.get(at + found.len()..).unwrap_or_default();
        match rest.strip_prefix('{') {
            Some(group) => names.extend(first_names(group)),
            None => names.extend(first_name(rest)),
        }
    }
    names
}

fn first_name(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = text.get(..end.unwrap_or(text.len()))?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The first name of each path of a group, whose opening brace is left out.
fn first_names(group: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 1_usize;
    let mut is_start = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => is_start = true,
            c if is_start && !c.is_whitespace() => {
                names.extend(first_name(group.get(at..).unwrap_or_default()));
                is_start = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(values: &[&str]) -> BTreeSet<String> {
        values.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn imports_are_found() {
        let text = "use crate::a::X;\nuse crate::{\n    b::{c, d},\n    e,\n};\n// crate::f\nfn g() { crate::h::i(); }\n\
            #[cfg(test)]\nmod tests {\n    use crate::j;\n}\n";
        assert_eq!(names_of_root(text), names(&["a", "b", "e", "h"]));
        assert_eq!(
            names_of_root("pub(crate) fn a(my_crate::b: u8) {}"),
            names(&[])
        );
    }

    #[test]
    fn the_root_is_read() {
        let lib = "//! A.\n\nmod a;\n\npub mod b;\npub(crate) mod c;\n#[cfg(test)]\nmod d;\n\npub use crate::a::x::{One, Two};\n\
            pub use crate::b::Three;\nuse crate::c::Four;\n";
        assert_eq!(declared_modules(lib), names(&["a", "b", "c"]));
        let reexported = reexported_names(lib);
        assert_eq!(reexported["Two"], "a");
        assert_eq!(reexported["Three"], "b");
        assert!(!reexported.contains_key("Four"));
    }

    #[test]
    fn upward_imports_are_reported_unless_listed() {
        let list = "order = [\"a\", \"b\", \"c\"]\n[[upward]]\nfrom = \"a\"\nto = \"c\"\nbecause = \"it is so\"\n";
        let directions: Directions = toml::from_str(list).unwrap();
        let modules = names(&["a", "b", "c"]);
        let imports = |edges: &[(&str, &str)]| -> Imports {
            let edges = edges.iter();
            edges
                .map(|(from, to)| (((*from).to_owned(), (*to).to_owned()), format!("{from}.rs")))
                .collect()
        };
        let problems =
            |edges: &[(&str, &str)]| held_against("x", &directions, &modules, &imports(edges));
        assert_eq!(problems(&[("c", "a"), ("a", "c")]), Vec::<String>::new());
        assert_eq!(
            problems(&[("a", "b"), ("b", "a")]),
            [
                "x: a.rs imports `b`, which xtask/src/tidy/directions.toml places above `a`",
                "xtask/src/tidy/directions.toml excuses an import of `c` by `a` in x, which is not there"
            ]
        );
        let modules = names(&["a", "c", "d"]);
        assert_eq!(
            held_against("x", &directions, &modules, &imports(&[("a", "c")])),
            [
                "xtask/src/tidy/directions.toml does not place the module d of x",
                "xtask/src/tidy/directions.toml places the module b, which x does not have"
            ]
        );
    }
}
