//! What one worker makes of a plan: responses that lie ready, and files that it has read.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE, HeaderName, HeaderValue};
use plimsoll_server::{Alarms, Answer, LocalFuture, Outcome, Response, ResponseBody};

use crate::collection;
use crate::condition::Condition;
use crate::events::EventStream;
use crate::fault::WholeResponse;
use crate::files::{self, Files, Known, Loaded};
use crate::grpc::CallContent;
use crate::journal::AnsweredBy;
use crate::nearness::{findings, near_misses};
use crate::pace::Paced;
use crate::plan::MockPlan;
use crate::proxy::{self, Outgoing, Passed, Upstream, UpstreamPool};
use crate::ready::{self, Ready};
use crate::reply::{Content, RECORDS, Reply, ReplyFile};
use crate::request::RequestView;
use crate::script::{Script, Scripts};
use crate::shared::Shared;
use crate::sharing::{Allowed, Sharing};
use crate::states::SessionsFull;
use crate::websocket::{self, Conversation, Session};

/// A plan as one worker serves it.
#[derive(Debug)]
pub(crate) struct Worker {
    epoch: u64,
    plan: Arc<MockPlan>,
    /// By set, rule and turn: those that are always the same.
    ready: Vec<Vec<Vec<Option<Ready>>>>,
    missing: Ready,
    files: Files,
    /// Connections to real servers.
    pools: RefCell<Vec<(Arc<Upstream>, Rc<UpstreamPool>)>>,
    scripts: Scripts,
    /// The WebSocket that was agreed on last, until the journal takes it.
    session: RefCell<Option<Arc<Session>>>,
    alarms: Alarms,
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

/// What answers a request, by its numbers in the plan.
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
        let sharing = &plan.sharing;
        let sets = plan.sets.iter().map(|set| {
            let rules = set.rules().iter();
            let replies = rules.map(|rule| {
                let replies = rule.replies.iter();
                replies.map(|reply| always(sharing, reply)).collect()
            });
            replies.collect()
        });
        Self {
            epoch,
            ready: sets.collect(),
            missing: Ready::new(sharing, StatusCode::NOT_FOUND, Vec::new(), Bytes::new()),
            files: Files::new(plan.roots()),
            pools: RefCell::default(),
            scripts: Scripts::new(plan.states.store.clone(), shared.notices()),
            session: RefCell::default(),
            alarms: Alarms::default(),
            plan,
        }
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn sharing(&self) -> &Sharing {
        &self.plan.sharing
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

    /// What a request is answered with, and by what.
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
                match self.session.take() {
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
        let refusal = Ready::text(self.sharing(), status, format!("{error}\n"));
        Answer::now(refusal.response(self.sharing(), allowed))
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
        let worker = Rc::clone(self);
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
                    let sharing = worker.sharing();
                    Ready::text(sharing, status, text).response(sharing, &allowed)
                }
            }
        })
    }

    fn reply(&self, chosen: Chosen) -> &Reply {
        &self.plan.sets[chosen.set].rules()[chosen.rule].replies[chosen.turn]
    }

    #[inline]
    fn by_rule(
        self: &Rc<Self>,
        chosen: Chosen,
        request: &RequestView<'_>,
        allowed: Allowed,
    ) -> Answer {
        self.session.take();
        let reply = self.reply(chosen);
        let ready = &self.ready[chosen.set][chosen.rule][chosen.turn];
        if let (Some(ready), true) = (ready, reply.delay.is_zero()) {
            return Answer::now(ready.response(self.sharing(), &allowed));
        }
        let delay = reply.chance.with(|rng| reply.delay.sample(rng));
        if let Some(ready) = ready {
            let response = ready.response(self.sharing(), &allowed);
            return self.after(delay, async move { Outcome::Respond(response) });
        }
        if let Content::Proxy(upstream) = &reply.content {
            return self.by_proxy(chosen, upstream, request, allowed, delay);
        }
        if let Content::WebSocket(conversation) = &reply.content {
            return self.by_websocket(chosen, conversation, request, &allowed, delay);
        }
        if let Content::Script(script) = &reply.content {
            return self.by_script(chosen, script, request, allowed, delay);
        }
        if let Content::Grpc(call) = &reply.content {
            let content = call.content(request);
            let fields = written_fields(reply, request);
            let response = by_call(self.sharing(), &allowed, &fields, content);
            return self.after(delay, async move { Outcome::Respond(response) });
        }
        // What is made of the request is made now, since it does not stay.
        let fields = written_fields(reply, request);
        let content = match &reply.content {
            Content::Written(_, written) => Some(Bytes::from(written.fill(request))),
            Content::Bytes(_, bytes) => Some(bytes.clone()),
            Content::Empty => Some(Bytes::new()),
            _ => None,
        };
        let stream = match &reply.content {
            Content::Events(script) => Some(script.stream(request)),
            _ => None,
        };
        let worker = Rc::clone(self);
        self.after(delay, async move {
            let reply = worker.reply(chosen);
            if let Some(stream) = stream {
                return by_events(worker.sharing(), &allowed, reply, fields, stream);
            }
            match (&reply.content, content) {
                (Content::File(file), _) => {
                    let status = reply.status.unwrap_or(StatusCode::OK);
                    let head = (status, fields.as_slice());
                    Outcome::Respond(worker.by_file(head, file, &allowed).await)
                }
                (_, content) => {
                    let content = content.unwrap_or_default();
                    made(worker.sharing(), &allowed, reply, fields, content)
                }
            }
        })
    }

    /// An outcome that is held back.
    fn after(&self, delay: Duration, outcome: impl Future<Output = Outcome> + 'static) -> Answer {
        let wait = (!delay.is_zero()).then(|| self.alarms.wait(delay));
        Answer::Later(Box::pin(async move {
            if let Some(wait) = wait {
                wait.await;
            }
            outcome.await
        }))
    }

    /// The answer of a real server, with the fields of the rule.
    fn by_proxy(
        self: &Rc<Self>,
        chosen: Chosen,
        upstream: &Arc<Upstream>,
        request: &RequestView<'_>,
        allowed: Allowed,
        delay: Duration,
    ) -> Answer {
        let own = written_fields(self.reply(chosen), request);
        let Some(outgoing) = Outgoing::of(request, upstream) else {
            let text = format!("requests for {upstream} come back here\n");
            let status = StatusCode::LOOP_DETECTED;
            let refusal = Ready::text(self.sharing(), status, text);
            return Answer::now(refusal.response(self.sharing(), &allowed));
        };
        let pool = self.pool(upstream);
        let worker = Rc::clone(self);
        self.after(delay, async move {
            let passed = proxy::pass_on(pool, outgoing).await;
            Outcome::Respond(worker.passed_back(passed, &own, &allowed))
        })
    }

    fn passed_back(
        &self,
        passed: Result<Passed, (StatusCode, String)>,
        own: &[(HeaderName, HeaderValue)],
        allowed: &Allowed,
    ) -> Response {
        let passed = match passed {
            Ok(passed) => passed,
            Err((status, text)) => {
                let sharing = self.sharing();
                return Ready::text(sharing, status, text).response(sharing, allowed);
            }
        };
        let mut response = Response::new(passed.status);
        let is_own = |name: &HeaderName| own.iter().any(|(it, _)| it == name);
        let theirs = passed.fields.iter().filter(|(name, _)| !is_own(name));
        let fields: Vec<_> = own.iter().chain(theirs).cloned().collect();
        let is_shared = fields
            .iter()
            .any(|(name, _)| *name == ACCESS_CONTROL_ALLOW_ORIGIN);
        for (name, value) in fields {
            response = response.with_field(name, value);
        }
        if !is_shared {
            for (name, value) in self.sharing().fields(allowed) {
                response = response.with_field(name, value);
            }
        }
        response.with_body(ResponseBody::Stream(Box::pin(passed.content)))
    }

    /// A WebSocket, if the handshake is correct.
    fn by_websocket(
        &self,
        chosen: Chosen,
        conversation: &Arc<Conversation>,
        request: &RequestView<'_>,
        allowed: &Allowed,
        delay: Duration,
    ) -> Answer {
        let fields = match websocket::agreed(request, &conversation.protocols) {
            Ok(fields) => fields,
            Err((status, fields, text)) => {
                let refusal = Ready::text(self.sharing(), status, text);
                let response = refusal.response(self.sharing(), allowed);
                let response = fields
                    .into_iter()
                    .fold(response, |response, (name, value)| {
                        response.with_field(name, value)
                    });
                return Answer::now(response);
            }
        };
        let session = Arc::<Session>::default();
        *self.session.borrow_mut() = Some(Arc::clone(&session));
        let mut all = written_fields(self.reply(chosen), request);
        all.extend(fields);
        let response = Response::new(StatusCode::SWITCHING_PROTOCOLS);
        let response = all.into_iter().fold(response, |response, (name, value)| {
            response.with_field(name, value)
        });
        let (conversation, request) = (Arc::clone(conversation), request.keep());
        self.after(delay, async move {
            let talk = move |stream, _drain| {
                let talk = websocket::talk(stream, conversation, request, session);
                Box::pin(talk) as LocalFuture<()>
            };
            Outcome::Upgrade(response, Box::new(talk))
        })
    }

    /// The answer of a script, in place of what the rule gives.
    fn by_script(
        self: &Rc<Self>,
        chosen: Chosen,
        script: &Arc<Script>,
        request: &RequestView<'_>,
        allowed: Allowed,
        delay: Duration,
    ) -> Answer {
        let rule = &self.plan.sets[chosen.set].rules()[chosen.rule];
        let scenario = rule.scenario.as_ref();
        let state = scenario.map(|scenario| scenario.state(request));
        let client = scenario.map(|scenario| scenario.client(request));
        let own = written_fields(self.reply(chosen), request);
        let asking = self
            .scripts
            .ask(script, request, &self.reply(chosen).chance, state);
        let (worker, rule) = (Rc::clone(self), Arc::clone(rule));
        self.after(delay, async move {
            let answer = match asking {
                Ok(asking) => worker.scripts.answer(asking).await,
                Err(refusal) => Err(refusal),
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err((status, text)) => {
                    let sharing = worker.sharing();
                    let refusal = Ready::text(sharing, status, text);
                    return Outcome::Respond(refusal.response(sharing, &allowed));
                }
            };
            if let (Some(scenario), Some(client), Some(state)) =
                (&rule.scenario, client, &answer.state)
            {
                let put = scenario.states.put(&scenario.name, &client, state);
                if let Err(error) = put {
                    let status = StatusCode::INSUFFICIENT_STORAGE;
                    let refusal = Ready::text(worker.sharing(), status, format!("{error}\n"));
                    return Outcome::Respond(refusal.response(worker.sharing(), &allowed));
                }
            }
            let is_theirs = |name: &HeaderName| answer.fields.iter().any(|(it, _)| it == name);
            let mut fields: Vec<_> = own.into_iter().filter(|it| !is_theirs(&it.0)).collect();
            fields.extend(answer.fields.iter().cloned());
            let reply = worker.reply(chosen);
            let (kind, content) = (answer.kind, answer.content);
            let reply = Reply {
                status: answer.status.or(reply.status),
                content: if content.is_empty() {
                    Content::Empty
                } else {
                    Content::Bytes(kind, content.clone())
                },
                pace: reply.pace,
                ..Reply::default()
            };
            made(worker.sharing(), &allowed, &reply, fields, content)
        })
    }

    /// Connections to a real server, as long as these rules hold.
    fn pool(&self, upstream: &Arc<Upstream>) -> Rc<UpstreamPool> {
        let mut pools = self.pools.borrow_mut();
        let known = pools.iter().find(|(it, _)| Arc::ptr_eq(it, upstream));
        if let Some((_, pool)) = known {
            return Rc::clone(pool);
        }
        let pool = upstream.pool();
        pools.push((Arc::clone(upstream), Rc::clone(&pool)));
        pool
    }

    /// The answer with the file of a rule.
    async fn by_file(
        &self,
        head: (StatusCode, &[(HeaderName, HeaderValue)]),
        file: &ReplyFile,
        allowed: &Allowed,
    ) -> Response {
        let (status, fields) = head;
        // No path of a request has a line feed in its beginning. Fields are those of the rule.
        let mut key = format!("\n{status}\n{}\n{}", file.records, file.path.display());
        for (name, value) in fields {
            write!(key, "\n{name}: {value:?}").expect("texts take everything");
        }
        let epoch = match self.files.known(&key) {
            Known::Answer(answer) => return self.or_missing(answer.as_deref(), allowed),
            Known::No(epoch) => epoch,
        };
        let file = file.clone();
        let loaded = files::loaded(move || {
            let path = file.path.canonicalize().ok();
            match path.filter(|path| path.starts_with(&file.root)) {
                Some(path) => files::load(&path, &file.records),
                None => Loaded::Missing,
            }
        });
        let loaded = loaded.await;
        let sharing = self.sharing();
        let answer = self
            .files
            .answer(&key, epoch, loaded, head, sharing, allowed);
        answer.unwrap_or_else(|| self.missing(allowed))
    }

    /// The answer with a file of the folder.
    fn by_folder(self: &Rc<Self>, request: &RequestView<'_>, allowed: Allowed) -> Answer {
        if self.plan.folder.is_none() {
            return Answer::now(self.unmatched(request, &allowed));
        }
        let epoch = match self.files.known(&request.path) {
            Known::Answer(None) => return Answer::now(self.unmatched(request, &allowed)),
            Known::Answer(answer) => {
                return Answer::now(self.or_missing(answer.as_deref(), &allowed));
            }
            Known::No(epoch) => epoch,
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
                    None => Loaded::Missing,
                }
            });
            let loaded = loaded.await;
            let sharing = worker.sharing();
            let answer = worker.files.answer(
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

    /// What is answered where nothing matches: the rule that came nearest, and where it differs.
    fn unmatched(&self, request: &RequestView<'_>, allowed: &Allowed) -> Response {
        let count: usize = self.plan.sets.iter().map(|set| set.rules().len()).sum();
        if count == 0 || count > MOST_COMPARED {
            return self.missing(allowed);
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
        Ready::text(self.sharing(), StatusCode::NOT_FOUND, text).response(self.sharing(), allowed)
    }

    fn or_missing(&self, answer: Option<&Ready>, allowed: &Allowed) -> Response {
        answer
            .unwrap_or(&self.missing)
            .response(self.sharing(), allowed)
    }

    fn missing(&self, allowed: &Allowed) -> Response {
        self.missing.response(self.sharing(), allowed)
    }
}

/// The fields of a reply, those for this request too.
fn written_fields(reply: &Reply, request: &RequestView<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let written = reply.written_fields.iter().filter_map(|(name, written)| {
        let value = HeaderValue::from_str(&written.fill(request)).ok()?;
        Some((name.clone(), value))
    });
    let mut fields = reply.fields.clone();
    fields.extend(written);
    fields
}

/// An empty media type in a rule stands for none at all.
pub(crate) fn without_empty_type(fields: &mut Vec<(HeaderName, HeaderValue)>) {
    fields.retain(|(name, value)| name != CONTENT_TYPE || !value.is_empty());
}

/// The status of a reply, and its fields with its media type.
fn head(
    reply: &Reply,
    mut fields: Vec<(HeaderName, HeaderValue)>,
) -> (StatusCode, Vec<(HeaderName, HeaderValue)>) {
    if let Content::Bytes(kind, _) | Content::Written(kind, _) = &reply.content
        && !fields.iter().any(|(name, _)| name == CONTENT_TYPE)
    {
        fields.push((CONTENT_TYPE, kind.clone()));
    }
    without_empty_type(&mut fields);
    (reply.status.unwrap_or(StatusCode::OK), fields)
}

/// The response of a reply that is always the same.
fn always(sharing: &Sharing, reply: &Reply) -> Option<Ready> {
    if reply.fault.is_some() || reply.pace.is_some() || !reply.written_fields.is_empty() {
        return None;
    }
    let content = match &reply.content {
        Content::Empty => Bytes::new(),
        Content::Bytes(_, content) => content.clone(),
        _ => return None,
    };
    let (status, fields) = head(reply, reply.fields.clone());
    Some(Ready::new(sharing, status, fields, content))
}

/// The outcome of a reply that is a stream of events.
fn by_events(
    sharing: &Sharing,
    allowed: &Allowed,
    reply: &Reply,
    fields: Vec<(HeaderName, HeaderValue)>,
    stream: EventStream,
) -> Outcome {
    let (status, mut fields) = head(reply, fields);
    if !fields.iter().any(|(name, _)| name == CONTENT_TYPE) {
        let kind = HeaderValue::from_static("text/event-stream");
        fields.push((CONTENT_TYPE, kind));
    }
    let response = ready::response(sharing, allowed, status, &fields);
    Outcome::Respond(response.with_body(ResponseBody::Stream(Box::pin(stream))))
}

/// The response to a call of gRPC.
fn by_call(
    sharing: &Sharing,
    allowed: &Allowed,
    fields: &[(HeaderName, HeaderValue)],
    content: CallContent,
) -> Response {
    let kind = HeaderValue::from_static("application/grpc");
    let fields: Vec<_> = fields
        .iter()
        .filter(|(name, _)| name != CONTENT_TYPE)
        .cloned()
        .collect();
    ready::response(sharing, allowed, StatusCode::OK, &fields)
        .with_field(CONTENT_TYPE, kind)
        .with_body(ResponseBody::Stream(Box::pin(content)))
}

/// The outcome of a reply that is made for one request.
fn made(
    sharing: &Sharing,
    allowed: &Allowed,
    reply: &Reply,
    fields: Vec<(HeaderName, HeaderValue)>,
    content: Bytes,
) -> Outcome {
    let (status, fields) = head(reply, fields);
    if let Some(fault) = reply.fault {
        return fault.outcome(WholeResponse {
            status,
            fields,
            content,
        });
    }
    let response = ready::response(sharing, allowed, status, &fields);
    let content = match (&reply.content, reply.pace) {
        (Content::Announced(length), _) => ResponseBody::Announced(*length),
        (_, None) => ResponseBody::Bytes(content),
        (_, Some(pace)) => ResponseBody::Stream(Box::pin(Paced::new(content, pace))),
    };
    Outcome::Respond(response.with_body(content))
}
