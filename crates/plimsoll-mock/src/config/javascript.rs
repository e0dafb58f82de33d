//! `respond.javascript`: a function that answers.

use plimsoll_model::document::{Value, as_text};

use super::set::Context;
use crate::script::{MOST_TIME, Script, TIME, Text};

/// A file, or `{ file }` or `{ text }` with `time`.
///
/// - `names`: of segments of the path, with their numbers.
pub(super) fn compile(
    value: Value<'_>,
    context: &Context,
    names: &[(String, usize)],
) -> Option<Script> {
    if !value.is_table() {
        let file = as_text(&value)?.to_owned();
        return load(&value, Text::File(&file), TIME, context, names);
    }
    let mut table = value.table()?;
    let time = table.take_value("time").map(|value| {
        let time = value.check(plimsoll_model::parse_duration(as_text(&value)?))?;
        if time.is_zero() || time > MOST_TIME {
            return value.wrong(format!("must be above 0 and at most {MOST_TIME:?}"));
        }
        Some(time)
    });
    let (file, text) = (table.take_value("file"), table.take_value("text"));
    if file.is_some() == text.is_some() {
        table.wrong(
            "must have one of `file` and `text`",
            Some("such as javascript = { file = \"handler.js\" }".to_owned()),
        );
    }
    table.finish();
    let time = time.unwrap_or(Some(TIME))?;
    match (file, text) {
        (Some(value), None) => load(&value, Text::File(as_text(&value)?), time, context, names),
        (None, Some(value)) => load(&value, Text::Inline(as_text(&value)?), time, context, names),
        _ => None,
    }
}

fn load(
    value: &Value<'_>,
    text: Text<'_>,
    time: std::time::Duration,
    context: &Context,
    names: &[(String, usize)],
) -> Option<Script> {
    let root = context.root.as_deref()?;
    let (script, files) = value.check(Script::load(text, root, time, names))?;
    context.files.borrow_mut().extend(files);
    Some(script)
}
