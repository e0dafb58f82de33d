//! Header fields that are set, added or removed, on the way in or on the way out.

use std::rc::Rc;

use http::header::{HeaderName, HeaderValue};

use crate::action::{Action, Answer};
use crate::message::fields::FieldEdits;
use crate::message::request::Request;

/// Changes to a set of header fields: first fields are removed, then set, then added.
#[derive(Debug, Clone, Default)]
pub struct HeaderRules {
    /// Fields that are taken away.
    pub remove: Vec<HeaderName>,
    /// Fields that are there once, with this value.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Fields that are there beside others of their name.
    pub add: Vec<(HeaderName, HeaderValue)>,
    /// Responses with a status of 400 and above stay as they are.
    pub skip_errors: bool,
}

impl HeaderRules {
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
    skip_errors: bool,
    inner: Rc<dyn Action>,
}

impl Responses {
    pub(super) fn new(rules: &HeaderRules, inner: Rc<dyn Action>) -> Self {
        let edits = Rc::new(rules.edits());
        Self {
            edits,
            skip_errors: rules.skip_errors,
            inner,
        }
    }
}

impl Action for Responses {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let (edits, skip_errors) = (Rc::clone(&self.edits), self.skip_errors);
        self.inner.handle(request).map(move |mut response| {
            if skip_errors && response.status().as_u16() >= 400 {
                return response;
            }
            edits.apply(response.fields_mut());
            response
        })
    }
}
