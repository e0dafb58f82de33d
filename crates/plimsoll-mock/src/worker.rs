//! A plan as one worker serves it, with prepared responses and cached files.

pub(crate) mod action;

pub(crate) mod layers;

mod middlewares;

pub mod shared;

pub mod sharing;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use plimsoll_server::{Answer, Response, ResponseBody};
use tokio::sync::Semaphore;

use crate::admin::journal::AnsweredBy;
use crate::callback::Callbacks;
use crate::config::files::{self, CacheLookup, Files, LoadedFile};
use crate::config::plan::MockPlan;
use crate::config::ready::{self, PreparedResponse};
use crate::fault::delay::CommonDelays;
use crate::reply::{RECORDS, ReplyCall, ReplyContext};
use crate::request::{KeptRequest, RequestView};
use crate::rules::condition::Condition;
use crate::rules::nearness::{findings, near_misses};
use crate::script::Scripts;
use crate::store::collection;
use crate::store::states::SessionsFull;
use crate::worker::middlewares::MiddlewareThreads;
use crate::worker::shared::SharedMock;
use crate::worker::sharing::{Allowed, Sharing};

/// A plan as one worker serves it.
#[derive(Debug)]
pub(crate) struct Worker {
    epoch: u64,
    plan: Arc<MockPlan>,
    /// By set, rule and turn: responses that are always the same.
    ready: Vec<Vec<Vec<Option<PreparedResponse>>>>,
    context: Rc<ReplyContext>,
    /// The delays of all responses.
    delays: CommonDelays,
    /// Sends what rules send once they have answered.
    callbacks: Arc<Callbacks>,
    /// Whether a condition parses content as XML.
    reads_xml: bool,
    /// Whether the rules were made of mappings of WireMock.
    is_of_mappings: bool,
    evaluations: Arc<Semaphore>,
    middlewares: MiddlewareThreads,
}

/// With more rules than these it is not looked which one came nearest.
const MOST_COMPARED: usize = 256;

/// From this length of content on, conditions on XML are evaluated on another thread. On one machine a hostile document
/// of 22 KB took 71 ms with twelve rules of `//a//b//c`, one of 990 bytes 23 ms, one of 121 bytes 0.4 ms.
const LONG_XML: usize = 128;

/// Evaluations at once, of one worker; further requests wait.
const MOST_EVALUATIONS: usize = 2;

/// The rule that a request matches.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    /// The numbers of its set and itself.
    rule: Option<(usize, usize)>,
    /// The text of [`nearest_rule`], where it was found beside the rule.
    nearest: Option<String>,
}

/// Which reply of which rule.
#[derive(Debug, Clone, Copy)]
struct ReplyNumber {
    set: usize,
    rule: usize,
    turn: usize,
}

/// The part of the plan that answers a request, by its numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Responder {
    Preflight,
    Rule(usize, usize),
    Collection(usize),
    Document(usize),
    Folder,
}

impl Worker {
    pub(crate) fn new(shared: &SharedMock) -> Self {
        let (epoch, plan) = shared.plan();
        let sets = plan.sets.iter().map(|set| {
            let rules = set.rules().iter();
            let replies = rules.map(|rule| {
                let replies = rule.replies.iter();
                replies.map(|reply| reply.constant(&plan.sharing)).collect()
            });
            replies.collect()
        });
        let mut rules = plan.sets.iter().flat_map(|set| set.rules());
        let reads_xml = rules.any(|rule| rule.conditions.iter().any(Condition::reads_xml));
        let mut rules = plan.sets.iter().flat_map(|set| set.rules());
        let is_of_mappings = plan.mappings.is_some() || rules.any(|rule| rule.mapping.is_some());
        let scripts = Scripts::new(plan.states.store.clone(), shared.notices());
        Self {
            epoch,
            ready: sets.collect(),
            context: Rc::new(ReplyContext::new(
                plan.sharing.clone(),
                Files::new(plan.roots()),
                scripts,
                shared.proxied().cloned(),
            )),
            delays: shared.delays(),
            callbacks: shared.callbacks(),
            reads_xml,
            is_of_mappings,
            evaluations: Arc::new(Semaphore::new(MOST_EVALUATIONS)),
            middlewares: MiddlewareThreads::new(shared.notices()),
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

    /// The rule that answers a request, found on this thread.
    #[inline]
    pub(crate) fn matched(&self, request: &RequestView<'_>) -> Matched {
        Matched {
            rule: self.plan.find(request),
            nearest: None,
        }
    }

    /// The same; on another thread where conditions may take long on this content.
    ///
    /// - `prefix`: what the path begins with, without a slash at its end.
    pub(crate) async fn matched_off_worker(&self, kept: &KeptRequest, prefix: &str) -> Matched {
        if !self.reads_xml || kept.body.len() < LONG_XML {
            return self.matched(&kept.below(prefix));
        }
        // Closed by none.
        let Ok(permit) = Arc::clone(&self.evaluations).acquire_owned().await else {
            return self.matched(&kept.below(prefix));
        };
        let (plan, kept, prefix) = (Arc::clone(&self.plan), kept.clone(), prefix.to_owned());
        let matching = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let request = kept.below(&prefix);
            let rule = plan.find(&request);
            let nearest = rule.is_none().then(|| nearest_rule(&plan, &request));
            Matched { rule, nearest }
        });
        matching.await.unwrap_or_default()
    }

