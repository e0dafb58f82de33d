//! Every command in README.md and docs/ has flags that exist, with values that they take; and every flag and
//! key that docs/migration.md names on plimsoll's side exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::CommandFactory;
use serde_json::Value;

use crate::cli::Cli;

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Stands for what a reader fills in.
const PLACEHOLDERS: [(&str, &str); 6] = [
    ("URL", "http://127.0.0.1:8080/"),
    ("DIR", "folder"),
    ("FOLDER", "folder"),
    ("FILE", "file"),
    ("PID", "4711"),
    ("NAME", "name"),
];

/// The commands of a page: code spans, and `$ …` lines of fenced blocks, with the number of their lines.
fn commands(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_block = false;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let Some(command) = line.strip_prefix("$ ") else {
                continue;
            };
            let mut command = command.to_owned();
            while let Some(cut) = command.strip_suffix('\\') {
                let next = lines.next().map_or("", |(_, next)| next);
                command = format!("{cut} {next}");
            }
            found.push((number + 1, command));
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.map(|span| (number + 1, span.replace("\\|", "|"))));
        }
    }
    found
}

/// The arguments of plimsoll in a shell command, up to a pipe or redirection; nothing if it runs something else.
fn arguments(command: &str) -> Option<Vec<String>> {
    let mut words = shlex::split(command)?.into_iter().peekable();
    while words.next_if(|word| word.contains('=')).is_some() {}
    if words.next()? != "plimsoll" {
        return None;
    }
    let is_shell = |word: &String| {
        ["|", "<", ">", "&&", "||", "&"].contains(&word.as_str()) || word.ends_with(';')
    };
    let mut arguments = vec!["plimsoll".to_owned()];
    let mut in_substitution = false;
    for word in words {
        if is_shell(&word) {
            // What stands before the semicolon is an argument.
            arguments.extend(
                word.strip_suffix(';')
                    .filter(|it| !it.is_empty())
                    .map(str::to_owned),
            );
            break;
        }
        if in_substitution || word.starts_with("$(") {
            if !in_substitution {
                arguments.push("4711".to_owned());
            }
            in_substitution = !word.ends_with(')');
            continue;
        }
        // The names of processes are those of programs that run, when the flag is read.
        if arguments.last().is_some_and(|flag| flag == "--pid") {
            arguments.push("4711".to_owned());
            continue;
        }
        let filled = PLACEHOLDERS.iter().find(|(name, _)| word == *name);
        arguments.push(filled.map_or(word.clone(), |(_, value)| (*value).to_owned()));
    }
    Some(arguments)
}

/// Parses a command line as the program does: that of a script has flags of its own.
fn parse(arguments: &[String]) -> Result<clap::ArgMatches, clap::Error> {
    #[cfg(feature = "k6")]
    if arguments[1] == "load" && crate::commands::is_script_meant(&arguments[2..]) {
        let command = crate::cli::ScriptCli::command();
        return command.try_get_matches_from(&arguments[1..]);
    }
    Cli::command().try_get_matches_from(arguments)
}

