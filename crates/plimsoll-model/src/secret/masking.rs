//! Removes secrets from text that is shown or saved: command lines, URLs, header fields, bodies, plans.
//!
//! Every command, operand, notice and document goes through these functions, so that a result file can be
//! shared. Masking works on names and positions: the value of a name that [`is_secret_name`] knows, the
//! user information of a URL, the argument of a flag that takes credentials. A secret without such a mark
//! (a raw token as a body) cannot be recognised.

use std::borrow::Cow;

/// Replaces a secret.
pub const MASK: &str = "…";

/// A name that contains one of these is secret, compared in lower case without `-`, `_` and spaces.
const SECRET_PARTS: [&str; 14] = [
    "authorization",
    "cookie",
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "sessionid",
    "signature",
    "bearer",
];

/// Secret only as a whole: as parts they occur in ordinary words (`author`, `design`, `beside`).
const SECRET_NAMES: [&str; 6] = ["auth", "pass", "pwd", "jwt", "sig", "sid"];

/// Flags of plimsoll, curl, wget, httpie and siege whose argument is a credential as a whole.
const CREDENTIAL_FLAGS: [&str; 14] = [
    "--basic-auth",
    "--bearer",
    "--digest",
    "--user",
    "--proxy-user",
    "--oauth2-bearer",
    "--auth",
    "--token",
    "--password",
    "--pass",
    "--http-password",
    "--cookie",
    "--api-key",
    "--secret",
];

/// Short flags that take `USER:PASSWORD` in curl, oha, hey and ab. Others use the same letters for something
/// else, so only an argument with a colon counts.
const SHORT_CREDENTIAL_FLAGS: [&str; 4] = ["-a", "-u", "-U", "-A"];

/// Parts of names that are secret in header fields alone: in other places they are ordinary words.
const SECRET_FIELD_PARTS: [&str; 3] = ["auth", "key", "session"];

/// Whether a header field, query parameter, form field, JSON key or variable called `name` holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(|it| !matches!(it, '-' | '_' | ' '))
        .flat_map(char::to_lowercase)
        .collect();
    SECRET_PARTS.iter().any(|part| plain.contains(part)) || SECRET_NAMES.contains(&plain.as_str())
}

/// Whether a header field called `name` holds a secret: what is masked where it is shown, and not sent to another origin.
pub fn is_secret_field(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_secret_name(name) || SECRET_FIELD_PARTS.iter().any(|part| lower.contains(part))
}

/// The arguments of a program with [`MASK`] in place of secrets.
///
/// - `arguments`: as the program received them, unquoted, the program's name included or not.
pub fn masked_arguments(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut previous = String::new();
    let mut masked = Vec::new();
    for argument in arguments {
        masked.push(masked_word(&previous, &argument).into_owned());
        previous = argument;
    }
    masked
}

/// A command line as a shell reads it with [`MASK`] in place of secrets; spaces and quotes are kept.
pub fn masked_command_line(line: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    let mut previous = "";
    for piece in pieces(line) {
        if piece.starts_with(char::is_whitespace) {
            masked.push_str(piece);
            continue;
        }
        masked.push_str(&masked_word(previous, piece));
        previous = piece;
    }
    masked
}

/// Any text with [`MASK`] in place of secrets: a URL, a header, a form, JSON, TOML, a message.
pub fn masked_text(text: &str) -> Cow<'_, str> {
    masked_with(text, MASK)
}

/// The same with another mask.
pub fn masked_with<'t>(text: &'t str, mask: &str) -> Cow<'t, str> {
    let mut masked = String::new();
    let mut copied = 0;
    for Secret { start, end, .. } in secrets(text) {
        masked.push_str(text.get(copied..start).unwrap_or_default());
        masked.push_str(mask);
        copied = end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    masked.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(masked)
}

/// The secrets of a text, which [`masked_text`] would replace, in order.
pub fn secret_values(text: &str) -> impl Iterator<Item = &str> {
    secrets(text).filter_map(|secret| text.get(secret.start..secret.end))
}

