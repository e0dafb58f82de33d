//! Header fields that are set, added or removed, on the way in or on the way out.

mod cookies;

use std::rc::Rc;
use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use regex::Regex;

pub use self::cookies::{AttributeRewrite, CookieRule, SameSite};
use crate::action::{Action, Answer};
use crate::message::fields::FieldEdits;
use crate::message::request::Request;
use crate::message::response::Response;
use crate::place::location::LocationTemplate;
use crate::place::{Captured, Place, ResponseValues, Source, Template, Values, places_of};

/// Changes to a set of header fields: first values are rewritten, then fields are removed, then set, then added.
#[derive(Debug, Clone, Default)]
pub struct HeaderRules {
    /// Of responses: values that are replaced in part, of which the first rule that matches counts.
    pub rewrite: Vec<FieldRewrite>,
    /// Of responses: what becomes of the cookies that they set.
    pub cookies: Vec<CookieRule>,
    /// Fields that are taken away.
    pub remove: Vec<HeaderName>,
    /// Fields that are there once, with this value.
    pub set: Vec<(HeaderName, FieldValue)>,
    /// Fields that are there beside others of their name.
    pub add: Vec<(HeaderName, FieldValue)>,
    /// The same for responses of every status.
    pub always: Vec<(HeaderName, FieldValue)>,
    /// Nothing is set or added in responses with a status of 400 and above, but for `always`.
    pub skip_errors: bool,
}

/// The value of a field that is set.
#[derive(Debug, Clone)]
pub enum FieldValue {
    /// The same for all.
    Fixed(HeaderValue),
    /// One with places. Where nothing is left of it, the field is not there.
    Filled(Template),
}

impl FieldValue {
    /// The value; `None` if it is empty or none of a field.
    fn filled(&self, values: &dyn Values) -> Option<HeaderValue> {
        match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Filled(template) => {
                let mut text = Vec::new();
                let value = template.field_of(values, &mut text)?;
                HeaderValue::from_bytes(value).ok()
            }
        }
    }

    fn template(&self) -> Option<&Template> {
        match self {
            Self::Fixed(_) => None,
            Self::Filled(template) => Some(template),
        }
    }
}

impl From<HeaderValue> for FieldValue {
    fn from(value: HeaderValue) -> Self {
        Self::Fixed(value)
    }
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
fn rewrite(rules: &[FieldRewrite], request: &dyn Values, fields: &mut HeaderMap) {
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
        let given = self.given().map(|(name, _)| name);
        self.remove.iter().chain(given)
    }

    fn templates(&self) -> impl Iterator<Item = &Template> {
        self.given().filter_map(|(_, value)| value.template())
    }

    fn given(&self) -> impl Iterator<Item = &(HeaderName, FieldValue)> {
        self.set.iter().chain(&self.add).chain(&self.always)
    }

    /// The same as edits.
    ///
    /// - `is_error`: of a response with a status of 400 and above.
    fn edits(&self, values: &dyn Values, is_error: bool) -> FieldEdits {
        let mut edits = FieldEdits::new();
        for name in &self.remove {
            edits = edits.remove(name.clone());
        }
        let is_left = is_error && self.skip_errors;
        for (name, value) in self.set.iter().filter(|_| !is_left) {
            edits = match value.filled(values) {
                Some(value) => edits.set(name.clone(), value),
                None => edits.remove(name.clone()),
            };
        }
        let added = self.add.iter().filter(|_| !is_left);
        for (name, value) in added.chain(&self.always) {
            if let Some(value) = value.filled(values) {
                edits = edits.add(name.clone(), value);
            }
        }
        edits
    }

    /// The edits, if they are the same for every request: a layer makes them once.
    fn fixed_edits(&self, is_error: bool) -> Option<FieldEdits> {
        let is_fixed = self.templates().next().is_none();
        is_fixed.then(|| self.edits(&Nothing, is_error))
    }
}

/// There is no value.
struct Nothing;

