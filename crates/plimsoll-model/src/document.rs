//! A TOML document whose keys are taken out one by one: a key that is left is a mistake.
//!
//! The caller takes what it knows, notes what is wrong and goes on, so that all problems are
//! reported at once, each with its place.

mod problems;

mod writing;

use std::cell::RefCell;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

pub use self::problems::ConfigProblem;
use self::problems::Problems;
pub use self::writing::{readable_toml_string, toml_key, toml_string};
use crate::{parse_byte_size, parse_duration};

/// A parsed file with what was found wrong with it.
#[derive(Debug)]
pub struct Document<'i> {
    root: Option<(DeTable<'i>, Range<usize>)>,
    problems: Rc<RefCell<Problems<'i>>>,
}

/// One table, whose keys are taken.
#[derive(Debug)]
pub struct Table<'i> {
    entries: DeTable<'i>,
    /// Of its header or its braces.
    span: Range<usize>,
    /// With a dot at its end, unless it is the root's.
    path: String,
    /// Keys that were taken, there or not.
    known: Vec<&'static str>,
    /// Of these, those that were there.
    given: Vec<&'static str>,
    problems: Rc<RefCell<Problems<'i>>>,
}

/// A value with its place.
#[derive(Debug)]
pub struct Value<'i> {
    content: DeValue<'i>,
    span: Range<usize>,
    key: String,
    problems: Rc<RefCell<Problems<'i>>>,
}

impl<'i> Document<'i> {
    /// Mistakes of syntax are noted, and what can be understood nevertheless is looked at too.
    pub fn parse(text: &'i str) -> Self {
        let mut problems = Problems::new(text);
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let span = error.span().unwrap_or(0..0);
            problems.add(&span, "", error.message(), None);
        }
        let span = root.span();
        Self {
            root: Some((root.into_inner(), span)),
            problems: Rc::new(RefCell::new(problems)),
        }
    }

    /// The table of the file; empty if it was taken before.
    pub fn root(&mut self) -> Table<'i> {
        let (entries, span) = self.root.take().unwrap_or_default();
        Table {
            entries,
            span,
            path: String::new(),
            known: Vec::new(),
            given: Vec::new(),
            problems: Rc::clone(&self.problems),
        }
    }

    /// The problems so far, in the order of the file.
    pub fn into_problems(self) -> Vec<ConfigProblem> {
        let text = Problems::new("");
        self.problems.replace(text).into_found()
    }

    /// The problems and the notes, each in the order of the file.
    pub fn into_findings(self) -> (Vec<ConfigProblem>, Vec<ConfigProblem>) {
        let text = Problems::new("");
        self.problems.replace(text).into_findings()
    }
}

impl<'i> Table<'i> {
    /// The value of `key`, if it is there.
    pub fn take_value(&mut self, key: &'static str) -> Option<Value<'i>> {
        self.known.push(key);
        let (_, value) = self.entries.remove_entry(key)?;
        self.given.push(key);
        let span = value.span();
        Some(Value {
            content: value.into_inner(),
            span,
            key: format!("{}{key}", self.path),
            problems: Rc::clone(&self.problems),
        })
    }

    /// Whether `key` is there and was not taken.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// The entries that were not taken, without their places. Numbers that are too large become texts.
    pub fn to_toml(&self) -> toml::Table {
        plain_table(&self.entries)
    }

    /// Whether `key`, which was taken, was there, right or wrong.
    pub fn was_given(&self, key: &str) -> bool {
        self.given.contains(&key)
    }

    /// A text in quotes.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.take_value(key)?.text()
    }

