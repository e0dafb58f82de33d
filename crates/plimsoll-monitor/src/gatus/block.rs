//! A map of a configuration of Gatus whose keys are read by type.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_model::document::ConfigProblem;

use crate::config::Warning;
use crate::gatus::duration;
use crate::gatus::yaml::{Content, Node};

/// Errors and doubts so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) warnings: Vec<Warning>,
}

/// A map; keys that are not known are passed over, as Gatus does, with a warning where one looks like a known one.
#[derive(Debug, Clone)]
pub(super) struct Block {
    entries: Vec<(String, Node)>,
    pub(super) line: usize,
    pub(super) column: usize,
    /// Without a dot at its end.
    pub(super) path: String,
    findings: Rc<RefCell<Findings>>,
    known: RefCell<Vec<&'static str>>,
}

impl Block {
    /// The map of a node; anything else is a problem.
    pub(super) fn of(node: &Node, path: &str, findings: &Rc<RefCell<Findings>>) -> Option<Self> {
        let block = |entries| Self {
            entries,
            line: node.line,
            column: node.column,
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

    pub(super) fn node(&self, key: &'static str) -> Option<&Node> {
        self.known.borrow_mut().push(key);
        let found = self.entries.iter().find(|(name, _)| name == key);
        found
            .map(|(_, node)| node)
            .filter(|node| !matches!(node.content, Content::Null))
    }

    pub(super) fn entries(&self) -> &[(String, Node)] {
        &self.entries
    }

    pub(super) fn text(&self, key: &'static str) -> Option<String> {
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

    pub(super) fn boolean(&self, key: &'static str) -> Option<bool> {
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

    pub(super) fn number(&self, key: &'static str) -> Option<i64> {
        let node = self.node(key)?;
        let number = match &node.content {
            Content::Number(number) => number.parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.wrong_at(node, key, "must be a whole number", None);
        }
        number
    }

    /// A duration of Go above zero.
    pub(super) fn duration(&self, key: &'static str) -> Option<Duration> {
        let node = self.node(key)?;
        let text = self.text(key)?;
        let found = duration::positive(&text);
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

    pub(super) fn block(&self, key: &'static str) -> Option<Self> {
        let node = self.node(key)?;
        Self::of(node, &self.path_of(key), &self.findings)
    }

    pub(super) fn list(&self, key: &'static str) -> Vec<Node> {
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

    pub(super) fn blocks(&self, key: &'static str) -> Vec<Self> {
        let nodes = self.list(key);
        let blocks = nodes.iter().enumerate().filter_map(|(number, node)| {
            let path = format!("{}[{number}]", self.path_of(key));
            Self::of(node, &path, &self.findings)
        });
        blocks.collect()
    }

    /// The values of all keys as blocks; absent for what is no map.
    pub(super) fn children(&self) -> Vec<Option<Self>> {
        let children = self.entries.iter().map(|(name, node)| {
            let is_map = matches!(node.content, Content::Map(_));
            let block = || Self::of(node, &self.path_of(name), &self.findings);
            is_map.then(block).flatten()
        });
        children.collect()
    }

    /// The pairs of a map of texts.
    pub(super) fn texts(&self, key: &'static str) -> Vec<(String, String)> {
        let Some(block) = self.block(key) else {
            return Vec::new();
        };
        let pairs = block
            .entries
            .iter()
            .filter_map(|(name, node)| match &node.content {
                Content::Text(text) | Content::Number(text) => Some((name.clone(), text.clone())),
                Content::Bool(boolean) => Some((name.clone(), boolean.to_string())),
                _ => {
                    block.wrong_at(node, name, "must be a text", None);
                    None
                }
            });
        pairs.collect()
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        match (self.path.is_empty(), key.is_empty()) {
            (true, _) => key.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{key}", self.path),
        }
    }

    /// Notes a problem at the value of a key, or at the block if it has none.
    pub(super) fn wrong(&self, key: &str, message: &str, hint: Option<&str>) {
        let found = self.entries.iter().find(|(name, _)| name == key);
        match found {
            Some((_, node)) => self.wrong_at(&node.clone(), key, message, hint),
            None => self.add(self.line, self.column, key, message, hint),
        }
    }

    pub(super) fn wrong_at(&self, node: &Node, key: &str, message: &str, hint: Option<&str>) {
        self.add(node.line, node.column, key, message, hint);
    }

    fn add(&self, line: usize, column: usize, key: &str, message: &str, hint: Option<&str>) {
        self.findings.borrow_mut().problems.push(ConfigProblem {
            line: line.max(1),
            column: column.max(1),
            key: self.path_of(key),
            message: message.to_owned(),
            hint: hint.map(str::to_owned),
        });
    }

    /// Notes something doubtful.
    pub(super) fn warn(&self, key: &str, message: impl Into<String>) {
        self.findings.borrow_mut().warnings.push(Warning {
            place: self.path_of(key),
            message: message.into(),
        });
    }

    /// Warns of keys that look like a known one.
    pub(super) fn finish(&self) {
        let known = self.known.borrow();
        for (name, _) in &self.entries {
            if known.contains(&name.as_str()) {
                continue;
            }
            let near = known
                .iter()
                .map(|known| (strsim::jaro_winkler(name, known), *known))
                .filter(|(likeness, _)| *likeness > 0.9)
                .max_by(|one, other| one.0.total_cmp(&other.0));
            if let Some((_, near)) = near {
                self.warn(
                    name,
                    format!("is not a known key and has no effect; did you mean `{near}`?"),
                );
            }
        }
    }
}
