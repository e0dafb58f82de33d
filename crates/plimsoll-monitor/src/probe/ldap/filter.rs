//! Filters of searches as texts, such as `(&(objectClass=person)(uid=ann))`.
//!
//! Source: RFC 4515 (texts), RFC 4511, section 4.5.1.7 (encoding).

use std::str::FromStr;

use crate::probe::ber::{element, tag};

/// Filters within filters.
const MOST_DEPTH: usize = 20;

/// Which entries a search finds, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LdapFilter(Vec<u8>);

/// Why a text is no filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LdapFilterError {
    /// Parentheses or operators are not as they have to be.
    #[error("is no filter such as (uid=ann) or (&(objectClass=person)(!(uid=bob))), from `{0}` on")]
    Syntax(String),
    /// A backslash without two hexadecimal digits.
    #[error("has a backslash without two hexadecimal digits behind it")]
    Escape,
    /// A matching rule, which is not supported.
    #[error("names a matching rule (`:=`), which is not supported")]
    Rule,
    /// Too many within each other.
    #[error("has more than {MOST_DEPTH} filters within each other")]
    Depth,
}

impl LdapFilter {
    /// Every entry.
    pub fn every() -> Self {
        Self(element(0x87, b"objectClass"))
    }

    pub(super) fn to_ber(&self) -> Vec<u8> {
        self.0.clone()
    }
}

impl FromStr for LdapFilter {
    type Err = LdapFilterError;

    fn from_str(text: &str) -> Result<Self, LdapFilterError> {
        let trimmed = text.trim();
        // A single comparison may go without parentheses, as for `ldapsearch`.
        let whole = if trimmed.starts_with('(') {
            trimmed.to_owned()
        } else {
            format!("({trimmed})")
        };
        let (filter, rest) = filter(&whole, 0)?;
        if rest.is_empty() {
            Ok(Self(filter))
        } else {
            Err(syntax(rest))
        }
    }
}

fn syntax(rest: &str) -> LdapFilterError {
    LdapFilterError::Syntax(rest.chars().take(20).collect())
}

/// The filter at the beginning of a text, encoded, and the rest of the text.
fn filter(text: &str, depth: usize) -> Result<(Vec<u8>, &str), LdapFilterError> {
    if depth > MOST_DEPTH {
        return Err(LdapFilterError::Depth);
    }
    let inside = text.strip_prefix('(').ok_or_else(|| syntax(text))?;
    let closed = |rest: &'_ str| {
        rest.strip_prefix(')')
            .map(str::len)
            .ok_or_else(|| syntax(rest))
    };
    let (encoded, rest) = if let Some(list) = inside.strip_prefix('&') {
        let (all, rest) = filters(list, depth)?;
        (element(0xa0, &all), rest)
    } else if let Some(list) = inside.strip_prefix('|') {
        let (any, rest) = filters(list, depth)?;
        (element(0xa1, &any), rest)
    } else if let Some(one) = inside.strip_prefix('!') {
        let (one, rest) = filter(one, depth + 1)?;
        (element(0xa2, &one), rest)
    } else {
        let end = inside.find(['(', ')']).ok_or_else(|| syntax(text))?;
        let (comparison, rest) = inside.split_at(end);
        (self::comparison(comparison)?, rest)
    };
    let left = closed(rest)?;
    Ok((encoded, rest.get(rest.len() - left..).unwrap_or_default()))
}

/// At least one filter, up to the end of the list.
fn filters(mut text: &str, depth: usize) -> Result<(Vec<u8>, &str), LdapFilterError> {
    let mut all = Vec::new();
    loop {
        let (one, rest) = filter(text, depth + 1)?;
        all.extend(one);
        text = rest;
        if !text.starts_with('(') {
            return Ok((all, text));
        }
    }
}