    /// True or false.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let value = self.take_value(key)?;
        match value.content {
            DeValue::Boolean(boolean) => Some(boolean),
            _ => value.expected("true or false"),
        }
    }

    /// A whole number within `range`.
    pub fn count(&mut self, key: &'static str, range: RangeInclusive<usize>) -> Option<usize> {
        self.whole(key, &range)
    }

    /// A whole number within `range`, negative ones too.
    pub fn integer(&mut self, key: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        self.whole(key, &range)
    }

    fn whole<N>(&mut self, key: &'static str, range: &RangeInclusive<N>) -> Option<N>
    where
        N: TryFrom<i128> + PartialOrd + fmt::Display,
    {
        let value = self.take_value(key)?;
        let number = match &value.content {
            DeValue::Integer(integer) => {
                i128::from_str_radix(integer.as_str(), integer.radix()).ok()
            }
            _ => None,
        };
        let number = number.and_then(|number| N::try_from(number).ok());
        match number.filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => value.expected(&format!(
                "a whole number from {} to {}",
                range.start(),
                range.end()
            )),
        }
    }

    /// A number, whole or not, above zero.
    pub fn positive(&mut self, key: &'static str) -> Option<f64> {
        let value = self.take_value(key)?;
        let number = match &value.content {
            DeValue::Integer(integer) => integer.as_str().parse().ok(),
            DeValue::Float(float) => float.as_str().parse().ok(),
            _ => None,
        };
        match number.filter(|number: &f64| number.is_finite() && *number > 0.0) {
            Some(number) => Some(number),
            None => value.expected("a number above zero"),
        }
    }

    /// A text such as `500ms`.
    pub fn duration(&mut self, key: &'static str) -> Option<Duration> {
        self.take_value(key)?.duration()
    }

    /// A text such as `64KiB`.
    pub fn bytes(&mut self, key: &'static str) -> Option<u64> {
        let value = self.take_value(key)?;
        match &value.content {
            DeValue::String(text) => match parse_byte_size(text) {
                Ok(size) => Some(size.0),
                Err(error) => value.wrong(error),
            },
            _ => value.expected("a size in quotes, such as \"64KiB\""),
        }
    }

    /// A table of that name.
    pub fn table(&mut self, key: &'static str) -> Option<Self> {
        self.take_value(key)?.table()
    }

    /// The tables of an array of tables.
    pub fn tables(&mut self, key: &'static str) -> Vec<Self> {
        let Some(value) = self.take_value(key) else {
            return Vec::new();
        };
        let DeValue::Array(array) = value.content else {
            value.expected::<()>(&format!("tables, each headed by [[{key}]]"));
            return Vec::new();
        };
        let tables = array.into_iter().zip(1..).filter_map(|(item, number)| {
            let item = Value {
                span: item.span(),
                content: item.into_inner(),
                key: format!("{}[{number}]", value.key),
                problems: Rc::clone(&value.problems),
            };
            item.table()
        });
        tables.collect()
    }

    /// Whether no key is left that was not taken.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All pairs that are left, whose keys are names of header fields. Case does not distinguish those, so a name in two
    /// spellings is reported: which of the values would hold is not for the order of the keys to decide.
    pub fn rest_of_fields(&mut self) -> Vec<(String, Value<'i>)> {
        let mut fields = self.rest();
        // As they are written.
        fields.sort_by_key(|(_, value)| value.span.start);
        for (at, (name, value)) in fields.iter().enumerate() {
            let mut before = fields.iter().take(at);
            if let Some((known, _)) = before.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                let message = format!("`{known}` and `{name}` are the same header field");
                value.wrong_with::<()>(message, Some("give it once".to_owned()));
            }
        }
        fields
    }

    /// All pairs that are left.
    pub fn rest(&mut self) -> Vec<(String, Value<'i>)> {
        let entries = std::mem::take(&mut self.entries);
        entries
            .into_iter()
            .map(|(key, value)| {
                let key = key.into_inner().into_owned();
                let span = value.span();
                let value = Value {
                    content: value.into_inner(),
                    span,
                    key: format!("{}{key}", self.path),
                    problems: Rc::clone(&self.problems),
                };
                (key, value)
            })
            .collect()
    }

    /// Remarks on the table as a whole, which is no problem.
    pub fn note(&self, message: impl ToString) {
        let path = self.path.trim_end_matches('.');
        self.problems.borrow_mut().note(&self.span, path, message);
    }

    /// Notes that something is wrong with the table as a whole.
    pub fn wrong(&mut self, message: impl ToString, hint: Option<String>) {
        let path = self.path.trim_end_matches('.').to_owned();
        self.problems
            .borrow_mut()
            .add(&self.span, &path, message, hint);
    }

    /// Notes that `key` is not there; [`Table::finish`] drops the note again where the key is misspelled.
    pub fn missing(&mut self, key: &str, hint: &str) {
        self.wrong(is_missing(key), Some(hint.to_owned()));
    }

    /// Notes every key that was not taken.
    pub fn finish(mut self) {
        let entries = std::mem::take(&mut self.entries);
        for (key, _) in entries {
            let span = key.span();
            let name = key.into_inner();
            let hint = match nearest(&name, &self.known) {
                Some(near) => {
                    let table = self.path.trim_end_matches('.');
                    self.problems
                        .borrow_mut()
                        .remove(&self.span, table, &is_missing(near));
                    format!("did you mean `{near}`?")
                }
                None => format!("known here: {}", self.known.join(", ")),
            };
            let path = format!("{}{name}", self.path);
            self.problems
                .borrow_mut()
                .add(&span, &path, "unknown key", Some(hint));
        }
    }
}

