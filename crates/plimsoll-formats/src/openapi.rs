//! OpenAPI documents (3.0 to 3.2) and Swagger 2.0, in JSON or YAML: a request for each operation.
//!
//! Values come from the examples of the document, or are made by its schemas. An operation for which
//! that cannot be done is left out and named.

mod anchors;

mod api;

mod bundle;

mod pattern;

mod random;

mod schema;

mod flat;

mod swagger;

mod walk;

mod xml;

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

pub use self::api::{
    Api, ApiResponse, Credential, FormField, ListStyle, MakeError, MediaContent, ObjectStyle,
    Operation, Parameter, ParameterPlace, RequestBody, RequestContent, ServiceRequest,
    StandaloneError, parse_api,
};

use self::schema::{Document, Unsupported};
use crate::request::is_token;
use crate::{FileRequest, MultipartForm, Place, ReadFile, Remark, RequestFile, Template, yaml};

/// The methods that an operation may have, in the order of the specification.
const METHODS: [&str; 9] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace", "query",
];

/// All but the unreserved characters (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Reads a document; operations are in the order of their paths.
///
/// - `read_file`: reads the files that the document refers to.
pub(crate) fn parse(text: &str, read_file: ReadFile<'_>) -> Result<RequestFile, Vec<Remark>> {
    let loaded = load(text, "", read_file)?;
    let (root, mut left_out) = (loaded.root, loaded.problems);
    left_out.extend(loaded.left_out);
    let document = Document::new(&root);
    let mut file = RequestFile {
        base: server(&root),
        left_out,
        ..RequestFile::default()
    };
    let paths = root.get("paths").and_then(Value::as_object);
    if root.get("webhooks").is_some() {
        // They are requests of the service, not to it (OpenAPI 3.1, section 4.8.1.1).
        let remark = Remark::new(
            Place::Key("webhooks".to_owned()),
            "requests that the service makes itself".to_owned(),
        );
        file.left_out.push(remark);
    }
    for (path, item) in paths.into_iter().flatten() {
        let item = match document.resolve(item) {
            Ok(item) => item,
            Err(reason) => {
                let place = Place::Key(format!("paths.{path}"));
                file.left_out.push(Remark::new(place, reason.0));
                continue;
            }
        };
        for method in METHODS {
            let Some(operation) = item.get(method) else {
                continue;
            };
            let place = Place::Key(format!("paths.{path}.{method}"));
            let operation = match document.resolve(operation) {
                Ok(operation) => operation,
                Err(reason) => {
                    file.left_out.push(Remark::new(place, reason.0));
                    continue;
                }
            };
            let mut maker = Maker {
                document: &document,
                item,
                operation,
                url: String::new(),
                headers: Vec::new(),
            };
            match maker.request(&place, path, method) {
                Ok(request) => file.requests.push(request),
                Err(reason) => file.left_out.push(Remark::new(place, reason.0)),
            }
        }
    }
    if has_security(&root, paths) {
        let remark = Remark::whole("authentication, which the document asks for")
            .hint("give it by `-H` or `-a`");
        file.left_out.push(remark);
    }
    Ok(file)
}

/// A document with the files that it refers to, in the words of OpenAPI 3.
struct LoadedDocument {
    root: Value,
    /// The names of the other files, relative to the folder of the document.
    files: Vec<String>,
    /// References that lead nowhere.
    left_out: Vec<Remark>,
    /// Files that could not be read.
    problems: Vec<Remark>,
}

fn load(
    text: &str,
    own_name: &str,
    read_file: ReadFile<'_>,
) -> Result<LoadedDocument, Vec<Remark>> {
    let root = read(text)?;
    check_version(&root)?;
    let bundle = bundle::bundle(root, own_name, read_file);
    let (mut root, mut left_out) = (bundle.root, Vec::new());
    if swagger::is_swagger(&root) {
        root = swagger::converted(root, &mut left_out);
    }
    Ok(LoadedDocument {
        root,
        files: bundle.files,
        left_out,
        problems: bundle.problems,
    })
}

/// True if the document is one that is understood.
fn check_version(root: &Value) -> Result<(), Vec<Remark>> {
    match root.get("openapi").and_then(Value::as_str) {
        Some(version)
            if ["3.0", "3.1", "3.2"]
                .iter()
                .any(|known| version.starts_with(known)) => {}
        Some(version) => {
            let message = format!("is OpenAPI {version}; plimsoll reads 3.0 to 3.2");
            return Err(vec![Remark::whole(message)]);
        }
        None if swagger::is_swagger(root) => {}
        None if root.get("swagger").or(root.get("swaggerVersion")).is_some() => {
            let remark = Remark::whole("is Swagger of a version other than 2.0")
                .hint("write `swagger: \"2.0\"`, or convert the document to OpenAPI 3");
            return Err(vec![remark]);
        }
        None => {
            let message = "is not an OpenAPI document: it has no `openapi`";
            return Err(vec![Remark::whole(message)]);
        }
    }
    Ok(())
}

