//! A map of YAML whose keys are read by type.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_formats::yaml::{Content, Node};
use plimsoll_model::document::ConfigProblem;

use crate::time::go_duration;
use crate::yaml::Warning;
use crate::yaml::findings::Findings;

/// A map; keys that are not known are passed over, with a warning where one looks like a known one.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    entries: Vec<(String, Node)>,
    line: usize,
    column: usize,
    written: (usize, usize),
    /// Without a dot at its end.
    pub(crate) path: String,
    findings: Rc<RefCell<Findings>>,
    known: RefCell<Vec<&'static str>>,
}

impl Block {
    /// The map of a node; anything else is a problem.
    pub(crate) fn from_node(
        node: &Node,
        path: &str,
        findings: &Rc<RefCell<Findings>>,
    ) -> Option<Self> {
        let block = |entries| Self {
            entries,
            line: node.line,
            column: node.column,
            written: node.written,
            path: path.to_owned(),
            findings: Rc::clone(findings),
            known: RefCell::default(),
        };
        match &node.content {
            Content::Map(entries) => Some(block(entries.clone())),
            Content::Null => Some(block(Vec::new())),
            _ => {
                block(Vec::new()).wrong_at(node, "", "must be a map of keys", None);
                None
            }
        }
    }

    pub(crate) fn node(&self, key: &'static str) -> Option<&Node> {
        self.known.borrow_mut().push(key);
        let found = self.entries.iter().find(|(name, _)| name == key);
        found
            .map(|(_, node)| node)
            .filter(|node| !matches!(node.content, Content::Null))
    }

