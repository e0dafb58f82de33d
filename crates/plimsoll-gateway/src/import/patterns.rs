//! What a `location` matches, by its modifier and its path or expression.

use super::nginx::Directive;

/// An expression that the engine of `plimsoll up` does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a regular expression here (no look-around, no back-references)")]
pub(super) struct UnknownExpression(pub(super) String);

/// How a location matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Exact,
    /// `^~`
    FirstPrefix,
    Prefix,
    Regex,
    /// `~*`
    RegexAnyCase,
}

/// How a location matches, and its path or expression.
pub(super) fn path_of(location: &Directive) -> Option<(Kind, &str)> {
    match location.arguments.as_slice() {
        [pattern] => Some(split_modifier(pattern)),
        [modifier, pattern] => Some((kind_of(modifier)?, pattern)),
        _ => None,
    }
}

fn kind_of(modifier: &str) -> Option<Kind> {
    Some(match modifier {
        "=" => Kind::Exact,
        "^~" => Kind::FirstPrefix,
        "~" => Kind::Regex,
        "~*" => Kind::RegexAnyCase,
        _ => return None,
    })
}

/// The modifier may stand before the path without a blank.
fn split_modifier(text: &str) -> (Kind, &str) {
    for modifier in ["=", "^~", "~*", "~"] {
        if let (Some(pattern), Some(kind)) = (text.strip_prefix(modifier), kind_of(modifier)) {
            return (kind, pattern);
        }
    }
    (Kind::Prefix, text)
}

/// A path of nginx, which stands for decoded ones, as a route has it.
pub(super) fn as_path(path: &str) -> String {
    let mut text = String::new();
    for character in path.chars() {
        match character {
            '%' => text.push_str("%25"),
            '?' => text.push_str("%3F"),
            '#' => text.push_str("%23"),
            it => text.push(it),
        }
    }
    text
}

/// A path as an expression.
pub(super) fn exact_expression(path: &str) -> String {
    format!("(?-i:{})", regex::escape(path))
}

/// An expression without its look-around: it matches at least what the whole one does.
pub(super) fn without_look_around(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let is_look = ["(?=", "(?!", "(?<=", "(?<!"]
            .iter()
            .any(|it| rest.starts_with(it));
        if is_look {
            rest = behind_group(rest);
            continue;
        }
        let mut length = character.len_utf8();
        if character == '\\' {
            length += rest.chars().nth(1).map_or(0, char::len_utf8);
        }
        let (taken, after) = rest.split_at(length);
        left.push_str(taken);
        rest = after;
    }
    left
}

/// What follows the group at the start of a text.
fn behind_group(text: &str) -> &str {
    let mut depth = 0_usize;
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return text.get(at + 1..).unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    ""
}

/// The characters that all texts of an expression begin with.
pub(super) fn literal_start(expression: &str) -> String {
    let mut literal = String::new();
    let mut characters = expression.chars().peekable();
    // Of several branches each may begin in its own way.
    if expression.contains('|') && branches(expression).len() > 1 {
        return literal;
    }
    while let Some(character) = characters.next() {
        let character = match character {
            '\\' => match characters.next() {
                Some(escaped) if !escaped.is_alphanumeric() => escaped,
                _ => break,
            },
            it if "^$.|?*+()[]{}".contains(it) => break,
            it => it,
        };
        // It may be there never, or often.
        if characters.peek().is_some_and(|it| "?*{".contains(*it)) {
            break;
        }
        literal.push(character);
    }
    literal
}

/// The branches of an expression, which are parted by a `|` that is in no group and no class.
pub(super) fn branches(expression: &str) -> Vec<&str> {
    let mut branches = Vec::new();
    let (mut depth, mut begun) = (0_usize, 0);
    // Where the characters of the class begin that this is in: a `]` there is one of them.
    let mut class = None;
    let mut characters = expression.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match (class, character) {
            (_, '\\') => _ = characters.next(),
            (None, '[') => {
                let is_negated = characters.next_if(|(_, it)| *it == '^').is_some();
                class = Some(at + 1 + usize::from(is_negated));
            }
            (Some(first), ']') if at > first => class = None,
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, '|') if depth == 0 => {
                branches.push(expression.get(begun..at).unwrap_or_default());
                begun = at + 1;
            }
            _ => {}
        }
    }
    branches.push(expression.get(begun..).unwrap_or_default());
    branches
}
