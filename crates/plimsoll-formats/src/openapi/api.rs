//! OpenAPI documents (3.0 to 3.2) as what a server must accept and may answer.
//!
//! Schemas of requests are given as JSON Schema 2020-12, each with all that it refers to, so that any validator can
//! take them: what 3.0 writes otherwise (`nullable`, bounds that exclude) is given as in 3.1, and what only responses
//! have (`readOnly`) is not required.

use serde_json::{Map, Value};

use super::load;
use super::random::Dice;
use super::schema::{Document, Unsupported};
use crate::{ReadFile, Remark};

mod reader;

mod standalone;

use self::reader::Reader;
pub use self::standalone::StandaloneError;
use self::standalone::standalone;

/// The API of a document.
#[derive(Debug)]
pub struct Api {
    root: Value,
    /// The paths of its servers, without a slash at their end; those at the root are not among them.
    pub bases: Vec<String>,
    /// In the order of the document.
    pub operations: Vec<Operation>,
    /// Requests that the service makes by itself.
    pub webhooks: Vec<ServiceRequest>,
    /// Parts of the document that are left out.
    pub left_out: Vec<Remark>,
    /// The other files of the document, relative to its folder.
    pub files: Vec<String>,
}

/// An operation: one method at one path.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its `operationId`.
    pub id: Option<String>,
    /// In upper case.
    pub method: String,
    /// With places such as `{id}`.
    pub path: String,
    /// Parameters of the request.
    pub parameters: Vec<Parameter>,
    /// The content of requests.
    pub body: Option<RequestBody>,
    /// Responses, in the order of the document.
    pub responses: Vec<ApiResponse>,
    /// The credentials: all of one of these; empty if none are needed.
    pub security: Vec<Vec<Credential>>,
    /// Requests that the service makes once it is called.
    pub callbacks: Vec<ServiceRequest>,
}

/// A request that the service makes: a callback of an operation, or a webhook.
#[derive(Debug, Clone)]
pub struct ServiceRequest {
    /// Its name in the document.
    pub name: String,
    /// In upper case.
    pub method: String,
    /// Of a callback: its URL, with runtime expressions such as `{$request.body#/url}` (OpenAPI 3.1, section 4.8.20.4);
    /// empty for a webhook.
    pub url: String,
    /// Fields with their values.
    pub headers: Vec<(String, String)>,
    /// Contents, by their media types.
    pub content: Vec<MediaContent>,
}

/// The location of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterPlace {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// In the header.
    Header,
    /// Among the cookies.
    Cookie,
    /// A field of a form in the content.
    Form,
}

impl ParameterPlace {
    /// As documents call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
            Self::Form => "body",
        }
    }
}

/// A parameter of an operation.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its location.
    pub place: ParameterPlace,
    /// Its name.
    pub name: String,
    /// True if a request must have it.
    pub is_required: bool,
    /// JSON Schema of its value; absent for any.
    pub schema: Option<Value>,
    /// The type of its value, or of its elements if it is a list.
    pub kind: Option<String>,
    /// The form of its elements, if it is a list.
    pub list: Option<ListStyle>,
    /// True if it is an object that is written as `name[key]=value`.
    pub is_deep: bool,
    /// The properties of an object that is written by its keys, with their types: each as a parameter of its own, or
    /// all in one value (`name=a,1,b,2`).
    pub object: Option<ObjectStyle>,
}

/// The form of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectStyle {
    /// True if each property is a parameter of its own; else keys and values alternate in one value.
    pub is_exploded: bool,
    /// The properties that its schema names, with their types.
    pub properties: Vec<(String, Option<String>)>,
}

/// The form of a list's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListStyle {
    /// Each as a parameter of that name.
    Repeated,
    /// In one value, with this character between them.
    Joined(char),
}

/// The content of requests.
#[derive(Debug, Clone)]
pub struct RequestBody {
    /// True if a request must have it.
    pub is_required: bool,
    /// By media types.
    pub content: Vec<RequestContent>,
}

/// The content of requests in one media type.
#[derive(Debug, Clone)]
pub struct RequestContent {
    /// Its media type, in lower case without parameters, which may be a range such as `image/*`.
    pub kind: String,
    /// JSON Schema of its value; absent for any.
    pub schema: Option<Value>,
    /// Of a form: the fields that the schema names, which it judges as properties of one object.
    pub fields: Vec<FormField>,
}

/// A field of a form.
#[derive(Debug, Clone)]
pub struct FormField {
    /// Its form.
    pub parameter: Parameter,
    /// In multipart content: the media types that its part may have, in lower case; empty for any.
    pub kinds: Vec<String>,
}

