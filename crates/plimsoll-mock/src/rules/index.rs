//! Which rules a path may meet, without looking at each of them.
//!
//! Rules that ask for a path, a beginning, an end or a part of one are found by it; those with other operators,
//! or without a path, are candidates for every request. The candidates come in the order of the rules, so the
//! result is that of looking at each of them.

use std::collections::HashMap;

use aho_corasick::AhoCorasick;
use smallvec::SmallVec;

use super::affix::Affixes;
use crate::rules::condition::text::{TextOperator, TextTest};

/// Index key of a rule: the part of its path condition that a request's path is looked up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup<'t> {
    /// The whole path.
    Exact(&'t str),
    /// Its beginning.
    Starts(&'t str),
    /// Its end.
    Ends(&'t str),
    /// A part of it.
    Contains(&'t str),
    /// It may be any.
    Other,
}

impl<'t> Lookup<'t> {
    /// Of every path that meets a test.
    pub fn from_test(test: &'t TextTest) -> Self {
        let value = test.value();
        match test.operator() {
            TextOperator::Equal => Self::Exact(value),
            TextOperator::StartsWith => Self::Starts(value),
            TextOperator::EndsWith => Self::Ends(value),
            TextOperator::Contains => Self::Contains(value),
            TextOperator::WildCard => {
                let end = value.find(['*', '?']).unwrap_or(value.len());
                Self::Starts(value.get(..end).unwrap_or_default())
            }
            _ => Self::Other,
        }
    }
}

/// The paths of rules, which are known by their numbers.
#[derive(Debug, Default)]
pub struct RuleIndex {
    exact: HashMap<Box<str>, Vec<u32>>,
    starts: Affixes,
    /// Written backwards.
    ends: Affixes,
    contains: Option<(AhoCorasick, Vec<u32>)>,
    others: Vec<u32>,
}

impl RuleIndex {
    /// - `paths`: how each rule is found, in the order in which they are to be tried.
    pub fn new<'t>(paths: impl IntoIterator<Item = Lookup<'t>>) -> Self {
        let mut index = Self::default();
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        let (mut parts, mut part_numbers) = (Vec::new(), Vec::new());
        for (path, number) in paths.into_iter().zip(0_u32..) {
            match path {
                Lookup::Exact(value) => index.exact.entry(value.into()).or_default().push(number),
                Lookup::Starts(value) if value.len() > 1 => {
                    starts.push((value.as_bytes().to_vec(), number));
                }
                Lookup::Ends(value) => ends.push((value.bytes().rev().collect(), number)),
                Lookup::Contains(value) if !value.is_empty() => {
                    parts.push(value);
                    part_numbers.push(number);
                }
                // Every path begins with a slash.
                Lookup::Starts(_) | Lookup::Contains(_) | Lookup::Other => {
                    index.others.push(number);
                }
            }
        }
        index.starts = Affixes::new(starts);
        index.ends = Affixes::new(ends);
        if !parts.is_empty() {
            if let Ok(finder) = AhoCorasick::new(&parts) {
                index.contains = Some((finder, part_numbers));
            } else {
                // Too many for it: each is looked at.
                index.others.extend(part_numbers);
                index.others.sort_unstable();
            }
        }
        index
    }

    /// Visits the numbers of rules that `path` may meet, ascending, until `accept` says that it is enough.
    #[inline]
    pub fn visit(&self, path: &str, mut accept: impl FnMut(u32) -> bool) {
        let mut found: SmallVec<[u32; 32]> = SmallVec::new();
        if let Some(numbers) = self.exact.get(path) {
            found.extend_from_slice(numbers);
        }
        let mut sources = usize::from(!found.is_empty());
        self.starts.each(path.as_bytes(), |numbers| {
            found.extend_from_slice(numbers);
            sources += 1;
        });
        if !self.ends.is_empty() {
            let backwards: SmallVec<[u8; 256]> = path.bytes().rev().collect();
            self.ends.each(&backwards, |numbers| {
                found.extend_from_slice(numbers);
                sources += 1;
            });
        }
        if let Some((finder, numbers)) = &self.contains {
            for part in finder.find_overlapping_iter(path) {
                found.push(numbers[part.pattern().as_usize()]);
                sources += 2;
            }
        }
        if sources > 1 {
            found.sort_unstable();
            found.dedup();
        }
        let (mut found, mut others) = (found.iter().peekable(), self.others.iter().peekable());
        loop {
            let next = match (found.peek(), others.peek()) {
                (None, None) => return,
                (Some(one), Some(other)) if one < other => found.next(),
                (_, Some(_)) => others.next(),
                (Some(_), None) => found.next(),
            };
            if next.is_some_and(|number| accept(*number)) {
                return;
            }
        }
    }
}
