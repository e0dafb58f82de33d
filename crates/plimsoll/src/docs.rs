//! Every command in README.md and docs/ has flags that exist, with values that they take.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

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
    let docs = fs::read_dir(Path::new(WORKSPACE).join("docs")).unwrap();
    let pages = docs.map(|entry| entry.unwrap().path());
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
