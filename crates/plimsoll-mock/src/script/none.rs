//! What stands for scripts in programs without them.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Refusal, ScriptAnswer, Text};
use crate::asked::Asked;
use crate::store::Store;
use crate::teller::Teller;
use crate::template::Chance;

/// There is none.
#[derive(Debug)]
pub enum Script {}

impl Script {
    /// Refuses.
    pub fn load(
        _text: Text<'_>,
        _root: &Path,
        _time: Duration,
        _names: &[(String, usize)],
    ) -> Result<(Self, Vec<PathBuf>), String> {
        Err("this program was built without JavaScript".to_owned())
    }

    /// What it is called.
    pub fn shown(&self) -> &str {
        match *self {}
    }
}

/// There are none.
#[derive(Debug)]
pub(crate) struct Scripts;

impl Scripts {
    pub(crate) fn new(_store: Store, _teller: Arc<Teller>) -> Self {
        Self
    }

    pub(crate) fn ask(
        &self,
        script: &Arc<Script>,
        _asked: &Asked<'_>,
        _chance: &Chance,
        _state: Option<String>,
    ) -> Result<Infallible, Refusal> {
        match **script {}
    }

    pub(crate) async fn answer(&self, asking: Infallible) -> Result<ScriptAnswer, Refusal> {
        match asking {}
    }
}
