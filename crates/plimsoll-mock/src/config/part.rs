//! `request.multipart`: conditions on the parts of multipart content.

use plimsoll_model::document::{Table, Value};

use super::set::Context;
use super::when::{compile, field};
use crate::rules::condition::Condition;
use crate::rules::condition::part::PartTest;

/// A table, or a list of tables of which each is one condition; nothing if one is wrong.
pub(super) fn tests(value: Value<'_>, context: &Context) -> Option<Vec<Condition>> {
    let tests = value
        .elements()
        .into_iter()
        .map(|value| Some(Condition::Part(Box::new(test(value.table()?, context)?))));
    // Every error is noted before it is known that there was one.
    tests.collect::<Vec<_>>().into_iter().collect()
}

/// `name`, `file_name` and `every`, beside what `when` has.
fn test(mut table: Table<'_>, context: &Context) -> Option<PartTest> {
    let mut is_whole = true;
    let mut of_text = |value: Option<Value<'_>>| {
        let test = value.map(field);
        is_whole &= !matches!(test, Some(None));
        test.flatten()
    };
    let name = of_text(table.take_value("name"));
    let file_name = of_text(table.take_value("file_name"));
    let is_every = table.boolean("every").unwrap_or(false);
    let conditions = if table.is_empty() {
        if name.is_none() && file_name.is_none() && is_whole {
            table.wrong("no condition", Some("such as name = \"file\"".to_owned()));
            is_whole = false;
        }
        table.finish();
        Some(Vec::new())
    } else {
        compile(table, context)
    };
    conditions.filter(|_| is_whole).map(|conditions| PartTest {
        name,
        file_name,
        conditions,
        is_every,
    })
}
