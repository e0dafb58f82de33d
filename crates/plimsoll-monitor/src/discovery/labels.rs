//! Definitions in labels of containers and annotations of Kubernetes: a key for each value, with dots between its parts.

use toml::{Table, Value};

/// Keys with several values, one in each line.
const LISTS: [&str; 7] = [
    "expect",
    "warn_unless",
    "tags",
    "depends_on",
    "from",
    "all_of",
    "any_of",
];

/// Keys whose values are texts, whatever they look like.
const TEXTS: [&str; 4] = ["name", "group", "headers", "labels"];

/// Why labels are no definition.
#[derive(Debug, thiserror::Error)]
pub(super) enum LabelError {
    /// Another label has a value where this one has a table, or the other way round.
    #[error("`{0}` does not go with the other labels")]
    Conflict(String),
    /// The label that says whether it is monitored is something else.
    #[error("the label {label} is `{text}`, and neither `true` nor a URL")]
    Value {
        /// Which.
        label: &'static str,
        /// What it is.
        text: String,
    },
    /// Neither labels nor the object say what to connect to.
    #[error("it has neither a host nor a port; write the URL as the value of {0}")]
    NoTarget(&'static str),
}

/// The object that a definition is of.
pub(super) struct Labelled<'o> {
    /// Its name, unless a label gives another one.
    pub(super) name: &'o str,
    /// Its group, likewise.
    pub(super) group: &'o str,
    /// Words in braces within values, with what stands for them.
    pub(super) places: &'o [(&'o str, &'o str)],
}

impl Labelled<'_> {
    /// The definition by labels, without what all of their names begin with.
    ///
    /// Fails with what is wrong with them.
    pub(super) fn definition<'l>(
        &self,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
    ) -> Result<Table, LabelError> {
        let mut definition = Table::new();
        for (key, value) in labels {
            let mut value = value.to_owned();
            for (place, with) in self.places {
                value = value.replace(&format!("{{{place}}}"), with);
            }
            let parts: Vec<_> = key.split('.').collect();
            put(&mut definition, &parts, value_of(&parts, &value))
                .ok_or_else(|| LabelError::Conflict(key.to_owned()))?;
        }
        let mut default = |key: &str, value: &str| {
            if !value.is_empty() && !definition.contains_key(key) {
                definition.insert(key.to_owned(), value.into());
            }
        };
        default("name", self.name);
        default("group", self.group);
        Ok(definition)
    }
}

fn value_of(parts: &[&str], value: &str) -> Value {
    let first = parts.first().copied().unwrap_or_default();
    if LISTS.contains(&first) {
        let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
        return Value::Array(lines.map(Value::from).collect());
    }
    if TEXTS.contains(&first) || parts.contains(&"headers") {
        return value.into();
    }
    match (value, value.parse::<i64>()) {
        ("true", _) => true.into(),
        ("false", _) => false.into(),
        (_, Ok(number)) => number.into(),
        _ => value.into(),
    }
}

/// Puts a value below a path; `None` if something else is in the way.
fn put(table: &mut Table, parts: &[&str], value: Value) -> Option<()> {
    let (last, above) = parts.split_last()?;
    let mut table = table;
    for part in above {
        let inner = table
            .entry((*part).to_owned())
            .or_insert_with(|| Value::Table(Table::new()));
        table = inner.as_table_mut()?;
    }
    match table.insert((*last).to_owned(), value) {
        None => Some(()),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_a_definition() {
        let labelled = Labelled {
            name: "web",
            group: "shop",
            places: &[("address", "172.17.0.2")],
        };
        let labels = [
            ("http.url", "http://{address}:8080/health"),
            ("http.headers.X-Number", "7"),
            ("http.insecure", "true"),
            ("confirm", "3"),
            ("expect", "status == 200\nbody contains 'ok'\n"),
            ("name", "42"),
        ];
        let definition = labelled.definition(labels.into_iter()).unwrap();
        let expected: Table = r#"
            name = "42"
            group = "shop"
            confirm = 3
            expect = ["status == 200", "body contains 'ok'"]
            http = { url = "http://172.17.0.2:8080/health", insecure = true, headers = { X-Number = "7" } }
        "#
        .parse()
        .unwrap();
        assert_eq!(definition, expected);
        for wrong in [
            [("http", "http://a/"), ("http.method", "HEAD")],
            [("http.method", "HEAD"), ("http", "http://a/")],
        ] {
            let error = labelled.definition(wrong.into_iter()).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("does not go with"), "{error}");
        }
    }
}
