//! `request.body.xpath` and `equal_xml`: conditions on XML.

use plimsoll_model::document::{Table, Value, as_text};

use super::when::field;
use crate::rules::condition::Condition;
use crate::rules::condition::equal_xml::EqualXml;
use crate::rules::condition::xpath::XPath;

/// The conditions of `xpath`, with the prefixes of `xpath_namespaces`, and of `equal_xml`; nothing if one is wrong.
pub(super) fn compile(body: &mut Table<'_>) -> Option<Vec<Condition>> {
    let mut namespaces = vec![(
        "xml".to_owned(),
        "http://www.w3.org/XML/1998/namespace".to_owned(),
    )];
    let mut is_whole = true;
    for (prefix, value) in rest(body.table("xpath_namespaces")) {
        match as_text(&value) {
            Some(uri) => namespaces.push((prefix, uri.to_owned())),
            None => is_whole = false,
        }
    }
    let mut conditions = Vec::new();
    for (expression, value) in rest(body.table("xpath")) {
        let path = value.check(XPath::new(&expression, &namespaces));
        let test = field(value);
        match path.zip(test) {
            Some((path, test)) => conditions.push(Condition::XPath(Box::new(path), test)),
            None => is_whole = false,
        }
    }
    if let Some(value) = body.take_value("equal_xml") {
        match equal(value) {
            Some(condition) => conditions.push(condition),
            None => is_whole = false,
        }
    }
    is_whole.then_some(conditions)
}

/// XML, or `{ value, ignore_order }`.
fn equal(value: Value<'_>) -> Option<Condition> {
    let (value, ignores_order) = if value.is_table() {
        let mut table = value.table()?;
        let ignores_order = table.boolean("ignore_order").unwrap_or(false);
        let value = table.take_value("value");
        if value.is_none() {
            table.missing("value", "the XML that the content must be");
        }
        table.finish();
        (value?, ignores_order)
    } else {
        (value, false)
    };
    let text = as_text(&value)?;
    let equal = value.check(EqualXml::new(text, ignores_order))?;
    Some(Condition::EqualXml(Box::new(equal)))
}

fn rest(table: Option<Table<'_>>) -> Vec<(String, Value<'_>)> {
    table.map(|mut table| table.rest()).unwrap_or_default()
}
