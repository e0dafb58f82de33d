//! TypeScript made JavaScript by blanking its types.
//!
//! Types become spaces, so that every line and column of an error is that of the TypeScript file. Types are not checked.
//! Enums, namespaces and parameter properties are more than types: the JavaScript for them is inserted in their lines, so errors keep
//! their lines, and their columns in every other line. Decorators are rejected. Imports that only types use are removed, as the compilers of
//! TypeScript do file by file.
//!
//! The parser accepts more than JavaScript does: what is wrong in the remaining JavaScript is reported by the engine.

mod classes;

mod declarations;

mod expressions;

mod links;

mod statements;

mod tokens;

mod types;

use std::collections::{HashMap, HashSet};

pub use self::links::{LinkedNames, ModuleLink, module_links};
use self::tokens::{Kind, Token};

/// Why types cannot be removed from a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct TypeScriptError {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// The error, and the syntax to write instead.
    pub message: String,
}

/// The JavaScript of a module of TypeScript. It has the same lines, and each token in the same column, except in lines with enums,
/// namespaces and parameter properties.
pub fn strip_types(text: &str) -> Result<String, TypeScriptError> {
    let mut stripper = Stripper::new(text);
    match stripper.module() {
        Ok(()) => Ok(stripper.finish()),
        Err(rejection) => Err(located(text, rejection)),
    }
}

/// A rejection with its line and column.
fn located(text: &str, rejection: Rejection) -> TypeScriptError {
    let before = text.get(..rejection.at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|it| *it != '\n').count() + 1;
    TypeScriptError {
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(column).unwrap_or(u32::MAX),
        message: rejection.message,
    }
}

/// Deeper nesting is rejected: the parser is recursive, and people write some 20 levels.
const DEEPEST: u32 = 200;

/// The error that stops the parser.
#[derive(Debug)]
struct Rejection {
    at: usize,
    message: String,
    /// No other reading of the text can help.
    is_final: bool,
}

type Parsed<T = ()> = Result<T, Rejection>;

/// A change of the text. Later ones go over earlier ones.
#[derive(Debug, Clone, Copy)]
enum Edit {
    /// Spaces from here to there.
    Blank(usize, usize),
    /// A character of ASCII in the place of another one.
    Put(usize, u8),
}

/// An imported name.
#[derive(Debug)]
struct Imported {
    local: (usize, usize),
    /// The part that is removed if the name is not used: from its specifier to the comma after it.
    specifier: (usize, usize),
}

/// A statement that imports names.
#[derive(Debug)]
struct Import {
    statement: (usize, usize),
    names: Vec<Imported>,
    /// One of its specifiers was a type.
    had_types: bool,
}

/// A parser that keeps no tree, only what is to be blanked.
struct Stripper<'a> {
    text: &'a str,
    token: Token,
    /// The end of the token before it.
    previous: usize,
    edits: Vec<Edit>,
    /// JavaScript in place of enums, namespaces and parameter properties: before which byte, and what.
    insertions: Vec<(usize, String)>,
    /// Names that are read or written as values.
    references: Vec<(usize, usize)>,
    /// Names of declared values.
    values: HashSet<&'a str>,
    /// Names of types and interfaces.
    types: HashSet<&'a str>,
    imports: Vec<Import>,
    /// The statements that take names from another module.
    links: Vec<(usize, usize)>,
    /// Names in `export { … }` of this module: the local name, and what goes with it.
    exports: Vec<Imported>,
    /// Functions, classes, enums and namespaces of each block around, which another enum or namespace may extend.
    scopes: Vec<HashSet<&'a str>>,
    /// The namespaces around, from the outermost to the innermost.
    namespaces: Vec<&'a str>,
    /// Members of enums, by the name of the enum.
    members: HashMap<&'a str, HashSet<&'a str>>,
    /// Names that the variable declaration under way has bound.
    bound: Vec<&'a str>,
    /// Parameters of the constructor under way that are properties too.
    properties: Vec<&'a str>,
    depth: u32,
    /// `in` is no operator: the head of a `for`.
    has_no_in: bool,
    /// Within the first branch of a conditional expression, where `:` may be either that of a return type or the second branch.
    is_in_branch: bool,
    /// Within `extends` of a conditional type.
    has_no_conditional_types: bool,
    /// Positions at which there is no arrow function, so that each is tried once.
    not_arrows: HashSet<(usize, bool)>,
    /// Positions at which there are no type arguments.
    not_arguments: HashSet<usize>,
}

