//! Steps as rows, of which the first that is for a request responds to it.
//!
//! Servers such as Caddy lead a request through steps in their order; routes are chosen by conditions. So what follows a step is
//! put together before it: the rows of a block are those of its first step, narrowed to what that is for, and then those of what
//! follows.

pub(super) mod actions;

pub(super) mod maps;

pub(super) mod matcher;

pub(super) mod paths;

pub(super) mod steps;

pub(super) mod value_maps;

use self::actions::{Action, Response, answer, not_translated};
use self::matcher::Matcher;
use self::paths::PathMatch;
use self::steps::{Block, Layer, Step, Within};
use super::Notes;
use super::nginx::Directive;

/// Rows of a site at most.
const MOST: usize = 1000;

/// Pairs of rows of a site that are compared at most: steps that all requests pass compare all rows with each other, those that
/// respond their own with the others.
const MOST_PAIRS: usize = 4_000_000;

/// Why the steps of a site do not become rows.
#[derive(Debug, thiserror::Error)]
enum TooMany {
    #[error("it would be more than {MOST} routes")]
    Routes,
    #[error(
        "it has too many steps with conditions of their own: it takes too long to see which of them exclude each other"
    )]
    Pairs,
}

/// Pairs of rows that may still be compared.
struct Budget(usize);

impl Budget {
    fn spend(&mut self, pairs: usize) -> Result<(), TooMany> {
        self.0 = self.0.checked_sub(pairs).ok_or(TooMany::Pairs)?;
        Ok(())
    }
}

/// Actions in the order in which they are tried.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows(pub(super) Vec<Action>);

impl Rows {
    /// The rows of a site. What no request reaches is reported.
    ///
    /// - `is_alone`: no other site gets what this one does not respond to.
    pub(super) fn of_site(
        block: &Block,
        site: &Directive,
        is_alone: bool,
        notes: &mut Notes,
    ) -> Self {
        let mut following = Self::default();
        if !is_alone {
            following.push(Action::new(
                Matcher::default(),
                Response::Other(answer("404", "")),
                site,
            ));
        }
        let rows = Self::of_block(block, &following, &mut Budget(MOST_PAIRS), notes);
        let rows = match rows {
            Ok(rows) => rows,
            Err(reason) => {
                notes.add(site, format!("responds with 501: {reason}"));
                let closed = Action::new(Matcher::default(), not_translated(), site);
                return Self(vec![closed]);
            }
        };
        block.report_unreached(&rows, notes);
        rows
    }

    /// The rows of a block, behind which others follow.
    fn of_block(
        block: &Block,
        following: &Self,
        budget: &mut Budget,
        notes: &mut Notes,
    ) -> Result<Self, TooMany> {
        let mut all = following.clone();
        // Without other blocks of `handle`.
        let mut beside = following.clone();
        for step in block.0.iter().rev() {
            let rows = all.count()?;
            match step {
                Step::Layer(layer) => {
                    budget.spend(rows * rows)?;
                    all.pass(layer, notes);
                    beside.pass(layer, notes);
                }
                Step::Actions { matcher, actions } => {
                    budget.spend(actions.len() * (actions.len() + rows))?;
                    budget.spend(matcher.excluded.len() * rows * rows)?;
                    let own = Self(actions.clone()).within(matcher, notes);
                    all = own.clone().before(&all, matcher, notes);
                    beside = own.before(&beside, matcher, notes);
                }
                Step::Within {
                    matcher,
                    directive,
                    block,
                    kind,
                } => {
                    let mut follows = match kind {
                        Within::Handle => beside.clone(),
                        Within::Route => all.clone(),
                        Within::HandlePath(_) => Self::default(),
                    };
                    if *kind != Within::Route && !all.0.is_empty() {
                        let response = Response::Other(answer("404", ""));
                        follows.push(Action::new(Matcher::default(), response, directive));
                    }
                    let mut own = Self::of_block(block, &follows, budget, notes)?;
                    if let Within::HandlePath(prefix) = kind {
                        own.below(prefix);
                    }
                    budget.spend(own.count()? * (own.0.len() + rows))?;
                    budget.spend(matcher.excluded.len() * rows * rows)?;
                    let own = own.within(matcher, notes);
                    all = own.clone().before(&all, matcher, notes);
                    if *kind == Within::Route {
                        beside = own.before(&beside, matcher, notes);
                    }
                }
            }
        }
        all.count()?;
        Ok(all)
    }

    /// How many there are, if that is not too many.
    fn count(&self) -> Result<usize, TooMany> {
        if self.0.len() > MOST {
            return Err(TooMany::Routes);
        }
        Ok(self.0.len())
    }

    /// An action behind those that are there; left out if they take all of its requests.
    fn push(&mut self, action: Action) {
        if !self.0.iter().any(|it| it.has_all_of(&action)) {
            self.0.push(action);
        }
    }

    /// Behind a prefix that is taken off before.
    fn below(&mut self, prefix: &str) {
        let paths = self.0.iter_mut().flat_map(|it| &mut it.matcher.paths);
        for path in paths {
            *path = path.below(prefix);
        }
    }

    /// Those of them that are for requests of a matcher.
    fn within(self, matcher: &Matcher, notes: &mut Notes) -> Self {
        let mut wide = matcher.clone();
        wide.excluded.clear();
        let mut within = Self::default();
        for mut action in self.0 {
            if action.name.is_some() {
                within.push(action);
                continue;
            }
            match wide.overlap(&action.matcher) {
                Ok(None) => {}
                Ok(Some(both)) => {
                    action.matcher = both;
                    within.push(action);
                }
                Err(_) => {
                    let message = "responds with 501 to all requests of what is around it: which of them it is for is not clear";
                    notes.add(&action.directive, message);
                    action.matcher = wide.clone();
                    action.response = not_translated();
                    within.push(action);
                }
            }
        }
        within
    }

