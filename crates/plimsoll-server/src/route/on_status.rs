//! Routes that take a request over where another route responds with a certain status, or hands it over by itself.

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use http::header::{
    ALLOW, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, RANGE, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE,
};

use crate::action::{Action, Answer, Outcome};
use crate::message::fields::FieldEdits;
use crate::message::request::{OwnedRequest, Request};
use crate::message::response::{HandOver, Response};
use crate::route::{AllRoutes, RouteLink};

/// The routes that take over, by the status of a response.
#[derive(Debug, Clone, Default)]
pub struct OnStatus {
    /// Of several that a status matches the most specific counts.
    pub successors: Vec<(StatusPattern, Successor)>,
}

/// Which statuses are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusPattern {
    /// This one.
    Is(StatusCode),
    /// A hundred of them, by the first digit.
    Class(u16),
}

impl StatusPattern {
    /// A status such as `404`, or a class such as `5xx`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "3xx" => Some(Self::Class(3)),
            "4xx" => Some(Self::Class(4)),
            "5xx" => Some(Self::Class(5)),
            _ => {
                let status = StatusCode::from_bytes(text.as_bytes()).ok()?;
                (300..600)
                    .contains(&status.as_u16())
                    .then_some(Self::Is(status))
            }
        }
    }

    /// Whether statuses from 300 to 399 are among them.
    pub fn has_redirects(self) -> bool {
        match self {
            Self::Is(status) => status.is_redirection(),
            Self::Class(digit) => digit == 3,
        }
    }

    /// What the most specific pattern of a status belongs to.
    pub fn find<T>(all: &[(Self, T)], status: StatusCode) -> Option<&T> {
        let find = |wanted| all.iter().find(|(known, _)| *known == wanted);
        let found = find(Self::Is(status)).or_else(|| find(Self::Class(status.as_u16() / 100)));
        found.map(|(_, it)| it)
    }
}

/// The route that takes a request over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Successor {
    /// Which it is.
    pub target: SuccessorTarget,
    /// The status of its response.
    pub status: SuccessorStatus,
}

/// By what a route is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuccessorTarget {
    /// Its name: it gets the request as it is.
    Route(Arc<str>),
    /// A path, with its query if it has one: a GET of it is looked up among all routes of the listener.
    Path(Arc<str>),
}

impl SuccessorTarget {
    fn text(&self) -> &Arc<str> {
        let (Self::Route(text) | Self::Path(text)) = self;
        text
    }
}

/// The status of what a successor responds with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuccessorStatus {
    /// That of the first response, unless the successor's is no 2xx.
    First,
    /// Its own.
    Own,
    /// This one, unless the successor's is no 2xx.
    Is(StatusCode),
}

/// Fields of requests that ask for less than the whole content: a page in place of another response is sent whole.
const PARTIAL: [HeaderName; 6] = [
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    IF_UNMODIFIED_SINCE,
    RANGE,
];

/// Lets another action respond, and looks who takes over.
pub(crate) struct Leading {
    rules: Arc<OnStatus>,
    routes: RouteLink,
    inner: Rc<dyn Action>,
}

impl Leading {
    pub(crate) fn new(rules: Arc<OnStatus>, routes: RouteLink, inner: Rc<dyn Action>) -> Self {
        Self {
            rules,
            routes,
            inner,
        }
    }
}

impl Action for Leading {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let Some(routes) = self.routes.routes() else {
            return self.inner.handle(request);
        };
        let request = request.into_owned();
        let rules = Arc::clone(&self.rules);
        // Who takes over what this route does not take knows the methods of both.
        if request.method() == "OPTIONS" && rules.has_other_methods() {
            let refused = Response::new(StatusCode::METHOD_NOT_ALLOWED);
            return rules.follow(&routes, request, Outcome::Respond(refused));
        }
        match self.inner.handle(&request.request()) {
            Answer::Now(outcome) => rules.follow(&routes, request, outcome),
            Answer::Later(first) => Answer::Later(Box::pin(async move {
                match rules.follow(&routes, request, first.await) {
                    Answer::Now(outcome) => outcome,
                    Answer::Later(second) => second.await,
                }
            })),
        }
    }

    fn methods(&self) -> Option<&'static str> {
        self.inner.methods()
    }
}

