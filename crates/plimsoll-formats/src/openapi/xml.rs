//! Values as XML, with the names, attributes and wrappers that their schemas give (OpenAPI 3.0, section 4.7.26).

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use serde_json::Value;

use super::schema::Document;
use super::text_of;

/// The depth to which schemas are followed for the description of a property.
const DEEPEST: u32 = 24;

/// The name of the outermost element, where neither the schema nor a reference to it gives one.
const ROOT: &str = "root";

/// A value as an XML document.
pub(super) fn text(document: &Document<'_>, schema: &Value, value: &Value) -> String {
    let mut maker = Maker {
        document,
        writer: Writer::new(Vec::new()),
    };
    let name = maker.own_name(schema).unwrap_or_else(|| ROOT.to_owned());
    let written = maker.document(schema, value, &name);
    written.expect("a vector takes all bytes");
    String::from_utf8_lossy(&maker.writer.into_inner()).into_owned()
}

struct Maker<'d, 'a> {
    document: &'d Document<'a>,
    writer: Writer<Vec<u8>>,
}

impl Maker<'_, '_> {
    fn document(&mut self, schema: &Value, value: &Value, name: &str) -> io::Result<()> {
        let declaration = BytesDecl::new("1.0", Some("UTF-8"), None);
        self.writer.write_event(Event::Decl(declaration))?;
        match value {
            // A document has one outermost element, so a list is always wrapped.
            Value::Array(items) => self.wrapped(schema, items, name),
            value => self.element(schema, value, name),
        }
    }

    fn element(&mut self, schema: &Value, value: &Value, name: &str) -> io::Result<()> {
        let mut start = self.start(schema, name);
        let end = BytesEnd::new(name);
        let mut children = Vec::new();
        if let Value::Object(object) = value {
            for (key, value) in object {
                let property = self.property(schema, key, DEEPEST);
                if self.xml(&property, "attribute") == Some(Value::Bool(true)) {
                    let name = self.name(&property, key);
                    start.push_attribute((name.as_str(), text_of(value).as_str()));
                } else {
                    children.push((key, property, value));
                }
            }
        }
        self.writer.write_event(Event::Start(start))?;
        for (key, property, value) in children {
            self.child(&property, value, key)?;
        }
        match value {
            Value::Object(_) | Value::Null => {}
            value => {
                let text = text_of(value);
                self.writer
                    .write_event(Event::Text(BytesText::new(&text)))?;
            }
        }
        self.writer.write_event(Event::End(end))
    }

    /// A property of an object: a list is an element for each item, within one of its own if it is wrapped.
    fn child(&mut self, schema: &Value, value: &Value, key: &str) -> io::Result<()> {
        let name = self.name(schema, key);
        let Value::Array(items) = value else {
            return self.element(schema, value, &name);
        };
        if self.xml(schema, "wrapped") == Some(Value::Bool(true)) {
            return self.wrapped(schema, items, &name);
        }
        let of_items = self.items(schema);
        let name = match self.xml(&of_items, "name") {
            Some(_) => self.name(&of_items, key),
            None => name,
        };
        items
            .iter()
            .try_for_each(|item| self.element(&of_items, item, &name))
    }

    fn wrapped(&mut self, schema: &Value, items: &[Value], name: &str) -> io::Result<()> {
        let start = self.start(schema, name);
        self.writer.write_event(Event::Start(start))?;
        let of_items = self.items(schema);
        let item_name = self.own_name(&of_items).unwrap_or_else(|| name.to_owned());
        for item in items {
            self.element(&of_items, item, &item_name)?;
        }
        self.writer.write_event(Event::End(BytesEnd::new(name)))
    }

