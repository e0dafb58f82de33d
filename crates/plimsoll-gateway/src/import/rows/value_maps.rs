//! Maps that conditions and redirects look values up in.

use std::fmt::Write as _;

use plimsoll_model::document::toml_string;

use super::super::toml::Keys;

/// Maps by expressions, each once.
#[derive(Debug, Default)]
pub(in crate::import) struct ValueMaps(Vec<ValueMap>);

#[derive(Debug, PartialEq, Eq)]
struct ValueMap {
    key: String,
    expression: String,
    value: String,
    default: &'static str,
}

impl ValueMaps {
    /// The place, and its value as TOML, by which a text is matched, or not matched.
    pub(in crate::import) fn test(
        &mut self,
        key: &str,
        expression: &str,
        is_negated: bool,
    ) -> (String, String) {
        let name = self.name(ValueMap {
            key: key.to_owned(),
            expression: expression.to_owned(),
            value: "1".to_owned(),
            default: "0",
        });
        let value = toml_string(if is_negated { "0" } else { "1" });
        (format!("map:{name}"), value)
    }

    /// The place that has a value if the expression matches.
    ///
    /// - `value`: with `{1}` for groups.
    pub(in crate::import) fn value(&mut self, key: &str, expression: &str, value: &str) -> String {
        let name = self.name(ValueMap {
            key: key.to_owned(),
            expression: expression.to_owned(),
            value: value.to_owned(),
            default: "",
        });
        format!("map:{name}")
    }

    fn name(&mut self, map: ValueMap) -> String {
        let known = self.0.iter().position(|it| *it == map);
        let at = known.unwrap_or_else(|| {
            self.0.push(map);
            self.0.len() - 1
        });
        format!("value-{}", at + 1)
    }

    /// `[map.NAME]` of each.
    pub(in crate::import) fn write(&self, out: &mut String) {
        for (at, map) in self.0.iter().enumerate() {
            let mut row = Keys::default();
            row.text("match", &map.expression);
            row.text("value", &map.value);
            let mut keys = Keys::default();
            keys.text("key", &map.key);
            keys.set("regex", format!("[{}]", row.inline()));
            keys.text("default", map.default);
            write!(out, "\n[map.value-{}]\n", at + 1).ok();
            keys.lines(out);
        }
    }
}
