//! Writes manifests as YAML: a text of several lines stands as such, every other one in quotes.

use std::fmt::Write as _;

use serde_json::Value;

/// Several documents.
pub(super) fn documents(values: &[Value]) -> String {
    let mut text = String::new();
    for value in values {
        text.push_str("---\n");
        write_value(&mut text, value, 0);
    }
    text
}

/// - `depth`: of the value, in steps of two spaces.
fn write_value(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                text.push_str(&indent);
                text.push_str(&word(key));
                text.push(':');
                write_entry(text, value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                text.push_str(&indent);
                text.push('-');
                // The first key of an object stands behind the dash.
                let mut inner = String::new();
                write_value(&mut inner, item, depth + 1);
                if is_block(item) {
                    text.push(' ');
                    text.push_str(inner.trim_start_matches(' '));
                } else {
                    write_entry(text, item, depth);
                }
            }
        }
        scalar => {
            writeln!(text, "{indent}{}", scalar_text(scalar)).expect("a text takes more");
        }
    }
}

fn write_entry(text: &mut String, value: &Value, depth: usize) {
    match value {
        value if is_block(value) => {
            text.push('\n');
            write_value(text, value, depth + 1);
        }
        Value::String(lines) if is_literal(lines) => {
            text.push_str(" |\n");
            for line in lines.lines() {
                if !line.is_empty() {
                    text.push_str(&"  ".repeat(depth + 1));
                    text.push_str(line);
                }
                text.push('\n');
            }
        }
        scalar => {
            writeln!(text, " {}", scalar_text(scalar)).expect("a text takes more");
        }
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(object) => !object.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Whether a text can stand without quotes and comes back as it was.
fn is_literal(text: &str) -> bool {
    let is_plain = |it: char| it == '\n' || (it == '\t') || !it.is_control();
    let begins_plainly = !text.starts_with([' ', '\n', '\t']);
    // YAML has more line ends than `\n`.
    let has_other_ends = text.contains(['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}']);
    text.ends_with('\n')
        && !text.ends_with("\n\n")
        && begins_plainly
        && !has_other_ends
        && text.chars().all(is_plain)
}

/// A key, in quotes unless it is a plain word.
fn word(text: &str) -> String {
    let is_plain = text
        .bytes()
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"-_./".contains(&it))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
        );
    if is_plain {
        text.to_owned()
    } else {
        scalar_text(&Value::from(text))
    }
}

/// JSON's scalars are YAML's.
fn scalar_text(value: &Value) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let value = json!({
            "kind": "Job",
            "on": "yes",
            "empty": {},
            "none": [],
            "text": "a: b\n\n  # no comment\nend\n",
            "odd": ["", " x", "a\r\nb\n", "x\n\n", "tab\tx", "é\u{2028}\n", "- a", "%"],
            "nested": [{"a": 1, "b": [{"c": true}, [1, 2]]}, "s", "line\nline\n"],
        });
        let text = documents(std::slice::from_ref(&value));
        let read: Value = plimsoll_formats::yaml::parse(&text)
            .unwrap()
            .unwrap()
            .to_json();
        assert_eq!(read, value, "{text}");
        assert!(
            text.contains("text: |\n  a: b\n\n    # no comment\n"),
            "{text}"
        );
    }
}