/// A state to go back to.
struct Mark {
    token: Token,
    previous: usize,
    edits: usize,
    insertions: usize,
    references: usize,
    scopes: usize,
    namespaces: usize,
    bound: usize,
    properties: usize,
    depth: u32,
    has_no_in: bool,
    is_in_branch: bool,
    has_no_conditional_types: bool,
}

impl<'a> Stripper<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            token: Token::default(),
            previous: 0,
            edits: Vec::new(),
            insertions: Vec::new(),
            references: Vec::new(),
            values: HashSet::new(),
            types: HashSet::new(),
            imports: Vec::new(),
            links: Vec::new(),
            exports: Vec::new(),
            scopes: vec![HashSet::new()],
            namespaces: Vec::new(),
            members: HashMap::new(),
            bound: Vec::new(),
            properties: Vec::new(),
            depth: 0,
            has_no_in: false,
            is_in_branch: false,
            has_no_conditional_types: false,
            not_arrows: HashSet::new(),
            not_arguments: HashSet::new(),
        }
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    fn word(&self) -> &'a str {
        self.slice(self.token.start, self.token.end)
    }

    fn is(&self, punctuation: &str) -> bool {
        self.token.kind == Kind::Punctuation && self.word() == punctuation
    }

    fn is_word(&self, name: &str) -> bool {
        self.token.kind == Kind::Name && self.word() == name
    }

    /// The token after the current one.
    fn peek(&self) -> Token {
        tokens::next(self.text, self.token.end).unwrap_or_default()
    }

    fn peek_is(&self, punctuation: &str) -> bool {
        let next = self.peek();
        next.kind == Kind::Punctuation && self.slice(next.start, next.end) == punctuation
    }

    fn advance(&mut self) -> Parsed {
        self.previous = self.token.end;
        self.token = tokens::next(self.text, self.token.end)?;
        Ok(())
    }

    /// Goes on after `end`, which is the end of a token.
    fn advance_from(&mut self, end: usize) -> Parsed {
        self.previous = end;
        self.token = tokens::next(self.text, end)?;
        Ok(())
    }

    /// Takes the token if it is that punctuation.
    fn eat(&mut self, punctuation: &str) -> Parsed<bool> {
        let is = self.is(punctuation);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    fn eat_word(&mut self, name: &str) -> Parsed<bool> {
        let is = self.is_word(name);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    fn expect(&mut self, punctuation: &str) -> Parsed {
        if self.eat(punctuation)? {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{punctuation}`")))
    }

    fn expect_word(&mut self, name: &str) -> Parsed {
        if self.eat_word(name)? {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{name}`")))
    }

    fn unexpected(&self, expected: &str) -> Rejection {
        let message = match self.token.kind {
            Kind::End => format!("expected {expected}, but the file ends here"),
            _ => format!("expected {expected}, found `{}`", self.word()),
        };
        Rejection {
            at: self.token.start,
            message,
            is_final: false,
        }
    }

    /// Rejects syntax that is more than types.
    fn refuse<T>(at: usize, message: &str) -> Parsed<T> {
        Err(Rejection {
            at,
            message: message.to_owned(),
            is_final: true,
        })
    }

    /// Runs a rule one level deeper.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEEPEST {
            return Self::refuse(self.token.start, "nested too deeply");
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    fn mark(&self) -> Mark {
        Mark {
            token: self.token,
            previous: self.previous,
            edits: self.edits.len(),
            insertions: self.insertions.len(),
            references: self.references.len(),
            scopes: self.scopes.len(),
            namespaces: self.namespaces.len(),
            bound: self.bound.len(),
            properties: self.properties.len(),
            depth: self.depth,
            has_no_in: self.has_no_in,
            is_in_branch: self.is_in_branch,
            has_no_conditional_types: self.has_no_conditional_types,
        }
    }

    fn go_back(&mut self, mark: &Mark) {
        self.token = mark.token;
        self.previous = mark.previous;
        self.edits.truncate(mark.edits);
        self.insertions.truncate(mark.insertions);
        self.references.truncate(mark.references);
        self.scopes.truncate(mark.scopes);
        self.namespaces.truncate(mark.namespaces);
        self.bound.truncate(mark.bound);
        self.properties.truncate(mark.properties);
        self.depth = mark.depth;
        self.has_no_in = mark.has_no_in;
        self.is_in_branch = mark.is_in_branch;
        self.has_no_conditional_types = mark.has_no_conditional_types;
    }

    /// Blanks from `start` to the end of the last token.
    fn blank_from(&mut self, start: usize) {
        if self.previous > start {
            self.edits.push(Edit::Blank(start, self.previous));
        }
    }

    /// Blanks a statement or member; a semicolon in its place keeps what is before and after it apart.
    fn blank_whole(&mut self, start: usize) {
        self.blank_from(start);
        self.edits.push(Edit::Put(start, b';'));
    }

    /// Inserts JavaScript before a byte, behind what has been inserted there.
    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.insertions.push((at, text.into()));
    }

    /// True if the statement that starts there was blanked as a whole.
    fn is_blanked(&self, start: usize) -> bool {
        matches!(self.edits.last(), Some(Edit::Put(at, b';')) if *at == start)
    }

    fn has_newline(&self, start: usize, end: usize) -> bool {
        self.slice(start, end).contains(tokens::is_newline)
    }

    /// The start of the last character before `end`.
    fn last_before(&self, end: usize) -> usize {
        let last = self.slice(0, end).char_indices().next_back();
        last.map_or(0, |(at, _)| at)
    }

    /// The text with all changes.
    fn finish(mut self) -> String {
        self.remove_unused();
        let mask = self.mask();
        self.insertions.sort_by_key(|(at, _)| *at);
        let mut insertions = self.insertions.iter().peekable();
        let mut changed = String::with_capacity(self.text.len());
        for (at, character) in self.text.char_indices() {
            while let Some((_, text)) = insertions.next_if(|(before, _)| *before <= at) {
                changed.push_str(text);
            }
            changed.push(match mask.get(at).copied().unwrap_or(KEPT) {
                KEPT => character,
                BLANK if tokens::is_newline(character) => character,
                BLANK => ' ',
                put => char::from(put),
            });
        }
        changed.extend(insertions.map(|(_, text)| text.as_str()));
        changed
    }

    /// The edits, byte by byte.
    fn mask(&self) -> Vec<u8> {
        let mut mask = vec![KEPT; self.text.len()];
        for edit in &self.edits {
            match *edit {
                Edit::Blank(start, end) => {
                    if let Some(bytes) = mask.get_mut(start..end) {
                        bytes.fill(BLANK);
                    }
                }
                Edit::Put(at, character) => {
                    if let Some(byte) = mask.get_mut(at) {
                        *byte = character;
                    }
                }
            }
        }
        mask
    }

    /// Removes exports of types, then imports whose names no value uses.
    fn remove_unused(&mut self) {
        for export in std::mem::take(&mut self.exports) {
            let name = self.slice(export.local.0, export.local.1);
            if self.types.contains(name) && !self.values.contains(name) {
                let (start, end) = export.specifier;
                self.edits.push(Edit::Blank(start, end));
            } else {
                self.references.push(export.local);
            }
        }
        let mask = self.mask();
        let is_kept = |(start, _): &&(usize, usize)| mask.get(*start) == Some(&KEPT);
        let kept = self.references.iter().filter(is_kept);
        let used: HashSet<&str> = kept.map(|(start, end)| self.slice(*start, *end)).collect();
        let mut edits = Vec::new();
        for import in &self.imports {
            let is_used = |name: &&Imported| used.contains(self.slice(name.local.0, name.local.1));
            let (start, end) = import.statement;
            if !import.names.iter().any(|name| is_used(&name)) {
                if import.had_types || !import.names.is_empty() {
                    edits.push(Edit::Blank(start, end));
                    edits.push(Edit::Put(start, b';'));
                }
                continue;
            }
            for name in import.names.iter().filter(|name| !is_used(name)) {
                edits.push(Edit::Blank(name.specifier.0, name.specifier.1));
            }
        }
        self.edits.extend(edits);
    }
}

/// A byte that stays.
const KEPT: u8 = 0;

/// A byte that becomes a space.
const BLANK: u8 = 1;

#[cfg(test)]
mod tests;