fn read(text: &str) -> Result<Value, Vec<Remark>> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| {
            let message = format!("is not JSON: {error}");
            vec![Remark::line(error.line(), message)]
        });
    }
    let value =
        yaml::read(text).map_err(|error| vec![Remark::line(error.line, error.to_string())])?;
    Ok(value.unwrap_or(Value::Null))
}

/// The first server, its variables at their defaults.
fn server(of: &Value) -> Option<String> {
    server_url(of.get("servers")?.as_array()?.first()?)
}

/// The URL of a server, its variables at their defaults.
fn server_url(server: &Value) -> Option<String> {
    let mut url = server.get("url")?.as_str()?.to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        let default = variable.get("default").and_then(Value::as_str);
        url = url.replace(&format!("{{{name}}}"), default.unwrap_or_default());
    }
    Some(url)
}

fn has_security(root: &Value, paths: Option<&serde_json::Map<String, Value>>) -> bool {
    let asks = |value: &Value| {
        let list = value.get("security").and_then(Value::as_array);
        list.is_some_and(|list| !list.is_empty())
    };
    let items = paths.into_iter().flatten().map(|(_, item)| item);
    let operations = items
        .filter_map(Value::as_object)
        .flat_map(|item| item.values());
    asks(root) || operations.into_iter().any(asks)
}

/// Makes the request of one operation.
struct Maker<'a> {
    document: &'a Document<'a>,
    item: &'a Value,
    operation: &'a Value,
    url: String,
    headers: Vec<(String, String)>,
}

impl<'a> Maker<'a> {
    fn request(
        &mut self,
        place: &Place,
        path: &str,
        method: &str,
    ) -> Result<FileRequest, Unsupported> {
        path.clone_into(&mut self.url);
        let mut query = Vec::new();
        let mut cookies = Vec::new();
        for parameter in self.parameters()? {
            self.parameter(parameter, &mut query, &mut cookies)?;
        }
        if let Some(start) = self.url.find('{') {
            let name = self.url.get(start..).unwrap_or_default();
            let name = name.split('}').next().unwrap_or(name);
            return Err(Unsupported(format!(
                "`{name}}}` in the path is not described"
            )));
        }
        if !query.is_empty() {
            let separator = if self.url.contains('?') { '&' } else { '?' };
            self.url.push(separator);
            self.url.push_str(&query.join("&"));
        }
        if !cookies.is_empty() {
            self.headers.push(("cookie".to_owned(), cookies.join("; ")));
        }
        let body = self.body()?;
        // A server of the operation's own is not that of the document.
        if let Some(server) = server(self.operation).or_else(|| server(self.item)) {
            self.url = format!("{}{}", server.trim_end_matches('/'), self.url);
        }
        let url = Template::literal(self.url.as_str());
        let mut request = FileRequest::new(place.clone(), url);
        request.method = Some(method.to_ascii_uppercase());
        let text = |key: &str| self.operation.get(key).and_then(Value::as_str);
        request.name = text("operationId").map(str::to_owned);
        let tags = self.operation.get("tags").and_then(Value::as_array);
        let tags = tags.into_iter().flatten().filter_map(Value::as_str);
        request.tags = tags.map(str::to_owned).collect();
        for (name, value) in &self.headers {
            if !is_token(name) || value.contains(['\r', '\n', '\0']) {
                return Err(Unsupported(format!(
                    "header `{name}` cannot be sent with its value"
                )));
            }
            request
                .headers
                .push((name.clone(), Template::literal(value.as_str())));
        }
        if let Some((content_type, content)) = body {
            request.default_header("content-type", &content_type);
            request.body = Some(Template::literal(content));
        }
        Ok(request)
    }

