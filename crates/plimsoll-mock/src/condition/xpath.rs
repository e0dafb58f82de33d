//! Tests of content that is XML, by expressions of XPath 1.0.
//!
//! Documents are bounded and must not have a document type, so no entity of theirs is ever expanded.

mod node;

use std::fmt;

use roxmltree::{Document, ParsingOptions};
use xpath_eval::{EvaluationContext, Expr, Value, evaluate, parse};

use self::node::XmlNode;

/// Longer content is not looked at as XML.
const LONGEST: usize = 1 << 20;

/// Nor is content with more nodes.
const MOST_NODES: u32 = 100_000;

/// Longer expressions are refused, as are those that are nested deeper: their parser calls itself.
const LONGEST_EXPRESSION: usize = 1024;
const DEEPEST: usize = 32;

/// A compiled expression, with what its prefixes stand for.
#[derive(Debug, Clone)]
pub struct XPath {
    text: String,
    expression: Expr,
    namespaces: Vec<(String, String)>,
}

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
    /// A prefix that nothing is said about.
    #[error("what the prefix `{0}` stands for is not said: give it in `xpath_namespaces`")]
    Prefix(String),
}

/// XML, if content is some.
pub(crate) fn document(content: &[u8]) -> Option<Document<'_>> {
    if content.len() > LONGEST {
        return None;
    }
    let text = std::str::from_utf8(content).ok()?;
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MOST_NODES,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).ok()
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
            expression,
            namespaces: namespaces.to_vec(),
        };
        // What is unknown to it is told by evaluating.
        let empty = Document::parse("<a/>").expect("this is XML");
        compiled
            .evaluated(&empty)
            .map_err(|error| XPathError::Grammar(text.to_owned(), error))?;
        Ok(compiled)
    }

    /// The texts that it finds: of nodes what they say, of numbers and texts themselves, and `true` of what holds.
    pub(crate) fn values(&self, document: &Document<'_>) -> Vec<String> {
        self.evaluated(document).unwrap_or_default()
    }

    fn evaluated(&self, document: &Document<'_>) -> Result<Vec<String>, String> {
        let namespace = |prefix: &str| {
            let mut known = self.namespaces.iter();
            let (_, uri) = known.find(|(known, _)| known == prefix)?;
            Some(uri.clone())
        };
        let mut context = EvaluationContext::new(XmlNode::root(document));
        context.namespaces = Some(&namespace);
        let found = evaluate(&self.expression, &context).map_err(|error| error.to_string())?;
        Ok(match found {
            Value::NodeSet(nodes) => {
                let texts = nodes.into_iter().map(xpath_eval::Node::string_value);
                texts.collect()
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

/// How deep brackets stand in each other.
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
