//! Paths made up from the locations of a server: each location, and what an expression matches below each of them.

use std::collections::BTreeSet;

use regex_syntax::hir::{Class, Hir, HirKind};

use super::{Selection, Step, visit};
use crate::import::locations::without_look_around;

/// Paths at most, so that a large file is translated in moments.
const PATHS: usize = 12_000;

/// Texts of one expression at most.
const SAMPLES: usize = 12;

impl Selection<'_> {
    /// Paths of which the choice may differ.
    pub(super) fn probes(&self) -> BTreeSet<String> {
        let mut heads = BTreeSet::from(["/".to_owned()]);
        let mut tails = BTreeSet::new();
        let mut steps = vec![&self.steps];
        visit(&self.places, &mut |place| {
            if place.expression.is_some() {
                tails.extend(samples(place.pattern, None));
            } else {
                heads.insert(place.pattern.to_owned());
            }
            steps.push(&place.steps);
        });
        // Paths that lead to each of the others.
        let targets: Vec<_> = heads.iter().chain(&tails).cloned().collect();
        for step in steps.into_iter().flatten() {
            let Step::Rewrite(rewrite) = step else {
                continue;
            };
            let from = rewrite.directive.argument(0);
            tails.extend(samples(from, None));
            let to = rewrite.to.unwrap_or_default();
            let literal = to.split('$').next().unwrap_or_default();
            for target in &targets {
                let bare = target.trim_start_matches('/');
                let rest = target.strip_prefix(literal).unwrap_or(bare);
                for fill in [rest, &format!("{rest}x"), &format!("{rest}/x")] {
                    tails.extend(samples(from, Some(fill)));
                }
            }
        }
        let mut paths = BTreeSet::new();
        let mut add = |path: String| {
            let path = path.replace("//", "/");
            if path.starts_with('/') && paths.len() < PATHS {
                paths.insert(path.to_lowercase());
                paths.insert(path.to_uppercase());
                paths.insert(path);
            }
        };
        for head in &heads {
            let bare = head.trim_end_matches('/');
            for path in [head, bare] {
                add(path.to_owned());
                add(format!("{path}x"));
                add(format!("{path}/x"));
            }
        }
        for tail in &tails {
            add(tail.clone());
            add(format!("{tail}x"));
            add(format!("{tail}/x"));
        }
        for tail in &tails {
            for head in &heads {
                let bare = head.trim_end_matches('/');
                for path in [
                    format!("{bare}{tail}"),
                    format!("{bare}/{tail}"),
                    format!("{bare}/x{tail}"),
                    format!("{bare}/x{tail}x"),
                    format!("{bare}/x/{tail}"),
                ] {
                    add(path);
                }
            }
        }
        // Several expressions may match one path.
        for first in &tails {
            for second in &tails {
                for head in &heads {
                    add(format!("{head}{first}{second}"));
                    add(format!("{head}x{first}x{second}"));
                }
            }
        }
        paths
    }
}

/// Texts that an expression matches; their groups are `fill`.
fn samples(pattern: &str, fill: Option<&str>) -> Vec<String> {
    let parse = |text: &str| regex_syntax::parse(text).ok();
    let parsed = parse(pattern).or_else(|| parse(&without_look_around(pattern)));
    parsed.map(|it| texts(&it, fill)).unwrap_or_default()
}

fn texts(hir: &Hir, fill: Option<&str>) -> Vec<String> {
    let mut all: Vec<String> = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![String::new()],
        HirKind::Literal(literal) => vec![String::from_utf8_lossy(&literal.0).into_owned()],
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = || class.ranges().iter();
            let usual = ['a', 'x', '0', '.', '/', '-'];
            let is_in =
                |it: &char| ranges().any(|range| (range.start()..=range.end()).contains(it));
            let first = ranges()
                .map(regex_syntax::hir::ClassUnicodeRange::start)
                .take(2);
            let all = usual.into_iter().filter(is_in).chain(first);
            all.map(String::from).take(3).collect()
        }
        HirKind::Class(Class::Bytes(_)) => vec!["a".to_owned()],
        HirKind::Repetition(repetition) => {
            let count = repetition.min.clamp(1, 8) as usize;
            let sub = texts(&repetition.sub, fill).into_iter();
            let mut repeated: Vec<_> = sub.map(|it| it.repeat(count)).collect();
            if repetition.min == 0 {
                repeated.push(String::new());
            }
            repeated
        }
        HirKind::Capture(capture) => match fill {
            Some(fill) => vec![fill.to_owned()],
            None => texts(&capture.sub, None),
        },
        HirKind::Concat(parts) => {
            let mut joined = vec![String::new()];
            for part in parts {
                let ends = texts(part, fill);
                let pairs = ends
                    .iter()
                    .flat_map(|end| joined.iter().map(move |it| format!("{it}{end}")));
                joined = pairs.take(SAMPLES).collect();
            }
            joined
        }
        HirKind::Alternation(parts) => parts.iter().flat_map(|it| texts(it, fill)).collect(),
    };
    all.truncate(SAMPLES);
    all
}
