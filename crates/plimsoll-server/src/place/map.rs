//! Maps: values by the text of a template, as `[map.NAME]` has them.

mod murmur;

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;
use regex::bytes::Regex;

use super::{Moment, Place, Source, Template, Values};

/// Gives a text for another one.
///
/// An exact value counts before networks, prefixes and suffixes, of which the longest does, and those before expressions,
/// of which the first does. One look-up takes as long with a hundred thousand exact values as with one.
#[derive(Debug)]
pub(crate) struct Map {
    /// What is looked up.
    pub(crate) key: Template,
    /// Letters are compared whatever their case, but for expressions, which say so themselves.
    pub(crate) ignores_case: bool,
    /// By the whole text.
    pub(crate) exact: HashMap<Box<[u8]>, Template>,
    /// By networks that have the address which the text is, the smallest first.
    pub(crate) networks: Vec<(IpNet, Template)>,
    /// By the start of the text.
    pub(crate) prefixes: Affixes,
    /// By its end.
    pub(crate) suffixes: Affixes,
    /// By expressions, whose groups may stand in the value.
    pub(crate) expressions: Vec<(Regex, Template)>,
    /// By shares of all texts: each with the end of its part of the hashes, from 0 to 2³².
    pub(crate) shares: Vec<(u64, Template)>,
    /// For all others.
    pub(crate) default: Template,
}

/// Values by a start or an end.
#[derive(Debug, Default)]
pub(crate) struct Affixes {
    /// Their lengths, the greatest first.
    lengths: Vec<usize>,
    values: HashMap<Box<[u8]>, Template>,
}

impl Affixes {
    pub(crate) fn new(values: HashMap<Box<[u8]>, Template>) -> Self {
        let mut lengths: Vec<_> = values.keys().map(|it| it.len()).collect();
        lengths.sort_unstable_by(|one, other| other.cmp(one));
        lengths.dedup();
        Self { lengths, values }
    }

    fn find<'t>(
        &self,
        text: &'t [u8],
        part: impl Fn(&'t [u8], usize) -> Option<&'t [u8]>,
    ) -> Option<&Template> {
        let mut lengths = self.lengths.iter();
        lengths.find_map(|length| self.values.get(part(text, *length)?))
    }
}

/// Maps are compared by what they are, not by what they have: each name has one.
impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Map {}

impl Map {
    /// Appends the value for what `values` are.
    pub(crate) fn write(&self, values: &dyn Values, out: &mut Vec<u8>) {
        let mut text = Vec::new();
        self.key.write(values, None, &mut text);
        let found = if self.ignores_case {
            self.by_text(&text.to_ascii_lowercase())
        } else {
            self.by_text(&text)
        };
        if let Some(value) = found {
            return value.write(values, None, out);
        }
        for (expression, value) in &self.expressions {
            if let Some(groups) = expression.captures(&text) {
                return value.write(values, Some(&groups), out);
            }
        }
        let by_share = self.by_share(&text).unwrap_or(&self.default);
        by_share.write(values, None, out);
    }

    /// The same text always has the same share.
    fn by_share(&self, text: &[u8]) -> Option<&Template> {
        if self.shares.is_empty() {
            return None;
        }
        let hash = u64::from(murmur::hash(text));
        let found = self.shares.iter().find(|(end, _)| hash < *end);
        found.map(|(_, value)| value)
    }

    fn by_text(&self, text: &[u8]) -> Option<&Template> {
        self.exact
            .get(text)
            .or_else(|| self.by_network(text))
            .or_else(|| self.prefixes.find(text, |text, length| text.get(..length)))
            .or_else(|| {
                self.suffixes.find(text, |text, length| {
                    text.get(text.len().checked_sub(length)?..)
                })
            })
    }

    fn by_network(&self, text: &[u8]) -> Option<&Template> {
        if self.networks.is_empty() {
            return None;
        }
        let address: IpAddr = std::str::from_utf8(text).ok()?.parse().ok()?;
        let address = address.to_canonical();
        let mut networks = self.networks.iter();
        let found = networks.find(|(network, _)| network.contains(&address));
        found.map(|(_, value)| value)
    }

    /// All its templates, that of the key first.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        std::iter::once(&self.key).chain(self.values())
    }

    fn values(&self) -> impl Iterator<Item = &Template> {
        let networks = self.networks.iter().map(|(_, value)| value);
        let expressions = self.expressions.iter().map(|(_, value)| value);
        self.exact
            .values()
            .chain(networks)
            .chain(self.prefixes.values.values())
            .chain(self.suffixes.values.values())
            .chain(expressions)
            .chain(self.shares.iter().map(|(_, value)| value))
            .chain(std::iter::once(&self.default))
    }

    /// Every value that it can have, if none depends on a request.
    pub(super) fn constants(&self) -> Option<Vec<String>> {
        let texts = self.values().map(|it| it.as_text().map(str::to_owned));
        texts.collect()
    }

    /// When all of its places are there.
    pub(super) fn moment(&self) -> Moment {
        let moments = self.templates().map(Template::moment);
        moments.max().unwrap_or(Moment::Request)
    }

    /// Where it is looked up: with the request if all of its places are read there.
    pub(super) fn source(&self) -> Source {
        let places = self.templates().flat_map(Template::places);
        let sources: Vec<_> = places.map(Place::source).collect();
        let has = |source| sources.contains(&source);
        if has(Source::End) {
            Source::End
        } else if has(Source::Response) {
            Source::Response
        } else if has(Source::Notes) {
            Source::Notes
        } else {
            Source::Request
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Maps;

    struct Host(&'static str);

    impl Values for Host {
        fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool {
            assert_eq!(place, &Place::Host);
            out.extend_from_slice(self.0.as_bytes());
            true
        }
    }

    fn template(text: &str) -> Template {
        Template::with_groups(text, &Maps::default(), Moment::Request, None).unwrap()
    }

    fn texts(pairs: &[(&str, &str)]) -> HashMap<Box<[u8]>, Template> {
        let pairs = pairs.iter();
        pairs
            .map(|(text, value)| (text.as_bytes().into(), template(value)))
            .collect()
    }

    #[test]
    fn the_most_exact_value_counts() {
        let expression = Regex::new("^v(\\d+)\\.").unwrap();
        let value = Template::with_groups(
            "version {1} of {host}",
            &Maps::default(),
            Moment::Request,
            Some(&expression),
        );
        let map = Map {
            key: template("{host}"),
            ignores_case: true,
            exact: texts(&[("a.test", "exact"), ("", "empty")]),
            networks: vec![
                ("10.1.0.0/16".parse().unwrap(), template("near")),
                ("10.0.0.0/8".parse().unwrap(), template("lan")),
            ],
            prefixes: Affixes::new(texts(&[("a.", "short"), ("a.b.", "long")])),
            suffixes: Affixes::new(texts(&[(".test", "end")])),
            expressions: vec![(expression, value.unwrap())],
            shares: Vec::new(),
            default: template("other"),
        };
        for (host, expected) in [
            ("A.Test", "exact"),
            ("", "empty"),
            ("10.1.2.3", "near"),
            ("10.2.2.3", "lan"),
            ("a.c", "short"),
            ("a.b.c", "long"),
            ("b.test", "end"),
            ("v12.org", "version 12 of v12.org"),
            ("test", "other"),
        ] {
            let mut out = Vec::new();
            map.write(&Host(host), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{host}");
        }
    }
}
