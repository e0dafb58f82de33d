//! The operations of a document.

use serde_json::Value;

use super::standalone::standalone;
use super::{
    ApiResponse, Credential, FormField, ListStyle, MediaContent, Object, ObjectStyle, Operation,
    Parameter, ParameterPlace, RequestBody, RequestContent, ServiceRequest,
};
use crate::openapi::schema::{Document, Unsupported};
use crate::openapi::{METHODS, parameters_of, text_of};
use crate::{Place, Remark};

/// Reads the operations of a document.
pub(super) struct Reader<'a> {
    pub(super) root: &'a Value,
    pub(super) document: Document<'a>,
    pub(super) left_out: &'a mut Vec<Remark>,
}

impl Reader<'_> {
    pub(super) fn operations(&mut self) -> Vec<Operation> {
        let mut operations = Vec::new();
        let paths = self.root.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten() {
            if !path.starts_with('/') {
                continue;
            }
            let item = match self.document.resolve(item) {
                Ok(item) => item.clone(),
                Err(Unsupported(reason)) => {
                    let place = Place::Key(format!("paths.{path}"));
                    self.left_out.push(Remark::new(place, reason));
                    continue;
                }
            };
            for method in METHODS {
                let Some(operation) = item.get(method) else {
                    continue;
                };
                let at = format!("paths.{path}.{method}");
                if let Some(operation) = self.resolve(&at, operation) {
                    let operation = self.operation(path, method, &item, &operation);
                    operations.push(operation);
                }
            }
        }
        operations
    }

    fn operation(
        &mut self,
        path: &str,
        method: &str,
        item: &Value,
        operation: &Value,
    ) -> Operation {
        let at = format!("paths.{path}.{method}");
        let id = operation.get("operationId").and_then(Value::as_str);
        Operation {
            id: id.map(str::to_owned),
            method: method.to_ascii_uppercase(),
            path: path.to_owned(),
            parameters: self.parameters(&at, item, operation),
            body: self.body(&at, operation),
            responses: self.responses(&at, operation),
            security: self.security(&at, operation),
            callbacks: self.callbacks(&at, operation),
        }
    }

    /// The webhooks of the document (OpenAPI 3.1, section 4.8.1.1).
    pub(super) fn webhooks(&mut self) -> Vec<ServiceRequest> {
        let webhooks = self.root.get("webhooks").and_then(Value::as_object);
        let webhooks = webhooks.into_iter().flatten();
        let webhooks = webhooks.flat_map(|(name, item)| {
            let at = format!("webhooks.{name}");
            self.service_requests(&at, name, "", item)
        });
        webhooks.collect()
    }

    fn callbacks(&mut self, at: &str, operation: &Value) -> Vec<ServiceRequest> {
        let callbacks = operation.get("callbacks").and_then(Value::as_object);
        let mut all = Vec::new();
        for (name, callback) in callbacks.into_iter().flatten() {
            let at = format!("{at}.callbacks.{name}");
            let Some(callback) = self.resolve(&at, callback) else {
                continue;
            };
            let urls = callback.as_object().into_iter().flatten();
            for (url, item) in urls.filter(|(url, _)| !url.starts_with("x-")) {
                let at = format!("{at}.{url}");
                all.extend(self.service_requests(&at, name, url, item));
            }
        }
        all
    }

    /// The requests of a path item that the service makes itself.
    fn service_requests(
        &mut self,
        at: &str,
        name: &str,
        url: &str,
        item: &Value,
    ) -> Vec<ServiceRequest> {
        let Some(item) = self.resolve(at, item) else {
            return Vec::new();
        };
        let mut requests = Vec::new();
        for method in METHODS {
            let at = format!("{at}.{method}");
            let operation = item.get(method);
            let Some(operation) = operation.and_then(|it| self.resolve(&at, it)) else {
                continue;
            };
            let body = operation.get("requestBody");
            let body = body.and_then(|body| self.resolve(&format!("{at}.requestBody"), body));
            requests.push(ServiceRequest {
                name: name.to_owned(),
                method: method.to_ascii_uppercase(),
                url: url.to_owned(),
                headers: self.header_parameters(&at, &item, &operation),
                content: body.map(|body| self.contents(&body)).unwrap_or_default(),
            });
        }
        requests
    }

    /// Parameters in the header that have a value.
    fn header_parameters(
        &mut self,
        at: &str,
        item: &Value,
        operation: &Value,
    ) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        for (at, parameter) in parameters_of(at, item, operation) {
            let Some(parameter) = self.resolve(&at, parameter) else {
                continue;
            };
            let text = |key: &str| parameter.get(key).and_then(Value::as_str);
            let value = self.document.value_of(&parameter);
            if let (Some("header"), Some(name), Ok(value)) = (text("in"), text("name"), value) {
                headers.push((name.to_ascii_lowercase(), text_of(&value)));
            }
        }
        headers
    }

    /// The contents of a response or of a request that the service makes.
    fn contents(&self, of: &Value) -> Vec<MediaContent> {
        let content = of.get("content").and_then(Value::as_object);
        let content = content.into_iter().flatten();
        let content = content.map(|(kind, media)| MediaContent {
            kind: kind.clone(),
            examples: self.examples(media),
            schema: media.get("schema").cloned(),
        });
        content.collect()
    }

    /// The target of a reference; dangling references are noted.
    fn resolve(&mut self, at: &str, value: &Value) -> Option<Value> {
        match self.document.resolve(value) {
            Ok(value) => Some(value.clone()),
            Err(Unsupported(reason)) => {
                self.left_out
                    .push(Remark::new(Place::Key(at.to_owned()), reason));
                None
            }
        }
    }

    /// The schema of a parameter or a media type, to be validated by.
    fn schema(&mut self, at: &str, of: &Value) -> Option<Value> {
        let schema = of.get("schema")?;
        match standalone(self.root, schema, "readOnly") {
            Ok(schema) => Some(schema),
            Err(reason) => {
                let place = Place::Key(format!("{at}.schema"));
                let message = format!("{reason}, so nothing is validated by it");
                self.left_out.push(Remark::new(place, message));
                None
            }
        }
    }

    /// Those of the operation, then those of its path that it does not describe anew.
    fn parameters(&mut self, at: &str, item: &Value, operation: &Value) -> Vec<Parameter> {
        let mut parameters: Vec<Parameter> = Vec::new();
        for (at, parameter) in parameters_of(at, item, operation) {
            let Some(parameter) = self.resolve(&at, parameter) else {
                continue;
            };
            let Some(parameter) = self.parameter(&at, &parameter) else {
                continue;
            };
            let is_known = parameters
                .iter()
                .any(|it| it.name == parameter.name && it.place == parameter.place);
            if !is_known {
                parameters.push(parameter);
            }
        }
        parameters
    }

    fn parameter(&mut self, at: &str, parameter: &Value) -> Option<Parameter> {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        let place = match text("in")? {
            "path" => ParameterPlace::Path,
            "query" => ParameterPlace::Query,
            "header" => ParameterPlace::Header,
            "cookie" => ParameterPlace::Cookie,
            _ => return None,
        };
        let name = text("name")?.to_owned();
        // These are described elsewhere (OpenAPI 3.1, section 4.8.12.2).
        let is_elsewhere = ["accept", "content-type", "authorization"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known));
        if place == ParameterPlace::Header && is_elsewhere {
            return None;
        }
        Some(self.parameter_of(at, place, name, parameter))
    }

    fn parameter_of(
        &mut self,
        at: &str,
        place: ParameterPlace,
        name: String,
        parameter: &Value,
    ) -> Parameter {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        let schema = self.schema(at, parameter);
        let kind = schema.as_ref().and_then(|schema| kind(schema, schema));
        let explodes = parameter.get("explode").and_then(Value::as_bool);
        let list = (kind.as_deref() == Some("array")).then(|| match (text("style"), place) {
            (Some("spaceDelimited"), _) => ListStyle::Joined(' '),
            (Some("pipeDelimited"), _) => ListStyle::Joined('|'),
            (_, ParameterPlace::Query | ParameterPlace::Cookie | ParameterPlace::Form)
                if explodes != Some(false) =>
            {
                ListStyle::Repeated
            }
            _ => ListStyle::Joined(','),
        });
        let items = schema.as_ref().and_then(|schema| {
            let items = resolved(schema, schema)?.get("items")?;
            self::kind(items, schema)
        });
        let is_form = matches!(text("style"), None | Some("form" | "simple"));
        let of_query = matches!(place, ParameterPlace::Query | ParameterPlace::Cookie);
        // Fields of forms are JSON unless their style says otherwise (OpenAPI 3.1, section 4.8.15.1.1).
        let has_style = place != ParameterPlace::Form || text("style").is_some();
        let is_object = kind.as_deref() == Some("object") && is_form && has_style;
        let object = schema.as_ref().filter(|_| is_object).map(|schema| {
            let properties = resolved(schema, schema).and_then(|it| it.get("properties"));
            let properties = properties.and_then(Value::as_object).into_iter().flatten();
            ObjectStyle {
                is_exploded: explodes.unwrap_or(of_query),
                properties: properties
                    .map(|(name, property)| (name.clone(), self::kind(property, schema)))
                    .collect(),
            }
        });
        Parameter {
            place,
            name,
            kind: if list.is_some() { items } else { kind },
            is_required: place == ParameterPlace::Path
                || parameter.get("required") == Some(&Value::Bool(true)),
            schema,
            list,
            is_deep: text("style") == Some("deepObject"),
            object,
        }
    }

    fn body(&mut self, at: &str, operation: &Value) -> Option<RequestBody> {
        let at = format!("{at}.requestBody");
        let body = self.resolve(&at, operation.get("requestBody")?)?;
        let content = body.get("content").and_then(Value::as_object);
        let content = content.into_iter().flatten().map(|(kind, media)| {
            let at = format!("{at}.content.{kind}");
            let kind = bare(kind);
            RequestContent {
                schema: self.schema(&at, media),
                fields: if is_form(&kind) {
                    self.form_fields(&at, media)
                } else {
                    Vec::new()
                },
                kind,
            }
        });
        Some(RequestBody {
            content: content.collect(),
            is_required: body.get("required") == Some(&Value::Bool(true)),
        })
    }

    /// The properties of a form's schema with their encodings.
    fn form_fields(&mut self, at: &str, media: &Value) -> Vec<FormField> {
        let mut properties = Object::new();
        if let Some(schema) = media.get("schema") {
            self.properties(schema, &mut properties, DEEPEST_PARTS);
        }
        let encodings = media.get("encoding").and_then(Value::as_object);
        let fields = properties.into_iter().map(|(name, schema)| {
            let encoding = encodings.and_then(|it| it.get(&name));
            let mut parameter = encoding.and_then(Value::as_object).cloned();
            let parameter = parameter.get_or_insert_default();
            let kinds = parameter.get("contentType").and_then(Value::as_str);
            let kinds = kinds
                .into_iter()
                .flat_map(|kinds| kinds.split(','))
                .map(bare);
            let kinds = kinds.collect();
            parameter.insert("schema".to_owned(), schema);
            let parameter = Value::Object(std::mem::take(parameter));
            let at = format!("{at}.{name}");
            FormField {
                parameter: self.parameter_of(&at, ParameterPlace::Form, name, &parameter),
                kinds,
            }
        });
        fields.collect()
    }

    /// The properties of a schema, and of those that it is made of.
    fn properties(&self, schema: &Value, properties: &mut Object, levels: u32) {
        let (Ok(schema), Some(levels)) = (self.document.resolve(schema), levels.checked_sub(1))
        else {
            return;
        };
        let own = schema.get("properties").and_then(Value::as_object);
        for (name, property) in own.into_iter().flatten() {
            properties.entry(name).or_insert_with(|| property.clone());
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            let parts = schema.get(key).and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                self.properties(part, properties, levels);
            }
        }
    }

    fn responses(&mut self, at: &str, operation: &Value) -> Vec<ApiResponse> {
        let responses = operation.get("responses").and_then(Value::as_object);
        let mut all = Vec::new();
        for (code, response) in responses.into_iter().flatten() {
            let at = format!("{at}.responses.{code}");
            let Some(response) = self.resolve(&at, response) else {
                continue;
            };
            let headers = response.get("headers").and_then(Value::as_object);
            let headers = headers.into_iter().flatten().filter_map(|(name, header)| {
                let header = self.document.resolve(header).ok()?;
                let value = self.document.value_of(header).ok()?;
                Some((name.to_ascii_lowercase(), text_of(&value)))
            });
            let headers: Vec<_> = headers.collect();
            all.push(ApiResponse {
                code: code.to_ascii_uppercase(),
                headers,
                content: self.contents(&response),
            });
        }
        all
    }

    fn examples(&self, media: &Value) -> Vec<(Option<String>, Value)> {
        let named = media.get("examples").and_then(Value::as_object);
        let named = named.into_iter().flatten().filter_map(|(name, example)| {
            let example = self.document.resolve(example).ok()?;
            Some((Some(name.clone()), example.get("value")?.clone()))
        });
        let mut examples: Vec<_> = named.collect();
        if let Some(example) = media.get("example") {
            examples.push((None, example.clone()));
        }
        examples
    }

    fn security(&mut self, at: &str, operation: &Value) -> Vec<Vec<Credential>> {
        let list = operation
            .get("security")
            .or_else(|| self.root.get("security"))
            .and_then(Value::as_array);
        let mut security = Vec::new();
        for requirement in list.into_iter().flatten() {
            let Some(schemes) = requirement.as_object() else {
                continue;
            };
            let mut all = Vec::new();
            for name in schemes.keys() {
                let scheme = self
                    .root
                    .get("components")
                    .and_then(|components| components.get("securitySchemes"))
                    .and_then(|schemes| schemes.get(name));
                let scheme = scheme.and_then(|scheme| self.document.resolve(scheme).ok());
                if let Some(credential) = scheme.and_then(credential) {
                    all.push(credential);
                } else {
                    let place = Place::Key(format!("{at}.security"));
                    let message = format!("`{name}` is no scheme that is known here");
                    self.left_out.push(Remark::new(place, message));
                }
            }
            security.push(all);
        }
        // Who may ask with nothing need not show anything.
        if security.iter().any(Vec::is_empty) {
            security.clear();
        }
        security
    }
}

