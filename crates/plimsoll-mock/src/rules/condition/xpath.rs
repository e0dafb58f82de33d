//! Tests of content that is XML, by expressions of XPath 1.0.
//!
//! Documents are bounded and must not have a document type, so no entity of theirs is ever expanded. What evaluating
//! may cost is bounded too.

mod budget;

mod content;

mod cost;

mod node;

use std::fmt;

use roxmltree::Document;
use xpath_eval::{EvalError, EvaluationContext, Expr, Value, evaluate, parse};

pub(crate) use self::budget::RequestBudget;
pub(crate) use self::content::document;

pub use self::content::XmlError;

use self::budget::Budget;
use self::node::Scope;

/// Longer expressions are refused, as are those that are nested deeper: their parser calls itself.
const LONGEST_EXPRESSION: usize = 1024;
const DEEPEST: usize = 32;

/// A compiled expression, with what its prefixes stand for.
#[derive(Debug, Clone)]
pub struct XPath {
    text: String,
    expression: Expr,
    namespaces: Vec<(String, String)>,
    /// Whether it compares node sets with each other.
    is_product: bool,
    /// Whether elements and attributes have no namespace for it.
    ignores_namespaces: bool,
}

/// An evaluation needs more steps or reads more text than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("content on which the expression takes too many steps")]
pub(crate) struct TooCostly;

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum XPathError {
    /// It does not follow the grammar.
    #[error("`{0}` is no XPath: {1}")]
    Grammar(String, String),
    /// It is too long or too deep.
    #[error(
        "has more than {LONGEST_EXPRESSION} characters, or brackets in each other more than {DEEPEST} deep"
    )]
    TooLong,
    /// A prefix without a namespace.
    #[error("the prefix `{0}` has no namespace: give it in `xpath_namespaces`")]
    Prefix(String),
}

impl XPath {
    /// Compiles an expression.
    ///
    /// - `namespaces`: prefixes, each with the URI that it stands for.
    pub fn new(text: &str, namespaces: &[(String, String)]) -> Result<Self, XPathError> {
        if text.len() > LONGEST_EXPRESSION || depth(text) > DEEPEST {
            return Err(XPathError::TooLong);
        }
        let grammar =
            |error: &dyn fmt::Display| XPathError::Grammar(text.to_owned(), error.to_string());
        let expression = parse(text).map_err(|error| grammar(&error))?;
        if let Some(unknown) = prefixes(text)
            .into_iter()
            .find(|prefix| !namespaces.iter().any(|(known, _)| known == prefix))
        {
            return Err(XPathError::Prefix(unknown.to_owned()));
        }
        let compiled = Self {
            text: text.to_owned(),
            is_product: cost::is_product(&expression),
            expression,
            namespaces: namespaces.to_vec(),
            ignores_namespaces: false,
        };
        // Unknown functions show in evaluation.
        let empty = Document::parse("<a/>").expect("this is XML");
        RequestBudget::default()
            .evaluate(true, |budget| compiled.evaluated(&empty, budget))
            .map_err(|error| XPathError::Grammar(text.to_owned(), error.to_string()))?;
        Ok(compiled)
    }

    /// The same for documents whose names count without their namespaces.
    #[must_use]
    pub(crate) fn ignoring_namespaces(self) -> Self {
        Self {
            ignores_namespaces: true,
            ..self
        }
    }

    /// The texts that it finds: of nodes their string values, of numbers and texts themselves, and `true` of what holds.
    ///
    /// - `budget`: what evaluations for this request may still cost.
    pub(crate) fn values(
        &self,
        document: &Document<'_>,
        budget: &RequestBudget,
    ) -> Result<Vec<String>, TooCostly> {
        budget.evaluate(self.is_product, |budget| {
            let values = self.evaluated(document, budget).unwrap_or_default();
            if budget.is_exceeded() {
                return Err(TooCostly);
            }
            Ok(values)
        })
    }

    fn evaluated(
        &self,
        document: &Document<'_>,
        budget: &Budget,
    ) -> Result<Vec<String>, EvalError> {
        let namespace = |prefix: &str| {
            let mut known = self.namespaces.iter();
            let (_, uri) = known.find(|(known, _)| known == prefix)?;
            Some(uri.clone())
        };
        let scope = Scope::new(document, budget, self.ignores_namespaces);
        let mut context = EvaluationContext::new(scope.root());
        context.namespaces = Some(&namespace);
        let found = evaluate(&self.expression, &context)?;
        Ok(match found {
            Value::NodeSet(nodes) => {
                let texts = nodes.into_iter().map(xpath_eval::Node::string_value);
                texts.take_while(|_| !budget.is_exceeded()).collect()
            }
            Value::Boolean(false) => Vec::new(),
            Value::Boolean(true) => vec!["true".to_owned()],
            other => vec![other.to_xpath_string()],
        })
    }
}

impl fmt::Display for XPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Nesting depth of brackets.
fn depth(text: &str) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' => now += 1,
            b')' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(now);
    }
    deepest
}

/// The prefixes of names, which stand before a single colon; texts in quotes are left out.
fn prefixes(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (number, part) in text.split(['"', '\'']).enumerate() {
        if number % 2 == 1 {
            continue;
        }
        let outside = part.replace("::", "  ");
        for (at, _) in outside.match_indices(':') {
            let before = part.get(..at).unwrap_or_default();
            let is_name = |it: char| it.is_alphanumeric() || "-_.".contains(it);
            let start = before.rfind(|it| !is_name(it)).map_or(0, |it| it + 1);
            found.extend(before.get(start..).filter(|prefix| !prefix.is_empty()));
        }
    }
    found
}

#[cfg(test)]
mod tests;
