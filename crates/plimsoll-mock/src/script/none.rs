//! Scripts in programs without them: none.

#![expect(
    clippy::unused_self,
    clippy::unused_async,
    reason = "it has the same methods as the runtime"
)]

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Refusal, ScriptAnswer, Text};
use crate::request::RequestView;
use crate::script::notice_limiter::NoticeLimiter;
use crate::store::Store;
use crate::template::Chance;

/// Uninhabited: scripts are compiled out.
#[derive(Debug)]
pub enum Script {}

/// Scripts are compiled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this program was built without JavaScript")]
pub struct WithoutScripts;

impl Script {
    /// Refuses.
    pub fn load(
        _text: Text<'_>,
        _root: &Path,
        _time: Duration,
        _names: &[(String, usize)],
    ) -> Result<(Self, Vec<PathBuf>), WithoutScripts> {
        Err(WithoutScripts)
    }

    /// Its name.
    pub fn shown(&self) -> &str {
        match *self {}
    }
}

/// There are none.
#[derive(Debug)]
pub(crate) struct Scripts;

impl Scripts {
    pub(crate) fn new(_store: Store, _teller: Arc<NoticeLimiter>) -> Self {
        Self
    }

    pub(crate) fn ask(
        &self,
        script: &Arc<Script>,
        _asked: &RequestView<'_>,
        _chance: &Chance,
        _state: Option<String>,
    ) -> Result<Infallible, Refusal> {
        match **script {}
    }

    pub(crate) async fn answer(&self, asking: Infallible) -> Result<ScriptAnswer, Refusal> {
        match asking {}
    }
}
