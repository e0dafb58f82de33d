//! The syntax of HAProxy: sections of lines, each of words.

use std::rc::Rc;

use super::super::ImportError;
use super::super::nginx::Directive;

/// What sections begin with.
const SECTIONS: [&str; 16] = [
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "userlist",
    "cache",
    "peers",
    "resolvers",
    "mailers",
    "program",
    "http-errors",
    "ring",
    "log-forward",
    "fcgi-app",
    "crt-store",
];

/// The sections of a file, whose lines are in their blocks.
///
/// Lines before the first section are an error.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Directive>, ImportError> {
    let name: Rc<str> = Rc::from(file);
    let mut sections: Vec<Directive> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let words = words(line).ok_or_else(|| ImportError {
            file: file.to_owned(),
            line: at + 1,
            reason: "a quote is not closed".to_owned(),
        })?;
        let Some((first, rest)) = words.split_first() else {
            continue;
        };
        let directive = Directive {
            file: Rc::clone(&name),
            line: at + 1,
            name: first.clone(),
            arguments: rest.to_vec(),
            block: Vec::new(),
        };
        if SECTIONS.contains(&first.as_str()) && !line.starts_with([' ', '\t']) {
            sections.push(directive);
        } else if let Some(section) = sections.last_mut() {
            section.block.push(directive);
        } else {
            return Err(ImportError {
                file: file.to_owned(),
                line: at + 1,
                reason: format!("`{first}` is in no section"),
            });
        }
    }
    Ok(sections)
}

/// Whether a text has a section for traffic. nginx and Caddy have a brace or a semicolon behind what such a line begins with.
pub(super) fn is_one(text: &str) -> bool {
    let begins = |line: &str| {
        let line = line.trim_end();
        let is_section = ["frontend ", "listen ", "backend "]
            .iter()
            .any(|it| line.starts_with(it));
        (is_section || line == "defaults") && !line.ends_with(['{', ';'])
    };
    text.lines().any(begins)
}

/// The words of a line; `None` if a quote is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_word = false;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '#' => break,
            ' ' | '\t' | '\r' => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
                continue;
            }
            '\\' => escaped(chars.next()?, &mut word),
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    other => word.push(other),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => match chars.next()? {
                        '$' => word.push('$'),
                        other => escaped(other, &mut word),
                    },
                    other => word.push(other),
                }
            },
            other => word.push(other),
        }
        is_word = true;
    }
    if is_word {
        words.push(word);
    }
    Some(words)
}

/// Appends what a character behind a backslash stands for, which is both of them unless it has a meaning.
fn escaped(char: char, word: &mut String) {
    match char {
        'n' => word.push('\n'),
        'r' => word.push('\r'),
        't' => word.push('\t'),
        ' ' | '#' | '\\' | '"' | '\'' => word.push(char),
        other => word.extend(['\\', other]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_words() {
        for (line, expected) in [
            ("  bind :80 # all", vec!["bind", ":80"]),
            (
                r"acl a path_reg ^/a\ b$",
                vec!["acl", "a", "path_reg", "^/a b$"],
            ),
            (r#"x "a \"b\" #" 'c\d'"#, vec!["x", "a \"b\" #", "c\\d"]),
            (r#"x "" y"#, vec!["x", "", "y"]),
            (
                r"replace-path ^/a\.b(.*) /\1",
                vec!["replace-path", r"^/a\.b(.*)", r"/\1"],
            ),
            ("# nothing", vec![]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
        assert_eq!(words("x \"a"), None);
        assert!(parse("h", "bind :80\n").is_err());
        assert!(is_one("frontend a\n  bind :80\n"));
        assert!(!is_one("frontend a {\n}\n"));
        assert!(is_one("frontend a\n  http-response set-header B c;\n"));
    }
}
