//! The directives that hold at a place of nginx's configuration.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::nginx::Directive;

/// The directives of a location and of the blocks around it.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    /// The outermost block first.
    levels: Vec<&'a [Directive]>,
    looked_up: LookedUp,
}

/// The names of directives that a translator has looked up, in a scope and in scopes derived from it.
#[derive(Debug, Clone, Default)]
pub(super) struct LookedUp(Rc<RefCell<BTreeSet<String>>>);

impl LookedUp {
    /// Whether directives of that name were looked up.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.borrow().contains(name)
    }

    /// Adds the names of another one.
    pub(super) fn extend(&self, other: &Self) {
        if !Rc::ptr_eq(&self.0, &other.0) {
            self.0.borrow_mut().extend(other.0.borrow().iter().cloned());
        }
    }

    fn note(&self, name: &str) {
        if !self.has(name) {
            self.0.borrow_mut().insert(name.to_owned());
        }
    }
}

impl<'a> Scope<'a> {
    pub(super) fn new(outer: &'a [Directive]) -> Self {
        Self {
            levels: vec![outer],
            looked_up: LookedUp::default(),
        }
    }

    pub(super) fn within(&self, block: &'a [Directive]) -> Self {
        let mut levels = self.levels.clone();
        levels.push(block);
        self.of_levels(levels)
    }

    fn of_levels(&self, levels: Vec<&'a [Directive]>) -> Self {
        Self {
            levels,
            looked_up: self.looked_up.clone(),
        }
    }

    /// The names that were looked up in it.
    pub(super) fn looked_up(&self) -> &LookedUp {
        &self.looked_up
    }

    /// The directive of that name that holds: the last one of the innermost block that has one.
    pub(super) fn last(&self, name: &str) -> Option<&'a Directive> {
        self.looked_up.note(name);
        let mut levels = self.levels.iter().rev();
        levels.find_map(|level| level.iter().rev().find(|it| it.name == name))
    }

    /// All of that name in the innermost block that has any: outer ones are not inherited then.
    pub(super) fn all(&self, name: &str) -> Vec<&'a Directive> {
        self.all_of(&[name])
    }

    /// All with one of these names, in the same way.
    pub(super) fn all_of(&self, names: &[&str]) -> Vec<&'a Directive> {
        for name in names {
            self.looked_up.note(name);
        }
        let of_level = |level: &&'a [Directive]| -> Vec<&'a Directive> {
            let found = level.iter().filter(|it| names.contains(&it.name.as_str()));
            found.collect()
        };
        let mut levels = self.levels.iter().rev().map(of_level);
        levels.find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The scope around all servers.
    pub(super) fn outermost(&self) -> Self {
        self.of_levels(self.levels.iter().take(1).copied().collect())
    }

    /// The zone of that name, which a directive around all servers defines.
    ///
    /// - `parameter`: what its name and size are behind, such as `zone=`.
    pub(super) fn zone(
        &self,
        directive: &str,
        parameter: &str,
        name: &str,
    ) -> Option<&'a Directive> {
        let mut zones = self.outermost().all(directive).into_iter();
        zones.find(|zone| {
            let given = zone.parameter(parameter);
            given.and_then(|it| it.split(':').next()) == Some(name)
        })
    }

    /// The scope of the server.
    pub(super) fn of_server(&self) -> Self {
        self.of_levels(self.levels.iter().take(2).copied().collect())
    }

    /// The directives of the server.
    pub(super) fn server(&self) -> &'a [Directive] {
        self.levels.get(1).copied().unwrap_or_default()
    }

    /// The first directive of any level that `is_wanted`, the innermost block first.
    pub(super) fn find(&self, is_wanted: impl Fn(&Directive) -> bool) -> Option<&'a Directive> {
        let mut levels = self.levels.iter().rev();
        levels.find_map(|level| level.iter().find(|it| is_wanted(it)))
    }

    /// The value of a directive that is a word such as `on`, if it holds here.
    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.last(name).is_some_and(|it| it.argument(0) == value)
    }

    /// The directives of the innermost block.
    pub(super) fn innermost(&self) -> &'a [Directive] {
        self.levels.last().copied().unwrap_or_default()
    }

    /// The directive of that name in the innermost block alone.
    pub(super) fn own(&self, name: &str) -> Option<&'a Directive> {
        self.looked_up.note(name);
        self.levels.last()?.iter().rev().find(|it| it.name == name)
    }
}
