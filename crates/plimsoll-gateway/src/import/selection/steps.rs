//! What the directives of a server or a location make of a path, in their order: `rewrite`, `if`, `break`, `return`.

use regex::{Captures, Regex};

use crate::import::nginx::Directive;
use crate::import::patterns::without_look_around;
use crate::import::redirects::is_redirecting;

/// What may become of one path, by the `if` that its request meets, at most: beyond it, every location may be its.
pub(super) const OUTCOMES: usize = 64;

/// What changes the path, or ends that.
pub(super) enum Step<'a> {
    Rewrite(Rewrite<'a>),
    /// The client is sent elsewhere by a path that matches.
    Redirect(Regex),
    /// An `if`, whose steps some requests take.
    Perhaps(Vec<Self>),
    /// `break`: the location stays the one that it is.
    Break,
    /// `return`, which responds.
    Return,
}

pub(super) struct Rewrite<'a> {
    pub(super) directive: &'a Directive,
    pub(super) from: Regex,
    /// Absent if it is not known before a request comes.
    pub(super) to: Option<&'a str>,
}

pub(super) fn steps(block: &[Directive]) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for directive in block {
        let compiled = || {
            let pattern = directive.argument(0);
            let exact = Regex::new(pattern).ok().map(|it| (it, true));
            exact.or_else(|| Some((Regex::new(&without_look_around(pattern)).ok()?, false)))
        };
        match directive.name.as_str() {
            "return" => steps.push(Step::Return),
            "break" => steps.push(Step::Break),
            "if" => steps.push(Step::Perhaps(self::steps(&directive.block))),
            "rewrite" if is_redirecting(std::slice::from_ref(directive)) => {
                // What is not known to redirect goes on.
                if let Ok(from) = Regex::new(directive.argument(0)) {
                    steps.push(Step::Redirect(from));
                }
            }
            "rewrite" => {
                let Some((from, is_exact)) = compiled() else {
                    continue;
                };
                let to = directive.argument(1);
                let to = to.split('?').next().unwrap_or_default();
                let mut variables = to.split('$').skip(1);
                let is_known = is_exact
                    && variables.all(|it| it.starts_with(|digit: char| digit.is_ascii_digit()));
                steps.push(Step::Rewrite(Rewrite {
                    directive,
                    from,
                    to: is_known.then_some(to),
                }));
            }
            _ => {}
        }
    }
    steps
}

/// A path behind some steps.
#[derive(Clone)]
pub(super) struct Changed<'s, 'a> {
    pub(super) path: String,
    /// The first `rewrite` that changed it.
    pub(super) first: Option<&'s Rewrite<'a>>,
    pub(super) end: Ended<'s, 'a>,
}

impl Changed<'_, '_> {
    pub(super) fn none(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            first: None,
            end: Ended::Through,
        }
    }
}

/// How steps ended.
#[derive(Clone, Copy)]
pub(super) enum Ended<'s, 'a> {
    /// All of them were taken.
    Through,
    /// By a `rewrite … last`.
    Last,
    /// The location stays the one that it is.
    Broken,
    Returned,
    /// The client is sent elsewhere.
    Elsewhere,
    /// The target of a `rewrite` is not known, or too much may happen.
    Unknown(Option<&'s Rewrite<'a>>),
}

/// Everything that may become of a path by steps.
pub(super) fn change<'s, 'a>(
    steps: &'s [Step<'a>],
    mut changed: Changed<'s, 'a>,
    all: &mut Vec<Changed<'s, 'a>>,
) {
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Return => {
                changed.end = Ended::Returned;
                break;
            }
            Step::Break => {
                changed.end = Ended::Broken;
                break;
            }
            Step::Redirect(from) if from.is_match(&changed.path) => {
                changed.end = Ended::Elsewhere;
                break;
            }
            Step::Redirect(_) => {}
            Step::Perhaps(_) if all.len() > OUTCOMES => {
                changed.end = Ended::Unknown(changed.first);
                break;
            }
            Step::Perhaps(own) => {
                let mut taken = Vec::new();
                change(own, changed.clone(), &mut taken);
                for taken in taken {
                    if matches!(taken.end, Ended::Through) {
                        change(steps.get(at + 1..).unwrap_or_default(), taken, all);
                    } else {
                        all.push(taken);
                    }
                }
            }
            Step::Rewrite(rewrite) => {
                let Some(groups) = rewrite.from.captures(&changed.path) else {
                    continue;
                };
                let Some(to) = rewrite.to else {
                    changed.end = Ended::Unknown(Some(rewrite));
                    break;
                };
                changed.path = expanded(to, &groups);
                changed.first = changed.first.or(Some(rewrite));
                changed.end = match rewrite.directive.argument(2) {
                    "" => Ended::Through,
                    "break" => Ended::Broken,
                    _ => Ended::Last,
                };
                if !matches!(changed.end, Ended::Through) {
                    break;
                }
            }
        }
    }
    all.push(changed);
}

/// A target with the groups, each of one digit, in their places.
fn expanded(to: &str, groups: &Captures<'_>) -> String {
    let mut parts = to.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digit = part.chars().next().and_then(|it| it.to_digit(10));
        let group = digit.and_then(|it| groups.get(it as usize));
        text.push_str(group.map_or("", |it| it.as_str()));
        text.push_str(part.get(1..).unwrap_or_default());
    }
    text
}
