//! Pages of HTML as trees, for `k6/html`.
//!
//! Tokens are those of the HTML Standard (13.2.5). The tree is built by the rules that pages rely on: `html`, `head` and `body`
//! are always there, elements whose end tags are optional end where the standard says, and end tags without an element are ignored.
//! Misnested formatting (`<b><i></b></i>`) and texts within tables are simpler than in the standard: they stay where they
//! are written.

use html5gum::{State, Token, Tokenizer};

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
        /// In lower case.
        name: String,
        attributes: Vec<(String, String)>,
    },
}

/// Elements without content.
const VOID: [&str; 15] = [
    "area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link", "meta",
    "source", "track", "wbr",
];

/// Elements of the head, while there is no body yet.
const OF_HEAD: [&str; 8] = [
    "base", "link", "meta", "title", "style", "script", "noscript", "template",
];

/// Elements before which an open paragraph ends.
const BLOCKS: [&str; 38] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "center",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dd",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "li",
    "main",
    "menu",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "ul",
    "plaintext",
];

/// Elements that an element ends, and those beyond which it does not look for them.
fn ended_by(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "li" => (&["li"], &["ul", "ol", "menu"]),
        "dt" | "dd" => (&["dt", "dd"], &["dl"]),
        "option" => (&["option"], &["select", "datalist"]),
        "optgroup" => (&["option", "optgroup"], &["select"]),
        "td" | "th" => (&["td", "th"], &["tr", "table"]),
        "tr" => (&["td", "th", "tr"], &["table"]),
        "tbody" | "thead" | "tfoot" => (
            &[
                "td", "th", "tr", "tbody", "thead", "tfoot", "caption", "colgroup",
            ],
            &["table"],
        ),
        "a" => (&["a"], &["td", "th", "table", "button"]),
        "button" => (&["button"], &["table"]),
        _ => (&[], &[]),
    }
}

/// The tree of a page. Every text is one.
pub(crate) fn parse(text: &str) -> Vec<Node> {
    let mut builder = Builder::default();
    let mut tokens = Tokenizer::new(text);
    while let Some(Ok(token)) = tokens.next() {
        match token {
            Token::StartTag(tag) => {
                let name = lossy(&tag.name);
                let attributes = tag.attributes.iter();
                let attributes = attributes.map(|(key, value)| (lossy(key), lossy(value)));
                let is_foreign = builder.is_open("svg") || builder.is_open("math");
                match name.as_str() {
                    _ if is_foreign => {}
                    "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
                        tokens.set_state(State::RawText);
                    }
                    "script" => tokens.set_state(State::ScriptData),
                    "textarea" | "title" => tokens.set_state(State::RcData),
                    _ => {}
                }
                let ends = tag.self_closing && (is_foreign || matches!(&*name, "svg" | "math"));
                builder.start(&name, attributes.collect(), ends);
            }
            Token::EndTag(tag) => builder.end(&lossy(&tag.name)),
            Token::String(text) => builder.text(&lossy(&text)),
            Token::Comment(text) => builder.add(Content::Comment(lossy(&text))),
            Token::Doctype(doctype) => {
                if builder.nodes.len() == 1 {
                    builder.add(Content::Doctype(lossy(&doctype.name)));
                }
            }
            Token::Error(_) => {}
        }
    }
    builder.body();
    builder.nodes
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A tree that grows.
#[derive(Debug)]
struct Builder {
    nodes: Vec<Node>,
    /// Open elements from the outermost one, by their places; empty until there is a root.
    open: Vec<usize>,
    head: Option<usize>,
    body: Option<usize>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            nodes: vec![Node {
                parent: 0,
                content: Content::Document,
            }],
            open: Vec::new(),
            head: None,
            body: None,
        }
    }
}

impl Builder {
    fn name_of(&self, place: usize) -> &str {
        match self.nodes.get(place).map(|node| &node.content) {
            Some(Content::Element { name, .. }) => name,
            _ => "",
        }
    }

    fn is_open(&self, name: &str) -> bool {
        self.open.iter().any(|place| self.name_of(*place) == name)
    }

    fn add(&mut self, content: Content) {
        let parent = self.open.last().copied().unwrap_or(0);
        self.nodes.push(Node { parent, content });
    }

    fn open(&mut self, name: &str, attributes: Vec<(String, String)>) -> usize {
        self.add(Content::Element {
            name: name.to_owned(),
            attributes,
        });
        let place = self.nodes.len() - 1;
        self.open.push(place);
        place
    }

    fn root(&mut self) -> usize {
        match self.open.first() {
            Some(root) => *root,
            None => self.open("html", Vec::new()),
        }
    }

