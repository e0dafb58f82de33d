//! Swagger 2.0 documents, converted to OpenAPI 3.0 as they are read.
//!
//! Definitions stay where the document has them, so references to schemas need no change. Operations, parameters
//! and responses that are references are replaced by what they refer to, because their form differs.

use serde_json::{Value, json};

use super::api::Object;
use super::schema::Document;
use super::{METHODS, parameters_of, walk};
use crate::{Place, Remark};

/// The keys of a parameter or a header that describe its value.
const SCHEMA_KEYS: [&str; 19] = [
    "type",
    "format",
    "items",
    "default",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "nullable",
    "example",
    "readOnly",
];

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

/// True if a document is one of version 2.0.
pub(super) fn is_swagger(root: &Value) -> bool {
    match root.get("swagger") {
        Some(Value::String(version)) => version == "2.0" || version == "2",
        Some(Value::Number(version)) => version.as_f64() == Some(2.0),
        _ => false,
    }
}

/// The same document in the words of OpenAPI 3.0.
///
/// - `left_out`: receives references that lead nowhere.
pub(super) fn converted(mut root: Value, left_out: &mut Vec<Remark>) -> Value {
    walk::objects(&mut root, &mut convert_schema);
    let paths = Converter {
        document: Document::new(&root),
        root: &root,
        left_out,
    }
    .paths();
    let servers = server(&root);
    let schemes = root.get("securityDefinitions").and_then(Value::as_object);
    let schemes: Object = schemes
        .into_iter()
        .flatten()
        .map(|(name, scheme)| (name.clone(), security_scheme(scheme)))
        .collect();
    if let Some(document) = root.as_object_mut() {
        for key in [
            "swagger", "host", "basePath", "schemes", "consumes", "produces",
        ] {
            document.remove(key);
        }
        document.insert("openapi".to_owned(), json!("3.0.3"));
        document.insert("paths".to_owned(), Value::Object(paths));
        document.insert(
            "components".to_owned(),
            json!({ "securitySchemes": schemes }),
        );
        document.extend(servers.map(|url| ("servers".to_owned(), json!([{ "url": url }]))));
    }
    root
}

fn convert_schema(object: &mut Object) {
    if let Some(nullable) = object.remove("x-nullable") {
        object.insert("nullable".to_owned(), nullable);
    }
    if object.get("type") == Some(&json!("file")) {
        object.insert("type".to_owned(), json!("string"));
        object.insert("format".to_owned(), json!("binary"));
    }
    if object.get("discriminator").is_some_and(Value::is_string) {
        object.remove("discriminator");
    }
}

fn server(root: &Value) -> Option<String> {
    let text = |key: &str| root.get(key).and_then(Value::as_str);
    let base = text("basePath").unwrap_or_default();
    let Some(host) = text("host") else {
        return (!base.is_empty()).then(|| base.to_owned());
    };
    let schemes = root.get("schemes").and_then(Value::as_array);
    let mut schemes = schemes.into_iter().flatten().filter_map(Value::as_str);
    let scheme = schemes.find(|it| ["http", "https"].contains(it));
    Some(format!("{}://{host}{base}", scheme.unwrap_or("http")))
}

fn security_scheme(scheme: &Value) -> Value {
    if scheme.get("type") == Some(&json!("basic")) {
        return json!({ "type": "http", "scheme": "basic" });
    }
    scheme.clone()
}

struct Converter<'a, 'l> {
    document: Document<'a>,
    root: &'a Value,
    left_out: &'l mut Vec<Remark>,
}