    /// Whether content that is not the JSON it claims to be is answered like any other: where the rule that answers looks at
    /// its text, and by mappings of WireMock, to which a content is bytes.
    pub(crate) fn takes_broken_json(&self, matched: &Matched) -> bool {
        let Some((set, number)) = matched.rule else {
            return self.is_of_mappings;
        };
        let rule = &self.plan.sets[set].rules()[number];
        rule.mapping.is_some() || rule.conditions.iter().any(Condition::reads_text)
    }

    /// The answer to a request, and the part of the plan that gives it.
    #[inline]
    pub(crate) fn answer(
        self: &Rc<Self>,
        request: &RequestView<'_>,
        matched: Matched,
    ) -> (Answer, Responder) {
        let allowed = self.sharing().allows(request);
        if let Some((set, number)) = matched.rule {
            let rule = &self.plan.sets[set].rules()[number];
            if let Err(error) = rule.advance(request) {
                return (self.no_room(error, &allowed), Responder::Rule(set, number));
            }
            let chosen = ReplyNumber {
                set,
                rule: number,
                turn: rule.turn(),
            };
            return (
                self.by_rule(chosen, request, allowed),
                Responder::Rule(set, number),
            );
        }
        if request.method == "OPTIONS" && !self.has_own_options(request) {
            return (
                Answer::now(self.sharing().options(request)),
                Responder::Preflight,
            );
        }
        let mut collections = self.plan.collections.iter().enumerate();
        let response =
            collections.find_map(|(at, collection)| Some((at, collection.answer(request)?)));
        if let Some((at, response)) = response {
            return (
                self.by_collection(response, allowed),
                Responder::Collection(at),
            );
        }
        let mut documents = self.plan.openapi.iter().enumerate();
        let response = documents.find_map(|(at, document)| Some((at, document.answer(request)?)));
        match response {
            Some((at, response)) => {
                for callback in self.plan.openapi[at].callbacks(request, &response) {
                    match callback {
                        Ok(callback) => self.callbacks.send_made(callback),
                        Err(unsent) => self.callbacks.report(&unsent.to_string()),
                    }
                }
                (
                    self.by_collection(response, allowed),
                    Responder::Document(at),
                )
            }
            None => (
                self.by_folder(request, matched.nearest, allowed),
                Responder::Folder,
            ),
        }
    }

    /// Whether a document describes OPTIONS for a path; preflight requests (Fetch, section 4.8) are never its own.
    fn has_own_options(&self, request: &RequestView<'_>) -> bool {
        let is_preflight = request.header("access-control-request-method").is_some();
        let mut documents = self.plan.openapi.iter();
        !is_preflight && documents.any(|document| document.has_operation(request))
    }

