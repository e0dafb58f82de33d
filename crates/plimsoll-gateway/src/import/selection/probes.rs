//! Paths made up from the locations of a server: each location, and what an expression matches below each of them.

use std::collections::BTreeSet;

use regex_syntax::hir::{Class, Hir, HirKind};

use super::Selection;
use super::places::{Place, visit};
use super::steps::Step;
use crate::import::patterns::without_look_around;

/// Paths at most, so that a large file is translated in moments.
const PATHS: usize = 24_000;

/// Pairs of a location and an expression at most that are tried behind each `rewrite`.
const PAIRS: usize = 400;

/// Names of locations at most that stand in for any text.
const WORDS: usize = 8;

/// Texts of one expression at most.
const SAMPLES: usize = 12;

/// Those of them that are combined with other locations.
const COMBINED: usize = 3;

impl Selection<'_> {
    /// Paths of which the choice may differ.
    pub(super) fn probes(&self) -> BTreeSet<String> {
        let mut heads = BTreeSet::from(["/".to_owned()]);
        // What no expression is likely to ask for.
        let mut unused = ('a'..='z').rev();
        let filler = unused.find(|it| !is_used(&self.places, *it)).unwrap_or('z');
        // An expression may match below any location.
        let mut words = BTreeSet::new();
        visit(&self.places, &mut |place| {
            let segment = place.pattern.split('/').nth(1).unwrap_or_default();
            if place.expression.is_none() && !segment.is_empty() {
                words.extend([segment.to_owned(), format!("{segment}{filler}")]);
            }
        });
        let words: Vec<_> = words.into_iter().take(WORDS).collect();
        // All that expressions match, and some of it for each.
        let (mut alone, mut tails) = (BTreeSet::new(), BTreeSet::new());
        let mut take = |texts: Vec<String>| {
            tails.extend(texts.iter().take(COMBINED).cloned());
            alone.extend(texts);
        };
        let mut steps = vec![&self.steps];
        visit(&self.places, &mut |place| {
            if place.expression.is_some() {
                take(samples(place.pattern, None, &words));
            } else {
                heads.insert(place.pattern.to_owned());
            }
            steps.push(&place.steps);
        });
        let mut rewrites = Vec::new();
        for steps in steps {
            collect(steps, &mut rewrites);
        }
        for (from, _) in &rewrites {
            take(samples(from, None, &words));
        }
        // Paths that lead to each of the others.
        let targets: Vec<_> = heads.iter().chain(&tails).cloned().collect();
        // What an expression within a location matches, behind a `rewrite`.
        let paired = heads.iter().flat_map(|head| {
            tails.iter().flat_map(move |tail| {
                [
                    format!("{head}{tail}"),
                    format!("{head}/{filler}{tail}").replace("//", "/"),
                ]
            })
        });
        let paired: Vec<_> = paired.take(PAIRS).collect();
        let mut led = BTreeSet::new();
        for (from, to) in rewrites {
            let literal = to.unwrap_or_default().split('$').next();
            for target in &paired {
                let rest = target.strip_prefix(literal.unwrap_or_default());
                if let Some(rest) = rest {
                    led.extend(samples(from, Some(rest), &[]));
                }
            }
            for target in &targets {
                let bare = target.trim_start_matches('/');
                let rest = target
                    .strip_prefix(literal.unwrap_or_default())
                    .unwrap_or(bare);
                for fill in [
                    rest,
                    &format!("{rest}{filler}"),
                    &format!("{rest}/{filler}"),
                ] {
                    alone.extend(samples(from, Some(fill), &[]));
                }
            }
        }
        let bare_heads = heads.iter().map(|it| it.trim_end_matches('/'));
        let singles = heads.iter().map(String::as_str).chain(bare_heads.clone());
        let singles = singles.chain(alone.iter().map(String::as_str));
        let singles = singles.flat_map(|it| {
            let (in_segment, below) = (format!("{it}{filler}"), format!("{it}/{filler}"));
            [it.to_owned(), in_segment, below]
        });
        let in_cases = singles.flat_map(|it| [it.to_lowercase(), it.to_uppercase(), it]);
        // Prefixes as routes disregard case.
        let spellings =
            bare_heads.flat_map(|it| [it.to_owned(), it.to_lowercase(), it.to_uppercase()]);
        let spellings: BTreeSet<_> = spellings.collect();
        let pairs = tails.iter().flat_map(|tail| {
            spellings.iter().flat_map(move |head| {
                [
                    format!("{head}{tail}"),
                    format!("{head}/{tail}"),
                    format!("{head}{filler}{tail}"),
                    format!("{head}/{filler}{tail}"),
                    format!("{head}/{filler}{tail}{filler}"),
                ]
            })
        });
        // Several expressions may match one path.
        let triples = tails.iter().flat_map(|first| {
            tails.iter().flat_map(move |second| {
                [
                    format!("{first}{second}"),
                    format!("{first}{filler}{second}"),
                ]
            })
        });
        let triples = triples.flat_map(|tail| {
            let below = spellings
                .iter()
                .flat_map(|head| [format!("{head}{tail}"), format!("{head}/{filler}{tail}")]);
            let mut below: Vec<_> = below.collect();
            // A dot at the end would be a segment that no path has.
            let ended: Vec<_> = below.iter().map(|it| format!("{it}{filler}")).collect();
            below.extend(ended);
            below.push(tail);
            below
        });
        let all = in_cases.chain(pairs).chain(triples).take(PATHS);
        let all = led.into_iter().take(PATHS / 4).chain(all);
        all.map(|it| it.replace("//", "/"))
            .filter(|it| it.starts_with('/'))
            .collect()
    }
}