impl OnStatus {
    /// Whether another route takes over where the method is not allowed.
    fn has_other_methods(&self) -> bool {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        StatusPattern::find(&self.successors, status).is_some()
    }

    fn follow(&self, routes: &AllRoutes, request: OwnedRequest, outcome: Outcome) -> Answer {
        let mut response = match outcome {
            Outcome::Respond(response) => response,
            other @ (Outcome::Upgrade(..) | Outcome::Raw(_)) => return Answer::Now(other),
        };
        if let Some(hand_over) = response.take_hand_over() {
            return handed_over(routes, request, hand_over);
        }
        let status = response.status();
        let successor = StatusPattern::find(&self.successors, status);
        let Some(successor) = successor.filter(|_| !response.is_relayed()) else {
            return Answer::now(response);
        };
        // What a successor leads back to itself stays as it is.
        if !request.lead_to(successor.target.text()) {
            return Answer::now(response);
        }
        let wanted = match successor.status {
            SuccessorStatus::Own => None,
            // A redirect leads nowhere without the field that says where.
            SuccessorStatus::First if status.is_redirection() => None,
            SuccessorStatus::First => Some(status),
            SuccessorStatus::Is(fixed) => Some(fixed),
        };
        let answer = match &successor.target {
            SuccessorTarget::Route(name) => {
                with_whole_content(&request.request(), wanted, |request| {
                    routes.respond_by_name(name, request)
                })
            }
            SuccessorTarget::Path(path) => {
                let request = request.for_path(path);
                with_whole_content(&request.request(), wanted, |request| {
                    routes.respond(request)
                })
            }
        };
        let Some(wanted) = wanted else {
            return answer;
        };
        let kept = kept_fields(&mut response);
        answer.map(move |mut response| {
            let fields = response.fields_mut();
            let mut kept = kept;
            // Of a field that the successor does not set all values hold, such as several challenges.
            kept.retain(|(name, _)| *name == SET_COOKIE || !fields.contains_key(name));
            for (name, value) in kept {
                fields.append(name, value);
            }
            if response.status().is_success() {
                response.with_status(wanted)
            } else {
                response
            }
        })
    }
}

/// The fields of a response that hold for a page in its place too.
fn kept_fields(response: &mut Response) -> Vec<(HeaderName, HeaderValue)> {
    let fields = response.fields();
    let kept = [ALLOW, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE];
    let kept = kept.into_iter().flat_map(|name| {
        let values = fields.get_all(&name).iter();
        values.map(move |value| (name.clone(), value.clone()))
    });
    kept.collect()
}

/// Without the fields that ask for a part of the content, if the response gets another status.
fn with_whole_content(
    request: &Request<'_>,
    wanted: Option<StatusCode>,
    then: impl FnOnce(&Request<'_>) -> Answer,
) -> Answer {
    if wanted.is_none() {
        return then(request);
    }
    let edits = PARTIAL
        .into_iter()
        .fold(FieldEdits::new(), FieldEdits::remove);
    request.edited(&edits, then)
}

/// Responds by the route of the path that a server named, with the fields that it set for its content.
fn handed_over(routes: &AllRoutes, request: OwnedRequest, hand_over: HandOver) -> Answer {
    let HandOver { path, fields } = hand_over;
    if !path.starts_with('/') {
        return Answer::now(Response::text(StatusCode::NOT_FOUND, "not found\n"));
    }
    if !request.lead_to(&Arc::from(path.as_str())) {
        let text = "the request was led on too often\n";
        return Answer::now(Response::text(StatusCode::INTERNAL_SERVER_ERROR, text));
    }
    let request = request.for_path(&path);
    let answer = routes.respond(&request.request());
    answer.map(move |mut response| {
        for name in fields.keys() {
            response.fields_mut().remove(name);
        }
        for (name, value) in &fields {
            response.fields_mut().append(name.clone(), value.clone());
        }
        response
    })
}
