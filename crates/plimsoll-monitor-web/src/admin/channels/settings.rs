//! The fields of a channel in its form: as they are typed, shown and stored.
//!
//! Credentials are never shown again. An empty field keeps one, unless the address changes that it is sent to.

use std::collections::BTreeMap;

use plimsoll_monitor::notify::{Channel, Field, FieldKind};
use toml::{Table, Value};

use crate::admin::choice::Choice;
use crate::admin::form::Form;
use crate::admin::form_error::FormError;

/// What was typed, by the keys of fields.
#[derive(Debug, Clone, Default)]
pub(super) struct Typed {
    values: BTreeMap<&'static str, String>,
    /// Credentials that shall be removed.
    removed: Vec<&'static str>,
}

/// A field of the form.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) key: &'static str,
    pub(super) label: String,
    /// What it is, without a full stop.
    pub(super) about: String,
    /// How it is typed: `text`, `url`, `email`, `number`, `password`, `lines` or `choice`.
    pub(super) control: &'static str,
    pub(super) value: String,
    pub(super) choices: Vec<Choice>,
    pub(super) placeholder: &'static str,
    pub(super) is_required: bool,
    pub(super) is_secret: bool,
    /// Whether a credential is stored.
    pub(super) is_set: bool,
}

impl Typed {
    pub(super) fn of_form(channel: &Channel, form: &Form) -> Self {
        let mut typed = Self::default();
        for field in channel.fields {
            let name = format!("field-{}", field.key);
            let text = match field.kind {
                FieldKind::Secret => form.raw(&name).to_owned(),
                _ => form.text(&name),
            };
            typed.values.insert(field.key, text);
            if form.is_set(&format!("remove-{}", field.key)) {
                typed.removed.push(field.key);
            }
        }
        typed
    }

    /// What is stored, without credentials.
    pub(super) fn of_table(channel: &Channel, table: &Table) -> Self {
        let shown = channel
            .fields
            .iter()
            .filter(|field| !field.kind.is_secret());
        let values = shown.filter_map(|field| Some((field.key, text_of(table.get(field.key)?))));
        Self {
            values: values.collect(),
            removed: Vec::new(),
        }
    }

    fn text(&self, field: &Field) -> &str {
        self.values.get(field.key).map_or("", String::as_str)
    }

    /// The table of the channel.
    ///
    /// - `present`: the one that this replaces, whose credentials stay where nothing was typed.
    pub(super) fn table(
        &self,
        channel: &Channel,
        present: Option<&Table>,
    ) -> Result<Table, FormError> {
        let mut table = Table::new();
        for field in channel.fields {
            let text = self.text(field);
            if !text.trim().is_empty() {
                table.insert(field.key.to_owned(), value_of(field, text)?);
                continue;
            }
            let kept = present.and_then(|present| present.get(field.key));
            if let Some(kept) = kept.filter(|_| field.kind.is_secret())
                && !self.removed.contains(&field.key)
            {
                table.insert(field.key.to_owned(), kept.clone());
            }
        }
        if let Some(present) = present
            && let Some(field) = self.exposed(channel, present, &table)
        {
            return Err(FormError::AddressChanges(field.key));
        }
        Ok(table)
    }

    /// A stored credential that would be sent to another server than before.
    fn exposed<'c>(
        &self,
        channel: &'c Channel,
        present: &Table,
        table: &Table,
    ) -> Option<&'c Field> {
        let moves = |field: &Field| present.get(field.key) != table.get(field.key);
        let mut leading = channel.fields.iter().filter(|field| field.leads());
        if !leading.any(moves) {
            return None;
        }
        channel.fields.iter().find(|field| {
            let is_kept = table.contains_key(field.key) && self.text(field).trim().is_empty();
            field.kind.is_secret() && is_kept
        })
    }

    /// The fields as they are shown.
    pub(super) fn inputs(&self, channel: &Channel, present: Option<&Table>) -> Vec<Input> {
        let inputs = channel.fields.iter().map(|field| Input {
            key: field.key,
            label: label(field.key),
            about: plain(field.about),
            control: control(field.kind),
            value: self.text(field).to_owned(),
            choices: self.choices(field),
            placeholder: placeholder(field),
            is_required: field.is_required,
            is_secret: field.kind.is_secret(),
            is_set: field.kind.is_secret()
                && present.is_some_and(|present| present.contains_key(field.key)),
        });
        inputs.collect()
    }

    fn choices(&self, field: &Field) -> Vec<Choice> {
        let FieldKind::Choice(known) = field.kind else {
            return Vec::new();
        };
        let text = self.text(field);
        let chosen = Some(text).filter(|text| !text.is_empty()).or(field.default);
        let choices = known.iter().map(|one| Choice {
            value: (*one).to_owned(),
            text: (*one).to_owned(),
            is_chosen: chosen == Some(*one),
        });
        choices.collect()
    }
}

/// A key as a label.
fn label(key: &str) -> String {
    if key == "url" {
        return "URL".to_owned();
    }
    let text = key.replace('_', " ");
    let mut letters = text.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// A text of the documentation without its marks.
pub(super) fn plain(text: &str) -> String {
    text.replace(['`', '*'], "")
}

const fn control(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Text
        | FieldKind::Texts
        | FieldKind::Address
        | FieldKind::Addresses
        | FieldKind::SecretUrl
        | FieldKind::SecretTemplate => "text",
        FieldKind::Lines | FieldKind::SecretPairs => "lines",
        FieldKind::Secret => "password",
        FieldKind::Url => "url",
        FieldKind::Choice(_) => "choice",
        FieldKind::Number(..) => "number",
    }
}

