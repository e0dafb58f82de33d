//! Tests of what templates come to.

use std::fmt;

use super::field::FieldTest;
use crate::request::RequestView;
use crate::template::TextTemplate;

/// A test of what a template comes to for a request.
#[derive(Debug, Clone)]
pub struct TemplateTest {
    /// As it was written.
    pub text: String,
    /// The template.
    pub written: TextTemplate,
    /// The expected text.
    pub expected: Expected,
}

/// A condition on the text of a template.
#[derive(Debug, Clone)]
pub enum Expected {
    /// It meets a test.
    Test(FieldTest),
    /// It is equal to what another template comes to.
    Same(String, TextTemplate),
}

impl TemplateTest {
    /// Whether a request meets it.
    pub(super) fn is_met_by(&self, request: &RequestView<'_>) -> bool {
        let text = self.written.fill(request);
        match &self.expected {
            Expected::Test(expected) => expected.is_met_by_any([text.as_str()].into_iter()),
            Expected::Same(_, other) => text == other.fill(request),
        }
    }

    /// The text of the template, for people.
    pub(super) fn found(&self, request: &RequestView<'_>) -> String {
        let text = format!("{:?}", self.written.fill(request));
        match &self.expected {
            Expected::Test(_) => text,
            Expected::Same(_, other) => format!("{text} and {:?}", other.fill(request)),
        }
    }
}

impl fmt::Display for TemplateTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.text)?;
        match &self.expected {
            Expected::Test(test) => test.fmt(f),
            Expected::Same(other, _) => write!(f, "equals {other:?}"),
        }
    }
}