fn is_missing(key: &str) -> String {
    format!("`{key}` is missing")
}

impl<'i> Value<'i> {
    /// Its text; anything else is noted as a mistake.
    pub fn text(self) -> Option<String> {
        match self.content {
            DeValue::String(text) => Some(text.into_owned()),
            _ => self.expected_text(),
        }
    }

    /// A text such as `500ms`.
    pub fn duration(self) -> Option<Duration> {
        match &self.content {
            DeValue::String(text) => match parse_duration(text) {
                Ok(duration) => Some(duration),
                Err(error) => self.wrong(error),
            },
            _ => self.expected("a duration in quotes, such as \"10s\""),
        }
    }

    /// One text or several; `mistake` says what is wrong with one, if anything is.
    pub fn texts_with(self, mistake: impl Fn(&str) -> Option<String>) -> Option<Vec<String>> {
        let values = match self.content {
            DeValue::Array(array) => array
                .into_iter()
                .map(|item| Value {
                    span: item.span(),
                    content: item.into_inner(),
                    key: self.key.clone(),
                    problems: Rc::clone(&self.problems),
                })
                .collect(),
            _ => vec![self],
        };
        let texts = values.into_iter().map(|value| {
            if let Some(mistake) = mistake(as_text(&value)?) {
                return value.wrong(mistake);
            }
            value.text()
        });
        // Every mistake is noted before it is known that there was one.
        texts.collect::<Vec<_>>().into_iter().collect()
    }

    /// A table, or `true` for one without keys.
    pub fn table_or_true(self) -> Option<Table<'i>> {
        match self.content {
            DeValue::Boolean(true) => Some(Table {
                entries: DeTable::new(),
                span: self.span,
                path: format!("{}.", self.key),
                known: Vec::new(),
                given: Vec::new(),
                problems: self.problems,
            }),
            DeValue::Table(_) => self.table(),
            _ => self.expected("true or a table"),
        }
    }

    /// Whether it is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.content, DeValue::Table(_))
    }

    /// The text, if it is one; anything else is no mistake.
    pub fn as_str(&self) -> Option<&str> {
        match &self.content {
            DeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// Its elements, or itself if it is no array.
    pub fn elements(self) -> Vec<Self> {
        let DeValue::Array(array) = self.content else {
            return vec![self];
        };
        let elements = array.into_iter().zip(1..).map(|(item, number)| Value {
            span: item.span(),
            content: item.into_inner(),
            key: format!("{}[{number}]", self.key),
            problems: Rc::clone(&self.problems),
        });
        elements.collect()
    }

    /// Whether it is `true`.
    pub fn is_true(&self) -> bool {
        matches!(self.content, DeValue::Boolean(true))
    }

    /// Whether it is `false`.
    pub fn is_false(&self) -> bool {
        matches!(self.content, DeValue::Boolean(false))
    }

    /// Its table; anything else is noted as a mistake.
    pub fn table(self) -> Option<Table<'i>> {
        match self.content {
            DeValue::Table(entries) => Some(Table {
                entries,
                span: self.span,
                path: format!("{}.", self.key),
                known: Vec::new(),
                given: Vec::new(),
                problems: self.problems,
            }),
            _ => self.expected("a table"),
        }
    }

    /// Remarks on the value, which is no problem.
    pub fn note(&self, message: impl ToString) {
        let mut problems = self.problems.borrow_mut();
        problems.note(&self.span, &self.key, message);
    }

    /// A whole number within `range`.
    pub fn whole(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let number = match &self.content {
            DeValue::Integer(integer) => {
                u64::from_str_radix(integer.as_str(), integer.radix()).ok()
            }
            _ => None,
        };
        number.filter(|it| range.contains(it)).or_else(|| {
            let (least, most) = (range.start(), range.end());
            self.expected(&format!("a whole number from {least} to {most}"))
        })
    }

    /// The value of `result`; an error is recorded at this place.
    pub fn check<T, E: ToString>(&self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => self.wrong(error),
        }
    }

    /// Notes that something is wrong with the value.
    pub fn wrong<T>(&self, message: impl ToString) -> Option<T> {
        self.wrong_with(message, None)
    }

    /// The same, and what to write instead.
    pub fn wrong_with<T>(&self, message: impl ToString, hint: Option<String>) -> Option<T> {
        self.problems
            .borrow_mut()
            .add(&self.span, &self.key, message, hint);
        None
    }

    /// The value by itself, without its place. Numbers that are too large become texts.
    pub fn to_toml(&self) -> toml::Value {
        plain(&self.content)
    }

    fn expected_text<T>(&self) -> Option<T> {
        let hint = match self.content {
            DeValue::Table(_) => "this is a table; write JSON as text: '{ \"a\": 1 }'",
            DeValue::Array(_) => "this is a list; write JSON as text: '[1, 2]'",
            _ => return self.expected("text in quotes"),
        };
        self.wrong_with("must be text in quotes", Some(hint.to_owned()))
    }

    fn expected<T>(&self, what: &str) -> Option<T> {
        self.wrong(format!("must be {what}"))
    }
}

