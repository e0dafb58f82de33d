//! Files of YAML: their variables, their problems, and several of them as one.

pub(crate) mod block;

pub(crate) mod findings;

use plimsoll_formats::yaml::{Content, Node};
use plimsoll_model::document::ConfigProblem;

/// Something doubtful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Position, such as `endpoints[2].conditions[1]`.
    pub place: String,
    /// Message.
    pub message: String,
}

/// Parses a document; an empty one is an empty map.
pub(crate) fn parse(text: &str) -> Result<Node, ConfigProblem> {
    match plimsoll_formats::yaml::parse(text) {
        Ok(Some(node)) => Ok(node),
        Ok(None) => Ok(Node::of_line(1, Content::Map(Vec::new()))),
        Err(error) => Err(ConfigProblem {
            line: error.line,
            column: error.column,
            key: String::new(),
            message: error.to_string(),
            hint: None,
        }),
    }
}

/// Merges another file: maps are merged, lists appended, and a scalar that both have is a problem.
pub(crate) fn merge(node: &mut Node, other: Node, path: &str, problems: &mut Vec<ConfigProblem>) {
    match (&mut node.content, other.content) {
        (Content::Map(entries), Content::Map(more)) => {
            for (key, added) in more {
                let path = format!("{path}{key}");
                match entries.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, known)) => merge(known, added, &format!("{path}."), problems),
                    None => entries.push((key, added)),
                }
            }
        }
        (Content::List(items), Content::List(more)) => items.extend(more),
        (Content::Null, content) => node.content = content,
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
    fn files_merge() {
        let mut one = parse("a: {b: 1}\nlist: [1]\n").unwrap();
        let mut problems = Vec::new();
        merge(
            &mut one,
            parse("a: {c: 2}\nlist: [2]\n").unwrap(),
            "",
            &mut problems,
        );
        assert_eq!(
            one.to_json(),
            serde_json::json!({"a": {"b": 1, "c": 2}, "list": [1, 2]})
        );
        assert_eq!(problems, []);
        merge(&mut one, parse("a: {b: 3}\n").unwrap(), "", &mut problems);
        assert_eq!(problems[0].key, "a.b");
    }
}
