//! A plan as one worker serves it, with prepared responses and cached files.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use plimsoll_server::{Answer, Response, ResponseBody};

use crate::collection;
use crate::condition::Condition;
use crate::files::{self, CacheLookup, Files, LoadedFile};
use crate::journal::AnsweredBy;
use crate::nearness::{findings, near_misses};
use crate::plan::MockPlan;
use crate::ready::{self, Ready};
use crate::reply::{RECORDS, ReplyCall, ReplyContext};
use crate::request::RequestView;
use crate::script::Scripts;
use crate::shared::Shared;
use crate::sharing::{Allowed, Sharing};
use crate::states::SessionsFull;

/// A plan as one worker serves it.
#[derive(Debug)]
pub(crate) struct Worker {
    epoch: u64,
    plan: Arc<MockPlan>,
    /// By set, rule and turn: responses that are always the same.
    ready: Vec<Vec<Vec<Option<Ready>>>>,
    context: Rc<ReplyContext>,
}

/// With more rules than these it is not looked which one came nearest.
const MOST_COMPARED: usize = 256;

/// Which reply of which rule.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    set: usize,
    rule: usize,
    turn: usize,
}

/// The part of the plan that answers a request, by its numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    Preflight,
    Rule(usize, usize),
    Collection(usize),
    Document(usize),
    Folder,
}