/// A response of an operation.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    /// `200`, `2XX` or `default`.
    pub code: String,
    /// Fields with their values.
    pub headers: Vec<(String, String)>,
    /// Contents, by their media types.
    pub content: Vec<MediaContent>,
}

/// Content that the service sends, in one media type.
#[derive(Debug, Clone)]
pub struct MediaContent {
    /// Its media type.
    pub kind: String,
    /// Examples, those with names first.
    pub examples: Vec<(Option<String>, Value)>,
    /// Its schema, as the document has it.
    schema: Option<Value>,
}

/// A security scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// `authorization` with this scheme, in lower case; any if it is empty.
    Authorization(String),
    /// A parameter of that name.
    Key(ParameterPlace, String),
}

/// Reads a document, in JSON or YAML; fails if it or a file that it refers to cannot be read.
///
/// - `own_name`: its file name, by which its other files may refer back to it.
/// - `read_file`: reads the files that it refers to, by their paths relative to its folder.
pub fn parse_api(text: &str, own_name: &str, read_file: ReadFile<'_>) -> Result<Api, Vec<Remark>> {
    let text = text.trim_start_matches('\u{feff}');
    let loaded = load(text, own_name, read_file)?;
    if !loaded.problems.is_empty() {
        return Err(loaded.problems);
    }
    let (root, mut left_out) = (loaded.root, loaded.left_out);
    let mut reader = Reader {
        root: &root,
        document: Document::of_responses(&root),
        left_out: &mut left_out,
    };
    let (operations, webhooks) = (reader.operations(), reader.webhooks());
    Ok(Api {
        bases: bases(&root),
        operations,
        webhooks,
        left_out,
        files: loaded.files,
        root,
    })
}

/// Why no value can be made for some content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MakeError {
    /// There is nothing to make it by.
    #[error("there is neither an example nor a schema")]
    NoExample,
    /// The content has examples alone.
    #[error("there is no schema")]
    NoSchema,
    /// The schema cannot stand alone.
    #[error(transparent)]
    Standalone(#[from] StandaloneError),
    /// The schema asks for a value that is not made here; for people.
    #[error("{0}")]
    Unsupported(String),
}

impl From<Unsupported> for MakeError {
    fn from(Unsupported(reason): Unsupported) -> Self {
        Self::Unsupported(reason)
    }
}

impl Api {
    /// A value that fits the schema of some content.
    ///
    /// - `random`: gives numbers below its argument, to choose by; without it the value is always the same.
    pub fn make(
        &self,
        content: &MediaContent,
        random: Option<&mut dyn FnMut(u64) -> u64>,
    ) -> Result<Value, MakeError> {
        let schema = content.schema.as_ref().ok_or(MakeError::NoExample)?;
        let document = Document::of_responses(&self.root);
        Ok(match random {
            None => document.make(schema)?,
            Some(random) => Dice::new(&document, random).make(schema)?,
        })
    }

    /// A value of some content that takes no examples, neither of the content nor of its schema.
    pub fn make_without_examples(&self, content: &MediaContent) -> Result<Value, MakeError> {
        let schema = self.schema_of(content).ok_or(MakeError::NoSchema)??;
        Ok(Document::of_responses(&schema).make(&schema)?)
    }

    /// JSON Schema 2020-12 of some content, with all that it refers to; nothing if it has none, or fails with why it cannot
    /// stand alone.
    pub fn schema_of(&self, content: &MediaContent) -> Option<Result<Value, StandaloneError>> {
        let schema = content.schema.as_ref()?;
        Some(standalone(&self.root, schema, "writeOnly"))
    }

    /// A value of some content as XML, with the names and attributes that its schema gives.
    pub fn xml(&self, content: &MediaContent, value: &Value) -> String {
        let document = Document::of_responses(&self.root);
        let schema = content.schema.as_ref().unwrap_or(&Value::Null);
        super::xml::text(&document, schema, value)
    }
}

fn bases(root: &Value) -> Vec<String> {
    let servers = root.get("servers").and_then(Value::as_array);
    let mut bases = Vec::new();
    for server in servers.into_iter().flatten() {
        let url = super::server_url(server).unwrap_or_default();
        let path = match url.split_once("://") {
            Some((_, rest)) => rest.find('/').and_then(|at| rest.get(at..)),
            None => Some(url.as_str()),
        };
        let path = path.unwrap_or_default().trim_end_matches('/').to_owned();
        if path.starts_with('/') && !bases.contains(&path) {
            bases.push(path);
        }
    }
    bases
}

/// Objects by their keys.
pub(super) type Object = Map<String, Value>;

#[cfg(test)]
mod tests;
