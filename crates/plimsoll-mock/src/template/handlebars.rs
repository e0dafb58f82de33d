//! Templates of Handlebars as WireMock and Mockoon have them: `template = "wiremock"` and `template = "mockoon"`.
//!
//! A template is checked before any request comes: a helper that is not known here is an error, since what stands in
//! its place cannot be guessed.

mod call;

mod check;

mod faker;

mod helpers;

mod json;

mod jwt;

mod mockoon;

mod output;

mod request;

mod state;

mod wiremock;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use handlebars::{Context, Handlebars, RenderContext, Renderable, Template};
use serde_json::{Value, json};

use self::call::HelperError;
pub(crate) use self::check::without_unknown_names;
use self::output::BoundedOutput;
use crate::request::RequestView;
use crate::template::data::DataBuckets;
use crate::template::{Chance, Dialect};

/// What templates add to WireMock's settings: the secret by which their tokens are signed.
pub(crate) fn settings() -> Value {
    json!({ "jwt": { "hs256Secret": jwt::secret() } })
}

/// What is wrong with a template.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// As the library describes it.
    #[error("{0}")]
    Syntax(String),
    #[error("partials and decorators are not known here")]
    Partials,
    #[error("the helper `{0}` is not known here")]
    UnknownHelper(String),
    #[error("`{0}` is not known here")]
    UnknownName(String),
    /// Of arguments that are there before any request.
    #[error(transparent)]
    Helper(#[from] HelperError),
}

/// Why the text for a request cannot be made, as the library describes it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct FillError(String);

/// A template, ready to be filled.
#[derive(Clone)]
pub(crate) struct Program {
    text: String,
    template: Template,
    registry: Arc<Handlebars<'static>>,
    dialect: Dialect,
    names: Vec<(String, usize)>,
    data: Arc<DataBuckets>,
}

impl Program {
    /// Compiles a template; fails with what is wrong with it.
    ///
    /// - `names`: of segments of the path, with their numbers.
    /// - `data`: what helpers look up.
    pub(crate) fn new(
        text: &str,
        dialect: Dialect,
        chance: &Chance,
        names: &[(String, usize)],
        data: &Arc<DataBuckets>,
    ) -> Result<Self, ProgramError> {
        let read = with_json_texts(text);
        let mut template = Template::compile(&read)
            .map_err(|error| ProgramError::Syntax(error.reason().to_string()))?;
        let mut registry = Handlebars::new();
        registry.register_escape_fn(handlebars::no_escape);
        registry.set_prevent_indent(true);
        helpers::register(&mut registry, dialect, chance, data);
        output::register_turns(&mut registry);
        check::check(&mut template, dialect)?;
        Ok(Self {
            text: text.to_owned(),
            template,
            registry: Arc::new(registry),
            dialect,
            names: names.to_vec(),
            data: Arc::clone(data),
        })
    }

    /// The text for one request, or why it cannot be made.
    pub(crate) fn fill(&self, request: &RequestView<'_>) -> Result<String, FillError> {
        let model = request::model(request, self.dialect, &self.names, self.data.parameters());
        let context = Context::wraps(model).map_err(|error| FillError(error.to_string()))?;
        let mut render = RenderContext::new(None);
        let mut output = BoundedOutput::new();
        self.template
            .render(&self.registry, &context, &mut render, &mut output)
            .map_err(|error| FillError(error.reason().to_string()))?;
        Ok(output.into_text())
    }
}

/// A template whose texts in quotes are escaped as JSON is, which is how the library reads them. In Handlebars a backslash
/// escapes the quote and is itself anywhere else: `'it\'s'`, `'\d+'`.
fn with_json_texts(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let (before, inside) = rest.split_at(at);
        made.push_str(before);
        let end = inside.find("}}").unwrap_or(inside.len());
        let (inside, after) = inside.split_at(end);
        push_with_json_texts(&mut made, inside);
        rest = after;
    }
    made.push_str(rest);
    Cow::Owned(made)
}

fn push_with_json_texts(made: &mut String, inside: &str) {
    let mut rest = inside;
    while let Some(at) = rest.find(['\'', '"']) {
        let (before, quoted) = rest.split_at(at);
        made.push_str(before);
        let quote = if quoted.starts_with('"') { '"' } else { '\'' };
        let mut text = String::new();
        let mut characters = quoted.chars();
        characters.next();
        let end = loop {
            match characters.next() {
                None => break None,
                Some('\\') if characters.as_str().starts_with(quote) => {
                    characters.next();
                    text.push(quote);
                }
                Some(character) if character == quote => break Some(characters.as_str()),
                Some(character) => text.push(character),
            }
        };
        let Some(after) = end else {
            // It is no text.
            made.push_str(quoted);
            return;
        };
        if text.contains(['\\', quote]) {
            made.push('"');
            made.push_str(&text.replace('\\', "\\\\").replace('"', "\\\""));
            made.push('"');
        } else {
            made.push(quote);
            made.push_str(&text);
            made.push(quote);
        }
        rest = after;
    }
    made.push_str(rest);
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.text).finish()
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
