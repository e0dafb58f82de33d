//! Nodes of XML as XPath sees them (XPath 1.0, section 5).

use std::borrow::Cow;
use std::cmp::Ordering;

use roxmltree::{Document, NodeType};
use xpath_eval::{ExpandedName, Node, NodeKind};

use super::budget::Budget;

/// A node, or an attribute or a namespace of one, which are no nodes to the parser.
///
/// Once its budget is exceeded it has no relatives and no text.
#[derive(Debug, Clone, Copy)]
pub(super) struct XmlNode<'d> {
    node: roxmltree::Node<'d, 'd>,
    part: Part,
    budget: &'d Budget,
}

impl PartialEq for XmlNode<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node && self.part == other.part
    }
}

impl Eq for XmlNode<'_> {}

/// In the order of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Itself,
    Namespace(usize),
    Attribute(usize),
}

impl<'d> XmlNode<'d> {
    pub(super) fn root(document: &'d Document<'_>, budget: &'d Budget) -> Self {
        Self {
            node: document.root(),
            part: Part::Itself,
            budget,
        }
    }

    fn with(self, node: roxmltree::Node<'d, 'd>) -> Self {
        Self {
            node,
            part: Part::Itself,
            budget: self.budget,
        }
    }

    /// As many of its parts as the budget has steps for.
    fn parts(self, count: usize, part: fn(usize) -> Part) -> impl Iterator<Item = Self> + 'd {
        let parts = (0..count).map(move |number| Self {
            part: part(number),
            ..self
        });
        parts.take_while(move |_| self.budget.step())
    }

    /// Its text where that lies in one piece, and of an element what the texts in it come to.
    fn text(self) -> Cow<'d, str> {
        let whole = |text: Option<&'d str>| {
            let text = text.unwrap_or_default();
            let is_allowed = self.budget.read(text.len());
            Cow::Borrowed(if is_allowed { text } else { "" })
        };
        match self.part {
            Part::Attribute(number) => whole(self.attribute(number).map(|it| it.value())),
            Part::Namespace(number) => {
                let namespace = self.node.namespaces().nth(number);
                whole(namespace.map(roxmltree::Namespace::uri))
            }
            Part::Itself => match self.node.node_type() {
                NodeType::Root | NodeType::Element => Cow::Owned(self.inner_text()),
                NodeType::PI => whole(self.node.pi().and_then(|it| it.value)),
                NodeType::Comment | NodeType::Text => whole(self.node.text()),
            },
        }
    }

    fn inner_text(self) -> String {
        let mut text = String::new();
        for node in self.node.descendants() {
            let piece = if node.is_text() { node.text() } else { None };
            let piece = piece.unwrap_or_default();
            if !self.budget.read(piece.len()) {
                return String::new();
            }
            text.push_str(piece);
        }
        text
    }

    fn attribute(self, number: usize) -> Option<roxmltree::Attribute<'d, 'd>> {
        self.node.attributes().nth(number)
    }
}

impl<'d> Node<'d> for XmlNode<'d> {
    fn kind(self) -> NodeKind {
        match self.part {
            Part::Attribute(_) => NodeKind::Attribute,
            Part::Namespace(_) => NodeKind::Namespace,
            Part::Itself => match self.node.node_type() {
                NodeType::Root => NodeKind::Root,
                NodeType::Element => NodeKind::Element,
                NodeType::PI => NodeKind::ProcessingInstruction,
                NodeType::Comment => NodeKind::Comment,
                NodeType::Text => NodeKind::Text,
            },
        }
    }

    fn parent(self) -> Option<Self> {
        match self.part {
            _ if !self.budget.step() => None,
            Part::Itself => self.node.parent().map(|node| self.with(node)),
            Part::Attribute(_) | Part::Namespace(_) => Some(self.with(self.node)),
        }
    }

    fn children(self) -> impl Iterator<Item = Self> + 'd {
        let children = (self.part == Part::Itself).then(|| self.node.children());
        let children = children.into_iter().flatten();
        let children = children.take_while(move |_| self.budget.step());
        children.map(move |node| self.with(node))
    }

    fn attributes(self) -> impl Iterator<Item = Self> + 'd {
        let count = match self.part {
            Part::Itself => self.node.attributes().len(),
            Part::Attribute(_) | Part::Namespace(_) => 0,
        };
        self.parts(count, Part::Attribute)
    }

    fn namespaces(self) -> impl Iterator<Item = Self> + 'd {
        let count = match self.part {
            Part::Itself if self.node.is_element() => self.node.namespaces().count(),
            _ => 0,
        };
        self.parts(count, Part::Namespace)
    }

    fn expanded_name(self) -> Option<ExpandedName> {
        let (uri, name) = match self.part {
            Part::Attribute(number) => {
                let attribute = self.attribute(number)?;
                (attribute.namespace(), attribute.name())
            }
            Part::Namespace(number) => {
                let namespace = self.node.namespaces().nth(number)?;
                (None, namespace.name().unwrap_or_default())
            }
            Part::Itself if self.node.is_element() => {
                let name = self.node.tag_name();
                (name.namespace(), name.name())
            }
            Part::Itself => (None, self.node.pi()?.target),
        };
        Some(ExpandedName {
            namespace_uri: uri.map(str::to_owned),
            local_name: name.to_owned(),
        })
    }

    fn string_value(self) -> String {
        self.text().into_owned()
    }

    fn with_string_value<R>(self, f: impl FnOnce(&str) -> R) -> R {
        f(&self.text())
    }

    fn document_order(self, other: Self) -> Ordering {
        let nodes = self.node.id().get().cmp(&other.node.id().get());
        nodes.then(self.part.cmp(&other.part))
    }
}
