//! Systems whose reports of changes are not used.

use std::path::PathBuf;
use std::time::Duration;

use super::FolderNews;

#[derive(Debug)]
pub(super) struct Watch;

impl Watch {
    pub(super) fn new(_roots: &[PathBuf], _limit: usize) -> Option<Self> {
        None
    }

    pub(super) fn news(&mut self) -> FolderNews {
        FolderNews::Unknown
    }

    pub(super) fn wait(&mut self, longest: Duration) {
        Self::wait_blindly(longest);
    }

    pub(super) fn wait_blindly(longest: Duration) {
        std::thread::park_timeout(longest);
    }
}
