//! Tests of the parts of multipart content.

use std::fmt;

use super::Condition;
use super::field::FieldTest;
use crate::request::{RequestPart, RequestView};

/// A test of the parts of multipart content.
#[derive(Debug, Clone)]
pub struct PartTest {
    /// Of the name in the form.
    pub name: Option<FieldTest>,
    /// Of the name of the file.
    pub file_name: Option<FieldTest>,
    /// Of a request with the header and content of the part.
    pub conditions: Vec<Condition>,
    /// Whether every part has to meet it, else one.
    pub is_every: bool,
}

impl PartTest {
    /// Whether a request meets it; absent if that takes more than its limits.
    pub(super) fn judge(&self, request: &RequestView<'_>) -> Option<bool> {
        let parts = match request.parts() {
            Ok([]) => return Some(false),
            Ok(parts) => parts,
            Err(error) => return (!error.is_limit()).then_some(false),
        };
        let judgements = parts.iter().map(|part| self.judge_part(part));
        if self.is_every {
            super::all(judgements)
        } else {
            super::any(judgements)
        }
    }

    fn judge_part(&self, part: &RequestPart<'_>) -> Option<bool> {
        let is_met = |test: &Option<FieldTest>, text: &Option<String>| {
            let text = text.as_deref().into_iter();
            test.as_ref().is_none_or(|test| test.is_met_by_any(text))
        };
        if !is_met(&self.name, &part.name) || !is_met(&self.file_name, &part.file_name) {
            return Some(false);
        }
        super::all(self.conditions.iter().map(|it| it.judge(&part.request)))
    }

    /// The parts that a request has, for people.
    pub(super) fn found(request: &RequestView<'_>) -> String {
        match request.parts() {
            Err(error) => error.to_string(),
            Ok([]) => "no parts".to_owned(),
            Ok(parts) => {
                let names = parts.iter().take(MOST_SHOWN);
                let names = names.map(|part| format!("{:?}", part.name.as_deref().unwrap_or("")));
                format!("parts {}", names.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Names of more parts are not shown.
const MOST_SHOWN: usize = 20;

impl fmt::Display for PartTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_every {
            "every part"
        } else {
            "a part"
        })?;
        if let Some(name) = &self.name {
            write!(f, ", name {name}")?;
        }
        if let Some(name) = &self.file_name {
            write!(f, ", file_name {name}")?;
        }
        for condition in &self.conditions {
            write!(f, ", {condition}")?;
        }
        Ok(())
    }
}
