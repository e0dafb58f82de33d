//! Labelled values: `time:…<TAB>method:GET<TAB>uri:/`, as LTSV has them, also separated by vertical bars.

use serde_json::{Map, Value};

/// The values by their labels; `None` if the line is something else.
pub(super) fn object(line: &str) -> Option<Value> {
    let separator = ['\t', '|'].into_iter().find(|it| line.contains(*it))?;
    let mut object = Map::new();
    for field in line.split(separator) {
        let (label, value) = field.trim().split_once(':')?;
        let is_label =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if label.is_empty() || !label.bytes().all(is_label) {
            return None;
        }
        // Times are often in brackets.
        let value = value.trim().trim_start_matches('[').trim_end_matches(']');
        object.insert(label.to_owned(), Value::from(value.trim_matches('"')));
    }
    Some(Value::Object(object))
}