impl Values for Nothing {
    fn write(&self, _place: &Place, _out: &mut Vec<u8>) -> bool {
        false
    }
}

/// Applies rules to requests.
pub(super) struct Requests {
    rules: Arc<HeaderRules>,
    fixed: Option<FieldEdits>,
    inner: Rc<dyn Action>,
}

impl Requests {
    pub(super) fn new(rules: Arc<HeaderRules>, inner: Rc<dyn Action>) -> Self {
        Self {
            fixed: rules.fixed_edits(false),
            rules,
            inner,
        }
    }
}

impl Action for Requests {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let filled;
        let edits = if let Some(edits) = &self.fixed {
            edits
        } else {
            filled = self.rules.edits(request, false);
            &filled
        };
        request.edited(edits, |request| self.inner.handle(request))
    }
}

/// Applies rules to responses.
pub(super) struct Responses {
    rules: Arc<HeaderRules>,
    fixed: Option<Rc<FixedEdits>>,
    /// Places whose values are kept until there is a response.
    places: Rc<[Place]>,
    inner: Rc<dyn Action>,
}

impl Responses {
    pub(super) fn new(rules: Arc<HeaderRules>, inner: Rc<dyn Action>) -> Self {
        let mut places = places_of(rules.templates(), Source::Request);
        let rewriting = rules.rewrite.iter().flat_map(|rule| rule.to.places());
        let cookies = rules.cookies.iter().flat_map(CookieRule::places);
        for place in rewriting.chain(cookies) {
            if !places.contains(place) {
                places.push(place.clone());
            }
        }
        Self {
            fixed: FixedEdits::from_rules(&rules).map(Rc::new),
            places: places.into(),
            rules,
            inner,
        }
    }

    /// With edits that are the same for all, and no values to rewrite.
    fn edited(&self, edits: &Rc<FixedEdits>, request: &Request<'_>) -> Answer {
        let edits = Rc::clone(edits);
        self.inner.handle(request).map(move |mut response| {
            edits.apply(&mut response);
            response
        })
    }
}

/// Edits that are the same for every response without an error, and for every other one.
struct FixedEdits {
    usual: FieldEdits,
    of_errors: FieldEdits,
}

impl FixedEdits {
    fn from_rules(rules: &HeaderRules) -> Option<Self> {
        Some(Self {
            usual: rules.fixed_edits(false)?,
            of_errors: rules.fixed_edits(true)?,
        })
    }

    fn apply(&self, response: &mut Response) {
        let edits = if is_error(response) {
            &self.of_errors
        } else {
            &self.usual
        };
        edits.apply(response.fields_mut());
    }
}

fn is_error(response: &Response) -> bool {
    response.status().as_u16() >= 400
}

impl Action for Responses {
    fn handle(&self, request: &Request<'_>) -> Answer {
        if let Some(edits) = &self.fixed
            && self.rules.rewrite.is_empty()
            && self.rules.cookies.is_empty()
        {
            return self.edited(edits, request);
        }
        let (rules, places) = (Arc::clone(&self.rules), Rc::clone(&self.places));
        let fixed = self.fixed.clone();
        let captured = Captured::read(&places, request);
        let answer = self.inner.handle(request);
        let kept = request.content().kept();
        let first = match kept {
            Some(_) => None,
            None => Some(request.content().notes()),
        };
        answer.map(move |mut response| {
            let noted = first.or_else(|| kept.map(|kept| kept.notes()));
            let noted = noted.unwrap_or_default();
            let captured = captured.with(&places);
            rewrite(&rules.rewrite, &captured, response.fields_mut());
            cookies::change(&rules.cookies, &captured, response.fields_mut());
            if let Some(fixed) = fixed {
                fixed.apply(&mut response);
                return response;
            }
            let is_error = is_error(&response);
            let values = ResponseValues {
                captured,
                notes: &noted,
                status: response.status(),
                fields: response.fields_mut(),
            };
            let edits = rules.edits(&values, is_error);
            edits.apply(response.fields_mut());
            response
        })
    }
}
