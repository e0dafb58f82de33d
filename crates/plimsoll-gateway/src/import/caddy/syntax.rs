//! The syntax of a Caddyfile: lines of words, blocks, snippets and imports.
//!
//! Source: Caddy's documentation, "Caddyfile Concepts".

use std::rc::Rc;

use super::super::nginx::Directive;
use super::super::{ImportError, Include, Notes};

/// Maximum nesting of blocks, snippets and files.
const DEEPEST: usize = 20;

/// Lines that snippets and files come to, at most.
const MOST: usize = 100_000;

/// A block of sites, as it is written: their addresses, and what is in it.
pub(super) struct SiteBlock {
    /// The first line, with the addresses as its name and arguments.
    pub(super) head: Directive,
    pub(super) addresses: Vec<String>,
}

/// A whole file.
#[derive(Default)]
pub(super) struct Caddyfile {
    /// The options of the block without addresses.
    pub(super) options: Vec<Directive>,
    pub(super) sites: Vec<SiteBlock>,
}

/// The sites and options of a file, with its snippets and files in place.
pub(super) fn parse(
    file: &str,
    text: &str,
    include: &mut Include<'_>,
    notes: &mut Notes,
) -> Result<Caddyfile, ImportError> {
    let lines = blocks(file, text, notes)?;
    let mut snippets = Snippets {
        known: Vec::new(),
        include,
        lines: 0,
    };
    let mut whole = Caddyfile::default();
    // A file whose first line opens no block is one site.
    let is_single = lines.first().is_some_and(|first| {
        first.block.is_none() && !first.words.is_empty() && first.words[0] != "import"
    });
    if is_single {
        let mut lines = lines.into_iter();
        if let Some(first) = lines.next() {
            let rest = lines.collect();
            let block = snippets.expand(rest, 0, notes)?;
            whole.sites.push(site(first, block));
        }
        return Ok(whole);
    }
    for line in snippets.top(lines, 0, notes)? {
        let Line { words, block, .. } = &line;
        let name = words.first().map_or("", String::as_str);
        match block {
            Some(block) if name.is_empty() => {
                let options = snippets.expand(block.clone(), 0, notes)?;
                whole.options.extend(options);
            }
            Some(block) => {
                let block = snippets.expand(block.clone(), 0, notes)?;
                whole.sites.push(site(line, block));
            }
            None => whole.sites.push(site(line, Vec::new())),
        }
    }
    Ok(whole)
}

fn site(line: Line, block: Vec<Directive>) -> SiteBlock {
    let addresses = line.words.iter().flat_map(|word| word.split(','));
    let addresses = addresses.filter(|word| !word.is_empty());
    SiteBlock {
        addresses: addresses.map(str::to_owned).collect(),
        head: Directive {
            file: line.file,
            line: line.number,
            name: "site".to_owned(),
            arguments: line.words,
            block,
        },
    }
}

/// A line of words, with the lines of the block that it opens.
#[derive(Clone)]
struct Line {
    file: Rc<str>,
    number: usize,
    words: Vec<String>,
    block: Option<Vec<Line>>,
}

/// Lines and blocks as they are written.
fn blocks(file: &str, text: &str, notes: &mut Notes) -> Result<Vec<Line>, ImportError> {
    let file: Rc<str> = Rc::from(file);
    let wrong = |line, reason: &str| ImportError {
        file: file.to_string(),
        line,
        reason: reason.to_owned(),
    };
    let mut scanner = Scanner {
        rest: text,
        line: 1,
        file: &file,
        notes,
    };
    let mut open: Vec<(Vec<Line>, Option<Line>)> = vec![(Vec::new(), None)];
    loop {
        let (line, mut words, is_end) = scanner
            .words()
            .map_err(|unclosed| wrong(scanner.line, &unclosed.to_string()))?;
        let made = |words| Line {
            file: Rc::clone(&file),
            number: line,
            words,
            block: None,
        };
        match words.last().map(|word| (word.is_bare, word.text.as_str())) {
            None => {}
            Some((true, "}")) if words.len() == 1 => {
                let Some((block, Some(mut head))) = open.pop() else {
                    return Err(wrong(line, "`}` closes no block"));
                };
                head.block = Some(block);
                open.last_mut().expect("the file is below").0.push(head);
            }
            Some((true, "{")) => {
                words.pop();
                let words = words.into_iter().map(|word| word.text).collect();
                if open.len() > DEEPEST {
                    return Err(wrong(line, "blocks are nested too deeply"));
                }
                open.push((Vec::new(), Some(made(words))));
            }
            Some(_) => {
                let words = words.into_iter().map(|word| word.text).collect();
                open.last_mut()
                    .expect("the file is below")
                    .0
                    .push(made(words));
            }
        }
        if is_end {
            break;
        }
    }
    match open.pop() {
        Some((lines, None)) => Ok(lines),
        Some((_, Some(head))) => Err(wrong(head.number, "the block is not closed")),
        None => Ok(Vec::new()),
    }
}

