//! The rules of a path, found by its segments: what a lookup costs depends on the path, not on the number of rules.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::rules::pattern::{Pattern, PatternEnd, Reading, Segment, Tail, first_segment};

/// A tree of segments. Patterns that match the same paths share a slot.
#[derive(Debug)]
pub(super) struct PathIndex {
    reading: Reading,
    nodes: Vec<Node>,
    /// Number of slots.
    slots: usize,
}

/// The patterns that agree on the segments so far.
#[derive(Debug)]
struct Node {
    /// The first entry here or below: nothing below is looked at for a later one than is known already.
    least: usize,
    literals: HashMap<Box<str>, usize>,
    place: Option<usize>,
    /// The slot of the pattern that ends here.
    nothing: Option<usize>,
    /// The slot of the pattern whose rest is anything.
    rest: Option<usize>,
    tails: Vec<Tails>,
}

/// Tails by the texts with which they begin and end.
#[derive(Debug)]
struct Tails {
    prefix_length: usize,
    suffix_length: usize,
    by_prefix: HashMap<Box<str>, BySuffix>,
}

/// Tails with their slots, by their suffixes.
type BySuffix = HashMap<Box<str>, Vec<(Tail, usize)>>;

const ROOT: usize = 0;

impl PathIndex {
    pub(super) fn new(reading: Reading) -> Self {
        Self {
            reading,
            nodes: vec![Node::new(usize::MAX)],
            slots: 0,
        }
    }

    /// The slot of a pattern, made if it is the first that matches these paths.
    ///
    /// - `entry`: larger than all before.
    pub(super) fn insert(&mut self, pattern: &Pattern, entry: usize) -> usize {
        let mut at = ROOT;
        self.nodes[ROOT].least = self.nodes[ROOT].least.min(entry);
        for segment in &pattern.segments {
            let known = match segment {
                Segment::Literal(text) => self.nodes[at].literals.get(&**text).copied(),
                Segment::Place(_) => self.nodes[at].place,
            };
            let next = known.unwrap_or_else(|| {
                let next = self.nodes.len();
                self.nodes.push(Node::new(entry));
                match segment {
                    Segment::Literal(text) => {
                        self.nodes[at].literals.insert(text.as_str().into(), next);
                    }
                    Segment::Place(_) => self.nodes[at].place = Some(next),
                }
                next
            });
            at = next;
        }
        let next = self.slots;
        let node = &mut self.nodes[at];
        let slot = match &pattern.end {
            PatternEnd::Nothing => *node.nothing.get_or_insert(next),
            PatternEnd::Rest => *node.rest.get_or_insert(next),
            PatternEnd::Tail(tail) => node.tail_slot(tail, next),
        };
        self.slots = self.slots.max(slot + 1);
        slot
    }

    /// Visits the slots that match a path, in no order.
    ///
    /// - `bound`: slots are left out where all entries are at it or behind; `visit` may lower it.
    pub(super) fn search(
        &self,
        path: &str,
        bound: &mut usize,
        visit: &mut dyn FnMut(usize, &mut usize),
    ) {
        let path = if self.reading.folds_case {
            Cow::Owned(path.to_lowercase())
        } else {
            Cow::Borrowed(path)
        };
        self.search_below(ROOT, &path, bound, visit);
    }

    fn search_below(
        &self,
        at: usize,
        rest: &str,
        bound: &mut usize,
        visit: &mut dyn FnMut(usize, &mut usize),
    ) {
        let node = &self.nodes[at];
        if node.least >= *bound {
            return;
        }
        let is_end = rest.is_empty() || (self.reading.ignores_slash && rest == "/");
        if let Some(slot) = node.nothing.filter(|_| is_end) {
            visit(slot, bound);
        }
        if let Some(slot) = node.rest {
            visit(slot, bound);
        }
        for tails in &node.tails {
            tails.search(rest, self.reading, bound, visit);
        }
        let Some((segment, after)) = first_segment(rest) else {
            return;
        };
        let literal = node.literals.get(segment).copied();
        let place = node.place.filter(|_| !segment.is_empty());
        // The sooner the first rule is found, the less is looked at.
        let next = match (literal, place) {
            (Some(literal), Some(place)) if self.nodes[place].least < self.nodes[literal].least => {
                [Some(place), Some(literal)]
            }
            (literal, place) => [literal, place],
        };
        for at in next.into_iter().flatten() {
            self.search_below(at, after, bound, visit);
        }
    }
}

impl Node {
    fn new(least: usize) -> Self {
        Self {
            least,
            literals: HashMap::new(),
            place: None,
            nothing: None,
            rest: None,
            tails: Vec::new(),
        }
    }

    /// The slot of a tail; `next` if there is none yet.
    fn tail_slot(&mut self, tail: &Tail, next: usize) -> usize {
        let (prefix_length, suffix_length) = (tail.prefix.len(), tail.suffix.len());
        let is_same = |tails: &Tails| {
            (tails.prefix_length, tails.suffix_length) == (prefix_length, suffix_length)
        };
        let at = self.tails.iter().position(is_same).unwrap_or_else(|| {
            self.tails.push(Tails {
                prefix_length,
                suffix_length,
                by_prefix: HashMap::new(),
            });
            self.tails.len() - 1
        });
        let by_prefix = &mut self.tails[at].by_prefix;
        let by_suffix = by_prefix.entry(tail.prefix.as_str().into()).or_default();
        let slots = by_suffix.entry(tail.suffix.as_str().into()).or_default();
        if let Some((_, slot)) = slots.iter().find(|(known, _)| known.text == tail.text) {
            return *slot;
        }
        slots.push((tail.clone(), next));
        next
    }
}

impl Tails {
    fn search(
        &self,
        rest: &str,
        reading: Reading,
        bound: &mut usize,
        visit: &mut dyn FnMut(usize, &mut usize),
    ) {
        let prefix = rest.get(..self.prefix_length);
        let Some(by_suffix) = prefix.and_then(|prefix| self.by_prefix.get(prefix)) else {
            return;
        };
        // Both readings of a slash at the end; no suffix ends with one where it makes no difference.
        let trimmed = rest.strip_suffix('/').filter(|_| reading.ignores_slash);
        for text in [Some(rest), trimmed].into_iter().flatten() {
            let from = text.len().checked_sub(self.suffix_length);
            let suffix = from.and_then(|from| text.get(from..));
            let slots = suffix.and_then(|suffix| by_suffix.get(suffix));
            for (tail, slot) in slots.into_iter().flatten() {
                if tail.captures(rest, reading).is_some() {
                    visit(*slot, bound);
                }
            }
            if self.suffix_length == 0 {
                break;
            }
        }
    }
}