/// A message with [`MASK`] in place of secrets in its URLs; all other text stays.
pub fn masked_urls(message: &str) -> Cow<'_, str> {
    let ends = |it: char| {
        it.is_whitespace() || matches!(it, '"' | '\'' | '`' | '<' | '>' | '\\') || it.is_control()
    };
    let mut masked = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = message.get(at..).and_then(|rest| rest.find("://")) {
        let begin = at + found;
        let rest = message.get(begin..).unwrap_or_default();
        let end = begin + rest.find(ends).unwrap_or(rest.len());
        let url = message.get(begin..end).unwrap_or_default();
        if let Cow::Owned(url) = masked_text(url) {
            masked.push_str(message.get(copied..begin).unwrap_or_default());
            masked.push_str(&url);
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return Cow::Borrowed(message);
    }
    masked.push_str(message.get(copied..).unwrap_or_default());
    Cow::Owned(masked)
}

/// A mask that stands where the original has no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no secret of the name `{0}` for its mask")]
pub struct MaskWithoutSecret(
    /// Its name; that of the user information of a URL is empty.
    pub String,
);

/// Puts the secrets of `original` in the places of masks in `text`: each in that of the same name, in their order.
///
/// Fails for a mask that has no secret in its place.
pub fn unmasked<'t>(
    text: &'t str,
    mask: &str,
    original: &str,
) -> Result<Cow<'t, str>, MaskWithoutSecret> {
    let name_of = |text: &str, secret: &Secret| {
        let (start, end) = secret.name;
        text.get(start..end).unwrap_or_default().to_owned()
    };
    let mut known: Vec<_> = secrets(original)
        .map(|secret| {
            let value = original.get(secret.start..secret.end).unwrap_or_default();
            Some((name_of(original, &secret), value))
        })
        .collect();
    let mut whole = String::new();
    let mut copied = 0;
    // A mask that stands elsewhere than in the place of a whole secret would otherwise become a value.
    let is_plain = |piece: &str| !piece.contains(mask);
    for secret in secrets(text) {
        let (start, end) = (secret.start, secret.end);
        let name = name_of(text, &secret);
        let mut same = known
            .iter_mut()
            .filter(|one| one.as_ref().is_some_and(|(known, _)| *known == name));
        let found = same.next().and_then(Option::take);
        if text.get(start..end) != Some(mask) {
            continue;
        }
        let Some((_, value)) = found else {
            return Err(MaskWithoutSecret(name));
        };
        let before = text.get(copied..start).unwrap_or_default();
        if !is_plain(before) {
            return Err(MaskWithoutSecret(String::new()));
        }
        whole.push_str(before);
        whole.push_str(value);
        copied = end;
    }
    let rest = text.get(copied..).unwrap_or_default();
    if !is_plain(rest) {
        return Err(MaskWithoutSecret(String::new()));
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(text));
    }
    whole.push_str(rest);
    Ok(Cow::Owned(whole))
}

/// Where a secret stands in a text, in bytes.
struct Secret {
    start: usize,
    end: usize,
    /// Of the name that marks it; empty for the user information of a URL.
    name: (usize, usize),
}

/// The secrets of a text, in order.
fn secrets(text: &str) -> impl Iterator<Item = Secret> {
    let mut quotes = OpenQuotes::default();
    let (mut at, mut last) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let separator = at + rest.find([':', '='])?;
            at = separator + 1;
            quotes.read_to(text, separator);
            let secret = user_information(text, separator)
                .or_else(|| value_of_secret(text, separator, &quotes.open));
            let Some(secret) = secret else { continue };
            if secret.start < last || secret.start == secret.end {
                continue;
            }
            last = secret.end;
            at = at.max(secret.end);
            return Some(secret);
        }
    })
}