    /// Opens the head, unless there was one.
    fn head(&mut self) {
        self.root();
        if self.head.is_none() {
            self.head = Some(self.open("head", Vec::new()));
        }
    }

    /// Opens the body, unless there was one.
    fn body(&mut self) {
        if self.body.is_some() {
            return;
        }
        self.head();
        self.open.truncate(1);
        self.body = Some(self.open("body", Vec::new()));
    }

    fn merge(&mut self, place: usize, more: Vec<(String, String)>) {
        if let Some(Content::Element { attributes, .. }) =
            self.nodes.get_mut(place).map(|node| &mut node.content)
        {
            for (key, value) in more {
                if attributes.iter().all(|(known, _)| *known != key) {
                    attributes.push((key, value));
                }
            }
        }
    }

    /// - `ends`: it has no content.
    fn start(&mut self, name: &str, attributes: Vec<(String, String)>, ends: bool) {
        match name {
            "html" => {
                let root = self.root();
                return self.merge(root, attributes);
            }
            "head" if self.head.is_none() && self.body.is_none() => {
                self.head();
                let place = self.head.unwrap_or(0);
                return self.merge(place, attributes);
            }
            "head" => return,
            "body" | "frameset" => {
                self.body();
                let place = self.body.unwrap_or(0);
                return self.merge(place, attributes);
            }
            _ => {}
        }
        if self.body.is_none() {
            if OF_HEAD.contains(&name) {
                self.head();
            } else if !self.is_open("template") && !self.is_open("noscript") {
                self.body();
            }
        }
        if BLOCKS.contains(&name) {
            self.close(&["p"], &["button", "td", "th", "table"]);
        }
        let (ended, scope) = ended_by(name);
        self.close(ended, scope);
        if name == "tr"
            && self
                .open
                .last()
                .is_some_and(|it| self.name_of(*it) == "table")
        {
            self.open("tbody", Vec::new());
        }
        if matches!(name, "td" | "th") {
            if self
                .open
                .last()
                .is_some_and(|it| self.name_of(*it) == "table")
            {
                self.open("tbody", Vec::new());
            }
            let last = self.open.last().copied().unwrap_or(0);
            if matches!(self.name_of(last), "tbody" | "thead" | "tfoot") {
                self.open("tr", Vec::new());
            }
        }
        let is_void = VOID.contains(&name);
        self.open(name, attributes);
        if ends || is_void {
            self.open.pop();
        }
    }

    /// Closes the outermost open element of these, but none beyond the scope, with everything in it.
    fn close(&mut self, names: &[&str], scope: &[&str]) {
        let mut found = None;
        for (depth, place) in self.open.iter().enumerate().skip(2).rev() {
            let name = self.name_of(*place);
            if names.contains(&name) {
                found = Some(depth);
            } else if scope.contains(&name) {
                break;
            }
        }
        if let Some(depth) = found {
            self.open.truncate(depth);
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "html" | "body" => return,
            "head" => {
                if self.body.is_none() && self.head.is_some() {
                    self.open.truncate(1);
                }
                return;
            }
            "br" => return self.start("br", Vec::new(), false),
            "p" if !self.is_open("p") => self.start("p", Vec::new(), false),
            _ => {}
        }
        let mut depths = self.open.iter().enumerate().skip(2).rev();
        let is_cell = matches!(
            name,
            "td" | "th" | "tr" | "tbody" | "thead" | "tfoot" | "table"
        );
        let found = depths.find_map(|(depth, place)| {
            let open = self.name_of(*place);
            // A cell keeps what is written within it.
            let is_border = matches!(open, "td" | "th") && open != name && !is_cell;
            (open == name || is_border).then_some((depth, is_border))
        });
        if let Some((depth, false)) = found {
            self.open.truncate(depth);
        }
    }

    fn text(&mut self, text: &str) {
        let is_in_head = self.body.is_none();
        let mut text = text;
        if is_in_head && self.open.len() <= 2 {
            let trimmed = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
            if trimmed.is_empty() {
                // Spaces stay after the head began, and are nothing before it.
                if self.head.is_none() {
                    return;
                }
            } else {
                if self.head.is_none() {
                    text = trimmed;
                }
                self.body();
            }
        }
        let parent = self.open.last().copied().unwrap_or(0);
        if let Some(Node {
            parent: last,
            content: Content::Text(before),
        }) = self.nodes.last_mut()
            && *last == parent
        {
            before.push_str(text);
            return;
        }
        self.add(Content::Text(text.to_owned()));
    }
}

#[cfg(test)]
mod tests;
