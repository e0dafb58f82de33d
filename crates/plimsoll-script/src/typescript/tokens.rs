//! Tokens of JavaScript and TypeScript.
//!
//! Whether `/` begins a regular expression, and where a template goes on, is known to the parser only: it takes these up by
//! [`regular_expression`] and [`template_part`]. `>` is always one token, as it may end type arguments.

use super::{Parsed, Rejection};

/// The kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// The end of the text.
    #[default]
    End,
    /// A name or keyword.
    Name,
    /// A name with `#`.
    Private,
    Number,
    /// In quotes.
    Text,
    /// The backtick that begins one.
    Template,
    Punctuation,
}

/// A token by its place.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// A line ends between it and the token before it.
    pub(super) is_first_of_line: bool,
}

/// Longer ones before those that they begin with.
const PUNCTUATION: [&str; 53] = [
    "<<=", "...", "===", "!==", "**=", "&&=", "||=", "??=", "=>", "==", "!=", "**", "&&", "||",
    "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", "<=", "{", "}",
    "(", ")", "[", "]", ".", ";", ",", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "^", "!",
    "~", "?", ":", "@",
];

pub(super) fn is_newline(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn is_name_start(character: char) -> bool {
    character.is_ascii_alphabetic()
        || matches!(character, '_' | '$' | '\\')
        || (!character.is_ascii() && character.is_alphabetic())
}

fn is_name_part(character: char) -> bool {
    is_name_start(character)
        || character.is_ascii_digit()
        || matches!(character, '\u{200c}' | '\u{200d}')
        || (!character.is_ascii() && !character.is_whitespace() && !is_newline(character))
}

fn rest(text: &str, from: usize) -> &str {
    text.get(from..).unwrap_or_default()
}

fn unterminated<T>(at: usize, what: &str) -> Parsed<T> {
    Err(Rejection {
        at,
        message: format!("{what} does not end"),
        is_final: false,
    })
}

/// The token after `from`.
pub(super) fn next(text: &str, from: usize) -> Parsed<Token> {
    let (start, is_first_of_line) = skip(text, from)?;
    let after = rest(text, start);
    let Some(first) = after.chars().next() else {
        return Ok(Token {
            kind: Kind::End,
            start,
            end: start,
            is_first_of_line: true,
        });
    };
    let second = after.chars().nth(1);
    let (kind, length) = match first {
        '"' | '\'' => (Kind::Text, quoted(after, first, start)?),
        '`' => (Kind::Template, 1),
        '#' if second.is_some_and(is_name_start) => (Kind::Private, 1 + name(rest(after, 1))),
        _ if is_name_start(first) => (Kind::Name, name(after)),
        '0'..='9' => (Kind::Number, number(after)),
        '.' if second.is_some_and(|it| it.is_ascii_digit()) => (Kind::Number, number(after)),
        _ => match punctuation(after) {
            Some(length) => (Kind::Punctuation, length),
            None => {
                return Err(Rejection {
                    at: start,
                    message: format!("unexpected character {first:?}"),
                    is_final: false,
                });
            }
        },
    };
    Ok(Token {
        kind,
        start,
        end: start + length,
        is_first_of_line,
    })
}

fn punctuation(after: &str) -> Option<usize> {
    let found = PUNCTUATION.iter().find(|it| after.starts_with(**it))?;
    // `a?.5:1` is a conditional expression.
    let digit = after.chars().nth(2).is_some_and(|it| it.is_ascii_digit());
    Some(if *found == "?." && digit {
        1
    } else {
        found.len()
    })
}

/// Skips spaces and comments; also returns whether a line ends there.
fn skip(text: &str, from: usize) -> Parsed<(usize, bool)> {
    let mut at = from;
    let mut has_newline = from == 0;
    loop {
        let after = rest(text, at);
        let Some(first) = after.chars().next() else {
            return Ok((at, has_newline));
        };
        if is_newline(first) {
            has_newline = true;
            at += first.len_utf8();
        } else if first.is_whitespace() || first == '\u{feff}' {
            at += first.len_utf8();
        } else if after.starts_with("//") || (at == 0 && after.starts_with("#!")) {
            at += after.find(is_newline).unwrap_or(after.len());
        } else if after.starts_with("/*") {
            let Some(end) = rest(after, 2).find("*/") else {
                return unterminated(at, "the comment");
            };
            has_newline |= after
                .get(..end + 2)
                .is_some_and(|it| it.contains(is_newline));
            at += end + 4;
        } else {
            return Ok((at, has_newline));
        }
    }
}

/// Bytes of a name, with escapes such as `\u{61}`.
fn name(after: &str) -> usize {
    let mut is_escape = false;
    for (at, character) in after.char_indices() {
        match character {
            '{' if is_escape && after.get(..at).is_some_and(|it| it.ends_with("\\u")) => {}
            '}' if is_escape => is_escape = false,
            '\\' => is_escape = true,
            _ if is_name_part(character) => {}
            _ => return at,
        }
        if is_escape && !matches!(character, '\\' | 'u' | '{') && !character.is_ascii_hexdigit() {
            is_escape = false;
        }
    }
    after.len()
}

fn number(after: &str) -> usize {
    let is_decimal = !after.starts_with("0x") && !after.starts_with("0X");
    let mut previous = ' ';
    for (at, character) in after.char_indices() {
        let is_exponent = is_decimal && matches!(previous, 'e' | 'E');
        let is_part = character.is_ascii_alphanumeric()
            || matches!(character, '.' | '_')
            || (matches!(character, '+' | '-') && is_exponent);
        // `1..toString()` and `1.5.toFixed()`: one point only.
        let is_second_point = character == '.'
            && after
                .get(..at)
                .is_some_and(|it| it.contains(['.', 'e', 'x']));
        if !is_part || is_second_point {
            return at;
        }
        previous = character;
    }
    after.len()
}

fn quoted(after: &str, quote: char, start: usize) -> Parsed<usize> {
    let mut characters = after.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        if character == quote {
            return Ok(at + 1);
        }
        match character {
            '\\' => {
                characters.next();
            }
            '\n' | '\r' => break,
            _ => {}
        }
    }
    unterminated(start, "the string")
}

/// The end of a regular expression that begins at `start`.
pub(super) fn regular_expression(text: &str, start: usize) -> Parsed<usize> {
    let mut is_in_class = false;
    let mut characters = rest(text, start).char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '/' if !is_in_class => {
                let end = start + at + 1;
                let flags = rest(text, end).find(|it| !is_name_part(it));
                return Ok(flags.map_or(text.len(), |length| end + length));
            }
            _ if is_newline(character) => break,
            _ => {}
        }
    }
    unterminated(start, "the regular expression")
}

/// The end of a template part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemplatePart {
    /// With the template, which ends here.
    Last(usize),
    /// With `${`, after which an expression begins.
    Substitution(usize),
}

/// The part of a template that begins at `start`, after the backtick or the brace.
pub(super) fn template_part(text: &str, start: usize) -> Parsed<TemplatePart> {
    let mut characters = rest(text, start).char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '`' => return Ok(TemplatePart::Last(start + at + 1)),
            '$' if characters.peek().is_some_and(|(_, next)| *next == '{') => {
                return Ok(TemplatePart::Substitution(start + at + 2));
            }
            _ => {}
        }
    }
    unterminated(start, "the template")
}