/// What a file leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Unclosed {
    #[error("a quote is not closed")]
    Quote,
    #[error("a text has no end")]
    Text,
    #[error("a text has no word that ends it")]
    Word,
}

struct Word {
    text: String,
    /// Neither in quotes nor in backticks.
    is_bare: bool,
}

struct Scanner<'t> {
    rest: &'t str,
    line: usize,
    file: &'t Rc<str>,
    notes: &'t mut Notes,
}

impl Scanner<'_> {
    /// Goes on behind so many bytes.
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.skip(next.len_utf8());
        if next == '\n' {
            self.line += 1;
        }
        Some(next)
    }

    /// The words of the next line that has some, its number, and whether the file ends.
    fn words(&mut self) -> Result<(usize, Vec<Word>, bool), Unclosed> {
        let mut words: Vec<Word> = Vec::new();
        let mut line = self.line;
        loop {
            let Some(next) = self.rest.chars().next() else {
                return Ok((line, words, true));
            };
            match next {
                '\n' => {
                    self.next();
                    // Addresses go on behind a comma.
                    let goes_on = words
                        .last()
                        .is_some_and(|it| it.is_bare && it.text.ends_with(','));
                    if !words.is_empty() && !goes_on {
                        return Ok((line, words, false));
                    }
                    if words.is_empty() {
                        line = self.line;
                    }
                }
                '\\' if self.rest.starts_with("\\\n") || self.rest.starts_with("\\\r\n") => {
                    while self.next() != Some('\n') {}
                }
                it if it.is_whitespace() => {
                    self.next();
                }
                '#' => {
                    self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
                }
                '"' | '`' => {
                    self.next();
                    let text = self.quoted(next)?;
                    words.push(Word {
                        text,
                        is_bare: false,
                    });
                }
                '<' if self.rest.starts_with("<<") && !words.is_empty() => {
                    let text = self.heredoc()?;
                    words.push(Word {
                        text,
                        is_bare: false,
                    });
                }
                _ => {
                    let end = self.rest.find(char::is_whitespace);
                    let end = end.unwrap_or(self.rest.len());
                    let text = self.rest.get(..end).unwrap_or_default().to_owned();
                    self.skip(end);
                    let text = self.with_environment(text);
                    words.push(Word {
                        text,
                        is_bare: true,
                    });
                }
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, Unclosed> {
        let mut text = String::new();
        loop {
            match self.next().ok_or(Unclosed::Quote)? {
                it if it == quote => return Ok(self.with_environment(text)),
                '\\' if quote == '"' => match self.next().ok_or(Unclosed::Quote)? {
                    '"' => text.push('"'),
                    other => text.extend(['\\', other]),
                },
                it => text.push(it),
            }
        }
    }

    /// `<<END` and the lines up to `END`, without the indentation of that.
    fn heredoc(&mut self) -> Result<String, Unclosed> {
        let (first, rest) = self.rest.split_once('\n').ok_or(Unclosed::Text)?;
        let end = first.trim_start_matches('<').trim().to_owned();
        if end.is_empty() {
            return Err(Unclosed::Word);
        }
        self.rest = rest;
        self.line += 1;
        let mut lines = Vec::new();
        loop {
            let (line, rest) = match self.rest.split_once('\n') {
                Some(parts) => parts,
                None if self.rest.is_empty() => return Err(Unclosed::Text),
                None => (self.rest, ""),
            };
            let behind = line.trim_start().strip_prefix(end.as_str());
            if let Some(behind) = behind.filter(|it| it.is_empty() || it.starts_with([' ', '\r'])) {
                let indentation = line.len() - line.trim_start().len();
                // The line goes on behind the text.
                self.skip(line.len() - behind.len());
                let lines = lines
                    .iter()
                    .map(|line: &&str| line.get(indentation..).unwrap_or(""));
                return Ok(lines.collect::<Vec<_>>().join("\n"));
            }
            lines.push(line);
            self.rest = rest;
            self.line += 1;
        }
    }

    /// `{$NAME:default}` becomes its default, or else a name that stands for it: the environment of Caddy is not that of this program.
    fn with_environment(&mut self, text: String) -> String {
        let mut whole = text;
        while let Some((before, rest)) = whole.split_once("{$") {
            let Some((inner, after)) = rest.split_once('}') else {
                break;
            };
            let (name, default) = inner.split_once(':').unwrap_or((inner, ""));
            let value = match (default, before.ends_with(':')) {
                ("", true) => "8080".to_owned(),
                ("", false) => {
                    let name = name.to_ascii_lowercase().replace('_', "-");
                    format!("{name}.example")
                }
                (default, _) => default.to_owned(),
            };
            let message = format!("is `{value}` here, whatever the environment says");
            self.notes.0.push(super::super::ImportNote {
                file: self.file.to_string(),
                line: self.line,
                message: format!("{{${name}}}: {message}"),
            });
            whole = format!("{before}{value}{after}");
        }
        whole
    }
}

/// Snippets and files that `import` names.
struct Snippets<'i, 'f> {
    known: Vec<(String, Vec<Line>)>,
    include: &'i mut Include<'f>,
    /// Expanded until now.
    lines: usize,
}

impl Snippets<'_, '_> {
    /// Sites and options of the lines outside of blocks; definitions of snippets are kept.
    fn top(
        &mut self,
        lines: Vec<Line>,
        depth: usize,
        notes: &mut Notes,
    ) -> Result<Vec<Line>, ImportError> {
        let mut found = Vec::new();
        for line in lines {
            let name = line.words.first().map_or("", String::as_str);
            let snippet = name.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
            match (snippet, &line.block) {
                (Some(snippet), Some(block)) => {
                    self.known.push((snippet.to_owned(), block.clone()));
                }
                _ if name == "import" => {
                    let imported = self.imported(&line, depth, notes)?;
                    found.extend(self.top(imported, depth + 1, notes)?);
                }
                _ => found.push(line),
            }
        }
        Ok(found)
    }

    /// Directives of the lines of a block.
    fn expand(
        &mut self,
        lines: Vec<Line>,
        depth: usize,
        notes: &mut Notes,
    ) -> Result<Vec<Directive>, ImportError> {
        let mut directives = Vec::new();
        for line in lines {
            self.lines += 1;
            if self.lines > MOST {
                return Err(wrong_at(&line, "snippets and files come to too many lines"));
            }
            let Some((name, arguments)) = line.words.split_first() else {
                continue;
            };
            if name == "import" {
                let imported = self.imported(&line, depth, notes)?;
                directives.extend(self.expand(imported, depth + 1, notes)?);
                continue;
            }
            let block = line.block.clone().unwrap_or_default();
            directives.push(Directive {
                file: Rc::clone(&line.file),
                line: line.number,
                name: name.clone(),
                arguments: arguments.to_vec(),
                block: self.expand(block, depth + 1, notes)?,
            });
        }
        Ok(directives)
    }

    /// The lines that `import` stands for.
    fn imported(
        &mut self,
        line: &Line,
        depth: usize,
        notes: &mut Notes,
    ) -> Result<Vec<Line>, ImportError> {
        if depth > DEEPEST {
            return Err(wrong_at(line, "snippets and files are nested too deeply"));
        }
        let Some(name) = line.words.get(1) else {
            return Err(wrong_at(line, "`import` names nothing"));
        };
        let snippet = self.known.iter().rev().find(|(known, _)| known == name);
        if let Some((_, lines)) = snippet {
            let given = line.words.get(2..).unwrap_or_default();
            let lines = lines.iter().map(|line| with_arguments(line, given));
            return Ok(lines.collect());
        }
        let files = (self.include)(name).map_err(|error| wrong_at(line, &error.to_string()))?;
        let mut lines = Vec::new();
        for (file, text) in files {
            lines.extend(blocks(&file, &text, notes)?);
        }
        Ok(lines)
    }
}

/// A line of a snippet with `{args[0]}` and the like filled.
fn with_arguments(line: &Line, given: &[String]) -> Line {
    let filled = |word: &String| -> Vec<String> {
        if word == "{args[:]}" {
            return given.to_vec();
        }
        let mut word = word.clone();
        for (number, argument) in given.iter().enumerate() {
            word = word
                .replace(&format!("{{args[{number}]}}"), argument)
                .replace(&format!("{{args.{number}}}"), argument);
        }
        vec![word]
    };
    let block = line.block.as_ref();
    Line {
        words: line.words.iter().flat_map(filled).collect(),
        block: block.map(|lines| lines.iter().map(|it| with_arguments(it, given)).collect()),
        file: Rc::clone(&line.file),
        number: line.number,
    }
}

fn wrong_at(line: &Line, reason: &str) -> ImportError {
    ImportError {
        file: line.file.to_string(),
        line: line.number,
        reason: reason.to_owned(),
    }
}