fn placeholder(field: &Field) -> &'static str {
    match field.kind {
        FieldKind::SecretPairs => "Name: value",
        FieldKind::SecretUrl | FieldKind::SecretTemplate | FieldKind::Url => {
            field.default.unwrap_or("https://")
        }
        FieldKind::Texts | FieldKind::Addresses => "with commas between them",
        _ => field.default.unwrap_or_default(),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => {
            let all: Vec<_> = all.iter().map(text_of).collect();
            all.join(", ")
        }
        other => other.to_string(),
    }
}

fn value_of(field: &Field, text: &str) -> Result<Value, FormError> {
    Ok(match field.kind {
        FieldKind::Number(..) => match text.trim().parse() {
            Ok(number) => Value::Integer(number),
            Err(_) => text.into(),
        },
        FieldKind::Texts | FieldKind::Addresses => {
            let parts = text.split([',', '\n']).map(str::trim);
            let parts = parts.filter(|part| !part.is_empty());
            Value::Array(parts.map(Value::from).collect())
        }
        FieldKind::SecretPairs => {
            let mut pairs = Table::new();
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let Some((name, value)) = line.split_once(':') else {
                    return Err(FormError::NoColon(field.key));
                };
                pairs.insert(name.trim().to_owned(), value.trim().into());
            }
            Value::Table(pairs)
        }
        _ => text.into(),
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_monitor::notify::{CHANNELS, channel};

    use super::*;

    fn typed(kind: &str, pairs: &[(&str, &str)]) -> (&'static Channel, Typed) {
        let channel = channel(kind).unwrap();
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        let form = form.extend_pairs(pairs).finish();
        let typed = Typed::of_form(channel, &Form::parse(form.as_bytes()));
        (channel, typed)
    }

    #[test]
    fn what_is_typed_becomes_a_table_and_comes_back() {
        let (channel, typed) = typed(
            "email",
            &[
                ("field-host", "mx.example.org"),
                ("field-from", "a@example.org"),
                ("field-to", "b@example.org, c@example.org"),
                ("field-security", "tls"),
                ("field-port", "465"),
                ("field-password", " with spaces "),
            ],
        );
        let table = typed.table(channel, None).unwrap();
        let expected = "host = \"mx.example.org\"\nfrom = \"a@example.org\"\nto = [\"b@example.org\", \"c@example.org\"]\nsecurity = \"tls\"\nport = 465\npassword = \" with spaces \"\n";
        assert_eq!(table, expected.parse().unwrap());
        let again = Typed::of_table(channel, &table);
        let inputs = again.inputs(channel, Some(&table));
        let of = |key| inputs.iter().find(|input| input.key == key).unwrap();
        assert_eq!(of("to").value, "b@example.org, c@example.org");
        assert_eq!(
            (of("port").value.as_str(), of("port").control),
            ("465", "number")
        );
        assert_eq!(
            (of("password").value.as_str(), of("password").is_set),
            ("", true)
        );
        assert!(
            of("security")
                .choices
                .iter()
                .any(|it| it.value == "tls" && it.is_chosen)
        );
        // Nothing was typed over the password.
        assert_eq!(again.table(channel, Some(&table)).unwrap(), table);
    }

    #[test]
    fn a_credential_is_sent_to_no_other_server() {
        let stored: Table = "url = \"https://push.example.org\"\ntoken = \"t\"\n"
            .parse()
            .unwrap();
        let moved = [("field-url", "https://evil.example")];
        let (channel, form) = typed("gotify", &moved);
        assert!(
            form.table(channel, Some(&stored))
                .unwrap_err()
                .to_string()
                .contains("type `token` again")
        );
        let (_, form) = typed("gotify", &[moved[0], ("field-token", "new")]);
        assert_eq!(
            form.table(channel, Some(&stored)).unwrap()["token"].as_str(),
            Some("new")
        );
        let (_, form) = typed("gotify", &[moved[0], ("remove-token", "1")]);
        assert!(
            !form
                .table(channel, Some(&stored))
                .unwrap()
                .contains_key("token")
        );
        let (_, form) = typed("gotify", &[("field-url", "https://push.example.org")]);
        assert_eq!(form.table(channel, Some(&stored)).unwrap(), stored);
    }

    #[test]
    fn header_fields_are_lines() {
        let lines = "Authorization: Bearer a:b\r\n\r\nX-A:1";
        let (channel, form) = typed(
            "webhook",
            &[("field-url", "https://a"), ("field-headers", lines)],
        );
        let table = form.table(channel, None).unwrap();
        assert_eq!(
            table["headers"]["Authorization"].as_str(),
            Some("Bearer a:b")
        );
        assert_eq!(table["headers"]["X-A"].as_str(), Some("1"));
        let (_, form) = typed("webhook", &[("field-headers", "no colon")]);
        assert!(
            form.table(channel, None)
                .unwrap_err()
                .to_string()
                .contains("colon")
        );
    }

    #[test]
    fn every_field_has_a_control_and_no_credential_is_shown() {
        for channel in CHANNELS {
            let stored: Table = channel
                .fields
                .iter()
                .map(|field| (field.key.to_owned(), Value::from("hidden-secret")))
                .collect();
            let inputs = Typed::of_table(channel, &stored).inputs(channel, Some(&stored));
            assert_eq!(inputs.len(), channel.fields.len());
            for input in inputs {
                assert_eq!(
                    input.value.is_empty(),
                    input.is_secret,
                    "{}.{}",
                    channel.key,
                    input.key
                );
                assert_eq!(input.is_set, input.is_secret);
                assert_eq!(input.control == "choice", !input.choices.is_empty());
            }
        }
    }
}
