//! Files that say how a site answers: short links, `_redirects`, `_headers`.
//!
//! People edit these by hand and a site goes on being served, so a line that is wrong is reported with its number and
//! the others are kept.

mod aliases;

mod headers;

mod redirects;

use std::fmt;
use std::str::FromStr;

use crate::Remark;

pub use self::aliases::{Alias, parse_aliases};
pub use self::headers::{HeaderRule, parse_header_rules};
pub use self::redirects::{RedirectRule, parse_redirects};

/// The rules of a file, and the lines that are not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lenient<T> {
    /// In the order of the file.
    pub entries: Vec<T>,
    /// Each with its line.
    pub remarks: Vec<Remark>,
}

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            remarks: Vec::new(),
        }
    }
}

impl<T> Lenient<T> {
    fn keep_parsed<E: fmt::Display>(&mut self, line: usize, parsed: Result<T, E>) {
        match parsed {
            Ok(entry) => self.entries.push(entry),
            Err(error) => self.remarks.push(Remark::line(line, error.to_string())),
        }
    }
}

/// Whose rules `_redirects` and `_headers` follow; they look alike and mean different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Netlify: 301 unless a rule says otherwise, files come before rules unless these are forced.
    Netlify,
    /// Cloudflare Pages and Workers: 302 unless a rule says otherwise, rules come before files.
    Cloudflare,
}

/// A name that is no dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no dialect; there are netlify and cloudflare")]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        match name {
            "netlify" => Ok(Self::Netlify),
            "cloudflare" => Ok(Self::Cloudflare),
            other => Err(UnknownDialect(other.to_owned())),
        }
    }
}

/// A text without the byte order mark that some editors put first.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Characters that one line may have, as Cloudflare has it.
const MOST_IN_LINE: usize = 2000;

/// Takes scheme and host off a URL: the host in lower case, and the path with its slash.
fn split_host(url: &str) -> Option<(String, String)> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    let at = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(at);
    let path = if path.is_empty() { "/" } else { path };
    (!host.is_empty()).then(|| (host.to_ascii_lowercase(), path.to_owned()))
}

#[cfg(test)]
mod tests;
