//! A file, cached by the worker until it changes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use plimsoll_server::{Answer, Outcome, Response};

use super::{ReplyCall, ReplyContext, Respond};
use crate::config::files::{self, CacheLookup, LoadedFile};
use crate::template::TextTemplate;
use crate::worker::sharing::Allowed;

/// The default name of the array that a CSV file becomes.
pub const RECORDS: &str = "records";

/// A file that a rule responds with.
#[derive(Debug, Clone)]
pub struct ReplyFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The folder that it must lie in, links resolved.
    pub root: PathBuf,
    /// The name of the array that a CSV file becomes.
    pub records: String,
    /// Makes the path, relative to the root, for each request, in the place of the one above.
    pub written: Option<TextTemplate>,
}

impl Respond for ReplyFile {
    fn respond(&self, call: ReplyCall<'_, '_>) -> Answer {
        let (status, fields) = (call.reply.status(), call.reply.fields(call.request));
        let (context, allowed) = (Rc::clone(call.context), call.allowed.clone());
        let mut file = self.clone();
        if let Some(written) = &self.written {
            let name = written.fill(call.request);
            file.path = self.root.join(name.trim_start_matches('/'));
        }
        call.then(async move {
            let head = (status, fields.as_slice());
            Outcome::Respond(file.response(&context, head, &allowed).await)
        })
    }

    fn summary(&self, status: StatusCode) -> String {
        match &self.written {
            Some(written) => format!("{}, file {written}", status.as_u16()),
            None => format!("{}, file {}", status.as_u16(), self.path.display()),
        }
    }

    fn root(&self) -> Option<&Path> {
        Some(&self.root)
    }
}

impl ReplyFile {
    async fn response(
        self,
        context: &ReplyContext,
        head: (StatusCode, &[(HeaderName, HeaderValue)]),
        allowed: &Allowed,
    ) -> Response {
        let (status, fields) = head;
        // No path of a request begins with a line feed.
        let mut key = format!("\n{status}\n{}\n{}", self.records, self.path.display());
        for (name, value) in fields {
            write!(key, "\n{name}: {value:?}").expect("strings accept everything");
        }
        let epoch = match context.files.known(&key) {
            CacheLookup::Answer(answer) => return context.or_missing(answer.as_deref(), allowed),
            CacheLookup::No(epoch) => epoch,
        };
        let loaded = files::loaded(move || {
            let path = self.path.canonicalize().ok();
            match path.filter(|path| path.starts_with(&self.root)) {
                Some(path) => files::load(&path, &self.records),
                None => LoadedFile::Missing,
            }
        });
        let loaded = loaded.await;
        let sharing = context.sharing();
        let answer = context
            .files
            .answer(&key, epoch, loaded, head, sharing, allowed);
        answer.unwrap_or_else(|| context.missing(allowed))
    }
}
