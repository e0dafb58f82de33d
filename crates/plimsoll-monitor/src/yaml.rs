//! YAML with the place of each value, and the substitution of variables before it.

pub(crate) mod block;

pub(crate) mod findings;

use std::fmt;

use plimsoll_model::document::ConfigProblem;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

/// Something doubtful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Position, such as `endpoints[2].conditions[1]`.
    pub place: String,
    /// Message.
    pub message: String,
}

/// A value with its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// Where it was written: elsewhere if it came by an anchor.
    pub(crate) written: (usize, usize),
    pub(crate) content: Content,
}

/// The content of a node.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    /// As text.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        let number = |number: u64| usize::try_from(number).unwrap_or(0);
        Ok(Self {
            line: number(spanned.referenced.line()),
            column: number(spanned.referenced.column()),
            written: (
                number(spanned.defined.line()),
                number(spanned.defined.column()),
            ),
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

impl Node {
    /// As JSON, without places.
    pub(crate) fn to_json(&self) -> Value {
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

    /// Merges another file: maps are merged, lists appended, and a scalar that both have is a problem.
    pub(crate) fn merge(&mut self, other: Self, path: &str, problems: &mut Vec<ConfigProblem>) {
        match (&mut self.content, other.content) {
            (Content::Map(entries), Content::Map(more)) => {
                for (key, node) in more {
                    let path = format!("{path}{key}");
                    match entries.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, known)) => known.merge(node, &format!("{path}."), problems),
                        None => entries.push((key, node)),
                    }
                }
            }
            (Content::List(items), Content::List(more)) => items.extend(more),
            (Content::Null, content) => self.content = content,
            (_, Content::Null) => {}
            _ => problems.push(ConfigProblem {
                line: other.line,
                column: other.column,
                key: path.trim_end_matches('.').to_owned(),
                message: "is set in two files".to_owned(),
                hint: Some("keep one of them".to_owned()),
            }),
        }
    }
}

/// Events that anchors may be expanded to. A thousand endpoints that share fifty settings need half of them; a document whose
/// anchors multiply reaches them within a fraction of a second.
const MOST_EXPANDED: usize = 100_000;

/// Parses a document; an empty one is an empty map.
pub(crate) fn parse(text: &str) -> Result<Node, ConfigProblem> {
    // `y` and `on` may be texts; keys that want a boolean take them as one.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MOST_EXPANDED,
        },
        // One anchor may be shared by any number of endpoints.
        budget: serde_saphyr::budget! {
            enforce_alias_anchor_ratio: false,
            max_merge_keys: MOST_EXPANDED,
        },
    };
    let parsed = serde_saphyr::from_str_with_options::<Option<Node>>(text, options);
    match parsed {
        Ok(Some(node)) => Ok(node),
        Ok(None) => Ok(Node {
            line: 1,
            column: 1,
            written: (1, 1),
            content: Content::Map(Vec::new()),
        }),
        Err(error) => {
            let location = error.location();
            let place = location.map_or((1, 1), |location| (location.line(), location.column()));
            Err(ConfigProblem {
                line: usize::try_from(place.0).unwrap_or(1),
                column: usize::try_from(place.1).unwrap_or(1),
                key: String::new(),
                message: format!("is not YAML: {}", error.without_snippet()),
                hint: None,
            })
        }
    }
}

/// A variable that stands for nothing, since it is not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnsetVariable {
    pub(crate) name: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// Replaces `$NAME` and `${NAME}` by their values, or by nothing, and `$$` by a dollar, comments included. Those that are not
/// set are listed too, but for comments.
///
/// Source: `os.Expand` of Go, with the escape of Gatus.
pub(crate) fn substitute(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> (String, Vec<UnsetVariable>) {
    let mut unset = Vec::new();
    let mut value = |name: &str, before: &str| {
        if let Some(value) = environment(name) {
            return value;
        }
        let line = before.rsplit('\n').next().unwrap_or_default();
        if !line.trim_start().starts_with('#') {
            let line = before.matches('\n').count() + 1;
            let name = name.to_owned();
            unset.push(UnsetVariable { name, line });
        }
        String::new()
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.find('$') {
        let (before, from) = rest.split_at(position);
        out.push_str(before);
        let after = from.strip_prefix('$').unwrap_or(from);
        if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            rest = tail;
        } else if let Some((name, tail)) = after.strip_prefix('{').and_then(|it| it.split_once('}'))
        {
            let value = value(name, &out);
            out.push_str(&value);
            rest = tail;
        } else {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
            // A digit is a name by itself.
            let end = match after.chars().next() {
                Some(first) if first.is_ascii_digit() => 1,
                _ => end,
            };
            let (name, tail) = after.split_at(end);
            if name.is_empty() {
                out.push('$');
            } else {
                let value = value(name, &out);
                out.push_str(&value);
            }
            rest = tail;
        }
    }
    out.push_str(rest);
    (out, unset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_as_gatus_does() {
        let environment = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
        for (text, expected) in [
            ("a: $TOKEN", "a: secret"),
            ("a: ${TOKEN}-x", "a: secret-x"),
            ("a: $$TOKEN", "a: $TOKEN"),
            ("a: $UNSET.", "a: ."),
            ("a: ^x$\n# $TOKEN", "a: ^x$\n# secret"),
            ("a: $1b", "a: b"),
            ("a: $", "a: $"),
        ] {
            assert_eq!(substitute(text, &environment).0, expected);
        }
        let (_, unset) = substitute("a: $TOKEN\nb: $X-${Y}\n# $Z\nc: $$W\n", &environment);
        let unset: Vec<_> = unset.iter().map(|it| (it.name.as_str(), it.line)).collect();
        assert_eq!(unset, [("X", 2), ("Y", 2)]);
    }

    #[test]
    fn anchors_and_merge_keys_work_and_places_are_kept() {
        let node = parse("base: &b\n  a: 1\n  c: [x, y]\nother:\n  <<: *b\n  a: 2\n").unwrap();
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
        assert!(problem.message.contains("alias"), "{}", problem.message);
    }

    #[test]
    fn files_merge() {
        let mut one = parse("a: {b: 1}\nlist: [1]\n").unwrap();
        let mut problems = Vec::new();
        one.merge(parse("a: {c: 2}\nlist: [2]\n").unwrap(), "", &mut problems);
        assert_eq!(
            one.to_json(),
            serde_json::json!({"a": {"b": 1, "c": 2}, "list": [1, 2]})
        );
        assert_eq!(problems, []);
        one.merge(parse("a: {b: 3}\n").unwrap(), "", &mut problems);
        assert_eq!(problems[0].key, "a.b");
    }
}
