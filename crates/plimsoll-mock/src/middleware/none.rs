//! Middlewares in programs without Rhai: none.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{MiddlewareAnswer, MiddlewareError, MiddlewareInput};
use crate::folder::Folder;
use crate::script::notice_limiter::NoticeLimiter;

/// Uninhabited: Rhai is compiled out.
#[derive(Debug)]
pub enum RhaiMiddleware {}

impl RhaiMiddleware {
    /// Refuses.
    pub fn load(_file: &Path, _operations: u64) -> Result<Self, MiddlewareError> {
        Err(MiddlewareError {
            place: None,
            message: "this program was built without Rhai".to_owned(),
        })
    }

    pub(crate) fn hiding(self, _files: impl IntoIterator<Item = PathBuf>) -> Self {
        self
    }

    /// Its name.
    pub fn shown(&self) -> String {
        match *self {}
    }

    /// The folder of the files that it answers with.
    pub fn folder(&self) -> &Folder {
        match *self {}
    }

    pub(crate) fn call(
        &self,
        _input: &MiddlewareInput,
        _notices: &Arc<NoticeLimiter>,
    ) -> Result<Option<MiddlewareAnswer>, Infallible> {
        match *self {}
    }
}
