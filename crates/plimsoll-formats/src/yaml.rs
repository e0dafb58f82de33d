//! Documents of YAML as nodes that know where they stand.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

/// Events that anchors may be expanded to. A thousand entries that share fifty settings need half of them; a document whose
/// anchors multiply reaches them within a fraction of a second.
const MOST_EXPANDED: usize = 100_000;

/// A text that is not YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not YAML: {reason}")]
pub struct YamlError {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// What was wrong.
    pub reason: String,
}

/// A value with its place.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Counted from 1; 0 if it stands in no text.
    pub line: usize,
    /// In characters, counted from 1; 0 if it stands in no text.
    pub column: usize,
    /// The line and column that it was written at: elsewhere if it came by an anchor.
    pub written: (usize, usize),
    /// The value itself.
    pub content: Content,
}

/// The content of a node.
#[derive(Debug, Clone, Default)]
pub enum Content {
    /// Nothing, or `null`.
    #[default]
    Null,
    /// `true` or `false`; `yes` and `on` are texts.
    Bool(bool),
    /// As text.
    Number(String),
    /// A text.
    Text(String),
    /// Items in order.
    List(Vec<Node>),
    /// Entries in the order of the document.
    Map(Vec<(String, Node)>),
}

/// Stands for what is not there.
static NOTHING: Node = Node {
    line: 1,
    column: 1,
    written: (1, 1),
    content: Content::Null,
};

/// The first document of a text; none if it is empty.
///
/// # Errors
///
/// With the place of the first thing that is not YAML.
pub fn parse(text: &str) -> Result<Option<Node>, YamlError> {
    read(text)
}

/// The documents of a text, but for empty ones.
///
/// # Errors
///
/// With the place of the first thing that is not YAML.
pub fn documents(text: &str) -> Result<Vec<Node>, YamlError> {
    let mut all = Vec::new();
    let mut begun = 0;
    for document in split(text) {
        let lines = document.lines().count();
        match parse(document) {
            Ok(Some(mut node)) => {
                move_down(&mut node, begun);
                all.push(node);
            }
            Ok(None) => {}
            Err(error) => {
                let line = begun + error.line.clamp(1, lines.max(1));
                return Err(YamlError { line, ..error });
            }
        }
        begun += lines;
    }
    Ok(all)
}

/// The first document of a text as a value of any type; none if it is empty.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<Option<T>, YamlError> {
    let options = serde_saphyr::options! {
        // `y` and `on` may be texts; keys that want a boolean take them as one.
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MOST_EXPANDED,
        },
        // One anchor may be shared by any number of entries.
        budget: serde_saphyr::budget! {
            enforce_alias_anchor_ratio: false,
            max_merge_keys: MOST_EXPANDED,
        },
    };
    serde_saphyr::from_str_with_options::<Option<T>>(text, options).map_err(|error| {
        let place = error.location();
        let (line, column) = place.map_or((1, 1), |place| (place.line(), place.column()));
        YamlError {
            line: number(line).max(1),
            column: number(column).max(1),
            reason: error.without_snippet().to_string(),
        }
    })
}

fn number(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// The documents of a text, each with the line `---` that it begins with.
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
    node.written.0 += by;
    match &mut node.content {
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {}
        Content::List(items) => items.iter_mut().for_each(|it| move_down(it, by)),
        Content::Map(entries) => entries.iter_mut().for_each(|(_, it)| move_down(it, by)),
    }
}

impl Node {
    /// A text of a line that it does not stand in by itself.
    pub const fn text_of_line(line: usize, text: String) -> Self {
        Self::of_line(line, Content::Text(text))
    }

    /// A value of a line that it does not stand in by itself.
    pub const fn of_line(line: usize, content: Content) -> Self {
        Self {
            line,
            column: 0,
            written: (line, 0),
            content,
        }
    }

    /// The value of a key, whatever its case, as Traefik and Docker compare names.
    pub fn get(&self, key: &str) -> &Self {
        let mut entries = self.entries().iter();
        let found = entries.find(|(known, _)| known.eq_ignore_ascii_case(key));
        found.map_or(&NOTHING, |(_, node)| node)
    }

    /// The value at keys with dots between them.
    pub fn at(&self, path: &str) -> &Self {
        path.split('.').fold(self, |node, key| node.get(key))
    }

    /// True unless it is nothing or `null`.
    pub const fn is_there(&self) -> bool {
        !matches!(self.content, Content::Null)
    }

