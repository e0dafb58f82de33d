//! CSV written as JSON: an array of objects under one key.

use serde_json::Value;

use crate::Remark;
use crate::table::of_csv;

/// The rows as objects, every value a text: `{"records":[{"column":"value"}]}`.
///
/// The first line holds the names of the columns (RFC 4180).
///
/// - `key`: what the array is called; dots make objects around it.
pub fn csv_to_json(text: &str, key: &str) -> Result<String, Vec<Remark>> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let names: Vec<String> = match reader.headers() {
        Ok(names) if names.is_empty() => return Err(vec![Remark::whole("has no line of names")]),
        Ok(names) => names.iter().map(json).collect(),
        Err(error) => return Err(vec![of_csv(&error)]),
    };
    let mut written = String::new();
    let keys: Vec<&str> = key.split('.').collect();
    for key in &keys {
        written.push('{');
        written.push_str(&json(key));
        written.push(':');
    }
    written.push('[');
    let mut problems = Vec::new();
    for (row, record) in reader.records().enumerate() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                problems.push(of_csv(&error));
                continue;
            }
        };
        written.push_str(if row == 0 { "{" } else { ",{" });
        for (column, (name, value)) in names.iter().zip(&record).enumerate() {
            if column > 0 {
                written.push(',');
            }
            written.push_str(name);
            written.push(':');
            written.push_str(&json(value));
        }
        written.push('}');
    }
    written.push(']');
    written.extend(keys.iter().map(|_| '}'));
    if problems.is_empty() {
        Ok(written)
    } else {
        Err(problems)
    }
}

fn json(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_become_objects() {
        let text = "id,name\n1,\"a, b\"\n2,c\n";
        assert_eq!(
            csv_to_json(text, "records").unwrap(),
            r#"{"records":[{"id":"1","name":"a, b"},{"id":"2","name":"c"}]}"#
        );
        assert_eq!(csv_to_json("a\n", "x.y").unwrap(), r#"{"x":{"y":[]}}"#);
    }

    #[test]
    fn every_mistake_is_reported() {
        assert_eq!(
            csv_to_json("a,b\n1\n1,2,3\n1,2\n", "r").unwrap_err().len(),
            2
        );
        assert_eq!(csv_to_json("", "r").unwrap_err().len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "[a,\"\n;1]{0,40}", key in "[a.\"]{0,5}") {
            if let Ok(json) = csv_to_json(&text, &key) {
                prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
            }
        }
    }
}