    /// Those of the operation, then those of its path that it does not describe anew.
    fn parameters(&self) -> Result<Vec<&'a Value>, Unsupported> {
        let mut parameters = Vec::new();
        let mut known = BTreeSet::new();
        for of in [self.operation, self.item] {
            let list = of.get("parameters").and_then(Value::as_array);
            for parameter in list.into_iter().flatten() {
                let parameter = self.document.resolve(parameter)?;
                let text = |key: &str| parameter.get(key).and_then(Value::as_str);
                if let (Some(name), Some(place)) = (text("name"), text("in"))
                    && known.insert((name, place))
                {
                    parameters.push(parameter);
                }
            }
        }
        Ok(parameters)
    }

    fn parameter(
        &mut self,
        parameter: &Value,
        query: &mut Vec<String>,
        cookies: &mut Vec<String>,
    ) -> Result<(), Unsupported> {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        let name = text("name").unwrap_or_default();
        let place = text("in").unwrap_or_default();
        let is_required = parameter.get("required") == Some(&Value::Bool(true));
        let of_parameter =
            |Unsupported(reason)| Unsupported(format!("parameter `{name}`: {reason}"));
        // What may be left out is sent only with a value that the document gives.
        if !is_required && self.document.example(parameter)?.is_none() {
            return Ok(());
        }
        let value = self.document.value_of(parameter).map_err(of_parameter)?;
        let parts: Vec<String> = match &value {
            Value::Array(list) => list.iter().map(text_of).collect(),
            value => vec![text_of(value)],
        };
        let encoded: Vec<String> = parts.iter().map(|part| encode(part)).collect();
        match place {
            "path" => {
                self.url = self.url.replace(&format!("{{{name}}}"), &encoded.join(","));
            }
            "query" => {
                let name = encode(name);
                if parameter.get("explode") == Some(&Value::Bool(false)) {
                    query.push(format!("{name}={}", encoded.join(",")));
                } else {
                    query.extend(encoded.iter().map(|value| format!("{name}={value}")));
                }
            }
            // These are described elsewhere (OpenAPI 3.1, section 4.8.12.2).
            "header"
                if ["accept", "content-type", "authorization"]
                    .iter()
                    .any(|known| name.eq_ignore_ascii_case(known)) => {}
            "header" => self.headers.push((name.to_owned(), parts.join(","))),
            "cookie" => cookies.push(format!("{name}={}", encoded.join(","))),
            other => return Err(Unsupported(format!("parameter `{name}` is in `{other}`"))),
        }
        Ok(())
    }

    /// Content type and content.
    fn body(&self) -> Result<Option<(String, Vec<u8>)>, Unsupported> {
        let Some(body) = self.operation.get("requestBody") else {
            return Ok(None);
        };
        let body = self.document.resolve(body)?;
        let Some(content) = body.get("content").and_then(Value::as_object) else {
            return Ok(None);
        };
        let is_json = |kind: &str| kind == "application/json" || kind.ends_with("+json");
        let ways: [&dyn Fn(&str) -> bool; 4] = [
            &|kind| is_json(kind),
            &|kind| kind == "application/x-www-form-urlencoded",
            &|kind| kind == "multipart/form-data",
            &|kind| kind.starts_with("text/"),
        ];
        let bare = |kind: &str| {
            kind.split(';')
                .next()
                .unwrap_or(kind)
                .trim()
                .to_ascii_lowercase()
        };
        let chosen = ways
            .iter()
            .find_map(|fits| content.iter().find(|(kind, _)| fits(&bare(kind))));
        let Some((kind, media)) = chosen else {
            let kinds: Vec<&str> = content.keys().map(String::as_str).collect();
            return Err(Unsupported(format!(
                "a body of type {} cannot be made",
                kinds.join(", ")
            )));
        };
        let of_body = |Unsupported(reason)| Unsupported(format!("body: {reason}"));
        let value = self.document.value_of(media).map_err(of_body)?;
        let bare = bare(kind);
        if is_json(&bare) {
            return Ok(Some((kind.clone(), value.to_string().into_bytes())));
        }
        if bare.starts_with("text/") {
            return Ok(Some((kind.clone(), text_of(&value).into_bytes())));
        }
        let Value::Object(fields) = value else {
            return Err(Unsupported(
                "body: the fields of a form are not an object".to_owned(),
            ));
        };
        if bare == "multipart/form-data" {
            let mut form = MultipartForm::default();
            for (name, value) in &fields {
                let added = form.add_text(name, &text_of(value));
                added.map_err(|error| Unsupported(format!("body: {error}")))?;
            }
            return Ok(Some(form.encode()));
        }
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(&text_of(value))))
            .collect();
        Ok(Some((kind.clone(), fields.join("&").into_bytes())))
    }
}

/// A string as it is, the rest as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// The parameters of an operation, then those of its path, each with its place.
///
/// - `at`: the place of the operation.
fn parameters_of<'v>(
    at: &str,
    item: &'v Value,
    operation: &'v Value,
) -> impl Iterator<Item = (String, &'v Value)> {
    [operation, item].into_iter().flat_map(move |of| {
        let list = of.get("parameters").and_then(Value::as_array);
        let list = (1..).zip(list.into_iter().flatten());
        list.map(move |(number, parameter)| (format!("{at}.parameters[{number}]"), parameter))
    })
}

#[cfg(test)]
mod tests;