    /// The entries of a map; none of anything else.
    pub fn entries(&self) -> &[(String, Self)] {
        match &self.content {
            Content::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Self] {
        match &self.content {
            Content::List(items) => items,
            _ => &[],
        }
    }

    /// The text, number or boolean as it was written.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) | Content::Number(text) => Some(text),
            Content::Bool(true) => Some("true"),
            Content::Bool(false) => Some("false"),
            Content::Null | Content::List(_) | Content::Map(_) => None,
        }
    }

    /// The text at a path.
    pub fn text_at(&self, path: &str) -> Option<&str> {
        self.at(path).text()
    }

    /// The number at a path.
    pub fn number_at(&self, path: &str) -> Option<i64> {
        self.text_at(path)?.trim().parse().ok()
    }

    /// True if `true` stands at a path.
    pub fn is_true(&self, path: &str) -> bool {
        self.text_at(path)
            .is_some_and(|it| it.eq_ignore_ascii_case("true"))
    }

    /// The texts of a list, or of one with commas between them as labels have it.
    pub fn texts(&self) -> Vec<String> {
        if let Some(text) = self.text() {
            let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
            return parts.map(str::to_owned).collect();
        }
        let texts = self.items().iter().filter_map(Self::text);
        texts.map(str::to_owned).collect()
    }

    /// The entry of a key, which is made a map if need be.
    pub fn entry(&mut self, key: &str, line: usize) -> &mut Self {
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
                    entries.push((key.to_owned(), Self::of_line(line, Content::Null)));
                    entries.len() - 1
                });
                &mut entries[at].1
            }
            _ => unreachable!("it was made a map above"),
        }
    }

    /// As JSON, without places.
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(boolean) => Value::Bool(*boolean),
            Content::Number(number) => serde_json::from_str(number).unwrap_or(Value::Null),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Content::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, node)| (key.clone(), node.to_json()));
                Value::Object(entries.collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        let (at, written) = (spanned.referenced, spanned.defined);
        Ok(Self {
            line: number(at.line()),
            column: number(at.column()),
            written: (number(written.line()), number(written.column())),
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

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Number(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Text(value.to_owned()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_and_merge_keys_work_and_places_are_kept() {
        let node = parse("base: &b\n  a: 1\n  c: [x, y]\nother:\n  <<: *b\n  a: 2\n")
            .unwrap()
            .unwrap();
        assert_eq!(
            node.to_json(),
            serde_json::json!({
                "base": {"a": 1, "c": ["x", "y"]},
                "other": {"a": 2, "c": ["x", "y"]},
            })
        );
        let Content::Map(entries) = &node.content else {
            panic!("it is a map");
        };
        assert_eq!((entries[1].1.line, entries[1].1.column), (5, 3));
        assert_eq!(parse("a: [").unwrap_err().line, 1);
    }

    #[test]
    fn anchors_may_be_shared_by_many_and_may_not_multiply() {
        let settings = (0..49).map(|number| format!("  k{number}: v\n"));
        let mut text = format!("base: &b\n{}all:\n", settings.collect::<String>());
        text.push_str(&"- <<: *b\n".repeat(900));
        assert!(parse(&text).is_ok());
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..6 {
            let before = format!("*a{}", level - 1);
            let list = [before.as_str(); 10].join(", ");
            bomb.push_str(&["a", &level.to_string(), ": &a", &level.to_string()].concat());
            bomb.push_str(&[" [", &list, "]\n"].concat());
        }
        let problem = parse(&bomb).unwrap_err();
        assert!(problem.reason.contains("alias"), "{problem}");
    }

    #[test]
    fn documents_have_the_lines_of_their_file() {
        let all = documents("# first\n---\na: 1\n---\n\n---\nb:\n  - c: true\n").unwrap();
        let shown: Vec<_> = all.iter().map(Node::to_json).collect();
        let expected = [
            serde_json::json!({"a": 1}),
            serde_json::json!({"b": [{"c": true}]}),
        ];
        assert_eq!(shown, expected);
        let item = &all[1].get("B").items()[0];
        assert_eq!((item.line, item.written.0), (8, 8));
        assert!(item.is_true("c"));
        assert_eq!(documents("a: 1\n---\nb: [").unwrap_err().line, 3);
    }

    #[test]
    fn words_that_are_booleans_elsewhere_are_texts() {
        let node = parse("country: no\nport: 80\nis_on: true\n")
            .unwrap()
            .unwrap();
        let texts = ["country", "port", "is_on"].map(|key| node.text_at(key));
        assert_eq!(texts, [Some("no"), Some("80"), Some("true")]);
        assert_eq!(node.to_json()["country"], "no");
    }
}