impl Worker {
    pub(crate) fn new(shared: &Shared) -> Self {
        let (epoch, plan) = shared.plan();
        let sets = plan.sets.iter().map(|set| {
            let rules = set.rules().iter();
            let replies = rules.map(|rule| {
                let replies = rule.replies.iter();
                replies.map(|reply| reply.constant(&plan.sharing)).collect()
            });
            replies.collect()
        });
        let scripts = Scripts::new(plan.states.store.clone(), shared.notices());
        Self {
            epoch,
            ready: sets.collect(),
            context: Rc::new(ReplyContext::new(
                plan.sharing.clone(),
                Files::new(plan.roots()),
                scripts,
            )),
            plan,
        }
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn sharing(&self) -> &Sharing {
        self.context.sharing()
    }

    pub(crate) fn body_limit(&self) -> u64 {
        self.plan.body_limit
    }

    /// Whether the rule that answers a request looks at its content as text.
    pub(crate) fn reads_text(&self, request: &RequestView<'_>) -> bool {
        let rule = self.plan.sets.iter().find_map(|set| {
            let mut rules = set.rules().iter();
            rules.find(|rule| set.covers(&request.path) && rule.is_met_by(request))
        });
        rule.is_some_and(|rule| rule.conditions.iter().any(Condition::reads_text))
    }

    /// The answer to a request, and the part of the plan that gives it.
    #[inline]
    pub(crate) fn answer(self: &Rc<Self>, request: &RequestView<'_>) -> (Answer, By) {
        let allowed = self.sharing().allows(request);
        if let Some((set, number)) = self.plan.find(request) {
            let rule = &self.plan.sets[set].rules()[number];
            if let Err(error) = rule.advance(request) {
                return (self.no_room(error, &allowed), By::Rule(set, number));
            }
            let chosen = Chosen {
                set,
                rule: number,
                turn: rule.turn(),
            };
            return (
                self.by_rule(chosen, request, allowed),
                By::Rule(set, number),
            );
        }
        if request.method == "OPTIONS" && !self.has_own_options(request) {
            return (Answer::now(self.sharing().options(request)), By::Preflight);
        }
        let mut collections = self.plan.collections.iter().enumerate();
        let response =
            collections.find_map(|(at, collection)| Some((at, collection.answer(request)?)));
        if let Some((at, response)) = response {
            return (self.by_collection(response, allowed), By::Collection(at));
        }
        let mut documents = self.plan.openapi.iter().enumerate();
        let response = documents.find_map(|(at, document)| Some((at, document.answer(request)?)));
        match response {
            Some((at, response)) => (self.by_collection(response, allowed), By::Document(at)),
            None => (self.by_folder(request, allowed), By::Folder),
        }
    }

    /// Whether a document describes OPTIONS for a path; preflight requests (Fetch, section 4.8) are never its own.
    fn has_own_options(&self, request: &RequestView<'_>) -> bool {
        let is_preflight = request.header("access-control-request-method").is_some();
        let mut documents = self.plan.openapi.iter();
        !is_preflight && documents.any(|document| document.has_operation(request))
    }

    /// The same for those who look at it later, when there may be another plan.
    pub(crate) fn answered_by(&self, by: By) -> AnsweredBy {
        match by {
            By::Preflight => AnsweredBy::Preflight,
            By::Rule(set, number) => {
                let rule = Arc::clone(&self.plan.sets[set].rules()[number]);
                match self.context.take_session() {
                    Some(session) => AnsweredBy::Session(rule, session),
                    None => AnsweredBy::Rule(rule),
                }
            }
            By::Collection(at) => {
                AnsweredBy::Collection(self.plan.collections[at].path().to_owned())
            }
            By::Document(at) => AnsweredBy::Document(Arc::clone(&self.plan.openapi[at])),
            By::Folder if self.plan.folder.is_none() => AnsweredBy::Nothing,
            By::Folder => AnsweredBy::Folder,
        }
    }

    /// The answer where the state of a client cannot be kept.
    fn no_room(&self, error: SessionsFull, allowed: &Allowed) -> Answer {
        let status = StatusCode::INSUFFICIENT_STORAGE;
        Answer::now(self.context.text(status, format!("{error}\n"), allowed))
    }

    /// The answer of a collection, once what it changes is on disk.
    fn by_collection(
        self: &Rc<Self>,
        stored: collection::StoredResponse,
        allowed: Allowed,
    ) -> Answer {
        let response = ready::response(self.sharing(), &allowed, stored.status, &stored.fields)
            .with_body(ResponseBody::Bytes(stored.content));
        let Some(written) = stored.written else {
            return Answer::now(response);
        };
        let context = Rc::clone(&self.context);
        Answer::later(async move {
            let writing = tokio::task::spawn_blocking(move || written.write());
            match writing.await {
                Ok(Ok(())) => response,
                failed => {
                    let reason = match failed {
                        Ok(Err(error)) => error.to_string(),
                        _ => "its thread has ended".to_owned(),
                    };
                    let text = format!("the change could not be written: {reason}\n");
                    let status = StatusCode::INTERNAL_SERVER_ERROR;
                    context.text(status, text, &allowed)
                }
            }
        })
    }

    #[inline]
    fn by_rule(&self, chosen: Chosen, request: &RequestView<'_>, allowed: Allowed) -> Answer {
        self.context.take_session();
        let rule = &self.plan.sets[chosen.set].rules()[chosen.rule];
        let reply = &rule.replies[chosen.turn];
        let ready = &self.ready[chosen.set][chosen.rule][chosen.turn];
        if let (Some(ready), true) = (ready, reply.delay.is_zero()) {
            return Answer::now(ready.response(self.sharing(), &allowed));
        }
        let call = ReplyCall {
            context: &self.context,
            reply,
            scenario: rule.scenario.as_ref(),
            request,
            allowed,
            delay: reply.chance.with(|rng| reply.delay.sample(rng)),
        };
        match ready {
            Some(ready) => call.after(ready.response(self.sharing(), &call.allowed)),
            None => reply.respond(call),
        }
    }

    /// The answer with a file of the folder.
    fn by_folder(self: &Rc<Self>, request: &RequestView<'_>, allowed: Allowed) -> Answer {
        if self.plan.folder.is_none() {
            return Answer::now(self.unmatched(request, &allowed));
        }
        let epoch = match self.context.files.known(&request.path) {
            CacheLookup::Answer(None) => return Answer::now(self.unmatched(request, &allowed)),
            CacheLookup::Answer(answer) => {
                return Answer::now(self.context.or_missing(answer.as_deref(), &allowed));
            }
            CacheLookup::No(epoch) => epoch,
        };
        let worker = Rc::clone(self);
        let path = request.path.clone().into_owned();
        let mut kept = request.keep();
        kept.body = Bytes::copy_from_slice(request.body);
        Answer::later(async move {
            let (plan, wanted) = (Arc::clone(&worker.plan), path.clone());
            let loaded = files::loaded(move || {
                let folder = plan.folder.as_ref();
                match folder.and_then(|folder| folder.find(&wanted)) {
                    Some(file) => files::load(&file, RECORDS),
                    None => LoadedFile::Missing,
                }
            });
            let loaded = loaded.await;
            let sharing = worker.sharing();
            let answer = worker.context.files.answer(
                &path,
                epoch,
                loaded,
                (StatusCode::OK, &[]),
                sharing,
                &allowed,
            );
            answer.unwrap_or_else(|| worker.unmatched(&kept.view(), &allowed))
        })
    }

    /// The response where nothing matches: names the nearest rule, and where it differs.
    fn unmatched(&self, request: &RequestView<'_>, allowed: &Allowed) -> Response {
        let count: usize = self.plan.sets.iter().map(|set| set.rules().len()).sum();
        if count == 0 || count > MOST_COMPARED {
            return self.context.missing(allowed);
        }
        let mut text = format!("no rule matches {} {:?}\n", request.method, request.path);
        if let Some(miss) = near_misses(&self.plan, request, 1).first() {
            let findings = findings(miss.set, miss.rule, request);
            if let Some(unmet) = findings.iter().find(|it| !it.is_met) {
                let (name, found) = (&miss.rule.key, &unmet.found);
                writeln!(
                    text,
                    "nearest is rule {name}: {}, found {found}",
                    unmet.condition
                )
                .expect("texts take everything");
            }
        }
        self.context.text(StatusCode::NOT_FOUND, text, allowed)
    }
}