#[test]
fn commands_of_the_docs_have_flags_that_exist() {
    let folders = ["docs", "docs/tutorials"].map(|name| Path::new(WORKSPACE).join(name));
    let pages = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let pages = pages.map(|entry| entry.unwrap().path());
    let pages = pages.chain([Path::new(WORKSPACE).join("README.md")]);
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages.filter(|page| page.extension().is_some_and(|it| it == "md")) {
        // The commands of measured tables have places that the plan of a laboratory fills.
        if page.ends_with("performance.md") || page.ends_with("benchmarks.md") {
            continue;
        }
        for (line, command) in commands(&fs::read_to_string(&page).unwrap()) {
            // `plimsoll load` alone, or with `--expect` alone, is a name in a sentence.
            let Some(arguments) = arguments(&command).filter(|it| it.len() > 3) else {
                continue;
            };
            count += 1;
            let parsed = parse(&arguments);
            if let Err(error) = parsed
                && error.use_stderr()
            {
                let text = error.to_string();
                let reason = text.lines().next().unwrap_or_default();
                wrong.push(format!("{}:{line}: {command}: {reason}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "{count} commands were found");
}

/// Long and short flags of a command and all that are below it, and of scripts.
fn flags(command: &clap::Command, found: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        let longs = argument
            .get_long_and_visible_aliases()
            .into_iter()
            .flatten();
        found.extend(longs.map(|long| format!("--{long}")));
        let hidden = argument.get_all_aliases().into_iter().flatten();
        found.extend(hidden.map(|long| format!("--{long}")));
        let shorts = argument
            .get_short_and_visible_aliases()
            .into_iter()
            .flatten();
        found.extend(shorts.map(|short| format!("-{short}")));
    }
    for inner in command.get_subcommands() {
        flags(inner, found);
    }
}

/// The flags that the rows of a page name for plimsoll: in the last column, and in the first where the last says that they
/// are the same.
fn named_flags(page: &str) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    for (number, line) in page.lines().enumerate() {
        let cells: Vec<_> = line.split(" | ").collect();
        let [theirs, ours] = cells.as_slice() else {
            continue;
        };
        let is_same = ours.starts_with("the same");
        for cell in is_same.then_some(theirs).into_iter().chain([ours]) {
            let spans = cell.split('`').skip(1).step_by(2);
            // Spans that begin with a program are commands, which the other test parses.
            let flags = spans.filter_map(|span| span.split([' ', '=']).next());
            let flags = flags.filter(|it| it.starts_with('-') && it.len() > 1);
            named.extend(flags.map(|flag| (number + 1, flag.to_owned())));
        }
    }
    named
}

/// Adds every key that a schema describes, at any depth.
fn schema_keys(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(properties) = members.get("properties").and_then(Value::as_object) {
                found.extend(properties.keys().cloned());
            }
            for member in members.values() {
                schema_keys(member, found);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                schema_keys(element, found);
            }
        }
        _ => {}
    }
}

/// Keys that the tables headed by `file` name for plimsoll, in the last column: `[[listen]]`, `limits.head` and
/// `tls = { ca, insecure }` have four.
fn named_keys(page: &str, file: &str) -> Vec<(usize, String)> {
    let heading = format!("| `{file}` |");
    let mut named = Vec::new();
    let mut is_inside = false;
    for (number, line) in page.lines().enumerate() {
        if !line.starts_with('|') {
            is_inside = false;
        }
        let cells: Vec<_> = line.split(" | ").collect();
        if let ([_, ours], true) = (cells.as_slice(), is_inside) {
            for span in ours.split('`').skip(1).step_by(2) {
                let is_command = span.starts_with("plimsoll");
                let is_key = span.starts_with(|it: char| it == '[' || it.is_ascii_lowercase());
                if is_command || !is_key {
                    continue;
                }
                let (key, value) = span.split_once(" = ").unwrap_or((span, ""));
                let keys = key.trim_matches(['[', ']']).split('.');
                let inner = value
                    .strip_prefix("{ ")
                    .and_then(|it| it.strip_suffix(" }"));
                let inner = inner.into_iter().flat_map(|it| it.split(", "));
                // In capitals is what the reader fills in, as in `[upstream.NAME]`.
                let keys = keys.chain(inner).filter(|it| *it != "NAME");
                named.extend(keys.map(|it| (number + 1, it.to_owned())));
            }
        }
        is_inside |= line.ends_with(&heading);
    }
    named
}

#[test]
fn keys_that_others_come_to_exist() {
    let page = fs::read_to_string(Path::new(WORKSPACE).join("docs/migration.md")).unwrap();
    for (file, schema, least) in [
        ("plimsoll.toml", "server.v1.json", 150),
        ("monitor.toml", "monitor.v1.json", 70),
    ] {
        let schema = fs::read_to_string(Path::new(WORKSPACE).join("schemas").join(schema)).unwrap();
        let mut known = BTreeSet::new();
        schema_keys(&serde_json::from_str(&schema).unwrap(), &mut known);
        let named = named_keys(&page, file);
        let unknown: Vec<_> = named
            .iter()
            .filter(|(_, key)| !known.contains(key))
            .map(|(line, key)| format!("docs/migration.md:{line}: {key}"))
            .collect();
        assert!(unknown.is_empty(), "{}", unknown.join("\n"));
        assert!(named.len() > least, "{file}: {} keys", named.len());
    }
    let made_up = "| it | `a.toml` |\n|---|---|\n| `x` | `[[b.NAME]]`, `c.d`, `e = { f, g }`, `--h`, `\"i\"` |\n\n| `y` | `j` |";
    let keys: Vec<_> = named_keys(made_up, "a.toml")
        .into_iter()
        .map(|it| it.1)
        .collect();
    assert_eq!(keys, ["b", "c", "d", "e", "f", "g"]);
}

#[test]
#[cfg(feature = "k6")]
fn flags_that_others_come_to_exist() {
    let mut known = BTreeSet::new();
    flags(&Cli::command(), &mut known);
    flags(&crate::cli::ScriptCli::command(), &mut known);
    let page = fs::read_to_string(Path::new(WORKSPACE).join("docs/migration.md")).unwrap();
    let named = named_flags(&page);
    let unknown: Vec<_> = named
        .iter()
        .filter(|(_, flag)| !known.contains(flag))
        .map(|(line, flag)| format!("docs/migration.md:{line}: {flag}"))
        .collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert!(named.len() > 100, "{} flags were found", named.len());
    let made_up = "| `-n` | the same; `--made-up FILE` |\n| `--theirs` | none |";
    let flags: Vec<_> = named_flags(made_up).into_iter().map(|it| it.1).collect();
    assert_eq!(flags, ["-n", "--made-up"]);
}
