//! Documents of YAML as nodes with the lines that they begin at.

use std::rc::Rc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::ImportError;
use super::nginx::Directive;

/// Events that anchors may be expanded to.
const MOST_EXPANDED: usize = 100_000;

/// A value and its line, counted from 1.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) content: Content,
}

/// The content of a node.
#[derive(Debug, Clone, Default)]
pub(super) enum Content {
    #[default]
    Null,
    /// Texts, numbers and booleans.
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// Stands for what is not there.
static NOTHING: Node = Node {
    line: 1,
    content: Content::Null,
};

impl Node {
    pub(super) const fn scalar(line: usize, text: String) -> Self {
        Self {
            line,
            content: Content::Scalar(text),
        }
    }

    /// The value of a key, whatever its case: Traefik and Docker compare names so.
    pub(super) fn get(&self, key: &str) -> &Self {
        let mut entries = self.entries().iter();
        let found = entries.find(|(known, _)| known.eq_ignore_ascii_case(key));
        found.map_or(&NOTHING, |(_, node)| node)
    }

    /// The value at keys with dots between them.
    pub(super) fn at(&self, path: &str) -> &Self {
        path.split('.').fold(self, |node, key| node.get(key))
    }

    pub(super) const fn is_there(&self) -> bool {
        !matches!(self.content, Content::Null)
    }

    pub(super) fn entries(&self) -> &[(String, Self)] {
        match &self.content {
            Content::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn items(&self) -> &[Self] {
        match &self.content {
            Content::List(items) => items,
            _ => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The text at a path.
    pub(super) fn text_at(&self, path: &str) -> Option<&str> {
        self.at(path).text()
    }

    pub(super) fn number_at(&self, path: &str) -> Option<i64> {
        self.text_at(path)?.trim().parse().ok()
    }

    pub(super) fn is_true(&self, path: &str) -> bool {
        self.text_at(path)
            .is_some_and(|it| it.eq_ignore_ascii_case("true"))
    }

    /// The texts of a list, or of one with commas between them as labels have it.
    pub(super) fn texts(&self) -> Vec<String> {
        match &self.content {
            Content::Scalar(text) => {
                let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
                parts.map(str::to_owned).collect()
            }
            Content::List(items) => {
                let texts = items.iter().filter_map(Self::text);
                texts.map(str::to_owned).collect()
            }
            Content::Null | Content::Map(_) => Vec::new(),
        }
    }

    /// The entry of a key, which is made a map if need be.
    pub(super) fn entry(&mut self, key: &str, line: usize) -> &mut Self {
        if !matches!(self.content, Content::Map(_)) {
            self.content = Content::Map(Vec::new());
            self.line = line;
        }
        match &mut self.content {
            Content::Map(entries) => {
                let known = entries
                    .iter()
                    .position(|(known, _)| known.eq_ignore_ascii_case(key));
                let at = known.unwrap_or_else(|| {
                    let line_only = Self {
                        line,
                        content: Content::Null,
                    };
                    entries.push((key.to_owned(), line_only));
                    entries.len() - 1
                });
                &mut entries[at].1
            }
            _ => unreachable!("it was made a map above"),
        }
    }

    /// For a note about it.
    pub(super) fn place(&self, file: &Rc<str>, name: &str) -> Directive {
        Directive {
            file: Rc::clone(file),
            line: self.line.max(1),
            name: name.to_owned(),
            arguments: Vec::new(),
            block: Vec::new(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self {
            line: usize::try_from(spanned.referenced.line())
                .unwrap_or(1)
                .max(1),
            content: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Scalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Content::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Content::Map(entries))
    }
}

/// The documents of a file of YAML, but for empty ones.
pub(super) fn documents(file: &str, text: &str) -> Result<Vec<Node>, ImportError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MOST_EXPANDED,
        },
        budget: serde_saphyr::budget! {
            enforce_alias_anchor_ratio: false,
            max_merge_keys: MOST_EXPANDED,
        },
    };
    let mut all = Vec::new();
    let mut begun = 0;
    for document in split(text) {
        let lines = document.lines().count();
        let parsed = serde_saphyr::from_str_with_options::<Option<Node>>(document, options.clone());
        match parsed {
            Ok(Some(mut node)) => {
                move_down(&mut node, begun);
                all.push(node);
            }
            Ok(None) => {}
            Err(error) => {
                let line = error.location().map_or(1, |it| it.line());
                return Err(ImportError {
                    file: file.to_owned(),
                    line: begun + usize::try_from(line).unwrap_or(1).clamp(1, lines.max(1)),
                    reason: format!("is not YAML: {}", error.without_snippet()),
                });
            }
        }
        begun += lines;
    }
    Ok(all)
}

/// The documents of a file, each with the line `---` that it begins with.
fn split(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let (mut begun, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if at > begun && line.trim_end() == "---" {
            documents.push(text.get(begun..at).unwrap_or_default());
            begun = at;
        }
        at += line.len();
    }
    documents.push(text.get(begun..).unwrap_or_default());
    documents
}

fn move_down(node: &mut Node, by: usize) {
    node.line += by;
    match &mut node.content {
        Content::Null | Content::Scalar(_) => {}
        Content::List(items) => items.iter_mut().for_each(|it| move_down(it, by)),
        Content::Map(entries) => entries.iter_mut().for_each(|(_, it)| move_down(it, by)),
    }
}
