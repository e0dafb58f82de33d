//! JSON5 written as JSON: compact, the keys in the order of the file.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The maximum nesting of values, as in `serde_json`.
const DEEPEST: u32 = 127;

/// Why a text is no JSON5, or none that JSON can say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Json5Error {
    message: String,
}

/// The same value as JSON.
///
/// Numbers that JSON does not have (`NaN`, `Infinity`) are an error. Of keys that are repeated all are kept.
pub fn json5_to_json(text: &str) -> Result<String, Json5Error> {
    let text = text.trim_start_matches('\u{feff}');
    match json5::from_str::<Written>(text) {
        Ok(Written(json)) => Ok(json),
        Err(error) => Err(Json5Error {
            message: error.to_string(),
        }),
    }
}

/// A value as its JSON.
struct Written(String);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json { levels: DEEPEST };
        deserializer.deserialize_any(json).map(Self)
    }
}

/// Makes the text of one value, in which so many levels more may lie.
#[derive(Clone, Copy)]
struct Json {
    levels: u32,
}

impl Json {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1);
        let levels = levels.ok_or_else(|| E::custom(format!("nested deeper than {DEEPEST}")))?;
        Ok(Self { levels })
    }
}

impl<'de> DeserializeSeed<'de> for Json {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn text_of(value: impl Into<Value>) -> String {
    value.into().to_string()
}

impl<'de> Visitor<'de> for Json {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON5")
    }

    fn visit_bool<E>(self, value: bool) -> Result<String, E> {
        Ok(text_of(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<String, E> {
        Ok(text_of(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<String, E> {
        Ok(text_of(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<String, E> {
        if value.is_finite() {
            Ok(text_of(value))
        } else {
            Err(E::custom(format!("{value} is no number of JSON")))
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<String, E> {
        Ok(text_of(value))
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok("null".to_owned())
    }

    fn visit_none<E>(self) -> Result<String, E> {
        Ok("null".to_owned())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<String, A::Error> {
        let inner = self.deeper()?;
        let mut json = String::from("[");
        while let Some(item) = items.next_element_seed(inner)? {
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&item);
        }
        json.push(']');
        Ok(json)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<String, A::Error> {
        let inner = self.deeper()?;
        let mut json = String::from("{");
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(inner)?;
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&text_of(key));
            json.push(':');
            json.push_str(&value);
        }
        json.push('}');
        Ok(json)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_json5_allows_becomes_json() {
        for (text, expected) in [
            (
                "{b: 1, a: [2, .5, +3, 0x10,],}",
                r#"{"b":1,"a":[2,0.5,3,16]}"#,
            ),
            ("// a\n/* b */ 'it\\'s'", r#""it's""#),
            ("null", "null"),
            ("\u{feff}{\"$a_1\": 'x\\\ny'}", r#"{"$a_1":"xy"}"#),
            ("[true, false, -1.5e3]", "[true,false,-1500.0]"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            assert_eq!(json5_to_json(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn mistakes_are_reported() {
        for text in ["", "{a}", "[1", "NaN", "1 2", "{a: Infinity}"] {
            let error = json5_to_json(text).unwrap_err();
            assert!(!error.to_string().is_empty(), "{text}");
        }
        let deep = "[".repeat(100_000);
        let error = json5_to_json(&deep).unwrap_err();
        assert!(error.to_string().contains("deeper"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "[\\[\\]{}:,'\"a1.\\-/*\\\\ \n]{0,40}") {
            if let Ok(json) = json5_to_json(&text) {
                prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
            }
        }
    }
}
