//! Templates of Handlebars as WireMock and Mockoon have them: `template = "wiremock"` and `template = "mockoon"`.
//!
//! A template is checked before any request comes: a helper that is not known here is an error, since what stands in
//! its place cannot be guessed.

mod call;

mod check;

mod faker;

mod helpers;

mod mockoon;

mod output;

mod request;

mod wiremock;

use std::fmt;
use std::sync::Arc;

use handlebars::{Context, Handlebars, RenderContext, Renderable, Template};

use self::output::BoundedOutput;
use crate::request::RequestView;
use crate::template::data::DataBuckets;
use crate::template::{Chance, Dialect};

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
    ) -> Result<Self, String> {
        let mut template = Template::compile(text).map_err(|error| error.reason().to_string())?;
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
    pub(crate) fn fill(&self, request: &RequestView<'_>) -> Result<String, String> {
        let model = request::model(request, self.dialect, &self.names, self.data.parameters());
        let context = Context::wraps(model).map_err(|error| error.to_string())?;
        let mut render = RenderContext::new(None);
        let mut output = BoundedOutput::new();
        self.template
            .render(&self.registry, &context, &mut render, &mut output)
            .map_err(|error| error.reason().to_string())?;
        Ok(output.into_text())
    }
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