fn credential(scheme: &Value) -> Option<Credential> {
    let text = |key: &str| scheme.get(key).and_then(Value::as_str);
    Some(match text("type")? {
        "http" => Credential::Authorization(text("scheme")?.to_ascii_lowercase()),
        "oauth2" | "openIdConnect" => Credential::Authorization("bearer".to_owned()),
        "apiKey" => {
            let place = match text("in")? {
                "query" => ParameterPlace::Query,
                "header" => ParameterPlace::Header,
                "cookie" => ParameterPlace::Cookie,
                _ => return None,
            };
            Credential::Key(place, text("name")?.to_owned())
        }
        _ => return None,
    })
}

/// Schemas of forms are looked for in others so deep.
const DEEPEST_PARTS: u32 = 8;

/// True if content of a media type consists of fields.
fn is_form(kind: &str) -> bool {
    kind == "application/x-www-form-urlencoded" || kind.starts_with("multipart/")
}

/// A media type without its parameters, in lower case.
fn bare(kind: &str) -> String {
    let bare = kind.split(';').next().unwrap_or(kind);
    bare.trim().to_ascii_lowercase()
}

/// A schema, or what it refers to within the whole.
fn resolved<'s>(schema: &'s Value, whole: &'s Value) -> Option<&'s Value> {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => whole.pointer(reference.strip_prefix('#')?),
        None => Some(schema),
    }
}

/// The type that a schema gives, through one reference.
fn kind(schema: &Value, whole: &Value) -> Option<String> {
    match resolved(schema, whole)?.get("type")? {
        Value::String(kind) => Some(kind.clone()),
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null").map(str::to_owned)
        }
        _ => None,
    }
}