/// Expressions and targets of every `rewrite`.
fn collect<'s>(steps: &'s [Step<'_>], rewrites: &mut Vec<(&'s str, Option<&'s str>)>) {
    for step in steps {
        match step {
            Step::Rewrite(rewrite) => {
                rewrites.push((rewrite.directive.argument(0), rewrite.to));
            }
            Step::Perhaps(own) => collect(own, rewrites),
            Step::Redirect(_) | Step::Break | Step::Return => {}
        }
    }
}

/// Whether a letter stands in one of the patterns.
fn is_used(places: &[Place<'_>], letter: char) -> bool {
    places
        .iter()
        .any(|it| it.pattern.contains(letter) || is_used(&it.within, letter))
}

/// Texts that an expression matches; their groups are `fill`, and what may be any text is one of `words` too.
fn samples(pattern: &str, fill: Option<&str>, words: &[String]) -> Vec<String> {
    let parse = |text: &str| regex_syntax::parse(text).ok();
    let parsed = parse(pattern).or_else(|| parse(&without_look_around(pattern)));
    parsed.map(|it| texts(&it, fill, words)).unwrap_or_default()
}

fn texts(hir: &Hir, fill: Option<&str>, words: &[String]) -> Vec<String> {
    let mut all: Vec<String> = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![String::new()],
        HirKind::Literal(literal) => vec![String::from_utf8_lossy(&literal.0).into_owned()],
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = || class.ranges().iter();
            let usual = ['a', 'x', '0', '.', '/', '-'];
            let is_in =
                |it: &char| ranges().any(|range| (range.start()..=range.end()).contains(it));
            let ends = ranges().flat_map(|it| [it.start(), it.end()]);
            let mut known = BTreeSet::new();
            let all = usual.into_iter().filter(is_in).chain(ends);
            let once = all.filter(|it| known.insert(*it));
            once.map(String::from).take(3).collect()
        }
        HirKind::Class(Class::Bytes(_)) => vec!["a".to_owned()],
        HirKind::Repetition(repetition) => {
            let count = repetition.min.clamp(1, 8) as usize;
            let sub = texts(&repetition.sub, fill, words).into_iter();
            let mut repeated: Vec<_> = sub.map(|it| it.repeat(count)).collect();
            if repetition.min == 0 {
                repeated.push(String::new());
            }
            if let HirKind::Class(Class::Unicode(class)) = repetition.sub.kind() {
                let is_in = |it: char| {
                    let mut ranges = class.ranges().iter();
                    ranges.any(|range| (range.start()..=range.end()).contains(&it))
                };
                let is_long = repetition.max.is_none();
                let fitting = words.iter().filter(|it| is_long && it.chars().all(is_in));
                repeated.extend(fitting.cloned());
            }
            repeated
        }
        HirKind::Capture(capture) => match fill {
            Some(fill) => vec![fill.to_owned()],
            None => texts(&capture.sub, None, words),
        },
        HirKind::Concat(parts) => {
            let mut joined = vec![String::new()];
            for part in parts {
                let ends = texts(part, fill, words);
                let pairs = ends
                    .iter()
                    .flat_map(|end| joined.iter().map(move |it| format!("{it}{end}")));
                joined = pairs.take(SAMPLES).collect();
            }
            joined
        }
        HirKind::Alternation(parts) => parts.iter().flat_map(|it| texts(it, fill, words)).collect(),
    };
    all.truncate(SAMPLES);
    all
}