impl<'a> Converter<'a, '_> {
    fn paths(mut self) -> Object {
        let root = self.root;
        let paths = root.get("paths").and_then(Value::as_object);
        let mut converted = Object::new();
        for (path, item) in paths.into_iter().flatten() {
            let at = format!("paths.{path}");
            let Some(item) = self.resolve(&at, item) else {
                continue;
            };
            let mut made = Object::new();
            for method in METHODS {
                let at = format!("{at}.{method}");
                let operation = item.get(method);
                if let Some(operation) = operation.and_then(|it| self.resolve(&at, it)) {
                    let operation = self.operation(&at, item, operation);
                    made.insert(method.to_owned(), operation);
                }
            }
            converted.insert(path.clone(), Value::Object(made));
        }
        converted
    }

    fn resolve(&mut self, at: &str, value: &'a Value) -> Option<&'a Value> {
        match self.document.resolve(value) {
            Ok(value) => Some(value),
            Err(reason) => {
                let place = Place::Key(at.to_owned());
                self.left_out.push(Remark::new(place, reason.0));
                None
            }
        }
    }

    fn operation(&mut self, at: &str, item: &'a Value, operation: &'a Value) -> Value {
        let mut made = operation.as_object().cloned().unwrap_or_default();
        for key in ["consumes", "produces", "schemes", "parameters", "responses"] {
            made.remove(key);
        }
        let consumes = self.media_types(operation, "consumes");
        let mut parameters = Vec::new();
        let mut fields = Vec::new();
        for parameter in self.parameters(at, item, operation) {
            match parameter.get("in").and_then(Value::as_str) {
                Some("body") => {
                    made.insert("requestBody".to_owned(), body(parameter, &consumes));
                }
                Some("formData") => fields.push(parameter),
                _ => parameters.push(simple_parameter(parameter)),
            }
        }
        if !fields.is_empty() {
            made.insert("requestBody".to_owned(), form(&fields, &consumes));
        }
        made.insert("parameters".to_owned(), Value::Array(parameters));
        let produces = self.media_types(operation, "produces");
        let responses = operation.get("responses").and_then(Value::as_object);
        let mut all = Object::new();
        for (code, response) in responses.into_iter().flatten() {
            let at = format!("{at}.responses.{code}");
            if let Some(found) = self.resolve(&at, response) {
                all.insert(code.clone(), self::response(found, &produces));
            }
        }
        made.insert("responses".to_owned(), Value::Object(all));
        Value::Object(made)
    }

    /// Those of the operation, then those of its path that it does not override.
    fn parameters(&mut self, at: &str, item: &'a Value, operation: &'a Value) -> Vec<&'a Value> {
        let mut all: Vec<&Value> = Vec::new();
        for (at, parameter) in parameters_of(at, item, operation) {
            let Some(parameter) = self.resolve(&at, parameter) else {
                continue;
            };
            let is_same = |other: &&Value| {
                let same = |key: &str| other.get(key) == parameter.get(key);
                // An operation has one body, whatever its name.
                same("in") && (same("name") || parameter.get("in") == Some(&json!("body")))
            };
            if !all.iter().any(is_same) {
                all.push(parameter);
            }
        }
        all
    }

    /// The media types of an operation, else those of the document.
    fn media_types(&self, operation: &Value, key: &str) -> Vec<String> {
        let list = operation.get(key).or_else(|| self.root.get(key));
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

fn body(parameter: &Value, consumes: &[String]) -> Value {
    let mut media = Object::new();
    for (from, to) in [("schema", "schema"), ("x-example", "example")] {
        let value = parameter.get(from).cloned();
        media.extend(value.map(|value| (to.to_owned(), value)));
    }
    let content = content_of(consumes, &Value::Object(media));
    json!({ "required": is_required(parameter), "content": content })
}

fn content_of(kinds: &[String], media: &Value) -> Object {
    if kinds.is_empty() {
        return Object::from_iter([("application/json".to_owned(), media.clone())]);
    }
    let kinds = kinds.iter();
    kinds.map(|kind| (kind.clone(), media.clone())).collect()
}

fn is_required(parameter: &Value) -> bool {
    parameter.get("required") == Some(&json!(true))
}

fn form(fields: &[&Value], consumes: &[String]) -> Value {
    let name = |field: &Value| field.get("name").and_then(Value::as_str).map(str::to_owned);
    let properties = fields
        .iter()
        .filter_map(|field| Some((name(field)?, field_schema(field))));
    let properties: Object = properties.collect();
    let encoding = fields.iter();
    let encoding =
        encoding.filter_map(|field| Some((name(field)?, Value::Object(list_style(field)?))));
    let encoding: Object = encoding.collect();
    let required = fields.iter().filter(|field| is_required(field));
    let required: Vec<String> = required.filter_map(|field| name(field)).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let has_file = fields
        .iter()
        .any(|field| field.get("format") == Some(&json!("binary")));
    let mut kinds: Vec<String> = consumes
        .iter()
        .filter(|kind| [FORM, MULTIPART].contains(&kind.as_str()))
        .filter(|kind| !has_file || *kind == MULTIPART)
        .cloned()
        .collect();
    if kinds.is_empty() {
        kinds.push(if has_file { MULTIPART } else { FORM }.to_owned());
    }
    json!({ "required": !required.is_empty(), "content": content_of(&kinds, &json!({ "schema": schema, "encoding": encoding })) })
}

/// The schema of a field of a form, which may be empty unless the document says otherwise.
fn field_schema(field: &Value) -> Value {
    let mut schema = schema_of(field);
    let is_text = field.get("type") == Some(&json!("string"));
    let needs_value = field.get("allowEmptyValue") == Some(&json!(false));
    if is_text && needs_value && schema.get("minLength").is_none() {
        schema["minLength"] = json!(1);
    }
    schema
}

/// The form of a list's elements, if it is one.
fn list_style(parameter: &Value) -> Option<Object> {
    if parameter.get("type") != Some(&json!("array")) {
        return None;
    }
    let format = parameter.get("collectionFormat").and_then(Value::as_str);
    let (style, explodes) = match format {
        Some("multi") => (None, true),
        Some("ssv") => (Some("spaceDelimited"), false),
        Some("pipes") => (Some("pipeDelimited"), false),
        _ => (None, false),
    };
    let mut made = Object::from_iter([("explode".to_owned(), json!(explodes))]);
    made.extend(style.map(|style| ("style".to_owned(), json!(style))));
    Some(made)
}

/// A parameter in the path, the query or the header.
fn simple_parameter(parameter: &Value) -> Value {
    let mut made = Object::new();
    for key in ["name", "in", "required", "description", "allowEmptyValue"] {
        let value = parameter.get(key).cloned();
        made.extend(value.map(|value| (key.to_owned(), value)));
    }
    let example = parameter.get("x-example").cloned();
    made.extend(example.map(|example| ("example".to_owned(), example)));
    made.insert("schema".to_owned(), schema_of(parameter));
    made.extend(list_style(parameter).into_iter().flatten());
    Value::Object(made)
}

/// The schema of a parameter or a header, whose keywords stand beside its name.
fn schema_of(described: &Value) -> Value {
    let keys = SCHEMA_KEYS.iter();
    let keys = keys.filter_map(|key| Some(((*key).to_owned(), described.get(key)?.clone())));
    Value::Object(keys.collect())
}

fn response(response: &Value, produces: &[String]) -> Value {
    let mut made = Object::new();
    let description = response.get("description").cloned();
    made.insert(
        "description".to_owned(),
        description.unwrap_or_else(|| json!("")),
    );
    let headers = response.get("headers").and_then(Value::as_object);
    let headers: Object = headers
        .into_iter()
        .flatten()
        .map(|(name, header)| (name.clone(), json!({ "schema": schema_of(header) })))
        .collect();
    made.insert("headers".to_owned(), Value::Object(headers));
    let mut content = Object::new();
    if let Some(schema) = response.get("schema") {
        content = content_of(produces, &json!({ "schema": schema }));
    }
    let examples = response.get("examples").and_then(Value::as_object);
    for (kind, example) in examples.into_iter().flatten() {
        // One for every media type is one of each that there is.
        if kind == "*/*" && !content.is_empty() {
            for (_, media) in &mut content {
                media["example"] = example.clone();
            }
            continue;
        }
        let media = content.entry(kind.clone()).or_insert_with(|| json!({}));
        media["example"] = example.clone();
    }
    if !content.is_empty() {
        made.insert("content".to_owned(), Value::Object(content));
    }
    Value::Object(made)
}

#[cfg(test)]
mod tests;