    pub(crate) fn entries(&self) -> &[(String, Node)] {
        &self.entries
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<String> {
        let node = self.node(key)?;
        match &node.content {
            Content::Text(text) | Content::Number(text) => Some(text.clone()),
            Content::Bool(boolean) => Some(boolean.to_string()),
            _ => {
                self.wrong_at(node, key, "must be a text", None);
                None
            }
        }
    }

    pub(crate) fn boolean(&self, key: &'static str) -> Option<bool> {
        let node = self.node(key)?;
        match &node.content {
            Content::Bool(boolean) => Some(*boolean),
            Content::Text(text) if ["y", "yes", "on"].contains(&text.to_lowercase().as_str()) => {
                Some(true)
            }
            Content::Text(text) if ["n", "no", "off"].contains(&text.to_lowercase().as_str()) => {
                Some(false)
            }
            _ => {
                self.wrong_at(node, key, "must be true or false", None);
                None
            }
        }
    }

    pub(crate) fn number(&self, key: &'static str) -> Option<i64> {
        let node = self.node(key)?;
        let (number, found) = match &node.content {
            Content::Number(number) => (number.parse().ok(), Some(number)),
            Content::Text(text) => (None, Some(text)),
            _ => (None, None),
        };
        if number.is_none() {
            let found = found.map_or(String::new(), |found| format!(", and this is `{found}`"));
            // Of files that Flux fills in before the program reads them.
            let hint = found
                .contains("${")
                .then_some("`$$` stands for `$`: write `${NAME}` for a variable");
            self.wrong_at(node, key, &format!("must be a whole number{found}"), hint);
        }
        number
    }

    /// A duration of Go above zero.
    pub(crate) fn duration(&self, key: &'static str) -> Option<Duration> {
        let node = self.node(key)?;
        let text = self.text(key)?;
        let found = go_duration::positive(&text);
        if found.is_none() {
            let hint = "write hours, minutes or seconds, such as 1h30m, 30s or 250ms";
            self.wrong_at(
                node,
                key,
                &format!("`{text}` is not a duration"),
                Some(hint),
            );
        }
        found
    }

    pub(crate) fn block(&self, key: &'static str) -> Option<Self> {
        let node = self.node(key)?;
        Self::from_node(node, &self.path_of(key), &self.findings)
    }

    /// The same; an empty one at this place if it is not there.
    pub(crate) fn block_or_empty(&self, key: &'static str) -> Self {
        let empty = || Self {
            entries: Vec::new(),
            path: self.path_of(key),
            known: RefCell::default(),
            ..self.clone()
        };
        self.block(key).unwrap_or_else(empty)
    }

    pub(crate) fn list(&self, key: &'static str) -> Vec<Node> {
        let Some(node) = self.node(key) else {
            return Vec::new();
        };
        if let Content::List(items) = &node.content {
            items.clone()
        } else {
            self.wrong_at(node, key, "must be a list", None);
            Vec::new()
        }
    }

    pub(crate) fn blocks(&self, key: &'static str) -> Vec<Self> {
        let nodes = self.list(key);
        let blocks = nodes.iter().enumerate().filter_map(|(number, node)| {
            let path = format!("{}[{number}]", self.path_of(key));
            Self::from_node(node, &path, &self.findings)
        });
        blocks.collect()
    }

    /// The values of all keys as blocks; absent for what is no map.
    pub(crate) fn children(&self) -> Vec<Option<Self>> {
        let children = self.entries.iter().map(|(name, node)| {
            let is_map = matches!(node.content, Content::Map(_));
            let block = || Self::from_node(node, &self.path_of(name), &self.findings);
            is_map.then(block).flatten()
        });
        children.collect()
    }

    /// The pairs of a map of texts.
    pub(crate) fn texts(&self, key: &'static str) -> Vec<(String, String)> {
        let Some(block) = self.block(key) else {
            return Vec::new();
        };
        let pairs = block
            .entries
            .iter()
            .filter_map(|(name, node)| match &node.content {
                Content::Text(text) | Content::Number(text) => Some((name.clone(), text.clone())),
                Content::Bool(boolean) => Some((name.clone(), boolean.to_string())),
                // Such as a variable that is not set.
                Content::Null => Some((name.clone(), String::new())),
                _ => {
                    block.wrong_at(node, name, "must be a text", None);
                    None
                }
            });
        pairs.collect()
    }

    pub(crate) fn path_of(&self, key: &str) -> String {
        match (self.path.is_empty(), key.is_empty()) {
            (true, _) => key.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{key}", self.path),
        }
    }

    /// Notes a problem at the value of a key, or at the block if it has none.
    pub(crate) fn wrong(&self, key: &str, message: &str, hint: Option<&str>) {
        let found = self.entries.iter().find(|(name, _)| name == key);
        match found {
            Some((_, node)) => self.wrong_at(&node.clone(), key, message, hint),
            None => self.add((self.line, self.column), self.written, key, message, hint),
        }
    }

    pub(crate) fn wrong_at(&self, node: &Node, key: &str, message: &str, hint: Option<&str>) {
        self.add((node.line, node.column), node.written, key, message, hint);
    }

    fn add(
        &self,
        (line, column): (usize, usize),
        written: (usize, usize),
        key: &str,
        message: &str,
        hint: Option<&str>,
    ) {
        let problem = ConfigProblem {
            line: line.max(1),
            column: column.max(1),
            key: self.path_of(key),
            message: message.to_owned(),
            hint: hint.map(str::to_owned),
        };
        self.findings.borrow_mut().add_problem(problem, written);
    }

    /// Notes something doubtful.
    pub(crate) fn warn(&self, key: &str, message: impl Into<String>) {
        let found = self.entries.iter().find(|(name, _)| name == key);
        let line = found.map_or(self.written.0, |(_, node)| node.written.0);
        let warning = Warning {
            place: self.path_of(key),
            message: message.into(),
        };
        self.findings.borrow_mut().add_warning(warning, line);
    }

    /// Warns of keys that look like a known one.
    pub(crate) fn finish(&self) {
        for (name, _, near) in self.unknown() {
            if let Some(near) = near {
                self.warn(
                    name,
                    format!("is not a known key and has no effect; did you mean `{near}`?"),
                );
            }
        }
    }

    /// Notes each key that is not known as a problem.
    pub(crate) fn refuse_unknown(&self) {
        for (name, node, near) in self.unknown() {
            let hint = near.map_or_else(
                || "remove it".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            self.wrong_at(node, name, "is not a known key", Some(&hint));
        }
    }

    /// Keys that were not read, with the known one that they look like.
    fn unknown(&self) -> Vec<(&str, &Node, Option<&'static str>)> {
        let known = self.known.borrow();
        let unknown = self
            .entries
            .iter()
            .filter(|(name, _)| !known.contains(&name.as_str()));
        let with_near = unknown.map(|(name, node)| {
            let near = known
                .iter()
                .map(|known| (strsim::jaro_winkler(name, known), *known))
                .filter(|(likeness, _)| *likeness > 0.9)
                .max_by(|one, other| one.0.total_cmp(&other.0));
            (name.as_str(), node, near.map(|(_, near)| near))
        });
        with_near.collect()
    }
}
