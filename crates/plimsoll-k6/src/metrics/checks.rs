//! Groups and checks with their results, for the summary.
//!
//! `UserState::count_check` (`user/samples.rs`) counts each result here, and once more as a sample of the metric `checks`. That
//! sample is what thresholds judge: `SubMetric::matches` of `plimsoll_load::scenario` compares the tags.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The separator of group names in a path.
pub(crate) const SEPARATOR: &str = "::";

/// A check with its results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartCheck {
    /// The path of its group.
    pub group: String,
    /// Its name.
    pub name: String,
    /// How often it was met.
    pub passes: u64,
    /// How often it was not.
    pub fails: u64,
}

/// The groups and checks of a run, counted by all virtual users. Locked only when one occurs for the first time on a
/// worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks(Arc<Mutex<Found>>);

/// What has occurred so far.
#[derive(Debug, Default)]
struct Found {
    root: Group,
    /// Names of checks of all groups, in the order in which they first occurred.
    names: Vec<String>,
}

/// A group with what is in it, in the order in which it first occurred.
#[derive(Debug, Default, Clone)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// `::outer::inner`; empty for the root.
    pub(crate) path: String,
    pub(crate) groups: Vec<Group>,
    pub(crate) checks: Vec<Arc<Check>>,
}

/// A check with its results.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: String,
    /// With its group.
    pub(crate) path: String,
    passes: AtomicU64,
    fails: AtomicU64,
}

impl Check {
    pub(crate) fn count(&self, is_passed: bool) {
        let count = if is_passed { &self.passes } else { &self.fails };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }

    pub(crate) fn fails(&self) -> u64 {
        self.fails.load(Ordering::Relaxed)
    }
}

impl Checks {
    /// Everything until now.
    pub(crate) fn root(&self) -> Group {
        self.found().root.clone()
    }

    /// Names of checks of all groups, in the order in which they first occurred.
    pub(crate) fn names(&self) -> Vec<String> {
        self.found().names.clone()
    }

    /// Paths of the groups, and the checks of each, with the results until now.
    pub(crate) fn figures(&self) -> (Vec<String>, Vec<PartCheck>) {
        let (mut groups, mut checks) = (Vec::new(), Vec::new());
        let root = self.root();
        let mut waiting = vec![&root];
        while let Some(group) = waiting.pop() {
            if !group.path.is_empty() {
                groups.push(group.path.clone());
            }
            checks.extend(group.checks.iter().map(|check| PartCheck {
                group: group.path.clone(),
                name: check.name.clone(),
                passes: check.passes(),
                fails: check.fails(),
            }));
            waiting.extend(group.groups.iter().rev());
        }
        (groups, checks)
    }

    /// Adds results of a check that another process has counted.
    pub(crate) fn add(&self, group: &str, name: &str, passes: u64, fails: u64) {
        let check = self.check(group, name);
        check.passes.fetch_add(passes, Ordering::Relaxed);
        check.fails.fetch_add(fails, Ordering::Relaxed);
    }

    /// Adds a group.
    pub(crate) fn enter(&self, path: &str) {
        self.group(path);
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, group: &str, name: &str) -> Arc<Check> {
        let mut found = self.found();
        let Found { root, names } = &mut *found;
        let group = root.at(group);
        if let Some(check) = group.checks.iter().find(|check| check.name == name) {
            return Arc::clone(check);
        }
        let check = Arc::new(Check {
            name: name.to_owned(),
            path: format!("{}{SEPARATOR}{name}", group.path),
            passes: AtomicU64::new(0),
            fails: AtomicU64::new(0),
        });
        group.checks.push(Arc::clone(&check));
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        check
    }

    fn group(&self, path: &str) {
        self.found().root.at(path);
    }
}

impl Group {
    /// The group of that path; it is added if there is none.
    fn at(&mut self, path: &str) -> &mut Self {
        let mut group = self;
        for name in path.split(SEPARATOR).skip(1) {
            let found = group.groups.iter().position(|inner| inner.name == name);
            let position = found.unwrap_or_else(|| {
                let path = format!("{}{SEPARATOR}{name}", group.path);
                group.groups.push(Self {
                    name: name.to_owned(),
                    path,
                    ..Self::default()
                });
                group.groups.len() - 1
            });
            group = &mut group.groups[position];
        }
        group
    }
}

/// The checks that a worker has seen.
#[derive(Debug, Default)]
pub(crate) struct KnownChecks {
    shared: Checks,
    /// By the path of the group, a zero byte, and the name.
    known: HashMap<String, Arc<Check>>,
    groups: HashSet<String>,
    key: String,
}

impl KnownChecks {
    pub(crate) fn new(shared: Checks) -> Self {
        Self {
            shared,
            ..Self::default()
        }
    }

    pub(crate) fn count(&mut self, group: &str, name: &str, is_passed: bool) {
        self.key.clear();
        self.key.push_str(group);
        self.key.push('\0');
        self.key.push_str(name);
        if let Some(check) = self.known.get(&self.key) {
            check.count(is_passed);
            return;
        }
        let check = self.shared.check(group, name);
        check.count(is_passed);
        self.known.insert(self.key.clone(), check);
    }

    pub(crate) fn enter(&mut self, group: &str) {
        if !self.groups.contains(group) {
            self.shared.group(group);
            self.groups.insert(group.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_counted_by_group_and_name() {
        let checks = Checks::default();
        let mut one = KnownChecks::new(checks.clone());
        let mut other = KnownChecks::new(checks.clone());
        one.count("", "ok", true);
        other.count("", "ok", false);
        one.count("::a::b", "ok", true);
        one.count("::a::b", "ok", true);
        other.enter("::a::c");
        let root = checks.root();
        assert_eq!((root.checks[0].passes(), root.checks[0].fails()), (1, 1));
        let a = &root.groups[0];
        assert_eq!((a.path.as_str(), a.groups.len()), ("::a", 2));
        assert_eq!(a.groups[0].checks[0].path, "::a::b::ok");
        assert_eq!(a.groups[0].checks[0].passes(), 2);
        assert_eq!(root.checks.len(), 1);
        other.count("", "later", true);
        one.count("::a", "between", true);
        other.count("", "last", true);
        assert_eq!(checks.names(), ["ok", "later", "between", "last"]);
    }
}
