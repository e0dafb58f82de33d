//! A file of servers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_model::document::ConfigProblem;
use plimsoll_wire::WatchedFiles;

use super::{ListFuture, Listed, ServerSource, SourceError};
use crate::upstream::ServerPlan;

/// How often a file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// A file that is read again when it changes.
#[derive(Clone)]
pub(crate) struct ServerFile {
    pub(crate) path: PathBuf,
    /// How it is read.
    pub(crate) read: fn(&Path) -> Result<Vec<ServerPlan>, Vec<ConfigProblem>>,
}

impl fmt::Debug for ServerFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

impl PartialEq for ServerFile {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for ServerFile {}

/// The lists of a file.
pub(super) struct FileSource {
    file: ServerFile,
    watched: WatchedFiles,
    /// It may have changed since the configuration was compiled.
    is_due: bool,
}

impl FileSource {
    pub(super) fn new(file: &ServerFile) -> Self {
        Self {
            watched: WatchedFiles::new(vec![file.path.clone()]),
            file: file.clone(),
            is_due: true,
        }
    }

    async fn list(&mut self) -> Result<Listed, SourceError> {
        while !std::mem::take(&mut self.is_due) && !self.watched.has_changed() {
            tokio::time::sleep(LOOK).await;
        }
        let read = (self.file.read)(&self.file.path);
        Ok(read.map_err(SourceError::File)?.into())
    }
}

impl ServerSource for FileSource {
    fn next(&mut self) -> ListFuture<'_> {
        Box::pin(self.list())
    }
}
