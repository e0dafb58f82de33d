//! Short links: lines of an alias and the URL that it stands for.

use std::collections::HashMap;

use crate::Remark;
use crate::site::{Lenient, without_mark};

/// One short link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// Counted from 1.
    pub line: usize,
    /// A path without slashes at either end.
    pub name: String,
    /// Absolute, as it may stand in a `location`.
    pub url: String,
}

/// Characters that a URL may have.
const MOST_IN_URL: usize = 8000;

/// Reads `alias URL` lines; empty ones and those that begin with `#` are passed over.
///
/// Of those that name the same alias the last one holds.
pub fn parse_aliases(text: &str) -> Lenient<Alias> {
    let mut parsed = Lenient::default();
    for (line, number) in without_mark(text).lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        parsed.keep_parsed(number, alias(line, number));
    }
    let mut last = HashMap::new();
    for alias in &parsed.entries {
        if let Some(before) = last.insert(alias.name.clone(), alias.line) {
            let message = format!("`{}` is given again in line {}", alias.name, alias.line);
            parsed.remarks.push(Remark::line(before, message));
        }
    }
    parsed
        .entries
        .retain(|alias| last.get(&alias.name) == Some(&alias.line));
    parsed
}

/// Why a line is no alias.
#[derive(Debug, thiserror::Error)]
enum AliasError {
    #[error("is not an alias and a URL")]
    Words,
    #[error("the alias is empty")]
    Empty,
    #[error("`{0}` is not a path")]
    NotAPath(String),
    #[error("`{0}` is not a URL such as https://example.org/")]
    NotAUrl(String),
    #[error("the URL has more than {MOST_IN_URL} characters")]
    TooLong,
    #[error("the URL has a character that must be written as %XX")]
    Character,
}

fn alias(line: &str, number: usize) -> Result<Alias, AliasError> {
    let mut words = line.split_whitespace();
    let (Some(name), Some(url), None) = (words.next(), words.next(), words.next()) else {
        return Err(AliasError::Words);
    };
    let name = name.trim_matches('/');
    if name.is_empty() {
        return Err(AliasError::Empty);
    }
    if name.contains(['?', '#', '\\', '\0']) {
        return Err(AliasError::NotAPath(name.to_owned()));
    }
    let is_absolute = url
        .split_once("://")
        .filter(|(scheme, _)| matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https"))
        .is_some_and(|(_, rest)| !rest.is_empty() && !rest.starts_with(['/', '?', '#']));
    if !is_absolute {
        return Err(AliasError::NotAUrl(url.to_owned()));
    }
    if url.len() > MOST_IN_URL {
        return Err(AliasError::TooLong);
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(AliasError::Character);
    }
    Ok(Alias {
        line: number,
        name: name.to_owned(),
        url: url.to_owned(),
    })
}