fn comparison(text: &str) -> Result<Vec<u8>, LdapFilterError> {
    let (left, value) = text.split_once('=').ok_or_else(|| syntax(text))?;
    if left.ends_with(':') {
        return Err(LdapFilterError::Rule);
    }
    let operators = [('>', 0xa5), ('<', 0xa6), ('~', 0xa8)];
    let found = operators
        .iter()
        .find_map(|(sign, kind)| Some((left.strip_suffix(*sign)?, *kind)));
    let (name, kind) = found.unwrap_or((left, 0xa3));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-.;_".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(syntax(text));
    }
    let attribute = element(tag::OCTETS, name.as_bytes());
    if kind == 0xa3 && value == "*" {
        return Ok(element(0x87, name.as_bytes()));
    }
    if kind == 0xa3 && value.contains('*') {
        let parts: Vec<&str> = value.split('*').collect();
        let mut pieces = Vec::new();
        for (position, part) in parts.iter().enumerate() {
            let kind = match position {
                0 => 0x80,
                last if last == parts.len() - 1 => 0x82,
                _ => 0x81,
            };
            if !part.is_empty() {
                pieces.extend(element(kind, &unescaped(part)?));
            }
        }
        let pieces = element(tag::SEQUENCE, &pieces);
        return Ok(element(0xa4, &[attribute, pieces].concat()));
    }
    let value = element(tag::OCTETS, &unescaped(value)?);
    Ok(element(kind, &[attribute, value].concat()))
}

/// The bytes of a value, in which `\2a` is the byte of that number.
fn unescaped(text: &str) -> Result<Vec<u8>, LdapFilterError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(LdapFilterError::Escape);
        };
        bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn equals(name: &str, value: &[u8]) -> Vec<u8> {
        let name = element(tag::OCTETS, name.as_bytes());
        element(0xa3, &[name, element(tag::OCTETS, value)].concat())
    }

    #[test]
    fn filters_are_encoded_by_their_operators() {
        let parse = |text: &str| text.parse::<LdapFilter>().map(|filter| filter.0);
        assert_eq!(parse("uid=ann").unwrap(), equals("uid", b"ann"));
        assert_eq!(parse("(uid=)").unwrap(), equals("uid", b""));
        assert_eq!(parse("(cn=a\\2ab\\28)").unwrap(), equals("cn", b"a*b("));
        assert_eq!(parse("(objectClass=*)").unwrap(), LdapFilter::every().0);
        let both = [equals("a", b"1"), element(0xa2, &equals("b", b"2"))].concat();
        assert_eq!(parse("(&(a=1)(!(b=2)))").unwrap(), element(0xa0, &both));
        let parts = [
            element(0x80, b"a"),
            element(0x81, b"b"),
            element(0x82, b"c"),
        ]
        .concat();
        let parts = [element(tag::OCTETS, b"cn"), element(tag::SEQUENCE, &parts)].concat();
        assert_eq!(parse("(cn=a*b*c)").unwrap(), element(0xa4, &parts));
        let least = [element(tag::OCTETS, b"age"), element(tag::OCTETS, b"7")].concat();
        assert_eq!(parse("(age>=7)").unwrap(), element(0xa5, &least));
        assert_eq!(parse("(cn:dn:=x)"), Err(LdapFilterError::Rule));
        assert_eq!(parse("(cn=\\4)"), Err(LdapFilterError::Escape));
        assert_eq!(
            parse(&format!("{}(a=b){}", "(!".repeat(30), ")".repeat(30))),
            Err(LdapFilterError::Depth)
        );
        for wrong in [
            "", "()", "(a)", "(a=b", "(a=b))", "(&)", "(&(a=b)", "(!a=b)", "((a=b))", "(=b)",
            "(a b=c)",
        ] {
            assert!(
                matches!(parse(wrong), Err(LdapFilterError::Syntax(_))),
                "{wrong}: {:?}",
                parse(wrong)
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_filter_or_an_error(text in "[()&|!=*~<>:a\\\\0-9ä]{0,40}") {
            text.parse::<LdapFilter>().ok();
        }
    }
}