/// One word of a command line, which may be quoted.
fn masked_word<'a>(previous: &str, word: &'a str) -> Cow<'a, str> {
    if let Some((quote, inner)) = quoted(word) {
        let masked = masked_word(previous, inner);
        return Cow::Owned(format!("{quote}{masked}{quote}"));
    }
    let takes_credentials = CREDENTIAL_FLAGS.contains(&previous)
        || (SHORT_CREDENTIAL_FLAGS.contains(&previous) && word.contains(':'));
    if takes_credentials && !word.starts_with('-') && !word.contains("://") {
        return Cow::Borrowed(MASK);
    }
    let flag_end = match word.as_bytes() {
        [b'-', b'-', ..] => word.find('=').map(|at| at + 1),
        [b'-', letter, _, ..] if letter.is_ascii_alphabetic() => Some(2),
        _ => None,
    };
    let Some((flag, value)) = flag_end.and_then(|end| word.split_at_checked(end)) else {
        return masked_value(word);
    };
    let name = flag.trim_end_matches('=');
    let is_path = name.ends_with("-file") || name.ends_with("-path");
    let is_credential = CREDENTIAL_FLAGS.contains(&name)
        || (SHORT_CREDENTIAL_FLAGS.contains(&name)
            && value.contains(':')
            && !value.contains("://"))
        || (name.starts_with("--") && !is_path && is_secret_name(name));
    if is_credential {
        return Cow::Owned(format!("{flag}{MASK}"));
    }
    let (equals, value) = match value.strip_prefix('=') {
        Some(value) => ("=", value),
        None => ("", value),
    };
    match quoted(value) {
        Some((quote, inner)) => {
            let masked = masked_value(inner);
            Cow::Owned(format!("{flag}{equals}{quote}{masked}{quote}"))
        }
        None => Cow::Owned(format!("{flag}{equals}{}", masked_value(value))),
    }
}

/// The argument of a flag or a positional argument: `NAME: VALUE` and `NAME=VALUE` are masked to their end,
/// spaces included.
fn masked_value(value: &str) -> Cow<'_, str> {
    let Some(separator) = value.find([':', '=']) else {
        return Cow::Borrowed(value);
    };
    let (name, rest) = value.split_at(separator);
    let is_form = rest.starts_with('=') && rest.contains('&');
    if is_form || rest.starts_with("://") || !name.bytes().all(is_name) || !is_secret_name(name) {
        let masked = masked_text(value);
        // A whole command line as one argument: the operands of `compare`.
        // One whose quotes are not closed is a single piece: splitting it again would never end.
        let is_command_line = masked.contains(" -") && pieces(&masked).nth(1).is_some();
        return if is_command_line {
            Cow::Owned(masked_command_line(&masked))
        } else {
            masked
        };
    }
    let separator = rest.get(..1).unwrap_or_default();
    match rest.get(1..) {
        None | Some("" | "true" | "false") => Cow::Borrowed(value),
        Some(_) => Cow::Owned(format!("{name}{separator}{MASK}")),
    }
}

/// The user information of a URL whose `://` begins at `separator`, without its `@`.
fn user_information(text: &str, separator: usize) -> Option<Secret> {
    let authority = text.get(separator..)?.strip_prefix("://")?;
    let end = authority
        .find(|it: char| {
            matches!(it, '/' | '?' | '#' | '"' | '\'' | '<' | '>') || it.is_whitespace()
        })
        .unwrap_or(authority.len());
    let at = authority.get(..end)?.rfind('@')?;
    Some(Secret {
        start: separator + 3,
        end: separator + 3 + at,
        name: (separator, separator),
    })
}

