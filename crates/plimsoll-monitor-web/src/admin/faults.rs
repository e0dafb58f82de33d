//! Problems of a form at its fields: what a field says of itself, and the message beside it.

use std::fmt::{Display, Write as _};

use plimsoll_model::escaped_html;

use crate::admin::form_error::FormError;

/// The problems of a form's fields, in order.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

/// A problem of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The id of the field.
    pub(super) field: String,
    /// The message with the key of the definition, for a list apart from the fields.
    pub(super) text: String,
    /// The message alone.
    message: String,
}

impl Faults {
    /// The problems of fields, and the texts of those that are of no field.
    ///
    /// - `field_of`: the id of the field for a key of the definition, or for a name that the error has.
    pub(super) fn sorted(
        error: &FormError,
        field_of: impl Fn(&str) -> Option<String>,
    ) -> (Self, Vec<String>) {
        let (mut faults, mut others) = (Vec::new(), Vec::new());
        for problem in error.problems() {
            let field = Some(problem.key.as_str()).filter(|key| !key.is_empty());
            match field.and_then(&field_of) {
                Some(field) => faults.push(Fault {
                    field,
                    text: problem.text(),
                    message: problem.message,
                }),
                None => others.push(problem.text()),
            }
        }
        (Self(faults), others)
    }

    pub(super) fn all(&self) -> &[Fault] {
        &self.0
    }

    /// Attributes of a field: that its value is wrong, and which message says why. The first wrong field of a page gets the focus.
    pub(super) fn mark(&self, field: &str) -> String {
        self.attributes(field, None)
    }

    /// The same of one of several fields whose ids begin alike.
    pub(super) fn mark_one(&self, prefix: &str, rest: impl Display) -> String {
        self.mark(&format!("{prefix}{rest}"))
    }

    /// The same of a field that a hint describes always.
    pub(super) fn mark_with_hint(&self, field: &str, hint: &str) -> String {
        self.attributes(field, Some(hint))
    }

    fn attributes(&self, field: &str, hint: Option<&str>) -> String {
        let is_wrong = self.0.iter().any(|fault| fault.field == field);
        let message = is_wrong.then(|| message_id(field));
        let described: Vec<_> = message.as_deref().into_iter().chain(hint).collect();
        let mut attributes = String::new();
        if !described.is_empty() {
            let ids = escaped_html(&described.join(" "));
            write!(attributes, " aria-describedby=\"{ids}\"").expect(IN_MEMORY);
        }
        if is_wrong {
            // Of several, a browser focuses the first one in the order of the page.
            attributes.push_str(" aria-invalid=\"true\" autofocus");
        }
        attributes
    }

    /// The message beside a field; empty if nothing is wrong with it.
    pub(super) fn at(&self, field: &str) -> String {
        let messages = self.0.iter().filter(|fault| fault.field == field);
        let messages: Vec<_> = messages.map(|fault| fault.message.as_str()).collect();
        if messages.is_empty() {
            return String::new();
        }
        let (id, text) = (
            escaped_html(&message_id(field)),
            escaped_html(&messages.join("\n")),
        );
        format!("<p class=\"wrong\" id=\"{id}\">{text}</p>")
    }

    /// The same of one of several fields whose ids begin alike.
    pub(super) fn at_one(&self, prefix: &str, rest: impl Display) -> String {
        self.at(&format!("{prefix}{rest}"))
    }
}

const IN_MEMORY: &str = "writing to memory does not fail";

fn message_id(field: &str) -> String {
    format!("{field}-error")
}

/// The first part of a key: `step` of `step[2].after`.
pub(super) fn first_part(key: &str) -> &str {
    key.split(['.', '[']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::document::ConfigProblem;

    use super::*;

    fn faults() -> (Faults, Vec<String>) {
        let problem = |key: &str, message: &str, hint: Option<&str>| ConfigProblem {
            line: 1,
            column: 1,
            key: key.to_owned(),
            message: message.to_owned(),
            hint: hint.map(str::to_owned),
        };
        let error = FormError::Definition(vec![
            problem("interval", "`<soon>` is no time", Some("write 60s")),
            problem("expect[2]", "no condition", None),
            problem("expect[3]", "none either", None),
            problem("", "no kind", None),
            problem("", "`interval` is missing", None),
            problem("other", "`x` is missing", None),
            problem("other", "unknown", None),
        ]);
        Faults::sorted(&error, |key| {
            let first = first_part(key);
            ["interval", "expect"]
                .contains(&first)
                .then(|| first.to_owned())
        })
    }

    #[test]
    fn a_field_names_its_message() {
        let (faults, others) = faults();
        assert_eq!(
            others,
            ["no kind", "other: `x` is missing", "other: unknown"]
        );
        assert_eq!(
            faults.mark("interval"),
            " aria-describedby=\"interval-error\" aria-invalid=\"true\" autofocus"
        );
        assert_eq!(
            faults.mark_with_hint("expect", "expect-hint"),
            " aria-describedby=\"expect-error expect-hint\" aria-invalid=\"true\" autofocus"
        );
        assert_eq!(faults.mark("name"), "");
        assert_eq!(
            faults.mark_with_hint("name", "name-hint"),
            " aria-describedby=\"name-hint\""
        );
        assert_eq!(
            faults.at("interval"),
            "<p class=\"wrong\" id=\"interval-error\">`&lt;soon&gt;` is no time; write 60s\n`interval` is missing</p>"
        );
        assert_eq!(
            faults.at_one("ex", "pect"),
            "<p class=\"wrong\" id=\"expect-error\">no condition\nnone either</p>"
        );
        assert_eq!(faults.at("name"), "");
        let texts: Vec<_> = faults.all().iter().map(|fault| &fault.text).collect();
        assert_eq!(
            texts,
            [
                "interval: `<soon>` is no time; write 60s",
                "expect[2]: no condition",
                "expect[3]: none either",
                "`interval` is missing"
            ]
        );
    }

    #[test]
    fn a_wrong_field_of_a_form_keeps_its_name() {
        let error = FormError::Field("started", "ahead".to_owned());
        let (faults, others) = Faults::sorted(&error, |key| Some(key.to_owned()));
        assert!(others.is_empty());
        assert_eq!(faults.all()[0].text, "ahead");
        assert_eq!(faults.all()[0].field, "started");
    }
}
