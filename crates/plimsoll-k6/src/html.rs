//! Pages of HTML as trees, for `k6/html`: built by `html5ever` as the HTML Standard has it (13.2.6), with scripts enabled as k6 does.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, ExpandedName, LocalName, QualName, expanded_name, local_name, ns};

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// The place of its parent in the list; its own for the document, which is first.
    pub(crate) parent: usize,
    pub(crate) content: Content,
}

/// A node of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Document,
    /// The name of the root element.
    Doctype(String),
    Comment(String),
    Text(String),
    Element {
        /// In lower case, but for those of SVG that have capitals.
        name: String,
        attributes: Vec<(String, String)>,
    },
}

/// The tree of a page, each node before what is in it. Every text is one.
pub(crate) fn parse(text: &str) -> Vec<Node> {
    html5ever::parse_document(Tree::default(), html5ever::ParseOpts::default()).one(text)
}

/// A tree that grows, and in which nodes may move.
struct Tree(RefCell<Vec<Growing>>);

struct Growing {
    parent: Option<usize>,
    children: Vec<usize>,
    content: Content,
}

/// A node of the tree, with its name if it is an element.
#[derive(Clone)]
struct Handle {
    place: usize,
    name: Rc<QualName>,
}

impl Default for Tree {
    fn default() -> Self {
        Self(RefCell::new(vec![Growing {
            parent: None,
            children: Vec::new(),
            content: Content::Document,
        }]))
    }
}

impl Tree {
    fn make(&self, name: QualName, content: Content) -> Handle {
        let mut nodes = self.0.borrow_mut();
        nodes.push(Growing {
            parent: None,
            children: Vec::new(),
            content,
        });
        Handle {
            place: nodes.len() - 1,
            name: Rc::new(name),
        }
    }

    /// Puts a node or a text into a parent, before the child at an index. A text joins that before it.
    fn put(&self, parent: usize, index: usize, child: NodeOrText<Handle>) {
        let place = match child {
            NodeOrText::AppendNode(node) => {
                self.detach(node.place);
                node.place
            }
            NodeOrText::AppendText(text) => {
                let mut nodes = self.0.borrow_mut();
                let before = index
                    .checked_sub(1)
                    .and_then(|it| nodes[parent].children.get(it));
                if let Some(before) = before.copied()
                    && let Content::Text(known) = &mut nodes[before].content
                {
                    known.push_str(&text);
                    return;
                }
                drop(nodes);
                self.make(no_name(), Content::Text(text.into())).place
            }
        };
        let mut nodes = self.0.borrow_mut();
        let children = &mut nodes[parent].children;
        children.insert(index.min(children.len()), place);
        nodes[place].parent = Some(parent);
    }

    fn detach(&self, place: usize) {
        let mut nodes = self.0.borrow_mut();
        if let Some(parent) = nodes[place].parent.take() {
            nodes[parent].children.retain(|it| *it != place);
        }
    }

    fn parent_and_index(&self, place: usize) -> Option<(usize, usize)> {
        let nodes = self.0.borrow();
        let parent = nodes[place].parent?;
        let index = nodes[parent].children.iter().position(|it| *it == place)?;
        Some((parent, index))
    }
}

impl TreeSink for Tree {
    type Handle = Handle;
    type Output = Vec<Node>;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Vec<Node> {
        let mut nodes = self.0.into_inner();
        let mut made = Vec::with_capacity(nodes.len());
        // Places of what is still to come, and of their parents among what is made.
        let mut rest = vec![(0, 0)];
        while let Some((place, parent)) = rest.pop() {
            let node = &mut nodes[place];
            let children = std::mem::take(&mut node.children);
            let content = std::mem::replace(&mut node.content, Content::Document);
            made.push(Node { parent, content });
            let own = made.len() - 1;
            rest.extend(children.into_iter().rev().map(|child| (child, own)));
        }
        made
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        Handle {
            place: 0,
            name: Rc::new(no_name()),
        }
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        _: ElementFlags,
    ) -> Handle {
        let content = Content::Element {
            name: name.local.to_string(),
            attributes: attributes.into_iter().map(pair).collect(),
        };
        self.make(name, content)
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.make(no_name(), Content::Comment(text.into()))
    }

    fn create_pi(&self, _: StrTendril, data: StrTendril) -> Handle {
        self.create_comment(data)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        let index = self.0.borrow()[parent.place].children.len();
        self.put(parent.place, index, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Handle,
        previous: &Handle,
        child: NodeOrText<Handle>,
    ) {
        if self.parent_and_index(element.place).is_some() {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn append_doctype_to_document(&self, name: StrTendril, _: StrTendril, _: StrTendril) {
        let doctype = self.make(no_name(), Content::Doctype(name.into()));
        self.append(&self.get_document(), NodeOrText::AppendNode(doctype));
    }

    /// What is in a template is its content, as in k6's trees.
    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.clone()
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        one.place == other.place
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        if let NodeOrText::AppendNode(node) = &child {
            self.detach(node.place);
        }
        if let Some((parent, index)) = self.parent_and_index(sibling.place) {
            self.put(parent, index, child);
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, more: Vec<Attribute>) {
        if let Content::Element { attributes, .. } = &mut self.0.borrow_mut()[target.place].content
        {
            for (key, value) in more.into_iter().map(pair) {
                if attributes.iter().all(|(known, _)| *known != key) {
                    attributes.push((key, value));
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.detach(target.place);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        let mut nodes = self.0.borrow_mut();
        let children = std::mem::take(&mut nodes[node.place].children);
        for child in &children {
            nodes[*child].parent = Some(new_parent.place);
        }
        nodes[new_parent.place].children.extend(children);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Handle) -> bool {
        let is_html = |(key, value): &(String, String)| {
            let known = ["text/html", "application/xhtml+xml"];
            key == "encoding" && known.iter().any(|it| value.eq_ignore_ascii_case(it))
        };
        let nodes = self.0.borrow();
        target.name.expanded() == expanded_name!(mathml "annotation-xml")
            && matches!(&nodes[target.place].content,
                Content::Element { attributes, .. } if attributes.iter().any(is_html))
    }
}

/// Stands where a node is no element.
fn no_name() -> QualName {
    QualName::new(None, ns!(), LocalName::from(""))
}

fn pair(attribute: Attribute) -> (String, String) {
    let name = attribute.name;
    let key = match name.prefix {
        Some(prefix) => format!("{prefix}:{}", name.local),
        None => name.local.to_string(),
    };
    (key, attribute.value.into())
}

#[cfg(test)]
mod tests;