/// The value behind the `:` or `=` at `separator`, if the name before it is secret.
///
/// - `quotes`: those that are open at `separator`.
fn value_of_secret(text: &str, separator: usize, quotes: &[char]) -> Option<Secret> {
    let before = text.get(..separator)?;
    let trimmed = before.trim_end_matches([' ', '\t']);
    let unquoted = trimmed.strip_suffix(['"', '\'']).unwrap_or(trimmed);
    let is_quoted = unquoted.len() < trimmed.len();
    let length = unquoted.bytes().rev().take_while(|&it| is_name(it)).count();
    let name = unquoted.get(unquoted.len() - length..)?;
    if name.is_empty() || !is_secret_name(name) {
        return None;
    }
    let place = (unquoted.len() - length, unquoted.len());
    let after = text.get(separator + 1..)?;
    let value = after.trim_start_matches([' ', '\t']);
    let start = text.len() - value.len();
    let length = if let Some(quote) = value.chars().next().filter(|it| matches!(it, '"' | '\'')) {
        return Some(Secret {
            start: start + 1,
            end: start + 1 + to_quote(value.get(1..)?, quote),
            name: place,
        });
    } else if is_quoted || text.as_bytes().get(separator) == Some(&b'=') {
        // Text directly behind a closing bracket belongs to the value: `password=[a]b`.
        let bracketed = if value.starts_with(['{', '[']) {
            to_bracket(value)
        } else {
            0
        };
        let rest = value.get(bracketed..)?;
        let ends = |(at, it): (usize, char)| match it {
            // Within a value where it goes on behind the bracket: `password=a]b`.
            '}' | ']' => rest
                .get(at + 1..)
                .is_none_or(|after| !after.starts_with(char::is_alphanumeric)),
            it => it.is_whitespace() || matches!(it, '&' | '#' | ';' | ',' | '"' | '\''),
        };
        let end = rest.char_indices().find(|&it| ends(it));
        let length = end.map_or(rest.len(), |(at, _)| at);
        bracketed + length
    } else {
        // A header field: to the end of its line or of the quotes around it.
        value
            .find(|it: char| it == '\n' || it == '\r' || quotes.contains(&it))
            .unwrap_or(value.len())
    };
    let value = value.get(..length)?;
    (!matches!(value, "true" | "false" | "null")).then_some(Secret {
        start,
        end: start + length,
        name: place,
    })
}

/// Bytes up to the quote that ends a literal.
fn to_quote(literal: &str, quote: char) -> usize {
    let mut is_escaped = false;
    literal
        .find(|it: char| {
            let ends = it == quote && !is_escaped;
            is_escaped = it == '\\' && !is_escaped;
            ends
        })
        .unwrap_or(literal.len())
}

/// Bytes of an array or object, brackets included; brackets within strings do not count.
fn to_bracket(value: &str) -> usize {
    let mut depth = 0_usize;
    let mut is_in_string = false;
    let mut is_escaped = false;
    for (at, it) in value.char_indices() {
        match it {
            '"' if !is_escaped => is_in_string = !is_in_string,
            '{' | '[' if !is_in_string => depth += 1,
            '}' | ']' if !is_in_string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        is_escaped = it == '\\' && !is_escaped;
    }
    value.len()
}

/// The quotes that are open at a place of a text; a line break closes all. Read once from left to right, so
/// that many names in one line cost no more than their length.
#[derive(Default)]
struct OpenQuotes {
    read: usize,
    /// Outermost first.
    open: Vec<char>,
}

impl OpenQuotes {
    fn read_to(&mut self, text: &str, end: usize) {
        for it in text.get(self.read..end).unwrap_or_default().chars() {
            match self.open.iter().position(|&quote| quote == it) {
                Some(at) => self.open.truncate(at),
                None if matches!(it, '"' | '\'') => self.open.push(it),
                None if it == '\n' => self.open.clear(),
                None => {}
            }
        }
        self.read = end;
    }
}

fn quoted(word: &str) -> Option<(char, &str)> {
    let quote = word.chars().next().filter(|it| matches!(it, '"' | '\''))?;
    let inner = word.get(1..)?.strip_suffix(quote)?;
    (!inner.contains(quote)).then_some((quote, inner))
}

/// The words of a command line and the spaces between them, in order; quotes stay in their words.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let mut quote = None;
        let end = rest
            .find(|it: char| {
                if first.is_whitespace() {
                    return !it.is_whitespace();
                }
                match quote {
                    Some(open) if it == open => quote = None,
                    Some(_) => {}
                    None if matches!(it, '"' | '\'') => quote = Some(it),
                    None => return it.is_whitespace(),
                }
                false
            })
            .unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests;
