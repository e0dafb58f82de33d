//! Texts and keys as TOML 1.0 has them.

use toml_writer::{ToTomlKey as _, ToTomlValue as _, TomlStringBuilder};

/// A text as a value on one line, in double quotes.
pub fn toml_string(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
}

/// A text as a value that people read: in the quotes that need the fewest escapes, several lines in three quotes.
pub fn readable_toml_string(text: &str) -> String {
    let string = TomlStringBuilder::new(text);
    let readable = if text.contains('\n') {
        string.as_ml_literal()
    } else {
        string.as_basic_pretty().or_else(|| string.as_literal())
    };
    readable
        .unwrap_or_else(|| string.as_basic())
        .to_toml_value()
}

/// A key, in quotes where it needs them.
pub fn toml_key(key: &str) -> String {
    key.to_toml_key()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_have_the_quotes_that_they_need() {
        for (text, string, readable) in [
            ("", "\"\"", "\"\""),
            ("a'b", "\"a'b\"", "\"a'b\""),
            ("a\\.\"", "\"a\\\\.\\\"\"", "'a\\.\"'"),
            ("'\\", "\"'\\\\\"", "\"'\\\\\""),
            ("a\nb", "\"a\\nb\"", "'''\na\nb'''"),
            (
                "\u{1}\u{7f}\t",
                "\"\\u0001\\u007F\\t\"",
                "\"\\u0001\\u007F\\t\"",
            ),
        ] {
            assert_eq!(toml_string(text), string, "{text:?}");
            assert_eq!(readable_toml_string(text), readable, "{text:?}");
        }
        assert_eq!(toml_key("x-Y_1"), "x-Y_1");
        assert_eq!(toml_key("a b"), "\"a b\"");
        assert_eq!(toml_key(""), "\"\"");
    }

    proptest! {
        #[test]
        fn texts_and_keys_are_read_as_they_were_written(text in "([a'\"\\\\\n\r\t \u{0}-\u{1f}\u{7f}\u{85}é]|''')*") {
            let key = toml_key(&text);
            for value in [toml_string(&text), readable_toml_string(&text)] {
                let read: toml::Table = format!("{key} = {value}").parse().unwrap();
                prop_assert_eq!(read.get(&text).and_then(|it| it.as_str()), Some(text.as_str()));
            }
        }
    }
}
