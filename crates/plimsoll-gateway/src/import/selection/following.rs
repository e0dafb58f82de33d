//! Everything that may become of a path, from location to location.

use std::collections::BTreeSet;

use super::places::{Place, find, visit};
use super::steps::{Changed, Ended, OUTCOMES, Rewrite, change};
use super::{Choice, Selection};

/// Times that nginx chooses again after a `rewrite`.
pub(super) const CYCLES: usize = 10;

/// Follows a path from location to location.
pub(super) struct Following<'s, 'a> {
    pub(super) selection: &'s Selection<'a>,
    pub(super) choices: Vec<Choice<'s, 'a>>,
    /// Paths whose location is known, and whether nginx itself led to them.
    pub(super) seen: BTreeSet<(String, bool)>,
    /// All locations are among the choices.
    pub(super) is_anywhere: bool,
}

impl<'s, 'a> Following<'s, 'a> {
    pub(super) fn new(selection: &'s Selection<'a>) -> Self {
        Self {
            selection,
            choices: Vec::new(),
            seen: BTreeSet::new(),
            is_anywhere: false,
        }
    }

    /// Follows a path from the directives of the server on.
    ///
    /// - `is_led`: nginx itself leads there.
    /// - `left`: times that nginx still chooses.
    pub(super) fn begin(&mut self, path: &str, is_led: bool, left: usize) {
        if path.contains('$') {
            return self.add_all(None, is_led);
        }
        let mut changes = Vec::new();
        change(&self.selection.steps, Changed::none(path), &mut changes);
        for changed in changes {
            match changed.end {
                // A `return` of the server comes before the routes of all its locations.
                Ended::Elsewhere | Ended::Returned => {}
                Ended::Unknown(rewrite) => self.add_all(rewrite, is_led),
                Ended::Through | Ended::Broken | Ended::Last => {
                    self.find(&changed.path, is_led, changed.first, left);
                }
            }
        }
    }

    /// Finds the location of a path, and follows what it does with the path.
    ///
    /// - `first`: the first `rewrite` that changed the path.
    fn find(&mut self, path: &str, is_led: bool, first: Option<&'s Rewrite<'a>>, left: usize) {
        // nginx gives up with a 500.
        let Some(left) = left.checked_sub(1) else {
            return;
        };
        if self.is_anywhere || !self.seen.insert((path.to_owned(), is_led)) {
            return;
        }
        if self.seen.len() > OUTCOMES {
            return self.add_all(first, is_led);
        }
        let (place, _) = find(&self.selection.places, path);
        let steps = place.map_or(&[] as &[_], |it| &it.steps);
        let mut changes = Vec::new();
        change(steps, Changed::none(path), &mut changes);
        for changed in changes {
            let first = first.or(changed.first);
            match changed.end {
                Ended::Elsewhere => {}
                Ended::Unknown(rewrite) => self.add_all(rewrite, is_led),
                Ended::Through | Ended::Last if changed.first.is_some() => {
                    self.find(&changed.path, is_led, first, left);
                }
                Ended::Returned => self.add(place, is_led, first),
                Ended::Through | Ended::Last | Ended::Broken => {
                    self.add(place, is_led, first);
                    // Where there is no file it comes to that path.
                    if let Some(tried) = place.map_or(self.selection.tried, |it| it.tried) {
                        self.begin(tried, true, left);
                    }
                }
            }
        }
    }

    fn add(
        &mut self,
        place: Option<&'s Place<'a>>,
        is_led: bool,
        rewrite: Option<&'s Rewrite<'a>>,
    ) {
        let of_place = |it: &'s Place<'a>| it.rules(is_led);
        self.choices.push(Choice {
            rules: place.map_or(&self.selection.rules, of_place),
            place,
            rewrite,
            is_led,
        });
    }

    /// The path may lead to any location.
    fn add_all(&mut self, rewrite: Option<&'s Rewrite<'a>>, is_led: bool) {
        self.is_anywhere |= !is_led;
        self.add(None, is_led, rewrite);
        visit(&self.selection.places, &mut |place| {
            self.add(Some(place), is_led, rewrite);
        });
    }
}
