//! Conditions of foreign files as the keys of `when`.

use super::entry::{Entry, Table};

/// Conditions that must all be met.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct When {
    request: Table,
    all: Vec<Self>,
    any: Option<Vec<Self>>,
    not: Vec<Self>,
}

impl When {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// One condition.
    pub(crate) fn at_path(path: &[&str], value: impl Into<Entry>) -> Self {
        let mut when = Self::new();
        when.ask(path, value);
        when
    }

    /// At least one of these.
    pub(crate) fn any_of(mut all: Vec<Self>) -> Self {
        if all.len() == 1 {
            return all.remove(0);
        }
        Self {
            any: Some(all),
            ..Self::new()
        }
    }

    /// All of these.
    pub(crate) fn all_of(all: Vec<Self>) -> Self {
        let mut when = Self::new();
        for condition in all {
            when.and(condition);
        }
        when
    }

    /// Not this one.
    pub(crate) fn not(condition: Self) -> Self {
        Self {
            not: vec![condition],
            ..Self::new()
        }
    }

    /// The same in a separate table.
    pub(crate) fn apart(condition: Self) -> Self {
        Self {
            all: vec![condition],
            ..Self::new()
        }
    }

    /// Changes each table in which something stands at a path below `request`.
    pub(crate) fn in_each(&mut self, path: &[&str], change: impl Fn(&mut Self)) {
        self.visit(path, &change);
    }

    fn visit(&mut self, path: &[&str], change: &dyn Fn(&mut Self)) {
        let inner = self.all.iter_mut().chain(self.any.iter_mut().flatten());
        for inner in inner.chain(&mut self.not) {
            inner.visit(path, change);
        }
        if self.request.has(path) {
            change(self);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.request.is_empty() && self.all.is_empty() && self.any.is_none() && self.not.is_empty()
    }

    /// One more condition, at a path below `request`.
    pub(crate) fn ask(&mut self, path: &[&str], value: impl Into<Entry>) {
        if let Err(value) = self.request.place(path, value.into()) {
            // Two conditions on the same thing cannot stand in one table.
            let other = Self::at_path(path, value);
            self.all.push(other);
        }
    }

    /// One more condition.
    pub(crate) fn and(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for (path, value) in other.request.leaves() {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            self.ask(&path, value);
        }
        self.all.extend(other.all);
        self.not.extend(other.not);
        match (&mut self.any, other.any) {
            (_, None) => {}
            (any @ None, theirs) => *any = theirs,
            (Some(_), theirs) => self.all.push(Self {
                any: theirs,
                ..Self::new()
            }),
        }
    }

    /// As it stands in a rule.
    pub(crate) fn table(self) -> Table {
        let mut table = Table::new();
        if !self.request.is_empty() {
            table.push("request", Entry::Table(self.request));
        }
        let list = |all: Vec<Self>| {
            let all = all.into_iter();
            Entry::List(all.map(|it| Entry::Braces(it.table())).collect())
        };
        if !self.all.is_empty() {
            table.push("all", list(self.all));
        }
        if let Some(any) = self.any {
            table.push("any", list(any));
        }
        if !self.not.is_empty() {
            table.push("not", list(self.not));
        }
        table
    }
}

/// A test of a text: an operator with what it compares with.
pub(crate) fn test(operator: &str, value: impl Into<Entry>) -> Entry {
    Entry::braces([("op", operator.into()), ("value", value.into())])
}

/// A test without a value.
pub(crate) fn bare_test(operator: &str) -> Entry {
    Entry::braces([("op", operator.into())])
}

/// An expression that must match the whole text.
pub(crate) fn whole(pattern: &str) -> String {
    format!("^(?:{pattern})$")
}
