//! Nodes of XML as XPath sees them (XPath 1.0, section 5).

use std::borrow::Cow;
use std::cmp::Ordering;

use roxmltree::{Document, NodeId, NodeType};
use xpath_eval::{ExpandedName, Node, NodeKind};

use super::budget::Budget;

/// A document with what an evaluation on it may cost.
#[derive(Debug)]
pub(super) struct Scope<'d> {
    document: &'d Document<'d>,
    budget: &'d Budget,
    ignores_namespaces: bool,
}

/// A node, or an attribute or a namespace of one, which are no nodes to the parser.
///
/// Once its budget is exceeded it has no relatives and no text. Evaluations hold many of these, so they are small.
#[derive(Debug, Clone, Copy)]
pub(super) struct XmlNode<'d> {
    scope: &'d Scope<'d>,
    id: NodeId,
    part: Part,
}

const _: () = assert!(size_of::<XmlNode<'_>>() == 16);

impl PartialEq for XmlNode<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.part == other.part
    }
}

impl Eq for XmlNode<'_> {}

/// In the order of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Itself,
    Namespace(u16),
    Attribute(u16),
}

impl<'d> Scope<'d> {
    pub(super) fn new(
        document: &'d Document<'d>,
        budget: &'d Budget,
        ignores_namespaces: bool,
    ) -> Self {
        Self {
            document,
            budget,
            ignores_namespaces,
        }
    }

    pub(super) fn root(&'d self) -> XmlNode<'d> {
        XmlNode {
            scope: self,
            id: self.document.root().id(),
            part: Part::Itself,
        }
    }
}

impl<'d> XmlNode<'d> {
    fn node(self) -> roxmltree::Node<'d, 'd> {
        let document = self.scope.document;
        // Its number is that of a node of the same document.
        document.get_node(self.id).unwrap_or(document.root())
    }

    fn budget(self) -> &'d Budget {
        self.scope.budget
    }

    fn with(self, node: roxmltree::Node<'d, 'd>) -> Self {
        Self {
            id: node.id(),
            part: Part::Itself,
            ..self
        }
    }

    /// As many of its parts as the budget has steps for; their numbers are bounded by those of documents.
    fn parts(self, count: usize, part: fn(u16) -> Part) -> impl Iterator<Item = Self> + 'd {
        let parts = (0..u16::MAX).take(count).map(move |number| Self {
            part: part(number),
            ..self
        });
        parts.take_while(move |_| self.budget().step())
    }

    /// Its text where that lies in one piece, and of an element what the texts in it come to.
    fn text(self) -> Cow<'d, str> {
        let whole = |text: Option<&'d str>| {
            let text = text.unwrap_or_default();
            let is_allowed = self.budget().read(text.len());
            Cow::Borrowed(if is_allowed { text } else { "" })
        };
        match self.part {
            Part::Attribute(number) => whole(self.attribute(number).map(|it| it.value())),
            Part::Namespace(number) => {
                let namespace = self.node().namespaces().nth(number.into());
                whole(namespace.map(roxmltree::Namespace::uri))
            }
            Part::Itself => match self.node().node_type() {
                NodeType::Root | NodeType::Element => Cow::Owned(self.inner_text()),
                NodeType::PI => whole(self.node().pi().and_then(|it| it.value)),
                NodeType::Comment | NodeType::Text => whole(self.node().text()),
            },
        }
    }

    fn inner_text(self) -> String {
        let mut text = String::new();
        for node in self.node().descendants() {
            let piece = if node.is_text() { node.text() } else { None };
            let piece = piece.unwrap_or_default();
            if !self.budget().read(piece.len()) {
                return String::new();
            }
            text.push_str(piece);
        }
        text
    }

    fn attribute(self, number: u16) -> Option<roxmltree::Attribute<'d, 'd>> {
        self.node().attributes().nth(number.into())
    }
}

impl<'d> Node<'d> for XmlNode<'d> {
    fn kind(self) -> NodeKind {
        match self.part {
            Part::Attribute(_) => NodeKind::Attribute,
            Part::Namespace(_) => NodeKind::Namespace,
            Part::Itself => match self.node().node_type() {
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
            _ if !self.budget().step() => None,
            Part::Itself => self.node().parent().map(|node| self.with(node)),
            Part::Attribute(_) | Part::Namespace(_) => Some(self.with(self.node())),
        }
    }

    fn children(self) -> impl Iterator<Item = Self> + 'd {
        let children = (self.part == Part::Itself).then(|| self.node().children());
        let children = children.into_iter().flatten();
        let children = children.take_while(move |_| self.budget().step());
        children.map(move |node| self.with(node))
    }

    fn attributes(self) -> impl Iterator<Item = Self> + 'd {
        let count = match self.part {
            Part::Itself => self.node().attributes().len(),
            Part::Attribute(_) | Part::Namespace(_) => 0,
        };
        self.parts(count, Part::Attribute)
    }

    fn namespaces(self) -> impl Iterator<Item = Self> + 'd {
        let count = match self.part {
            Part::Itself if self.node().is_element() => self.node().namespaces().count(),
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
                let namespace = self.node().namespaces().nth(number.into())?;
                (None, namespace.name().unwrap_or_default())
            }
            Part::Itself if self.node().is_element() => {
                let name = self.node().tag_name();
                (name.namespace(), name.name())
            }
            Part::Itself => (None, self.node().pi()?.target),
        };
        Some(ExpandedName {
            namespace_uri: uri
                .filter(|_| !self.scope.ignores_namespaces)
                .map(str::to_owned),
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
        let nodes = self.id.get().cmp(&other.id.get());
        nodes.then(self.part.cmp(&other.part))
    }
}
