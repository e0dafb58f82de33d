//! Middlewares on other threads, and responses of what they answer.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use plimsoll_formats::json5_to_json;
use plimsoll_server::{Notice, Response, ResponseBody, Severity};
use tokio::sync::Semaphore;

use super::Worker;
use crate::admin::journal::AnsweredBy;
use crate::config::files::CacheLookup;
use crate::config::ready;
use crate::folder::Folder;
use crate::middleware::{MiddlewareAnswer, MiddlewareInput, first_answer};
use crate::request::KeptRequest;
use crate::script::notice_limiter::NoticeLimiter;
use crate::worker::sharing::Allowed;

/// Requests of one worker whose middlewares run at once. Each has a thread, and files are read on such threads too.
const MOST_AT_ONCE: usize = 8;

/// Requests of one worker that run middlewares or wait for them; more are refused.
const MOST_WAITING: usize = 256;

/// The threads of the middlewares of one worker.
#[derive(Debug)]
pub(super) struct MiddlewareThreads {
    running: Arc<Semaphore>,
    waiting: Semaphore,
    notices: Arc<NoticeLimiter>,
}

impl MiddlewareThreads {
    pub(super) fn new(notices: Arc<NoticeLimiter>) -> Self {
        Self {
            running: Arc::new(Semaphore::new(MOST_AT_ONCE)),
            waiting: Semaphore::new(MOST_WAITING),
            notices,
        }
    }

    fn report(&self, message: impl Into<String>) {
        self.notices
            .report(&Notice::new(Severity::Error, message.into()));
    }
}

impl Worker {
    /// Whether middlewares are called for requests with this method: never for preflights.
    #[inline]
    pub(crate) fn has_middlewares(&self, method: &str) -> bool {
        !self.plan.middlewares.is_empty() && method != "OPTIONS"
    }

    /// The response of the first middleware that answers.
    ///
    /// - `prefix`: what the path begins with, without a slash at its end.
    pub(crate) async fn by_middleware(
        &self,
        kept: &KeptRequest,
        prefix: &str,
    ) -> Option<(Response, AnsweredBy)> {
        let (input, allowed) = {
            let request = kept.below(prefix);
            let allowed = self.sharing().allows(&request);
            (MiddlewareInput::new(&request), allowed)
        };
        let input = match input {
            Ok(input) => input,
            Err(error) => {
                self.middlewares.report(error.to_string());
                return None;
            }
        };
        let Ok(_waiting) = self.middlewares.waiting.try_acquire() else {
            let text = format!("{MOST_WAITING} requests wait for middlewares already\n");
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let response = self.context.text(status, text, &allowed);
            return Some((response, AnsweredBy::Refusal));
        };
        let (number, answer) = self.called_middlewares(input).await?;
        let by = AnsweredBy::Middleware(self.plan.middlewares[number].shown());
        Some((self.described(number, answer, &allowed).await, by))
    }

    async fn called_middlewares(
        &self,
        input: MiddlewareInput,
    ) -> Option<(usize, MiddlewareAnswer)> {
        // Closed by none.
        let running = Arc::clone(&self.middlewares.running);
        let permit = running.acquire_owned().await.ok()?;
        let (plan, notices) = (
            Arc::clone(&self.plan),
            Arc::clone(&self.middlewares.notices),
        );
        let calling = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            first_answer(&plan.middlewares, &input, &notices)
        });
        calling.await.unwrap_or_else(|error| {
            self.middlewares
                .report(format!("a middleware ended: {error}"));
            None
        })
    }

    /// - `number`: of the middleware.
    async fn described(
        &self,
        number: usize,
        answer: MiddlewareAnswer,
        allowed: &Allowed,
    ) -> Response {
        match answer {
            MiddlewareAnswer::Text(text) => {
                self.content("text/plain; charset=utf-8", text, allowed)
            }
            MiddlewareAnswer::Json(text) => match json5_to_json(&text) {
                Ok(json) => self.content("application/json", json, allowed),
                Err(error) => {
                    let name = self.plan.middlewares[number].shown();
                    let message = format!("{name}: answers JSON with an error: {error}");
                    self.middlewares.report(message.as_str());
                    let status = StatusCode::INTERNAL_SERVER_ERROR;
                    self.context.text(status, message + "\n", allowed)
                }
            },
            MiddlewareAnswer::File(path) => {
                // No path of a request begins with a line feed.
                let key = format!("\nmiddleware {number}\n{path}");
                let epoch = match self.context.files.known(&key) {
                    CacheLookup::Answer(answer) => {
                        return self.context.or_missing(answer.as_deref(), allowed);
                    }
                    CacheLookup::No(epoch) => epoch,
                };
                let plan = Arc::clone(&self.plan);
                let find = move || found(plan.middlewares[number].folder(), Path::new(&path));
                let found = self.found_file(&key, epoch, find, allowed).await;
                found.unwrap_or_else(|| self.context.missing(allowed))
            }
        }
    }

    fn content(&self, media_type: &'static str, text: String, allowed: &Allowed) -> Response {
        let fields = [(CONTENT_TYPE, HeaderValue::from_static(media_type))];
        ready::response(self.sharing(), allowed, StatusCode::OK, &fields)
            .with_body(ResponseBody::Bytes(Bytes::from(text)))
    }
}

/// The file that a middleware means, never outside of its folder.
fn found(folder: &Folder, path: &Path) -> Option<PathBuf> {
    let path = path.strip_prefix(folder.root()).unwrap_or(path);
    let mut names: Vec<&str> = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                names.pop()?;
            }
            Component::Normal(name) => names.push(name.to_str()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    folder.find(&names.join("/"))
}
