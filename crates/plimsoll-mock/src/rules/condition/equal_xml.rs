//! Content that is XML equal to some other.
//!
//! Documents are equal if their elements are: the same names, attributes in any order, the same texts without the blanks
//! around them, and the same elements within, of which those of other names may stand elsewhere. Comments, prefixes of
//! namespaces and where schemas lie say nothing. WireMock compares so.

use std::cell::OnceCell;
use std::fmt;

use roxmltree::{Document, Node};
use sha2::{Digest, Sha256};

use super::xpath::{XmlError, document};

/// The digest of a document; equal documents have equal digests.
type Sum = [u8; 32];

/// XML that content must be equal to.
#[derive(Debug, Clone)]
pub struct EqualXml {
    text: String,
    ignores_order: bool,
    sum: Sum,
}

/// Why a text cannot be compared with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is {0}")]
pub struct NoXml(#[from] XmlError);

/// The sums of a document, computed when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    in_order: OnceCell<Sum>,
    in_any_order: OnceCell<Sum>,
}

impl EqualXml {
    /// Content equal to a document.
    ///
    /// - `ignores_order`: whether elements of the same name may stand in any order, too.
    pub fn new(text: &str, ignores_order: bool) -> Result<Self, NoXml> {
        let parsed = document(text.trim_start().as_bytes())?;
        Ok(Self {
            text: text.to_owned(),
            ignores_order,
            sum: sum(&parsed, ignores_order),
        })
    }

    /// Whether a document is equal.
    ///
    /// - `sums`: those of the document, for all that compare it.
    pub(crate) fn is_met_by(&self, document: &Document<'_>, sums: &Sums) -> bool {
        let known = if self.ignores_order {
            &sums.in_any_order
        } else {
            &sums.in_order
        };
        *known.get_or_init(|| sum(document, self.ignores_order)) == self.sum
    }
}

impl fmt::Display for EqualXml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// Of the elements those within come first, so that nothing calls itself however deep they are.
fn sum(document: &Document<'_>, ignores_order: bool) -> Sum {
    let root = document.root_element();
    let elements: Vec<_> = root.descendants().filter(Node::is_element).collect();
    let mut sums: Vec<(usize, Sum)> = Vec::with_capacity(elements.len());
    for element in elements.iter().rev() {
        let sum = sum_of(*element, ignores_order, &sums);
        sums.push((element.id().get_usize(), sum));
    }
    sums.pop().map(|(_, sum)| sum).unwrap_or_default()
}

/// - `known`: the sums of all elements behind this one, the last one first.
fn sum_of(element: Node<'_, '_>, ignores_order: bool, known: &[(usize, Sum)]) -> Sum {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        // With its length, so that no two lists of them are one.
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    };
    let name = element.tag_name();
    add(name.namespace().unwrap_or_default().as_bytes());
    add(name.name().as_bytes());
    let attributes = element.attributes().filter(|it| {
        let is_about_schemas = it.namespace() == Some("http://www.w3.org/2001/XMLSchema-instance");
        !(is_about_schemas && ["schemaLocation", "noNamespaceSchemaLocation"].contains(&it.name()))
    });
    let attributes =
        attributes.map(|it| (it.namespace().unwrap_or_default(), it.name(), it.value()));
    let mut attributes: Vec<_> = attributes.collect();
    attributes.sort_unstable();
    add(&attributes.len().to_le_bytes());
    for (namespace, name, value) in attributes {
        for text in [namespace, name, value] {
            add(text.as_bytes());
        }
    }
    let mut children = children(element, known);
    if ignores_order {
        children.sort_unstable();
    } else {
        children.sort_by(|one, other| one.0.cmp(other.0));
    }
    for (name, sum) in children {
        add(name.as_bytes());
        add(&sum);
    }
    hash.finalize().into()
}

/// Elements by their names, and texts, which have none; blank ones are left out.
fn children<'n>(element: Node<'n, '_>, known: &[(usize, Sum)]) -> Vec<(&'n str, Sum)> {
    let mut children = Vec::new();
    let mut text = String::new();
    let finish = |text: &mut String, children: &mut Vec<(&'n str, Sum)>| {
        let trimmed = text.trim();
        if !trimmed.is_empty() {
            children.push(("", Sha256::digest(trimmed).into()));
        }
        text.clear();
    };
    for child in element.children() {
        if child.is_text() {
            text.push_str(child.text().unwrap_or_default());
        } else if child.is_element() {
            finish(&mut text, &mut children);
            let id = child.id().get_usize();
            let at = known.binary_search_by(|(known, _)| id.cmp(known));
            let sum = at.map(|at| known[at].1).unwrap_or_default();
            children.push((child.tag_name().name(), sum));
        } else if let Some(instruction) = child.pi() {
            finish(&mut text, &mut children);
            let value = instruction.value.unwrap_or_default();
            children.push((instruction.target, Sha256::digest(value).into()));
        }
    }
    finish(&mut text, &mut children);
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_equal(one: &str, other: &str, ignores_order: bool) -> bool {
        let test = EqualXml::new(one, ignores_order).unwrap();
        document(other.as_bytes()).is_ok_and(|it| test.is_met_by(&it, &Sums::default()))
    }

    #[test]
    fn documents_are_equal_as_wiremock_has_it() {
        let one = r#"<r><a>1</a><a>2</a><b k="v" l="w"/></r>"#;
        for (other, expected) in [
            (one, true),
            (
                r#"<r><b l="w" k="v"></b> <a>1</a><!-- c --><a> 2 </a></r>"#,
                true,
            ),
            (r#"<r><a>2</a><a>1</a><b k="v" l="w"/></r>"#, false),
            (r#"<r><a>1</a><a>2</a><b k="v"/></r>"#, false),
            (r#"<r><a>1</a><a>2</a><b k="v" l="w">x</b></r>"#, false),
            ("<r>", false),
        ] {
            assert_eq!(is_equal(one, other, false), expected, "{other}");
        }
        let other = r#"<r><a>2</a><b k="v" l="w"/><a>1</a></r>"#;
        assert!(is_equal(one, other, true) && !is_equal(one, "<r/>", true));
        let named = r#"<r xmlns="u"><a/></r>"#;
        assert!(is_equal(named, r#"<p:r xmlns:p="u"><p:a/></p:r>"#, false));
        assert!(!is_equal(named, "<r><a/></r>", false));
        let placed =
            r#"<r xmlns:x="http://www.w3.org/2001/XMLSchema-instance" x:schemaLocation="u v"/>"#;
        assert!(is_equal("<r/>", placed, false));
    }

    #[test]
    fn what_is_deep_or_no_xml_does_no_harm() {
        let deep = format!("{}{}", "<a>".repeat(9_000), "</a>".repeat(9_000));
        assert!(!is_equal("<a/>", &deep, false));
        for wrong in ["", "x", "<a>", "<!DOCTYPE a><a/>"] {
            assert!(EqualXml::new(wrong, false).is_err(), "{wrong}");
        }
    }
}