    /// These and then others, which also have what these are not for.
    fn before(self, others: &Self, matcher: &Matcher, notes: &mut Notes) -> Self {
        let mut all = Self::default();
        for path in &matcher.excluded {
            let excluded = Matcher::of_path(path.clone());
            for action in others.clone().within(&excluded, notes).0 {
                all.push(action);
            }
        }
        for action in self.0 {
            all.push(action);
        }
        // The others do not take each other's requests.
        let own = all.0.len();
        for action in &others.0 {
            let is_there = |it: &Action| it.has_all_of(action);
            if !all.0.iter().take(own).any(is_there) {
                all.0.push(action.clone());
            }
        }
        all
    }

    /// Adds what requests of a matcher pass to the actions that are for them.
    ///
    /// What keeps clients out is rather for too many requests than for too few.
    fn pass(&mut self, layer: &Layer, notes: &mut Notes) {
        let mut wide = layer.matcher.clone();
        let excluded = std::mem::take(&mut wide.excluded);
        let mut passed = Self::default();
        for action in std::mem::take(&mut self.0) {
            let mut with = action.clone();
            with.passed.join(&layer.passed);
            if action.name.is_some() {
                passed.push(if wide.paths.is_empty() { with } else { action });
                continue;
            }
            let mut is_unclear = false;
            for path in &excluded {
                match Matcher::of_path(path.clone()).overlap(&action.matcher) {
                    Ok(None) => {}
                    Ok(Some(matcher)) => passed.push(Action {
                        matcher,
                        ..action.clone()
                    }),
                    Err(_) => is_unclear = true,
                }
            }
            match wide.overlap(&action.matcher) {
                Ok(None) => {}
                Ok(Some(matcher)) => {
                    let is_all = wide.covers(&action.matcher);
                    passed.push(Action { matcher, ..with });
                    if is_all {
                        continue;
                    }
                }
                Err(_) if layer.is_guard => {
                    is_unclear = true;
                    passed.push(with);
                }
                Err(_) => is_unclear = true,
            }
            if is_unclear {
                let message = format!(
                    "{} `{}` ({}:{}): which of them it is for is not clear",
                    if layer.is_guard {
                        "is for all requests of"
                    } else {
                        "is left out for"
                    },
                    action.directive.name,
                    action.directive.file,
                    action.directive.line
                );
                notes.add(&layer.directive, message);
            }
            passed.push(action);
        }
        *self = passed;
    }
}

impl Action {
    /// Whether it responds to all requests of another one that stands behind it, or is the same.
    fn has_all_of(&self, other: &Self) -> bool {
        match &other.name {
            None => self.name.is_none() && self.matcher.covers(&other.matcher),
            Some(_) => self.name == other.name,
        }
    }
}

impl Block {
    fn report_unreached(&self, rows: &Rows, notes: &mut Notes) {
        let has_any = |directive: &Directive| {
            let mut all = rows.0.iter().map(|it| &it.directive);
            all.any(|it| it.line == directive.line && it.file == directive.file)
        };
        for step in &self.0 {
            match step {
                Step::Layer(_) => {}
                Step::Actions { actions, .. } => {
                    if let Some(action) = actions.first()
                        && !has_any(&action.directive)
                    {
                        let message = "left out: what stands before it takes all of its requests";
                        notes.add(&action.directive, message);
                    }
                }
                Step::Within { block, .. } => block.report_unreached(rows, notes),
            }
        }
    }
}

/// How specific a condition on the path is to the choice of routes: exact ones come first, then the longest prefix, then
/// expressions in their order.
fn rank(path: Option<&PathMatch>) -> (u8, usize) {
    match path {
        Some(PathMatch::Exact(_)) => (2, 0),
        Some(PathMatch::Prefix(prefix)) => (1, prefix.len()),
        None => (1, 1),
        Some(PathMatch::Regex(_)) => (0, 0),
    }
}

impl Rows {
    /// Makes expressions of all paths where routes would not be chosen in the order of the rows.
    pub(super) fn in_order(&mut self) {
        for action in &mut self.0 {
            action.keep_prefixes();
        }
        if self.is_wrong() {
            for action in self.0.iter_mut().filter(|it| it.name.is_none()) {
                let paths = &mut action.matcher.paths;
                if paths.is_empty() {
                    paths.push(PathMatch::Regex("/.*".to_owned()));
                }
                for path in paths.iter_mut() {
                    *path = path.to_regex();
                }
            }
        }
        for action in &mut self.0 {
            action.settle();
        }
    }

    fn is_wrong(&self) -> bool {
        let open: Vec<&Action> = self.0.iter().filter(|it| it.name.is_none()).collect();
        open.iter().enumerate().any(|(at, one)| {
            let mut later = open.iter().skip(at + 1);
            later.any(|other| comes_later(one, other))
        })
    }
}

/// Whether a route would get requests of another one only after that, though it comes first.
fn comes_later(first: &Action, second: &Action) -> bool {
    let paths = |action: &Action| match action.matcher.paths.as_slice() {
        [] => vec![None],
        paths => paths.iter().cloned().map(Some).collect(),
    };
    let seconds = paths(second);
    paths(first).iter().any(|one| {
        seconds.iter().any(|other| {
            let is_apart = match (one, other) {
                (Some(one), Some(other)) => matches!(one.overlap(other), Ok(None)),
                _ => false,
            };
            !is_apart && rank(one.as_ref()) < rank(other.as_ref())
        })
    })
}
