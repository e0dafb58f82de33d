//! `request.template`: conditions on what templates come to.

use plimsoll_model::document::{Table, Value, as_text};

use super::set::Context;
use super::when::field_of;
use crate::rules::condition::Condition;
use crate::rules::condition::template::{Expected, TemplateTest};
use crate::template::{Chance, Dialect, Form, TextTemplate};

/// A table, or a list of tables of which each is one condition; nothing if one is wrong.
pub(super) fn tests(value: Value<'_>, context: &Context) -> Option<Vec<Condition>> {
    let tests = value.elements().into_iter().map(|value| {
        Some(Condition::Template(Box::new(test(
            value.table()?,
            context,
        )?)))
    });
    // Every error is noted before it is known that there was one.
    tests.collect::<Vec<_>>().into_iter().collect()
}

/// `text`, whose templates those are (`dialect`), and a test: `same` with another template, or `op` and `value`.
fn test(mut table: Table<'_>, context: &Context) -> Option<TemplateTest> {
    let dialect = match table.take_value("dialect") {
        None => None,
        Some(value) => {
            let name = as_text(&value)?;
            let dialect = Dialect::named(name);
            let unknown = || format!("`{name}` is neither wiremock nor mockoon");
            Some(value.check(dialect.ok_or_else(unknown))?)
        }
    };
    let template = |value: &Value<'_>| {
        let text = as_text(value)?;
        let chance = Chance::default();
        let written = match dialect {
            None => TextTemplate::new(text, Form::Text, chance, &[]),
            Some(dialect) => {
                TextTemplate::foreign(text, dialect, Form::Text, &chance, &[], &context.data)
            }
        };
        Some((text.to_owned(), value.check(written)?))
    };
    let given = table.take_value("text");
    if given.is_none() {
        table.missing("text", "the template");
    }
    let written = given.as_ref().and_then(template);
    let expected = match table.take_value("same") {
        Some(other) => {
            table.finish();
            template(&other).map(|(text, written)| Expected::Same(text, written))
        }
        None => field_of(table).map(Expected::Test),
    };
    let (text, written) = written?;
    Some(TemplateTest {
        text,
        written,
        expected: expected?,
    })
}
