//! Nodes of XML as XPath sees them (XPath 1.0, section 5).

use std::cmp::Ordering;

use roxmltree::{Document, NodeType};
use xpath_eval::{ExpandedName, Node, NodeKind};

/// A node, or an attribute or a namespace of one, which are no nodes to the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct XmlNode<'d> {
    node: roxmltree::Node<'d, 'd>,
    part: Part,
}

/// In the order of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Itself,
    Namespace(usize),
    Attribute(usize),
}

impl<'d> XmlNode<'d> {
    pub(super) fn root(document: &'d Document<'_>) -> Self {
        Self::of(document.root())
    }

    fn of(node: roxmltree::Node<'d, 'd>) -> Self {
        Self {
            node,
            part: Part::Itself,
        }
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
            Part::Itself => self.node.parent().map(Self::of),
            Part::Attribute(_) | Part::Namespace(_) => Some(Self::of(self.node)),
        }
    }

    fn children(self) -> impl Iterator<Item = Self> + 'd {
        let children = (self.part == Part::Itself).then(|| self.node.children());
        children.into_iter().flatten().map(Self::of)
    }

    fn attributes(self) -> impl Iterator<Item = Self> + 'd {
        let count = match self.part {
            Part::Itself => self.node.attributes().len(),
            Part::Attribute(_) | Part::Namespace(_) => 0,
        };
        (0..count).map(move |number| Self {
            part: Part::Attribute(number),
            ..self
        })
    }

    fn namespaces(self) -> impl Iterator<Item = Self> + 'd {
        let count = match self.part {
            Part::Itself if self.node.is_element() => self.node.namespaces().count(),
            _ => 0,
        };
        (0..count).map(move |number| Self {
            part: Part::Namespace(number),
            ..self
        })
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
        match self.part {
            Part::Attribute(number) => self
                .attribute(number)
                .map_or_else(String::new, |it| it.value().to_owned()),
            Part::Namespace(number) => {
                let namespace = self.node.namespaces().nth(number);
                namespace.map_or_else(String::new, |it| it.uri().to_owned())
            }
            Part::Itself => match self.node.node_type() {
                NodeType::Root | NodeType::Element => {
                    let texts = self.node.descendants().filter(roxmltree::Node::is_text);
                    texts.filter_map(|it| it.text()).collect()
                }
                NodeType::PI => {
                    let value = self.node.pi().and_then(|it| it.value);
                    value.unwrap_or_default().to_owned()
                }
                NodeType::Comment | NodeType::Text => {
                    self.node.text().unwrap_or_default().to_owned()
                }
            },
        }
    }

    fn document_order(self, other: Self) -> Ordering {
        let nodes = self.node.id().get().cmp(&other.node.id().get());
        nodes.then(self.part.cmp(&other.part))
    }
}
