//! The syntax of nginx: directives with arguments, and blocks.

use std::rc::Rc;

use super::{ImportError, Include};

/// One directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) file: Rc<str>,
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    pub(super) block: Vec<Directive>,
}

impl Directive {
    /// Stands for what is no directive, as the place of notes.
    pub(super) fn place(file: &Rc<str>, line: usize, name: &str) -> Self {
        Self {
            file: Rc::clone(file),
            line: line.max(1),
            name: name.to_owned(),
            arguments: Vec::new(),
            block: Vec::new(),
        }
    }

    /// The argument at this position, or nothing.
    pub(super) fn argument(&self, at: usize) -> &str {
        self.arguments.get(at).map_or("", String::as_str)
    }

    /// The rest of the first argument that begins so, such as `burst=`.
    pub(super) fn parameter(&self, prefix: &str) -> Option<&str> {
        let mut arguments = self.arguments.iter();
        arguments.find_map(|it| it.strip_prefix(prefix))
    }

    /// The directives of this name within.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.block.iter().filter(move |it| it.name == name)
    }

    /// The last directive of this name within.
    pub(super) fn last(&self, name: &str) -> Option<&Self> {
        self.block.iter().rev().find(|it| it.name == name)
    }
}

/// Maximum nesting of blocks and includes.
const DEEPEST: usize = 20;

enum Token {
    Word(String),
    End,
    Open,
    Close,
}

/// The directives of a file, with those of the files that it includes in their place.
pub(super) fn parse(
    file: &str,
    text: &str,
    include: &mut Include<'_>,
) -> Result<Vec<Directive>, ImportError> {
    parse_nested(file, text, include, 0)
}

fn parse_nested(
    file: &str,
    text: &str,
    include: &mut Include<'_>,
    depth: usize,
) -> Result<Vec<Directive>, ImportError> {
    let file: Rc<str> = Rc::from(file);
    let wrong = |line, reason: &str| ImportError {
        file: file.to_string(),
        line,
        reason: reason.to_owned(),
    };
    let mut scanner = Scanner {
        rest: text,
        line: 1,
    };
    // The blocks that are open, outermost first; the last is where directives go.
    let mut blocks: Vec<Vec<Directive>> = vec![Vec::new()];
    let mut heads: Vec<(usize, Vec<String>)> = Vec::new();
    let mut words = Vec::new();
    let mut begun = 1;
    loop {
        let line = scanner.line;
        let token = scanner.next();
        let token = token.map_err(|unclosed| wrong(line, &unclosed.to_string()))?;
        if words.is_empty() {
            begun = scanner.line;
        }
        match token {
            None if !words.is_empty() => {
                return Err(wrong(begun, "the directive does not end with `;`"));
            }
            None => break,
            Some(Token::Word(word)) => words.push(word),
            Some(Token::End | Token::Open) if words.is_empty() => {
                return Err(wrong(scanner.line, "there is no directive before this"));
            }
            Some(Token::End) => {
                let words = std::mem::take(&mut words);
                let Some(block) = blocks.last_mut() else {
                    break;
                };
                if words[0] == "include" && words.len() == 2 {
                    if depth >= DEEPEST {
                        return Err(wrong(begun, "files include each other too deeply"));
                    }
                    let files =
                        include(&words[1]).map_err(|error| wrong(begun, &error.to_string()))?;
                    for (name, text) in files {
                        block.extend(parse_nested(&name, &text, include, depth + 1)?);
                    }
                } else {
                    block.push(directive(&file, begun, words, Vec::new()));
                }
            }
            Some(Token::Open) => {
                if blocks.len() > DEEPEST {
                    return Err(wrong(begun, "blocks are nested too deeply"));
                }
                heads.push((begun, std::mem::take(&mut words)));
                blocks.push(Vec::new());
            }
            Some(Token::Close) => {
                if !words.is_empty() {
                    return Err(wrong(begun, "the directive does not end with `;`"));
                }
                let (Some((line, head)), Some(block)) = (heads.pop(), blocks.pop()) else {
                    return Err(wrong(scanner.line, "there is no block to close"));
                };
                if let Some(outer) = blocks.last_mut() {
                    outer.push(directive(&file, line, head, block));
                }
            }
        }
    }
    match heads.pop() {
        Some((line, _)) => Err(wrong(line, "the block is not closed")),
        None => Ok(blocks.pop().unwrap_or_default()),
    }
}

fn directive(
    file: &Rc<str>,
    line: usize,
    mut words: Vec<String>,
    block: Vec<Directive>,
) -> Directive {
    let name = words.remove(0);
    Directive {
        file: Rc::clone(file),
        line,
        name,
        arguments: words,
        block,
    }
}

/// A word that has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the quote is not closed")]
struct UnclosedQuote;

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
}

impl Scanner<'_> {
    fn next(&mut self) -> Result<Option<Token>, UnclosedQuote> {
        loop {
            let Some(character) = self.next_char() else {
                return Ok(None);
            };
            return Ok(Some(match character {
                ';' => Token::End,
                '{' => Token::Open,
                '}' => Token::Close,
                '#' => {
                    while self.rest.chars().next().is_some_and(|it| it != '\n') {
                        self.next_char();
                    }
                    continue;
                }
                '"' | '\'' => Token::Word(self.quoted(character)?),
                it if it.is_whitespace() => continue,
                it => Token::Word(self.word(it)),
            }));
        }
    }

    fn next_char(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = self.rest.get(character.len_utf8()..).unwrap_or_default();
        self.line += usize::from(character == '\n');
        Some(character)
    }

    fn quoted(&mut self, quote: char) -> Result<String, UnclosedQuote> {
        let mut word = String::new();
        loop {
            match self.next_char().ok_or(UnclosedQuote)? {
                it if it == quote => return Ok(word),
                '\\' => match self.next_char().ok_or(UnclosedQuote)? {
                    it if it == quote || it == '\\' => word.push(it),
                    't' => word.push('\t'),
                    'n' => word.push('\n'),
                    'r' => word.push('\r'),
                    // Of a regular expression.
                    it => word.extend(['\\', it]),
                },
                it => word.push(it),
            }
        }
    }

    /// A word ends with a blank, `;` or `{`, but `${name}` and the repetitions of a regular expression belong to it.
    fn word(&mut self, first: char) -> String {
        let mut word = String::from(first);
        if first == '\\' {
            word.extend(self.next_char());
        }
        while let Some(next) = self.rest.chars().next() {
            match next {
                '{' if word.ends_with('$') => {
                    while let Some(it) = self.next_char() {
                        word.push(it);
                        if it == '}' {
                            break;
                        }
                    }
                }
                ';' | '{' | '}' => break,
                '\\' => {
                    self.next_char();
                    word.push('\\');
                    word.extend(self.next_char());
                }
                it if it.is_whitespace() => break,
                it => {
                    self.next_char();
                    word.push(it);
                }
            }
        }
        word
    }
}
