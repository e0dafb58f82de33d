//! JSONPath as Jayway reads it, which WireMock uses: a filter on an object looks at the object itself.
//!
//! RFC 9535 has filters select among the members of an object, so a path is cut before each filter, and an object that a
//! filter follows is taken as the only element of an array. A dot before a bracket says nothing.

use std::fmt;

use serde_json::Value;
use serde_json_path::{JsonPath, ParseError};

/// A path of Jayway.
#[derive(Debug, Clone)]
pub struct JaywayPath {
    text: String,
    /// The path up to its first filter, then each filter with what follows it.
    pieces: Vec<JsonPath>,
}

impl JaywayPath {
    /// Compiles a path.
    pub fn new(text: &str) -> Result<Self, ParseError> {
        let plain = without_dots(text);
        let cut = pieces(&plain);
        let pieces = cut.iter().map(|piece| JsonPath::parse(piece));
        let pieces = match pieces.collect::<Result<Vec<_>, _>>() {
            Ok(pieces) => pieces,
            // An expression that cannot be split, such as `$..[?…]`, is one path.
            Err(_) => vec![JsonPath::parse(&plain)?],
        };
        Ok(Self {
            text: text.to_owned(),
            pieces,
        })
    }

    /// The values that it leads to.
    pub(crate) fn query(&self, json: &Value) -> Vec<Value> {
        let Some((first, filters)) = self.pieces.split_first() else {
            return Vec::new();
        };
        let mut found: Vec<Value> = first.query(json).all().into_iter().cloned().collect();
        for filter in filters {
            found = found
                .into_iter()
                .flat_map(|value| {
                    let value = match value {
                        object @ Value::Object(_) => Value::Array(vec![object]),
                        value => value,
                    };
                    let found = filter.query(&value).all().into_iter();
                    found.cloned().collect::<Vec<_>>()
                })
                .collect();
        }
        found
    }
}

impl fmt::Display for JaywayPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A path without the dots that stand before brackets, outside of quotes.
fn without_dots(text: &str) -> String {
    let mut plain = String::new();
    let mut quote = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), character) if character == open => quote = None,
            (Some(_), '\\') => {
                plain.push(character);
                plain.extend(characters.next());
                continue;
            }
            (None, '\'' | '"') => quote = Some(character),
            // Two dots are those of descendants.
            (None, '.') if characters.peek() == Some(&'[') && !plain.ends_with('.') => continue,
            _ => {}
        }
        plain.push(character);
    }
    plain
}

/// A path cut before each filter that is not inside another one; each piece begins at a root.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let (mut depth, mut quote) = (0_usize, None);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), character) if character == open => quote = None,
            (Some(_), '\\') => {
                piece.push(character);
                piece.extend(characters.next());
                continue;
            }
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => {
                if depth == 0 && characters.peek() == Some(&'?') && !piece.is_empty() {
                    pieces.push(std::mem::replace(&mut piece, "$".to_owned()));
                }
                depth += 1;
            }
            (None, ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        piece.push(character);
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filters_look_at_objects_themselves() {
        let json =
            json!({"type": "a", "all": [{"n": 1}, {"n": 2}], "one": {"n": 2, "in": {"x": "]"}}});
        for (path, expected) in [
            ("$[?(@.type == 'a')]", 1),
            ("$[?(@.type == 'b')]", 0),
            ("$.all[?(@.n == 2)]", 1),
            ("$.all[?(@.n > 0)].n", 2),
            ("$.one[?(@.n == 2)].in[?(@.x == ']')].x", 1),
            ("$.one[?(@.n == 1)]", 0),
            ("$..[?(@.n == 2)]", 2),
            ("$.type", 1),
            ("$.all.[0].n", 1),
            ("$.[?(@.type == 'a.[')]", 0),
            ("$.[?(@.type == 'a')]", 1),
            ("$..[0]", 1),
            ("$['type']", 1),
        ] {
            let found = JaywayPath::new(path).unwrap().query(&json);
            assert_eq!(found.len(), expected, "{path}: {found:?}");
        }
        assert!(JaywayPath::new("$[?(").is_err());
    }
}
