//! What one worker makes of a plan: responses that lie ready, and files that it has read.

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use http::header::CONTENT_TYPE;
use plimsoll_server::{Answer, Response};

use crate::asked::Asked;
use crate::files::{self, Files, Known, Loaded};
use crate::plan::MockPlan;
use crate::ready::Ready;
use crate::reply::{Content, RECORDS, Reply, ReplyFile};
use crate::shared::Shared;
use crate::sharing::{Allowed, Sharing};

/// A plan as one worker serves it.
#[derive(Debug)]
pub(crate) struct Worker {
    epoch: u64,
    plan: Arc<MockPlan>,
    /// By set and rule: those whose content is always the same.
    ready: Vec<Vec<Option<Rc<Ready>>>>,
    missing: Rc<Ready>,
    files: Files,
}

impl Worker {
    pub(crate) fn new(shared: &Shared) -> Self {
        let (epoch, plan) = shared.plan();
        let sharing = &plan.sharing;
        let sets = plan.sets.iter().map(|set| {
            let rules = set.rules().iter();
            rules
                .map(|rule| ready(sharing, &rule.reply).map(Rc::new))
                .collect()
        });
        Self {
            epoch,
            ready: sets.collect(),
            missing: Rc::new(Ready::new(
                sharing,
                StatusCode::NOT_FOUND,
                Vec::new(),
                bytes::Bytes::new(),
            )),
            files: Files::new(plan.roots()),
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

    /// What a request is answered with.
    #[inline]
    pub(crate) fn answer(self: &Rc<Self>, asked: &Asked<'_>) -> Answer {
        if asked.method == "OPTIONS" {
            return Answer::now(self.sharing().options(asked));
        }
        let allowed = self.sharing().allows(asked);
        match self.plan.find(asked) {
            Some((set, rule)) => self.by_rule(set, rule, allowed),
            None => self.by_folder(asked, allowed),
        }
    }

    #[inline]
    fn by_rule(self: &Rc<Self>, set: usize, rule: usize, allowed: Allowed) -> Answer {
        let reply = &self.plan.sets[set].rules()[rule].reply;
        if let Some(ready) = &self.ready[set][rule] {
            let response = ready.response(self.sharing(), &allowed);
            if reply.delay.is_zero() {
                return Answer::now(response);
            }
            let delay = tokio::time::sleep(reply.delay);
            return Answer::later(async move {
                delay.await;
                response
            });
        }
        let worker = Rc::clone(self);
        Answer::later(async move {
            let rule = &worker.plan.sets[set].rules()[rule];
            if !rule.reply.delay.is_zero() {
                tokio::time::sleep(rule.reply.delay).await;
            }
            match &rule.reply.content {
                Content::File(file) => worker.by_file(&rule.reply, file, &allowed).await,
                Content::Empty | Content::Bytes(..) => worker.missing(&allowed),
            }
        })
    }

    /// The answer with the file of a rule.
    async fn by_file(&self, reply: &Reply, file: &ReplyFile, allowed: &Allowed) -> Response {
        // No path of a request has a blank line in it.
        let key = format!("\n{}\n{}", file.records, file.path.display());
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
            .answer(&key, epoch, loaded, &reply.fields, sharing, allowed);
        answer.unwrap_or_else(|| self.missing(allowed))
    }

    /// The answer with a file of the folder.
    fn by_folder(self: &Rc<Self>, asked: &Asked<'_>, allowed: Allowed) -> Answer {
        if self.plan.folder.is_none() {
            return Answer::now(self.missing(&allowed));
        }
        let epoch = match self.files.known(&asked.path) {
            Known::Answer(answer) => {
                return Answer::now(self.or_missing(answer.as_deref(), &allowed));
            }
            Known::No(epoch) => epoch,
        };
        let worker = Rc::clone(self);
        let path = asked.path.clone().into_owned();
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
            let answer = worker
                .files
                .answer(&path, epoch, loaded, &[], sharing, &allowed);
            answer.unwrap_or_else(|| worker.missing(&allowed))
        })
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

/// The response of a reply whose content is always the same.
fn ready(sharing: &Sharing, reply: &Reply) -> Option<Ready> {
    let mut fields = reply.fields.clone();
    let content = match &reply.content {
        Content::Empty => bytes::Bytes::new(),
        Content::Bytes(kind, content) => {
            if !fields.iter().any(|(name, _)| name == CONTENT_TYPE) {
                fields.push((CONTENT_TYPE, kind.clone()));
            }
            content.clone()
        }
        Content::File(_) => return None,
    };
    let status = reply.status.unwrap_or(StatusCode::OK);
    Some(Ready::new(sharing, status, fields, content))
}