    /// The same for those who look at it later, when there may be another plan.
    pub(crate) fn answered_by(&self, by: Responder) -> AnsweredBy {
        match by {
            Responder::Preflight => AnsweredBy::Preflight,
            Responder::Rule(set, number) => {
                let rule = Arc::clone(&self.plan.sets[set].rules()[number]);
                match self.context.take_session() {
                    Some(session) => AnsweredBy::Session(rule, session),
                    None => AnsweredBy::Rule(rule),
                }
            }
            Responder::Collection(at) => {
                AnsweredBy::Collection(self.plan.collections[at].path().to_owned())
            }
            Responder::Document(at) => AnsweredBy::Document(Arc::clone(&self.plan.openapi[at])),
            Responder::Folder if self.plan.folder.is_none() => AnsweredBy::Nothing,
            Responder::Folder => AnsweredBy::Folder,
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
    fn by_rule(&self, chosen: ReplyNumber, request: &RequestView<'_>, allowed: Allowed) -> Answer {
        self.context.take_session();
        let rule = &self.plan.sets[chosen.set].rules()[chosen.rule];
        let reply = &rule.replies[chosen.turn];
        let ready = &self.ready[chosen.set][chosen.rule][chosen.turn];
        if !rule.callbacks.is_empty() {
            self.callbacks.send(&rule.callbacks, request);
        }
        let is_at_once = reply.delay.is_zero() && self.delays.is_zero();
        if let (Some(ready), true) = (ready, is_at_once) {
            return Answer::now(ready.response(self.sharing(), &allowed));
        }
        let call = ReplyCall {
            context: &self.context,
            reply,
            scenario: rule.scenario.as_ref(),
            request,
            allowed,
            delay: reply
                .chance
                .with(|rng| reply.delay.sample(rng) + self.delays.beside(&reply.delay, rng)),
        };
        match ready {
            Some(ready) => call.after(ready.response(self.sharing(), &call.allowed)),
            None => reply.respond(call),
        }
    }

    /// The answer with a file of the folder.
    ///
    /// - `nearest`: the text for a request that nothing answers, if it is known.
    fn by_folder(
        self: &Rc<Self>,
        request: &RequestView<'_>,
        nearest: Option<String>,
        allowed: Allowed,
    ) -> Answer {
        if self.plan.folder.is_none() {
            return Answer::now(self.unmatched(request, nearest, &allowed));
        }
        let epoch = match self.context.files.known(&request.path) {
            CacheLookup::Answer(None) => {
                return Answer::now(self.unmatched(request, nearest, &allowed));
            }
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
            let find = move || plan.folder.as_ref()?.find(&wanted);
            let found = worker.found_file(&path, epoch, find, &allowed).await;
            found.unwrap_or_else(|| worker.unmatched(&kept.view(), nearest, &allowed))
        })
    }

    /// A file as a response, kept under `key`; nothing if there is none.
    ///
    /// - `find`: may block.
    async fn found_file(
        &self,
        key: &str,
        epoch: u64,
        find: impl FnOnce() -> Option<PathBuf> + Send + 'static,
        allowed: &Allowed,
    ) -> Option<Response> {
        let loaded = files::loaded(|| match find() {
            Some(file) => files::load(&file, RECORDS),
            None => LoadedFile::Missing,
        });
        let (loaded, head) = (loaded.await, (StatusCode::OK, &[][..]));
        let files = &self.context.files;
        files.answer(key, epoch, loaded, head, self.sharing(), allowed)
    }

    /// The response where nothing matches.
    ///
    /// - `nearest`: the text of [`nearest_rule`], if it is known.
    fn unmatched(
        &self,
        request: &RequestView<'_>,
        nearest: Option<String>,
        allowed: &Allowed,
    ) -> Response {
        let text = nearest.unwrap_or_else(|| nearest_rule(&self.plan, request));
        if text.is_empty() {
            return self.context.missing(allowed);
        }
        self.context.text(StatusCode::NOT_FOUND, text, allowed)
    }
}

/// The content of a 404: the rule that came nearest, and where it differs; empty where there are no rules, or too many.
fn nearest_rule(plan: &MockPlan, request: &RequestView<'_>) -> String {
    let count: usize = plan.sets.iter().map(|set| set.rules().len()).sum();
    if count == 0 || count > MOST_COMPARED {
        return String::new();
    }
    let mut text = format!("no rule matches {} {:?}\n", request.method, request.path);
    if let Some(miss) = near_misses(plan, request, 1).first() {
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
    text
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::path::Path;
    use std::pin::Pin;
    use std::sync::mpsc;
    use std::task::Poll;

    use super::*;
    use crate::config;

    const RULES: &str = r#"
        [[rules]]
        when.request = { method = "POST", body.xpath = { "//b" = "1" } }
        respond.text = "found"
    "#;

    fn posted(content: String) -> KeptRequest {
        let mut request = KeptRequest::made("POST", "/");
        request.body = content.into();
        request
    }

    async fn polled_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Poll<F::Output> {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
    }

    /// The only other thread is taken: what does not wait for it is evaluated on the worker.
    #[test]
    fn long_xml_is_evaluated_on_another_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let plan = MockPlan::of_sets(vec![config::parse(RULES, Path::new(".")).unwrap()]);
            let worker = Worker::new(&SharedMock::fixed(plan));
            let (release, taken) = mpsc::channel::<()>();
            let other = tokio::task::spawn_blocking(move || taken.recv().ok());

            let short = posted("<a><b>1</b></a>".to_owned());
            let mut matching = Box::pin(worker.matched_off_worker(&short, ""));
            let Poll::Ready(matched) = polled_once(matching.as_mut()).await else {
                panic!("short content waits");
            };
            assert_eq!(matched.rule, Some((0, 0)));

            let long = posted(format!("<a>{}<b>1</b></a>", " ".repeat(LONG_XML)));
            let mut matching = Box::pin(worker.matched_off_worker(&long, ""));
            assert!(polled_once(matching.as_mut()).await.is_pending());
            drop(release);
            other.await.unwrap();
            assert_eq!(matching.await.rule, Some((0, 0)));

            let other = posted(format!("<a>{}<b>2</b></a>", " ".repeat(LONG_XML)));
            let matched = worker.matched_off_worker(&other, "").await;
            assert_eq!(matched.rule, None);
            assert!(matched.nearest.unwrap().contains("nearest is rule"));
        });
    }
}
