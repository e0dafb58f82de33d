//! Header fields that are set, added or removed, on the way in or on the way out.

use std::rc::Rc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use regex::Regex;

use crate::action::{Action, Answer};
use crate::message::fields::FieldEdits;
use crate::message::location::{LocationTemplate, RequestParts};
use crate::message::request::Request;

/// Changes to a set of header fields: first values are rewritten, then fields are removed, then set, then added.
#[derive(Debug, Clone, Default)]
pub struct HeaderRules {
    /// Of responses: values that are replaced in part, of which the first rule that matches counts.
    pub rewrite: Vec<FieldRewrite>,
    /// Fields that are taken away.
    pub remove: Vec<HeaderName>,
    /// Fields that are there once, with this value.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Fields that are there beside others of their name.
    pub add: Vec<(HeaderName, HeaderValue)>,
    /// Responses with a status of 400 and above stay as they are.
    pub skip_errors: bool,
}

/// A value of a response's field, such as `location`, in which a part is replaced.
#[derive(Debug, Clone)]
pub struct FieldRewrite {
    /// The field.
    pub name: HeaderName,
    /// What is replaced.
    pub from: Regex,
    /// By what; groups of `from` may stand in it.
    pub to: LocationTemplate,
}

/// Rewrites the values that rules are for.
fn rewrite(rules: &[FieldRewrite], request: &RequestParts<'_>, fields: &mut HeaderMap) {
    for (name, value) in fields.iter_mut() {
        let Ok(text) = value.to_str() else {
            continue;
        };
        let mut rules = rules.iter().filter(|rule| rule.name == name);
        let rewritten = rules.find_map(|rule| {
            let groups = rule.from.captures(text)?;
            let found = groups.get(0)?;
            let group = |_: &str, number| groups.get(number).map(|it| it.as_str().to_owned());
            let to = rule.to.fill(request, &group);
            let (before, after) = (text.get(..found.start())?, text.get(found.end()..)?);
            Some(format!("{before}{to}{after}"))
        });
        if let Some(rewritten) = rewritten.and_then(|it| HeaderValue::from_str(&it).ok()) {
            *value = rewritten;
        }
    }
}

impl HeaderRules {
    /// The fields that are set, added or removed.
    pub(super) fn names(&self) -> impl Iterator<Item = &HeaderName> {
        let given = self.set.iter().chain(&self.add).map(|(name, _)| name);
        self.remove.iter().chain(given)
    }

    /// The same as edits, which a layer makes once.
    fn edits(&self) -> FieldEdits {
        let mut edits = FieldEdits::new();
        for name in &self.remove {
            edits = edits.remove(name.clone());
        }
        for (name, value) in &self.set {
            edits = edits.set(name.clone(), value.clone());
        }
        for (name, value) in &self.add {
            edits = edits.add(name.clone(), value.clone());
        }
        edits
    }
}

/// Applies rules to requests.
pub(super) struct Requests {
    edits: FieldEdits,
    inner: Rc<dyn Action>,
}

impl Requests {
    pub(super) fn new(rules: &HeaderRules, inner: Rc<dyn Action>) -> Self {
        let edits = rules.edits();
        Self { edits, inner }
    }
}

impl Action for Requests {
    fn handle(&self, request: &Request<'_>) -> Answer {
        request.edited(&self.edits, |request| self.inner.handle(request))
    }
}

/// Applies rules to responses.
pub(super) struct Responses {
    edits: Rc<FieldEdits>,
    rewrite: Rc<[FieldRewrite]>,
    skip_errors: bool,
    inner: Rc<dyn Action>,
}

impl Responses {
    pub(super) fn new(rules: &HeaderRules, inner: Rc<dyn Action>) -> Self {
        let edits = Rc::new(rules.edits());
        Self {
            edits,
            rewrite: rules.rewrite.as_slice().into(),
            skip_errors: rules.skip_errors,
            inner,
        }
    }
}

impl Action for Responses {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let (edits, skip_errors) = (Rc::clone(&self.edits), self.skip_errors);
        let rules = Rc::clone(&self.rewrite);
        // Only where it is needed: it is a copy.
        let parts = (!rules.is_empty()).then(|| RequestParts::of(request).into_owned());
        self.inner.handle(request).map(move |mut response| {
            if skip_errors && response.status().as_u16() >= 400 {
                return response;
            }
            if let Some(parts) = &parts {
                rewrite(&rules, parts, response.fields_mut());
            }
            edits.apply(response.fields_mut());
            response
        })
    }
}