fn plain(value: &DeValue<'_>) -> toml::Value {
    match value {
        DeValue::String(text) => toml::Value::String(text.to_string()),
        DeValue::Boolean(boolean) => toml::Value::Boolean(*boolean),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or_else(
                |_| toml::Value::String(integer.to_string()),
                toml::Value::Integer,
            ),
        DeValue::Float(float) => float.as_str().parse().map_or_else(
            |_| toml::Value::String(float.to_string()),
            toml::Value::Float,
        ),
        DeValue::Datetime(datetime) => toml::Value::String(datetime.to_string()),
        DeValue::Array(array) => {
            toml::Value::Array(array.iter().map(|item| plain(item.get_ref())).collect())
        }
        DeValue::Table(table) => toml::Value::Table(plain_table(table)),
    }
}

fn plain_table(table: &DeTable<'_>) -> toml::Table {
    let entries = table.iter().map(|(key, value)| {
        let key = key.get_ref().clone().into_owned();
        (key, plain(value.get_ref()))
    });
    entries.collect()
}

/// The place and the text of a value that is text.
pub fn as_text<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    match &value.content {
        DeValue::String(text) => Some(text),
        _ => value.expected_text(),
    }
}

/// The known name that was probably meant by another one.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known), *known))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    near.map(|(_, near)| near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_in_two_spellings_is_reported() {
        let mut document = Document::parse("[headers]\nX-A = \"1\"\ny = \"2\"\nx-a = \"3\"");
        let mut root = document.root();
        let mut headers = root.table("headers").unwrap();
        let fields = headers.rest_of_fields();
        let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["X-A", "y", "x-a"]);
        drop((fields, headers));
        root.finish();
        let problems = document.into_problems();
        let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["headers.x-a: `X-A` and `x-a` are the same header field"]
        );
        assert_eq!(problems[0].line, 4);
    }

    #[test]
    fn a_misspelled_key_is_not_missing_too() {
        for (text, expected) in [
            ("adress = \"a\"", vec!["adress: unknown key"]),
            (
                "other = \"a\"",
                vec!["`address` is missing", "other: unknown key"],
            ),
        ] {
            let mut document = Document::parse(text);
            let mut root = document.root();
            assert!(root.text("address").is_none());
            root.missing("address", "such as address = \"127.0.0.1:8080\"");
            root.finish();
            let problems = document.into_problems();
            let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        }
    }
}