    fn start<'n>(&self, schema: &Value, name: &'n str) -> BytesStart<'n> {
        let mut start = BytesStart::new(name);
        if let Some(Value::String(namespace)) = self.xml(schema, "namespace") {
            let attribute = match self.xml(schema, "prefix") {
                Some(Value::String(prefix)) => format!("xmlns:{}", valid(&prefix)),
                _ => "xmlns".to_owned(),
            };
            start.push_attribute((attribute.as_str(), namespace.as_str()));
        }
        start
    }

    /// The name that a schema or a reference to it gives.
    fn own_name(&self, schema: &Value) -> Option<String> {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let of_reference = reference
            .and_then(|it| {
                it.strip_prefix("#/components/schemas/")
                    .or(it.strip_prefix("#/definitions/"))
            })
            .filter(|name| !name.contains('/'));
        match (self.xml(schema, "name"), of_reference) {
            (None, None) => None,
            (_, of_reference) => Some(self.name(schema, of_reference.unwrap_or(ROOT))),
        }
    }

    /// The name of an element or an attribute, with its prefix.
    fn name(&self, schema: &Value, key: &str) -> String {
        let name = match self.xml(schema, "name") {
            Some(Value::String(name)) => valid(&name),
            _ => valid(key),
        };
        match self.xml(schema, "prefix") {
            Some(Value::String(prefix)) => format!("{}:{name}", valid(&prefix)),
            _ => name,
        }
    }

    /// The XML form of a schema.
    fn xml(&self, schema: &Value, key: &str) -> Option<Value> {
        let schema = self.document.resolve(schema).ok()?;
        schema.get("xml")?.get(key).cloned()
    }

    fn items(&self, schema: &Value) -> Value {
        let schema = self.document.resolve(schema).ok();
        let items = schema.and_then(|schema| schema.get("items"));
        items.cloned().unwrap_or_default()
    }

    /// The schema of a property, which may stand in a part of `allOf` or an alternative; null if there is none.
    fn property(&self, schema: &Value, key: &str, depth: u32) -> Value {
        let Ok(schema) = self.document.resolve(schema) else {
            return Value::Null;
        };
        let own = schema.get("properties").and_then(|all| all.get(key));
        if let Some(own) = own {
            return own.clone();
        }
        let parts = ["allOf", "oneOf", "anyOf"].into_iter();
        let parts = parts
            .filter_map(|key| schema.get(key)?.as_array())
            .flatten();
        let Some(depth) = depth.checked_sub(1) else {
            return Value::Null;
        };
        let mut found = parts.map(|part| self.property(part, key, depth));
        found.find(|it| !it.is_null()).unwrap_or_default()
    }
}

/// A name whose characters XML allows, others replaced by `_`.
fn valid(name: &str) -> String {
    let is_start = |it: char| it.is_alphabetic() || it == '_';
    let is_inner = |it: char| is_start(it) || it.is_ascii_digit() || it == '-' || it == '.';
    let mut made: String = name
        .chars()
        .map(|it| if is_inner(it) { it } else { '_' })
        .collect();
    if !made.starts_with(is_start) {
        made.insert(0, '_');
    }
    made
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_attributes_namespaces_and_wrappers_are_those_of_the_schema() {
        let root = json!({"components": {"schemas": {
            "Pet": {"xml": {"name": "pet", "prefix": "p", "namespace": "urn:pets"}, "allOf": [
                {"properties": {"id": {"type": "integer", "xml": {"attribute": true}}}},
                {"properties": {
                    "name": {"xml": {"name": "title"}},
                    "tags": {"type": "array", "xml": {"wrapped": true}, "items": {"xml": {"name": "tag"}}},
                    "photos": {"type": "array", "items": {"xml": {"name": "photo"}}},
                    "scores": {"type": "array", "items": {}}
                }}
            ]},
            "Pets": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
            "Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}]}
        }}});
        let document = Document::of_responses(&root);
        let made = |name: &str, value: &Value| {
            let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
            let text = text(&document, &schema, value);
            text.strip_prefix(r#"<?xml version="1.0" encoding="UTF-8"?>"#)
                .map(str::to_owned)
                .unwrap()
        };
        let pet = json!({"id": 7, "name": "a<b & \"c\"", "tags": ["x", "y"], "photos": ["u", "v"],
            "scores": [1, 2.50], "1 x": null});
        assert_eq!(
            made("Pet", &pet),
            "<p:pet xmlns:p=\"urn:pets\" id=\"7\"><title>a&lt;b &amp; &quot;c&quot;</title>\
             <tags><tag>x</tag><tag>y</tag></tags><photo>u</photo><photo>v</photo>\
             <scores>1</scores><scores>2.5</scores><_1_x></_1_x></p:pet>"
        );
        assert_eq!(
            made("Pets", &json!([{"id": "\"<"}])),
            "<Pets><p:pet xmlns:p=\"urn:pets\" id=\"&quot;&lt;\"></p:pet></Pets>"
        );
        assert_eq!(made("Loop", &json!({"a": 1})), "<Loop><a>1</a></Loop>");
        assert_eq!(made("Missing", &json!(true)), "<Missing>true</Missing>");
    }
}
