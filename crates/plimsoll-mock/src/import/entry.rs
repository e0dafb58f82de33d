//! Rules as TOML that people can read: keys with dots, and texts in the quotes that need the fewest escapes.

use std::fmt::Write as _;

use plimsoll_model::document::{readable_toml_string, toml_key};

/// A value of TOML.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    Text(String),
    Whole(i64),
    Real(f64),
    Flag(bool),
    List(Vec<Self>),
    /// Its keys are written with dots behind those before them.
    Table(Table),
    /// It is written in braces.
    Braces(Table),
}

/// Keys with their values, in their order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table(Vec<(String, Entry)>);

impl From<&str> for Entry {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Entry {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Entry {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for Entry {
    fn from(number: i64) -> Self {
        Self::Whole(number)
    }
}

impl Entry {
    /// A table in braces.
    pub(crate) fn braces<const N: usize>(pairs: [(&str, Self); N]) -> Self {
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value));
        Self::Braces(Table(pairs.into_iter().collect()))
    }

    fn each_with_templates(&mut self, visit: &mut dyn FnMut(&str, &mut Table)) {
        match self {
            Self::List(all) => {
                for entry in all {
                    entry.each_with_templates(visit);
                }
            }
            Self::Table(table) | Self::Braces(table) => table.each_with_templates(visit),
            Self::Text(_) | Self::Whole(_) | Self::Real(_) | Self::Flag(_) => {}
        }
    }

    fn each_text(&mut self, visit: &mut dyn FnMut(&mut String)) {
        match self {
            Self::Text(text) => visit(text),
            Self::List(all) => {
                for entry in all {
                    entry.each_text(visit);
                }
            }
            Self::Table(table) | Self::Braces(table) => table.each_text(visit),
            Self::Whole(_) | Self::Real(_) | Self::Flag(_) => {}
        }
    }

    fn write(&self, text: &mut String) {
        match self {
            Self::Text(value) => text.push_str(&readable_toml_string(value)),
            Self::Whole(number) => write!(text, "{number}").expect("texts take everything"),
            // With a point, so that it stays a real number.
            Self::Real(number) => write!(text, "{number:?}").expect("texts take everything"),
            Self::Flag(flag) => write!(text, "{flag}").expect("texts take everything"),
            Self::List(all) => {
                text.push('[');
                for (at, entry) in all.iter().enumerate() {
                    if at > 0 {
                        text.push_str(", ");
                    }
                    entry.write(text);
                }
                text.push(']');
            }
            Self::Table(table) | Self::Braces(table) => {
                text.push_str("{ ");
                let mut is_first = true;
                table.each("", &mut |key, value| {
                    if !is_first {
                        text.push_str(", ");
                    }
                    is_first = false;
                    text.push_str(key);
                    text.push_str(" = ");
                    value.write(text);
                });
                text.push_str(" }");
            }
        }
    }
}

impl Table {
    /// Without keys.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a value behind the others.
    pub(crate) fn push(&mut self, key: impl Into<String>, value: impl Into<Entry>) {
        self.0.push((key.into(), value.into()));
    }

