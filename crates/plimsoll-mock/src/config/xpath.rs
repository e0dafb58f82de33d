//! `request.body.xpath`: what expressions find in XML.

use plimsoll_model::document::{Table, Value, as_text};

use super::when::field;
use crate::condition::Condition;
use crate::condition::xpath::XPath;

/// The conditions of `xpath`, with the prefixes of `xpath_namespaces`; nothing if one is wrong.
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
    is_whole.then_some(conditions)
}

fn rest(table: Option<Table<'_>>) -> Vec<(String, Value<'_>)> {
    table.map(|mut table| table.rest()).unwrap_or_default()
}
