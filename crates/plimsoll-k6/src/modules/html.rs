//! k6/html: trees of pages for `js/html.js`.

use plimsoll_script::js::{self, Array, Object};

use super::Adder;
use crate::html::{Content, parse};

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    // Of each node: the place of its parent, its kind, and what it has.
    adder.add("parseHtml", |_, ctx, arguments| {
        let made = Array::new(ctx.clone())?;
        for (place, node) in parse(&arguments.text(0)?).into_iter().enumerate() {
            let at = place * 4;
            made.set(at, node.parent as f64)?;
            let (kind, text) = match node.content {
                Content::Document => (9, String::new()),
                Content::Doctype(name) => (10, name),
                Content::Comment(text) => (8, text),
                Content::Text(text) => (3, text),
                Content::Element { name, attributes } => {
                    let object = Object::new(ctx.clone())?;
                    for (key, value) in attributes {
                        object.set(key, value)?;
                    }
                    made.set(at + 3, object)?;
                    (1, name)
                }
            };
            made.set(at + 1, kind)?;
            made.set(at + 2, text)?;
        }
        Ok(made)
    })
}