    /// Adds the values of another table behind the others.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether something stands where a path of keys leads.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        let Some((key, rest)) = path.split_first() else {
            return true;
        };
        self.0.iter().any(|(known, value)| match value {
            _ if known != key => false,
            Entry::Table(table) => table.has(rest),
            _ => rest.is_empty(),
        })
    }

    /// The text of a key.
    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        match self.value_mut(key)? {
            Entry::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|(known, _)| known != key);
    }

    /// Removes the fields of that name, whatever its case.
    pub(crate) fn remove_field(&mut self, name: &str) {
        self.0
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    /// Adds a field: one of several values, if there is one of that name, whatever its case.
    pub(crate) fn push_field(&mut self, name: &str, value: Entry) {
        let mut pairs = self.0.iter_mut();
        let known = pairs.find(|(known, _)| known.eq_ignore_ascii_case(name));
        match known.map(|(_, value)| value) {
            None => self.push(name, value),
            Some(Entry::List(values)) => values.push(value),
            Some(first) => *first = Entry::List(vec![first.clone(), value]),
        }
    }

    /// The text of the field of that name, whatever its case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(known, _)| known.eq_ignore_ascii_case(name));
        match found {
            Some((_, Entry::Text(text))) => Some(text),
            _ => None,
        }
    }

    /// The value of a key.
    pub(crate) fn value_mut(&mut self, key: &str) -> Option<&mut Entry> {
        let mut pairs = self.0.iter_mut();
        pairs
            .find(|(known, _)| known == key)
            .map(|(_, value)| value)
    }

    /// Its tables with templates of other mock servers, itself too, each with the name of their dialect.
    pub(crate) fn each_with_templates(&mut self, visit: &mut dyn FnMut(&str, &mut Self)) {
        if let Some(dialect) = self.text("template") {
            visit(&dialect, self);
        }
        for (_, entry) in &mut self.0 {
            entry.each_with_templates(visit);
        }
    }

    /// Its texts, those within its values too.
    pub(crate) fn each_text(&mut self, visit: &mut dyn FnMut(&mut String)) {
        for (_, entry) in &mut self.0 {
            entry.each_text(visit);
        }
    }

    /// Puts a value where a path of keys leads; gives it back if something stands there.
    pub(crate) fn place(&mut self, path: &[&str], value: Entry) -> Result<(), Entry> {
        let Some((key, rest)) = path.split_first() else {
            return Err(value);
        };
        match (self.value_mut(key), rest) {
            (None, []) => self.push(*key, value),
            (None, rest) => {
                let mut table = Self::new();
                table.place(rest, value)?;
                self.push(*key, Entry::Table(table));
            }
            (Some(Entry::Table(table)), [_, ..]) => return table.place(rest, value),
            (Some(_), _) => return Err(value),
        }
        Ok(())
    }

    /// Its values, each with the keys that lead there.
    pub(crate) fn leaves(self) -> Vec<(Vec<String>, Entry)> {
        let mut leaves = Vec::new();
        for (key, value) in self.0 {
            match value {
                Entry::Table(table) => {
                    leaves.extend(table.leaves().into_iter().map(|(mut path, value)| {
                        path.insert(0, key.clone());
                        (path, value)
                    }));
                }
                value => leaves.push((vec![key], value)),
            }
        }
        leaves
    }

    /// Its values, each with its keys joined by dots.
    fn each(&self, before: &str, report: &mut dyn FnMut(&str, &Entry)) {
        for (key, value) in &self.0 {
            let mut path = before.to_owned();
            if !before.is_empty() {
                path.push('.');
            }
            path.push_str(&toml_key(key));
            match value {
                Entry::Table(table) if !table.is_empty() => table.each(&path, report),
                value => report(&path, value),
            }
        }
    }

    /// The lines of a table under its header, such as `[[rules]]`.
    pub(crate) fn lines(&self, header: &str) -> String {
        let mut text = format!("{header}\n");
        self.each("", &mut |key, value| {
            text.push_str(key);
            text.push_str(" = ");
            value.write(&mut text);
            text.push('\n');
        });
        text
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::document::Document;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rules_are_written_as_people_write_them() {
        let mut rule = Table::new();
        rule.place(&["when", "request", "url_path"], "/a".into())
            .unwrap();
        let test = Entry::braces([("op", "contains".into()), ("value", "a\"b".into())]);
        rule.place(&["when", "request", "headers", "x y"], test)
            .unwrap();
        assert!(
            rule.place(&["when", "request", "url_path"], "/b".into())
                .is_err()
        );
        let mut nested = Table::new();
        nested
            .place(&["request", "query", "p"], "1".into())
            .unwrap();
        let list = Entry::List(vec![Entry::Table(nested)]);
        rule.place(&["when", "any"], list).unwrap();
        rule.place(&["respond", "text"], "a\nb'c".into()).unwrap();
        rule.place(&["respond", "n"], Entry::Real(1.0)).unwrap();
        assert_eq!(
            rule.lines("[[rules]]"),
            "[[rules]]\nwhen.request.url_path = \"/a\"\nwhen.request.headers.\"x y\" = { op = \"contains\", value = 'a\"b' }\n\
             when.any = [{ request.query.p = \"1\" }]\nrespond.text = '''\na\nb'c'''\nrespond.n = 1.0\n"
        );
    }

    proptest! {
        #[test]
        fn every_text_is_read_as_it_was_written(value in "([a'\"\\\\\n\r\t \u{1}\u{7f}é]|''')*", key in "[a'\"\\\\\n .]{0,4}") {
            let mut table = Table::new();
            table.push(key.clone(), value.as_str());
            let text = table.lines("[t]");
            let mut document = Document::parse(&text);
            let read = document.root().table("t").unwrap().rest();
            let problems = document.into_problems();
            prop_assert!(problems.is_empty(), "{problems:?} in {text}");
            let (read_key, read) = read.into_iter().next().unwrap();
            prop_assert_eq!((read_key, read.text()), (key, Some(value)));
        }
    }
}
